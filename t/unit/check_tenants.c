/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Tenants of one worker, on fake time: each look at the clock takes two microseconds, so that a
 * small request takes some. Clients send the next request when they have the reply of the last one; the
 * kernel reports them in the order in which they became ready.
 */
#include "check_core.h"
#include "check_main.h"
#include "serve/prefix.h"

#define CLIENTS 1010
#define BATCH 64
#define FEW 10
#define BIG_BYTES 20000

/* Keys of addresses; 0: none. */
#define PEER_MANY UINT64_C(0x1111111111)
#define PEER_FEW UINT64_C(0x2222222222)

static struct sim sim;
static struct prefixes prefixes;
static struct client clients[CLIENTS];
static const char *says[CLIENTS];
static unsigned ready[CLIENTS], first, waiting;
static uint64_t served[2];

static struct fair_table *
table(void)
{
    return atomic_load(&sim.core.tenants.table);
}

static void
get_ready(unsigned i)
{
    struct client *c = &clients[i];
    c->input.len = c->fed = c->sent.len = 0;
    client_says(c, says[i]);
    ready[(first + waiting++) % CLIENTS] = i;
}

static void
open_client(unsigned i, uint64_t peer, const char *request)
{
    client_open(&clients[i], &sim, peer);
    says[i] = request;
    get_ready(i);
}

static void
store(const char *key, unsigned bytes)
{
    static char value[BIG_BYTES + 1];
    memset(value, 'x', bytes);
    value[bytes] = '\0';
    struct client c;
    char line[64];
    client_open(&c, &sim, 0);
    snprintf(line, sizeof line, "set %s 0 0 %u\r\n", key, bytes);
    client_says(&c, line);
    client_says(&c, value);
    client_says(&c, "\r\n");
    sim_pass(&sim, &c, 1);
    sim_settle(&sim);
    expect(sent_is(&c, "STORED\r\n"));
    client_close(&c);
}

static void
set_up(void)
{
    sim_open(&sim, NULL, true);
    prefixes_init(&prefixes, ':', false, 1);
    sim.core.env.prefixes = &prefixes;
    memset(clients, 0, sizeof clients);
    first = waiting = 0;
    served[0] = served[1] = 0;
    store("a", 10);
    store("big", BIG_BYTES);
    sim_tick = 2 * NSEC_PER_USEC;
}

static void
tear_down(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (clients[i].pump.core != NULL) {
            client_close(&clients[i]);
        }
    }
    prefixes_fini(&prefixes);
    sim_close(&sim);
}

FIXTURE(set_up, tear_down);

static void
be_fair(enum fair_by by)
{
    tenants_set(&sim.shared, by);
    tenants_apply(&sim.core);
}

/* A pass of the loop, and what clients do behind it. The last FEW of them count apart. */
static void
pass(void)
{
    unsigned batch = waiting < BATCH ? waiting : BATCH;
    (void)!core_begin_pass(&sim.core);
    for (unsigned i = 0; i < batch; i++) {
        client_ready(&clients[ready[first]]);
        first = (first + 1) % CLIENTS;
        waiting--;
    }
    core_serve(&sim.core);
    core_end_pass(&sim.core);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (clients[i].end == END_INPUT && clients[i].sent.len > 0 &&
            !work_is_queued(&clients[i].pump.work)) {
            served[i >= CLIENTS - FEW]++;
            get_ready(i);
        }
    }
}

static void
run(unsigned passes)
{
    while (passes-- > 0) {
        pass();
    }
}

static void
open_all(const char *many, const char *few)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        bool is_few = i >= CLIENTS - FEW;
        open_client(i, is_few ? PEER_FEW : PEER_MANY, is_few ? few : many);
    }
}

/* Of the time that deferred turns took. */
static double
time_share(uint32_t key)
{
    struct fair_report report;
    uint64_t all = 0, its = 0;
    for (unsigned i = 0; i < FAIR_TENANTS; i++) {
        if (fair_report_of(table(), i, &report)) {
            all += report.used_ns;
            its += report.key == key ? report.used_ns : 0;
        }
    }
    return (double)its / (double)all;
}

static uint32_t
key_of(uint64_t peer)
{
    return (uint32_t)(peer ^ peer >> 32);
}

/* The requests of many over those of few, in rounds behind those that settle it. */
static double
ratio_behind(void (*run_rounds)(unsigned), unsigned settling, unsigned rounds)
{
    run_rounds(settling);
    served[0] = served[1] = 0;
    run_rounds(rounds);
    return (double)served[0] / (double)served[1];
}

/* ---- time ------------------------------------------------------------------------------ */

TEST(without_it_connections_count)
{
    open_all("get a\r\n", "get a\r\n");
    run(2000);
    ck_assert_uint_gt(served[0], 50 * served[1]);
}

TEST(small_requests_of_many_connections_and_of_few)
{
    be_fair(FAIR_PEER);
    open_all("get a\r\n", "get a\r\n");
    expect_between(ratio_behind(run, 100, 4000), .97, 1.03);
    expect_between(time_share(key_of(PEER_FEW)), .47, .53);
}

/* Whole and partial replies count by the time that they take. */
TEST(large_values_beside_large_values)
{
    be_fair(FAIR_PEER);
    open_all("get big\r\n", "get big\r\n");
    expect_between(ratio_behind(run, 1000, 4000), .95, 1.05);
}

TEST(one_tenant_waits_for_nobody)
{
    be_fair(FAIR_PEER);
    for (unsigned i = 0; i < 500; i++) {
        open_client(i, PEER_MANY, "get a\r\n");
    }
    run(500);
    ck_assert_uint_eq(ctr_get(&sim.core.tenants.deferred), 0);
    ck_assert_uint_eq(ctr_get(&sim.core.classes[CLASS_SMALL].queued), 0);
}

/* As many as a pass serves where they are read. */
TEST(few_connections_wait_for_nobody)
{
    be_fair(FAIR_PEER);
    for (unsigned i = 0; i < TENANTS_INLINE; i++) {
        open_client(i, i % 2 ? PEER_MANY : PEER_FEW, "get a\r\n");
    }
    run(500);
    ck_assert_uint_eq(ctr_get(&sim.core.tenants.deferred), 0);
}

TEST(prefixes_are_tenants)
{
    be_fair(FAIR_PREFIX);
    open_all("get many:1\r\n", "get few:1\r\n");
    expect_between(ratio_behind(run, 100, 2000), .97, 1.03);
    struct fair_report report;
    struct slice key = {"few:1", 5};
    uint64_t hash;
    ck_assert(prefixes_cut(&prefixes, &key, &hash));
    ck_assert(fair_report_of(table(), fair_place(table(), key_of(hash)), &report));
    ck_assert_str_eq(report.name, "few");
}

TEST(it_ends_when_it_is_switched_off)
{
    be_fair(FAIR_PEER);
    open_all("get a\r\n", "get a\r\n");
    run(100);
    be_fair(FAIR_OFF);
    run(1000); /* what was queued is served */
    uint64_t deferred = ctr_get(&sim.core.tenants.deferred);
    run(1000);
    ck_assert_uint_eq(ctr_get(&sim.core.tenants.deferred), deferred);
    ck_assert_uint_eq(sim.core.queue.sched.length, 0);
    struct fair_report report;
    for (unsigned i = 0; i < FAIR_TENANTS; i++) {
        ck_assert(!fair_report_of(table(), i, &report) || report.waiting == 0);
    }
}

/* ---- tokens ---------------------------------------------------------------------------- */

/* Sleeps until there are tokens, again and again. */
static void
run_limited(unsigned rounds)
{
    while (rounds-- > 0) {
        if (sim.core.admission.is_armed && waiting == 0 &&
            sim.core.admission.wake_at > sim_now) {
            sim_now = sim.core.admission.wake_at;
            admission_wake(&sim.core);
        }
        pass();
    }
}

static void
limit_to(uint64_t rate)
{
    struct limiter_rule rule = {.rate = rate, .burst = 1};
    limiter_set_total(&sim.shared.limiter, rule, sim_now);
}

TEST(tokens_are_shared)
{
    be_fair(FAIR_PEER);
    limit_to(1000);
    open_all("get a\r\n", "get a\r\n");
    expect_between(ratio_behind(run_limited, 300, 3000), .99, 1.01);
    ck_assert_uint_gt(served[1], 500);
}

TEST(tokens_without_it_go_by_connections)
{
    limit_to(1000);
    open_all("get a\r\n", "get a\r\n");
    run_limited(3000);
    ck_assert_uint_gt(served[0], 50 * served[1]);
}

/* A client that has more requests behind the one that has waited takes no tokens before others. */
TEST(pipelined_requests_wait_their_turn)
{
    be_fair(FAIR_PEER);
    limit_to(1000);
    open_all("get a\r\nget a\r\nget a\r\nget a\r\n", "get a\r\n");
    run_limited(3000);
    struct fair_report many, few;
    ck_assert(fair_report_of(table(), fair_place(table(), key_of(PEER_MANY)), &many));
    ck_assert(fair_report_of(table(), fair_place(table(), key_of(PEER_FEW)), &few));
    expect_between((double)many.tokens / (double)few.tokens, .99, 1.01);
}

/* A wait for tokens of an address alone is its tenant's, too. */
TEST(tokens_of_addresses_are_counted)
{
    be_fair(FAIR_PEER);
    limiter_set_peer(&sim.shared.limiter, (struct limiter_rule){.rate = 100, .burst = 1},
                     sim_now);
    open_all("get a\r\n", "get a\r\n");
    run_limited(3000);
    struct fair_report many, nobody;
    ck_assert(fair_report_of(table(), fair_place(table(), key_of(PEER_MANY)), &many));
    ck_assert_uint_gt(many.tokens, 0);
    ck_assert(!fair_report_of(table(), 0, &nobody) || nobody.tokens == 0);
}

TEST(classes_share_tokens)
{
    be_fair(FAIR_CLASS);
    limit_to(1000);
    open_all("get a\r\n", "delete b\r\n");
    expect_between(ratio_behind(run_limited, 300, 3000), .99, 1.01);
}
