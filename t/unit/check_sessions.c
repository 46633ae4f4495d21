/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sessions, and servers that share the keys: what becomes of the rest when a request of a session, or a
 * part of a get, cannot be sent.
 */
#include "fixture_sources.h"

FIXTURE(set_up, tear_down);

/* ---- sessions -------------------------------------------------------------------------- */

/* Sessions of three requests, each when its user has had the reply before and thought. */
TEST(test_partly)
{
    dc.traffic.mode = TRAFFIC_PARTLY;
    dc.traffic.rate = 30;
    dc.traffic.session = dist_fixed(3);
    dc.traffic.think = dist_fixed(0.002);
    window.end = SIM_BEGIN + MS(1000);
    open_and_run();
    ck_assert_uint_ge(sim.log_len, 27);
    for (unsigned i = 0; i + 2 < sim.log_len; i += 3) {
        expect(sent_at(i + 1) == sent_at(i) + MS(5));
        expect(sent_at(i + 2) == sent_at(i) + MS(10));
        expect(i == 0 || sent_at(i) == sent_at(i - 3) + MS(100));
    }
    check_sums();
}

/* One of four requests each 5 ms. */
static void
set_sessions(void)
{
    dc.traffic.mode = TRAFFIC_PARTLY;
    dc.traffic.rate = 800;
    dc.traffic.session = dist_fixed(4);
    sim.delay = MS(1);
    dc.depth = 1;
    window.end = SIM_BEGIN + MS(1000);
}

/* What is dropped, or lost, is one request: those after it come nevertheless. */
TEST(test_partly_dropped)
{
    set_sessions();
    dc.traffic.late = LATE_DROP;
    sim.delay_of = stall;
    open_and_run();
    ck_assert_uint_gt(ctr_get(&counters.skipped), 3);
    ck_assert_uint_eq(ctr_get(&counters.offered), 4 * 200);
    check_sums();
}

TEST(test_partly_lost)
{
    set_sessions();
    dc.traffic.reconnect = RECONNECT_NOW;
    open_loop();
    for (unsigned i = 0; i < 2; i++) {
        sim.conns[i].hang_up_at = SIM_BEGIN + MS(49);
    }
    run();
    ck_assert_uint_gt(counters_sum(counters.lost), 0);
    ck_assert_uint_eq(ctr_get(&counters.offered), 4 * 200);
    check_sums();
}

/* ---- servers that share the keys ------------------------------------------------------- */

/* Requests go to the servers of their keys; one that cannot be reached holds up none of the
 * others. */
TEST_LOOP(test_shared, 2)
{
    static const enum traffic_mode modes[] = {TRAFFIC_CLOSED, TRAFFIC_OPEN};
    dc.traffic.mode = modes[_i];
    dc.traffic.rate = 2000;
    lc.targets_len = 2;
    lc.shard = &shard;
    dc.traffic.reconnect = RECONNECT_NONE;
    shard_init(&shard, SHARD_MODULO, targets, 2);
    open_loop();
    sim.conns[1].hang_up_at = sim.conns[3].hang_up_at = SIM_BEGIN + MS(50);
    run();
    for (unsigned i = 0; i < sim.log_len; i++) {
        const char *key = sim.log[i].line + strlen("get ");
        expect(shard_of(&shard, key, strlen(key)) == sim.log[i].conn % 2);
        expect(sent_at(i) < MS(50) || sim.log[i].conn % 2 == 0);
    }
    ck_assert_uint_gt(sim_count(MS(53), MS(100)), 30);
    ck_assert_int_eq(ctr_get(&counters.unsent) > 30, modes[_i] == TRAFFIC_OPEN);
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_DISCONNECT]), 2);
    check_sums();
}

static nsec_t
stall_second(const struct sim_request *r)
{
    return r->conn % 2 == 1 ? stall(r) : MS(1);
}

/* Users that find their keys' server without a place have waited since they had thought. */
TEST(test_shared_think)
{
    lc.targets_len = 2;
    lc.per_target = 1;
    lc.shard = &shard;
    dc.traffic.think = dist_fixed(0.002);
    shard_init(&shard, SHARD_MODULO, targets, 2);
    sim.delay_of = stall_second;
    open_and_run();
    const struct hist *intended = counters.latency[FROM_INTENDED][COUNTERS_READ];
    const struct hist *issue = counters.latency[FROM_ISSUE][COUNTERS_READ];
    ck_assert_uint_eq(hist_above(issue, MS(20)), 4);
    ck_assert_uint_eq(hist_above(intended, MS(20)), 8);
    check_sums();
}

/* Of gets of many keys, which are one for each server. */
static void
share_long_gets(void)
{
    lc.targets_len = 2;
    lc.shard = &shard;
    wc.getcount = dist_fixed(16);
    dc.traffic.rate = 1000;
    sim.delay = MS(1);
    shard_init(&shard, SHARD_MODULO, targets, 2);
}

/* What is for a server that is gone is given up, what is for the other one goes on. */
TEST(test_shared_part_lost)
{
    share_long_gets();
    dc.traffic.mode = TRAFFIC_OPEN;
    dc.traffic.reconnect = RECONNECT_NONE;
    open_loop();
    sim.conns[1].hang_up_at = sim.conns[3].hang_up_at = SIM_BEGIN + MS(50) + 1;
    run();
    ck_assert_uint_ge(sim_count(MS(51), MS(100)), 48);
    expect_between(ctr_get(&counters.offered), 2 * 100 - 2, 2 * 100);
    check_sums();
}

/* What is never sent is counted as what is. */
TEST(test_shared_parts_unsent)
{
    share_long_gets();
    dc.traffic.mode = TRAFFIC_OPEN;
    sim.delay = SIM_NEVER;
    open_and_run();
    expect_between(ctr_get(&counters.offered), 2 * 100 - 2, 2 * 100);
    ck_assert_uint_gt(ctr_get(&counters.unsent), 150);
    check_sums();
}
