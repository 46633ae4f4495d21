/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long requests that were passed over have waited when the window ends, whenever that is.
 */
#include "loadgen/measure/passed.h"

#include "check_main.h"
#include "loadgen/measure/counters.h"

#define START (UINT64_C(1000) * NSEC_PER_SEC)

static struct passed passed;
static struct hist *waits;

static void
set_up(void)
{
    passed_init(&passed, START);
    waits = counters_hist(COUNTERS_SUB_BITS);
}

static void
tear_down(void)
{
    hist_destroy(&waits);
}

FIXTURE(set_up, tear_down);

TEST(test_none)
{
    passed_settle(&passed, START + NSEC_PER_SEC, waits);
    ck_assert_uint_eq(hist_count(waits), 0);
}

static const nsec_t offsets[] = {0, 1, 12345678901, UINT64_C(86400) * NSEC_PER_SEC};

/* One that is alone is exact, however long the window was until then. */
TEST_ROWS(test_alone, offsets, NULL)
{
    passed_add(&passed, START + *row);
    passed_settle(&passed, START + *row + 7, waits);
    ck_assert_uint_eq(hist_count(waits), 1);
    ck_assert_uint_eq(hist_max(waits), 7);
}

/* No wait is too long, nor too short by more than a thousandth of the window. */
TEST(test_many)
{
    const nsec_t gap = 100 * NSEC_PER_USEC, end = START + 50 * NSEC_PER_SEC;
    struct hist *exact = counters_hist(COUNTERS_SUB_BITS);
    for (nsec_t at = START; at < end; at += gap) {
        passed_add(&passed, at);
        hist_record(exact, end - at);
    }
    passed_settle(&passed, end, waits);
    ck_assert_uint_eq(hist_count(waits), hist_count(exact));
    for (unsigned i = 1; i <= 100; i++) {
        uint64_t is = hist_quantile(waits, i / 100.),
                 meant = hist_quantile(exact, i / 100.);
        /* And the width of a bucket of either. */
        uint64_t bucket = meant / 500;
        expect_between(is + 50 * NSEC_PER_MSEC + bucket, meant, UINT64_MAX);
        ck_assert_uint_le(is, meant + bucket);
    }
    hist_destroy(&exact);
}

/* What was to start behind the end has not waited. */
TEST(test_behind_the_end)
{
    passed_add(&passed, START + NSEC_PER_SEC);
    passed_settle(&passed, START, waits);
    ck_assert_uint_eq(hist_count(waits), 1);
    ck_assert_uint_eq(hist_max(waits), 0);
}
