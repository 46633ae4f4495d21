/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Admission by queueing delay: keeps the time that requests wait before they are served within a
 * target, by refusing some when there are too many. Each worker decides for its own queue. Pure:
 * every function takes the time.
 *
 * The law (CoDel, Nichols and Jacobson 2012; for servers Maurer 2015): when even the least delay of
 * two intervals of 10 ms in a row was above half of the target and did not shrink, a queue stands.
 * While it does, what has waited for three quarters of the target is refused. That bounds the
 * waiting of what is served whatever the load, never idles the server and guesses no rate. Twenty
 * intervals with almost no late request end it. What came on top has its law in slo.c.
 *
 * `struct slo` is shared; its targets may change at any time. `struct slo_watch` belongs to a
 * worker's thread; any thread reads its counters and level.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "qos/class.h"

#define SLO_INTERVAL (10 * NSEC_PER_MSEC)
#define SLO_PARTS 1000         /* levels and percentiles are in thousandths */
#define SLO_UNTIMED UINT64_MAX /* a delay that was not measured */
/* Sampling of delays. A queue that stands delays every request, so any sample shows it; where
 * none stands, n samples look like one only when all of them were late by chance: with one in two
 * late, eight in two intervals each are so once in 2^16. So while no request is refused one of
 * this many is measured, and any when none was for this long: some fifty in an interval, all of a
 * slow worker. */
#define SLO_SAMPLE_EVERY 64
#define SLO_SAMPLE_NS (200 * NSEC_PER_USEC)
/* How much of a target waiting may take while a queue stands, at most and at least; and how much
 * is the client's, when what serving takes has been taken off as well. */
#define SLO_WAIT_PCT 75
#define SLO_WAIT_LEAST_PCT 25
#define SLO_CLIENT_PCT 10

struct slo_target {
    nsec_t ns;           /* 0: none */
    unsigned percentile; /* thousandths */
};

/* Targets: one for each class, and one for those above bulk that have none of their own. */
#define SLO_RULES (CLASS_COUNT + 1)
#define SLO_TOTAL CLASS_COUNT

struct slo {
    _Atomic bool is_on;
    _Atomic uint64_t ns[SLO_RULES];
    _Atomic unsigned percentile[SLO_RULES];
};

struct slo_rule {
    nsec_t target_ns; /* that it has been watched for */
    nsec_t begun;
    uint64_t samples, above; /* of this interval; those above 0.8 of the target */
    uint64_t late;           /* of this interval, refused */
    uint64_t asked_before;   /* when it began */
    nsec_t least, least_before;
    unsigned standing;  /* intervals in a row */
    unsigned quiet;     /* intervals in a row without late ones */
    uint32_t level;     /* admitted of its class, of 65536 */
    bool is_overloaded; /* late ones are refused */
    bool is_hopeless;   /* almost every request was late */
};

struct slo_watch {
    struct slo *shared;
    struct slo_rule rules[CLASS_COUNT];
    uint64_t asked[CLASS_COUNT];   /* requests */
    uint64_t offered[CLASS_COUNT]; /* the same, older ones count less and less */
    uint32_t keep[CLASS_COUNT];    /* share that is admitted, of 65536 */
    uint32_t credit[CLASS_COUNT], late_credit;
    uint64_t peers_seen; /* a bit for each of 64 groups */
    uint32_t band;       /* of the addresses, how many are served in part; of 65536 */
    nsec_t shared_at;    /* when keep was last looked at */
    bool is_neutral;     /* no request is refused, and no queue stands */
    nsec_t sampled_at;   /* when a delay was last asked for */
    unsigned skipped;    /* not asked for since */
    uint32_t share;      /* of such as the last that asked, how many are admitted */
    bool was_late;       /* the last that asked */
    ctr_t shed[CLASS_COUNT], late; /* refused; those of them that were too late */
    ctr_t level;                   /* lowest of the rules, thousandths; */
    ctr_t level_until;             /* it counts until then if no request comes */
    /* learned: how long being served takes, at the target's percentile */
    ctr_t serving[CLASS_COUNT];
};

/* ---- shared --------------------------------------------------------------------------- */

void slo_init(struct slo *s);
/* rule: a class, or SLO_TOTAL. Workers take it up by themselves. */
void slo_set(struct slo *s, unsigned rule, struct slo_target target);
struct slo_target slo_get(const struct slo *s, unsigned rule);
static inline bool
slo_is_on(const struct slo *s)
{
    return atomic_load_explicit(&s->is_on, memory_order_relaxed);
}

/* "pNN[.N]:TIME" or "off"; with names: "TARGET", "small=TARGET,bulk=TARGET". NULL, or what is
 * wrong. */
const char *slo_parse_target(const char *p, size_t len, struct slo_target *target);
const char *slo_parse(const char *p, size_t len, struct slo_target targets[SLO_RULES]);
#define SLO_TEXT_MAX 48
/* "p95:500us" or "off"; returns dst. */
const char *slo_describe(struct slo_target target, char dst[SLO_TEXT_MAX]);

/* ---- a worker ------------------------------------------------------------------------- */

void slo_watch_init(struct slo_watch *w, struct slo *s, nsec_t now);
/* A request of a class that does not run inline has waited for its turn: what slo_admits can
 * not know of those. */
void slo_observe(struct slo_watch *w, enum req_class class, nsec_t delay, nsec_t now);
/* Input is about to be read: is it worth while to measure how long it has waited? */
static inline bool
slo_wants_delay(struct slo_watch *w, nsec_t now)
{
    if (w->is_neutral && now - w->sampled_at < SLO_SAMPLE_NS &&
        ++w->skipped < SLO_SAMPLE_EVERY) {
        return false;
    }
    w->skipped = 0;
    w->sampled_at = now;
    return true;
}
/* Would slo_wants_delay say no, and slo_admits yes? */
static inline bool
slo_is_idle(const struct slo_watch *w, nsec_t now)
{
    return w->is_neutral && now - w->sampled_at < SLO_SAMPLE_NS &&
           w->skipped + 1 < SLO_SAMPLE_EVERY && now - w->shared_at < SLO_INTERVAL;
}
/* Not for slo_admits' callers. */
bool slo_judge(struct slo_watch *w, enum req_class class, uint64_t peer, nsec_t delay,
               nsec_t now);
/* While not is_neutral: one of an inline class that was admitted has its reply written so much
 * later. */
void slo_learn(struct slo_watch *w, enum req_class class, nsec_t took);
/* How long a request of an inline class may wait while a queue stands; 0: it has no target. Any
 * thread. */
nsec_t slo_wait_budget(const struct slo_watch *w, enum req_class class);
/* The share of requests that is admitted, of the class with the lowest, in thousandths. Any
 * thread. */
unsigned slo_level(const struct slo_watch *w, nsec_t now);
/* While is_neutral: so many are served without asking. */
static inline void
slo_note(struct slo_watch *w, enum req_class class, unsigned n)
{
    w->offered[class] += n;
    w->asked[class] += n;
}
/* A request of this class and address (0: none) that has waited `delay`, or SLO_UNTIMED: is
 * it served? */
static inline bool
slo_admits(struct slo_watch *w, enum req_class class, uint64_t peer, nsec_t delay,
           nsec_t now)
{
    if (likely(w->is_neutral && delay == SLO_UNTIMED &&
               now - w->shared_at < SLO_INTERVAL)) {
        slo_note(w, class, 1); /* nearly all, while no queue stands */
        return true;
    }
    return slo_judge(w, class, peer, delay, now);
}
/* For how long an answer that refuses a request of that class may be kept, so that it goes with
 * others: as long as the request itself might have waited. */
static inline nsec_t
slo_coalesce_ns(const struct slo_watch *w, enum req_class class)
{
    nsec_t target = w->rules[class].target_ns;
    return target < SLO_INTERVAL ? target : SLO_INTERVAL;
}
/* After slo_admits has refused one: n more that have come with it are refused, unasked. */
void slo_refuse(struct slo_watch *w, enum req_class class, unsigned n);
