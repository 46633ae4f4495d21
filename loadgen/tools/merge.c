/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * tree_merge: the first result's tree, into which the others are added.
 */
#include <math.h>

#include "base/alloc.h"
#include "loadgen/measure/ci.h"
#include "loadgen/measure/result.h"
#include "loadgen/report/schema.h"
#include "loadgen/tools/tree.h"

struct merge {
    bool in_turn;
    double offered[2]; /* requests: of what is there already, of what is added */
    char *err;
    const char *path, *first; /* of what is added, and of what it is added to */
};

static bool
refuse(const struct merge *m, const char *what)
{
    snprintf(m->err, SAVED_ERR_MAX, "%s: %s", m->path, what);
    return false;
}

/* ---- histograms --------------------------------------------------------------------- */

static void
put_buckets(json_t *object, const struct hist *h)
{
    json_t *buckets = json_array();
    uint32_t at = 0;
    uint64_t low, high, count;
    while (hist_next(h, &at, &low, &high, &count)) {
        json_array_append_new(buckets, json_pack("[I,I,I]", (json_int_t)low,
                                                 (json_int_t)high, (json_int_t)count));
    }
    json_object_set_new(object, "buckets", buckets);
}

static void
put_count(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void
put_number(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static void
put_sums(json_t *object, const struct hist *h)
{
    put_count(object, "count", hist_count(h));
    put_count(object, "min", hist_min(h));
    put_count(object, "max", hist_max(h));
    put_number(object, "mean", hist_mean(h));
    put_number(object, "sum", hist_sum(h));
    put_number(object, "sumsq", hist_sum_squares(h));
    put_count(object, "overflow", hist_overflow(h));
}

static json_t *
number_or_null(struct quantile q, bool is_known)
{
    return is_known && !q.is_bound ? json_integer((json_int_t)q.ns) : json_null();
}

/* Independent samples add up; what they tell of the sum follows. */
static json_t *
merged_ci(const json_t *a, const json_t *b, const struct hist *h,
          const struct hist *waits, uint64_t censored, double share)
{
    double effective = tree_number(a, "effective") + tree_number(b, "effective");
    struct ci ci = ci_of_effective((double)(hist_count(h) + censored), effective, share);
    json_t *out = json_object();
    put_number(out, "effective", effective);
    json_object_set_new(
        out, "low",
        number_or_null(result_quantile(h, waits, censored, ci.low), ci.is_known));
    json_object_set_new(out, "high",
                        number_or_null(result_quantile(h, waits, censored, ci.high),
                                       ci.is_known && ci.high < 1));
    return out;
}

static void
put_percentiles(json_t *into, const json_t *from, const struct hist *h,
                const struct hist *waits, uint64_t censored)
{
    json_t *pct = json_object(), *above = json_object(), *ci = json_object();
    const json_t *ci_into = json_object_get(into, "ci"),
                 *ci_from = json_object_get(from, "ci");
    bool has_ci = ci_into != NULL && ci_from != NULL;
    for (unsigned i = 0; i < SCHEMA_POINTS; i++) {
        const struct schema_point *p = &schema_points[i];
        struct quantile q = result_quantile(h, waits, censored, p->q);
        json_object_set_new(pct, p->name,
                            number_or_null(q, hist_count(h) + censored > 0));
        if (q.is_bound) {
            put_count(above, p->name, q.ns);
        }
        if (p->has_ci && has_ci) {
            json_object_set_new(ci, p->name,
                                merged_ci(json_object_get(ci_into, p->name),
                                          json_object_get(ci_from, p->name), h, waits,
                                          censored, p->q));
        }
    }
    json_object_set_new(into, "pct", pct);
    json_object_set_new(into, "pct_above", above);
    json_object_set_new(into, "ci", ci);
    if (ci_into == NULL) {
        json_object_del(into, "ci");
    }
}

/* Percentiles that stand among the other members. */
static void
renew_percentiles(json_t *object, const struct hist *h)
{
    for (unsigned i = 0; i < SCHEMA_POINTS; i++) {
        const struct schema_point *p = &schema_points[i];
        if (json_object_get(object, p->name) != NULL) {
            put_count(object, p->name, hist_quantile(h, p->q));
        }
    }
}

/* `waits` is merged already; NULL: these are gets by the size of replies, of which less is
 * told. */
static bool
add_hist(const struct merge *m, json_t *into, const json_t *from,
         const struct hist *waits)
{
    struct hist *a = tree_hist(into), *b = tree_hist(from);
    bool is_good = a != NULL && b != NULL;
    if (is_good) {
        uint64_t censored = tree_count(into, "censored") + tree_count(from, "censored");
        hist_merge(a, b);
        put_sums(into, a);
        if (waits != NULL) {
            put_count(into, "censored", censored);
            put_number(into, "stddev", hist_stddev(a));
            put_percentiles(into, from, a, waits, censored);
        } else {
            renew_percentiles(into, a);
        }
        put_buckets(into, a);
    }
    hist_destroy(&a);
    hist_destroy(&b);
    return is_good || refuse(m, "a histogram is damaged");
}

/* ---- gets by the size of replies ------------------------------------------------------ */

/* Of the class that stands last, which has no end, all are below. */
static bool
is_below(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "up_to"), *y = json_object_get(b, "up_to");
    return json_is_integer(x) &&
           (!json_is_integer(y) || json_integer_value(x) < json_integer_value(y));
}

/* To where it belongs: a class of sizes that only one of both has is as it was. */
static bool
place_size(const struct merge *m, json_t *sizes, json_t *size)
{
    size_t at = 0;
    while (at < json_array_size(sizes) && is_below(json_array_get(sizes, at), size)) {
        at++;
    }
    json_t *same = json_array_get(sizes, at);
    if (same != NULL && !is_below(size, same)) {
        return add_hist(m, same, size, NULL);
    }
    return json_array_insert(sizes, at, size) == 0 || refuse(m, "out of memory");
}

static bool
has_buckets(const json_t *sizes)
{
    bool has = json_is_array(sizes);
    for (size_t i = 0; has && i < json_array_size(sizes); i++) {
        has = json_object_get(json_array_get(sizes, i), "buckets") != NULL;
    }
    return has;
}

/* Of results that do not both have them, with all of their histograms, nothing is left. */
static bool
add_sizes(const struct merge *m, json_t *into, const json_t *from)
{
    json_t *mine = json_object_get(into, "sizes");
    const json_t *others = json_object_get(from, "sizes");
    bool is_good = true;
    if (!has_buckets(mine) || !has_buckets(others)) {
        json_object_del(into, "sizes");
        return true;
    }
    for (size_t i = 0; is_good && i < json_array_size(others); i++) {
        is_good = place_size(m, mine, json_array_get(others, i));
    }
    return is_good;
}

/* ---- the other members -------------------------------------------------------------- */

/* A share, which may be whole: there is no sum of it; one that runs have in common stays. */
#define SHARE "hits_expected"

static bool
is_rate(const char *key)
{
    size_t len = strlen(key);
    return len >= 3 && strcmp(key + len - 3, "qps") == 0;
}

/* Counts add up, and histograms are added. Rates do, of runs at the same time, however long each
 * of them was. */
static bool
add_tree(const struct merge *m, json_t *into, const json_t *from,
         const struct hist *waits)
{
    const char *key;
    json_t *value;
    if (json_object_get(into, "buckets") != NULL) {
        return add_hist(m, into, from, waits);
    }
    json_object_foreach((json_t *)from, key, value)
    {
        json_t *mine = json_object_get(into, key);
        if (strcmp(key, SHARE) == 0) {
            continue;
        } else if (mine == NULL) {
            json_object_set(into, key, value);
        } else if (json_is_object(mine) && json_is_object(value)) {
            if (!add_tree(m, mine, value, waits)) {
                return false;
            }
        } else if (strcmp(key, "seconds") == 0 || is_rate(key)) { /* may be whole */
            double x = tree_number(into, key), y = tree_number(from, key);
            put_number(into, key, m->in_turn || is_rate(key) ? x + y : fmax(x, y));
        } else if (json_is_integer(mine) && json_is_integer(value)) {
            put_count(into, key,
                      (uint64_t)json_integer_value(mine) +
                          (uint64_t)json_integer_value(value));
        }
    }
    if (!json_equal(json_object_get(into, SHARE), json_object_get(from, SHARE))) {
        json_object_del(into, SHARE);
    }
    return true;
}

/* Of runs one after another. */
static void
renew_rates(json_t *top)
{
    static const char *const rates[][2] = {
        {"qps", "requests"}, {"offered_qps", "offered"}, {"achieved_qps", "achieved"}};
    json_t *totals = json_object_get(top, "totals");
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        double count = (double)tree_count(totals, rates[i][1]);
        put_number(totals, rates[i][0],
                   result_ratio(count, tree_number(totals, "seconds")));
    }
}

/* Shares of the requests offered. */
static void
join_adherence(const struct merge *m, json_t *into, const json_t *from)
{
    const char *key;
    json_t *value;
    json_t *mine = json_object_get(into, "adherence");
    json_object_foreach(json_object_get(from, "adherence"), key, value)
    {
        double share = tree_number(mine, key) * m->offered[0] +
                       json_number_value(value) * m->offered[1];
        put_number(mine, key, result_ratio(share, m->offered[0] + m->offered[1]));
    }
}

static struct hist *
merged_waits(json_t *into, const json_t *from)
{
    struct hist *a = tree_hist(json_object_get(into, "waits"));
    struct hist *b = tree_hist(json_object_get(from, "waits"));
    if (a != NULL && b != NULL) {
        hist_merge(a, b);
    }
    hist_destroy(&b);
    return a;
}

static bool add_result(struct merge *m, json_t *into, const json_t *from);

static void
delete_all(json_t *object, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_object_del(object, keys[i]);
    }
}

/* What says nothing of several runs together. */
static void
forget(json_t *result)
{
    static const char *const of_one[] = {"intervals", "servers", "connections",
                                         "arrivals"};
    delete_all(result, of_one, sizeof of_one / sizeof of_one[0]);
}

/* Of such an object what is the same in both stays. */
static void
keep_equal(json_t *into, const json_t *from, const char *name)
{
    const char *key;
    json_t *value;
    void *next;
    json_t *mine = json_object_get(into, name);
    const json_t *other = json_object_get(from, name);
    json_object_foreach_safe(mine, next, key, value)
    {
        if (!json_equal(value, json_object_get(other, key))) {
            json_object_del(mine, key);
        }
    }
}

/* How the runs were loaded: what is the same stays, and rates of runs at the same time add
 * up. */
static void
join_load(const struct merge *m, json_t *into, const json_t *from)
{
    json_t *mine = json_object_get(into, "load");
    const json_t *other = json_object_get(from, "load");
    double qps = tree_number(mine, "qps") + tree_number(other, "qps");
    bool is_rate =
        !m->in_turn && tree_number(mine, "qps") > 0 && tree_number(other, "qps") > 0;
    keep_equal(into, from, "load");
    if (is_rate) {
        put_number(mine, "qps", qps);
    }
}

/* A class that only one of both has is as it was. */
static bool
add_classes(struct merge *m, json_t *into, const json_t *from)
{
    const char *name;
    json_t *other;
    json_t *mine = json_object_get(into, "classes");
    bool is_good = true;
    if (mine == NULL && json_object_get(from, "classes") != NULL) {
        mine = json_object();
        json_object_set_new(into, "classes", mine);
    }
    json_object_foreach(json_object_get(from, "classes"), name, other)
    {
        json_t *same = json_object_get(mine, name);
        if (same != NULL) {
            is_good = is_good && add_result(m, same, other);
            forget(same);
            json_object_del(same, "slo");
        } else {
            json_object_set(mine, name, other);
        }
    }
    return is_good;
}

/* Latencies of requests for other things are no sample of one thing. Members that one does not
 * have are not compared. */
static bool
is_same_workload(const struct merge *m, const json_t *into, const json_t *from)
{
    struct saved_load mine, other;
    tree_workload(into, &mine);
    tree_workload(from, &other);
    unsigned i = saved_differs(&mine, &other, 0);
    if (i < SAVED_LOADS) {
        snprintf(m->err, SAVED_ERR_MAX,
                 "%s: another workload than that of %s: its %s is %s, not %s", m->path,
                 m->first, saved_loads[i], other.text[i], mine.text[i]);
    }
    return i == SAVED_LOADS;
}

static bool
add_result(struct merge *m, json_t *into, const json_t *from)
{
    if (!is_same_workload(m, into, from)) {
        return false;
    }
    static const char *const added[] = {"wire", "totals",  "errors", "waits",
                                        "lag",  "latency", "verbs"};
    static const char *const listed[] = {"threads", "checks", "agents"};
    struct hist *waits = merged_waits(into, from);
    bool is_good = waits != NULL || refuse(m, "a histogram is damaged");
    m->offered[0] = tree_number(json_object_get(into, "totals"), "offered");
    m->offered[1] = tree_number(json_object_get(from, "totals"), "offered");
    for (unsigned i = 0; i < sizeof added / sizeof added[0] && is_good; i++) {
        json_t *mine = json_object_get(into, added[i]);
        const json_t *other = json_object_get(from, added[i]);
        if (json_is_object(mine) && json_is_object(other)) {
            is_good = add_tree(m, mine, other, waits);
        } else if (i == 0) { /* of those that have it, it says nothing for all */
            json_object_del(into, added[i]);
        } else {
            is_good = refuse(m, "it has no totals or no latencies");
        }
    }
    if (is_good) {
        join_adherence(m, into, from);
        join_load(m, into, from);
        for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
            json_array_extend(json_object_get(into, listed[i]),
                              json_object_get(from, listed[i]));
        }
        if (m->in_turn) {
            renew_rates(into);
        }
        is_good = add_sizes(m, into, from) && add_classes(m, into, from);
        bool is_valid = json_is_true(json_object_get(into, "valid")) &&
                        json_is_true(json_object_get(from, "valid"));
        json_object_set_new(into, "valid", json_boolean(is_valid));
    }
    hist_destroy(&waits);
    return is_good;
}

static bool
write_tree(const json_t *top, const char *path, char *err)
{
    char *json = json_dumps(top, JSON_INDENT(1) | JSON_REAL_PRECISION(17)), *text;
    must(json != NULL && asprintf(&text, "%s\n", json) > 0);
    bool is_good = saved_write(path, text, err);
    free(json);
    free(text);
    return is_good;
}

/* One run of each file: those of a scan are of different loads. */
static json_t *
load_run(const struct merge *m)
{
    json_t *top = tree_load(m->path, m->err);
    if (top != NULL && json_object_get(top, TREE_RUNS) != NULL) {
        refuse(m,
               "it has several runs (--repeat, --scan), and one of each file is merged: "
               "make each with a --json of its own");
        json_decref(top);
        top = NULL;
    }
    return top;
}

/* Names need not be UTF-8; of those that are not each byte is shown as Latin-1, as a run shows its
 * arguments. */
static void
add_name(json_t *names, const char *path)
{
    char *text = alloc_bytes(2 * strlen(path) + 1), *end = text;
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        if (*p >= 0x80) {
            *end++ = (char)(0xc0 | *p >> 6);
        }
        *end++ = (char)(*p >= 0x80 ? 0x80 | (*p & 0x3f) : *p);
    }
    *end = '\0';
    json_t *name = json_string(path);
    json_array_append_new(names, name != NULL ? name : json_string(text));
    free(text);
}

bool
tree_merge(const char *const *paths, unsigned count, bool in_turn, const char *out_path,
           char *err)
{
    struct merge m = {
        .in_turn = in_turn, .err = err, .path = paths[0], .first = paths[0]};
    json_t *top = load_run(&m);
    if (top == NULL) {
        return false;
    }
    json_t *names = json_array();
    add_name(names, paths[0]);
    bool is_good = true;
    for (unsigned i = 1; i < count && is_good; i++) {
        m.path = paths[i];
        json_t *next = load_run(&m);
        is_good = next != NULL && add_result(&m, top, next);
        keep_equal(top, next, "target");
        keep_equal(top, next, "env");
        json_decref(next);
        add_name(names, paths[i]);
    }
    json_object_set_new(top, "merged", names);
    if (count > 1) {
        static const char *const of_one[] = {
            "argv",    "seed",  "warmup", "server_stats", "evictions", "phases",
            "began_s", "until", "search", "agent_loss",   "peak_qps",  "slo",
        };
        forget(top);
        delete_all(top, of_one, sizeof of_one / sizeof of_one[0]);
    }
    is_good = is_good && write_tree(top, out_path, err);
    json_decref(top);
    return is_good;
}
