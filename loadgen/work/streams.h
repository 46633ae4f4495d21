/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which random numbers belong to which thread: every thread of every process that takes
 * part in a run has its own for each purpose, all from one seed. Pure.
 */
#pragma once

#include <stdint.h>

enum stream {
    STREAM_REQUESTS,
    STREAM_ARRIVALS,
    STREAM_MANNERS, /* of users, connections, backends: think times, sessions, lives, fetches */
    STREAMS,
};

#define STREAM_THREADS 65536

static inline uint64_t
stream_of(unsigned agent, unsigned thread, enum stream s)
{
    return ((uint64_t)agent * STREAM_THREADS + thread) * STREAMS + s;
}
