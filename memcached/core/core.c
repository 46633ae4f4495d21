/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/core.h"

#include "base/changes.h"
#include "base/log.h"
#include "serve/watch.h"

/* A poll that takes longer has slept: nothing was ready when it began. */
#define POLL_MOST_NS (20 * NSEC_PER_USEC)

/* A pass of fewer small requests, and nothing else, takes less than POLL_MOST_NS. */
#define SHORT_PASS 4

static void
release_item(void *ctx, void *owner)
{
    store_release(ctx, owner);
}

bool
core_init(struct core *k, struct core_shared *shared, nsec_t (*clock)(void),
          const struct env *env, uint64_t buffer_bytes)
{
    *k = (struct core){.shared = shared, .clock = clock, .env = *env};
    k->env.spare = &k->spare_request;
    k->env.chain =
        (struct chain_env){.pool = &k->pool, .release = release_item, .ctx = env->store};
    k->budget.bytes = buffer_bytes;
    queue_init(&k->queue, shared);
    bool is_good =
        admission_init(&k->admission, shared, clock()) && latency_init(&k->latency);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct core_class *class = &k->classes[c];
        class->wait = hist_create(CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS);
        class->service = hist_create(CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS);
        is_good = is_good && class->wait != NULL && class->service != NULL;
    }
    return is_good;
}

void
core_fini(struct core *k)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        hist_destroy(&k->classes[c].wait);
        hist_destroy(&k->classes[c].service);
    }
    admission_fini(&k->admission);
    tenants_fini(k);
    latency_fini(&k->latency);
    free(k->spare_request);
}

void
core_start(struct core *k, struct watch_ring *log)
{
    pool_init(&k->pool);
    k->env.log = log;
    core_read_clock(k);
    tenants_apply(k);
}

void
core_stop(struct core *k)
{
    pool_fini(&k->pool);
}

/* ---- time ------------------------------------------------------------------------------ */

static __attribute__((noinline)) void
look_at_settings(struct core *k)
{
    const struct core_shared *shared = k->shared;
    struct settings_view *v = &k->view;
    v->changes = changes_count(); /* before all that it counts */
    k->env.now = clock_rel_since(k->now, &v->second);
    k->env.looks_closer = k->env.conf->auth != NULL || log_level() >= LOG_DEBUG;
    v->admits_most = core_admits_most(k);
    v->sees_each = k->env.looks_closer || k->is_draining || k->budget.bytes != 0 ||
                   atomic_load_explicit(&shared->reads_keys, memory_order_relaxed) ||
                   watch_wants(k->env.log, WATCH_FETCHERS | WATCH_PREFIXES);
}

nsec_t
core_read_clock(struct core *k)
{
    k->now = k->clock();
    if (unlikely(k->now - k->view.second >= NSEC_PER_SEC ||
                 changes_count() != k->view.changes)) {
        look_at_settings(k);
    }
    k->pass.is_fresh = true;
    return k->now;
}

void
core_drain(struct core *k)
{
    k->is_draining = true;
    look_at_settings(k);
}

void
core_wake(struct core *k)
{
    struct pass *p = &k->pass;
    if (!p->is_fresh) {
        nsec_t before = p->woke_at;
        p->woke_at = core_read_clock(k);
        bool has_slept = p->polled_at == 0 || p->woke_at - p->polled_at > POLL_MOST_NS;
        p->heard_at = has_slept ? p->woke_at : before;
    }
}

/* Does the SLO want to know when this pass ends? What comes meanwhile has waited since before then,
 * which matters once a queue stands, and does not behind a pass that is over at once. */
static bool
wants_end(struct core *k)
{
    const struct slo_watch *slo = &k->admission.slo;
    uint64_t asked = slo->asked[CLASS_SMALL] - k->pass.asked_before;
    k->pass.asked_before += asked;
    return asked >= SHORT_PASS || k->queue.sched.length > 0 || !slo->is_neutral;
}

/* After the callbacks of a pass: one that had none begins here. */
static void
begin_timing(struct core *k)
{
    k->pass.is_timed =
        (unlikely(slo_is_on(&k->shared->slo)) && wants_end(k)) ||
        atomic_load_explicit(&k->shared->times_passes, memory_order_relaxed);
    if (k->pass.is_timed) {
        core_wake(k);
    }
}

void
core_end_pass(struct core *k)
{
    nsec_t end = k->pass.is_timed ? core_read_clock(k) : 0;
    if (k->pass.is_timed) {
        ctr_add(&k->ctr.busy_ns, end - k->pass.woke_at);
    }
    k->pass.polled_at = end;
}

void
core_gave_way(struct core *k)
{
    k->pass.woke_at = k->now; /* also of a pass whose end was not wanted */
    k->pass.polled_at = core_read_clock(k);
}

/* ---- a pass ---------------------------------------------------------------------------- */

bool
core_begin_pass(struct core *k)
{
    k->pass.is_fresh = false;
    if (k->queue.sched.length > 0 || k->coalesce.first != NULL || admission_is_due(k)) {
        return true;
    }
    admission_rest(k);
    return false;
}

void
core_serve(struct core *k)
{
    bool is_idle = !k->pass.is_fresh;
    begin_timing(k);
    admission_serve(k);
    queue_serve(k);
    coalesce_serve(k, is_idle);
}
