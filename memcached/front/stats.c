/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/stats.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop.h"
#include "net/watchers.h"
#include "serve/orders.h"
#include "serve/prefix.h"
#include "serve/watch.h"
#include "front/class.h"
#include "front/keys.h"
#include "front/stats_qos.h"

/* Told in one piece of an answer. */
#define CONNS_PER_CALL 16
#define CLASSES_PER_CALL 4

struct snapshot {
    const struct settings *settings;
    uint32_t now;
    struct rusage usage;
    struct stats_sum sum;
    struct store_totals store;
    unsigned open_conns;
    unsigned listeners; /* and UDP sockets */
    uint64_t total_conns, rejected, disabled_times, disabled_us;
    struct steer_sum steered; /* by receive queues, else zeros */
    uint64_t blocks, free_blocks, replies, reply_oom, read_oom;
    bool is_accepting;
    struct watch_totals log;
    bool has_tls;
    struct stats_tls tls;
    uint32_t tls_age;
    struct store_class_stats lists; /* of all classes: moves between the lists */
    struct stats_qos_summary qos;
    const struct rules *rules;
    bool moves_pages, shows_pool, has_crawler,
        has_maintainer; /* have lines of their own */
};

void
stats_init(struct stats *st)
{
    PTHREAD_OK(pthread_mutex_init(&st->lock, NULL));
}

void
stats_fini(struct stats *st)
{
    free(st->windows);
    PTHREAD_OK(pthread_mutex_destroy(&st->lock));
}

/* ---- sums ----------------------------------------------------------------------------- */

static void
add_slab(struct stats_sum *sum, const struct serve_slab_ctr *slab)
{
#define COUNTER(field)
#define SLAB_COUNTER(field) sum->field += ctr_get(&slab->field);
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
}

static void
subtract(struct stats_sum *sum, const struct stats_sum *baseline)
{
#define COUNTER(field) sum->field -= baseline->field;
#define SLAB_COUNTER(field) sum->field -= baseline->field;
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
}

static struct stats_sum
sum_class(const struct stats *st, unsigned class_id)
{
    struct stats_sum sum = {0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        add_slab(&sum, &st->workers[i].ctr.slab[class_id]);
    }
    return sum;
}

/* The reads of a class by list, from all workers. */
static void
sum_list_hits(const struct stats *st, unsigned id, uint64_t hits[STORE_LISTS])
{
    uint64_t all = 0;
    uint64_t elsewhere = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct serve_slab_ctr *slab = &st->workers[i].ctr.slab[id];
        all += ctr_get(&slab->get_hits);
        for (unsigned list = 0; list < STORE_LISTS; list++) {
            hits[list] += ctr_get(&slab->list_hits[list]);
        }
    }
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        elsewhere += list != STORE_LIST_COLD ? hits[list] : 0;
    }
    hits[STORE_LIST_COLD] = all > elsewhere ? all - elsewhere : 0;
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
        for (unsigned c = 0; c < STORE_CLASSES; c++) {
            add_slab(&sum, &ctr->slab[c]);
        }
    }
    return sum;
}

static void
add_tls(struct stats_tls *sum, const struct tls_thread *thread)
{
    sum->new_sessions += ctr_get(&thread->new_sessions);
    sum->handshake_errors += ctr_get(&thread->handshake_errors);
    sum->protocol_errors += ctr_get(&thread->protocol_errors);
}

static struct stats_tls
sum_tls(const struct stats *st)
{
    struct stats_tls sum = {0};
    add_tls(&sum, &st->watchers->tls);
    for (unsigned i = 0; i < st->worker_count; i++) {
        add_tls(&sum, &st->workers[i].tls);
    }
    return sum;
}

/* Under the lock of the baselines. */
static void
take_steered(const struct stats *st, struct snapshot *x)
{
    if (st->listen->steer_mode == STEER_NAPI) {
        struct steer_sum sum = listen_steered(st->listen);
        x->steered.unexpected = sum.unexpected - st->steered_baseline.unexpected;
        x->steered.fallback = sum.fallback - st->steered_baseline.fallback;
    }
}

/* Under the lock of the baselines. */
static void
take_tls(const struct stats *st, struct snapshot *x)
{
    x->has_tls = st->shared->tls != NULL;
    if (!x->has_tls) {
        return;
    }
    uint32_t loaded_at = tls_loaded_at(st->shared->tls);
    x->tls = sum_tls(st);
    x->tls.new_sessions -= st->tls_baseline.new_sessions;
    x->tls.handshake_errors -= st->tls_baseline.handshake_errors;
    x->tls.protocol_errors -= st->tls_baseline.protocol_errors;
    x->tls_age = x->now - (loaded_at != 0 ? loaded_at : CLOCK_REL_START);
}

/* Which parts of the server are there to tell of. */
static void
find_features(const struct stats *st, struct snapshot *x)
{
    x->rules = rules_of(st->settings->profile);
    struct orders_conf orders = orders_conf(st->shared->serve->orders);
    x->moves_pages = st->settings->can_reassign;
    x->shows_pool =
        x->rules->always_shows_page_pool || store_automove(st->shared->store).level > 0;
    x->has_crawler = orders.has_crawler;
    x->has_maintainer = orders.has_maintainer;
}

static void
sum_lists(const struct stats *st, struct snapshot *x)
{
    struct store *store = st->shared->store;
    for (unsigned id = 1; id <= store_class_count(store); id++) {
        struct store_class_stats c;
        store_class_stats(store, id, x->now, &c);
        x->lists.moves_to_cold += c.moves_to_cold;
        x->lists.moves_to_warm += c.moves_to_warm;
        x->lists.moves_within_lru += c.moves_within_lru;
        x->lists.direct_reclaims += c.direct_reclaims;
    }
}

static void
take_snapshot(struct stats *st, uint32_t now, struct snapshot *x)
{
    *x = (struct snapshot){.settings = st->settings, .now = now};
    must(getrusage(RUSAGE_SELF, &x->usage) == 0);
    find_features(st, x);
    if (x->has_maintainer) {
        sum_lists(st, x);
    }
    x->qos = stats_sum_qos(st);
    store_totals(st->shared->store, &x->store);
    x->open_conns = atomic_load_explicit(&st->shared->open_conns, memory_order_relaxed);
    x->listeners =
        st->listen->addresses + st->shared->udp.addresses * st->shared->udp.workers;
    x->is_accepting = listen_is_accepting(st->listen);
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct worker *w = &st->workers[i];
        uint64_t spare = ctr_get(&w->core.pool.spare_count);
        x->blocks += ctr_get(&w->core.pool.used) + spare;
        x->free_blocks += spare;
        x->replies += ctr_get(&w->core.budget.replies);
        x->reply_oom += ctr_get(&w->core.budget.reply_oom);
        x->read_oom += ctr_get(&w->core.budget.read_oom);
    }
    /* What is read under the lock is not older than the baseline. */
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    x->sum = sum_all(st);
    watch_totals(st->shared->watch, &x->log);
    subtract(&x->sum, &st->baseline);
    x->total_conns = ctr_get(&st->shared->total_conns) - st->conns_baseline;
    x->rejected = ctr_get(&st->listen->rejected) - st->rejected_baseline;
    x->disabled_times = ctr_get(&st->listen->disabled_times) - st->disabled_baseline;
    x->disabled_us = ctr_get(&st->listen->disabled_us) - st->disabled_us_baseline;
    x->log.dropped -= st->log_baseline.dropped;
    x->log.written -= st->log_baseline.written;
    x->log.skipped -= st->log_baseline.skipped;
    x->log.sent -= st->log_baseline.sent;
    take_steered(st, x);
    take_tls(st, x);
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
}

/* Counters have one writer each, so a reset only notes where counting starts anew. */
static void
reset(struct stats *st)
{
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    st->baseline = sum_all(st);
    for (unsigned c = 0; c < STORE_CLASSES; c++) {
        st->slab_baseline[c] = sum_class(st, c);
        memset(st->hits_baseline[c], 0, sizeof st->hits_baseline[c]);
        sum_list_hits(st, c, st->hits_baseline[c]);
    }
    watch_totals(st->shared->watch, &st->log_baseline);
    st->tls_baseline = sum_tls(st);
    st->conns_baseline = ctr_get(&st->shared->total_conns);
    st->rejected_baseline = ctr_get(&st->listen->rejected);
    st->disabled_baseline = ctr_get(&st->listen->disabled_times);
    st->disabled_us_baseline = ctr_get(&st->listen->disabled_us);
    st->steered_baseline = listen_steered(st->listen);
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    store_reset_stats(st->shared->store);
    prefixes_clear(st->shared->prefixes);
}

/* ---- groups --------------------------------------------------------------------------- */

static void
show_general(struct stats *st, uint32_t now, struct sink *sink)
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

static void
show_item_lists(struct stats *st, const char *prefix, const struct store_class_stats *c,
                struct sink *sink)
{
    static const char *const names[STORE_LISTS] = {
        [STORE_LIST_HOT] = "number_hot",
        [STORE_LIST_WARM] = "number_warm",
        [STORE_LIST_COLD] = "number_cold",
        [STORE_LIST_TEMP] = "number_temp",
    };
    bool has_temp = store_lru(st->shared->store).temp_ttl >= 0;
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        if (list != STORE_LIST_TEMP || has_temp) {
            sink_stat_of(sink, prefix, names[list], "%" PRIu64, c->list_number[list]);
        }
    }
    sink_stat_of(sink, prefix, "age_hot", "%u", c->age_hot);
    sink_stat_of(sink, prefix, "age_warm", "%u", c->age_warm);
}

static void
show_item_moves(struct stats *st, unsigned id, const char *prefix,
                const struct store_class_stats *c, struct sink *sink)
{
    static const char *const names[STORE_LISTS] = {
        [STORE_LIST_HOT] = "hits_to_hot",
        [STORE_LIST_WARM] = "hits_to_warm",
        [STORE_LIST_COLD] = "hits_to_cold",
        [STORE_LIST_TEMP] = "hits_to_temp",
    };
    uint64_t hits[STORE_LISTS] = {0};
    sink_stat_of(sink, prefix, "moves_to_cold", "%" PRIu64, c->moves_to_cold);
    sink_stat_of(sink, prefix, "moves_to_warm", "%" PRIu64, c->moves_to_warm);
    sink_stat_of(sink, prefix, "moves_within_lru", "%" PRIu64, c->moves_within_lru);
    sink_stat_of(sink, prefix, "direct_reclaims", "%" PRIu64, c->direct_reclaims);
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    sum_list_hits(st, id, hits);
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        uint64_t old = st->hits_baseline[id][list];
        /* COLD is a difference of counters that move, so it may seem to go back. */
        hits[list] = hits[list] > old ? hits[list] - old : 0;
    }
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        sink_stat_of(sink, prefix, names[list], "%" PRIu64, hits[list]);
    }
}

static void
show_class_items(struct stats *st, const struct snapshot *x, unsigned id,
                 struct sink *sink)
{
    struct store_class_stats c;
    char prefix[24];
    store_class_stats(st->shared->store, id, x->now, &c);
    if (c.number == 0) {
        return;
    }
    snprintf(prefix, sizeof prefix, "items:%u:", id);
#define CLASS_LINE(field) sink_stat_of(sink, prefix, #field, "%" PRIu64, c.field)
    CLASS_LINE(number);
    if (x->has_maintainer) {
        show_item_lists(st, prefix, &c, sink);
    }
    sink_stat_of(sink, prefix, "age", "%u", c.age);
    if (x->rules->items_show_requested) {
        sink_stat_of(sink, prefix, "mem_requested", "%" PRIu64, c.item_bytes);
    }
    CLASS_LINE(evicted);
    CLASS_LINE(evicted_nonzero);
    CLASS_LINE(evicted_time);
    CLASS_LINE(outofmemory);
    CLASS_LINE(tailrepairs);
    CLASS_LINE(reclaimed);
    CLASS_LINE(expired_unfetched);
    CLASS_LINE(evicted_unfetched);
    if (x->has_maintainer) {
        CLASS_LINE(evicted_active);
    }
    CLASS_LINE(crawler_reclaimed);
    CLASS_LINE(crawler_items_checked);
    CLASS_LINE(lrutail_reflocked);
#undef CLASS_LINE
    if (x->has_maintainer) {
        show_item_moves(st, id, prefix, &c, sink);
    }
}

/* This call tells of the classes from *first to the one before the result. */
static unsigned
classes_of_call(const struct stats *st, struct serve_place *place, unsigned *first)
{
    unsigned end = store_class_count(st->shared->store) + 1;
    *first = place->at + 1;
    place->at += CLASSES_PER_CALL;
    return place->at + 1 < end ? place->at + 1 : end;
}

static enum reply
show_items(struct stats *st, uint32_t now, struct serve_place *place, struct sink *sink)
{
    struct snapshot x = {.now = now};
    unsigned first;
    unsigned end = classes_of_call(st, place, &first);
    find_features(st, &x);
    for (unsigned id = first; id < end; id++) {
        show_class_items(st, &x, id, sink);
    }
    return end <= store_class_count(st->shared->store) ? REPLY_NONE : REPLY_END;
}

static void
show_slab_counters(struct stats *st, unsigned id, const char *prefix, struct sink *sink)
{
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    struct stats_sum sum = sum_class(st, id);
    subtract(&sum, &st->slab_baseline[id]);
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
#define COUNTER(field)
#define SLAB_COUNTER(field) sink_stat_of(sink, prefix, #field, "%" PRIu64, sum.field);
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
}

static void
show_class_slabs(struct stats *st, unsigned id, uint32_t now, struct sink *sink)
{
    bool has_requested = !rules_of(st->settings->profile)->items_show_requested;
    struct store_class_stats c;
    char prefix[24];
    store_class_stats(st->shared->store, id, now, &c);
    if (c.total_pages == 0) {
        return;
    }
    snprintf(prefix, sizeof prefix, "%u:", id);
    sink_stat_of(sink, prefix, "chunk_size", "%u", c.chunk_size);
    sink_stat_of(sink, prefix, "chunks_per_page", "%u", c.chunks_per_page);
    sink_stat_of(sink, prefix, "total_pages", "%u", c.total_pages);
    sink_stat_of(sink, prefix, "total_chunks", "%" PRIu64, c.total_chunks);
    sink_stat_of(sink, prefix, "used_chunks", "%" PRIu64, c.used_chunks);
    sink_stat_of(sink, prefix, "free_chunks", "%" PRIu64, c.free_chunks);
    sink_stat_of(sink, prefix, "free_chunks_end", "0");
    if (has_requested) {
        sink_stat_of(sink, prefix, "mem_requested", "%" PRIu64, c.requested_bytes);
    }
    show_slab_counters(st, id, prefix, sink);
}

static enum reply
show_slabs(struct stats *st, uint32_t now, struct serve_place *place, struct sink *sink)
{
    struct store *store = st->shared->store;
    unsigned first;
    unsigned end = classes_of_call(st, place, &first);
    for (unsigned id = first; id < end; id++) {
        show_class_slabs(st, id, now, sink);
    }
    if (end <= store_class_count(store)) {
        return REPLY_NONE;
    }
    struct store_totals totals;
    store_totals(store, &totals);
    sink_statf(sink, "active_slabs", "%u", totals.active_classes);
    sink_statf(sink, "total_malloced", "%" PRIu64, totals.malloced_bytes);
    return REPLY_END;
}

struct conns_walk {
    struct sink *sink;
    uint32_t now;
    bool shows_listener; /* the profile tells which listener a client came from */
};

static void
show_conn(void *ctx, const struct registry_entry *entry)
{
    const struct conns_walk *walk = ctx;
    char prefix[24];
    uint32_t last = atomic_load_explicit(&entry->last_cmd, memory_order_relaxed);
    snprintf(prefix, sizeof prefix, "%d:", entry->fd);
    char name[48];
    if (walk->shows_listener && entry->is_udp) {
        sink_stat_of(walk->sink, prefix, "UDP", "UDP");
    }
    snprintf(name, sizeof name, "%saddr", prefix);
    sink_stat(walk->sink, name, entry->addr);
    if (walk->shows_listener && entry->listen_addr != NULL) {
        snprintf(name, sizeof name, "%slisten_addr", prefix);
        sink_stat(walk->sink, name, entry->listen_addr);
    }
    sink_stat_of(
        walk->sink, prefix, "state", "%s",
        registry_state_name(atomic_load_explicit(&entry->state, memory_order_relaxed)));
    sink_stat_of(walk->sink, prefix, "secs_since_last_cmd", "%u",
                 walk->now > last ? walk->now - last : 0);
}

static enum reply
show_group(struct stats *st, const struct slice *words, unsigned count, uint32_t now,
           struct serve_place *place, struct sink *sink)
{
    struct slice group = words[0];
    if (req_word_is(group, "settings")) {
        settings_stats(st->settings, sink, stats_changing_setting, st);
    } else if (req_word_is(group, "items")) {
        return show_items(st, now, place, sink);
    } else if (req_word_is(group, "slabs")) {
        return show_slabs(st, now, place, sink);
    } else if (req_word_is(group, "conns")) {
        struct conns_walk walk = {sink, now,
                                  rules_of(st->settings->profile)->conns_show_listener};
        if (registry_walk(&st->shared->registry, &place->at, CONNS_PER_CALL, show_conn,
                          &walk)) {
            return REPLY_NONE;
        }
    } else if (req_word_is(group, "sizes")) {
        return stats_sizes(st, place, sink);
    } else if (req_word_is(group, "sizes_enable")) {
        return stats_switch_sizes(st, true, sink);
    } else if (req_word_is(group, "sizes_disable")) {
        return stats_switch_sizes(st, false, sink);
    } else if (req_word_is(group, "detail")) {
        return stats_detail(st, words + 1, count - 1, place, sink);
    } else if (req_word_is(group, "cachedump")) {
        return stats_cachedump(st, words + 1, count - 1, now, place, sink);
    } else if (req_word_is(group, "qos")) {
        return stats_show_qos(st, place, sink);
    } else if (req_word_is(group, "classes")) {
        stats_show_classes(st, sink);
    } else if (req_word_is(group, "latency")) {
        return stats_show_latency(st, place, sink);
    } else if (req_word_is(group, "pin")) {
        return stats_show_pin(st, place, sink);
    } else if (req_word_is(group, "resctrl")) {
        stats_show_resctrl(st, sink);
    } else if (req_word_is(group, "extstore")) { /* which would be in the general ones */
        return st->settings->profile >= PROFILE_16 ? REPLY_END : REPLY_ERROR;
    } else if (req_word_is(group, "reset")) {
        reset(st);
        return REPLY_RESET;
    } else {
        return REPLY_ERROR;
    }
    return REPLY_END;
}

enum reply
stats_command(void *ctx, const struct slice *words, unsigned count, uint32_t now,
              struct serve_place *place, struct sink *sink)
{
    struct stats *st = ctx;
    if (count > 0) {
        return show_group(st, words, count, now, place, sink);
    }
    show_general(st, now, sink);
    return REPLY_END;
}

bool
stats_refresh_certs(void *ctx, uint32_t now, char *err, size_t err_len)
{
    const struct stats *st = ctx;
    return tls_reload(st->shared->tls, now, err, err_len);
}
