/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which workers share their CPU with another program. Pure; one thread.
 *
 * The law: a worker that loses its CPU for a slice of t at a rate r makes all its clients wait,
 * so a share r t of its requests is late by t / 2, while its load grows by r t only: to even
 * loads out does not help, to have no connections does. It is told by two things together: the
 * worker waits for a good part of the time that it wants, and others have most of the rest of its
 * CPU; that it is over by the second alone, because a worker without requests does not wait.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

#define CROWD_WAIT 0.005 /* of the time: a worker that waits less is not looked at */
#define CROWD_WAIT_PART                                                                  \
    0.2                   /* ... nor one that waits for less of the time that it wants */
#define CROWD_BEGINS 0.4  /* of its CPU, that others have */
#define CROWD_ENDS 0.2    /* ... less */
#define CROWD_BETTER 0.25 /* by so much less another worker's CPU is wanted by others */
#define CROWD_WINDOWS 3   /* in a row, before a worker counts as crowded */
#define CROWD_FREE_WINDOWS 10 /* ... as free again */

/* Of a worker: sums since its start. */
struct crowd_sample {
    uint64_t run_ns;  /* on a CPU */
    uint64_t wait_ns; /* ready and without one */
    int cpu;          /* that it is bound to; -1: none */
    uint64_t used_ns; /* busy time of that CPU; 0: not known this time */
};

struct crowd_worker {
    struct crowd_sample last;
    double run, wait; /* moving averages, of the time */
    double others;    /* likewise: what others have of its CPU. 0 without requests */
    unsigned windows; /* in a row that spoke against is_crowded */
    bool is_crowded;
    bool has_changed; /* in the last step */
};

struct crowd {
    unsigned count;
    struct crowd_worker *workers;
};

/* False: no memory. */
must_check bool crowd_init(struct crowd *c, unsigned count);
void crowd_fini(struct crowd *c);
/* At the end of each window. samples: one for each worker. At least one is never crowded. */
void crowd_step(struct crowd *c, const struct crowd_sample *samples, nsec_t window);
/* What has grown in a window, as a part of it. A long pass is counted when it ends, so a window may
 * seem to hold more than there is: then it is 1. */
double crowd_part_of(uint64_t now, uint64_t before, nsec_t window);
/* Is it worth while to ask what the CPUs have done, next time? */
must_check bool crowd_wants_used(const struct crowd *c);
