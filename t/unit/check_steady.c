/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where a series has settled, and whether it drifts.
 */
#include "loadgen/measure/steady.h"

#include <math.h>

#include "base/rng.h"
#include "check_main.h"

#define N 200

static double values[N];

static double
noise(struct rng *rng)
{
    double sum = 0;
    for (unsigned i = 0; i < 12; i++) {
        sum += rng_unit(rng);
    }
    return sum - 6; /* nearly normal, deviation 1 */
}

/* Falls from 100 to 10 over the first `cold` numbers. */
static void
fill(unsigned seed, unsigned cold, double deviation)
{
    struct rng rng = rng_of(seed, 0);
    for (unsigned i = 0; i < N; i++) {
        values[i] = 10 + deviation * noise(&rng);
        values[i] += i < cold ? 90.0 * (cold - i) / cold : 0;
    }
}

TEST(test_cut)
{
    unsigned restless = 0; /* by chance, and no harm: one waits a little longer */
    for (unsigned seed = 1; seed <= 50; seed++) {
        fill(seed, 0, 1);
        restless += steady_cut(values, N) == N ? 1 : 0;
        fill(seed, 40, 1);
        unsigned cut = steady_cut(values, N);
        ck_assert_uint_ge(cut, 35);
        restless += cut == N ? 1 : 0;
    }
    ck_assert_uint_le(restless, 8);
    fill(1, 0, 0);
    ck_assert_uint_eq(steady_cut(values, N), 0); /* constant from the start */
}

TEST(test_not_settled)
{
    fill(1, 180, 1);
    ck_assert_uint_eq(steady_cut(values, N), N); /* still falling */
    for (unsigned i = 0; i < N; i++) {
        values[i] = i;
    }
    ck_assert_uint_eq(steady_cut(values, N), N);
    ck_assert_uint_eq(steady_cut(values, 19), 19); /* too short */
    ck_assert_uint_eq(steady_cut(values, 0), 0);
}

TEST(test_drift)
{
    unsigned alarms = 0;
    for (unsigned seed = 1; seed <= 200; seed++) {
        fill(seed, 0, 1);
        alarms += drift_of(values, N).t > 4 ? 1 : 0;
    }
    ck_assert_uint_le(alarms, 2);
    for (unsigned i = N / 2; i < N; i++) {
        values[i] += 5;
    }
    struct drift d = drift_of(values, N);
    ck_assert_double_gt(d.t, 4);
    ck_assert_double_eq_tol(d.change, .5, .05);
    for (unsigned i = 0; i < N; i++) {
        values[i] = 0;
    }
    d = drift_of(values, N);
    ck_assert_double_eq(d.t, 0);
    ck_assert_double_eq(d.change, 0);
    ck_assert_double_eq(drift_of(values, 15).t, 0);
    /* None is left out, also where halves have no whole number of pieces. */
    for (unsigned n = 16; n < 48; n++) {
        for (unsigned i = 0; i < n; i++) {
            values[i] = i + 1 < n ? 1 : 1000;
        }
        d = drift_of(values, n);
        ck_assert_double_eq_tol(d.change, 999 / (double)(n - n / 2), 1e-9);
    }
}
