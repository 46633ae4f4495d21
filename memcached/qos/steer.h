/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Connection steering: which worker a new connection goes to. The choice is made of the CPU on
 * which the kernel last handled the connection (sock/incoming.h tells it), of where the workers
 * stand, of how many connections each has, and of a seeded generator. Pure.
 *
 * Laws: of two workers at random the one with fewer connections (Mitzenmacher 2001: of n workers
 * the fullest then exceeds the mean by O(log log n)); the worker nearest to the receiving CPU
 * (Pesterev et al. 2012), as long as it has no more than 5/4 of its fair share, and a few.
 *
 * CPUs are OS numbers, as SO_INCOMING_CPU shows them.
 */
#pragma once

#include <stdatomic.h>

#include "base/cpumask.h"
#include "base/ctr.h"
#include "base/must.h"
#include "base/rng.h"

enum steer_mode {
    STEER_RR,        /* each in turn */
    STEER_CPU,       /* the worker on the CPU that received */
    STEER_REUSEPORT, /* as the kernel chose among the workers' own listeners */
    STEER_NAPI,      /* the worker on the CPU that usually serves the receive queue */
    STEER_P2C,       /* of two at random the one with fewer connections */
    STEER_MODES
};

/* No worker is given more connections for its nearness than this times its fair share, and a
 * few: where one client's CPU or one receive queue dominates, nearness alone would put
 * everything on one worker. */
#define STEER_SPARE 2
#define STEER_EXCESS_NUM 5
#define STEER_EXCESS_DEN 4

#define STEER_QUEUES_MAX 256

/* Where the workers stand, and how far every CPU is from them. Constant but for `cpus` and
 * `shunned`, which any thread may change and read. */
struct steer_map {
    unsigned count;          /* workers */
    _Atomic int *cpus;       /* of each worker; -1: not pinned */
    _Atomic bool *excluded;  /* of each worker: it is given none, while others are not */
    struct cpu_place *known; /* by OS number; .cpu is -1 where nothing is known */
    unsigned known_count;
};

/* A receive queue and the CPU that most of its connections came from: the vote is that of
 * Boyer and Moore (1981). */
struct steer_queue {
    unsigned id;
    int cpu;
    unsigned votes;
    uint64_t used; /* when, in connections */
};

/* One for each thread that accepts; that thread only, but for the counters. */
struct steer {
    enum steer_mode mode;
    const struct steer_map *map;
    struct rng rng;
    unsigned turn;
    uint64_t picks;
    ctr_t local;      /* went to the CPU that received them */
    ctr_t near;       /* ... to one that shares a cache or a memory node with it */
    ctr_t overflow;   /* ... elsewhere, because that worker has too many */
    ctr_t fallback;   /* nothing was known of them, or no worker is near */
    ctr_t unexpected; /* came from a receive queue for which another was forgotten */
    unsigned queue_count, queues_max;
    struct steer_queue
        queues[STEER_QUEUES_MAX]; /* in the order in which they were seen */
};

/* What is known of a new connection. */
struct steer_hint {
    int cpu;       /* that received; -1: unknown */
    unsigned napi; /* the receive queue's number; 0: unknown */
    int given;     /* the worker whose listener got it; -1: none */
};

/* "rr", "cpu", ... False: no such mode. */
must_check bool steer_mode_parse(const char *text, enum steer_mode *mode);
const char *steer_mode_name(enum steer_mode mode);

/* places: of the workers. known: of all CPUs of the machine, as far as there is a topology, in
 * any order. Both are copied. False: no memory. */
must_check bool steer_map_init(struct steer_map *m, const struct cpu_place *places,
                               unsigned count, const struct cpu_place *known,
                               unsigned known_count);
void steer_map_fini(struct steer_map *m);

/* Of that worker; -1: not pinned. Any thread. */
static inline int
steer_map_cpu(const struct steer_map *m, unsigned worker)
{
    return atomic_load_explicit(&m->cpus[worker], memory_order_relaxed);
}

/* The worker has been pinned anew. */
void steer_map_move(struct steer_map *m, unsigned worker, int cpu);
/* The worker's CPU is used by others, or is its own again. */
void steer_map_exclude(struct steer_map *m, unsigned worker, bool is_excluded);
must_check bool steer_map_is_excluded(const struct steer_map *m, unsigned worker);
/* At least one worker has a CPU of its own. */
bool steer_map_is_pinned(const struct steer_map *m);

/* queues_max: receive queues that are told apart, STEER_QUEUES_MAX at most; 0: so many. */
void steer_init(struct steer *s, enum steer_mode mode, const struct steer_map *map,
                unsigned queues_max, uint64_t seed);
/* loads: how many connections each worker has. Counts the choice. */
unsigned steer_pick(struct steer *s, const struct steer_hint *hint,
                    const _Atomic unsigned *loads);

/* A worker that is nearer to the CPU than this one, which is pinned, and has room for another
 * connection; -1: none. */
int steer_home(const struct steer_map *m, unsigned worker, int cpu,
               const _Atomic unsigned *loads);
