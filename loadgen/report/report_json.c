/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

#include <math.h>

#include "base/json.h"
#include "loadgen/report/report_parts.h"
#include "loadgen/report/schema.h"

static void
write_percentiles(struct json *j, const struct hist *h, const struct hist *waits,
                  uint64_t censored)
{
    struct quantile q[SCHEMA_POINTS];
    json_open(j, "pct", '{');
    for (size_t i = 0; i < SCHEMA_POINTS; i++) {
        q[i] = result_quantile(h, waits, censored, schema_points[i].q);
        json_put(j, report_known(schema_points[i].name, q[i], hist_count(h) > 0));
    }
    json_close(j, '}');
    /* For the nulls above: what is known of them. */
    json_open(j, "pct_above", '{');
    for (size_t i = 0; i < SCHEMA_POINTS; i++) {
        json_put(j, JSON_IF(q[i].is_bound, JSON(schema_points[i].name, q[i].ns)));
    }
    json_close(j, '}');
}

/* 95 % confidence intervals; "enough_s": a run so long would know the tail to a tenth. */
static void
write_ci(struct json *j, const struct result *r, enum counters_from from)
{
    json_open(j, "ci", '{');
    for (unsigned i = 0; i < SCHEMA_POINTS && r->series != NULL; i++) {
        if (!schema_points[i].has_ci) {
            continue;
        }
        struct ci ci = series_ci(r->series, schema_points[i].q);
        struct quantile low = result_at(r, from, ci.low);
        struct quantile high = result_at(r, from, ci.high);
        json_object_of(j, schema_points[i].name, report_known("low", low, ci.is_known),
                       report_known("high", high, ci.is_known && ci.high < 1),
                       JSON("effective", ci.effective),
                       JSON("enough_s", ci.enough * r->elapsed_s));
    }
    json_close(j, '}');
}

void
report_buckets_json(const struct hist *h, struct json *j)
{
    uint32_t at = 0;
    uint64_t low, high, count;
    json_put(j, JSON("sub_bits", COUNTERS_SUB_BITS));
    json_open(j, "buckets", '[');
    while (hist_next(h, &at, &low, &high, &count)) {
        json_open(j, NULL, '[');
        json_put(j, JSON(NULL, low), JSON(NULL, high), JSON(NULL, count));
        json_close(j, ']');
    }
    json_close(j, ']');
}

/* With what is needed to add it to others without loss. `of`: the run whose requests these
 * all are, for their confidence; NULL: only some. */
static void
write_hist(struct json *j, const char *key, const struct hist *h,
           const struct hist *waits, uint64_t censored, const struct result *of,
           enum counters_from from)
{
    json_open(j, key, '{');
    json_put(
        j, JSON("unit", "ns"), JSON("count", hist_count(h)), JSON("censored", censored),
        JSON("min", hist_min(h)), JSON("max", hist_max(h)), JSON("mean", hist_mean(h)),
        JSON("stddev", hist_stddev(h)), JSON_EXACT("sum", hist_sum(h)),
        JSON_EXACT("sumsq", hist_sum_squares(h)), JSON("overflow", hist_overflow(h)));
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
    static const char *const verb_names[] = {
        [COUNTERS_READ] = "read", [COUNTERS_UPDATE] = "update"};
    const struct counters *t = &r->total;
    uint64_t censored = result_censored(t);
    json_open(j, "latency", '{');
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        write_hist(j, counters_from_names[from], r->all[from], t->waits, censored, r,
                   from);
    }
    json_close(j, '}');
    /* Answered requests only: of some of the others the verb is not known. */
    json_open(j, "verbs", '{');
    for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
        json_open(j, verb_names[verb], '{');
        for (unsigned from = 0; from < FROM_COUNT; from++) {
            write_hist(j, counters_from_names[from], t->latency[from][verb], t->waits, 0,
                       NULL, from);
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

#define COUNTED(key, field) JSON(key, ctr_get(&t->field))

static void
write_totals(struct json *j, const struct result *r)
{
    const struct counters *t = &r->total;
    uint64_t gets = ctr_get(&t->done[COUNTERS_READ]), keys = ctr_get(&t->keys);
    uint64_t all = counters_done(t), hits = ctr_get(&t->hits);
    uint64_t offered = ctr_get(&t->offered), achieved = result_achieved(r);
    json_open(j, "totals", '{');
    json_put(j, JSON("seconds", r->elapsed_s), COUNTED("loaded", loaded),
             JSON("requests", all), JSON("gets", gets), COUNTED("sets", ops[CODEC_SET]),
             JSON("keys", keys), JSON("hits", hits), JSON("misses", keys - hits),
             JSON_IF(r->hits_expected >= 0, JSON("hits_expected", r->hits_expected)),
             COUNTED("rx_bytes", rx_bytes), COUNTED("tx_bytes", tx_bytes),
             JSON("qps", result_ratio((double)all, r->elapsed_s)),
             JSON("offered", offered), COUNTED("sent", sent), COUNTED("answered", good),
             JSON("achieved", achieved),
             JSON("offered_qps", result_ratio((double)offered, r->elapsed_s)),
             JSON("achieved_qps", result_ratio((double)achieved, r->elapsed_s)),
             COUNTED("skipped", skipped), COUNTED("unsent", unsent),
             JSON("lost", counters_sum(t->lost)),
             JSON("unanswered", counters_sum(t->unanswered)));
    json_object_of(j, "after_misses", COUNTED("sets", filled),
                   COUNTED("left_out", unfilled), COUNTED("leases_won", won),
                   COUNTED("leases_waited", waited), COUNTED("given_up", given_up),
                   COUNTED("stale_hits", stale));
    json_put(j, COUNTED("opened", opened), COUNTED("closed", closed),
             COUNTED("unserved", unserved));
    json_open(j, "ops", '{');
    for (unsigned v = 0; v < CODEC_VERBS; v++) {
        if (v != CODEC_AUTH) { /* part of connecting */
            json_object_of(j, codec_verb_names[v], COUNTED("done", ops[v]),
                           COUNTED("no_effect", no_effect[v]));
        }
    }
    json_close(j, '}');
    json_close(j, '}');
}

/* Shares of the requests offered. */
static void
write_adherence(struct json *j, const struct counters *t)
{
    double offered = (double)ctr_get(&t->offered), share[COUNTERS_BOUNDS];
    for (unsigned i = 0; i < COUNTERS_BOUNDS; i++) {
        share[i] = result_ratio((double)ctr_get(&t->within[i]), offered);
    }
    json_object_of(j, "adherence", JSON("within_5us", share[WITHIN_5US]),
                   JSON("within_50us", share[WITHIN_50US]),
                   JSON("within_1ms", share[WITHIN_1MS]));
}

/* The law of an open loop's gaps, as meant and as sent. */
static void
write_arrivals(struct json *j, const struct result *r)
{
    struct gaps_apart g = result_gaps(r);
    if (g.is_known) {
        json_object_of(j, "arrivals", JSON("requests_a_gap", r->gap_each),
                       JSON("gaps", hist_count(r->total.gaps_issued)),
                       JSON("mean", g.mean_ns), JSON("scv", g.scv_issued),
                       JSON("scv_intended", g.scv_intended), JSON("ks", g.ks),
                       JSON("ks_p", g.p), JSON("apart", g.apart));
    }
}

static void
write_errors(struct json *j, const struct counters *t)
{
    json_open(j, "errors", '{');
    for (unsigned e = 0; e < COUNTERS_ERRORS; e++) {
        json_put(j, JSON(counters_error_names[e], ctr_get(&t->errors[e])));
    }
    json_close(j, '}');
}

static void
write_threads(struct json *j, const struct result *r)
{
    json_open(j, "threads", '[');
    for (unsigned i = 0; i < r->threads; i++) {
        const struct cost *c = &r->costs[i];
        json_object_of(j, NULL, JSON("cpu", result_ratio(c->cpu_s, c->elapsed_s)),
                       JSON("busy", result_busy(c)),
                       JSON("waited", result_ratio(c->wait_s, c->elapsed_s)));
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
            json_object_of(j, NULL, JSON("name", check_kinds[i].name),
                           JSON("ok", c->is_good), JSON("value", c->value),
                           JSON("limit", c->limit));
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
        double requests = (double)row->requests, hits = (double)row->hits;
        json_object_of(j, NULL, JSON("start", row->start_s),
                       JSON("length", row->length_s), JSON("requests", row->requests),
                       JSON("qps", result_ratio(requests, row->length_s)),
                       JSON("p50", row->p50), JSON("p95", row->p95),
                       JSON("p99", row->p99), JSON("max", row->max),
                       JSON("keys", row->keys), JSON("hits", row->hits),
                       JSON("hit_ratio", result_ratio(hits, (double)row->keys)),
                       JSON("errors", row->errors),
                       JSON_IF(row->lost > 0, JSON("agents_lost", row->lost)));
    }
    json_close(j, ']');
}

static void
write_target(struct json *j, const struct result *r, const struct options *o)
{
    json_open(j, "target", '{');
    json_open(j, "servers", '[');
    for (unsigned i = 0; i < o->servers_len; i++) {
        json_put(j, JSON(NULL, o->servers[i]));
    }
    json_close(j, ']');
    json_put(j, JSON("local", r->is_local), JSON("protocol", o->classes[0].codec->name));
    report_settings_json(r->server_settings, (const char *const *)o->servers, j);
    json_close(j, '}');
}

static void
write_load(struct json *j, const struct result *r, const struct lclass *c,
           const struct options *o)
{
    const char *mode = r->mode != NULL ? r->mode : r->is_open ? "open" : "closed";
    const struct workload_conf *w = &c->workload;
    const char *workload = c->model != NULL ? c->model->name : "custom";
    json_object_of(j, "load", JSON("mode", mode), JSON("qps", r->qps),
                   JSON("threads", r->threads),
                   JSON("connections", (uint64_t)c->connections),
                   JSON("depth", (uint64_t)c->depth), JSON("workload", workload),
                   JSON("records", w->records), JSON("key_size", dist_mean(&w->key_size)),
                   JSON("value_size", dist_mean(&w->value_size)),
                   JSON("getcount", dist_mean(&w->getcount)),
                   JSON("update", mix_share_of_updates(&w->mix)), JSON("time", o->time_s),
                   JSON("warmup", o->warmup_s));
}

static void
write_slo(struct json *j, const struct result *r)
{
    char text[OBJECTIVE_TEXT_MAX];
    if (r->slo.percent != 0) {
        objective_describe(&r->slo, text);
        json_object_of(j, "slo", JSON("objective", &text[0]),
                       JSON("percentile", r->slo.percent), JSON("limit", r->slo.limit),
                       JSON(r->slo_value.is_bound ? "above" : "value", r->slo_value.ns),
                       JSON("known", r->is_slo_known), JSON("met", r->is_slo_met));
    }
}

/* Latencies here are from issue, and to 3 %. */
static void
write_evenness(struct json *j, const struct evenness *s, const struct options *o)
{
    static const char *const names[] = {
        [EVENNESS_REQUESTS] = "requests", [EVENNESS_P50] = "p50", [EVENNESS_P99] = "p99"};
    struct evenness_range range = {0};
    if (s == NULL) {
        return;
    }
    json_open(j, "servers", '[');
    for (unsigned i = 0; i < s->servers_len; i++) {
        const struct hist *h = s->servers[i];
        json_object_of(
            j, NULL, JSON("name", o->servers[i]), JSON("requests", hist_count(h)),
            JSON("p50", hist_quantile(h, .50)), JSON("p99", hist_quantile(h, .99)));
    }
    json_close(j, ']');
    json_open(j, "connections", '{');
    json_put(j, JSON("count", s->conns_len));
    for (unsigned what = 0; what < EVENNESS_KINDS; what++) {
        range = evenness_range(s, what);
        json_object_of(j, names[what], JSON("min", range.min),
                       JSON("median", range.median), JSON("max", range.max));
    }
    json_put(j, JSON("imbalance", result_ratio((double)range.max, (double)range.median)));
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
    write_adherence(j, &r->total);
    write_arrivals(j, r);
    write_errors(j, &r->total);
    write_threads(j, r);
    write_evenness(j, r->evenness, o);
    write_intervals(j, r->series);
    if (o->by_size) {
        report_sizes_json(&r->total, j);
    }
    write_slo(j, r->classes_len == 1 ? &r->classes[0] : r);
    write_checks(j, r);
    json_put(j, JSON("valid", r->is_valid));
}

static void
write_phases(struct json *j, const struct result *r)
{
    json_put(j, JSON_EXACT("began_s", r->began_s));
    json_open(j, "phases", '[');
    for (unsigned i = 0; i < PHASES; i++) {
        const struct result_span *p = &r->phases[i];
        if (p->stop_s > p->start_s) {
            json_object_of(j, NULL, JSON("name", result_phase_names[i]),
                           JSON("start", p->start_s), JSON("stop", p->stop_s));
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
        json_put(j, JSON("protocol", o->classes[i].codec->name));
        write_part(j, &r->classes[i], &o->classes[i], o);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void
write_env(struct json *j, const struct machine *e)
{
    json_open(j, "env", '{');
    for (unsigned i = 0; e != NULL && i < e->count; i++) {
        json_put(j, json_of_text(e->facts[i].name, e->facts[i].value));
    }
    json_close(j, '}');
}

static void
write_until(struct json *j, const struct result *r)
{
    const struct until *u = r->until;
    if (u == NULL) {
        return;
    }
    json_open(j, "until", '{');
    json_put(j, JSON("reached", r->is_until_met), JSON("seconds", r->elapsed_s));
    json_open(j, "wanted", '[');
    for (unsigned i = 0; i < u->count; i++) {
        double q = u->wants[i].q;
        double found = report_until_width(r, q);
        json_object_of(j, NULL, JSON("percentile", 100 * q),
                       JSON("width", u->wants[i].width), JSON("found", found));
    }
    json_close(j, ']');
    json_put(j, JSON_IF(u->answers > 0, JSON("answers", u->answers)));
    json_close(j, '}');
}

/* Left out when unknown. */
static void
write_evictions(struct json *j, const struct server_evictions *e)
{
    if (e->is_known || e->knows_loading) {
        json_object_of(j, "evictions", JSON_IF(e->is_known, JSON("total", e->total)),
                       JSON_IF(e->knows_loading, JSON("loading", e->loading)));
    }
}

static void
write_warmup(struct json *j, const struct result_warmup *w)
{
    if (w->was_made) {
        json_object_of(j, "warmup", JSON("seconds", w->seconds),
                       JSON("steady", w->has_settled),
                       JSON("steady_after", w->has_settled ? w->cut_s : INFINITY));
    }
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
    json_put(&j, JSON("schema", REPORT_SCHEMA), JSON("tool", "mcload"),
             JSON("version", PACKAGE_VERSION));
    json_open(&j, "argv", '[');
    for (int i = 0; i < argc; i++) {
        bool is_secret = holds_password(o, argv[i]);
        json_put(&j, json_of_text(NULL, is_secret ? "***" : argv[i]));
    }
    json_close(&j, ']');
    /* As text: readers that keep numbers as doubles would round it. */
    char seed[32];
    snprintf(seed, sizeof seed, "%ju", (uintmax_t)o->seed);
    json_put(&j, json_of_text("seed", seed));
    write_env(&j, r->env);
    write_target(&j, r, o);
    write_phases(&j, r);
    write_part(&j, r, &o->classes[0], o);
    write_classes(&j, r, o);
    report_stats_json(r->server_stats, (const char *const *)o->servers, &j);
    write_evictions(&j, &r->evictions);
    write_warmup(&j, &r->warmup);
    write_until(&j, r);
    json_put(&j, JSON_IF(r->peak_qps > 0, JSON("peak_qps", r->peak_qps)));
    if (r->search != NULL) {
        report_search_json(r->search, &o->goal, &j);
    }
    report_agents_json(r, &j);
    json_close(&j, '}');
}
