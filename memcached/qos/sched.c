/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/sched.h"

#define CONTROL_NS (SCHED_ROUND_NS / 50) /* of each round for long control commands */
#define DEFERRED_TURNS_MAX 5 /* a pass's deferred work is at most so many turns long */

void
sched_init(struct sched *s)
{
    struct class_shares shares;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        q->head.next = &q->head;
        q->head.prev = &q->head;
        q->length = 0;
        q->turned_at = 0;
    }
    s->length = 0;
    class_shares_init(&shares);
    sched_set(s, &shares, SCHED_MAX_WAIT_NS);
}

void
sched_set(struct sched *s, const struct class_shares *shares, nsec_t max_wait)
{
    int64_t rest = SCHED_ROUND_NS;
    must(s->length == 0);
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

/* Nothing waits: what was used before does not matter. */
static void
forgive(struct sched *s)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        s->queues[c].left = s->queues[c].quantum;
    }
}

void
sched_push(struct sched *s, struct sched_node *n, enum req_class class, nsec_t now)
{
    must((unsigned)class < CLASS_COUNT);
    must(!sched_is_queued(n));

    struct sched_queue *q = &s->queues[class];
    if (s->length == 0) {
        forgive(s);
    }
    n->class = class;
    n->queued_at = now;
    n->next = &q->head;
    n->prev = q->head.prev;
    n->prev->next = n;
    q->head.prev = n;
    q->length++;
    s->length++;
}

void
sched_remove(struct sched *s, struct sched_node *n)
{
    if (!sched_is_queued(n)) {
        return;
    }
    struct sched_queue *q = &s->queues[n->class];
    must(q->length > 0 && s->length > 0);
    must(n->prev->next == n && n->next->prev == n);
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = NULL;
    n->prev = NULL;
    q->length--;
    s->length--;
}

/* ---- whose turn it is ----------------------------------------------------------------- */

/* Since when the class waits for a turn. */
static nsec_t
waits_since(const struct sched_queue *q)
{
    nsec_t queued_at = q->head.next->queued_at;
    return queued_at > q->turned_at ? queued_at : q->turned_at;
}

/* The class that has waited longest, if that is too long. */
static struct sched_queue *
find_overdue(struct sched *s, nsec_t now)
{
    struct sched_queue *found = NULL;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        if (q->length > 0 && now >= waits_since(q) &&
            now - waits_since(q) >= s->max_wait &&
            (found == NULL || waits_since(q) < waits_since(found))) {
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
        if (q->length == 0) {
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

struct sched_node *
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
    struct sched_node *n = q->head.next;
    q->turned_at = now;
    sched_remove(s, n);
    return n;
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
