/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/timer.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LATEST (UINT64_MAX / 4) /* what a timespec holds */

int
timer_open(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
}

void
timer_set(int fd, nsec_t when)
{
    when = when < LATEST ? when : LATEST;
    struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(when / NSEC_PER_SEC),
                                           .tv_nsec = (long)(when % NSEC_PER_SEC)}};
    must(timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

bool
timer_take(int fd)
{
    uint64_t expirations;
    if (read(fd, &expirations, sizeof expirations) < 0) {
        must(errno == EAGAIN || errno == EINTR);
        return false;
    }
    return true;
}
