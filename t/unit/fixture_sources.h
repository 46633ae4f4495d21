/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A source of requests in the loop, against a simulated server and on simulated time. A test changes
 * the settings that set_up made, opens the loop and runs it.
 */
#pragma once

#include "check_main.h"
#include "sim_server.h"

#include "loadgen/drive/event_loop.h"
#include "loadgen/wire/shard.h"

static struct workload workload;
static struct workload_conf wc;
static struct target targets[2];
static struct shard shard;
static struct trace_buffer trace_buffer;
static struct lset_conf lc;
static struct lset set;
static struct drive_conf dc;
static struct drive_window window;
static struct counters counters;
static struct evenness_log evenness;
static struct samples samples;
static struct event_loop loop;
static atomic_bool stop;

static inline void
set_up(void)
{
    memset(&sim, 0, sizeof sim);
    sim.now = SIM_BEGIN;
    sim.delay = MS(3);
    wc = (struct workload_conf){
        .records = 1000, .getcount = dist_fixed(1), .key_prefix = "k"};
    ck_assert_ptr_null(mix_parse(&wc.mix, "get:1"));
    ck_assert_ptr_null(dist_parse(&wc.key_size, "5"));
    ck_assert_ptr_null(dist_parse(&wc.value_size, "4"));
    ck_assert_ptr_null(dist_parse(&wc.expiry, "0"));
    ck_assert_ptr_null(popularity_parse(&wc.popularity, "uniform"));
    lc = (struct lset_conf){
        .codec = &codec_ascii,
        .targets = targets,
        .targets_len = 1,
        .per_target = 2,
        .capacity = 64,
        .workload = &workload,
        .engine = &sim_engine,
        .timeout = MS(200),
    };
    dc = (struct drive_conf){
        .depth = 4,
        .timeout = MS(200),
        .seed = 1,
        .threads = 1,
        .parts = 1,
        .numbers = 1,
        .stop = &stop,
    };
    ck_assert_ptr_null(arrivals_parse(&dc.traffic.arrivals, "fixed"));
    dc.traffic.session = dc.traffic.think = dc.traffic.lifetime = dist_fixed(0);
    nsec_t end = SIM_BEGIN + MS(100);
    window = (struct drive_window){SIM_BEGIN, SIM_BEGIN, SIM_BEGIN, end};
    counters_init(&counters);
    atomic_store(&stop, false);
}

static inline void
tear_down(void)
{
    event_loop_fini(&loop);
    lset_close(&set);
    evenness_log_fini(&evenness);
    counters_fini(&counters);
    workload_close(&workload);
    trace_buffer_fini(&trace_buffer);
    arrivals_law_fini(&dc.traffic.arrivals);
    shard_fini(&shard);
}

/* The settings are complete. */
static inline void
open_loop(void)
{
    char err[256];
    const struct drive_into into = {&counters, &evenness, &samples, NULL};
    ck_assert_ptr_null(workload_init(&workload, &wc));
    workload_open(&workload);
    workload.trace_buffer = wc.is_replay ? &trace_buffer : NULL;
    ck_assert_ptr_null(lset_open(&set, &lc, err, sizeof err));
    evenness_log_init(&evenness, set.count);
    event_loop_init(&loop, &dc, &set, &into);
}

static inline void
run(void)
{
    event_loop_run(&loop, &window);
    ck_assert_uint_eq(loop.sender.outstanding, 0);
    ck_assert_uint_eq(loop.sender.little.count, 0);
}

static inline void
open_and_run(void)
{
    open_loop();
    run();
}

static inline nsec_t
sent_at(unsigned i)
{
    ck_assert_uint_lt(i, sim.log_len);
    return sim.log[i].at - SIM_BEGIN;
}

/* Each request offered is accounted for once, and of each one sent is known beside how many. */
static inline void
check_sums(void)
{
    uint64_t ends = ctr_get(&counters.good) + ctr_get(&counters.skipped) +
                    ctr_get(&counters.unsent) + counters_sum(counters.lost) +
                    counters_sum(counters.unanswered);
    ck_assert_uint_eq(ends, ctr_get(&counters.offered));
    ck_assert_uint_eq(hist_count(counters.outstanding), ctr_get(&counters.sent));
}

static inline void
set_rate(double rate)
{
    dc.traffic.mode = TRAFFIC_OPEN;
    dc.traffic.rate = rate;
}

static inline nsec_t
stall(const struct sim_request *r)
{
    nsec_t at = r->at - SIM_BEGIN, end = MS(60);
    return at < MS(20) || at >= end ? MS(1) : end - at;
}
