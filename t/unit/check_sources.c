/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Each source of requests in the loop, against a simulated server and on simulated time: when
 * requests are sent and on which connection, what happens when connections are lost, and the
 * end.
 */
#include "fixture_sources.h"

FIXTURE(set_up, tear_down);

/* ---- closed loop ---------------------------------------------------------------------- */

/* From 99 ms on the thread stands still within a send; then all is answered at once. */
static nsec_t
stand_still(const struct sim_request *r)
{
    bool is_last = r->at >= SIM_BEGIN + MS(99);
    sim.now = is_last ? SIM_BEGIN + MS(107) : sim.now;
    return is_last ? 0 : MS(3);
}

/* What was on its way when the window ended, whenever the thread hears of that. */
TEST(test_edges)
{
    sim.delay_of = stand_still;
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.at_edges), 2 * 4);
}

static nsec_t
late_before_start(const struct sim_request *r)
{
    return r->at == SIM_BEGIN + MS(18) ? MS(40) : MS(3);
}

/* Replies to requests of the warm-up come in the window: that they were on their way is no part of what is
 * measured. */
TEST(test_late_from_before)
{
    sim.delay_of = late_before_start;
    window.quiet = window.start = SIM_BEGIN + MS(20);
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.on_their_way), 8 * MS(80));
    ck_assert_uint_eq(ctr_get(&counters.unmeasured), 8 * MS(38));
}

/* Each connection has its depth on its way all the time, no more and no less. */
TEST(test_closed_depth)
{
    open_and_run();
    ck_assert_uint_eq(sim_count(0, 1), 2 * 4);
    ck_assert_uint_eq(sim.conns[0].most, 4);
    ck_assert_uint_eq(sim.conns[1].most, 4);
    for (unsigned i = 0; i < sim.log_len; i++) {
        expect(sent_at(i) == MS(3) * (i / 8));
    }
    ck_assert_uint_eq(sim.log_len, 8 * 34); /* at 0, 3, ... 99 ms */
    ck_assert_uint_eq(ctr_get(&counters.offered), sim.log_len);
    ck_assert_uint_eq(ctr_get(&counters.sent), sim.log_len);
    ck_assert_uint_eq(ctr_get(&counters.good), sim.log_len);
    ck_assert_uint_eq(ctr_get(&counters.done[COUNTERS_READ]), 8 * 33);
    check_sums();
}

/* The time in which a socket takes no more belongs to the requests that it keeps. */
TEST(test_closed_blocked_time)
{
    sim.full_at = SIM_BEGIN + MS(50);
    sim.full_until = SIM_BEGIN + MS(60);
    open_and_run();
    expect_between(hist_max(counters.latency[FROM_INTENDED][COUNTERS_READ]), MS(11),
                   MS(13));
    expect_between(hist_max(counters.latency[FROM_ISSUE][COUNTERS_READ]), MS(3),
                   MS(3) + 1);
    check_sums();
}

TEST(test_closed_blocked_for_ever)
{
    dc.timeout = MS(5000);
    sim.full_at = SIM_BEGIN + MS(50);
    sim.full_until = SIM_NEVER;
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.unsent), 8);
    ck_assert_uint_eq(hist_count(counters.waits), 8);
    ck_assert_uint_eq(ctr_get(&counters.in_vain), 8 * (MS(100) - MS(51)));
    ck_assert_uint_eq(ctr_get(&counters.good) + 8, ctr_get(&counters.offered));
    check_sums();
}

/* A socket that takes a few bytes at a time delays, and changes nothing else. */
TEST(test_closed_blocked)
{
    sim.takes_bytes = 10;
    open_and_run();
    ck_assert_uint_eq(sim.conns[0].most, 4);
    ck_assert_uint_gt(sim.log_len, 8 * 30);
    ck_assert_uint_eq(ctr_get(&counters.offered), sim.log_len);
    check_sums();
}

TEST(test_closed_think)
{
    dc.depth = 1;
    dc.traffic.think = dist_fixed(0.005);
    open_and_run();
    for (unsigned i = 0; i < sim.log_len; i++) {
        expect(sent_at(i) == MS(8) * (i / 2));
    }
    ck_assert_uint_eq(sim.log_len, 2 * 13);
    check_sums();
}

/* A user that finds its place taken, as the connection was lost meanwhile, waits from when it wanted it. */
TEST(test_closed_think_late)
{
    dc.depth = 1;
    dc.traffic.think = dist_fixed(0.005);
    open_loop();
    for (unsigned i = 0; i < 2; i++) {
        sim.conns[i].hang_up_at = SIM_BEGIN + MS(20);
    }
    sim.dial_time = MS(40);
    run();
    expect_between(hist_max(counters.latency[FROM_INTENDED][COUNTERS_READ]), MS(38),
                   MS(50));
    expect_between(hist_max(counters.latency[FROM_ISSUE][COUNTERS_READ]), MS(3),
                   MS(3) + 1);
    check_sums();
}

/* So does each of several of one connection, until the end of the window when it stays lost. */
TEST_LOOP(test_closed_think_late_all, 2)
{
    const struct hist *intended = counters.latency[FROM_INTENDED][COUNTERS_READ];
    bool stays_lost = _i == 1;
    dc.traffic.think = dist_fixed(0.005);
    open_loop();
    for (unsigned i = 0; i < 2; i++) {
        sim.conns[i].hang_up_at = SIM_BEGIN + MS(20);
    }
    sim.dial_time = MS(40);
    sim.refuses = stays_lost;
    run();
    /* They have thought at 24 ms; the connections are there again at 70 ms. */
    ck_assert_uint_eq(hist_above(intended, MS(30)), stays_lost ? 0 : 8);
    ck_assert_uint_eq(ctr_get(&counters.unsent), stays_lost ? 8 : 0);
    ck_assert_uint_eq(hist_count(counters.waits), stays_lost ? 8 : 0);
    ck_assert_uint_ge(hist_min(counters.waits), stays_lost ? MS(100 - 25) : 0);
    check_sums();
}

/* The warm-up is not measured, and behind its quiet end nothing is sent before the start. */
TEST(test_closed_quiet)
{
    window.quiet = SIM_BEGIN + MS(40);
    window.start = SIM_BEGIN + MS(60);
    open_and_run();
    ck_assert_uint_eq(sim_count(0, MS(40)), 8 * 14);
    ck_assert_uint_eq(sim_count(MS(40), MS(60)), 0);
    ck_assert_uint_eq(sim_count(MS(60), MS(60) + 1), 8);
    ck_assert_uint_eq(ctr_get(&counters.offered), 8 * 14);
    check_sums();
}

/* ---- open loop ------------------------------------------------------------------------- */

/* Requests go when the schedule says, whatever the replies do. */
TEST_LOOP(test_open_times, 4)
{
    static const char *const laws[] = {"fixed", "exponential", "pareto", "bursty"};
    set_rate(2000);
    arrivals_law_fini(&dc.traffic.arrivals);
    ck_assert_ptr_null(arrivals_parse(&dc.traffic.arrivals, laws[_i]));
    struct arrivals schedule;
    struct arrivals_conf ac = {
        .law = &dc.traffic.arrivals,
        .rate = 2000,
        .start = SIM_BEGIN,
        .seed = 1,
        .stream = stream_of(0, 0, STREAM_ARRIVALS),
        .sources = 1,
        .every = 1,
    };
    arrivals_init(&schedule, &ac);
    dc.depth = 64;
    open_and_run();
    for (unsigned i = 0; i < sim.log_len; i++) {
        expect(sim.log[i].at == arrivals_next(&schedule));
    }
    ck_assert_uint_ge(arrivals_next(&schedule), window.end);
    arrivals_fini(&schedule);
    ck_assert_uint_gt(sim.log_len, 0);
    ck_assert_uint_eq(ctr_get(&counters.within[WITHIN_5US]), sim.log_len);
    check_sums();
}

/* Connections take turns. */
TEST(test_open_turns)
{
    set_rate(1000);
    open_and_run();
    for (unsigned i = 1; i < sim.log_len; i++) {
        expect(sim.log[i].conn != sim.log[i - 1].conn);
    }
    ck_assert_uint_ge(sim.log_len, 99);
}

/* What has no room waits; when there is some it goes, is dropped, or goes at a rate. */
TEST_LOOP(test_open_late, 3)
{
    static const enum pacing_late laws[] = {LATE_SEND, LATE_DROP, LATE_CAP};
    set_rate(1000);
    dc.depth = 1;
    dc.traffic.late = laws[_i];
    dc.traffic.cap = 2;
    sim.delay_of = stall;
    open_and_run();
    ck_assert_uint_le(sim_count(MS(20), MS(60)), 2 + 1);
    unsigned after = sim_count(MS(60), MS(62)),
             skipped = (unsigned)ctr_get(&counters.skipped);
    if (laws[_i] == LATE_DROP) {
        ck_assert_uint_gt(skipped, 30);
        ck_assert_uint_eq(ctr_get(&counters.good) + skipped, ctr_get(&counters.offered));
    } else {
        ck_assert_uint_eq(skipped, 0);
        ck_assert_uint_gt(after, 2);
        ck_assert_uint_le(after, 2 * 3);
    }
    check_sums();
}

static void
stop_after_the_stall(void)
{
    atomic_store(&stop, sim.now >= SIM_BEGIN + MS(80));
}

/* What is dropped waits for the end of the window, which may come before the time that was meant. */
TEST_LOOP(test_open_drop_and_stop, 2)
{
    set_rate(1000);
    dc.depth = 1;
    dc.traffic.late = LATE_DROP;
    sim.delay_of = stall;
    window.end = SIM_BEGIN + (_i == 0 ? MS(100) : MS(60000));
    sim.on_wait = _i == 0 ? NULL : stop_after_the_stall;
    open_and_run();
    ck_assert_uint_gt(ctr_get(&counters.skipped), 30);
    ck_assert_uint_eq(hist_count(counters.waits), ctr_get(&counters.skipped));
    nsec_t end = loop.drive.window.end - SIM_BEGIN;
    expect_between(end, _i == 0 ? MS(100) : MS(80), MS(100));
    expect_between(hist_max(counters.waits), end - MS(25), end - MS(20));
    expect_between(hist_min(counters.waits), end - MS(60), end - MS(50));
    check_sums();
}

TEST(test_open_outstanding)
{
    set_rate(1000);
    dc.traffic.max_outstanding = 3;
    sim.delay = MS(6);
    open_and_run();
    ck_assert_uint_le(sim.conns[0].most + sim.conns[1].most, 4);
    ck_assert_uint_le(sim_count(0, MS(60)), 3 * 11);
    ck_assert_uint_gt(ctr_get(&counters.unsent), 0);
    check_sums();
}

/* ---- replay --------------------------------------------------------------------------- */

/* A get of key N at that time, by that route. False: there is no room. */
static bool
try_put_page(unsigned n, nsec_t at, uint32_t route)
{
    uint32_t i = trace_buffer_reserve(&trace_buffer);
    if (i == TRACE_BUFFER_NONE) {
        return false;
    }
    struct trace_buffer_slot *p = trace_buffer_slot(&trace_buffer, i);
    *p = (struct trace_buffer_slot){.at_ns = at, .route = route, .verb = TRACE_GET};
    p->key_len = (uint8_t)snprintf(p->key, sizeof p->key, "key%u", n);
    trace_buffer_commit(&trace_buffer, i);
    return true;
}

static void
put_page(unsigned n, nsec_t at, uint32_t route)
{
    ck_assert(try_put_page(n, at, route));
}

static void
set_replay(bool is_timed)
{
    wc.is_replay = true;
    dc.traffic.is_timed = is_timed;
    dc.traffic.mode = is_timed ? TRAFFIC_OPEN : TRAFFIC_CLOSED;
    trace_buffer_init(&trace_buffer, 1024);
}

static void
expect_sent(unsigned i, nsec_t at, unsigned conn, unsigned key)
{
    char line[64];
    snprintf(line, sizeof line, "get key%u", key);
    ck_assert_uint_eq(sent_at(i), at);
    ck_assert_uint_eq(sim.log[i].conn, conn);
    ck_assert_str_eq(sim.log[i].line, line);
}

/* Each at its time on its connection; one that has to wait keeps its place there and holds up
 * none of the other connection. The window ends with the trace. */
TEST(test_replay_times)
{
    set_replay(true);
    dc.depth = 1;
    sim.delay = MS(10);
    put_page(0, MS(1), 0);
    put_page(1, MS(2), 0); /* waits for the reply to 0 */
    put_page(2, MS(3), 1);
    put_page(3, MS(4), 2); /* of the first connection again: behind 1 */
    put_page(4, MS(30), 1);
    trace_buffer_end(&trace_buffer, MS(50));
    open_and_run();
    ck_assert_uint_eq(sim.log_len, 5);
    expect_sent(0, MS(1), 0, 0);
    expect_sent(1, MS(3), 1, 2);
    expect_sent(2, MS(11), 0, 1);
    expect_sent(3, MS(21), 0, 3);
    expect_sent(4, MS(30), 1, 4);
    ck_assert(loop.has_ended);
    ck_assert_uint_eq(loop.drive.window.end, SIM_BEGIN + MS(50));
    ck_assert_uint_eq(ctr_get(&counters.good), 5);
    ck_assert_uint_eq(trace_buffer_used(&trace_buffer), 0);
    /* waiting for a connection is not the client's own lag */
    ck_assert_uint_eq(hist_count(counters.late), 5);
    ck_assert_uint_eq(hist_max(counters.late), 0);
    ck_assert_uint_eq(hist_max(counters.lag), MS(17));
    check_sums();
}

/* Closed: as fast as replies come, in order on each connection. */
TEST(test_replay_closed)
{
    unsigned next[2] = {0, 0};
    set_replay(false);
    for (unsigned i = 0; i < 150; i++) {
        put_page(i, 0, i % 3 == 0);
    }
    trace_buffer_end(&trace_buffer, 0);
    open_and_run();
    ck_assert_uint_eq(sim.log_len, 150);
    for (unsigned i = 0; i < sim.log_len; i++) {
        unsigned key = (unsigned)strtoul(sim.log[i].line + strlen("get key"), NULL, 10);
        expect(sim.log[i].conn == (key % 3 == 0));
        expect(key >= next[sim.log[i].conn]);
        next[sim.log[i].conn] = key + 1;
    }
    ck_assert_uint_eq(sim.conns[0].most, 4);
    ck_assert(loop.has_ended);
    ck_assert_uint_eq(ctr_get(&counters.starved), 0);
    check_sums();
}

/* The server answers nothing, so pages wait and the reader for pages: what it delivers after the
 * window was due in it all the same, and what is due later is not counted. */
static unsigned left_to_read;

static void
read_when_there_is_room(void)
{
    while (left_to_read > 0 &&
           try_put_page(left_to_read, MS(left_to_read > 100 ? 50 : 100), left_to_read)) {
        left_to_read--;
    }
    if (left_to_read == 0) {
        trace_buffer_end(&trace_buffer, MS(100));
    }
}

TEST(test_replay_behind)
{
    set_replay(true);
    sim.delay = SIM_NEVER;
    dc.timeout = 10 * NSEC_PER_SEC; /* no connection is lost before the end */
    sim.on_wait = read_when_there_is_room;
    left_to_read = 5100;
    read_when_there_is_room();
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.offered), 5000);
    ck_assert_uint_eq(ctr_get(&counters.starved), 0);
    ck_assert_uint_eq(hist_max(counters.late), 0); /* it is the server that is late */
    ck_assert_uint_eq(trace_buffer_used(&trace_buffer), 0);
    check_sums();
}

static void
read_too_late(void)
{
    if (sim.now >= SIM_BEGIN + MS(10) && left_to_read > 0) {
        put_page(left_to_read--, MS(2), 0);
    }
}

/* A reader that is behind is noticed, and is the client's own lag. */
TEST(test_replay_starved)
{
    set_replay(true);
    put_page(0, MS(1), 0);
    left_to_read = 1;
    sim.on_wait = read_too_late;
    open_and_run(); /* the book is not over */
    ck_assert(!loop.has_ended);
    ck_assert_uint_eq(sim.log_len, 2);
    ck_assert_uint_ge(ctr_get(&counters.starved), 1);
    ck_assert_uint_ge(hist_max(counters.late), MS(8));
    check_sums();
}

/* Of two servers one is gone: what is meant for it is given up, the other gets its own. */
TEST(test_replay_lost)
{
    set_replay(true);
    lc.targets_len = 2;
    lc.per_target = 1;
    dc.traffic.reconnect = RECONNECT_NONE;
    for (unsigned i = 0; i < 80; i++) {
        put_page(i, MS(1) * i, i);
    }
    trace_buffer_end(&trace_buffer, MS(80));
    open_loop();
    sim.conns[1].hang_up_at = SIM_BEGIN + MS(40);
    run();
    ck_assert_uint_eq(sim_count(MS(41), MS(100)), 19);
    ck_assert_uint_eq(ctr_get(&counters.offered), 80);
    ck_assert_uint_eq(ctr_get(&counters.unsent) + counters_sum(counters.lost),
                      80 - sim.log_len + 2);
    /* The window ends with the trace, before its time. */
    ck_assert_uint_lt(loop.drive.window.end, SIM_BEGIN + MS(82));
    ck_assert_uint_le(hist_max(counters.waits), MS(82 - 39));
    check_sums();
}

/* ---- deferred ------------------------------------------------------------------------- */

static void
set_deferred(void)
{
    wc.fills = wc.defers = true;
    wc.fetch = dist_fixed(0.007);
    dc.depth = 1;
    lc.per_target = 1;
}

/* What was missed is stored on the same connection after the backend's time; requests go on
 * meanwhile. */
TEST(test_deferred)
{
    set_deferred();
    open_and_run();
    unsigned sets = 0;
    for (unsigned i = 0; i < sim.log_len; i++) {
        sets += strncmp(sim.log[i].line, "set ", 4) == 0;
    }
    /* Missed at 3 ms and fetched at 10, it goes before the next get. */
    ck_assert_uint_eq(sent_at(4), MS(12));
    ck_assert_int_eq(strncmp(sim.log[4].line, "set ", 4), 0);
    ck_assert_int_eq(strncmp(sim.log[4].line + 4, sim.log[0].line + 4, 5), 0);
    ck_assert_uint_gt(sets, 10);
    ck_assert_uint_ge(ctr_get(&counters.filled) + 1, sets);
    check_sums();
}

/* Of a connection that was lost nothing is stored. */
TEST(test_deferred_lost)
{
    set_deferred();
    sim.delay = MS(1);
    wc.fetch = dist_fixed(0.03);
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(20);
    run();
    for (unsigned i = 0; i < sim.log_len; i++) {
        expect(strncmp(sim.log[i].line, "set ", 4) != 0 || sent_at(i) >= MS(50));
    }
    ck_assert_uint_gt(ctr_get(&counters.unfilled), 10);
    check_sums();
}

/* ---- connections ---------------------------------------------------------------------- */

/* Lost with what was on its way; opened again at once, after a pause, or never. */
TEST_LOOP(test_lost, 3)
{
    static const struct {
        enum traffic_reconnect law;
        unsigned dials;
        nsec_t at;
    } rows[] = {
        {RECONNECT_BACKOFF, 3, MS(50) + LSET_BACKOFF_FIRST},
        {RECONNECT_NOW, 3, MS(50) + 1},
        {RECONNECT_NONE, 2, 0},
    };
    dc.traffic.reconnect = rows[_i].law;
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(50);
    run();
    ck_assert_uint_eq(sim.dials_len, rows[_i].dials);
    for (unsigned i = 2; i < sim.dials_len; i++) {
        ck_assert_uint_eq(sim.dials[i] - SIM_BEGIN, rows[_i].at);
    }
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_DISCONNECT]), 1);
    ck_assert_uint_eq(counters_sum(counters.lost), 4);
    ck_assert_uint_eq(ctr_get(&counters.in_vain), 0);
    ck_assert_uint_eq(ctr_get(&counters.opened), rows[_i].dials);
    check_sums();
}

/* One that waits after a loss keeps no other from being opened, at whatever rate. */
TEST(test_lost_beside_connect_rate)
{
    dc.traffic.connect_rate = 1000;
    dc.traffic.lifetime = dist_fixed(1);
    dc.traffic.reconnect = RECONNECT_BACKOFF;
    sim.delay = MS(1);
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(1) / 2;
    run();
    unsigned opened = 0;
    for (unsigned i = 0; i < sim.dials_len; i++) {
        nsec_t at = sim.dials[i] - SIM_BEGIN;
        opened += at > MS(1) && at < LSET_BACKOFF_FIRST;
    }
    ck_assert_uint_ge(opened, 5);
}

/* Errors of the warm-up count, and are told from those of the window. */
/* A UNIX socket's listener with a full queue is asked again, for as long as a reply may take. */
TEST_LOOP(test_listener_full, 2)
{
    static const nsec_t until[] = {MS(60), MS(5000)};
    dc.traffic.reconnect = RECONNECT_NOW;
    window.end = SIM_BEGIN + MS(300);
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(50);
    sim.queue_full_until = SIM_BEGIN + until[_i];
    run();
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_CONNECT]), _i);
    ck_assert_uint_eq(ctr_get(&counters.opened), _i == 0 ? 3 : 2);
    ck_assert_uint_ge(sim.dials_len, 10); /* each ms */
    check_sums();
}

/* What one run waited is nothing to the next. */
TEST(test_listener_full_twice)
{
    char err[256];
    const struct drive_into into = {&counters, &evenness, &samples, NULL};
    dc.traffic.reconnect = RECONNECT_NOW;
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(50);
    sim.queue_full_until = SIM_BEGIN + MS(150);
    run();
    sim.now = SIM_BEGIN + MS(1000);
    ck_assert_ptr_null(lset_renew(&set, false, err, sizeof err));
    event_loop_fini(&loop);
    event_loop_init(&loop, &dc, &set, &into);
    window = (struct drive_window){sim.now, sim.now, sim.now, sim.now + MS(100)};
    sim.conns[0].hang_up_at = sim.now + MS(50);
    sim.queue_full_until = sim.now + MS(60);
    run();
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_CONNECT]), 0);
}

TEST(test_lost_in_warmup)
{
    window.quiet = window.start = SIM_BEGIN + MS(60);
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(50);
    sim.conns[1].hang_up_at = SIM_BEGIN + MS(80);
    run();
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_DISCONNECT]), 2);
    ck_assert_uint_eq(ctr_get(&counters.failed), 1);
}

/* Attempts that fail come after pauses that double. */
TEST(test_refused)
{
    lc.per_target = 1;
    window.end = SIM_BEGIN + MS(1000);
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(50);
    sim.refuses = true;
    run();
    ck_assert_uint_eq(sim.dials_len, 1 + 6);
    nsec_t at = MS(50), pause = LSET_BACKOFF_FIRST;
    for (unsigned i = 1; i < sim.dials_len; i++, pause *= 2) {
        at += pause;
        ck_assert_uint_eq(sim.dials[i] - SIM_BEGIN, at);
    }
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_CONNECT]), 6);
    check_sums();
}

/* One that was lost with the last requests of its life, and cannot be made again. */
TEST(test_refused_spent)
{
    lc.per_target = 1;
    dc.traffic.lifetime = dist_fixed(4);
    open_loop();
    sim.conns[0].hang_up_at = SIM_BEGIN + MS(1);
    sim.refuses = true;
    sim.dial_time = MS(1);
    run();
    ck_assert_uint_eq(sim.log_len, 4);
    ck_assert_uint_eq(sim.dials_len, 1 + 3); /* after 10 ms, 20 and 40, each 1 ms long */
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_CONNECT]), 3);
    check_sums();
}

/* A server that says nothing is given up after the time-out. */
TEST(test_time_out)
{
    sim.delay = SIM_NEVER;
    dc.timeout = MS(60);
    window.end = SIM_BEGIN + MS(130);
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.errors[COUNTERS_TIMEOUT]), 2 + 2);
    ck_assert_uint_eq(ctr_get(&counters.good), 0);
    ck_assert_uint_eq(ctr_get(&counters.unserved), 2);
    check_sums();
}

/* Closed by itself after so many requests, without losing any. */
TEST(test_lifetime)
{
    dc.traffic.lifetime = dist_fixed(10);
    open_and_run();
    ck_assert_uint_gt(ctr_get(&counters.closed), 10);
    expect_between(ctr_get(&counters.opened), ctr_get(&counters.closed),
                   2 + ctr_get(&counters.closed));
    ck_assert_uint_eq(counters_sum(counters.lost), 0);
    ck_assert_uint_eq(counters_error_sum(&counters), 0);
    check_sums();
}

/* ---- the end -------------------------------------------------------------------------- */

/* Nothing is sent behind the end, and replies are waited for, but not for ever. */
TEST_LOOP(test_end, 4)
{
    static const nsec_t delays[] = {MS(150), SIM_NEVER};
    static const enum traffic_mode modes[] = {TRAFFIC_CLOSED, TRAFFIC_OPEN};
    dc.timeout = MS(5000);
    dc.traffic.mode = modes[_i % 2];
    dc.traffic.rate = 1000;
    sim.delay = delays[_i / 2];
    open_and_run();
    bool is_answered = sim.delay != SIM_NEVER;
    ck_assert_uint_eq(sim_count(MS(100), SIM_NEVER), 0);
    ck_assert_uint_eq(sim.log_len, 8);
    ck_assert_uint_eq(ctr_get(&counters.good), is_answered ? 8 : 0);
    ck_assert_uint_eq(counters_sum(counters.unanswered), is_answered ? 0 : 8);
    ck_assert_uint_eq(ctr_get(&counters.unsent), ctr_get(&counters.offered) - 8);
    ck_assert_uint_eq(ctr_get(&counters.done[COUNTERS_READ]), 0);
    ck_assert_uint_le(sim.now, window.end + DRIVE_DRAIN + SIM_POLL);
    check_sums();
}

static void
stand_still_at_the_end(void)
{
    sim.lost = sim.now >= window.end ? 2 * DRIVE_DRAIN : 0;
}

/* What has come while the thread stood still is an answer, however late it looks. */
TEST(test_end_late)
{
    dc.timeout = MS(5000);
    sim.delay = MS(900);
    sim.on_wait = stand_still_at_the_end;
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.good), 8);
    ck_assert_uint_eq(counters_sum(counters.unanswered), 0);
    check_sums();
}

static nsec_t
hang(const struct sim_request *r)
{
    return r->at - SIM_BEGIN < MS(20) ? MS(3) : SIM_NEVER;
}

/* Of a request that was sent the verb is known, whatever becomes of it. */
TEST_LOOP(test_end_verbs, 2)
{
    bool is_lost = _i == 1;
    unsigned sent[COUNTERS_VERBS] = {0, 0};
    dc.timeout = is_lost ? MS(60) : MS(5000);
    dc.traffic.reconnect = RECONNECT_NONE;
    sim.delay_of = hang;
    ck_assert_ptr_null(mix_parse(&wc.mix, "get:1,set:1"));
    open_and_run();
    for (unsigned i = 0; i < sim.log_len; i++) {
        bool is_set = strncmp(sim.log[i].line, "set ", 4) == 0;
        sent[is_set ? COUNTERS_UPDATE : COUNTERS_READ] += sent_at(i) >= MS(20);
    }
    for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
        ck_assert_uint_gt(sent[verb], 0);
        ck_assert_uint_eq(ctr_get(&counters.lost[verb]), is_lost ? sent[verb] : 0);
        ck_assert_uint_eq(ctr_get(&counters.unanswered[verb]), is_lost ? 0 : sent[verb]);
    }
    check_sums();
}

/* A server that hangs stops a closed loop: for how long is counted as far as it is in the window. */
TEST_LOOP(test_in_vain, 2)
{
    nsec_t start = _i == 0 ? 0 : MS(50), hung = _i == 0 ? MS(21) : MS(50);
    dc.timeout = MS(5000);
    sim.delay_of = hang;
    window.quiet = window.start = SIM_BEGIN + start;
    open_and_run();
    ck_assert_uint_eq(ctr_get(&counters.on_their_way), 8 * (MS(100) - start));
    ck_assert_uint_eq(ctr_get(&counters.in_vain), 8 * (MS(100) - hung));
    ck_assert_uint_eq(counters_sum(counters.unanswered), _i == 0 ? 8 : 0);
    ck_assert_uint_eq(counters_error_sum(&counters), 0);
    check_sums();
}

/* Stopped before its time, it sends no more. */
TEST(test_stop)
{
    atomic_store(&stop, true);
    open_and_run();
    ck_assert_uint_eq(sim.log_len, 8);
    ck_assert_uint_eq(loop.drive.window.end, SIM_BEGIN);
}
