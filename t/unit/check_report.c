/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The report of a run: the expressions that existing scripts apply to it, percentiles among
 * requests never answered, the verdict, and the JSON.
 */
#include "loadgen/report/report.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "loadgen/report/schema.h"
#include "loadgen/search/search.h"
#include "check_main.h"

#define ANSWERED 1000

static struct result result;
static struct options options;

/* A flawless open-loop run of one second: latencies of 1 to 1000 us. */
static void
set_up(void)
{
    char program[] = "mcload";
    char *argv[] = {program, NULL};
    ck_assert(options_parse(&options, 1, argv, stderr));
    options.verbose = 1;
    result_init(&result, 2, 0);
    struct counters *t = &result.total;
    for (unsigned i = 1; i <= ANSWERED; i++) {
        counters_sent(t, 2 * NSEC_PER_USEC, 1);
        hist_record(t->outstanding, 1);
        counters_good(t, COUNTERS_READ, i * NSEC_PER_USEC, i * NSEC_PER_USEC / 2, 1);
    }
    ctr_add(&t->offered, ANSWERED);
    ctr_add(&t->done[COUNTERS_READ], ANSWERED);
    ctr_add(&t->keys, ANSWERED);
    ctr_add(&t->hits, ANSWERED - 25);
    ctr_add(&t->rx_bytes, 3 * 1048576);
    ctr_add(&t->tx_bytes, 1048576);
    result.is_open = true;
    result.qps = ANSWERED;
    result.elapsed_s = 1;
    result.costs[0] = (struct cost){1, 0.9, 0.5, 0};
    result.costs[1] = (struct cost){1, 0.3, 0.2, 0};
}

static void
tear_down(void)
{
    result_fini(&result);
}

/* What `write` writes; good until the next call. */
static const char *
written(void (*write)(FILE *out))
{
    static char *text;
    size_t len;
    free(text);
    FILE *out = open_memstream(&text, &len);
    write(out);
    fclose(out);
    return text;
}

static void
write_text(FILE *out)
{
    report_text(&result, &options, out);
}

static void
write_json(FILE *out)
{
    char name[] = "mc\"load\\", blank[] = "tab\there \xff";
    char *argv[] = {name, blank, NULL};
    report_json(&result, &options, 2, argv, out);
}

static const char *
text_of(void)
{
    return written(write_text);
}

static const char *
json_of(void)
{
    return written(write_json);
}

/* As it is without --verbose. */
static const char *
brief_text(void)
{
    options.verbose = 0;
    const char *text = text_of();
    options.verbose = 1;
    return text;
}

/* So many classes, each empty and of one thread. */
static struct result *
give_classes(unsigned count)
{
    struct result *classes = calloc(count, sizeof *classes);
    ck_assert_ptr_nonnull(classes);
    for (unsigned i = 0; i < count; i++) {
        result_init(&classes[i], 1, 0);
    }
    result.classes = classes;
    result.classes_len = count;
    return classes;
}

/* The first match's group 1, as "first match wins" scripts see it; NULL: none. */
static const char *
match(const char *text, const char *pattern)
{
    static char group[512];
    regex_t re;
    regmatch_t m[2];
    ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED), 0);
    int rc = regexec(&re, text, 2, m, 0);
    regfree(&re);
    if (rc != 0) {
        return NULL;
    }
    size_t len = (size_t)(m[1].rm_eo - m[1].rm_so);
    ck_assert_uint_lt(len, sizeof group);
    memcpy(group, text + m[1].rm_so, len);
    group[len] = '\0';
    return group;
}

static unsigned
numbers(const char *text, double *values, unsigned max)
{
    unsigned n = 0;
    char *end;
    for (const char *p = text; n < max; p = end) {
        values[n] = strtod(p, &end);
        if (end == p) {
            break;
        }
        n++;
    }
    return n;
}

FIXTURE(set_up, tear_down);

TEST(test_known_parsers)
{
    double v[20];
    result_judge(&result);
    const char *text = text_of();
    const char *header = match(text, "#type([[:space:]A-Za-z0-9_]*)\n");
    ck_assert_ptr_nonnull(header);
    expect_part(header, " p9999 ");
    ck_assert_uint_eq(numbers(match(text, "read([[:space:]0-9.]*)"), v, 20), 12);
    ck_assert_double_eq_tol(v[0], 500.5, 0.1);  /* average */
    ck_assert_double_eq_tol(v[1], 288.7, 0.1);  /* deviation */
    ck_assert_double_eq_tol(v[2], 1, 0.01);     /* smallest */
    ck_assert_double_eq_tol(v[5], 500, 0.5);    /* median */
    ck_assert_double_eq_tol(v[8], 990, 1);      /* 99th */
    ck_assert_double_eq_tol(v[11], 1000, 0.01); /* largest */
    ck_assert_uint_eq(numbers(match(text, "update([[:space:]0-9.]*)"), v, 20), 12);
    ck_assert_uint_eq(numbers(match(text, "op_q([[:space:]0-9.]*)"), v, 20), 12);
    ck_assert_double_eq(v[0], 1);
    ck_assert_str_eq(match(text, "Total QPS = ([0-9.]*)"), "1000.0");
    ck_assert_str_eq(match(text, "Misses = [0-9]+ \\(([0-9.]*)%\\)"), "2.5");
    ck_assert_str_eq(match(text, "Skipped TXs = [0-9]+ \\(([0-9.]*)%\\)"), "0.0");
    ck_assert_str_eq(match(text, "RX[[:space:]0-9]*bytes :[[:space:]]*([0-9.]*) MB/s"),
                     "3.0");
    ck_assert_str_eq(match(text, "TX[[:space:]0-9]*bytes :[[:space:]]*([0-9.]*) MB/s"),
                     "1.0");
    ck_assert_ptr_null(strstr(text, "Peak QPS")); /* it was not measured */
    /* "read" stands once, at the start of its row. */
    const char *read = strstr(text, "read");
    ck_assert_int_eq(read[-1], '\n');
    ck_assert_ptr_null(strstr(read + 1, "read"));
    ck_assert_int_eq(strncmp(text, "VALID\n", 6), 0);
    expect_part(text, "fewer than 10 requests lie beyond p999:");
}

/* The lines that a report begins with, and what they say of requests never answered. */
TEST(test_summary)
{
    result_judge(&result);
    const char *text = brief_text();
    ck_assert_str_eq(
        text, "VALID\n"
              "Rate = 1000.0/s asked for, 1000.0/s achieved (100.00%)\n"
              "Latency = p50 500.1 us, p99 990.0 us, p99.9 999.2 us, max 1000.0 us\n"
              "Hits = 97.50% (975 of 1000 keys)\n"
              "Errors = 0\n");
    counters_censored(&result.total, &result.total.unsent, 5 * NSEC_PER_MSEC);
    ctr_add(&result.total.errors[COUNTERS_TIMEOUT], 2);
    result.is_open = false;
    result_judge(&result);
    text = brief_text();
    expect_part(text, "\nRate = 1000.0/s achieved (closed loop: none");
    ck_assert_ptr_nonnull(match(text, "(p99.9 [0-9.]* us, max >5[0-9.]* us\n)"));
    expect_part(text, "\nErrors = 2 (timeout 2)\n");
    result_fini(&result);
    result_init(&result, 1, 0);
    result_judge(&result);
    text = brief_text();
    expect_part(text, "\nLatency = not known\nHits = no get was");
}

/* Each check has a sentence and advice; none has the letters that parsers look for. The first
 * is told, with --verbose all are. */
TEST(test_reasons)
{
    for (unsigned i = 0; i <= CHECKS; i++) {
        result_judge(&result);
        result.is_valid = false;
        for (unsigned k = 0; k < CHECKS; k++) {
            result.checks[k] = (struct check){k == i || i == CHECKS, false, 0, 1};
        }
        const char *text = text_of();
        ck_assert_uint_eq(count_of(text, "INVALID: "), i == CHECKS ? CHECKS : 1);
        ck_assert_msg(match(text, "(^INVALID: [^\n]+[A-Za-z%]: [a-z][^\n]+\n)") != NULL,
                      "%s", text);
        ck_assert_uint_eq(count_of(text, "read"), 1);
        text = brief_text();
        ck_assert_uint_eq(count_of(text, "INVALID: "), 1);
        ck_assert_uint_eq(count_of(text, " (and 18 more: -v)\n"), i == CHECKS);
    }
}

/* A process of a swarm that began when much of the window had gone by was not there then. */
TEST(test_late_start)
{
    result.agents = alloc_zeroed(2, sizeof *result.agents);
    result.agents_len = 2;
    result.agents[1].start_error = 10 * NSEC_PER_MSEC;
    result_judge(&result);
    ck_assert(result.is_valid);
    result.agents[1].start_error++;
    result_judge(&result);
    expect_part(
        brief_text(),
        "INVALID: late start: a process missed 1.00% > 1% of the run: the agents' ");
}

/* Of several classes a verdict, with the class that it is about, and a row each. */
TEST(test_agent_without_requests)
{
    result.agents = calloc(1, sizeof *result.agents);
    ck_assert_ptr_nonnull(result.agents);
    result.agents_len = 1;
    result.agents[0] = (struct result_agent){.name = "far", .role = "load"};
    result_judge(&result);
    expect_part(text_of(),
                "\nAgent far = offered 0.0/s, achieved 0.0/s, p50 n/a, p99 n/a, ");
}

TEST(test_summary_of_classes)
{
    struct result *classes = give_classes(2);
    counters_merge(&classes[0].total, &result.total);
    classes[0].name = "small";
    classes[0].is_open = true;
    classes[0].qps = classes[0].elapsed_s = 1;
    classes[1].name = "bulk";
    result_judge(&result);
    const char *text = brief_text();
    ck_assert_int_eq(strncmp(text, "INVALID: bulk: no request was answered: check ", 46),
                     0);
    ck_assert_ptr_nonnull(match(text, "(\nclass +asked/s +achieved/s +p50 us )"));
    ck_assert_ptr_nonnull(match(text, "(\nsmall +1.0 +1000.0 .* 97.50% +0\n)"));
    ck_assert_ptr_nonnull(match(text, "(\nbulk +- +0.0 .* - +0\n$)"));
}

TEST(test_latency_from_issue)
{
    double v[20];
    result.from = FROM_ISSUE;
    result_judge(&result);
    const char *text = text_of();
    ck_assert_uint_eq(numbers(match(text, "read([[:space:]0-9.]*)"), v, 20), 12);
    ck_assert_double_eq_tol(v[11], 500, 0.01);
}

/* 1000 answers and 100 that never came: p90 is still a number, p95 is above a bound. */
TEST(test_censored)
{
    double v[20];
    for (unsigned i = 0; i < 100; i++) {
        counters_censored(&result.total, &result.total.unsent, (i + 1) * NSEC_PER_MSEC);
    }
    ctr_add(&result.total.offered, 100);
    result_judge(&result);
    const char *text = text_of();
    ck_assert_uint_eq(numbers(match(text, "read([[:space:]0-9.]*)"), v, 20), 7);
    ck_assert_double_eq_tol(v[6], 990, 1); /* rank 990 of 1100 */
    const char *bounds = match(text, "\nread[^>]*(>.*)\nupdate");
    ck_assert_ptr_nonnull(bounds);
    ck_assert_double_gt(strtod(bounds + 1, NULL), 44e3); /* the 45th shortest wait */
    ck_assert_double_lt(strtod(bounds + 1, NULL), 46e3);
    expect_part(text, "INVALID: achieved 90.91% < 99% of offered");
    text = json_of();
    ck_assert_double_eq_tol(strtod(match(text, "\"p90\": ([0-9a-z]*)"), NULL), 990e3,
                            1e3);
    ck_assert_str_eq(match(text, "\"p95\": ([0-9a-z]*)"), "null");
    ck_assert_str_eq(match(text, "\"censored\": ([0-9]*)"), "100");
}

/* Of a hundred the 7 % that are fastest are seven, though 0.07 * 100 is above 7. */
TEST(test_quantile_rank)
{
    SCOPED(hist_destroy) struct hist *finite = hist_create(10, COUNTERS_MAX_NS);
    SCOPED(hist_destroy) struct hist *waits = hist_create(10, COUNTERS_MAX_NS);
    for (unsigned i = 1; i <= 100; i++) {
        hist_record(finite, i);
    }
    for (unsigned i = 1; i <= 100; i++) {
        ck_assert_uint_eq(result_quantile(finite, waits, 0, i / 100.0).ns, i);
        ck_assert_uint_eq(result_quantile(finite, waits, 0, (i - .5) / 100).ns, i);
    }
}

TEST(test_quantile_rules)
{
    SCOPED(hist_destroy) struct hist *finite = hist_create(10, COUNTERS_MAX_NS);
    SCOPED(hist_destroy) struct hist *waits = hist_create(10, COUNTERS_MAX_NS);
    struct quantile q = result_quantile(finite, waits, 0, 0.5);
    ck_assert_uint_eq(q.ns, 0);
    ck_assert(!q.is_bound);
    hist_record(waits, 70);
    q = result_quantile(finite, waits, 1, 0.5);
    ck_assert_uint_eq(q.ns, 70);
    ck_assert(q.is_bound);
    /* A wait shorter than the slowest answer still counts as slower than it. */
    hist_record(finite, 500);
    q = result_quantile(finite, waits, 1, 1);
    ck_assert_uint_eq(q.ns, 500);
    ck_assert(q.is_bound);
    q = result_quantile(finite, waits, 1, 0.5);
    ck_assert_uint_eq(q.ns, 500);
    ck_assert(!q.is_bound);
}

TEST_LOOP(test_verdicts, CHECK_STEADY)
{
    static const char *const sentences[] = {"INVALID: no request was answered",
                                            "client CPU 96.00% > 95%",
                                            "achieved 98.91% < 99% of offered",
                                            "94.00% < 95% sent within 1 ms",
                                            "INVALID: 3 errors",
                                            "INVALID: interrupted"};
    struct counters *t = &result.total;
    switch (_i) {
    case CHECK_ANSWERS:
        atomic_store(&t->done[COUNTERS_READ], 0); /* within the window */
        atomic_store(&t->done[COUNTERS_UPDATE], 0);
        result.is_open = false;
        break;
    case CHECK_CPU:
        result.costs[1] = (struct cost){2, 2, 0.08, 0};
        break;
    case CHECK_RATE:
        ctr_add(&t->offered, 11);
        break;
    case CHECK_ADHERENCE:
        atomic_store(&t->within[WITHIN_1MS], 940);
        break;
    case CHECK_ERRORS:
        ctr_add(&t->errors[COUNTERS_TIMEOUT], 1);
        ctr_add(&t->errors[COUNTERS_SERVER_ERROR], 2);
        break;
    case CHECK_COMPLETE:
        result.was_interrupted = true;
        break;
    }
    result_judge(&result);
    ck_assert(!result.is_valid);
    for (int i = 0; i < CHECKS; i++) {
        ck_assert(result.checks[i].is_good == (i != _i) || !result.checks[i].applies);
    }
    const char *text = text_of();
    ck_assert_msg(strstr(text, sentences[_i]) != NULL, "%s in\n%s", sentences[_i], text);
    ck_assert_int_ne(strncmp(text, "VALID\n", 6), 0);
    if (_i == CHECK_ERRORS) {
        expect_part(text, "Errors = 3 (server_error 2, timeout 1)\n");
    }
}

/* Whatever is told of the only class, there is one verdict, with its reason. */
TEST(test_lone_class)
{
    struct result *class = give_classes(1);
    counters_merge(&class->total, &result.total);
    ctr_add(&class->total.errors[COUNTERS_TIMEOUT], 1);
    result_judge(&result);
    ck_assert(result.is_valid && class->is_valid);
    const char *text = text_of();
    ck_assert_int_eq(strncmp(text, "VALID\n", 6), 0);
    ctr_add(&result.total.errors[COUNTERS_TIMEOUT], 1);
    result_judge(&result);
    ck_assert(!result.is_valid && !class->is_valid);
    text = text_of();
    expect_part(text, "INVALID: 1 errors: see ");
}

/* One of several classes that misses what was stored is enough for a note. */
TEST(test_misses_of_a_class)
{
    struct result *classes = give_classes(2);
    classes[0].name = "some";
    classes[1].name = "all";
    classes[1].hits_expected = 1;
    ck_assert(!result_misses_records(&result));
    ctr_add(&classes[1].total.keys, 100);
    ck_assert(result_misses_records(&result));
    ctr_add(&result.total.keys, 100);
    result.evictions = (struct server_evictions){.is_known = true, .total = 7};
    result_judge(&result);
    const char *text = text_of();
    expect_part(text, "stored before: 7 evictions counted by");
}

TEST(test_unserved)
{
    ctr_add(&result.total.opened, 16);
    ctr_add(&result.total.unserved, 12);
    result_judge(&result);
    ck_assert(!result.is_valid);
    ck_assert_double_eq(result.checks[CHECK_SERVED].value, 12);
    const char *text = text_of();
    expect_part(text, "INVALID: 12 connections had no answer");
    expect_part(text, "Connections without any answer = 12 of 16 opened");
    text = json_of();
    ck_assert_ptr_nonnull(match(text, "(\"unserved\": 12,)"));
}

/* Of a closed loop on a server that hangs, what was answered shows nothing: what 16 connections
 * waited in vain, of five seconds each, does. An open loop is told by what it offered. */
static const struct {
    bool is_open, is_off;
    double in_vain_s;
    bool is_valid;
} hangs[] = {{false, false, 64, false}, {false, false, 0.9, false},
             {false, false, 0.7, true}, {false, true, 64, true},
             {true, false, 64, false},  {true, false, 0.7, true}};

TEST_ROWS(test_unanswered, hangs, NULL)
{
    struct check_limits limits;
    check_limits_init(&limits);
    ck_assert_ptr_null(
        check_limits_parse(&limits, row->is_off ? "unanswered:off" : "unanswered:1%"));
    result.limits = &limits;
    result.is_open = row->is_open;
    ctr_add(&result.total.on_their_way, 16 * 5 * NSEC_PER_SEC);
    ctr_add(&result.total.in_vain, (uint64_t)(row->in_vain_s * 1e9));
    ctr_add(&result.total.unanswered[COUNTERS_READ], 16);
    result_judge(&result);
    ck_assert_int_eq(result.is_valid, row->is_valid);
    const char *text = text_of();
    ck_assert_uint_eq(count_of(text, "INVALID: "), row->is_valid ? 0 : 1);
    if (row->in_vain_s > 1 && !row->is_valid) {
        expect_part(text, "INVALID: unanswered: 80.00% > 1% of the requests' time was ");
    }
}

/* Records that are missing are explained by what servers threw out. */
TEST(test_misses_are_explained)
{
    static const struct {
        double expected;
        struct server_evictions e;
        const char *note;
    } rows[] = {
#define STORED "stored before: "
        {1,
         {false, false, 0, 0},
         "Note: misses, though all records were stored before: evicted?\n"},
        {1, {true, false, 7, 0}, STORED "7 evictions counted by the servers in all\n"},
        {1,
         {true, true, 7, 5},
         STORED "5 items were evicted while they were stored, 7 evictions counted"},
        {-1, {true, true, 7, 5}, "Note: 5 items were evicted while they were stored\n"},
        {0.9, {true, true, 7, 0}, NULL},
    };
    ctr_add(&result.total.keys, 100);
    result_judge(&result);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        result.hits_expected = rows[i].expected;
        result.evictions = rows[i].e;
        const char *text = text_of();
        bool has = rows[i].note != NULL ? strstr(text, rows[i].note) != NULL
                                        : strstr(text, "evict") == NULL;
        ck_assert_msg(has, "%zu: %s", i, text);
        text = json_of();
        ck_assert_int_eq(strstr(text, "\"evictions\": {") != NULL, rows[i].e.is_known);
        ck_assert_int_eq(strstr(text, "\"hits_expected\"") != NULL,
                         rows[i].expected >= 0);
    }
}

/* Of a name of its own: the server's data are wrong, not its replies. */
TEST(test_verification)
{
    ctr_add(&result.total.errors[COUNTERS_WRONG], 2);
    result_judge(&result);
    ck_assert(!result.is_valid);
    ck_assert(result.checks[CHECK_ERRORS].is_good);
    ck_assert(result.checks[CHECK_VALUES].applies);
    ck_assert(!result.checks[CHECK_VALUES].is_good);
    ck_assert_double_eq(result.checks[CHECK_VALUES].value, 2);
    ck_assert_str_eq(check_kinds[CHECK_VALUES].name, "verification");
    const char *text = text_of();
    expect_part(text, "INVALID: 2 verification errors");
    expect_part(text, "Errors = 2 (wrong_value 2)\n");
}

/* 40 looks 25 ms apart; latencies of the second half are `later` times those of the first. */
static void
make_series(uint64_t later)
{
    SCOPED(counters_fini) struct counters t;
    const struct counters *counters[] = {&t};
    counters_init(&t);
    result.series = series_create(0, false);
    ck_assert_ptr_nonnull(result.series);
    series_start(result.series, NSEC_PER_SEC);
    for (unsigned i = 1; i <= 40; i++) {
        for (unsigned k = 0; k < 100; k++) {
            nsec_t ns = (90 + (k * 7 + i) % 20) * NSEC_PER_USEC * (i > 20 ? later : 1);
            counters_good(&t, COUNTERS_READ, ns, ns, 1);
            ctr_add(&t.keys, 1);
            ctr_add(&t.hits, 1);
        }
        series_look(result.series, counters, 1, NSEC_PER_SEC + i * 25 * NSEC_PER_MSEC);
    }
    series_end(result.series);
}

TEST_LOOP(test_stationarity, 2)
{
    make_series(_i == 0 ? 1 : 2);
    result_judge(&result);
    const struct check *c = &result.checks[CHECK_STEADY];
    ck_assert(c->applies);
    ck_assert(c->is_good == (_i == 0));
    ck_assert(result.is_valid == (_i == 0));
    ck_assert_double_eq_tol(c->value, _i == 0 ? 0 : 1, 0.01);
    const char *text = text_of();
    ck_assert(
        (strstr(text, "INVALID: not stationary: 100.00% > 50% from half to half: ") !=
         NULL) == (_i != 0));
    expect_part(text, "p95 95% interval = ");
    text = json_of();
    expect_part(text, "\"stationarity\"");
}

/* Under the table of the class that is shown stands what is known of that table. */
TEST(test_shown)
{
    char program[] = "mcload", verbose[] = "-v", a[] = "--class=a:{}",
         b[] = "--class=b:{}";
    char *argv[] = {program, verbose, a, b, NULL};
    options_fini(&options);
    ck_assert(options_parse(&options, 4, argv, stderr));
    struct result *classes = give_classes(2);
    for (unsigned i = 0; i < 2; i++) {
        classes[i].name = options.classes[i].name;
    }
    make_series(1);
    classes[1].series = result.series;
    result.series = NULL; /* nothing is known of all */
    hist_record(classes[1].total.outstanding, 7);
    counters_good(&classes[1].total, COUNTERS_READ, 1000, 1000, 1);
    result.has_shown = true;
    result.shown = 1;
    result_judge(&result);
    const char *text = text_of();
    const char *below = strstr(text, "\nClass a: ");
    ck_assert_ptr_nonnull(below);
    const char *interval = strstr(text, "p95 95% interval = ");
    ck_assert(interval != NULL && interval < below);
    expect_part(text, "Outstanding = p50 7, p99 7, max 7 on a connection");
}

/* A piece that is too short to stand alone joins the last; rows end with the run. */
TEST(test_series)
{
    SCOPED(counters_fini) struct counters t;
    const struct counters *counters[] = {&t};
    counters_init(&t);
    struct series *s = series_create(50 * NSEC_PER_MSEC, false);
    ck_assert_ptr_nonnull(s);
    series_start(s, 0);
    for (unsigned i = 1; i <= 3 * SERIES_PIECES; i++) {
        counters_good(&t, COUNTERS_READ, i * NSEC_PER_USEC, 1, 1);
        ctr_add(&t.done[COUNTERS_READ], 1);
        series_look(s, counters, 1, i * 10 * NSEC_PER_MSEC);
    }
    counters_good(&t, COUNTERS_READ, 5 * NSEC_PER_SEC, 1, 1);
    series_look(s, counters, 1, 3 * SERIES_PIECES * 10 * NSEC_PER_MSEC + 1);
    series_end(s);
    expect_between(s->count, SERIES_PIECES / 2, SERIES_PIECES);
    uint64_t pieces = 0, rows = 0;
    for (unsigned i = 0; i < s->count; i++) {
        pieces += hist_count(s->pieces[i].latency);
        ck_assert(i == 0 || s->pieces[i].from == s->pieces[i - 1].to);
    }
    ck_assert_uint_eq(pieces, 3 * SERIES_PIECES + 1);
    for (unsigned i = 0; i < s->rows_len; i++) {
        rows += s->rows[i].requests;
    }
    ck_assert_uint_eq(rows, 3 * SERIES_PIECES);
    ck_assert_uint_eq(s->rows[0].requests, 5);
    series_destroy(&s);
    ck_assert_ptr_null(s);
}

/* A search that ended with its first run has tried no rate. */
TEST_LOOP(test_search_of_nothing, 2)
{
    static const char *const why[] = {
        "no request was answered in a closed loop (1 runs in 1.0 s).\n",
        "it ended before the runs could tell of one (1 runs in 1.0 s).\n"};
    static struct search s;
    const struct search_conf conf = {.limit = 1e6, .tolerance = .01, .budget_s = 1};
    const struct search_outcome peak = {
        .achieved = 1, .qps = _i * 5, .is_valid = true, .seconds = 1};
    search_init(&s, &conf);
    search_tell(&s, &peak);
    ck_assert_ptr_null(goal_parse(&options.goal, "p99:1ms"));
    result.search = &s;
    const char *text = text_of();
    expect_part(text, "The search found no rate with p99 <= 1000 us: ");
    expect_part(text, why[_i]);
}

static const struct {
    unsigned runs, met;
    const char *says;
} doubts[] = {
    {3, 3, "the runs are too short to be sure where: --time"},
    {3, 2, "the runs do not agree where"},
    {2, 2, "there was no time for more runs: --search-budget"},
};

/* Why the search does not know better. */
TEST_ROWS(test_search_in_doubt, doubts, row->says)
{
    static struct search s;
    char says[200];
    s = (struct search){.conf = {.limit = 1e6, .tolerance = .01}, .peak = 1e4};
    s.tried[s.tried_count++] = (struct search_point){.rate = 1e3, .verdict = SEARCH_MET};
    s.tried[s.tried_count++] = (struct search_point){
        .rate = 9e3, .verdict = SEARCH_MISSED, .bound = SEARCH_BY_LATENCY};
    s.confirmed[s.confirmed_count++] = (struct search_point){
        .rate = 5e3, .verdict = SEARCH_OPEN, .runs = row->runs, .met = row->met};
    ck_assert_ptr_null(goal_parse(&options.goal, "p99:1ms"));
    result.search = &s;
    snprintf(says, sizeof says,
             "p99 <= 1000 us: it is between 1000.0/s and 9000.0/s, and %s (", row->says);
    expect_part(text_of(), says);
}

/* Servers that began anew are named, and left out. */
TEST(test_restarted_servers)
{
    struct server_sample sample = {.reported = SERVER_STATS_ALL};
    result.server_stats = server_stats_create(2);
    for (unsigned i = 0; i < 4; i++) {
        sample.server = i % 2;
        sample.at_s = i / 2;
        sample.values[STAT_EVICTIONS] = i == 3 ? 70 : 100 + i;
        server_stats_add(result.server_stats, &sample);
    }
    expect_part(text_of(), "Server stats = CPU 0.0% of a core, 2 evictions, ");
    expect_part(text_of(), " MB (1 of 2 servers; restarted or reset: 1)\n");
    options.servers[1] = options.servers[0];
    expect_part(json_of(), "\"servers\": 1,\n  \"restarted\": 1,\n");
    options.servers[1] = NULL;
    sample.server = 0;
    sample.at_s = 2;
    server_stats_add(result.server_stats, &sample);
    expect_part(text_of(), "Server stats = left out: restarted or reset in the run\n");
}

/* Polling is not work: 0.9 s of CPU of which 0.5 s were polled with nothing to do. What a poll took
 * longer because the thread was preempted in it is not polled CPU. */
TEST(test_busy)
{
    struct cost preempted = {2, 1, 1.2, 0.8};
    ck_assert_double_eq_tol(result_busy(&preempted), 0.3, 1e-9);
    ck_assert_double_eq_tol(result_busy(&result.costs[0]), 0.4, 1e-9);
    struct cost more_idle_than_cpu = {1, 0.1, 0.2, 0};
    ck_assert_double_eq(result_busy(&more_idle_than_cpu), 0);
    struct cost nothing = {0, 0, 0, 0};
    ck_assert_double_eq(result_busy(&nothing), 0);
}

/* An empty run has no numbers to divide by. */
TEST(test_empty_run)
{
    result_fini(&result);
    result_init(&result, 1, 0);
    result_judge(&result);
    const char *text = text_of();
    ck_assert_ptr_null(match(text, "[^a-z](nan|inf)"));
    ck_assert_str_eq(match(text, "Total QPS = ([0-9.]*)"), "0.0");
    text = json_of();
    ck_assert_ptr_null(match(text, "[^a-z](nan|inf)"));
    ck_assert_str_eq(match(text, "\"valid\": ([a-z]*)"), "false");
}

TEST(test_json)
{
    result_judge(&result);
    const char *text = json_of();
    ck_assert_str_eq(match(text, "\"schema\": \"([^\"]*)\""), REPORT_SCHEMA);
    ck_assert_str_eq(match(text, "\"argv\": \\[(.*)\\],\n \"seed\""),
                     "\"mc\\\"load\\\\\",\"tab\\u0009here \\u00ff\"");
    ck_assert_str_eq(match(text, "\"valid\": ([a-z]*)"), "true");
    ck_assert_str_eq(match(text, "\"mode\": \"([a-z]*)\""), "open");
    ck_assert_str_eq(match(text, "\"achieved\": ([0-9]*)"), "1000");
    ck_assert_str_eq(match(text, "\"misses\": ([0-9]*)"), "25");
}

TEST(test_size_classes)
{
    static const struct {
        uint64_t bytes;
        unsigned at;
    } all[] = {
        {0, 0},     {1, 0},     {64, 0},     {65, 1},     {256, 1},      {257, 2},
        {1024, 2},  {1025, 3},  {4096, 3},   {4097, 4},   {16384, 4},    {16385, 5},
        {65536, 5}, {65537, 6}, {262144, 6}, {262145, 7}, {1u << 30, 7}, {UINT64_MAX, 7},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ck_assert_uint_eq(size_class_of(all[i].bytes), all[i].at);
        ck_assert_uint_le(all[i].bytes, size_class_most(all[i].at));
    }
    ck_assert_uint_eq(size_class_most(0), 64);
    ck_assert_uint_eq(size_class_most(6), 262144);
    ck_assert_uint_eq(size_class_most(7), UINT64_MAX);
}

TEST(test_by_size)
{
    result_judge(&result);
    options.by_size = true;
    const char *text = json_of();
    ck_assert_ptr_nonnull(match(text, "(\"sizes\": \\[\\])"));
    for (unsigned i = 1; i <= 100; i++) {
        counters_sized(&result.total, 200, i * NSEC_PER_USEC, 1);
    }
    text = text_of(); /* all are alike: nothing to compare */
    ck_assert_ptr_null(strstr(text, "#values"));
    counters_sized(&result.total, 1000000, 2 * NSEC_PER_MSEC, 1);
    counters_sized(&result.total, 2000, 1 * NSEC_PER_MSEC, 1);
    text = text_of();
    ck_assert_str_eq(match(text, "#values( *gets *avg *50th *95th *99th)\n<=256B "),
                     "        gets      avg     50th     95th     99th");
    double v[8];
    ck_assert_uint_eq(numbers(match(text, "\n<=256B ([ 0-9.]*)\n<=4KiB "), v, 8), 5);
    ck_assert_double_eq(v[0], 100);
    ck_assert_double_eq_tol(v[1], 50.5, .1);
    ck_assert_double_eq_tol(v[2], 50, .1);
    ck_assert_double_eq_tol(v[3], 95, .1);
    ck_assert_double_eq_tol(v[4], 99, .1);
    ck_assert_uint_eq(numbers(match(text, "\n>256KiB ([ 0-9.]*)\n\n"), v, 8), 5);
    ck_assert_double_eq(v[0], 1);
    ck_assert_double_eq_tol(v[4], 2000, 1);
    text = json_of();
    ck_assert_str_eq(match(text, "\"sizes\": \\[\\{[[:space:]]*\"up_to\": ([0-9]*),"),
                     "256");
    ck_assert_ptr_nonnull(match(text, "(\"up_to\": null,[[:space:]]*\"count\": 1,)"));
    options.by_size = false;
    text = json_of();
    ck_assert_ptr_null(strstr(text, "\"sizes\""));
}

static void
write_values(FILE *out)
{
    struct json j;
    json_init(&j, out);
    json_open(&j, NULL, '{');
    json_put(&j, JSON("nan", (double)NAN), JSON("inf", -(double)INFINITY), JSON("x", 0.5),
             JSON_IF(false, JSON("none", 0)));
    json_open(&j, "a", '[');
    json_open(&j, NULL, '[');
    json_close(&j, ']');
    json_put(&j, JSON(NULL, UINT64_MAX), JSON(NULL, (bool)false), JSON_NULL(NULL));
    json_close(&j, ']');
    json_object_of(&j, "o", JSON_IF(false, JSON("none", 0)));
    json_close(&j, '}');
}

TEST(test_json_writer)
{
    const char *text = written(write_values);
    ck_assert_str_eq(text,
                     "{\n \"nan\": null,\n \"inf\": null,\n \"x\": 0.5,\n"
                     " \"a\": [[],18446744073709551615,false,null],\n \"o\": {}}\n");
}

/* The parts of a merged counters are the sums, whichever counter. */
TEST(test_tally_merge)
{
    SCOPED(counters_fini) struct counters sum;
    counters_init(&sum);
    ctr_add(&result.total.errors[COUNTERS_CONNECT], 5);
    ctr_add(&result.total.within[WITHIN_5US], 7);
    ctr_add(&result.total.unanswered[COUNTERS_READ], 9);
    counters_merge(&sum, &result.total);
    counters_merge(&sum, &result.total);
    ck_assert_uint_eq(ctr_get(&sum.errors[COUNTERS_CONNECT]), 10);
    ck_assert_uint_eq(ctr_get(&sum.within[WITHIN_5US]), 2 * (ANSWERED + 7));
    ck_assert_uint_eq(counters_sum(sum.unanswered), 18);
    ck_assert_uint_eq(ctr_get(&sum.good), 2 * ANSWERED);
    ck_assert_uint_eq(hist_count(sum.latency[FROM_ISSUE][COUNTERS_READ]), 2 * ANSWERED);
    ck_assert_uint_eq(counters_error_sum(&sum), 10);
}
