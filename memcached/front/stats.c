/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/stats.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "front/front.h"
#include "net/loop.h"
#include "net/watchers.h"
#include "serve/maint.h"
#include "serve/prefix.h"
#include "serve/watch.h"

struct snapshot {
    const struct settings *settings;
    const struct rules *rules;
    uint32_t now;
    struct rusage usage;
    struct stats_counts n; /* since the last reset */
    struct store_totals store;
    struct limit_counts limits;
    uint64_t qps_limit, shed;
    double level_pct, headroom_pct;
    uint64_t blocks, free_blocks, replies, reply_oom, read_oom;
    unsigned open_conns, log_watchers;
    unsigned listeners; /* and UDP sockets */
    uint32_t tls_age;
    bool is_accepting;
    bool has_tls, moves_pages, shows_pool, has_crawler,
        has_maintainer; /* have lines of their own */
};

void
stats_fini(struct stats *st)
{
    for (unsigned i = 0; front_at(i) != NULL; i++) {
        if (front_at(i)->stop != NULL) {
            front_at(i)->stop(st);
        }
    }
    PTHREAD_OK(pthread_mutex_destroy(&st->lock));
}

bool
stats_start(struct stats *st)
{
    bool is_good = true;
    for (unsigned i = 0; front_at(i) != NULL; i++) {
        is_good &= front_at(i)->start == NULL || front_at(i)->start(st);
    }
    return is_good;
}

void
stats_second(struct stats *st)
{
    for (unsigned i = 0; front_at(i) != NULL; i++) {
        if (front_at(i)->second != NULL) {
            front_at(i)->second(st);
        }
    }
}

/* ---- sums ----------------------------------------------------------------------------- */

static void
add_slab(struct stats_sum *sum, const struct serve_slab_ctr *slab)
{
#define COUNTER(field)
#define SLAB_COUNTER(field) sum->field += ctr_get(&slab->field);
#define SLAB_COUNTERS(field, count)                                                      \
    for (unsigned i = 0; i < (count); i++) {                                             \
        sum->field += ctr_get(&slab->field[i]);                                          \
    }
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
}

void
stats_subtract(uint64_t *counts, const uint64_t *baseline, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *counts; i++) {
        counts[i] -= baseline[i];
    }
}

struct stats_sum
stats_sum_class(const struct stats *st, unsigned class_id)
{
    struct stats_sum sum = {0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        for (unsigned o = 0; o < STORE_OWNERS; o++) {
            add_slab(&sum, &st->workers[i].ctr.slab[STORE_SLOT(class_id, o)]);
        }
    }
    return sum;
}

static struct stats_parts
sum_parts(const struct stats *st, unsigned class_id)
{
    struct stats_parts sum = {.sets = 0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct serve_slab_ctr *slab = st->workers[i].ctr.slab;
        sum.sets += ctr_get(&slab[class_id].cmd_set[false]);
        for (unsigned o = 0; o < STORE_OWNERS; o++) {
            for (unsigned list = 0; list < STORE_LISTS; list++) {
                sum.hits[list] += ctr_get(&slab[STORE_SLOT(class_id, o)].get_hits[list]);
            }
        }
    }
    return sum;
}

struct stats_parts
stats_parts(struct stats *st, unsigned class_id)
{
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    struct stats_parts sum = sum_parts(st, class_id);
    stats_subtract((uint64_t *)&sum, (const uint64_t *)&st->parts_baseline[class_id],
                   sizeof sum);
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    return sum;
}

static struct stats_sum
sum_all(const struct stats *st)
{
    struct stats_sum sum = {0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct serve_ctr *ctr = &st->workers[i].ctr;
#define COUNTER(field) sum.field += ctr_get(&ctr->field);
#define SLAB_COUNTER(field)
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
        for (unsigned slot = 0; slot < STORE_SLOTS; slot++) {
            add_slab(&sum, &ctr->slab[slot]);
        }
    }
    return sum;
}

/* Of a counter of TLS, which the thread of the watchers has, too. */
#define TLS_SUM(field)                                                                   \
    (ctr_get(&st->watchers->tls.field) + front_sum(st, COUNTER_OF(tls.field)))

/* All of it since the start. */
static struct stats_counts
count(const struct stats *st)
{
    const struct listen *l = st->listen;
    struct steer_sum steered = {0};
    struct watch_totals log;
    watch_totals(st->shared->watch, &log);
    if (l->steer_mode == STEER_NAPI) {
        steered = listen_steered(l);
    }
    return (struct stats_counts){
        .sum = sum_all(st),
        .conns = ctr_get(&st->shared->total_conns),
        .rejected = ctr_get(&l->rejected),
        .disabled_times = ctr_get(&l->disabled_times),
        .disabled_us = ctr_get(&l->disabled_us),
        .tls_sessions = TLS_SUM(new_sessions),
        .tls_handshake_errors = TLS_SUM(handshake_errors),
        .tls_protocol_errors = TLS_SUM(protocol_errors),
        .steered_unexpected = steered.unexpected,
        .steered_fallback = steered.fallback,
        .log_dropped = log.dropped,
        .log_written = log.written,
        .log_skipped = log.skipped,
        .log_sent = log.sent,
    };
}

static void
sum_memory(const struct stats *st, struct snapshot *x)
{
    x->free_blocks = front_sum(st, COUNTER_OF(core.pool.spare_count));
    x->blocks = front_sum(st, COUNTER_OF(core.pool.used)) + x->free_blocks;
    x->replies = front_sum(st, COUNTER_OF(core.budget.replies));
    x->reply_oom = front_sum(st, COUNTER_OF(core.budget.reply_oom));
    x->read_oom = front_sum(st, COUNTER_OF(core.budget.read_oom));
}

static void
take_snapshot(struct stats *st, uint32_t now, struct snapshot *x)
{
    const struct net_shared *shared = st->shared;
    struct maint_conf maint = maint_conf(shared->serve->maint);
    struct watch_totals log;
    uint32_t tls_loaded = shared->tls != NULL ? tls_loaded_at(shared->tls) : 0;
    watch_totals(shared->watch, &log);
    *x = (struct snapshot){
        .settings = st->settings,
        .rules = rules_of(st->settings->profile),
        .now = now,
        .limits = limit_counts(st),
        .qps_limit = limiter_total(&st->shared->core.limiter).rate,
        .shed = slo_shed(st),
        .level_pct = slo_level_pct(st),
        .headroom_pct = headroom_pct(st),
        .open_conns = atomic_load_explicit(&shared->open_conns, memory_order_relaxed),
        .log_watchers = log.watchers,
        .listeners = st->listen->addresses + shared->udp.addresses * shared->udp.workers,
        .tls_age = now - (tls_loaded != 0 ? tls_loaded : CLOCK_REL_START),
        .is_accepting = listen_is_accepting(st->listen),
        .has_tls = shared->tls != NULL,
        .moves_pages = st->settings->store.can_reassign,
        .has_crawler = maint.has_crawler,
        .has_maintainer = maint.has_maintainer,
    };
    x->shows_pool =
        x->rules->always_shows_page_pool || store_automove(shared->store).level > 0;
    must(getrusage(RUSAGE_SELF, &x->usage) == 0);
    store_totals(shared->store, &x->store);
    sum_memory(st, x);
    /* What is read under the lock is not older than the baseline. */
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    x->n = count(st);
    stats_subtract((uint64_t *)&x->n, (const uint64_t *)&st->baseline, sizeof x->n);
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
}

/* Counters have one writer each, so a reset only notes where counting starts anew. */
void
stats_reset(struct stats *st)
{
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    st->baseline = count(st);
    for (unsigned c = 0; c < STORE_CLASSES; c++) {
        st->slab_baseline[c] = stats_sum_class(st, c);
        st->parts_baseline[c] = sum_parts(st, c);
    }
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    store_reset_stats(st->shared->store);
    prefixes_clear(st->shared->prefixes);
}

/* ---- groups --------------------------------------------------------------------------- */

void
stats_show_general(struct stats *st, uint32_t now, struct sink *sink)
{
    struct snapshot snapshot;
    take_snapshot(st, now, &snapshot);
    const struct snapshot *x = &snapshot;
    enum profile profile = st->settings->profile;
#define LINE_IF(condition, since, name, ...)                                             \
    if ((condition) && (since) <= profile) {                                             \
        sink_statf(sink, name, __VA_ARGS__);                                             \
    }
#define LINE(since, name, ...) LINE_IF(true, since, name, __VA_ARGS__)
#include "front/stats.def"
#undef LINE
#undef LINE_IF
}

bool
stats_refresh_certs(void *ctx, uint32_t now, char *err, size_t err_len)
{
    const struct stats *st = ctx;
    return tls_reload(st->shared->tls, now, err, err_len);
}
