/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/queue.h"

#include <limits.h>

#include "base/owner_of.h"
#include "base/probe.h"
#include "core/core.h"

/* How often the clock is looked at while small requests are served where they are read. */
#define INLINE_TURNS_TIMED 8

void
queue_init(struct queue *q, const struct core_shared *shared)
{
    *q = (struct queue){.inline_turns = 0};
    sched_init(&q->sched, &shared->class_shares, shared->class_max_wait);
    pace_init(&q->pace);
    q->inline_ns =
        shared->classes.is_on ? sched_inline_ns(&q->sched, PACE_TURN_MAX_NS) : UINT64_MAX;
}

__attribute__((noinline)) void
queue_put(struct core *k, struct work *work, enum req_class lane)
{
    ctr_add(&k->classes[lane].queued, 1);
    PROBE(qos__defer, work, lane);
    work->node.tenant = unlikely(k->tenants.is_on) ? tenants_of(k, work, lane) : 0;
    sched_push(&k->queue.sched, &work->node, lane, k->now);
    if (unlikely(k->tenants.is_on)) {
        tenants_name(k, work, &work->node);
    }
}

void
queue_leave(struct core *k, struct work *work)
{
    if (fair_is_queued(&work->node)) {
        ctr_add(&k->classes[work->node.class].left, 1);
        sched_remove(&k->queue.sched, &work->node);
    }
    admission_leave(k, &work->ticket);
}

/* ---- turns ----------------------------------------------------------------------------- */

/* Small requests run where they are read for the time that is their share beside one turn of the
 * others (deficit round robin, Shreedhar and Varghese 1995: none is ahead by more than a quantum).
 * Without an end that is all that a poll reports, 64 sockets with -R requests each: a multiple of
 * what the five turns behind it can pay back. The poller keeps the rest, in order. */
static bool
has_served_enough(struct core *k)
{
    return ++k->queue.inline_turns % INLINE_TURNS_TIMED == 0 &&
           core_read_clock(k) - k->pass.woke_at >= k->queue.inline_ns;
}

bool
queue_end_inline(struct core *k, const struct turn *turn)
{
    if (turn->has_guest) {
        pace_note_guest(&k->queue.pace, k->pass.woke_at);
    }
    return unlikely(k->queue.sched.length > 0) && has_served_enough(k);
}

bool
queue_is_turn_over(struct core *k, const struct turn *turn)
{
    if (turn->is_inline || turn->deadline == TURN_ENDLESS) {
        return false;
    }
    nsec_t before = k->now;
    nsec_t now = core_read_clock(k);
    return now + (now - before) >= turn->deadline;
}

bool
queue_ends_piece(struct core *k, const struct turn *turn)
{
    return turn->is_inline || (turn->has_long && turn->deadline == TURN_ENDLESS) ||
           queue_is_turn_over(k, turn);
}

/* A command about the server takes as long as many small requests, so it takes its turn in a queue,
 * and a turn has time for one. Of n that are ready at once a small request then waits for the one
 * whose turn it is, and not for all n; and what they take is their class's share (deficit round
 * robin, qos/sched.h), however many clients ask. */
bool
queue_admits_long(struct turn *turn)
{
    bool is_admitted = !turn->is_inline && !turn->has_long;
    turn->has_long = true;
    return is_admitted;
}

/* ---- deferred turns -------------------------------------------------------------------- */

/* The turn of the work that is next, and how long it took. Work that has waited too long is not
 * at the cost of the other classes: the pass's deadline moves. */
static nsec_t
serve_next(struct core *k, nsec_t *deadline)
{
    bool is_overdue;
    nsec_t begin = k->now;
    struct fair_node *node = sched_next(&k->queue.sched, begin, &is_overdue);
    /* The work may be queued anew, elsewhere. */
    enum req_class lane = (enum req_class)node->class;
    uint8_t place = node->place;
    struct core_class *class = &k->classes[lane];
    struct turn turn = {.lane = class_is_inline(lane) ? CLASS_SMALL : lane,
                        .ready_at = node->since,
                        .requests = k->shared->requests_per_event,
                        .deadline = k->shared->classes.is_on ? *deadline : TURN_ENDLESS};
    if (is_overdue) {
        turn_shorten(&turn);
    }
    ctr_add(&class->turns, 1);
    ctr_add(&class->overdue, is_overdue);
    nsec_t wait = begin > node->since ? begin - node->since : 0;
    hist_record(class->wait, wait);
    admission_observe(k, lane, wait, begin);
    unsigned allowed = turn.requests;
    struct work *work = OWNER_OF(node, struct work, node);
    work->type->turn(work, &turn);
    nsec_t end = core_read_clock(k);
    sched_charge_turn(&k->queue.sched, lane, place, end - begin);
    if (unlikely(k->tenants.is_on)) {
        allowed = turn.is_short ? 1 : allowed;
        tenants_count(k, place, allowed - turn.requests, end - begin);
    }
    hist_record(class->service, end - begin);
    *deadline += is_overdue ? end - begin : 0;
    return end - begin;
}

/* None begins that would overdraw the budget if it took as long as the last; then the sockets are
 * polled again. Without classes each gets one turn, in the order in which they came. */
void
queue_serve(struct core *k)
{
    struct sched *sched = &k->queue.sched;
    if (likely(sched->length == 0)) {
        return;
    }
    unsigned turns = k->shared->classes.is_on ? UINT_MAX : sched->length;
    core_wake(k); /* a pass in which nothing was served where it was read begins here */
    nsec_t begin = core_read_clock(k);
    nsec_t used = begin - k->pass.woke_at;
    nsec_t turn_ns = pace_turn_ns(&k->queue.pace, begin);
    nsec_t deadline = begin + sched_deferred_ns(sched, turn_ns, used);
    sched_charge(sched, CLASS_SMALL, used);
    nsec_t took;
    do {
        took = serve_next(k, &deadline);
    } while (k->now + took < deadline && --turns > 0 && sched->length > 0);
}
