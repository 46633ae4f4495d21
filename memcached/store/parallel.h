/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Work in parts for several threads, while no other thread is in the store. Private to store/.
 */
#pragma once

#include "base/must.h"

#define PARALLEL_MAX 64u

/* Does part `i`. `thread` is the number of the thread that does it, below how many there are. False: it went wrong,
 * and the parts that have not begun are not needed. */
typedef bool parallel_step(void *ctx, unsigned thread, size_t i);

/* How many threads so many parts are for, if `threads` are allowed. */
unsigned parallel_size(unsigned threads, size_t parts);

/* Calls step for each part, the calling thread and as many others as the size says and the system
 * starts, and waits for them. What they did has happened before it returns. */
must_check bool parallel_run(unsigned size, size_t parts, parallel_step *step, void *ctx);
