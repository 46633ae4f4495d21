/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/saved.h"

#include <math.h>

#include "base/alloc.h"
#include "loadgen/measure/ci.h"
#include "loadgen/measure/counters.h"
#include "loadgen/report/schema.h"
#include "loadgen/tools/tree.h"

/* "results/a.json" -> "a". The caller frees. */
static char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = alloc_text(slash != NULL ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name && strcmp(dot, ".json") == 0) {
        *dot = '\0';
    }
    return name;
}

static struct saved_point
point_of(const json_t *latency, enum saved_at at)
{
    struct saved_point p = {0};
    const json_t *value =
        json_object_get(json_object_get(latency, "pct"), saved_names[at]);
    const json_t *ci = json_object_get(json_object_get(latency, "ci"), saved_names[at]);
    p.is_measured = json_is_number(value);
    p.value = p.is_measured ? json_number_value(value) : 0;
    if (json_is_number(json_object_get(ci, "low"))) {
        const json_t *high = json_object_get(ci, "high");
        p.has_interval = true;
        p.low = json_number_value(json_object_get(ci, "low"));
        p.high = json_is_number(high) ? json_number_value(high) : INFINITY;
    }
    return p;
}

static void
read_rows(struct saved_run *run, const json_t *rows)
{
    size_t count = json_array_size(rows);
    run->rows = alloc_zeroed(count, sizeof *run->rows);
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        run->rows[run->rows_len++] = (struct saved_row){
            .start_s = tree_number(row, "start"),
            .length_s = tree_number(row, "length"),
            .rate = tree_number(row, "qps"),
            .p50 = tree_number(row, "p50"),
            .p99 = tree_number(row, "p99"),
        };
    }
}

static const char *
read_run(struct saved_run *run, const json_t *top, const char *class)
{
    const json_t *of =
        class != NULL ? json_object_get(json_object_get(top, "classes"), class) : top;
    const json_t *totals = json_object_get(of, "totals");
    const json_t *latency = json_object_get(json_object_get(of, "latency"), "intended");
    const json_t *load = json_object_get(of, "load");
    if (class != NULL && of == NULL) {
        return "it has no such class";
    }
    if (!json_is_object(totals) || !json_is_object(latency)) {
        return "it has no totals or no latencies";
    }
    tree_workload(of, &run->load);
    run->is_valid = json_is_true(json_object_get(of, "valid"));
    run->asked_qps = tree_number(load, "qps");
    run->achieved_qps = tree_number(totals, run->asked_qps > 0 ? "achieved_qps" : "qps");
    run->censored = tree_count(latency, "censored");
    run->latency = tree_hist(latency);
    if (run->latency == NULL) {
        return "its histogram is damaged";
    }
    for (unsigned at = 0; at < SAVED_AT; at++) {
        run->at[at] = point_of(latency, at);
    }
    read_rows(run, json_object_get(of, "intervals"));
    return NULL;
}

static struct saved_run *
add_run(struct saved *s, const char *path)
{
    s->runs = alloc_grown(s->runs, s->count, sizeof *s->runs);
    struct saved_run *run = &s->runs[s->count++];
    *run = (struct saved_run){.name = name_of(path)};
    return run;
}

/* "scan" -> "scan 2000/s" */
static void
name_by_rate(struct saved_run *run)
{
    char *name;
    int len = run->asked_qps > 0 ? asprintf(&name, "%s %.0f/s", run->name, run->asked_qps)
                                 : asprintf(&name, "%s, closed loop", run->name);
    must(len >= 0);
    free(run->name);
    run->name = name;
}

static bool
read_file(struct saved *s, const char *path, const char *class, char *err)
{
    json_t *top = tree_load(path, err);
    const char *wrong = NULL;
    if (top == NULL) {
        return false;
    }
    const json_t *runs = json_object_get(top, TREE_RUNS);
    unsigned first = s->count;
    for (size_t i = 0; i < json_array_size(runs) && wrong == NULL; i++) {
        struct saved_run *run = add_run(s, path);
        wrong = read_run(run, json_array_get(runs, i), class);
        name_by_rate(run);
        s->is_scan = s->is_scan || run->asked_qps != s->runs[first].asked_qps;
    }
    if (json_array_size(runs) == 0) {
        wrong = read_run(add_run(s, path), top, class);
    }
    if (wrong != NULL) {
        snprintf(err, SAVED_ERR_MAX, "%s: %s", path, wrong);
    }
    json_decref(top);
    return wrong == NULL;
}

static const struct saved_reader reader = {read_file, tree_merge};
const struct saved_reader *const saved_reader = &reader;

/* ---- tree -------------------------------------------------------------------------- */

json_t *
tree_load(const char *path, char *err)
{
    json_error_t error;
    json_t *top = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (top == NULL) {
        snprintf(err, SAVED_ERR_MAX, "%s: %s", path, error.text);
        return NULL;
    }
    const char *schema = json_string_value(json_object_get(top, "schema"));
    if (schema == NULL || strcmp(schema, REPORT_SCHEMA) != 0) {
        snprintf(err, SAVED_ERR_MAX, "%s: not a result of schema " REPORT_SCHEMA, path);
        json_decref(top);
        return NULL;
    }
    return top;
}

double
tree_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

uint64_t
tree_count(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

void
tree_workload(const json_t *result, struct saved_load *load)
{
    *load = (struct saved_load){{""}};
    for (unsigned i = 0; i < SAVED_LOADS; i++) {
        const json_t *value =
            json_object_get(json_object_get(result, "load"), saved_loads[i]);
        if (json_is_string(value)) {
            snprintf(load->text[i], SAVED_LOAD_MAX, "\"%.50s\"",
                     json_string_value(value));
        } else if (json_is_number(value)) {
            snprintf(load->text[i], SAVED_LOAD_MAX, "%.*g",
                     json_is_integer(value) ? 17 : 6, json_number_value(value));
        }
    }
}

/* [lowest, highest, count] */
static bool
add_bucket(struct hist *h, const json_t *bucket)
{
    const json_t *low = json_array_get(bucket, 0), *count = json_array_get(bucket, 2);
    if (json_array_size(bucket) != 3 || !json_is_integer(low) ||
        !json_is_integer(count) || json_integer_value(low) < 0 ||
        json_integer_value(count) < 1) {
        return false;
    }
    hist_record_n(h, (uint64_t)json_integer_value(low),
                  (uint64_t)json_integer_value(count));
    return true;
}

struct hist *
tree_hist(const json_t *object)
{
    const json_t *buckets = json_object_get(object, "buckets");
    if (!json_is_array(buckets) || tree_count(object, "sub_bits") != COUNTERS_SUB_BITS) {
        return NULL;
    }
    struct hist *h = counters_hist(COUNTERS_SUB_BITS);
    bool is_good = true;
    for (size_t i = 0; i < json_array_size(buckets) && is_good; i++) {
        is_good = add_bucket(h, json_array_get(buckets, i));
    }
    if (!is_good || hist_count(h) != tree_count(object, "count")) {
        hist_destroy(&h);
        return NULL;
    }
    hist_restore(h, tree_count(object, "min"), tree_count(object, "max"),
                 tree_number(object, "sum"), tree_number(object, "sumsq"),
                 tree_count(object, "overflow"));
    return h;
}
