/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a sending thread itself cost in the measured window, and what it was kept from.
 */
#pragma once

struct cost {
    double elapsed_s, cpu_s;
    double idle_s; /* part of cpu_s: polled with nothing to do */
    double wait_s; /* had work, and no CPU (the kernel's schedstat); 0: not known */
};

/* Of the calling thread, since it began: CPU time and time waited for a CPU. A dozen
 * microseconds. */
struct cost cost_now(void);
