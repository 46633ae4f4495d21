/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Receiving with the kernel's timestamps, which the listeners turn on. The worker's thread.
 */
#pragma once

#include <sys/types.h>

#include "qos/sojourn.h"

/* As recv. Fills in all of *times but when the socket was reported ready. */
ssize_t stamp_recv(int fd, void *to, size_t room, struct sojourn_times *times);
