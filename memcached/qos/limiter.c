/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/limiter.h"

#include "base/changes.h"
#include "base/owner_of.h"

/* The limits in the order in which a request passes them. What waits for a narrow one must
 * not hold tokens of a wider one meanwhile. */
enum stage { STAGE_PEER, STAGE_CLASS, STAGE_TOTAL, STAGE_PASSED };

/* Looks through the list of those that wait for their address, so far apart: a fixed time, and so
 * much for each of them that looking takes a small part of the CPU. Not longer than the time in which
 * a bucket fills, as what comes to a full one is lost, but so much for each at the least. */
#define PEERS_LOOK_NS (100 * NSEC_PER_USEC)
#define PEERS_LOOK_EACH_NS NSEC_PER_USEC
#define PEERS_LOOK_EACH_LEAST_NS 500
#define NAP_NS (100 * NSEC_PER_USEC)

/* ---- shared --------------------------------------------------------------------------- */

static void
refresh_is_on(struct limiter *l)
{
    bool has_parts = peers_is_set(&l->peers);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        has_parts |= limit_is_set(&l->by_class[c]);
    }
    bool is_on = has_parts || limit_is_set(&l->total);
    bool counts_keys = atomic_load_explicit(&l->counts_keys, memory_order_relaxed);
    atomic_store_explicit(&l->is_simple, !has_parts && !counts_keys,
                          memory_order_relaxed);
    atomic_store_explicit(&l->is_on, is_on, memory_order_relaxed);
    changes_note();
}

/* The lower of what was set and the ceiling; under set_lock. */
static void
apply_total(struct limiter *l, nsec_t now)
{
    struct limiter_rule rule = {l->wanted.rate,
                                l->wanted.rate != 0 ? l->wanted.burst : 0};
    if (l->ceiling != 0 && (rule.rate == 0 || l->ceiling < rule.rate)) {
        rule.rate = l->ceiling;
    }
    limit_set(&l->total, rule.rate, rule.burst, now);
}

void
limiter_init(struct limiter *l, const struct limiter_conf *conf, unsigned workers,
             nsec_t now)
{
    PTHREAD_OK(pthread_mutex_init(&l->set_lock, NULL));
    l->wanted = conf->total;
    l->ceiling = 0;
    limit_init(&l->total, workers);
    apply_total(l, now);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        limit_init(&l->by_class[c], workers);
        limit_set(&l->by_class[c], conf->by_class[c].rate, conf->by_class[c].burst, now);
    }
    peers_init(&l->peers);
    peers_set(&l->peers, conf->peer.rate, conf->peer.burst, now);
    atomic_init(&l->action, conf->action);
    atomic_init(&l->max_delay, conf->max_delay);
    atomic_init(&l->counts_keys, conf->counts_keys);
    atomic_init(&l->is_dry, conf->is_dry);
    refresh_is_on(l);
}

void
limiter_fini(struct limiter *l)
{
    limit_fini(&l->total);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        limit_fini(&l->by_class[c]);
    }
    PTHREAD_OK(pthread_mutex_destroy(&l->set_lock));
}

void
limiter_set_total(struct limiter *l, struct limiter_rule rule, nsec_t now)
{
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    l->wanted = rule;
    apply_total(l, now);
    refresh_is_on(l);
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
}

void
limiter_set_ceiling(struct limiter *l, uint64_t rate, nsec_t now)
{
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    l->ceiling = rate;
    apply_total(l, now);
    refresh_is_on(l);
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
}

void
limiter_set_class(struct limiter *l, enum req_class class, struct limiter_rule rule,
                  nsec_t now)
{
    must((unsigned)class < CLASS_COUNT);
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    limit_set(&l->by_class[class], rule.rate, rule.burst, now);
    refresh_is_on(l);
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
}

void
limiter_set_peer(struct limiter *l, struct limiter_rule rule, nsec_t now)
{
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    peers_set(&l->peers, rule.rate, rule.burst, now);
    refresh_is_on(l);
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
}

void
limiter_set_unit(struct limiter *l, bool counts_keys)
{
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    atomic_store_explicit(&l->counts_keys, counts_keys, memory_order_relaxed);
    refresh_is_on(l);
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
}

void
limiter_set_action(struct limiter *l, enum limiter_action action, nsec_t max_delay)
{
    atomic_store_explicit(&l->max_delay, max_delay, memory_order_relaxed);
    atomic_store_explicit(&l->action, action, memory_order_relaxed);
}

struct limiter_rule
limiter_total(struct limiter *l)
{
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    struct limiter_rule rule = l->wanted;
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
    return rule;
}

nsec_t
limiter_sleep_least(const struct limiter *l)
{
    nsec_t nap = NAP_NS;
    for (unsigned c = 0; c <= CLASS_COUNT; c++) {
        nsec_t burst = limit_burst_time(c < CLASS_COUNT ? &l->by_class[c] : &l->total);
        nap = burst != 0 && burst < nap ? burst : nap;
    }
    nsec_t burst = peers_burst_time(&l->peers);
    return burst != 0 && burst < nap ? burst : nap;
}

/* ---- the list of those that wait for their address ------------------------------------- */

static unsigned *
hash_count(struct limiter_worker *d, const struct waitq_node *n)
{
    return &d->peers_by_hash[n->peer % LIMITER_PEER_HASHES];
}

static void
peers_push(struct limiter_worker *d, struct waitq_node *n)
{
    n->node.next = &d->peers;
    n->node.prev = d->peers.prev;
    n->node.prev->next = &n->node;
    d->peers.prev = &n->node;
    d->peers_length++;
    ++*hash_count(d, n);
}

static void
peers_remove(struct limiter_worker *d, struct waitq_node *n)
{
    if (d->peers_next == &n->node) {
        d->peers_next = n->node.next;
    }
    n->node.prev->next = n->node.next;
    n->node.next->prev = n->node.prev;
    n->node.next = n->node.prev = NULL;
    d->peers_length--;
    --*hash_count(d, n);
}

static nsec_t
next_look(const struct limiter_worker *d, nsec_t now)
{
    nsec_t apart = PEERS_LOOK_NS + d->peers_length * PEERS_LOOK_EACH_NS;
    nsec_t least = d->peers_length * PEERS_LOOK_EACH_LEAST_NS;
    nsec_t burst = peers_burst_time(&d->shared->peers);
    burst = burst > least ? burst : least;
    return now + (apart < burst ? apart : burst);
}

/* The next in the list that has its tokens, taken; NULL when this look is over. */
static struct waitq_node *
peers_pop(struct limiter_worker *d, nsec_t now)
{
    if (d->peers_length == 0 || (d->peers_next == &d->peers && now < d->peers_at)) {
        return NULL;
    }
    if (d->peers_next == &d->peers) {
        d->peers_next = d->peers.next;
        d->peers_retry = UINT64_MAX;
    }
    while (d->peers_next != &d->peers) {
        struct waitq_node *n = OWNER_OF(d->peers_next, struct waitq_node, node);
        nsec_t retry_at = now;
        if (peers_take(&d->shared->peers, n->peer, n->cost, now, &retry_at)) {
            peers_remove(d, n);
            return n;
        }
        d->peers_next = n->node.next;
        d->peers_retry = retry_at < d->peers_retry ? retry_at : d->peers_retry;
    }
    nsec_t soonest = next_look(d, now);
    d->peers_at = d->peers_retry > soonest ? d->peers_retry : soonest;
    return NULL;
}

/* ---- a worker ------------------------------------------------------------------------- */

void
limiter_worker_init(struct limiter_worker *d, struct limiter *l)
{
    *d = (struct limiter_worker){.shared = l};
    waitq_init(&d->total, &l->total, FAIR_QUEUE_TOTAL);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        waitq_init(&d->by_class[c], &l->by_class[c], FAIR_QUEUE_LIMIT + c);
    }
    d->peers.next = d->peers.prev = d->peers_next = &d->peers;
}

void
limiter_set_tenants(struct limiter_worker *d, struct fair_table *table)
{
    fair_set_table(&d->total.waiting, table);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        fair_set_table(&d->by_class[c].waiting, table);
    }
}

bool
limiter_is_shared(const struct limiter_worker *d, enum req_class class)
{
    return fair_is_shared(&d->by_class[class].waiting) ||
           fair_is_shared(&d->total.waiting);
}

/* The wait queue of a stage, NULL when it has no limit. */
static struct waitq *
waitq_of(struct limiter_worker *d, const struct waitq_node *n, unsigned stage)
{
    struct waitq *g = stage == STAGE_CLASS ? &d->by_class[n->node.class] : &d->total;
    return limit_is_set(g->limit) ? g : NULL;
}

static bool
pass(struct limiter_worker *d, struct waitq_node *n, unsigned stage, bool has_waited,
     nsec_t now)
{
    if (stage == STAGE_PEER) {
        nsec_t ignored;
        if (n->peer == 0 || !peers_is_set(&d->shared->peers)) {
            return true;
        }
        return (has_waited || *hash_count(d, n) == 0) &&
               peers_take(&d->shared->peers, n->peer, n->cost, now, &ignored);
    }
    struct waitq *g = waitq_of(d, n, stage);
    return g == NULL || waitq_take(g, n, now, has_waited);
}

/* Gives back the tokens of the stages before this one. */
static void
undo(struct limiter_worker *d, struct waitq_node *n, unsigned stage)
{
    if (stage > STAGE_PEER && n->peer != 0) {
        peers_refund(&d->shared->peers, n->peer, n->cost);
    }
    if (stage > STAGE_CLASS && waitq_of(d, n, STAGE_CLASS) != NULL) {
        waitq_untake(&d->by_class[n->node.class], n);
    }
}

static nsec_t
max_delay(const struct limiter_worker *d)
{
    return atomic_load_explicit(&d->shared->max_delay, memory_order_relaxed);
}

static bool
is_overdue(const struct limiter_worker *d, const struct waitq_node *n, nsec_t at)
{
    nsec_t most = max_delay(d);
    return most != 0 && at > n->node.since && at - n->node.since >= most;
}

/* Queues n at the stage where it got stuck. False: it would have to wait for too long. */
static bool
queue_up(struct limiter_worker *d, struct waitq_node *n, nsec_t now)
{
    d->waiting++;
    if (n->stage == STAGE_PEER) {
        nsec_t look = d->peers_length == 0 ? now : next_look(d, now);
        peers_push(d, n);
        /* It may have its tokens long before those that were looked at. */
        d->peers_at = look < d->peers_at || d->peers_length == 1 ? look : d->peers_at;
        return true;
    }
    struct waitq *g = n->stage == STAGE_CLASS ? &d->by_class[n->node.class] : &d->total;
    nsec_t due = waitq_push(g, n, now);
    if (is_overdue(d, n, due > now ? due - 1 : now)) {
        waitq_remove(g, n);
        d->waiting--;
        return false;
    }
    return true;
}

/* Through as many stages as there are tokens for. */
static bool
advance(struct limiter_worker *d, struct waitq_node *n, bool has_waited, nsec_t now)
{
    while (n->stage < STAGE_PASSED) {
        if (!pass(d, n, n->stage, has_waited, now)) {
            return false;
        }
        n->stage++;
    }
    return true;
}

static enum limiter_verdict
admit(struct limiter_worker *d, const struct waitq_node *n)
{
    ctr_add(&d->ctr[n->node.class].admitted, 1);
    ctr_add(&d->more, n->cost - 1);
    return VERDICT_ADMIT;
}

static enum limiter_verdict
refuse(struct limiter_worker *d, struct waitq_node *n)
{
    undo(d, n, n->stage);
    ctr_add(&d->ctr[n->node.class].rejected, 1);
    return VERDICT_REFUSE;
}

enum limiter_verdict
limiter_ask_limits(struct limiter_worker *d, struct waitq_node *n,
                   const struct limiter_request *r, bool has_waited, nsec_t now)
{
    const struct limiter *l = d->shared;
    struct limiter_ctr *ctr = &d->ctr[r->class];
    nsec_t ignored;
    if (likely(atomic_load_explicit(&l->is_simple, memory_order_relaxed)) &&
        (d->total.waiting.length == 0 || has_waited) &&
        limit_take(&d->shared->total, &d->total.lease, now, &ignored)) {
        ctr_add(&ctr->admitted, 1); /* nearly all, while the limit does not bind */
        return VERDICT_ADMIT;
    }
    bool counts_keys = atomic_load_explicit(&l->counts_keys, memory_order_relaxed);
    n->stage = STAGE_PEER;
    n->node.class = (uint8_t)r->class;
    n->node.tenant = r->tenant;
    n->node.place = 0;
    n->peer = r->peer;
    n->cost = counts_keys && r->keys > 0 ? r->keys : 1;
    n->node.since = now;
    if (likely(advance(d, n, has_waited, now))) {
        return admit(d, n);
    }
    if (atomic_load_explicit(&l->is_dry, memory_order_relaxed)) {
        ctr_add(&ctr->would_limit, 1);
        return admit(d, n);
    }
    bool waits = atomic_load_explicit(&l->action, memory_order_relaxed) == ACTION_DELAY;
    return waits && queue_up(d, n, now) ? VERDICT_WAIT : refuse(d, n);
}

unsigned
limiter_unasked(struct limiter_worker *d, unsigned most, nsec_t now)
{
    struct limiter *l = d->shared;
    struct limit_lease *lease = &d->total.lease;
    nsec_t ignored;
    if (!atomic_load_explicit(&l->is_on, memory_order_relaxed)) {
        return most;
    }
    if (!atomic_load_explicit(&l->is_simple, memory_order_relaxed) || d->waiting > 0) {
        return 0;
    }
    if (limit_leased(&l->total, lease, now) == 0 &&
        limit_take(&l->total, lease, now, &ignored)) {
        lease->tokens++; /* the lease is what was wanted */
    }
    uint64_t leased = limit_leased(&l->total, lease, now);
    return leased < most ? (unsigned)leased : most;
}

void
limiter_owe(struct limiter_worker *d, const struct limiter_request *r, nsec_t now)
{
    struct limiter *l = d->shared;
    if (r->keys == 0 || !atomic_load_explicit(&l->counts_keys, memory_order_relaxed)) {
        return;
    }
    ctr_add(&d->more, r->keys);
    peers_owe(&l->peers, r->peer, r->keys, now);
    limit_owe(&l->by_class[r->class], &d->by_class[r->class].lease, r->keys, now);
    limit_owe(&l->total, &d->total.lease, r->keys, now);
}

uint64_t
limiter_tokens(const struct limiter_worker *d)
{
    uint64_t sum = ctr_get(&d->more);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        sum += ctr_get(&d->ctr[c].admitted);
    }
    return sum;
}

/* The list or wait queue at whose front the one that waits longest may stand: 0 is the peers'
 * list, then the classes' gates, then that of all. */
#define QUEUES (CLASS_COUNT + 2)

static struct waitq *
gate_number(struct limiter_worker *d, unsigned i)
{
    return i <= CLASS_COUNT ? &d->by_class[i - 1] : &d->total;
}

static struct waitq_node *
front(struct limiter_worker *d, unsigned i)
{
    if (i == 0) {
        return d->peers_length > 0 ? OWNER_OF(d->peers.next, struct waitq_node, node)
                                   : NULL;
    }
    return waitq_oldest(gate_number(d, i));
}

static void
unlink_waiting(struct limiter_worker *d, struct waitq_node *n)
{
    d->waiting--;
    if (n->stage == STAGE_PEER) {
        peers_remove(d, n);
    } else {
        waitq_remove(n->stage == STAGE_CLASS ? &d->by_class[n->node.class] : &d->total,
                     n);
    }
}

/* The next one whose wait budget is used up, or the next of all. */
static struct waitq_node *
take_front(struct limiter_worker *d, bool any, nsec_t now)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        struct waitq_node *n = front(d, i);
        if (n != NULL && (any || is_overdue(d, n, now))) {
            unlink_waiting(d, n);
            return n;
        }
    }
    return NULL;
}

/* One that has got what it waited for. */
static struct waitq_node *
take_ready(struct limiter_worker *d, nsec_t now)
{
    struct waitq_node *n = peers_pop(d, now);
    for (unsigned i = 1; n == NULL && i < QUEUES; i++) {
        n = waitq_pop(gate_number(d, i), now);
    }
    d->waiting -= n != NULL;
    return n;
}

static enum limiter_verdict
admit_late(struct limiter_worker *d, struct waitq_node *n)
{
    ctr_add(&d->ctr[n->node.class].delayed, 1);
    return admit(d, n);
}

struct waitq_node *
limiter_next(struct limiter_worker *d, bool lets_all, nsec_t now,
             enum limiter_verdict *verdict)
{
    if (d->waiting == 0) {
        return NULL;
    }
    lets_all |= atomic_load_explicit(&d->shared->is_dry, memory_order_relaxed);
    struct waitq_node *n;
    if (lets_all && (n = take_front(d, true, now)) != NULL) {
        *verdict = admit_late(d, n);
        return n;
    }
    if (max_delay(d) != 0 && (n = take_front(d, false, now)) != NULL) {
        *verdict = refuse(d, n);
        return n;
    }
    while ((n = take_ready(d, now)) != NULL) {
        n->stage++;
        if (advance(d, n, false, now)) {
            *verdict = admit_late(d, n);
            return n;
        }
        if (!queue_up(d, n, now)) {
            *verdict = refuse(d, n);
            return n;
        }
    }
    return NULL;
}

void
limiter_give_back(struct limiter_worker *d, struct waitq_node *n, nsec_t now)
{
    ctr_add(&d->ctr[n->node.class].admitted, (uint64_t)-1);
    ctr_add(&d->more, 1 - (uint64_t)n->cost);
    ctr_add(&d->ctr[n->node.class].delayed, (uint64_t)-1);
    if (n->peer != 0) {
        peers_refund(&d->shared->peers, n->peer, n->cost);
    }
    if (waitq_of(d, n, STAGE_CLASS) != NULL) {
        waitq_give_back(&d->by_class[n->node.class], n->cost, now);
    }
    if (waitq_of(d, n, STAGE_TOTAL) != NULL) {
        waitq_give_back(&d->total, n->cost, now);
    }
}

nsec_t
limiter_due(struct limiter_worker *d, nsec_t now)
{
    nsec_t due = UINT64_MAX;
    nsec_t most = max_delay(d);
    for (unsigned i = 0; i < QUEUES && d->waiting > 0; i++) {
        const struct waitq_node *n = front(d, i);
        if (n == NULL) {
            continue;
        }
        nsec_t at = i == 0 ? d->peers_at : waitq_due(gate_number(d, i), now);
        due = at < due ? at : due;
        if (most != 0 && n->node.since + most < due) {
            due = n->node.since + most;
        }
    }
    return due;
}

void
limiter_look_again(struct limiter_worker *d)
{
    d->peers_at = 0;
}

void
limiter_leave(struct limiter_worker *d, struct waitq_node *n)
{
    if (waitq_is_waiting(n)) {
        unlink_waiting(d, n);
        undo(d, n, n->stage);
    }
}

void
limiter_give_leases(struct limiter_worker *d, nsec_t now)
{
    struct limiter *l = d->shared;
    limit_rest(&l->total, &d->total.lease, now);
    if (atomic_load_explicit(&l->is_simple, memory_order_relaxed)) {
        return;
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        limit_rest(&l->by_class[c], &d->by_class[c].lease, now);
    }
}
