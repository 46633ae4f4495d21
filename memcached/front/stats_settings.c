/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The values of "stats settings" that commands change while the server runs.
 */
#include <inttypes.h>

#include "base/log.h"
#include "serve/orders.h"
#include "serve/prefix.h"
#include "front/stats.h"

static const char *
yes_no(bool is_so)
{
    return is_so ? "yes" : "no";
}

static bool
show_process(const struct stats *st, const char *name, struct sink *sink)
{
    struct store_totals totals;
    store_totals(st->shared->store, &totals);
    if (strcmp(name, "maxbytes") == 0) {
        sink_statf(sink, name, "%" PRIu64, totals.limit_bytes);
    } else if (strcmp(name, "verbosity") == 0) {
        sink_statf(sink, name, "%u", log_level());
    } else if (strcmp(name, "oldest") == 0) {
        sink_statf(sink, name, "%u", totals.flush_time);
    } else if (strcmp(name, "detail_enabled") == 0) {
        sink_stat(sink, name, yes_no(prefixes_are_on(st->shared->prefixes)));
    } else if (strcmp(name, "track_sizes") == 0) {
        sink_stat(sink, name, yes_no(store_is_tracking_sizes(st->shared->store)));
    } else if (strcmp(name, "num_threads_per_udp") == 0) {
        sink_statf(sink, name, "%u", st->shared->udp.workers);
    } else {
        return false;
    }
    return true;
}

static bool
show_lru(const struct stats *st, const char *name, struct sink *sink)
{
    struct store_lru_conf lru = store_lru(st->shared->store);
    if (strcmp(name, "lru_segmented") == 0) {
        sink_stat(sink, name, yes_no(lru.is_segmented));
    } else if (strcmp(name, "hot_lru_pct") == 0) {
        sink_statf(sink, name, "%u", lru.hot_pct);
    } else if (strcmp(name, "warm_lru_pct") == 0) {
        sink_statf(sink, name, "%u", lru.warm_pct);
    } else if (strcmp(name, "hot_max_factor") == 0) {
        sink_statf(sink, name, "%.2f", lru.hot_factor);
    } else if (strcmp(name, "warm_max_factor") == 0) {
        sink_statf(sink, name, "%.2f", lru.warm_factor);
    } else if (strcmp(name, "temp_lru") == 0) {
        sink_stat(sink, name, yes_no(lru.temp_ttl >= 0));
    } else if (strcmp(name, "temporary_ttl") == 0) {
        sink_statf(sink, name, "%" PRId64,
                   lru.temp_ttl >= 0 ? lru.temp_ttl : st->settings->temp_ttl);
    } else {
        return false;
    }
    return true;
}

static bool
show_background(const struct stats *st, const char *name, struct sink *sink)
{
    struct store_automove automove = store_automove(st->shared->store);
    struct orders_conf orders = orders_conf(st->shared->serve->orders);
    if (strcmp(name, "slab_automove") == 0) {
        sink_statf(sink, name, "%u", automove.level);
    } else if (strcmp(name, "slab_automove_ratio") == 0) {
        sink_statf(sink, name, "%.2f", automove.ratio);
    } else if (strcmp(name, "slab_automove_window") == 0) {
        sink_statf(sink, name, "%u", automove.window);
    } else if (strcmp(name, "lru_crawler") == 0) {
        sink_stat(sink, name, yes_no(orders.has_crawler));
    } else if (strcmp(name, "lru_crawler_sleep") == 0) {
        sink_statf(sink, name, "%u", orders.crawler_sleep_us);
    } else if (strcmp(name, "lru_crawler_tocrawl") == 0) {
        sink_statf(sink, name, "%u", orders.crawler_tocrawl);
    } else {
        return false;
    }
    return true;
}

bool
stats_changing_setting(void *ctx, const char *name, struct sink *sink)
{
    const struct stats *st = ctx;
    return show_process(st, name, sink) || show_lru(st, name, sink) ||
           show_background(st, name, sink);
}
