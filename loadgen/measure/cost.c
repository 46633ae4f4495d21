/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/cost.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 128

/* Time on the CPU, time waited for one, slices; kernels without schedstats say 0. */
static double
waited(void)
{
    char text[TEXT_MAX];
    unsigned long long ran, wait;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%llu %llu", &ran, &wait) == 2 ? (double)wait / 1e9 : 0;
}

struct cost
cost_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (struct cost){.cpu_s = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9,
                         .wait_s = waited()};
}
