/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A descriptor that is readable from a moment of clock_now on: for loops that wait for
 * descriptors. Its owner's thread.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

/* Set to no time. -1 with errno: no descriptor. */
must_check int timer_open(void);
/* From `when` on, and not for an earlier time that was set. */
void timer_set(int fd, nsec_t when);
/* It is readable no more; false when it was not. */
bool timer_take(int fd);
