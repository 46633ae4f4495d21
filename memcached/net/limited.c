/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/limited.h"

#include <stddef.h>
#include <unistd.h>

#include "base/timer.h"
#include "net/conn.h"
#include "net/worker.h"

bool
limited_init(struct worker *w)
{
    struct limited *l = &w->limited;
    *l = (struct limited){.timer_fd = timer_open()};
    limiter_desk_init(&l->desk, &w->shared->limiter);
    l->delay = hist_create(LIMITED_SUB_BITS, LIMITED_MAX_NS);
    return l->timer_fd >= 0 && l->delay != NULL;
}

void
limited_fini(struct worker *w)
{
    struct limited *l = &w->limited;
    if (l->timer_fd >= 0) {
        close(l->timer_fd);
    }
    hist_destroy(&l->delay);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct worker *w = arg;
    if (timer_take(fd)) {
        w->limited.is_armed = false; /* limited_serve goes on at the end of this pass */
    }
}

bool
limited_start(struct worker *w)
{
    struct limited *l = &w->limited;
    return event_assign(&l->timer_event, w->base, l->timer_fd, EV_READ | EV_PERSIST,
                        on_timer, w) == 0 &&
           event_add(&l->timer_event, NULL) == 0;
}

void
limited_stop(struct worker *w)
{
    limiter_rest(&w->limited.desk, clock_now());
    event_del(&w->limited.timer_event);
}

/* Wakes the worker when somebody who waits may go on. */
static void
arm_timer(struct worker *w)
{
    struct limited *l = &w->limited;
    nsec_t due = limiter_due(&l->desk, w->now);
    nsec_t earliest = w->now + limiter_nap(l->desk.shared);
    nsec_t when = due > earliest ? due : earliest;
    if (l->is_armed && l->armed_at <= when) {
        return;
    }
    timer_set(l->timer_fd, when);
    l->is_armed = true;
    l->armed_at = when;
}

static bool
meets_slo(struct worker *w, const struct limiter_request *r)
{
    nsec_t delay = r->since == 0       ? SLO_UNTIMED
                   : w->now > r->since ? w->now - r->since
                                       : 0;
    return slo_admits(&w->slo, r->class, r->peer, delay, w->now);
}

enum limiter_verdict
limited_ask(struct worker *w, struct task *t, const struct limiter_request *r,
            bool is_served)
{
    struct limited *l = &w->limited;
    if (unlikely(t->is_refused)) {
        t->is_refused = false;
        l->refuses_rest = false;
        return VERDICT_REFUSE;
    }
    if (unlikely(w->is_draining)) {
        return VERDICT_ADMIT;
    }
    l->refuses_rest = unlikely(slo_is_on(&w->shared->slo)) && !meets_slo(w, r);
    if (unlikely(l->refuses_rest)) {
        return VERDICT_REFUSE;
    }
    enum limiter_verdict verdict = limiter_ask(&l->desk, &t->wait, r, is_served, w->now);
    /* Else limited_serve sees to the timer, at the end of the pass. */
    if (unlikely(verdict == VERDICT_WAIT) && l->is_armed && l->round_at == 0) {
        arm_timer(w);
    }
    return verdict;
}

void
limited_look_again(struct limited *l)
{
    limiter_look_again(&l->desk);
    l->is_armed = false;
}

static struct task *
task_of_wait(struct gate_node *n)
{
    return (struct task *)(void *)((char *)n - offsetof(struct task, wait));
}

/* One that has waited goes on with its request. */
static void
go_on(struct worker *w, struct task *t, enum limiter_verdict verdict)
{
    nsec_t since = t->wait.since;
    t->is_admitted = verdict == VERDICT_ADMIT;
    t->is_refused = !t->is_admitted;
    if (!t->is_udp) {
        conn_of_task(t)->arrived_at = w->now; /* the wait was wanted: it is no queue */
    }
    if (t->is_admitted) {
        hist_record(w->limited.delay, w->now > since ? w->now - since : 0);
    }
    struct turn turn = worker_inline_turn(w);
    turn.is_served = true;
    task_take_turn(t, &turn);
}

/* Is it time for a round among those who wait? When the timer says so; and before, when the
 * worker is awake and the first is late by half a nap: leaving tokens lying would lose rate,
 * and looking each time that there is one would mean a write for each request. */
static bool
is_round_due(struct worker *w)
{
    struct limited *l = &w->limited;
    if (!l->is_armed || w->is_draining) {
        return true;
    }
    nsec_t due = limiter_due(&l->desk, w->now);
    return due < w->now && w->now - due >= limiter_nap(l->desk.shared) / 2;
}

void
limited_serve(struct worker *w)
{
    struct limited *l = &w->limited;
    if (l->desk.waiting == 0) {
        l->round_at = 0;
        return;
    }
    worker_refresh_now(w);
    nsec_t now = worker_read_clock(w);
    if (l->round_at == 0) {
        if (!is_round_due(w)) {
            return;
        }
        l->round_at = now;
    }
    nsec_t deadline = now + pace_turn_ns(&w->pace, now);
    enum limiter_verdict verdict;
    struct gate_node *n;
    while ((n = limiter_next(&l->desk, w->is_draining, l->round_at, &verdict)) != NULL) {
        struct task *t = task_of_wait(n);
        if (!t->is_udp && conn_is_reset(conn_of_task(t))) {
            /* whose client has gone loses its place */
            if (verdict == VERDICT_ADMIT) {
                limiter_give_back(&l->desk, n, w->now);
            }
            conn_close(conn_of_task(t), CLOSE_RESET);
        } else {
            go_on(w, t, verdict);
        }
        if (worker_read_clock(w) >= deadline) {
            return; /* the next pass follows at once */
        }
    }
    l->round_at = 0;
    if (l->desk.waiting > 0) {
        arm_timer(w);
    }
}

bool
limited_is_due(const struct worker *w)
{
    const struct limited *l = &w->limited;
    return l->desk.waiting > 0 && (!l->is_armed || l->round_at != 0 || w->is_draining);
}
