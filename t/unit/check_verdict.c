/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a client can do wrong is told from what it may: the law of its gaps, Little's law,
 * stolen time, and the limits of the checks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "check_main.h"
#include "loadgen/measure/check.h"
#include "loadgen/measure/cost.h"
#include "loadgen/measure/counters.h"
#include "loadgen/measure/gaps.h"
#include "loadgen/measure/little.h"
#include "loadgen/measure/machine.h"
#include "loadgen/measure/result.h"
#include "loadgen/measure/until.h"
#include "loadgen/work/arrivals.h"

#define RUNS 1000
#define REQUESTS 3000

/* ---- arrivals ------------------------------------------------------------------------ */

static struct hist *intended, *issued;

static void
set_up(void)
{
    intended = hist_create(COUNTERS_SUB_BITS, COUNTERS_MAX_NS);
    issued = hist_create(COUNTERS_SUB_BITS, COUNTERS_MAX_NS);
    ck_assert(intended != NULL && issued != NULL);
}

static void
tear_down(void)
{
    hist_destroy(&intended);
    hist_destroy(&issued);
}

/* When a client sends what is meant for a time: it looks each `clump` ns, or, with 0, at
 * once; then up to `lag` ns later, never before the last one. */
struct client {
    nsec_t clump, lag;
};

static struct gaps_apart
send(const char *law_text, double rate, const struct client *client, uint64_t seed)
{
    struct arrivals_law law;
    struct arrivals arrival;
    struct gaps meant = {.each = gaps_each(rate)}, sent = {.each = gaps_each(rate)};
    nsec_t last = 0;
    ck_assert_ptr_null(arrivals_parse(&law, law_text));
    struct arrivals_conf conf = {.law = &law,
                                 .rate = rate,
                                 .start = NSEC_PER_SEC,
                                 .seed = seed,
                                 .sources = 1,
                                 .every = 1};
    arrivals_init(&arrival, &conf);
    struct rng rng = rng_of(seed, 99);
    hist_reset(intended);
    hist_reset(issued);
    for (unsigned i = 0; i < REQUESTS; i++) {
        nsec_t when = arrivals_next(&arrival), at = when;
        at += client->clump > 0 ? client->clump - when % client->clump : 0;
        at += client->lag > 0 ? rng_below(&rng, client->lag) : 0;
        last = at > last ? at : last;
        gaps_note(&meant, intended, when);
        gaps_note(&sent, issued, last);
    }
    arrivals_fini(&arrival);
    arrivals_law_fini(&law);
    return gaps_compare(intended, issued, meant.each);
}

static const struct {
    const char *law;
    double rate;
} streams[] = {
    {"exponential", 500}, {"exponential", 5000}, {"exponential", 50000},
    {"exponential", 4e5}, {"fixed", 1000},       {"fixed", 20000},
    {"fb_ia", 20000},     {"bursty", 10000},     {"gamma:4", 30000},
};

static double
limit(void)
{
    struct check_limits l;
    check_limits_init(&l);
    return l.limit[CHECK_ARRIVALS];
}

FIXTURE(set_up, tear_down);

/* Late by the slack of the kernel's timers, and sends together what became due meanwhile:
 * not once in 1000 runs is that held against it, though p is as good as nothing. */
TEST_ROWS(test_correct_clients_pass, streams, row->law)
{
    static const struct client client = {.clump = 0, .lag = 60 * NSEC_PER_USEC};
    unsigned refused = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct gaps_apart g = send(row->law, row->rate, &client, seed);
        ck_assert_int_eq(g.is_known, REQUESTS / gaps_each(row->rate) > GAPS_LEAST);
        refused += g.is_known && g.apart > limit() ? 1 : 0;
    }
    ck_assert_msg(refused == 0, "%s at %.0f: %u of %u refused", row->law, row->rate,
                  refused, RUNS);
}

/* One that looks every so often sends in clumps: each such run is refused. */
static const struct {
    double rate;
    nsec_t clump;
} clumps[] = {{1000, 5 * NSEC_PER_MSEC},
              {5000, NSEC_PER_MSEC},
              {20000, NSEC_PER_MSEC},
              {20000, 4 * NSEC_PER_MSEC},
              {100000, 2 * NSEC_PER_MSEC}};

TEST_ROWS(test_clumps_are_seen, clumps, NULL)
{
    const struct client client = {.clump = row->clump, .lag = 0};
    for (uint64_t seed = 1; seed <= RUNS / 10; seed++) {
        struct gaps_apart g = send("exponential", row->rate, &client, seed);
        ck_assert(g.is_known);
        ck_assert_msg(g.apart > limit(), "%.0f: %.3f", row->rate, g.apart);
        ck_assert_double_gt(g.scv_issued, 1.5);
    }
}

TEST(test_dispersion_and_chance)
{
    static const struct client exact = {0, 0};
    double exponential = 0, fixed = 0, seeds = 20;
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        struct gaps_apart g = send("exponential", 20000, &exact, seed);
        exponential += g.scv_issued / seeds;
        ck_assert_double_eq(g.apart, 0);
        ck_assert_double_eq(g.ks, 0);
        ck_assert_double_eq(g.p, 1);
        ck_assert_double_eq(g.scv_intended, g.scv_issued);
        fixed += send("fixed", 20000, &exact, seed).scv_issued / seeds;
    }
    ck_assert_double_eq_tol(exponential, 1, 0.1);
    ck_assert_double_lt(fixed, 0.001);
    /* Independent samples of one law: p is even between 0 and 1. */
    unsigned below = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng = rng_of(seed, 5);
        hist_reset(intended);
        hist_reset(issued);
        for (unsigned i = 0; i < 400; i++) {
            hist_record(intended, (uint64_t)(-log(rng_unit(&rng)) * 1e6));
            hist_record(issued, (uint64_t)(-log(rng_unit(&rng)) * 1e6));
        }
        below += gaps_compare(intended, issued, 1).p < 0.05 ? 1 : 0;
    }
    ck_assert_uint_le(below, 20);
}

/* ---- Little's law -------------------------------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_FORGOTTEN, /* one answer in ten is not taken off */
    FAULT_STAMP,     /* one in ten has a latency of ten times as much */
    FAULTS,
};

#define SERVERS_RATE 1.25e-6 /* a nanosecond; a load of 0.8 */

/* An M/M/1 queue, watched from its 1000th millisecond to its 5000th. */
static double
watch_queue(uint64_t seed, enum fault fault)
{
    struct little l = {0};
    struct little_sums s = {0};
    nsec_t start = NSEC_PER_SEC, end = 5 * NSEC_PER_SEC;
    double queue[4096], next_in = 0, next_out = INFINITY, sum = 0, good = 0;
    unsigned head = 0, waiting = 0, answers = 0;
    struct rng rng = rng_of(seed, 7);
    for (double now = 0; now < 6e9;) {
        now = fmin(next_in, next_out);
        s.at_edges += little_edges(&l, start, end, (nsec_t)now);
        s.on_their_way_ns += (double)little_pass(&l, start, end, (nsec_t)now);
        if (next_in <= next_out) {
            queue[(head + waiting++) % 4096] = now;
            l.count++;
            next_in = now - log(rng_unit(&rng)) / 1e-6;
            next_out = waiting == 1 ? now - log(rng_unit(&rng)) / SERVERS_RATE : next_out;
            continue;
        }
        double latency = now - queue[head];
        bool is_tenth = ++answers % 10 == 0;
        head = (head + 1) % 4096;
        waiting--;
        l.count -= is_tenth && fault == FAULT_FORGOTTEN ? 0 : 1;
        latency *= is_tenth && fault == FAULT_STAMP ? 10 : 1;
        s.answered += now >= (double)start && now < (double)end ? 1 : 0;
        if (now - latency >= (double)start && now - latency < (double)end) {
            sum += latency;
            good++;
            s.longest_ns = fmax(s.longest_ns, latency);
        }
        next_out = waiting > 0 ? now - log(rng_unit(&rng)) / SERVERS_RATE : INFINITY;
    }
    s.latency_ns = sum / good;
    return little_apart(&s);
}

TEST_LOOP(test_little, FAULTS)
{
    struct check_limits l;
    check_limits_init(&l);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double apart = watch_queue(seed, (enum fault)_i);
        ck_assert_msg((apart <= l.limit[CHECK_LITTLE]) == (_i == FAULT_NONE),
                      "seed %ju: %.4f apart", (uintmax_t)seed, apart);
    }
}

/* ---- steal --------------------------------------------------------------------------- */

TEST(test_steal)
{
    static const char first[] = "cpu  900 0 0 900 0 0 0 90 0 0\n"
                                "cpu0 100 0 0 100 0 0 0 10 50 0\n"
                                "cpu1 200 0 0 100 0 0 0 20 0 0\n"
                                "cpu12 7 0 0 0 0 0 0 3 0 0\n"
                                "intr 5 cpu0 1\n";
    static const char later[] = "cpu0 150 0 0 100 0 0 0 60 50 0\n"
                                "cpu1 300 0 0 100 0 0 0 20 0 0";
    struct steal a, b;
    cpu_set_t set;
    CPU_ZERO(&set);
    ck_assert(!steal_parse(&a, first, &set));
    CPU_SET(0, &set);
    CPU_SET(1, &set);
    ck_assert(steal_parse(&a, first, &set));
    ck_assert_uint_eq(a.stolen, 30);
    ck_assert_uint_eq(a.all, 530);
    ck_assert(steal_parse(&b, later, &set));
    ck_assert_double_eq_tol(steal_share(&a, &b), 48.0 / 200, 1e-9);
    ck_assert_double_eq(steal_share(&a, &a), 0);
    b.stolen = a.stolen + 2; /* a tick at either end */
    ck_assert_double_eq(steal_share(&a, &b), 0);
    CPU_SET(12, &set);
    ck_assert(steal_parse(&a, first, &set));
    ck_assert_uint_eq(a.stolen, 33);
    ck_assert(!steal_parse(&a, "", &set));
    ck_assert(!steal_parse(&a, "cpu", &set));
    ck_assert(!steal_parse(&a, "cpu99999999999 1", &set));
}

/* ---- limits -------------------------------------------------------------------------- */

TEST(test_limits)
{
    static const char *const wrong[] = {
        "",         "steal",     "steal:",          "nothing:1",  "steal:1x",
        "steal:-1", "steal:5%,", "answers:0",       "steal:%",    "interrupted:1",
        ":1",       "steal:nan", "agents_lost:off", "search:off", "steal:1e99"};
    /* What no run misses, or every one. */
    static const char *const counts[] = {"errors:1%", "verification:5%", "lateness:150%"};
    static const char *const shares[] = {"adherence_1ms:95", "client_cpu:101%",
                                         "stationarity:95", "steal:1.01"};
    struct check_limits l;
    expect_each(word, counts,
                strstr(check_limits_parse(&l, word), "a plain number") != NULL);
    expect_each(word, shares, strstr(check_limits_parse(&l, word), "a share") != NULL);
    ck_assert_ptr_null(check_limits_parse(&l, "stationarity:200%,adherence_1ms:100%"));
    ck_assert_double_eq(l.limit[CHECK_STEADY], 2);
    ck_assert_double_eq(l.limit[CHECK_ADHERENCE], 1);
    check_limits_init(&l);
    ck_assert_ptr_null(check_limits_parse(&l, "steal:5%,lateness:3,arrivals:off"));
    ck_assert_double_eq(l.limit[CHECK_STEAL], 0.05);
    ck_assert_double_eq(l.limit[CHECK_LATENESS], 3);
    ck_assert(!check_of(&l, CHECK_ARRIVALS, true, 1).applies);
    struct check c = check_of(&l, CHECK_STEAL, true, 0.06);
    ck_assert(c.applies && !c.is_good);
    ck_assert_double_eq(c.limit, 0.05);
    ck_assert(check_of(&l, CHECK_RATE, true, 0.99).is_good);
    expect_each(word, wrong, check_limits_parse(&l, word) != NULL);
    for (unsigned i = 0; i < CHECKS; i++) {
        ck_assert_ptr_nonnull(check_kinds[i].name);
    }
}

/* ---- until --------------------------------------------------------------------------- */

TEST(test_until_words)
{
    static const char *const wrong[] = {
        "",        "p99",     "99:2%",
        "p99:",    "p99:0",   "p100:2%",
        "p0:1",    "p99:2x",  "p99:2%,",
        "p99:-1",  "p:1",     "p99:%",
        "n:0",     "n:",      "n:-1",
        "n:x",     "n",       "n:1,",
        "p99:nan", "p99:1e9", "p1:1,p2:1,p3:1,p4:1,p5:1,p6:1,p7:1,p8:1,p9:1",
    };
    struct until u;
    ck_assert_ptr_null(until_parse(&u, "p99:2%,p50:0.01"));
    ck_assert_uint_eq(u.count, 2);
    ck_assert_double_eq_tol(u.wants[0].q, 0.99, 1e-12);
    ck_assert_double_eq_tol(u.wants[0].width, 0.02, 1e-12);
    ck_assert_double_eq_tol(u.wants[1].width, 0.01, 1e-12);
    expect_each(word, wrong, until_parse(&u, word) != NULL);
    until_auto(&u);
    ck_assert_uint_eq(u.count, 2);
    ck_assert_uint_eq(u.answers, 0);
    ck_assert_ptr_null(until_parse(&u, "n:2k"));
    ck_assert(u.count == 0 && u.answers == 2000 && until_is_given(&u));
    ck_assert_ptr_null(until_parse(&u, "p99:2%,n:7"));
    ck_assert(u.count == 1 && u.answers == 7 && until_is_given(&u));
}

static struct series *
start_series(struct counters *t)
{
    struct series *s = series_create(0, false);
    counters_init(t);
    series_start(s, NSEC_PER_SEC);
    return s;
}

static void
look(struct series *s, const struct counters *t, unsigned ms)
{
    series_look(s, &t, 1, NSEC_PER_SEC + ms * NSEC_PER_MSEC);
}

/* Exponential latencies, 1000 a look: n independent ones have an interval of p99 of
 * 2 z sqrt(.99/.01/n)/ln(100) of it, so 5 % take about 60,000 of them. */
TEST(test_until)
{
    struct until u;
    SCOPED(counters_fini) struct counters t;
    SCOPED(series_destroy) struct series *s = start_series(&t);
    unsigned looks = 0;
    ck_assert_ptr_null(until_parse(&u, "p99:5%"));
    struct rng rng = rng_of(3, 3);
    ck_assert(isinf(until_width(s, .99)));
    ck_assert(!until_is_met(&u, s));
    while (!until_is_met(&u, s) && looks < 1000) {
        for (unsigned i = 0; i < 1000; i++) {
            nsec_t ns = (nsec_t)(-log(rng_unit(&rng)) * 1e6);
            counters_good(&t, COUNTERS_READ, ns, ns, 1);
        }
        look(s, &t, ++looks * 50);
    }
    expect_between(looks, 25, 150);
    ck_assert_double_le(until_width(s, .99), 0.05);
}

/* With two in a hundred never answered p99 is one of them, whatever the others say; p95 is the p96.9
 * of the others. */
TEST(test_until_never_answered)
{
    SCOPED(counters_fini) struct counters t;
    SCOPED(series_destroy) struct series *s = start_series(&t);
    for (unsigned looks = 1; looks <= 100; looks++) {
        for (unsigned i = 0; i < 980; i++) {
            counters_good(&t, COUNTERS_READ, (i + 1) * 1000, 1, 1);
        }
        look(s, &t, looks * 50);
    }
    ck_assert_double_lt(until_width(s, .99), 0.05);
    for (unsigned i = 0; i < 100 * 20; i++) {
        counters_censored(&t, i % 2 == 0 ? &t.skipped : &t.unsent, NSEC_PER_SEC);
    }
    look(s, &t, 101 * 50);
    ck_assert(isinf(until_width(s, .99)));
    ck_assert_double_lt(until_width(s, .95), 0.05);
    for (unsigned i = 0; i < 100 * 31;
         i++) { /* p95 is just not one of them, its bound is */
        counters_censored(&t, &t.unsent, NSEC_PER_SEC);
    }
    look(s, &t, 102 * 50);
    ck_assert(isinf(until_width(s, .95)));
}

/* Errors count, but for those of the warm-up, and each kind of want has to be met. */
TEST(test_until_answers)
{
    struct until u;
    SCOPED(counters_fini) struct counters t;
    SCOPED(series_destroy) struct series *s = start_series(&t);
    ck_assert_ptr_null(until_parse(&u, "n:3"));
    ck_assert(!until_is_met(&u, s));
    ctr_add(&t.done[0], 2);
    look(s, &t, 50);
    ck_assert_uint_eq(until_answers(s), 2);
    ck_assert(!until_is_met(&u, s));
    ctr_add(&t.errors[COUNTERS_ERROR], 1);
    look(s, &t, 75);
    ck_assert_uint_eq(until_answers(s), 2);
    ctr_add(&t.errors[COUNTERS_ERROR], 1);
    ctr_add(&t.failed, 1);
    look(s, &t, 100);
    ck_assert(until_is_met(&u, s));
    ck_assert_ptr_null(until_parse(&u, "n:3,p99:5%"));
    ck_assert(!until_is_met(&u, s));
}

/* ---- the rate that was kept ------------------------------------------------------------ */

#define LOOKS 64 /* that long a run is */

/* Of a server that is offered so many requests between two looks and serves so many, besides those that
 * wait from before the first look, each so many looks later at the soonest, and none in the last `stall`.
 * No more than `limit` are sent at a time; the rest is counted in the end. */
static const struct {
    const char *what;
    uint64_t offered, served, before;
    unsigned later, stall;
    uint64_t limit;
    enum result_pace pace;
    uint64_t achieved;
} servers[] = {
    {"idle half of the time", 100, 200, 0, 0, 0, UINT32_MAX, PACE_KEPT, 100 * LOOKS},
    {"far away", 100, 200, 0, 16, 0, UINT32_MAX, PACE_KEPT, 100 * LOOKS},
    {"at its limit", 100, 100, 0, 1, 0, UINT32_MAX, PACE_KEPT, 100 * LOOKS},
    {"within a hundredth", 1009, 1000, 0, 0, 0, UINT32_MAX, PACE_KEPT, 1009 * LOOKS},
    {"beyond a hundredth", 1011, 1000, 0, 0, 0, UINT32_MAX, PACE_BEHIND, 1000 * LOOKS},
    {"overloaded", 54, 50, 0, 0, 0, UINT32_MAX, PACE_BEHIND, 50 * LOOKS},
    {"overloaded and far away", 54, 50, 0, 1, 0, UINT32_MAX, PACE_BEHIND,
     50 * (LOOKS - 1)},
    {"overloaded, few connections", 54, 50, 0, 0, 0, 20, PACE_BEHIND, 50 * LOOKS},
    {"stalls at the end", 50, 100, 0, 0, 3, UINT32_MAX, PACE_UNSURE, 50 * LOOKS},
    {"stops in the middle", 50, 100, 0, 0, 24, UINT32_MAX, PACE_BEHIND,
     50 * (LOOKS - 24)},
    {"stops after a backlog from before", 50, 100, 2000, 0, 24, UINT32_MAX, PACE_KEPT,
     50 * LOOKS},
};

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* All that was sent is answered in the end. */
TEST_ROWS(test_rate_kept, servers, row->what)
{
    SCOPED(result_fini) struct result r;
    result_init(&r, 1, 0);
    struct counters *t = &r.total;
    const struct counters *all[] = {t};
    r.is_open = true;
    r.series = series_create(0, false);
    series_start(r.series, 0);
    for (uint64_t i = 1; i <= LOOKS; i++) {
        uint64_t due = row->offered * i, done = counters_done(t);
        uint64_t sent = i > row->later ? row->offered * (i - row->later) : 0;
        uint64_t comes = row->before + sent - done;
        uint64_t served = i > LOOKS - row->stall ? 0 : least(row->served, comes);
        ctr_add(&t->done[COUNTERS_READ], served);
        uint64_t most = i < LOOKS ? done + served + row->limit : due;
        uint64_t offered = least(due, most);
        ctr_add(&t->unsent, i < LOOKS ? 0 : due - least(due, done + served + row->limit));
        ctr_add(&t->offered, offered - ctr_get(&t->offered));
        series_look(r.series, all, 1, i * NSEC_PER_SEC);
    }
    series_end(r.series);
    counters_good(t, COUNTERS_READ, 1, 1,
                  (unsigned)(ctr_get(&t->offered) - ctr_get(&t->unsent)));
    result_judge(&r);
    ck_assert_int_eq(r.pace, row->pace);
    ck_assert_uint_eq(result_achieved(&r), row->achieved);
    ck_assert(r.checks[CHECK_RATE].applies);
    ck_assert_int_eq(r.checks[CHECK_RATE].is_good, row->pace != PACE_BEHIND);
}

/* The whole run answers for its only class. */
TEST(test_reader_too_late)
{
    for (unsigned late = 0; late < 2; late++) {
        SCOPED(result_fini) struct result r;
        result_init(&r, 1, 1);
        result_init(&r.classes[0], 1, 0);
        r.classes[0].is_replay = true;
        counters_good(&r.classes[0].total, COUNTERS_READ, 1, 1, 1);
        ctr_add(&r.classes[0].total.starved, late);
        result_add_class(&r, &r.classes[0], 0);
        result_judge(&r);
        ck_assert(r.checks[CHECK_READER].applies);
        ck_assert_int_eq(r.checks[CHECK_READER].is_good, late == 0);
    }
}

/* ---- env ----------------------------------------------------------------------------- */

static void
put_file(const char *root, const char *path, const char *text)
{
    char command[1024], name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", name);
    ck_assert_int_eq(system(command), 0);
    FILE *f = fopen(name, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* NULL: not known. */
static const char *
find_fact(const struct machine *e, const char *name)
{
    for (unsigned i = 0; i < e->count; i++) {
        if (strcmp(e->facts[i].name, name) == 0) {
            return e->facts[i].value;
        }
    }
    return NULL;
}

TEST(test_env)
{
    static struct machine e;
    char root[SCRATCH_PATH], command[SCRATCH_PATH + 16];
    scratch_name(root, "env");
    ck_assert_ptr_nonnull(mkdtemp(root));
    put_file(root, "/proc/cpuinfo",
             "processor : 0\nmodel name\t: Some CPU @ 3 GHz\n"
             "flags\t: fpu hypervisor sse\nmodel name : other\n");
    put_file(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
             "powersave\n");
    put_file(root, "/sys/devices/system/cpu/vulnerabilities/a", "Mitigation: x\n");
    put_file(root, "/sys/devices/system/cpu/vulnerabilities/b", "Not affected\n");
    put_file(root, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put_file(root, "/sys/class/net/eth0/speed", "10000\n");
    machine_collect(&e, root);
    ck_assert_str_eq(find_fact(&e, "cpu_model"), "Some CPU @ 3 GHz");
    ck_assert_str_eq(find_fact(&e, "virtual"), "yes");
    ck_assert_str_eq(find_fact(&e, "governor"), "powersave");
    ck_assert_str_eq(find_fact(&e, "mitigations"),
                     "1 mitigated, 0 vulnerable, 1 not affected");
    ck_assert_str_eq(find_fact(&e, "cgroup_cpu_max"), "50000 100000");
    ck_assert_str_eq(find_fact(&e, "interfaces"), "eth0/10000");
    ck_assert_ptr_nonnull(find_fact(&e, "kernel"));
    ck_assert_ptr_null(find_fact(&e, "clocksource"));
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
    for (unsigned i = 0; i < 2 * MACHINE_FACTS_MAX; i++) {
        machine_add(&e, "more", "x");
    }
    ck_assert_uint_eq(e.count, MACHINE_FACTS_MAX);
}
