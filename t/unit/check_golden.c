/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * All forms of a report, to the byte, of results that have something in every member: held
 * against t/unit/golden/report.txt, which GOLDEN=write in the environment renews.
 */
#include "loadgen/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "loadgen/search/search.h"

#define CLASSES 2
#define VERSION_MEMBER "\"version\": \"" PACKAGE_VERSION "\""

static struct options options;
static struct result result;
static struct search search;
static struct machine env;

/* Latencies of 20 to some 1000 us, not in order. */
static void
count_requests(struct result *r, unsigned n)
{
    struct counters *t = &r->total;
    for (unsigned i = 0; i < n; i++) {
        nsec_t issue = (20 + i * 7919 % 991) * NSEC_PER_USEC, lag = i % 7 * NSEC_PER_USEC;
        enum counters_verb verb = i % 5 == 0 ? COUNTERS_UPDATE : COUNTERS_READ;
        counters_sent(t, lag, 1);
        hist_record(t->late, lag / 2);
        hist_record(t->outstanding, 1 + i % 4);
        hist_record(t->gaps_intended, 100 * NSEC_PER_USEC);
        hist_record(t->gaps_issued, (90 + i % 20) * NSEC_PER_USEC);
        hist_record(t->wire, issue / 2);
        counters_good(t, verb, issue + lag, issue, 1);
        counters_sized(t, 40U << i % 9, issue + lag, 1);
        ctr_add(&t->done[verb], 1);
        ctr_add(&t->on_their_way, issue);
    }
    for (unsigned i = 0; i < CODEC_VERBS; i++) {
        ctr_add(&t->ops[i], 10 + i);
        ctr_add(&t->no_effect[i], i % 3);
    }
    ctr_add(&t->loaded, 1000);
    ctr_add(&t->offered, n + 6);
    ctr_add(&t->keys, n + 10);
    ctr_add(&t->hits, n - 5);
    ctr_add(&t->rx_bytes, 5 * 1048576 + 7);
    ctr_add(&t->tx_bytes, 1048576);
    ctr_add(&t->filled, 3);
    ctr_add(&t->unfilled, 1);
    ctr_add(&t->won, 4);
    ctr_add(&t->waited, 5);
    ctr_add(&t->given_up, 2);
    ctr_add(&t->stale, 6);
    ctr_add(&t->opened, 12);
    r->elapsed_s = 2.5;
    r->costs[0] = (struct cost){2.5, 1.25, 0.25, 0.01};
    r->gap_each = 2;
    r->qps = 400;
}

static void
make_series(struct result *r)
{
    const struct counters *counters[] = {&r->total};
    r->series = series_create(NSEC_PER_SEC, false);
    ck_assert_ptr_nonnull(r->series);
    series_start(r->series, NSEC_PER_SEC);
    for (unsigned i = 1; i <= 50; i++) {
        count_requests(r, 20);
        series_look(r->series, counters, 1, NSEC_PER_SEC + i * NSEC_PER_SEC / 20);
    }
    series_end(r->series);
    r->series->rows[0].lost = 1;
}

static void
make_evenness(struct result *r)
{
    struct evenness_log log;
    r->evenness = evenness_create(2);
    evenness_log_init(&log, 4);
    for (unsigned i = 0; i < 400; i++) {
        log.server[i % 4] = i % 2;
        evenness_log_record(&log, i % 4, (i % 4 + 1) * (50 + i % 9) * NSEC_PER_USEC, 1);
    }
    evenness_add(r->evenness, &log);
    evenness_log_fini(&log);
}

static void
make_servers(void)
{
    static const char reported[] =
        "VERSION 1.6.0\r\nSTAT maxbytes 67108864\r\nSTAT x y z\r\n"
        "STAT spread \x01\r\nEND\r\n";
    result.server_settings = server_settings_create(2);
    result.server_stats = server_stats_create(2);
    ck_assert(result.server_settings != NULL && result.server_stats != NULL);
    ck_assert(
        server_settings_take(result.server_settings, 0, reported, sizeof reported - 1));
    for (unsigned i = 0; i < 4; i++) {
        struct server_sample sample = {.server = i % 2, .at_s = i / 2 * 2.5};
        sample.reported = i % 2 == 0 ? SERVER_STATS_ALL : SERVER_STATS_ALL & ~1U;
        for (unsigned k = 0; k < SERVER_STATS; k++) {
            sample.values[k] = (i + 1) * (k + 0.5);
        }
        server_stats_add(result.server_stats, &sample);
    }
}

static void
make_search(void)
{
    struct search_conf conf = {.limit = 5e5, .errors_max = 0.01, .tolerance = 0.05};
    search_init(&search, &conf);
    for (unsigned i = 0; search_next(&search).stage != SEARCH_DONE && i < 200; i++) {
        struct search_probe probe = search_next(&search);
        double rate = probe.rate > 0 ? probe.rate : 12000;
        double value = rate < 9000 ? 1e5 + rate * 30 : 1e6 + rate;
        struct search_outcome outcome = {value,
                                         value * 0.98,
                                         value * 1.02,
                                         rate > 10000 ? 10000 : rate,
                                         rate > 10000 ? 10000 / rate : 1,
                                         false,
                                         0,
                                         true,
                                         1};
        search_tell(&search, &outcome);
    }
    result.search = &search;
}

static void
make_agents(bool is_lost)
{
    free(result.agents);
    result.agents = calloc(2, sizeof *result.agents);
    ck_assert_ptr_nonnull(result.agents);
    result.agents_len = 2;
    result.agents[0] = (struct result_agent){.name = "leader",
                                             .role = "load",
                                             .qps = 100,
                                             .capacity = 5000,
                                             .elapsed_s = 2.5,
                                             .offered = 250,
                                             .achieved = 240,
                                             .adherence = 0.99,
                                             .busy = 0.5,
                                             .requests = 250,
                                             .p50 = {51000, false},
                                             .p99 = {99000, true},
                                             .lag_p99 = 4000,
                                             .tail_share = 0.9,
                                             .share = 0.4,
                                             .intervals = 3,
                                             .is_lost = is_lost,
                                             .why = "gone"};
    result.agents[1] = (struct result_agent){.name = "other:1",
                                             .role = "observe",
                                             .observed = 2,
                                             .samples = 9,
                                             .start_error = 1500,
                                             .clock_bound = 2500,
                                             .behind = 3500};
    result.loss = (struct result_loss){.has_happened = is_lost,
                                       .headline_s = 1.5,
                                       .after_s = 1,
                                       .after_offered = 100,
                                       .after_achieved = 90};
}

static void
put(FILE *out, const char *name, const char *text, size_t len)
{
    fprintf(out, "==== %s\n", name);
    const char *version = strstr(text, VERSION_MEMBER);
    if (version != NULL) { /* which is another one in each release */
        fwrite(text, 1, (size_t)(version - text), out);
        len -= (size_t)(version + strlen(VERSION_MEMBER) - text);
        text = version + strlen(VERSION_MEMBER);
    }
    fwrite(text, 1, len, out);
}

#define PUT(name, call)                                                                  \
    do {                                                                                 \
        char *text_;                                                                     \
        size_t len_;                                                                     \
        FILE *to = open_memstream(&text_, &len_);                                        \
        call;                                                                            \
        fclose(to);                                                                      \
        put(out, name, text_, len_);                                                     \
        free(text_);                                                                     \
    } while (0)

static void
put_all(FILE *out)
{
    char name[] = "mcload", secret[] = "-Phidden \"\xff\"";
    char *argv[] = {name, secret, NULL};
    PUT("json", report_json(&result, &options, 2, argv, to));
    PUT("summary", report_summary(&result, true, to));
    for (unsigned verbose = 0; verbose < 2; verbose++) {
        options.verbose = verbose;
        PUT("text", report_text(&result, &options, to));
    }
    PUT("mutilate", report_mutilate(&result, &options, to));
    PUT("csv head", report_csv_head(&options, to));
    PUT("csv rows", report_csv_rows(&result, &options, 123, to));
    PUT("hgrm", report_hgrm(&result, FROM_INTENDED, to));
    for (unsigned format = FORMAT_TEXT; format <= FORMAT_CSV; format++) {
        options.format = (enum options_format)format;
        PUT("scan head", report_scan_head(&options, to));
        PUT("scan row", report_scan_row(&result, &options, 345, to));
    }
    options.format = FORMAT_TEXT;
    options.scan.is_given = true;
    PUT("csv head of a scan", report_csv_head(&options, to));
    PUT("csv rows of a scan", report_csv_rows(&result, &options, 123, to));
}

static void
parse(const char *const *words, unsigned count)
{
    static char copies[16][64]; /* which the options point into */
    char *argv[17] = {NULL};
    for (unsigned i = 0; i < count; i++) {
        snprintf(copies[i], sizeof copies[i], "%s", words[i]);
        argv[i] = copies[i];
    }
    ck_assert(options_parse(&options, (int)count, argv, stderr));
    options.seed = 42;
}

/* An open loop of one class, of which everything is told. */
static void
put_lone(FILE *out)
{
    static const char *const words[] = {"mcload",
                                        "-s",
                                        "a:1,b:2",
                                        "-q",
                                        "400",
                                        "-t",
                                        "2.5",
                                        "--env-report",
                                        "--interval=1",
                                        "--by-size",
                                        "--slo=p99:500us",
                                        "--until=p99:5%,n:10",
                                        "--percentiles=50,95,99,99.9"};
    static struct until until;
    parse(words, sizeof words / sizeof words[0]);
    result_init(&result, 1, 1);
    result_init(&result.classes[0], 1, 0);
    ck_assert_ptr_null(until_parse(&until, "p99:5%,p50:1%,n:10"));
    struct result *c = &result.classes[0];
    c->name = "all";
    c->is_open = true;
    c->hits_expected = 1;
    c->slo = options.classes[0].slo;
    make_series(c);
    make_evenness(c);
    result_add_class(&result, c, 0);
    result.gap_each = 2;
    result.series = c->series;
    result.evenness = c->evenness;
    c->series = NULL;
    c->evenness = NULL;
    c->series = result.series;
    make_servers();
    make_search();
    env.count = 0;
    machine_add(&env, "kernel", "Linux \"1\"");
    machine_add(&env, "governor", "performance\n");
    result.env = &env;
    result.until = &until;
    result.is_until_met = true;
    result.is_local = true;
    result.has_steal = true;
    result.steal = 0.05;
    result.peak_qps = 12345.6;
    result.warmup = (struct result_warmup){true, true, 1.5, 0.25};
    result.began_s = 1764000000.25;
    result.phases[PHASE_LOAD] = (struct result_span){0, 0.5};
    result.phases[PHASE_MEASURE] = (struct result_span){0.5, 3};
    result.evictions = (struct server_evictions){true, true, 17, 3};
    result_judge(&result);
    put_all(out);
    PUT("from issue", (result.from = FROM_ISSUE, report_summary(&result, false, to)));
    result.series = NULL;
    result_fini(&result);
    options_fini(&options);
}

/* Two classes of a swarm that lost an agent, with requests that were never answered. */
static void
put_classes(FILE *out)
{
    static const char *const words[] = {"mcload",
                                        "-U",
                                        "me",
                                        "-P",
                                        "hidden",
                                        "--class=small:{qps=100 slo=p50:1us}",
                                        "--class=large:{update=1}"};
    parse(words, sizeof words / sizeof words[0]);
    result_init(&result, CLASSES, CLASSES);
    for (unsigned i = 0; i < CLASSES; i++) {
        struct result *c = &result.classes[i];
        result_init(c, 1, 0);
        count_requests(c, 100);
        c->name = options.classes[i].name;
        c->is_open = i == 0;
        c->slo = options.classes[i].slo;
        c->hits_expected = 0.5;
        struct counters *t = &c->total;
        for (unsigned e = 0; e < COUNTERS_ERRORS; e++) {
            ctr_add(&t->errors[e], e + i);
        }
        for (unsigned n = 0; n < 40; n++) {
            counters_censored(t, &t->unanswered[COUNTERS_READ], n * NSEC_PER_MSEC);
        }
        counters_censored(t, &t->skipped, NSEC_PER_MSEC);
        counters_censored(t, &t->unsent, NSEC_PER_MSEC);
        counters_censored(t, &t->lost[COUNTERS_READ], NSEC_PER_MSEC);
        ctr_add(&t->closed, 2);
        ctr_add(&t->unserved, 1);
        result_add_class(&result, c, i);
    }
    result.was_interrupted = true;
    make_agents(true);
    result.warmup = (struct result_warmup){true, false, 1.5, 0};
    result_judge(&result);
    put_all(out);
    result.has_shown = true;
    result.shown = 1;
    PUT("shown", report_text(&result, &options, to));
    make_agents(false);
    PUT("agents", report_text(&result, &options, to));
    result_fini(&result);
    options_fini(&options);
}

/* A closed loop in which nothing was answered. */
static void
put_empty(FILE *out)
{
    static const char *const words[] = {"mcload"};
    parse(words, 1);
    result_init(&result, 1, 1);
    result_init(&result.classes[0], 1, 0);
    result.classes[0].name = "all";
    result_add_class(&result, &result.classes[0], 0);
    result_judge(&result);
    put_all(out);
    result_fini(&result);
    options_fini(&options);
}

TEST(test_golden)
{
    char *text, path[512];
    size_t len;
    FILE *out = open_memstream(&text, &len);
    put_lone(out);
    put_classes(out);
    put_empty(out);
    fclose(out);
    const char *top = getenv("TOP_SRCDIR"), *golden = getenv("GOLDEN");
    snprintf(path, sizeof path, "%s/t/unit/golden/report.txt", top != NULL ? top : "..");
    FILE *f = fopen(path, golden != NULL ? "w" : "r");
    ck_assert_msg(f != NULL, "%s", path);
    if (golden != NULL) {
        ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    }
    size_t at = 0, line = 1;
    for (int c; golden == NULL && (c = fgetc(f)) != EOF; at++) {
        ck_assert_msg(at < len && (unsigned char)text[at] == c,
                      "%s: other from line %zu on: %.80s", path, line,
                      at < len ? text + at : "(end)");
        line += c == '\n' ? 1 : 0;
    }
    ck_assert(golden != NULL || at == len);
    fclose(f);
    free(text);
}
