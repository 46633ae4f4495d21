/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the kernel is nudged: on a model of a worker that waits, or does not.
 */
#include "place/nudge.h"

#include "check_main.h"

static struct nudge n;
static nsec_t now;
static uint64_t wait_ns;

static void
start(void)
{
    n = (struct nudge){0};
    now = 5 * NSEC_PER_SEC;
    wait_ns = 0;
    ck_assert(!nudge_suspects(&n, wait_ns, now)); /* there is nothing to compare with */
}

/* A second in which the worker waits for this part of it. */
static bool
second(double part)
{
    now += NSEC_PER_SEC;
    wait_ns += (uint64_t)(part * (double)NSEC_PER_SEC);
    return nudge_suspects(&n, wait_ns, now);
}

/* Nudges with so much wait in each window, for as long as nothing ends it, but no longer than
 * `most`. Returns how long it went on; *windows: how many there were. */
static nsec_t
nudged(uint64_t wait_in_window, nsec_t most, unsigned *windows)
{
    nsec_t began = now, pause;
    *windows = 0;
    nudge_begin(&n, wait_ns, now);
    while (now - began < most && (pause = nudge_step(&n, wait_ns, now)) != 0) {
        now += pause;
        wait_ns += wait_in_window;
        ++*windows;
    }
    return now - began;
}

TEST(who_does_not_wait_is_left_alone)
{
    start();
    for (unsigned i = 0; i < 100; i++) {
        ck_assert(!second(NUDGE_WAIT * 0.9));
    }
    ck_assert(second(NUDGE_WAIT * 1.1));
}

/* Many short waits: to be woken up takes time. */
TEST(trials_that_show_nothing_become_rare)
{
    unsigned trials = 0, windows;
    start();
    for (unsigned i = 0; i < 200; i++) {
        if (second(0.02)) {
            trials++;
            nsec_t took = nudged(NUDGE_LATE_NS / 2, NSEC_PER_SEC, &windows);
            ck_assert_uint_eq(took, NUDGE_TRIAL_NS);
            ck_assert_uint_eq(windows, NUDGE_TRIAL_NS / NUDGE_WIDE_NS);
        }
    }
    expect_between(trials, 200 >> NUDGE_FUTILE_MAX,
                   NUDGE_FUTILE_MAX + 1 + (200 >> NUDGE_FUTILE_MAX));
    /* after a quiet second it is soon again */
    ck_assert(!second(0));
    ck_assert(second(0.02));
}

TEST(goes_on_while_it_is_late)
{
    unsigned windows;
    start();
    ck_assert(second(0.02));
    /* in each window: close ones, to the end of the stint */
    nsec_t took = nudged(NUDGE_LATE_NS, 2 * NUDGE_STINT_NS, &windows);
    ck_assert_uint_ge(took, NUDGE_STINT_NS);
    ck_assert_uint_lt(took, NUDGE_STINT_NS + NUDGE_WIDE_NS);
    ck_assert_uint_ge(windows, NUDGE_STINT_NS / NUDGE_CLOSE_NS - 10);
    ck_assert(second(0.02)); /* at once again: it was not futile */
}

/* One late window, and none after. */
TEST(ends_a_second_after_the_last)
{
    unsigned windows;
    start();
    ck_assert(second(0.02));
    nudge_begin(&n, wait_ns, now);
    wait_ns += NUDGE_LATE_NS;
    ck_assert_uint_eq(nudge_step(&n, wait_ns, now), NUDGE_CLOSE_NS);
    nsec_t began = now, pause;
    for (windows = 0; (pause = nudge_step(&n, wait_ns, now)) != 0; windows++) {
        ck_assert_uint_eq(pause,
                          now - began < NUDGE_SOON_NS ? NUDGE_CLOSE_NS : NUDGE_WIDE_NS);
        now += pause;
    }
    ck_assert_uint_ge(now - began, NUDGE_LAST_NS);
    ck_assert_uint_lt(now - began, NUDGE_LAST_NS + NUDGE_WIDE_NS);
    ck_assert_uint_le(windows,
                      NUDGE_SOON_NS / NUDGE_CLOSE_NS + NUDGE_LAST_NS / NUDGE_WIDE_NS + 1);
}

/* Waits of `each` that begin every `period`, known when they are over, as the kernel tells them,
 * and short ones in the windows between. Returns for how long it was nudged. */
static nsec_t
nudged_beside(nsec_t each, nsec_t period, uint64_t between)
{
    nsec_t began = now, pause;
    uint64_t reported = 0;
    nudge_begin(&n, wait_ns, now);
    while ((pause = nudge_step(&n, wait_ns, now)) != 0) {
        now += pause;
        uint64_t over = (now - began + period - each) / period;
        if (over > reported) {
            reported = over;
            wait_ns += each;
        } else {
            wait_ns += (now - began) % period >= each ? between : 0;
        }
    }
    return now - began;
}

/* A neighbour that comes first, whatever the kernel is made to look at. */
TEST(what_is_of_no_use_becomes_rare)
{
    nsec_t nudged_for = 0;
    unsigned trials = 0;
    start();
    for (unsigned i = 0; i < 200; i++) {
        if (second(0.02)) {
            trials++;
            nsec_t took =
                nudged_beside(6 * NSEC_PER_MSEC, 48 * NSEC_PER_MSEC, NUDGE_LATE_NS / 2);
            ck_assert_uint_le(took, NUDGE_JUDGE_NS + NUDGE_WIDE_NS);
            nudged_for += took;
        }
    }
    ck_assert_uint_ge(trials, 200 >> NUDGE_FUTILE_MAX);
    ck_assert_uint_le(nudged_for, (NUDGE_FUTILE_MAX + 1 + (200 >> NUDGE_FUTILE_MAX)) *
                                      (NUDGE_JUDGE_NS + NUDGE_WIDE_NS));
    ck_assert(!second(0));
    ck_assert(second(0.02)); /* after a quiet second it is soon again */
}

/* Waits that end soon after a nudge; and some that do not, as long as they are the lesser part. */
static const struct {
    nsec_t each;
    uint64_t between;
} useful[] = {{400 * NSEC_PER_USEC, 0},
              {NUDGE_OUTLAST_NS - NUDGE_WIDE_NS, 0},
              {4 * NSEC_PER_MSEC, NUDGE_LATE_NS},
              {4 * NSEC_PER_MSEC, NUDGE_LATE_NS - 1}};

TEST_LOOP(what_is_of_use_goes_on, ROWS(useful))
{
    start();
    ck_assert(second(0.02));
    nsec_t took = nudged_beside(useful[_i].each, 48 * NSEC_PER_MSEC, useful[_i].between);
    ck_assert_uint_ge(took, NUDGE_STINT_NS);
    ck_assert(second(0.02)); /* at once again */
}

/* Counters and clocks that stand still or go back. */
TEST(odd_numbers_do_no_harm)
{
    start();
    ck_assert(!nudge_suspects(&n, 0, now - NSEC_PER_SEC));
    ck_assert(!nudge_suspects(&n, 0, now));
    nudge_begin(&n, NSEC_PER_SEC, now);
    ck_assert_uint_eq(nudge_step(&n, 0, now), NUDGE_WIDE_NS);
    ck_assert_uint_eq(nudge_step(&n, 0, now + NUDGE_TRIAL_NS), 0);
}
