/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/admission.h"

#include "base/owner_of.h"
#include "core/core.h"

bool
admission_init(struct admission *a, struct core_shared *shared, nsec_t now)
{
    *a = (struct admission){.is_armed = false};
    limiter_worker_init(&a->limits, &shared->limiter);
    slo_watch_init(&a->slo, &shared->slo, now);
    a->delay = hist_create(ADMISSION_SUB_BITS, ADMISSION_MAX_NS);
    return a->delay != NULL;
}

void
admission_fini(struct admission *a)
{
    hist_destroy(&a->delay);
}

/* ---- asking ---------------------------------------------------------------------------- */

/* The worker is to be woken when a request that waits may go on. */
static void
arm(struct core *k)
{
    struct admission *a = &k->admission;
    nsec_t due = limiter_due(&a->limits, k->now);
    nsec_t earliest = k->now + limiter_sleep_least(a->limits.shared);
    nsec_t when = due > earliest ? due : earliest;
    if (!a->is_armed || when < a->wake_at) {
        a->is_armed = true;
        a->wake_at = when;
    }
}

static bool
meets_slo(struct core *k, const struct facts *f)
{
    nsec_t delay = f->since == 0       ? SLO_UNTIMED
                   : k->now > f->since ? k->now - f->since
                                       : 0;
    return slo_admits(&k->admission.slo, f->ask.class, f->ask.peer, delay, k->now);
}

static enum limiter_verdict
ask_limits(struct core *k, struct ticket *t, const struct facts *f, bool is_served)
{
    struct admission *a = &k->admission;
    enum limiter_verdict verdict =
        limiter_ask(&a->limits, &t->wait, &f->ask, is_served, k->now);
    /* Else admission_serve sees to the timer, at the end of the pass. */
    if (unlikely(verdict == VERDICT_WAIT) && a->is_armed && a->round_at == 0) {
        arm(k);
    }
    return verdict;
}

static enum limiter_verdict
judge(struct core *k, struct ticket *t, const struct facts *f, const struct turn *turn)
{
    struct admission *a = &k->admission;
    /* What has waited for tokens in vain is refused. */
    if (unlikely(t->is_refused)) {
        t->is_refused = false;
        a->refuses_rest = false;
        return VERDICT_REFUSE;
    }
    /* At the end of the process what has come is served. */
    if (unlikely(k->is_draining)) {
        return VERDICT_ADMIT;
    }
    /* The SLO refuses what is late, and what would make others late. */
    a->refuses_rest = unlikely(core_has_slo(k)) && !meets_slo(k, f);
    if (unlikely(a->refuses_rest)) {
        return VERDICT_REFUSE;
    }
    /* The limits of the address, of the class and of all have a token, or it waits. */
    bool is_served = turn->is_served && turn->requests > 0 &&
                     !limiter_is_shared(&a->limits, f->ask.class);
    return ask_limits(k, t, f, is_served);
}

enum limiter_verdict
admission_ask(struct core *k, struct ticket *t, const struct facts *f, struct turn *turn)
{
    enum limiter_verdict verdict = judge(k, t, f, turn);
    if (unlikely(verdict != VERDICT_ADMIT)) {
        return verdict;
    }
    /* In a turn that is for small ones: behind others it would learn what those take. */
    if (unlikely(!k->admission.slo.is_neutral) && f->ask.class == CLASS_SMALL &&
        turn->lane == CLASS_SMALL && turn->admitted_at == 0 && core_has_slo(k)) {
        turn->admitted_at = k->now;
    }
    return VERDICT_ADMIT;
}

/* Plain requests that pass unasked. To a token bucket n requests are one of n times the cost (GCRA,
 * ITU-T I.371), so those that the worker's lease has tokens for are taken together; and the SLO has
 * no say in what it would neither refuse nor measure (slo_is_idle). Asking for each is a third of
 * what a plain get costs. */
__attribute__((noinline)) unsigned
admission_unasked(struct core *k, unsigned most)
{
    struct admission *a = &k->admission;
    bool is_seen = k->tenants.is_on || (core_has_slo(k) && !slo_is_idle(&a->slo, k->now));
    return is_seen ? 0 : limiter_unasked(&a->limits, most, k->now);
}

void
admission_pass(struct core *k, enum req_class class, unsigned n)
{
    limiter_pass(&k->admission.limits, class, n);
    if (unlikely(core_has_slo(k))) {
        slo_note(&k->admission.slo, class, n);
    }
}

bool
admission_refuses_as_miss(const struct core *k)
{
    return limiter_refuses_as_miss(&k->shared->limiter);
}

uint64_t
admission_answered(const struct admission *a)
{
    uint64_t n = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct limiter_ctr *ctr = &a->limits.ctr[c];
        n += ctr_get(&ctr->admitted) + ctr_get(&ctr->rejected) + ctr_get(&a->slo.shed[c]);
    }
    return n;
}

/* ---- what the SLO learns --------------------------------------------------------------- */

void
admission_end_turn(struct core *k, const struct turn *turn)
{
    if (unlikely(turn->admitted_at != 0)) {
        slo_learn(&k->admission.slo, CLASS_SMALL, core_read_clock(k) - turn->admitted_at);
    }
}

void
admission_observe(struct core *k, enum req_class class, nsec_t wait, nsec_t now)
{
    if (unlikely(core_has_slo(k))) {
        slo_observe(&k->admission.slo, class, wait, now);
    }
}

bool
admission_wants_delay(struct core *k)
{
    return unlikely(core_has_slo(k)) &&
           slo_wants_delay(&k->admission.slo, k->pass.woke_at);
}

void
admission_skip_delay(struct core *k)
{
    k->admission.slo.skipped++;
}

/* ---- waiting for tokens ---------------------------------------------------------------- */

/* Work that has waited goes on with its request. */
static void
go_on(struct core *k, struct work *work, enum limiter_verdict verdict)
{
    struct ticket *t = &work->ticket;
    nsec_t since = t->wait.node.since;
    t->is_admitted = verdict == VERDICT_ADMIT;
    t->is_refused = !t->is_admitted;
    if (t->is_admitted) {
        hist_record(k->admission.delay, k->now > since ? k->now - since : 0);
        if (unlikely(k->tenants.is_on)) {
            tenants_count_tokens(k, work);
        }
    }
    struct turn turn = core_inline_turn(k);
    turn.is_served = true;
    work->type->turn(work, &turn);
}

/* A client that has gone loses its place: its tokens are the next one's. */
static void
serve_ticket(struct core *k, struct waitq_node *n, enum limiter_verdict verdict)
{
    struct work *work = OWNER_OF(n, struct work, ticket.wait);
    if (work->type->ends_if_gone == NULL || !work->type->ends_if_gone(work)) {
        go_on(k, work, verdict);
    } else if (verdict == VERDICT_ADMIT) {
        limiter_give_back(&k->admission.limits, n, k->now);
    }
}

void
admission_serve(struct core *k)
{
    struct admission *a = &k->admission;
    if (a->limits.waiting == 0) {
        a->round_at = 0;
        return;
    }
    core_wake(k);
    nsec_t now = core_read_clock(k);
    if (a->round_at == 0) {
        if (a->is_armed && !k->is_draining) {
            return; /* the timer says when */
        }
        a->round_at = now;
    }
    nsec_t deadline = now + pace_turn_ns(&k->queue.pace, now);
    enum limiter_verdict verdict;
    struct waitq_node *n;
    while ((n = limiter_next(&a->limits, k->is_draining, a->round_at, &verdict)) !=
           NULL) {
        serve_ticket(k, n, verdict);
        if (core_read_clock(k) >= deadline) {
            return; /* the next pass follows at once */
        }
    }
    a->round_at = 0;
    if (a->limits.waiting > 0) {
        arm(k);
    }
}

bool
admission_is_due(const struct core *k)
{
    const struct admission *a = &k->admission;
    return a->limits.waiting > 0 && (!a->is_armed || a->round_at != 0 || k->is_draining);
}

void
admission_leave(struct core *k, struct ticket *t)
{
    limiter_leave(&k->admission.limits, &t->wait);
}

void
admission_look_again(struct core *k)
{
    limiter_look_again(&k->admission.limits);
    k->admission.is_armed = false;
}

void
admission_wake(struct core *k)
{
    k->admission.is_armed = false;
}

void
admission_rest(struct core *k)
{
    limiter_rest(&k->admission.limits, k->now);
}
