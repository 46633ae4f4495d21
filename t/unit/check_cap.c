/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much a process may move: never more than its rate and one burst, and no less.
 */
#include "loadgen/drive/pacing.h"

#include "base/rng.h"
#include "check_main.h"

#define START (100 * NSEC_PER_SEC)

TEST(without_limits)
{
    struct cap c;
    cap_init(&c, 0, 0);
    ck_assert(!cap_is_on(&c));
    ck_assert_uint_le(cap_spend(&c, 1000000, UINT64_C(1) << 40, START), START);
    cap_init(&c, 0, 1);
    ck_assert(cap_is_on(&c));
    cap_init(&c, 1, 0);
    ck_assert(cap_is_on(&c));
}

/* Whoever does as told moves the rate, and the burst once, however unevenly. */
TEST(the_rate_is_held)
{
    static const struct {
        double requests, bytes;
    } rates[] = {{1000, 0}, {0, 1e6}, {1e5, 1e6}, {100, 1e9}, {7, 0}};
    struct rng r;
    rng_init(&r, 3, 0);
    for (unsigned i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct cap c;
        nsec_t now = START, end = START + 100 * NSEC_PER_SEC;
        double requests = 0, bytes = 0, last = 0;
        cap_init(&c, rates[i].requests, rates[i].bytes);
        while (now < end) {
            uint64_t n = rng_below(&r, 20), b = n * rng_below(&r, 2000);
            nsec_t when = cap_spend(&c, n, b, now);
            requests += (double)n;
            bytes += (double)b;
            last = (double)b;
            now += NSEC_PER_MSEC / 10;
            now = when > now ? when : now;
        }
        double seconds = (double)(now - START) / 1e9;
        double by_requests =
            rates[i].requests > 0 ? requests / (rates[i].requests * (seconds + 1)) : 0;
        double by_bytes =
            rates[i].bytes > 0 ? (bytes - last) / (rates[i].bytes * (seconds + .1)) : 0;
        double most = by_requests > by_bytes ? by_requests : by_bytes;
        ck_assert_msg(most < 1.03 && most > .98, "rate %u: %g of it", i, most);
    }
}

TEST(a_pause_is_made_up_for_once)
{
    struct cap c;
    cap_init(&c, 1000, 0);
    nsec_t later = START + 1000 * NSEC_PER_SEC;
    ck_assert_uint_le(cap_spend(&c, 1000, 0, START), START);
    ck_assert_uint_eq(cap_spend(&c, 500, 0, START), START + NSEC_PER_SEC / 2);
    ck_assert_uint_le(cap_spend(&c, 1000, 0, later), later);
    ck_assert_uint_eq(cap_spend(&c, 1, 0, later), later + NSEC_PER_MSEC);
}

TEST(whoever_holds_can_be_ended)
{
    struct cap c;
    atomic_bool stop = true;
    cap_init(&c, 1, 0);
    nsec_t begin = clock_now();
    cap_throttle(&c, 1000000, 0, UINT64_MAX, &stop);
    cap_throttle(&c, 1000000, 0, begin, NULL);
    ck_assert_uint_lt(clock_now(), begin + 1000 * NSEC_PER_SEC);
    cap_init(&c, 100, 0);
    nsec_t until = cap_throttle(&c, 105, 0, UINT64_MAX, NULL);
    ck_assert_uint_ge(until, begin + 50 * NSEC_PER_MSEC);
}
