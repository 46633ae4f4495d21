/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The relative clock at given times; where a real clock is involved only bounds hold.
 */
#include "base/clock.h"

#include <time.h>

#include "base/changes.h"
#include "base/must.h"
#include "check_main.h"

/* Each test runs in a process of its own, so the shift starts at 0. The start lies between
 * these two readings, and both of them lie in the same second of the relative clock. Nothing came
 * between the start's own two. */
static nsec_t before, after;

static void
set_up(void)
{
    do {
        before = clock_now();
        clock_init();
        after = clock_now();
    } while (clock_rel(after) != CLOCK_REL_START || after - before > NSEC_PER_MSEC);
}

FIXTURE(set_up, NULL);

TEST(test_starts_at_62)
{
    ck_assert_uint_eq(CLOCK_REL_START, 62);
    ck_assert_uint_eq(clock_rel(before), CLOCK_REL_START);
    ck_assert_uint_eq(clock_rel(after + NSEC_PER_SEC), CLOCK_REL_START + 1);
    ck_assert_uint_eq(clock_rel(after + 86400 * NSEC_PER_SEC), CLOCK_REL_START + 86400);
}

static int64_t
wall_offset(void)
{
    nsec_t begin;
    int64_t offset;
    do {
        begin = clock_now();
        offset = clock_wall_offset();
    } while (clock_now() - begin > NSEC_PER_MSEC);
    return offset;
}

/* Full seconds of the wall are full seconds here. The two clocks are read one after the other,
 * hence the bounds. */
TEST(test_ticks_with_the_wall)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    nsec_t second = before + 2 * NSEC_PER_SEC - (nsec_t)ts.tv_nsec;
    uint32_t tick = clock_rel(second + NSEC_PER_SEC / 2);
    nsec_t low = second - NSEC_PER_SEC / 2, high = second + NSEC_PER_SEC / 2;

    while (high - low > 1) {
        nsec_t mid = low + (high - low) / 2;
        *(clock_rel(mid) < tick ? &low : &high) = mid;
    }
    nsec_t wall = (nsec_t)(wall_offset() + (int64_t)high) % NSEC_PER_SEC;
    expect(wall < 20 * NSEC_PER_MSEC || wall > 980 * NSEC_PER_MSEC);
}

/* A reading from before the start, as another CPU may bring it, is the start. */
TEST(test_never_before_its_start)
{
    ck_assert_uint_eq(clock_rel(before - 5 * NSEC_PER_SEC), CLOCK_REL_START);
    ck_assert_uint_eq(clock_rel(0), CLOCK_REL_START);
}

TEST(test_never_goes_back)
{
    uint32_t last = 0;
    for (nsec_t now = before; now < before + 20 * NSEC_PER_SEC; now += NSEC_PER_MSEC) {
        uint32_t rel = clock_rel(now);
        expect(rel == last || rel == last + 1 || last == 0);
        last = rel;
    }
}

TEST(test_long_up_time)
{
    nsec_t years = UINT64_C(100) * 365 * 86400;
    ck_assert_uint_eq(clock_rel(after + years * NSEC_PER_SEC), CLOCK_REL_START + years);
}

TEST(test_shift)
{
    int64_t wall = clock_wall();
    nsec_t now = clock_now();
    clock_shift(1000);
    ck_assert_uint_eq(clock_rel(after + NSEC_PER_SEC), CLOCK_REL_START + 1001);
    ck_assert_int_ge(clock_wall(), wall + 1000);
    ck_assert_int_le(clock_wall(), wall + 1000 + SUITE_TIMEOUT_S);
    clock_shift(-400);
    ck_assert_uint_eq(clock_rel(after + NSEC_PER_SEC), CLOCK_REL_START + 601);
    clock_shift(0);
    clock_shift(-600);
    ck_assert_uint_eq(clock_rel(after + NSEC_PER_SEC), CLOCK_REL_START + 1);
    ck_assert_uint_lt(clock_now() - now, SUITE_TIMEOUT_S * NSEC_PER_SEC);
}

/* For a second it is the same, unless it is moved by hand, which is counted. */
TEST(test_since)
{
    nsec_t since, other;
    for (nsec_t now = after; now < after + 3 * NSEC_PER_SEC; now += NSEC_PER_MSEC / 3) {
        uint32_t rel = clock_rel_since(now, &since);
        expect(rel == clock_rel(now) && now - since < NSEC_PER_SEC);
        expect(clock_rel_since(since, &other) == rel && other == since);
        expect(clock_rel(since + NSEC_PER_SEC - 1) == rel);
        expect(clock_rel(since + NSEC_PER_SEC) == rel + 1);
    }
    ck_assert_uint_eq(clock_rel_since(0, &since), CLOCK_REL_START);
    ck_assert_uint_eq(since, 0);
    uint32_t changes = changes_count();
    clock_shift(5);
    ck_assert_uint_ne(changes_count(), changes);
    changes = changes_count();
    clock_pause();
    ck_assert_uint_ne(changes_count(), changes);
    changes = changes_count();
    uint32_t stopped = clock_rel_since(after + 100 * NSEC_PER_SEC, &since);
    ck_assert_uint_lt(after + 100 * NSEC_PER_SEC - since, NSEC_PER_SEC);
    ck_assert_uint_eq(clock_rel(since), stopped);
    clock_resume();
    ck_assert_uint_ne(changes_count(), changes);
}

/* The start on the wall does not move with the shift: it is what the relative clock counts
 * from. */
TEST(test_started)
{
    int64_t started = clock_started();
    int64_t wall = clock_wall(); /* time(NULL) is that of the last tick */
    ck_assert_int_le(started, wall - CLOCK_REL_START);
    ck_assert_int_ge(started, wall - CLOCK_REL_START - SUITE_TIMEOUT_S);
    clock_shift(5000);
    ck_assert_int_eq(clock_started(), started);
}

TEST(test_pause_stops_the_relative_clock)
{
    clock_shift(10);
    clock_pause();
    uint32_t stopped = clock_rel(clock_now());
    ck_assert_uint_ge(stopped, CLOCK_REL_START + 10);
    ck_assert_uint_eq(clock_rel(after + 100 * NSEC_PER_SEC), stopped);
    ck_assert_uint_eq(clock_rel(after + 10000 * NSEC_PER_SEC), stopped);
    clock_shift(7); /* may still be moved by hand */
    ck_assert_uint_eq(clock_rel(after + 100 * NSEC_PER_SEC), stopped + 7);
    clock_pause(); /* a second pause changes nothing */
    ck_assert_uint_eq(clock_rel(after + 100 * NSEC_PER_SEC), stopped + 7);
}

TEST(test_resume)
{
    clock_resume(); /* without a pause: nothing */
    ck_assert_uint_eq(clock_rel(before), CLOCK_REL_START);
    clock_pause();
    uint32_t stopped = clock_rel(clock_now());
    clock_resume();
    uint32_t resumed = clock_rel(clock_now());
    ck_assert_uint_ge(resumed, stopped);
    ck_assert_uint_le(resumed, stopped + SUITE_TIMEOUT_S);
    /* Runs again. */
    ck_assert_uint_ge(clock_rel(after + 1000 * NSEC_PER_SEC), CLOCK_REL_START + 999);
    ck_assert_uint_ge(clock_rel(after + 2000 * NSEC_PER_SEC),
                      clock_rel(after + 1000 * NSEC_PER_SEC) + 1000);
}

TEST(test_a_condition_by_its_time)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed;
    clock_cond_init(&changed);
    PTHREAD_OK(pthread_mutex_lock(&mutex));
    nsec_t until = clock_now() + NSEC_PER_MSEC;
    while (clock_cond_wait(&changed, &mutex, until)) {
    }
    ck_assert_uint_ge(clock_now(), until);
    ck_assert(!clock_cond_wait(&changed, &mutex, 1)); /* long ago */
    PTHREAD_OK(pthread_mutex_unlock(&mutex));
    PTHREAD_OK(pthread_cond_destroy(&changed));
}

TEST(test_goes_on_from_another)
{
    int64_t wall = clock_started() + CLOCK_REL_START;
    clock_continue(wall - 5000, 100);
    ck_assert_int_eq(clock_started(), wall - 5000);
    ck_assert_uint_eq(clock_rel(before), 5000);
    ck_assert_uint_eq(clock_rel(after + 7 * NSEC_PER_SEC), 5007);
    clock_shift(3);
    ck_assert_uint_eq(clock_rel(after), 5003);
    ck_assert_int_eq(clock_started(), wall - 5000);
}

TEST(test_goes_on_though_the_wall_clock_went_back)
{
    int64_t wall = clock_started() + CLOCK_REL_START;
    clock_continue(wall + 1000, 777);
    ck_assert_uint_eq(clock_rel(after), 777);
    ck_assert_int_eq(clock_started(), wall - 777);
    clock_continue(0, 0); /* long ago */
    ck_assert_uint_eq(clock_rel(after), wall);
    clock_continue(-(INT64_C(1) << 40), 0); /* longer than the clock can show */
    ck_assert_uint_eq(clock_rel(after), UINT32_MAX);
}
