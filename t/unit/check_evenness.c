/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What connections and servers had, beside each other: a slow connection is seen, those
 * without requests have no latency, sums are those of the parts.
 */
#include "loadgen/measure/evenness.h"
#include "check_main.h"

#define CONNS 5

static struct evenness_log log_;

static void
set_up(void)
{
    evenness_log_init(&log_, CONNS);
    for (unsigned i = 0; i < CONNS; i++) {
        log_.server[i] = i % 2;
    }
    /* 100, 200, 300 requests of 10 us, then 400 of 1 ms; the last has none. */
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned n = 0; n < (i + 1) * 100; n++) {
            evenness_log_record(&log_, i, i == 3 ? 1000000 : 10000, 1);
        }
    }
}

static void
tear_down(void)
{
    evenness_log_fini(&log_);
}

FIXTURE(set_up, tear_down);

TEST(test_connections)
{
    struct evenness *s = evenness_create(2);
    evenness_add(s, &log_);
    ck_assert_uint_eq(s->conns_len, CONNS);
    struct evenness_range requests = evenness_range(s, EVENNESS_REQUESTS);
    ck_assert_uint_eq(requests.min, 0);
    ck_assert_uint_eq(requests.median, 200);
    ck_assert_uint_eq(requests.max, 400);
    struct evenness_range p99 = evenness_range(s, EVENNESS_P99);
    ck_assert_double_eq_tol((double)p99.min, 10000, 320);
    ck_assert_double_eq_tol((double)p99.median, 10000, 320);
    ck_assert_double_eq_tol((double)p99.max, 1000000, 32000);
    ck_assert_double_eq_tol((double)evenness_range(s, EVENNESS_P50).max, 1000000, 32000);
    evenness_destroy(&s);
    ck_assert_ptr_null(s);
}

TEST(test_servers)
{
    SCOPED(evenness_destroy)
    struct evenness *s = evenness_create(2), *sum = evenness_create(2);
    evenness_add(s, &log_);
    ck_assert_uint_eq(hist_count(s->servers[0]), 400);
    ck_assert_uint_eq(hist_count(s->servers[1]), 600);
    ck_assert_uint_lt(hist_quantile(s->servers[0], .99), 11000);
    ck_assert_uint_gt(hist_quantile(s->servers[1], .99), 900000);
    evenness_merge(sum, s);
    evenness_merge(sum, s);
    ck_assert_uint_eq(sum->conns_len, 2 * CONNS);
    ck_assert_uint_eq(hist_count(sum->servers[1]), 1200);
}

TEST(test_nothing)
{
    SCOPED(evenness_destroy) struct evenness *s = evenness_create(1);
    ck_assert_uint_eq(evenness_range(s, EVENNESS_P99).max, 0);
    evenness_log_reset(&log_);
    log_.server[1] = log_.server[3] = 0;
    evenness_add(s, &log_);
    ck_assert_uint_eq(evenness_range(s, EVENNESS_REQUESTS).max, 0);
    ck_assert_uint_eq(evenness_range(s, EVENNESS_P99).max, 0);
    evenness_log_record(&log_, CONNS, 1, 1); /* one too many is not looked at */
    evenness_add(s, &log_);
    ck_assert_uint_eq(evenness_range(s, EVENNESS_REQUESTS).max, 0);
    evenness_destroy(&s);
}
