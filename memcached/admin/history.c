/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/page.h"

#include <math.h>
#include <unistd.h>

#include "admin/recorder.h"
#include "base/json.h"
#include "config.h"
#include "front/brief.h"
#include "front/front.h"
#include "place/pinner.h"

#define HISTORY_SCHEMA "memcached-qos/history"
#define HISTORY_VERSION 1
#define PCT 100.0
#define UNKNOWN ((double)NAN) /* null */

/* What a plot shows of it. */
static double
rounded(double value)
{
    return round(value * 10) / 10;
}

static double
known(bool is_known, double value)
{
    return is_known ? value : UNKNOWN;
}

/* ---- the samples ---------------------------------------------------------------------- */

/* A row of numbers, one of each sample; of a class where it is a class's. */
struct history_row {
    const char *name;
    double (*value)(const struct timeline_sample *s, unsigned class);
};

static double
per_second(uint64_t n, const struct timeline_sample *s)
{
    return (double)n * (double)NSEC_PER_SEC / (double)s->length;
}

static uint64_t
gets_of(const struct timeline_sample *s)
{
    return s->counts.hits + s->counts.misses;
}

static double
hit_pct(const struct timeline_sample *s)
{
    return gets_of(s) > 0 ? (double)s->counts.hits * PCT / (double)gets_of(s) : UNKNOWN;
}

#define SERIES(name, expression)                                                         \
    static double of_##name(const struct timeline_sample *s, unsigned c)                 \
    {                                                                                    \
        (void)c;                                                                         \
        return (expression);                                                             \
    }
SERIES(seconds, (double)s->length / (double)NSEC_PER_SEC)
SERIES(limit, known(s->gauges.limit > 0, (double)s->gauges.limit))
SERIES(tokens, known(s->gauges.limit > 0, s->gauges.tokens))
SERIES(level, s->gauges.level_pct)
SERIES(headroom, known(s->gauges.headroom_pct >= 0, s->gauges.headroom_pct))
SERIES(busy, s->busy.mean *PCT)
SERIES(busy_most, s->busy.most *PCT)
SERIES(wait, s->wait.mean *PCT)
SERIES(wait_most, s->wait.most *PCT)
SERIES(gets, per_second(gets_of(s), s))
SERIES(hits, hit_pct(s))
SERIES(bytes, (double)s->gauges.item_bytes)
SERIES(connections, s->gauges.connections)
SERIES(requests, per_second(s->counts.requests[c], s))
SERIES(refused, per_second(s->counts.refused[c], s))
SERIES(p50, known(s->has_delay[c], front_us(s->p50_ns[c])))
SERIES(p99, known(s->has_delay[c], front_us(s->p99_ns[c])))
#undef SERIES

static const struct history_row of_all[] = {
    {"seconds", of_seconds},
    {"limit_per_second", of_limit},
    {"tokens", of_tokens},
    {"slo_level_pct", of_level},
    {"headroom_pct", of_headroom},
    {"busy_mean_pct", of_busy},
    {"busy_most_pct", of_busy_most},
    {"run_queue_mean_pct", of_wait},
    {"run_queue_most_pct", of_wait_most},
    {"gets_per_second", of_gets},
    {"hit_pct", of_hits},
    {"item_bytes", of_bytes},
    {"connections", of_connections},
};

static const struct history_row of_class[] = {
    {"requests_per_second", of_requests},
    {"refused_per_second", of_refused},
    {"delay_p50_us", of_p50},
    {"delay_p99_us", of_p99},
};

/* The oldest first. */
static void
put_series(struct json *j, const struct timeline *t, unsigned count,
           const struct history_row *series, unsigned class)
{
    json_open(j, series->name, '[');
    for (unsigned back = count; back-- > 0;) {
        json_put(j, JSON(NULL, rounded(series->value(timeline_sample(t, back), class))));
    }
    json_close(j, ']');
}

/* How old they are, and what they have. */
static void
put_samples(struct json *j, const struct timeline *t, nsec_t now)
{
    unsigned count = timeline_count(t, now);
    json_open(j, "samples", '{');
    json_open(j, "ago_seconds", '[');
    for (unsigned back = count; back-- > 0;) {
        nsec_t ago = now - timeline_sample(t, back)->at;
        json_put(j, JSON(NULL, rounded((double)ago / (double)NSEC_PER_SEC)));
    }
    json_close(j, ']');
    for (size_t i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        put_series(j, t, count, &of_all[i], 0);
    }
    json_open(j, "classes", '{');
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        json_open(j, class_name((enum req_class)c), '{');
        for (size_t i = 0; i < sizeof of_class / sizeof of_class[0]; i++) {
            put_series(j, t, count, &of_class[i], c);
        }
        json_close(j, '}');
    }
    json_close(j, '}');
    json_close(j, '}');
}

/* ---- what is now ---------------------------------------------------------------------- */

static void
put_server(struct json *j, const struct stats *st, nsec_t now)
{
    char lines[BRIEF_LINES][BRIEF_MAX];
    brief_settings(st, lines);
    json_open(j, "server", '{');
    json_put(j, JSON("version", PACKAGE_VERSION),
             JSON("memcached", settings_version(st->settings)),
             JSON("pid", (uint64_t)getpid()),
             JSON("uptime_seconds", clock_rel(now) - CLOCK_REL_START + 2));
    json_open(j, "settings", '[');
    for (unsigned i = 0; i < BRIEF_LINES; i++) {
        json_put(j, JSON(NULL, (const char *)lines[i]));
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void
put_limit(struct json *j, const struct limit *l, struct slo_target target, nsec_t now)
{
    char slo[SLO_TEXT_MAX];
    uint64_t rate = front_relaxed(&l->rate);
    bool is_set = rate > 0;
    json_put(j, JSON("slo", slo_describe(target, slo)),
             JSON("limit_per_second", known(is_set, (double)rate)),
             JSON("burst", known(is_set, (double)front_relaxed(&l->burst))),
             JSON("tokens", known(is_set, rounded(limit_tokens(l, now)))));
}

static void
put_requests(struct json *j, const struct net_shared *shared,
             const struct timeline_counts *counts, nsec_t now)
{
    json_put(j, JSON("hits", counts->hits), JSON("misses", counts->misses));
    put_limit(j, &shared->core.limiter.total, slo_get(&shared->core.slo, SLO_TOTAL), now);
    json_open(j, "classes", '[');
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        json_open(j, NULL, '{');
        json_put(j, JSON("name", class_name((enum req_class)c)),
                 JSON("requests", counts->requests[c]),
                 JSON("refused", counts->refused[c]));
        put_limit(j, &shared->core.limiter.by_class[c], slo_get(&shared->core.slo, c),
                  now);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* Of the last step. */
static double
share_of(nsec_t part, const struct timeline_sample *last)
{
    double share = last != NULL ? (double)part / (double)last->length : UNKNOWN;
    return share > 1 ? PCT : rounded(share * PCT);
}

static void
put_worker(struct json *j, const struct stats *st, unsigned i,
           const struct timeline_thread *thread, const struct timeline_sample *last)
{
    struct pinner_seat seat;
    pinner_seat(st->shared->pinner, i, &seat);
    const struct cpu_place *p = &seat.place;
    unsigned connections =
        atomic_load_explicit(&st->shared->loads[i], memory_order_relaxed);
    json_object_of(j, NULL, JSON("cpu", known(p->cpu >= 0, p->cpu)),
                   JSON("package", known(p->package >= 0, p->package)),
                   JSON("core", known(p->core >= 0, p->core)),
                   JSON("numa", known(p->numa >= 0, p->numa)),
                   JSON("errno", (uint64_t)seat.error), JSON("drift", seat.drifts),
                   JSON("connections", connections),
                   JSON("busy_pct", share_of(thread->run_ns, last)),
                   JSON("run_queue_pct", share_of(thread->wait_ns, last)));
}

static void
put_workers(struct json *j, const struct stats *st, const struct timeline *t, nsec_t now)
{
    const struct timeline_sample *last =
        timeline_count(t, now) > 0 ? timeline_sample(t, 0) : NULL;
    json_open(j, "workers", '[');
    for (unsigned i = 0; i < st->worker_count; i++) {
        put_worker(j, st, i, &t->last[i], last);
    }
    json_close(j, ']');
}

/* Slab classes that have memory; pages_then: at the oldest sample, NULL: there is none. */
static void
put_slabs(struct json *j, struct store *store, const uint32_t *pages_then, nsec_t now)
{
    json_open(j, "slabs", '[');
    for (unsigned id = 1; id <= store_class_count(store); id++) {
        struct store_class_stats c;
        store_class_stats(store, id, clock_rel(now), &c);
        uint32_t then = pages_then != NULL ? pages_then[id] : c.total_pages;
        if (c.total_pages > 0 || then > 0) {
            json_object_of(j, NULL, JSON("id", id), JSON("chunk_bytes", c.chunk_size),
                           JSON("pages", c.total_pages), JSON("pages_then", then),
                           JSON("chunks", c.total_chunks),
                           JSON("chunks_used", c.used_chunks), JSON("items", c.number),
                           JSON("evicted", c.count.evicted));
        }
    }
    json_close(j, ']');
}

static void
put_memory(struct json *j, const struct stats *st, const struct timeline *t, nsec_t now)
{
    struct store_totals totals;
    unsigned samples = timeline_count(t, now);
    store_totals(st->shared->store, &totals);
    json_open(j, "memory", '{');
    json_put(j, JSON("limit_bytes", totals.limit_bytes),
             JSON("item_bytes", totals.item_bytes), JSON("items", totals.curr_items),
             JSON("evictions", totals.count.evicted),
             JSON("pool_pages", totals.pool_pages), JSON("page_bytes", STORE_PAGE_BYTES));
    put_slabs(j, st->shared->store,
              samples > 0 ? timeline_sample(t, samples - 1)->gauges.pages : NULL, now);
    json_close(j, '}');
}

void
history_page(struct admin_view *view, struct http_exchange *x)
{
    struct json json, *j = &json;
    const struct recorder *s = view->recorder;
    const struct stats *st = s->stats;
    const struct net_shared *shared = st->shared;
    struct timeline_counts counts = {.hits = 0};
    nsec_t now = clock_now();
    recorder_count(st, &counts);
    json_init(j, x->out);
    json_open(j, NULL, '{');
    json_put(j, JSON("schema", HISTORY_SCHEMA), JSON("version", HISTORY_VERSION),
             JSON("time", (uint64_t)clock_wall()),
             JSON("step_seconds", TIMELINE_STEP / NSEC_PER_SEC),
             JSON("steps", TIMELINE_STEPS));
    put_server(j, st, now);
    json_object_of(
        j, "connections",
        JSON("current", atomic_load_explicit(&shared->open_conns, memory_order_relaxed)),
        JSON("most", (uint64_t)st->settings->listen.max_conns));
    put_requests(j, st->shared, &counts, now);
    put_workers(j, st, &s->timeline, now);
    put_memory(j, st, &s->timeline, now);
    put_samples(j, &s->timeline, now);
    json_close(j, '}');
}
