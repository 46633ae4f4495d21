/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a swarm decides: shares of the rate, offsets of clocks, leases, what may be loaded.
 */
#include <arpa/inet.h>

#include "base/rng.h"
#include "check_main.h"
#include "loadgen/options/options.h"
#include "loadgen/options/scope.h"
#include "loadgen/swarm/allow.h"
#include "loadgen/swarm/greet.h"
#include "loadgen/swarm/leader/align.h"
#include "loadgen/swarm/leader/share_out.h"
#include "loadgen/swarm/message.h"

#define SEC NSEC_PER_SEC
#define US NSEC_PER_USEC

/* ---- capacities ---------------------------------------------------------------------- */

/* Three processes that send one class, whose rate is shared out. */
static void
shares_are(struct members *m, uint64_t a, uint64_t b, uint64_t c)
{
    const struct run_spec spec = {.rates = (double[]){1000}};
    ck_assert_int_eq(share_out(m, &spec), EXIT_VALID);
    ck_assert_uint_eq(m->all[0].rates[0], a);
    ck_assert_uint_eq(m->all[1].rates[0], b);
    ck_assert_uint_eq(m->all[2].rates[0], c);
}

TEST(shares_by_capacity)
{
    static struct options o = {.classes_len = 1};
    static struct member all[3];
    static uint64_t rates[3];
    static double known[3];
    struct members m = {.options = &o, .all = all, .count = 3};
    for (unsigned i = 0; i < 3; i++) {
        all[i] = (struct member){.classes = 1,
                                 .weight = i == 1 ? 3 : 1,
                                 .state = MEMBER_DONE,
                                 .rates = &rates[i],
                                 .capacities = &known[i]};
    }
    shares_are(&m, 200, 600, 200); /* nothing is known */
    memcpy(known, (double[]){3e6, 1e6, 4e6}, sizeof known);
    shares_are(&m, 375, 125, 500);
    ck_assert_uint_eq(all[1].slice.first, all[0].slice.end);
    ck_assert_uint_eq(all[2].slice.end, READER_ROUTES);
    all[2].state = MEMBER_LOST; /* it takes no part any more */
    shares_are(&m, 750, 250, 0);
}

/* ---- shares ------------------------------------------------------------------------- */

TEST(shares_by_largest_remainder)
{
    uint64_t shares[3];
    split_by_weight(10, (double[]){1, 1, 1}, 3, shares);
    ck_assert(shares[0] == 4 && shares[1] == 3 && shares[2] == 3);
    split_by_weight(100, (double[]){1, 2, 4}, 3, shares); /* 14.29 28.57 57.14 */
    ck_assert(shares[0] == 14 && shares[1] == 29 && shares[2] == 57);
    split_by_weight(7, (double[]){0, 1, 1}, 3, shares);
    ck_assert(shares[0] == 0 && shares[1] == 4 && shares[2] == 3);
    split_by_weight(0, (double[]){1, 2, 3}, 3, shares);
    ck_assert(shares[0] == 0 && shares[1] == 0 && shares[2] == 0);
}

TEST(shares_add_up)
{
    struct rng r = rng_of(7, 0);
    for (unsigned i = 0; i < 20000; i++) {
        double weights[20];
        uint64_t shares[20], sum = 0, total = rng_below(&r, 100000000);
        unsigned parts = 1 + (unsigned)rng_below(&r, 20);
        double all = 0;
        for (unsigned p = 0; p < parts; p++) {
            weights[p] = 1 + (double)rng_below(&r, 1000000);
            all += weights[p];
        }
        split_by_weight(total, weights, parts, shares);
        for (unsigned p = 0; p < parts; p++) {
            double exact = (double)total * weights[p] / all;
            sum += shares[p];
            expect((double)shares[p] > exact - 1.001 &&
                   (double)shares[p] < exact + 1.001);
        }
        expect(sum == total);
    }
}

/* ---- clocks ------------------------------------------------------------------------- */

/* An exchange at leader's time `at` with an agent whose clock is off by `offset`. */
static struct align_stamps
exchange(nsec_t at, int64_t offset, nsec_t there, nsec_t busy, nsec_t back)
{
    return (struct align_stamps){
        .sent = at,
        .heard = at + there + (nsec_t)offset,
        .answered = at + there + busy + (nsec_t)offset,
        .received = at + there + busy + back,
    };
}

TEST(the_shortest_way_counts)
{
    struct align a = {0};
    struct align_estimate e;
    ck_assert(!align_estimate(&a, &e));
    int64_t offset = -5 * (int64_t)SEC;
    struct align_stamps slow = exchange(100 * SEC, offset, 900 * US, 10 * US, 100 * US);
    struct align_stamps quick = exchange(101 * SEC, offset, 30 * US, 10 * US, 20 * US);
    ck_assert(align_add(&a, &slow) && align_estimate(&a, &e));
    ck_assert_int_le(llabs((long long)(e.offset - offset)), (int64_t)e.bound);
    ck_assert_uint_eq(e.way_max, 1000 * US);
    ck_assert(align_add(&a, &quick) && align_add(&a, &slow) && align_estimate(&a, &e));
    ck_assert_int_le(llabs((long long)(e.offset - offset)), 6 * (int64_t)US);
    ck_assert_uint_le(e.bound, 26 * US);
    ck_assert_double_eq(e.drift, 0);
    nsec_t there = align_convert(&e, 200 * SEC);
    ck_assert_int_le(llabs((long long)(there - 195 * SEC)), (int64_t)e.bound);
}

TEST(impossible_stamps_are_left_out)
{
    struct align a = {0};
    struct align_estimate e;
    struct align_stamps s = exchange(SEC, 0, 10, 10, 10);
    s.received = s.sent - 1;
    ck_assert(!align_add(&a, &s));
    s = exchange(SEC, 0, 10, 10, 10);
    s.answered = s.heard - 1;
    ck_assert(!align_add(&a, &s));
    s = exchange(SEC, 0, 10, 10, 10);
    s.answered += SEC; /* busy for longer than the whole exchange */
    ck_assert(!align_add(&a, &s));
    ck_assert(!align_estimate(&a, &e));
}

/* 50 ppm fast; jitter of up to 20 us on ways of 100 us. */
TEST(drift_is_the_slope)
{
    struct align a = {0};
    struct align_estimate e;
    struct rng r = rng_of(1, 0);
    for (unsigned i = 0; i < 100; i++) {
        nsec_t at = (1000 + i) * SEC;
        int64_t offset = (int64_t)(i * 50 * US) + 7 * (int64_t)SEC;
        struct align_stamps s = exchange(at, offset, 50 * US + rng_below(&r, 20 * US), US,
                                         50 * US + rng_below(&r, 20 * US));
        ck_assert(align_add(&a, &s));
    }
    ck_assert(align_estimate(&a, &e));
    expect_between(e.drift, 49e-6, 51e-6);
    nsec_t there = align_convert(&e, 1099 * SEC);
    int64_t error = (int64_t)(there - 1106 * SEC - 99 * 50 * US);
    ck_assert_int_le(llabs((long long)error), 60 * (int64_t)US);
}

/* ---- leases ------------------------------------------------------------------------- */

TEST(a_lease_ends_unless_renewed)
{
    struct lease l = {0};
    lease_renew(&l, 10 * SEC);
    ck_assert(!lease_is_over(&l, 10 * SEC));
    ck_assert(!lease_is_over(&l, 13 * SEC - 1));
    ck_assert(lease_is_over(&l, 13 * SEC));
    lease_renew(&l, 11 * SEC);
    ck_assert(!lease_is_over(&l, 13 * SEC));
    lease_renew(&l, 9 * SEC); /* a word that was long on its way takes nothing back */
    ck_assert_uint_eq(lease_end(&l), 14 * SEC);
}

TEST(pauses_double)
{
    ck_assert_uint_eq(lease_pause(0), 0);
    ck_assert_uint_eq(lease_pause(1), LEASE_PAUSE_FIRST);
    ck_assert_uint_eq(lease_pause(2), 2 * LEASE_PAUSE_FIRST);
    ck_assert_uint_eq(lease_pause(4), 8 * LEASE_PAUSE_FIRST);
    /* A leader that has the key must not give up meanwhile, or the count would never end. */
    ck_assert_uint_le(2 * lease_pause(UINT32_MAX), GREET_TIME);
    ck_assert_uint_eq(lease_pause(50), LEASE_PAUSE_LAST);
    ck_assert_uint_eq(lease_pause(UINT32_MAX), LEASE_PAUSE_LAST);
}

/* ---- what may be loaded ------------------------------------------------------------- */

static const char *
ask(const struct allow *a, const char *host, unsigned port)
{
    uint8_t ip[IPNET_BYTES] = {[10] = 0xff, [11] = 0xff};
    if (inet_pton(AF_INET, host, ip + 12) != 1) {
        ck_assert_int_eq(inet_pton(AF_INET6, host, ip), 1);
    }
    return allow_ip(a, ip, (uint16_t)port);
}

TEST(only_this_machine_at_first)
{
    struct allow a;
    allow_loopback(&a);
    ck_assert_ptr_null(ask(&a, "127.0.0.1", 11211));
    ck_assert_ptr_null(ask(&a, "127.3.2.1", 80));
    ck_assert_ptr_null(ask(&a, "::1", 11211));
    ck_assert_str_eq(ask(&a, "10.0.0.1", 11211), "is outside what the agent allows");
    ck_assert_ptr_nonnull(ask(&a, "::2", 11211));
    ck_assert_ptr_nonnull(allow_path(&a, "/tmp/s"));
}

TEST(networks_and_ports)
{
    static const char *const networks[] = {"10.1.0.0/16:11211", "10.2.3.4:100-200",
                                           "[fd00::]/8:11211",  "[fe80::1]:5",
                                           "fc00::/16",         "unix:/run/m.sock"};
    struct allow a = {0};
    expect_each(word, networks, allow_add(&a, word) == NULL);
    static const struct {
        const char *host;
        unsigned port;
    } good[] = {{"10.1.255.254", 11211}, {"10.2.3.4", 100}, {"10.2.3.4", 200},
                {"fd12::1", 11211},      {"fe80::1", 5},    {"fc00::77", 9}},
      bad[] = {{"10.1.255.254", 11212},
               {"10.3.0.1", 11211},
               {"10.2.3.4", 201},
               {"fd12::1", 80},
               {"127.0.0.1", 11211}};
    for (int i = 0; i < ROWS(good); i++) {
        ck_assert_msg(ask(&a, good[i].host, good[i].port) == NULL, "%s", good[i].host);
    }
    for (int i = 0; i < ROWS(bad); i++) {
        ck_assert_msg(ask(&a, bad[i].host, bad[i].port) != NULL, "%s", bad[i].host);
    }
    ck_assert_ptr_null(allow_path(&a, "/run/m.sock"));
    ck_assert_ptr_nonnull(allow_path(&a, "/run/m.sock2"));
}

TEST(never_many_at_once)
{
    struct allow a = {0};
    ck_assert_ptr_null(allow_add(&a, "0.0.0.0/0"));
    ck_assert_ptr_null(allow_add(&a, "::/0"));
    ck_assert_ptr_null(allow_add(&a, "10.1.2.0/24"));
    ck_assert_ptr_null(ask(&a, "10.1.2.3", 1));
    ck_assert_str_eq(ask(&a, "224.0.0.1", 1), "is a multicast address");
    ck_assert_str_eq(ask(&a, "239.255.255.255", 1), "is a multicast address");
    ck_assert_str_eq(ask(&a, "ff02::1", 1), "is a multicast address");
    ck_assert_str_eq(ask(&a, "255.255.255.255", 1), "is a broadcast address");
    ck_assert_str_eq(ask(&a, "10.1.2.255", 1), "is a broadcast address");
    ck_assert_str_eq(ask(&a, "0.0.0.0", 1), "is no address of a server");
    ck_assert_str_eq(ask(&a, "::", 1), "is no address of a server");
}

TEST(networks_that_are_none)
{
    static const char *const wrong[] = {
        "",     "unix:",   "1.2.3.4:",    "10.0.0.0/8:",  "unix:relative",
        "x",    "[::1]:",  "1.2.3.4:x",   "1.2.3.4:9-8",  "1.2.3.4:1-2-3",
        "[]",   "[::1]x",  "1.2.3.4:-8",  "10.0.0.0/8:0", "1.2.3.4:99999999999",
        "[::1", "1.2.3:4", "10.0.0.0/33", "1.2.3.4:70000"};
    struct allow a = {0};
    expect_each(word, wrong, allow_add(&a, word) != NULL);
    ck_assert_uint_eq(a.count, 0);
    for (unsigned i = 0; i < ALLOW_RULES_MAX; i++) {
        ck_assert_ptr_null(allow_add(&a, "10.0.0.1"));
    }
    ck_assert_str_eq(allow_add(&a, "10.0.0.1"), "too many networks");
}

TEST(limits)
{
    struct allow_limits none = {0}, caps = {1000, 10, 5};
    struct allow_limits d = {1000, 10, 5};
    ck_assert_ptr_null(allow_within(&caps, &d));
    ck_assert_ptr_null(allow_within(&none, &(struct allow_limits){0, 1e6, 1e6}));
    d.qps = 1000.5;
    ck_assert_str_eq(allow_within(&caps, &d),
                     "more requests a second than the agent allows "
                     "(--agent-max-qps=1000)");
    d.qps = 0;
    ck_assert_str_eq(allow_within(&caps, &d),
                     "a closed loop, which may send more than the agent allows "
                     "(--agent-max-qps=1000)");
    d = (struct allow_limits){1, 11, 5};
    ck_assert_str_eq(allow_within(&caps, &d),
                     "more connections than the agent allows (--agent-max-conns=10)");
    d = (struct allow_limits){1, 1, 5.1};
    ck_assert_str_eq(allow_within(&caps, &d),
                     "a longer run than the agent allows (--agent-max-time=5s)");
}

static const struct {
    const char *name, *value;
    enum scope use;
} words[] = {
    {"noload", NULL, SCOPE_SHARED},
    {"qps", "1000", SCOPE_SHARED},
    {"schedule", "ramp:1:2:3", SCOPE_SHARED},
    {"schedule", "file:/etc/passwd", SCOPE_FILE},
    {"qps-function", "file:/etc/passwd", SCOPE_FILE},
    {"arrivals", "exponential", SCOPE_SHARED},
    {"arrivals", "gaps:/etc/passwd", SCOPE_FILE},
    {"arrivals", "times:/etc/passwd", SCOPE_FILE},
    {"iadist", "times:x", SCOPE_FILE},
    {"popularity", "cdf:x", SCOPE_FILE},
    {"valuesize", "file:x", SCOPE_FILE},
    {"keysize", "mix:1*fixed:3+2*file:x", SCOPE_FILE},
    {"think", "file:x", SCOPE_FILE},
    {"session", "file:x", SCOPE_FILE},
    {"expiry", "file:x", SCOPE_FILE},
    {"requests-per-connection", "file:x", SCOPE_FILE},
    {"popularity", "uniform:file:x", SCOPE_FILE},
    {"on-miss", "set-after:file:x", SCOPE_FILE},
    {"key-prefix", "profile:", SCOPE_SHARED},
    {"key-prefix", "file:", SCOPE_SHARED},
    {"server", "userprofile:11211", SCOPE_SHARED},
    {"class", "profile:{key-prefix=file:}", SCOPE_SHARED},
    {"auth-file", "x", SCOPE_HOST},
    {"servers-file", "x", SCOPE_LEADER},
    {"tls-key", "x", SCOPE_HOST},
    {"engine", "epoll", SCOPE_HOST},
    {"agent-max-qps", "1", SCOPE_AGENT},
    {"workload", "etc", SCOPE_SHARED},
    {"workload", "/etc/passwd", SCOPE_FILE},
    {"workload", "passwd", SCOPE_FILE},
    {"workload", NULL, SCOPE_FILE},
    {"workload", "text:keysize=20;ops=get:1", SCOPE_SHARED},
    {"workload", "text:valuesize=file:x", SCOPE_FILE},
    {"workload", "xtext:keysize=20", SCOPE_FILE},
    {"class", "a:{workload=text:keysize=20;ops=get:1}", SCOPE_SHARED},
    {"class", "a:{workload=text:popularity=cdf:x}", SCOPE_FILE},
    {"antagonist", "flood", SCOPE_SHARED},
    {"roundrobin", NULL, SCOPE_SHARED},
    {"warmup-drain", "1", SCOPE_SHARED},
    {"trace", "x", SCOPE_SHARED},
    {"password", "x", SCOPE_SECRET},
    {"json", "x", SCOPE_LEADER},
    {"auth_file", "x", SCOPE_UNKNOWN},
    {"", NULL, SCOPE_UNKNOWN},
    {"class", "a:{--depth=4 getcount=5}", SCOPE_SHARED},
    {"class", "a:{depth=4\nauth-file=/etc/passwd}", SCOPE_FILE},
    {"class", "a:{depth=4 --auth_file=x}", SCOPE_FILE},
    {"class", "a:{arrivals=times:x}", SCOPE_FILE},
    {"class", "a:{depth=4 password=x}", SCOPE_SECRET},
    {"class", "a:{workload=ycsb:a}", SCOPE_SHARED},
    {"class", "a:{depth=4 workload=/etc/passwd}", SCOPE_FILE},
    {"class", "a:{--workload=passwd}", SCOPE_FILE},
    {"class", "a:{--antagonist=flood }", SCOPE_SHARED},
    {"class", "a:{depth=4 json=x}", SCOPE_UNKNOWN},
    {"class", "a:{-d 4}", SCOPE_UNKNOWN},
    {"class", "a:{--depth 4 noload}", SCOPE_SHARED},
    {"class", "a:{--valuesize file:x}", SCOPE_FILE},
    {"class", "a:{--depth}", SCOPE_UNKNOWN},
    {"class", "a", SCOPE_UNKNOWN},
    {"class", NULL, SCOPE_UNKNOWN},
};

TEST_ROWS(words_that_agents_take, words, row->name)
{
    ck_assert_msg(scope_of(row->name, row->value) == row->use, "%s=%s", row->name,
                  row->value);
}

/* No option is forgotten: what the command line knows, the swarm has an answer to. */
TEST(each_option_is_somebodys)
{
    const struct opt_table *t = options_table();
    ck_assert_uint_gt(t->count, 50);
    for (size_t i = 0; i < t->count; i++) {
        const struct opt *row = &t->rows[i];
        if (row->name == NULL && row->letter == 'h') {
            continue;
        }
        ck_assert_msg(row->name != NULL, "-%c has no long name", row->letter);
        const char *value = strcmp(row->name, "class") == 0      ? "a:{depth=1}"
                            : strcmp(row->name, "workload") == 0 ? "etc"
                            : row->arg != NULL                   ? "1"
                                                                 : NULL;
        if (row->kind == OPT_REFUSE) {
            continue;
        }
        ck_assert_msg(scope_of(row->name, value) != SCOPE_UNKNOWN, "--%s has no scope",
                      row->name);
    }
}

/* Each class has all of them for itself. */
TEST(options_of_classes_travel)
{
    const struct opt_table *t = options_class_table();
    for (size_t i = 0; i < t->count; i++) {
        const struct opt *row = &t->rows[i];
        char text[128];
        if (row->kind == OPT_REFUSE) {
            continue;
        }
        if (scope_of(row->name, "etc") == SCOPE_SHARED) {
            snprintf(text, sizeof text, row->arg != NULL ? "a:{--%s=etc}" : "a:{%s}",
                     row->name);
            ck_assert_msg(scope_of("class", text) == SCOPE_SHARED, "%s", text);
        } else {
            enum scope use = scope_of(row->name, "etc");
            ck_assert_msg(use == SCOPE_SECRET || use == SCOPE_HOST || use == SCOPE_FILE,
                          "--%s of a class stays behind", row->name);
        }
    }
}
