/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

#include <math.h>
#include <string.h>

#include "loadgen/measure/phases.h"
#include "loadgen/report/json.h"
#include "loadgen/report/report_agents.h"
#include "loadgen/report/report_many.h"
#include "loadgen/report/report_sizes.h"
#include "loadgen/report/report_stats.h"
#include "loadgen/report/schema.h"

static void
write_percentiles(struct json *j, const struct hist *h, const struct hist *waits,
                  uint64_t censored)
{
    json_open(j, "pct", '{');
    for (size_t i = 0; i < SCHEMA_POINTS; i++) {
        struct quantile q = result_quantile(h, waits, censored, schema_points[i].q);
        if (q.is_bound || hist_count(h) == 0) {
            json_nothing(j, schema_points[i].name);
        } else {
            json_u64(j, schema_points[i].name, q.ns);
        }
    }
    json_close(j, '}');
    /* For the nulls above: what is known of them. */
    json_open(j, "pct_above", '{');
    for (size_t i = 0; i < SCHEMA_POINTS; i++) {
        struct quantile q = result_quantile(h, waits, censored, schema_points[i].q);
        if (q.is_bound) {
            json_u64(j, schema_points[i].name, q.ns);
        }
    }
    json_close(j, '}');
}

/* null: lies among requests never answered, or beyond all. */
static void
write_bound(struct json *j, const char *key, struct quantile q, bool is_known)
{
    if (is_known && !q.is_bound) {
        json_u64(j, key, q.ns);
    } else {
        json_nothing(j, key);
    }
}

/* 95 % confidence intervals; "enough_s": a run so long would know the tail to a tenth. */
static void
write_ci(struct json *j, const struct result *r, enum tally_from from)
{
    const struct hist *h = r->all[from], *waits = r->total.waits;
    uint64_t censored = result_censored(&r->total);
    json_open(j, "ci", '{');
    for (unsigned i = 0; i < SCHEMA_POINTS && r->series != NULL; i++) {
        if (!schema_points[i].has_ci) {
            continue;
        }
        struct ci ci = series_ci(r->series, schema_points[i].q);
        json_open(j, schema_points[i].name, '{');
        write_bound(j, "low", result_quantile(h, waits, censored, ci.low), ci.is_known);
        write_bound(j, "high", result_quantile(h, waits, censored, ci.high),
                    ci.is_known && ci.high < 1);
        json_number(j, "effective", ci.effective);
        json_number(j, "enough_s", ci.enough * r->elapsed_s);
        json_close(j, '}');
    }
    json_close(j, '}');
}

void
report_buckets_json(const struct hist *h, struct json *j)
{
    uint32_t at = 0;
    uint64_t bucket[3];
    json_u64(j, "sub_bits", TALLY_SUB_BITS);
    json_open(j, "buckets", '['); /* [lowest, highest, count] */
    while (hist_next(h, &at, &bucket[0], &bucket[1], &bucket[2])) {
        json_open(j, NULL, '[');
        for (unsigned i = 0; i < 3; i++) {
            json_u64(j, NULL, bucket[i]);
        }
        json_close(j, ']');
    }
    json_close(j, ']');
}

/* With what is needed to add it to others without loss. `of`: the run whose requests these
 * all are, for their confidence; NULL: only some. */
static void
write_hist(struct json *j, const char *key, const struct hist *h,
           const struct hist *waits, uint64_t censored, const struct result *of,
           enum tally_from from)
{
    json_open(j, key, '{');
    json_text(j, "unit", "ns");
    json_u64(j, "count", hist_count(h));
    json_u64(j, "censored", censored);
    json_u64(j, "min", hist_min(h));
    json_u64(j, "max", hist_max(h));
    json_number(j, "mean", hist_mean(h));
    json_number(j, "stddev", hist_stddev(h));
    json_exact(j, "sum", hist_sum(h));
    json_exact(j, "sumsq", hist_sum_squares(h));
    json_u64(j, "overflow", hist_overflow(h));
    write_percentiles(j, h, waits, censored);
    if (of != NULL) {
        write_ci(j, of, from);
    }
    report_buckets_json(h, j);
    json_close(j, '}');
}

static void
write_latencies(struct json *j, const struct result *r)
{
    const struct tally *t = &r->total;
    static const char *const from_names[] = {
        [FROM_INTENDED] = "intended",
        [FROM_ISSUE] = "issue",
    };
    static const char *const verb_names[] = {
        [TALLY_READ] = "read",
        [TALLY_UPDATE] = "update",
    };
    json_open(j, "latency", '{');
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        write_hist(j, from_names[from], r->all[from], t->waits, result_censored(t), r,
                   from);
    }
    json_close(j, '}');
    /* Answered requests only: those without answer belong to no verb. */
    json_open(j, "verbs", '{');
    for (unsigned verb = 0; verb < TALLY_VERBS; verb++) {
        json_open(j, verb_names[verb], '{');
        for (unsigned from = 0; from < FROM_COUNT; from++) {
            write_hist(j, from_names[from], t->latency[from][verb], t->waits, 0, NULL,
                       from);
        }
        json_close(j, '}');
    }
    json_close(j, '}');
    write_hist(j, "lag", t->lag, t->waits, 0, NULL, FROM_ISSUE);
    if (hist_count(t->wire) > 0) {
        write_hist(j, "wire", t->wire, t->waits, 0, NULL, FROM_ISSUE);
    }
    write_hist(j, "waits", t->waits, t->waits, 0, NULL, FROM_INTENDED);
}

static void
write_totals(struct json *j, const struct result *r)
{
    const struct tally *t = &r->total;
    uint64_t gets = ctr_get(&t->done[TALLY_READ]);
    uint64_t updates = ctr_get(&t->done[TALLY_UPDATE]);
    json_open(j, "totals", '{');
    json_number(j, "seconds", r->elapsed_s);
    json_u64(j, "loaded", ctr_get(&t->loaded));
    json_u64(j, "requests", gets + updates);
    json_u64(j, "gets", gets);
    json_u64(j, "sets", ctr_get(&t->ops[CODEC_SET]));
    json_u64(j, "keys", ctr_get(&t->keys));
    json_u64(j, "hits", ctr_get(&t->hits));
    json_u64(j, "misses", ctr_get(&t->keys) - ctr_get(&t->hits));
    if (r->hits_expected >= 0) {
        json_number(j, "hits_expected", r->hits_expected);
    }
    json_u64(j, "rx_bytes", ctr_get(&t->rx_bytes));
    json_u64(j, "tx_bytes", ctr_get(&t->tx_bytes));
    json_number(j, "qps", result_ratio((double)(gets + updates), r->elapsed_s));
    json_u64(j, "offered", ctr_get(&t->offered));
    json_u64(j, "sent", ctr_get(&t->sent));
    json_u64(j, "achieved", ctr_get(&t->good));
    json_number(j, "offered_qps",
                result_ratio((double)ctr_get(&t->offered), r->elapsed_s));
    json_number(j, "achieved_qps", result_ratio((double)ctr_get(&t->good), r->elapsed_s));
    json_u64(j, "skipped", ctr_get(&t->skipped));
    json_u64(j, "unsent", ctr_get(&t->unsent));
    json_u64(j, "lost", ctr_get(&t->lost));
    json_u64(j, "unanswered", ctr_get(&t->unanswered));
    json_open(j, "after_misses", '{');
    json_u64(j, "sets", ctr_get(&t->filled));
    json_u64(j, "left_out", ctr_get(&t->unfilled));
    json_u64(j, "leases_won", ctr_get(&t->won));
    json_u64(j, "leases_waited", ctr_get(&t->waited));
    json_u64(j, "given_up", ctr_get(&t->given_up));
    json_u64(j, "stale_hits", ctr_get(&t->stale));
    json_close(j, '}');
    json_u64(j, "opened", ctr_get(&t->opened));
    json_u64(j, "closed", ctr_get(&t->closed));
    json_u64(j, "unserved", ctr_get(&t->unserved));
    json_open(j, "ops", '{');
    for (unsigned v = 0; v < CODEC_VERBS; v++) {
        if (v == CODEC_AUTH) {
            continue; /* part of connecting */
        }
        json_open(j, codec_verb_name(v), '{');
        json_u64(j, "done", ctr_get(&t->ops[v]));
        json_u64(j, "no_effect", ctr_get(&t->no_effect[v]));
        json_close(j, '}');
    }
    json_close(j, '}');
    json_close(j, '}');
}

static void
write_adherence(struct json *j, const struct result *r)
{
    static const char *const names[] = {
        [WITHIN_5US] = "within_5us",
        [WITHIN_50US] = "within_50us",
        [WITHIN_1MS] = "within_1ms",
    };
    double offered = (double)ctr_get(&r->total.offered);
    json_open(j, "adherence", '{');
    for (unsigned i = 0; i < TALLY_BOUNDS; i++) {
        json_number(j, names[i],
                    result_ratio((double)ctr_get(&r->total.within[i]), offered));
    }
    json_close(j, '}');
}

/* The law of an open loop's gaps, as meant and as sent. */
static void
write_arrivals(struct json *j, const struct result *r)
{
    struct gaps_apart g = result_gaps(r);
    if (!g.is_known) {
        return;
    }
    json_open(j, "arrivals", '{');
    json_u64(j, "requests_a_gap", r->gap_each);
    json_u64(j, "gaps", hist_count(r->total.gaps_issued));
    json_number(j, "mean", g.mean_ns);
    json_number(j, "scv", g.scv_issued);
    json_number(j, "scv_intended", g.scv_intended);
    json_number(j, "ks", g.ks);
    json_number(j, "ks_p", g.p);
    json_number(j, "apart", g.apart);
    json_close(j, '}');
}

static void
write_errors(struct json *j, const struct tally *t)
{
    json_open(j, "errors", '{');
    for (unsigned e = 0; e < TALLY_ERRORS; e++) {
        json_u64(j, tally_error_name(e), ctr_get(&t->errors[e]));
    }
    json_close(j, '}');
}

static void
write_threads(struct json *j, const struct result *r)
{
    json_open(j, "threads", '[');
    for (unsigned i = 0; i < r->threads; i++) {
        const struct cost *cost = &r->costs[i];
        json_open(j, NULL, '{');
        json_number(j, "cpu", result_ratio(cost->cpu_s, cost->elapsed_s));
        json_number(j, "busy", result_busy(cost));
        json_number(j, "waited", result_ratio(cost->wait_s, cost->elapsed_s));
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void
write_checks(struct json *j, const struct result *r)
{
    json_open(j, "checks", '[');
    for (unsigned i = 0; i < CHECKS; i++) {
        const struct check *c = &r->checks[i];
        if (c->applies) {
            json_open(j, NULL, '{');
            json_text(j, "name", check_name(i));
            json_bool(j, "ok", c->is_good);
            json_number(j, "value", c->value);
            json_number(j, "limit", c->limit);
            json_close(j, '}');
        }
    }
    json_close(j, ']');
}

static void
write_intervals(struct json *j, const struct series *s)
{
    json_open(j, "intervals", '[');
    for (unsigned i = 0; s != NULL && i < s->rows_len; i++) {
        const struct series_row *row = &s->rows[i];
        json_open(j, NULL, '{');
        json_number(j, "start", row->start_s);
        json_number(j, "length", row->length_s);
        json_u64(j, "requests", row->requests);
        json_number(j, "qps", result_ratio((double)row->requests, row->length_s));
        json_u64(j, "p50", row->p50);
        json_u64(j, "p95", row->p95);
        json_u64(j, "p99", row->p99);
        json_u64(j, "max", row->max);
        json_u64(j, "keys", row->keys);
        json_u64(j, "hits", row->hits);
        json_number(j, "hit_ratio", result_ratio((double)row->hits, (double)row->keys));
        json_u64(j, "errors", row->errors);
        if (row->lost > 0) {
            json_u64(j, "agents_lost", row->lost);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void
write_target(struct json *j, const struct result *r, const struct options *o)
{
    json_open(j, "target", '{');
    json_open(j, "servers", '[');
    for (unsigned i = 0; i < o->servers_len; i++) {
        json_text(j, NULL, o->servers[i]);
    }
    json_close(j, ']');
    json_bool(j, "local", r->is_local);
    json_text(j, "protocol", o->classes[0].codec->name);
    report_settings_json(r->server_settings, (const char *const *)o->servers, j);
    json_close(j, '}');
}

static void
write_load(struct json *j, const struct result *r, const struct lclass *c,
           const struct options *o)
{
    json_open(j, "load", '{');
    json_text(j, "mode", r->mode != NULL ? r->mode : r->is_open ? "open" : "closed");
    json_number(j, "qps", r->qps);
    json_u64(j, "threads", r->threads);
    json_u64(j, "connections", (uint64_t)c->connections);
    json_u64(j, "depth", (uint64_t)c->depth);
    json_text(j, "workload", c->model != NULL ? c->model->name : "custom");
    json_u64(j, "records", (uint64_t)c->records);
    json_number(j, "key_size", dist_mean(&c->key_size));
    json_number(j, "value_size", dist_mean(&c->value_size));
    json_number(j, "getcount", dist_mean(&c->getcount));
    json_number(j, "update", mix_share_of_updates(&c->mix));
    json_number(j, "time", o->time_s);
    json_number(j, "warmup", o->warmup_s);
    json_close(j, '}');
}

static void
write_slo(struct json *j, const struct result *r)
{
    char text[SLO_TEXT_MAX];
    if (r->slo.percent == 0) {
        return;
    }
    slo_describe(&r->slo, text);
    json_open(j, "slo", '{');
    json_text(j, "objective", text);
    json_number(j, "percentile", r->slo.percent);
    json_u64(j, "limit", r->slo.limit);
    json_u64(j, r->slo_value.is_bound ? "above" : "value", r->slo_value.ns);
    json_bool(j, "met", r->is_slo_met);
    json_close(j, '}');
}

static void
write_range(struct json *j, const char *name, const struct evenness *s,
            enum evenness_of what)
{
    struct evenness_range r = evenness_range(s, what);
    json_open(j, name, '{');
    json_u64(j, "min", r.min);
    json_u64(j, "median", r.median);
    json_u64(j, "max", r.max);
    json_close(j, '}');
}

/* Latencies here are from issue, and to 3 %. */
static void
write_evenness(struct json *j, const struct evenness *s, const struct options *o)
{
    if (s == NULL) {
        return;
    }
    json_open(j, "servers", '[');
    for (unsigned i = 0; i < s->servers_len; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", o->servers[i]);
        json_u64(j, "requests", hist_count(s->servers[i]));
        json_u64(j, "p50", hist_quantile(s->servers[i], .50));
        json_u64(j, "p99", hist_quantile(s->servers[i], .99));
        json_close(j, '}');
    }
    json_close(j, ']');
    struct evenness_range p99 = evenness_range(s, EVENNESS_P99);
    json_open(j, "connections", '{');
    json_u64(j, "count", s->conns_len);
    write_range(j, "requests", s, EVENNESS_REQUESTS);
    write_range(j, "p50", s, EVENNESS_P50);
    write_range(j, "p99", s, EVENNESS_P99);
    json_number(j, "imbalance", result_ratio((double)p99.max, (double)p99.median));
    json_close(j, '}');
}

/* What the whole run and a class have in common. */
static void
write_part(struct json *j, const struct result *r, const struct lclass *c,
           const struct options *o)
{
    write_load(j, r, c, o);
    write_totals(j, r);
    write_latencies(j, r);
    write_adherence(j, r);
    write_arrivals(j, r);
    write_errors(j, &r->total);
    write_threads(j, r);
    write_evenness(j, r->evenness, o);
    write_intervals(j, r->series);
    if (o->by_size) {
        report_sizes_json(&r->total, j);
    }
    write_slo(j, r);
    write_checks(j, r);
    json_bool(j, "valid", r->is_valid);
}

static void
write_phases(struct json *j, const struct result *r)
{
    json_open(j, "phases", '[');
    for (unsigned i = 0; i < PHASES; i++) {
        const struct result_span *p = &r->phases[i];
        if (p->stop_s > p->start_s) {
            json_open(j, NULL, '{');
            json_text(j, "name", phase_name(i));
            json_number(j, "start", p->start_s);
            json_number(j, "stop", p->stop_s);
            json_close(j, '}');
        }
    }
    json_close(j, ']');
}

static void
write_classes(struct json *j, const struct result *r, const struct options *o)
{
    json_open(j, "classes", '{');
    for (unsigned i = 0; options_has_classes(o) && i < r->classes_len; i++) {
        json_open(j, r->classes[i].name, '{');
        json_text(j, "protocol", o->classes[i].codec->name);
        write_part(j, &r->classes[i], &o->classes[i], o);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void
write_env(struct json *j, const struct env *e)
{
    json_open(j, "env", '{');
    for (unsigned i = 0; e != NULL && i < e->count; i++) {
        json_text(j, e->facts[i].name, e->facts[i].value);
    }
    json_close(j, '}');
}

static void
write_until(struct json *j, const struct result *r)
{
    if (r->until == NULL) {
        return;
    }
    json_open(j, "until", '{');
    json_bool(j, "reached", r->is_until_met);
    json_number(j, "seconds", r->elapsed_s);
    json_open(j, "wanted", '[');
    for (unsigned i = 0; i < r->until->count; i++) {
        double q = r->until->wants[i].q;
        json_open(j, NULL, '{');
        json_number(j, "percentile", 100 * q);
        json_number(j, "width", r->until->wants[i].width);
        json_number(j, "found", r->series != NULL ? until_width(r->series, q) : INFINITY);
        json_close(j, '}');
    }
    json_close(j, ']');
    if (r->until->answers > 0) {
        json_u64(j, "answers", r->until->answers);
    }
    json_close(j, '}');
}

/* Left out when nobody said. */
static void
write_evictions(struct json *j, const struct server_evictions *e)
{
    if (!e->is_known && !e->knows_loading) {
        return;
    }
    json_open(j, "evictions", '{');
    if (e->is_known) {
        json_number(j, "total", e->total);
    }
    if (e->knows_loading) {
        json_number(j, "loading", e->loading);
    }
    json_close(j, '}');
}

static void
write_warmup(struct json *j, const struct result_warmup *w)
{
    if (!w->was_made) {
        return;
    }
    json_open(j, "warmup", '{');
    json_number(j, "seconds", w->seconds);
    json_bool(j, "steady", w->has_settled);
    if (w->has_settled) {
        json_number(j, "steady_after", w->cut_s);
    } else {
        json_nothing(j, "steady_after");
    }
    json_close(j, '}');
}

static bool
holds_password(const struct options *o, const char *text)
{
    bool holds = false;
    for (unsigned i = 0; i < o->classes_len; i++) {
        const char *password = o->classes[i].password;
        holds = holds || (password != NULL && password[0] != '\0' &&
                          strstr(text, password) != NULL);
    }
    return holds;
}

void
report_json(const struct result *r, const struct options *o, int argc, char **argv,
            FILE *out)
{
    struct json j;
    json_init(&j, out);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", REPORT_SCHEMA);
    json_text(&j, "tool", "mcload");
    json_text(&j, "version", PACKAGE_VERSION);
    json_open(&j, "argv", '[');
    for (int i = 0; i < argc; i++) {
        bool is_secret = holds_password(o, argv[i]);
        json_text(&j, NULL, is_secret ? "***" : argv[i]);
    }
    json_close(&j, ']');
    /* As text: readers that keep numbers as doubles would round it. */
    char seed[32];
    snprintf(seed, sizeof seed, "%ju", (uintmax_t)o->seed);
    json_text(&j, "seed", seed);
    write_env(&j, r->env);
    write_target(&j, r, o);
    write_phases(&j, r);
    write_part(&j, r, &o->classes[0], o);
    write_classes(&j, r, o);
    report_stats_json(r->server_stats, (const char *const *)o->servers, &j);
    write_evictions(&j, &r->evictions);
    write_warmup(&j, &r->warmup);
    write_until(&j, r);
    if (r->peak_qps > 0) {
        json_number(&j, "peak_qps", r->peak_qps);
    }
    if (r->search != NULL) {
        report_search_json(r->search, &o->goal, &j);
    }
    report_agents_json(r, &j);
    json_close(&j, '}');
}
