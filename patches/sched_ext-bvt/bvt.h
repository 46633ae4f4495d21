/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the scheduler in the kernel and its loader both know.
 */
#pragma once

#define BVT_NAME_LEN 16 /* of a thread, with its end */
#define BVT_RULES_MOST 256
#define BVT_CPUS_MOST 1024

struct bvt_name {
    unsigned bits; /* of the text, that count */
    char text[BVT_NAME_LEN];
};

/* Nanoseconds. A thread with a warp that has run for `limit` with it goes without for `rest`. */
struct bvt_warp {
    unsigned long long warp, limit, rest;
};

enum bvt_counter {
    BVT_RUNS,
    BVT_WARPED, /* of them with a warp */
    BVT_WAKEUPS,
    BVT_PREEMPTED, /* wake-ups that took the CPU from another thread */
    BVT_LIMITED,   /* times that a thread reached its limit */
    BVT_COUNTERS
};
