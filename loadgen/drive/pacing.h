/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How fast something may be done, whatever wants it done: what happens to requests that are
 * late, and how often connections may be opened. The generic cell rate algorithm. Pure; its
 * owner's thread only.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"

/* ---- cap --------------------------------------------------------------------------- */

/* How much all processes of an agent together may send and receive, whatever they were asked
 * for: their threads say now and then how much they have moved, and are told how long to do nothing at all, not
 * even to receive, so that servers are not drained either. The generic cell rate algorithm
 * on two times that all threads share; in memory that processes share as well, since nothing
 * else is written after cap_init. Any thread; only where there is such a limit. */
/* What may be moved at once after a pause: requests of a second, so that those of a schedule
 * at the limit itself are not held up by chance; bytes of a tenth. */
#define CAP_REQUESTS_BURST NSEC_PER_SEC
#define CAP_BYTES_BURST (100 * NSEC_PER_MSEC)

struct cap_rate {
    double gap_ns; /* of one; 0: any */
    nsec_t burst;
    _Atomic uint64_t paid_to; /* relaxed: nothing else hangs on it */
};

struct cap {
    struct cap_rate requests, bytes;
};

/* A second; 0: any. */
void cap_init(struct cap *c, double requests, double bytes);
bool cap_is_on(const struct cap *c);
/* So much was moved: when more may be, at most now when at once. */
nsec_t cap_spend(struct cap *c, uint64_t requests, uint64_t bytes, nsec_t now);
/* The same, and sleeps until then, but not beyond `end` and not once `stop` is set (NULL:
 * never is). Returns the time. */
nsec_t cap_throttle(struct cap *c, uint64_t requests, uint64_t bytes, nsec_t end,
                    const atomic_bool *stop);

/* ---- giving way -------------------------------------------------------------------- */

/* From a real-time thread that leaves less than a twentieth of its CPU the kernel takes it, for
 * 50 ms of each second. So it sleeps a twelfth of the time; one that does so anyhow, between
 * requests, is never made to. */
#define GIVE_WAY_SHARE 12
/* What it slept beyond that counts for later up to this much, of a second that is mostly polled
 * enough is left still; and so much it owes at most, when it had no time to sleep. */
#define GIVE_WAY_AHEAD (20 * NSEC_PER_MSEC)
/* How often that is looked at. */
#define GIVE_WAY_LOOK (250 * NSEC_PER_USEC)
/* Where there are no pauses between requests it comes to owe more than this. Then it sleeps
 * whatever is due, for this long. */
#define GIVE_WAY_CREDIT (2 * NSEC_PER_MSEC)
#define GIVE_WAY_NAP (20 * NSEC_PER_USEC)

struct give_way {
    nsec_t at, cpu; /* at the last look */
    int64_t owed;   /* to be slept; below 0: ahead */
};

/* So much time on the CPU had the thread by now. */
void give_way_look(struct give_way *g, nsec_t cpu, nsec_t now);

static inline bool
give_way_is_owed(const struct give_way *g)
{
    return g->owed > 0;
}

/* How long to sleep now, whatever is due; 0: not at all. */
static inline nsec_t
give_way_nap(const struct give_way *g)
{
    int64_t over = g->owed - (int64_t)GIVE_WAY_CREDIT;
    return over <= 0 ? 0 : over < (int64_t)GIVE_WAY_NAP ? (nsec_t)over : GIVE_WAY_NAP;
}

/* ---- pacing ------------------------------------------------------------------------ */

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
