/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A timer of a loop that waits for descriptors.
 */
#include "base/timer.h"

#include <poll.h>
#include <unistd.h>

#include "check_main.h"

static int fd;

static void
set_up(void)
{
    fd = timer_open();
    ck_assert_int_ge(fd, 0);
}

static void
tear_down(void)
{
    close(fd);
}

static bool
is_readable(int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

FIXTURE(set_up, tear_down);

TEST(test_is_readable_until_it_is_taken)
{
    ck_assert(!is_readable(0));
    timer_set(fd, clock_now() + NSEC_PER_MSEC);
    ck_assert(is_readable(-1));
    ck_assert(is_readable(0));
    ck_assert(timer_take(fd));
    ck_assert(!is_readable(0));
    ck_assert(!timer_take(fd));
}

TEST(test_a_time_that_has_gone_by_is_now)
{
    timer_set(fd, 1);
    ck_assert(is_readable(-1));
}

TEST(test_a_new_time_replaces_the_old_one)
{
    timer_set(fd, 1);
    ck_assert(is_readable(-1));
    timer_set(fd, UINT64_MAX);
    ck_assert(!is_readable(0));
    ck_assert(!timer_take(fd));
}
