/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/sched.h"

#define CONTROL_NS (SCHED_ROUND_NS / 50) /* of each round for long control commands */
#define DEFERRED_TURNS_MAX 5 /* a pass's deferred work is at most so many turns long */

void
sched_init(struct sched *s, const struct class_shares *shares, nsec_t max_wait)
{
    int64_t rest = SCHED_ROUND_NS;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        fair_init(&s->queues[c].waiting, FAIR_QUEUE_CLASS + c, SCHED_TENANT_NS,
                  SCHED_DEBT_ROUNDS * (int64_t)SCHED_ROUND_NS);
        s->queues[c].waits_since = 0;
    }
    s->length = 0;
    for (unsigned c = CLASS_SMALL + 1; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        q->quantum =
            (int64_t)(SCHED_ROUND_NS * shares->per_mille[c] / CLASS_SHARES_TOTAL);
        must(q->quantum > 0 && q->quantum < rest);
        q->left = q->quantum;
        rest -= q->quantum;
    }
    s->queues[CLASS_CONTROL].quantum = CONTROL_NS;
    s->queues[CLASS_CONTROL].left = CONTROL_NS;
    s->queues[CLASS_SMALL].quantum = rest - CONTROL_NS;
    s->queues[CLASS_SMALL].left = rest - CONTROL_NS;
    s->max_wait = max_wait;
}

void
sched_set_tenants(struct sched *s, struct fair_table *table)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        fair_set_table(&s->queues[c].waiting, table);
    }
}

/* Nothing waits: what was used before does not matter. */
static void
forgive(struct sched *s)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        s->queues[c].left = s->queues[c].quantum;
    }
}

void
sched_push(struct sched *s, struct fair_node *n, enum req_class class, nsec_t now)
{
    must((unsigned)class < CLASS_COUNT);
    struct sched_queue *q = &s->queues[class];
    if (s->length == 0) {
        forgive(s);
    }
    if (q->waiting.length == 0) {
        q->waits_since = now;
    }
    n->class = (uint8_t) class;
    n->since = now;
    fair_push(&q->waiting, n);
    s->length++;
}

void
sched_remove(struct sched *s, struct fair_node *n)
{
    if (fair_is_queued(n)) {
        must(s->length > 0);
        fair_remove(&s->queues[n->class].waiting, n);
        s->length--;
    }
}

/* ---- whose turn it is ----------------------------------------------------------------- */

/* The class that has waited longest, if that is too long. */
static struct sched_queue *
find_overdue(struct sched *s, nsec_t now)
{
    struct sched_queue *found = NULL;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        if (q->waiting.length > 0 && now >= q->waits_since &&
            now - q->waits_since >= s->max_wait &&
            (found == NULL || q->waits_since < found->waits_since)) {
            found = q;
        }
    }
    return found;
}

/* The first that has some of its share left; starts as many rounds as that takes. */
static struct sched_queue *
find_entitled(struct sched *s)
{
    int64_t rounds = INT64_MAX;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        if (q->waiting.length == 0) {
            continue;
        }
        if (q->left > 0) {
            return q;
        }
        int64_t needs = -q->left / q->quantum + 1;
        rounds = needs < rounds ? needs : rounds;
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        int64_t owed = q->left < 0 ? q->left : 0;
        int64_t left = owed + rounds * q->quantum;
        q->left = left < q->quantum ? left : q->quantum;
    }
    return find_entitled(s);
}

struct fair_node *
sched_next(struct sched *s, nsec_t now, bool *is_overdue)
{
    *is_overdue = false;
    if (s->length == 0) {
        return NULL;
    }
    struct sched_queue *q = find_overdue(s, now);
    *is_overdue = q != NULL;
    if (q == NULL) {
        q = find_entitled(s);
    }
    q->waits_since = now;
    s->length--;
    return fair_pop(&q->waiting);
}

void
sched_charge(struct sched *s, enum req_class class, nsec_t used)
{
    struct sched_queue *q = &s->queues[class];
    int64_t most = SCHED_DEBT_ROUNDS * (int64_t)SCHED_ROUND_NS;
    q->left = used < (nsec_t)most ? q->left - (int64_t)used : -most;
    if (q->left < -most) {
        q->left = -most;
    }
}

void
sched_charge_turn(struct sched *s, enum req_class class, uint8_t place, nsec_t used)
{
    sched_charge(s, class, used);
    if (fair_is_shared(&s->queues[class].waiting)) {
        fair_charge(&s->queues[class].waiting, place, used);
    }
}

/* ---- how long a pass may be ----------------------------------------------------------- */

static nsec_t
deferred_share(const struct sched *s)
{
    return SCHED_ROUND_NS - (nsec_t)s->queues[CLASS_SMALL].quantum;
}

nsec_t
sched_inline_ns(const struct sched *s, nsec_t turn)
{
    nsec_t most = turn * (nsec_t)s->queues[CLASS_SMALL].quantum / deferred_share(s);
    return most > turn ? most : turn;
}

nsec_t
sched_deferred_ns(const struct sched *s, nsec_t turn, nsec_t inline_used)
{
    nsec_t small = (nsec_t)s->queues[CLASS_SMALL].quantum;
    nsec_t most = turn * DEFERRED_TURNS_MAX;
    nsec_t least =
        inline_used < most * small ? inline_used * deferred_share(s) / small : most;
    if (least > most) {
        least = most;
    }
    return least > turn ? least : turn;
}
