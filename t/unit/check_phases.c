/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A run's moments as spans of seconds since it was opened.
 */
#include "check_main.h"
#include "loadgen/measure/result.h"

#define SEC NSEC_PER_SEC

static void
is_span(const struct result_span *p, double start_s, double stop_s)
{
    ck_assert_double_eq(p->start_s, start_s);
    ck_assert_double_eq(p->stop_s, stop_s);
}

TEST(one_after_the_other)
{
    struct result_span p[PHASES];
    struct phase_times t = {10 * SEC, 12 * SEC, true,    13 * SEC,
                            14 * SEC, 19 * SEC, 20 * SEC};
    result_phases(&t, p);
    is_span(&p[PHASE_LOAD], 0, 2);
    is_span(&p[PHASE_WARMUP], 3, 4);
    is_span(&p[PHASE_MEASURE], 4, 9);
    is_span(&p[PHASE_DRAIN], 9, 10);
    t.is_first = false; /* records were stored before another run */
    result_phases(&t, p);
    is_span(&p[PHASE_LOAD], 0, 0);
    ck_assert_str_eq(result_phase_names[PHASE_LOAD], "load");
    ck_assert_str_eq(result_phase_names[PHASE_DRAIN], "drain");
}

TEST(a_run_that_ends_in_its_warm_up)
{
    struct result_span p[PHASES];
    struct phase_times t = {10 * SEC, 12 * SEC, true,    13 * SEC,
                            17 * SEC, 15 * SEC, 15 * SEC};
    result_phases(&t, p);
    is_span(&p[PHASE_WARMUP], 3, 5);
    ck_assert_double_eq(p[PHASE_MEASURE].start_s, p[PHASE_MEASURE].stop_s);
    is_span(&p[PHASE_DRAIN], 5, 5);
}
