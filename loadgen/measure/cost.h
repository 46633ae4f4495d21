/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a sending thread itself cost in the measured window.
 */
#pragma once

struct cost {
    double elapsed_s, cpu_s;
    double idle_s; /* part of cpu_s: polled with nothing to do */
};
