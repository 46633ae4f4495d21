/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When connections should move from one worker to another, how many, and which. The policy only:
 * it is told what the workers did in the last window and answers with an order; it reads no clock
 * and moves nothing. One thread.
 *
 * The law (thresholds on load, Eager, Lazowska and Zahorjan 1986): above a gap of 0.2, for three
 * windows, the most loaded gives half of the gap to the least, down to 0.1. Load is time busy
 * plus time without a CPU though one was wanted, which clients wait for too; workers that are
 * always busy are told apart by the delay of requests. One whose CPU is crowded (qos/crowd.h)
 * gives all away and gets its part back later. Orders that move nothing become rare by doubling.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "qos/crowd.h"

#define BALANCE_WINDOW_NS (100 * NSEC_PER_MSEC)
#define BALANCE_WINDOWS 3   /* in a row with too large a gap, before anything moves */
#define BALANCE_START 0.2   /* gap between the highest and the lowest load */
#define BALANCE_STOP 0.1    /* once it has begun, it goes on down to this */
#define BALANCE_CONNS_PCT 5 /* of all connections, the most that move in a window */
#define BALANCE_COOL_NS (1 * NSEC_PER_SEC) /* a connection that has moved stays so long */
#define BALANCE_SHARES 1000000             /* a share of 1 in integers */
#define BALANCE_CROWDED                                                                  \
    0.7 /* the load of a crowded worker, at least: so others are filled
                                   up to a little less */
#define BALANCE_CROWDED_PART 4 /* of its connections, the part that leaves in a window */
#define BALANCE_RETURN 50 /* windows in which a worker that is free again gets its part */

enum balance_reason {
    BALANCE_NONE,
    BALANCE_BUSY,        /* one worker has more to do */
    BALANCE_WAIT,        /* one worker waits for its CPU */
    BALANCE_BACKLOG,     /* requests wait longer for one worker, though all are busy */
    BALANCE_ORDER,       /* by command */
    BALANCE_HOME,        /* packets arrive near the other worker */
    BALANCE_CROWDED_CPU, /* others have the worker's CPU */
    BALANCE_FREE_CPU,    /* ... and no longer have that of the other worker */
};

/* What is known of a worker: sums since its start. */
struct balance_sample {
    uint64_t busy_ns;
    uint64_t wait_ns;  /* ready and without a CPU */
    uint64_t given;    /* BALANCE_SHARES of its requests that went with connections */
    uint64_t delay_ns; /* of requests that were looked at: how long they had waited */
    uint64_t delays;   /* ... and how many they were */
    unsigned conns;
    uint64_t run_ns; /* on a CPU */
    int cpu;         /* as in struct crowd_sample, like used_ns */
    uint64_t used_ns;
};

struct balance_worker {
    struct balance_sample last;
    double busy, wait;  /* moving averages */
    double delay;       /* ns, likewise */
    double backlog;     /* of a saturated worker: what its delay adds to its load */
    unsigned returning; /* windows left in which it gets its part back */
    unsigned resting;   /* ... in which it is not asked again: nothing of it could move */
};

/* Connections of `from` go to `to`: at most so many, that together make at most `share` of the
 * requests of `from`. */
struct balance_move {
    unsigned from, to;
    unsigned conns;
    double share;
    enum balance_reason reason;
};

struct balance {
    unsigned count;
    struct balance_worker *workers;
    struct crowd crowd;
    struct crowd_sample *cpus; /* what it is given */
    nsec_t at;                 /* of the last samples; 0: there were none */
    unsigned windows;          /* in a row above BALANCE_START */
    bool is_acting;
    unsigned futile;           /* orders in a row by which nothing moved */
    unsigned pause;            /* windows, after such ones */
    struct balance_move order; /* the last one */
    bool has_ordered;          /* ... at the end of the last window */
};

enum balance_advice {
    BALANCE_QUIET,
    BALANCE_WATCH, /* something may have to move: look at the connections of move.from */
    BALANCE_MOVE,
};

/* False: no memory. */
must_check bool balance_init(struct balance *b, unsigned count);
void balance_fini(struct balance *b);
/* At the end of each window. samples: one for each worker. */
enum balance_advice balance_step(struct balance *b, const struct balance_sample *samples,
                                 nsec_t now, struct balance_move *move);
double balance_load(const struct balance *b, unsigned worker);
/* New connections had better not go there; in the last step that may have changed. */
static inline bool
balance_is_crowded(const struct balance *b, unsigned worker)
{
    return b->crowd.workers[worker].is_crowded;
}

/* A move by command, whether it is worth it or not: from the worker with the higher load,
 * or with more connections when loads are alike. False: there is no connection to
 * move. */
must_check bool balance_force(const double *loads, const unsigned *conns, unsigned count,
                              struct balance_move *move);

/* A connection that could move. */
struct balance_choice {
    double rate; /* requests in some unit of time */
    void *what;
};

/* Puts the connections to move first, the ones with most requests first, and returns how many
 * they are: at most `most`, that make at most `share` of `total`. A single one may be a tenth
 * above, because rates are measured. Those without requests stay. */
unsigned balance_choose(struct balance_choice *choices, size_t count, double total,
                        double share, unsigned most);
const char *balance_reason_name(enum balance_reason reason);
