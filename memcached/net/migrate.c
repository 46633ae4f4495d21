/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/migrate.h"

#include <assert.h>

#include "base/log.h"
#include "base/probe.h"
#include "net/conn.h"
#include "net/worker.h"
#include "sock/incoming.h"

/* An order, small enough to be one atomic. */
struct migrate_request {
    uint16_t to;
    uint16_t most;
    uint32_t share : 24; /* BALANCE_SHARES */
    uint32_t reason : 8; /* enum balance_reason */
};

#define LOOK_MAX 1024    /* connections looked at for one order */
#define HOME_LOOK_MAX 64 /* ... to see where their packets arrive, a system call each */
#define OLD_RATE_WEIGHT 0.5f
#define PENDING_NS (3 * BALANCE_WINDOW_NS)

static_assert(sizeof(struct migrate_request) == sizeof(uint64_t), "one atomic");

/* ---- orders --------------------------------------------------------------------------- */

void
migrate_order(struct net_shared *shared, const struct balance_move *move)
{
    struct worker *from = &shared->workers[move->from];
    struct migrate_request ask = {.to = (uint16_t)move->to,
                                  .most = (uint16_t)move->conns,
                                  .share =
                                      (uint32_t)(move->share * BALANCE_SHARES) & 0xffffff,
                                  .reason = move->reason};
    uint64_t packed;
    memcpy(&packed, &ask, sizeof packed);
    atomic_store(&from->migrate.ask, packed);
    worker_order(from, ORDER_GIVE);
}

/* ---- looking -------------------------------------------------------------------------- */

static void
update_rate(struct migrate_rate *r, uint32_t served, nsec_t now)
{
    if (now <= r->since) {
        return;
    }
    float rate =
        (float)(served - r->counted) * (float)NSEC_PER_SEC / (float)(now - r->since);
    r->per_second = OLD_RATE_WEIGHT * r->per_second + (1 - OLD_RATE_WEIGHT) * rate;
    r->counted = served;
    r->since = now;
}

/* The connections of a look that may be sent away: those between two requests, and others. */
struct candidates {
    struct balance_choice movable[LOOK_MAX], busy[LOOK_MAX];
    size_t movable_count, busy_count;
};

static void
consider(struct candidates *to, const struct worker *w, struct conn *c, bool is_forced)
{
    bool is_cool = c->move == NULL || c->move->moved_at == 0 ||
                   w->core.now - c->move->moved_at >= BALANCE_COOL_NS;
    struct balance_choice choice = {.rate = (double)c->rate.per_second, .what = c};
    if (!is_cool && !is_forced) {
        return;
    }
    if (conn_is_movable(c)) {
        to->movable[to->movable_count++] = choice;
    } else if (c->closing == CLOSE_NONE && c->leaving == CLOSE_NONE) {
        to->busy[to->busy_count++] = choice;
    }
}

/* Brings the rates of the next connections up to date, from where the last look ended. to (or
 * NULL) gets those that may move. Returns the requests of all of them. */
static double
look(struct worker *w, bool is_forced, struct candidates *to)
{
    double total = 0;
    struct conn *first =
        w->conns.walks[WALK_MOVE] != NULL ? w->conns.walks[WALK_MOVE] : w->conns.first;
    struct conn *c = first;
    for (unsigned i = 0; i < LOOK_MAX && c != NULL; i++) {
        update_rate(&c->rate, c->pump.served, w->core.now);
        total += (double)c->rate.per_second;
        if (to != NULL) {
            consider(to, w, c, is_forced);
        }
        c = c->next != NULL ? c->next : w->conns.first;
        if (c == first) {
            break;
        }
    }
    w->conns.walks[WALK_MOVE] = c;
    return total;
}

void
migrate_look(struct worker *w)
{
    (void)look(w, false, NULL);
}

/* ---- giving and taking ---------------------------------------------------------------- */

/* False: no memory. */
static bool
has_state(struct conn *c)
{
    if (c->move == NULL) {
        c->move = calloc(1, sizeof *c->move);
    }
    return c->move != NULL;
}

/* The other worker does not end while `arriving` is not 0. It is counted before the look at
 * the flag, and the flag is set before any worker is told to end: so either the flag is seen
 * here, or the count is seen there. */
static bool
give(struct worker *w, struct worker *to, struct conn *c, enum balance_reason reason)
{
    if (!has_state(c)) {
        return false;
    }
    atomic_fetch_add(&to->migrate.arriving, 1);
    if (atomic_load(&w->shared->has_stopped_moving)) {
        atomic_fetch_sub(&to->migrate.arriving, 1);
        mbox_wake(&to->mbox); /* it may wait for this one */
        return false;
    }
    *c->move = (struct migrate_state){.pending = c->move->pending,
                                      .moved_at = w->core.now,
                                      .is_home = reason == BALANCE_HOME};
    worker_forget(w);
    worker_expect(to);
    PROBE(conn__migrate, c->source.fd, w->index, to->index);
    conn_leave(c);
    /* Before others see what has moved, which may be at once. */
    atomic_store_explicit(&w->shared->last_move, reason, memory_order_relaxed);
    c->message.kind = MESSAGE_MOVED;
    mbox_push(&to->mbox, &c->message.message);
    return true;
}

/* A share of 1 is all connections, also those without requests; an order moves one at the
 * least. */
static unsigned
choose(const struct migrate_request *ask, struct balance_choice *choices, size_t count,
       double total)
{
    double share = (double)ask->share / BALANCE_SHARES;
    unsigned chosen = balance_choose(choices, count, total, share, ask->most);
    if (share >= 1) {
        return (unsigned)(count < ask->most ? count : ask->most);
    }
    return ask->reason == BALANCE_ORDER && chosen == 0 && count > 0 ? 1 : chosen;
}

static uint32_t
part_of(double rate, double total)
{
    return total > 0 ? (uint32_t)(rate / total * BALANCE_SHARES) : 0;
}

static void
report(const struct worker *w, const struct worker *to, unsigned moved,
       enum balance_reason reason)
{
    log_write(LOG_WARNING,
              "balance: %u connection%s from worker %u (load %.2f) to %u (%.2f): %s",
              moved, moved == 1 ? "" : "s", w->index,
              (double)w->migrate.load_milli / 1000, to->index,
              (double)to->migrate.load_milli / 1000, balance_reason_name(reason));
}

/* Those that can go now do. What is left of the order. */
static struct migrate_request
give_movable(struct worker *w, struct migrate_request ask, struct candidates *all,
             double total)
{
    struct worker *to = &w->shared->workers[ask.to];
    unsigned chosen = choose(&ask, all->movable, all->movable_count, total);
    unsigned moved = 0;
    double gone = 0;
    while (moved < chosen && give(w, to, all->movable[moved].what, ask.reason)) {
        gone += all->movable[moved++].rate;
    }
    if (moved > 0) {
        uint32_t part = part_of(gone, total);
        ctr_add(&w->migrate.given, part);
        report(w, to, moved, ask.reason);
        ask.most = (uint16_t)(ask.most - moved);
        if (ask.share < BALANCE_SHARES) {
            ask.share = ask.share > part ? ask.share - part : 0;
        }
    }
    return ask;
}

/* Of a saturated worker most connections are in a queue at any moment: those go when they come
 * to their end. */
static void
mark_busy(const struct worker *w, const struct migrate_request *ask,
          struct candidates *all, double total)
{
    unsigned chosen = ask->most > 0 ? choose(ask, all->busy, all->busy_count, total) : 0;
    for (unsigned i = 0; i < chosen; i++) {
        struct conn *c = all->busy[i].what;
        if (has_state(c)) {
            c->is_at_rest = false; /* its next turn ends with its leave */
            c->move->pending =
                (struct migrate_pending){.is_set = true,
                                         .reason = (uint8_t)ask->reason,
                                         .to = ask->to,
                                         .part = part_of(all->busy[i].rate, total),
                                         .until = w->core.now + PENDING_NS};
        }
    }
}

void
migrate_execute(struct worker *w)
{
    uint64_t packed = atomic_load(&w->migrate.ask);
    struct migrate_request ask;
    memcpy(&ask, &packed, sizeof ask);
    if (ask.to == w->index || w->core.is_draining) {
        return;
    }
    struct candidates *all = malloc(sizeof *all);
    if (all == NULL) {
        return;
    }
    all->movable_count = all->busy_count = 0;
    double total = look(w, ask.reason == BALANCE_ORDER, all);
    ask = give_movable(w, ask, all, total);
    mark_busy(w, &ask, all, total);
    free(all);
}

bool
migrate_complete(struct conn *c)
{
    struct worker *w = c->worker;
    struct migrate_pending pending = c->move->pending;
    struct worker *to = &w->shared->workers[pending.to];
    if (w->core.now >= pending.until || w->core.is_draining) {
        c->move->pending.is_set = false;
        return false;
    }
    if (!conn_pack(c) || !give(w, to, c, (enum balance_reason)pending.reason)) {
        return false;
    }
    ctr_add(&w->migrate.given, pending.part);
    report(w, to, 1, (enum balance_reason)pending.reason);
    return true;
}

/* ---- where packets arrive ------------------------------------------------------------- */

static bool
is_rested(const struct conn *c, nsec_t now)
{
    nsec_t rest = c->move->is_home ? BALANCE_COOL_NS : HOMING_REST_NS;
    return c->move->moved_at == 0 || now - c->move->moved_at >= rest;
}

/* The worker to which the connection should go now; -1: none. */
static int
home_of(const struct worker *w, struct conn *c)
{
    const struct net_shared *shared = w->shared;
    int home =
        steer_home(&shared->steer, w->index, incoming_cpu(c->source.fd), shared->loads);
    if (!has_state(c) ||
        !homing_note(&c->move->homing, home, c->pump.served, w->core.now) ||
        !is_rested(c, w->core.now) || !conn_is_movable(c)) {
        return -1;
    }
    uint32_t own = atomic_load_explicit(&w->migrate.load_milli, memory_order_relaxed);
    uint32_t other = atomic_load_explicit(&shared->workers[home].migrate.load_milli,
                                          memory_order_relaxed);
    return homing_suits(own, other) ? home : -1;
}

/* Looks at the next connections, and sends to one other worker those that are received there. */
void
migrate_home(struct worker *w)
{
    struct conn *leaving[HOME_LOOK_MAX];
    unsigned count = 0, moved = 0;
    unsigned most = homing_most(
        atomic_load_explicit(&w->shared->loads[w->index], memory_order_relaxed));
    int to = -1;
    struct conn *first =
        w->conns.walks[WALK_MOVE] != NULL ? w->conns.walks[WALK_MOVE] : w->conns.first;
    struct conn *c = first;
    if (w->core.is_draining || (w->migrate.homed_at != 0 &&
                                w->core.now - w->migrate.homed_at < HOMING_PAUSE_NS)) {
        return;
    }
    for (unsigned i = 0; i < HOME_LOOK_MAX && c != NULL && count < most; i++) {
        int home = c->is_tcp ? home_of(w, c) : -1;
        to = to < 0 ? home : to;
        if (home >= 0 && home == to) {
            leaving[count++] = c;
        }
        c = c->next != NULL ? c->next : w->conns.first;
        if (c == first) {
            break;
        }
    }
    w->conns.walks[WALK_MOVE] = c;
    while (moved < count &&
           give(w, &w->shared->workers[to], leaving[moved], BALANCE_HOME)) {
        moved++;
    }
    if (moved > 0) {
        w->migrate.homed_at = w->core.now;
        ctr_add(&w->migrate.homed, moved);
        report(w, &w->shared->workers[to], moved, BALANCE_HOME);
    }
}

void
migrate_take(struct worker *w, struct conn *c)
{
    ctr_add(&w->migrate.taken, 1);
    conn_join(c, w);
    atomic_fetch_sub(&w->migrate.arriving, 1);
}
