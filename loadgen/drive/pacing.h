/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How fast something may be done, whatever wants it done: what happens to requests that are
 * late, and how often connections may be opened. The generic cell rate algorithm. Pure; its
 * owner's thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

/* A request that could not be sent for this long is late. */
#define PACING_LATE (5 * NSEC_PER_MSEC)
/* What may be made up for when the thread itself was not there to do it. */
#define PACING_BURST NSEC_PER_MSEC

struct pacer {
    nsec_t gap_ns; /* between two, 0: no limit */
    nsec_t next_at;
};

/* `rate` a second; 0: no limit. */
void pacer_init(struct pacer *p, double rate);
/* It is done now. */
void pacer_take(struct pacer *p, nsec_t now);
/* When another one may be done. */
static inline nsec_t
pacer_next(const struct pacer *p)
{
    return p->gap_ns == 0 ? 0 : p->next_at;
}
/* Takes the first place free, now or later, and says when it is. */
nsec_t pacer_reserve(struct pacer *p, nsec_t now);

enum pacing_late {
    LATE_SEND, /* at once, all of them */
    LATE_CAP,  /* at a rate */
    LATE_DROP, /* never */
};

struct pacing {
    enum pacing_late late;
    struct pacer cap; /* LATE_CAP: every request sent counts */
};

enum pacing_verdict {
    PACING_SEND,
    PACING_WAIT, /* until pacer_next(&p->cap) */
    PACING_DROP,
};

/* What to do now with a request meant for `intended`, at most now. */
static inline enum pacing_verdict
pacing_judge(const struct pacing *p, nsec_t intended, nsec_t now)
{
    if (p->late == LATE_SEND || now - intended <= PACING_LATE) {
        return PACING_SEND;
    }
    return p->late == LATE_DROP         ? PACING_DROP
           : pacer_next(&p->cap) <= now ? PACING_SEND
                                        : PACING_WAIT;
}
