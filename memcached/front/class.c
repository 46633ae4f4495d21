/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/class.h"

#include <inttypes.h>

#include "base/hist.h"

#define NAME_MAX_BYTES 64

struct class_sum {
    uint64_t queued, turns, gone, overdue, served, served_udp, bytes;
};

static struct class_sum
sum_class(const struct stats *st, enum req_class class)
{
    struct class_sum sum = {0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct core_class *k = &st->workers[i].core.classes[class];
        sum.queued += ctr_get(&k->queued);
        sum.turns += ctr_get(&k->turns);
        sum.gone += ctr_get(&k->turns) + ctr_get(&k->left);
        sum.overdue += ctr_get(&k->overdue);
        sum.served += ctr_get(&k->served);
        sum.served_udp += ctr_get(&k->served_udp);
        sum.bytes += ctr_get(&k->bytes);
    }
    return sum;
}

static void
put(struct sink *sink, enum req_class class, const char *name, uint64_t value)
{
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "class_%s_%s", class_name(class), name);
    sink_statf(sink, full, "%" PRIu64, value);
}

static void
put_us(struct sink *sink, const char *what, const char *name, uint64_t ns)
{
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s_%s_us", what, name);
    sink_statf(sink, full, "%.1f", (double)ns / (double)NSEC_PER_USEC);
}

static void
put_quantiles(struct sink *sink, const char *what, const struct hist *h)
{
    put_us(sink, what, "p50", hist_quantile(h, 0.50));
    put_us(sink, what, "p95", hist_quantile(h, 0.95));
    put_us(sink, what, "p99", hist_quantile(h, 0.99));
    put_us(sink, what, "max", hist_max(h));
}

static void
put_hist(struct sink *sink, enum req_class class, const char *what, const struct hist *h)
{
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "class_%s_%s", class_name(class), what);
    put_quantiles(sink, full, h);
}

static void
show_class(struct stats *st, struct sink *sink, enum req_class class, struct hist *wait,
           struct hist *service)
{
    struct class_sum sum = sum_class(st, class);
    put(sink, class, "served", sum.served);
    put(sink, class, "served_udp", sum.served_udp);
    put(sink, class, "bytes", sum.bytes);
    hist_reset(wait);
    hist_reset(service);
    for (unsigned i = 0; i < st->worker_count; i++) {
        hist_merge(wait, st->workers[i].core.classes[class].wait);
        hist_merge(service, st->workers[i].core.classes[class].service);
    }
    put(sink, class, "queued", sum.queued);
    put(sink, class, "turns", sum.turns);
    put(sink, class, "waiting", sum.queued > sum.gone ? sum.queued - sum.gone : 0);
    put(sink, class, "overdue", sum.overdue);
    put_hist(sink, class, "wait", wait);
    put_hist(sink, class, "service", service);
}

void
stats_show_classes(struct stats *st, struct sink *sink)
{
    struct hist *wait = hist_create(CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS);
    struct hist *service = hist_create(CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS);
    if (wait == NULL || service == NULL) {
        sink->has_failed = true;
    } else {
        for (unsigned c = 0; c < CLASS_COUNT; c++) {
            show_class(st, sink, (enum req_class)c, wait, service);
        }
    }
    hist_destroy(&wait);
    hist_destroy(&service);
}

/* Of one class, or of all; of requests that were served, or refused. */
static void
show_stages(struct stats *st, struct sink *sink, const char *name, unsigned first,
            unsigned last, bool is_refused, struct hist *sum)
{
    char full[NAME_MAX_BYTES];
    for (unsigned s = 0; s < LATENCY_STAGES; s++) {
        const char *stage = latency_stage_name((enum latency_stage)s);
        hist_reset(sum);
        for (unsigned i = 0; i < st->worker_count; i++) {
            const struct latency *l = &st->workers[i].core.latency;
            for (unsigned c = first; c <= last; c++) {
                hist_merge(sum, is_refused ? l->refused[c][s] : l->stages[c][s]);
            }
        }
        snprintf(full, sizeof full, "latency_%s_%s_count", name, stage);
        sink_statf(sink, full, "%" PRIu64, hist_count(sum));
        snprintf(full, sizeof full, "latency_%s_%s", name, stage);
        put_quantiles(sink, full, sum);
    }
}

/* All that was served, each class of it, all that was refused, and each class of that, in this
 * order; one a call. */
enum reply
stats_show_latency(struct stats *st, struct serve_place *place, struct sink *sink)
{
    char name[NAME_MAX_BYTES / 2];
    unsigned part = place->at++;
    bool is_refused = part > CLASS_COUNT;
    /* Control commands are never refused. */
    unsigned first = is_refused ? part - CLASS_COUNT - 1 : part > 0 ? part - 1 : 0;
    bool is_all = part == 0 || part == CLASS_COUNT + 1;
    unsigned last = is_all ? CLASS_COUNT - 1 : first;
    const char *class = is_all ? "all" : class_name((enum req_class)first);
    struct hist *sum = hist_create(LATENCY_SUB_BITS, LATENCY_MAX_NS);
    if (sum == NULL) {
        sink->has_failed = true;
        return REPLY_END;
    }
    if (is_refused && is_all) {
        class = "refused";
    } else if (is_refused) {
        snprintf(name, sizeof name, "refused_%s", class);
        class = name;
    }
    show_stages(st, sink, class, first, last, is_refused, sum);
    hist_destroy(&sum);
    return part == 2 * CLASS_COUNT ? REPLY_END : REPLY_NONE;
}

void
stats_put_classes(struct stats *st, struct sink *sink)
{
    const struct net_shared *shared = st->shared;
    bool is_on = shared->core.classes.is_on;
    sink_stat(sink, "classes", is_on ? "on" : "off");
    sink_statf(sink, "bulk_keys", "%" PRIi64, st->settings->bulk_keys);
    sink_statf(sink, "bulk_bytes", "%" PRIi64, st->settings->bulk_bytes);
    sink_statf(sink, "class_max_wait_us", "%" PRIu64,
               shared->core.class_max_wait / NSEC_PER_USEC);
    sink_statf(sink, "class_rules", "%u",
               shared->core.class_rules.peer_count + shared->core.class_rules.key_count);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        enum req_class class = (enum req_class)c;
        struct class_sum sum = sum_class(st, class);
        if (!class_is_inline(class)) {
            char full[NAME_MAX_BYTES];
            snprintf(full, sizeof full, "class_%s_share_pct", class_name(class));
            sink_statf(sink, full, "%.1f",
                       (double)shared->core.class_shares.per_mille[c] / 10);
        }
        put(sink, class, "served", sum.served);
        put(sink, class, "queued", sum.queued);
    }
}
