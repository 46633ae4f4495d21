/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#pragma once

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "base/must.h"

/* Waits for the semaphore, whatever signals come. */
static inline void
await(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
        must(errno == EINTR);
    }
}

/* The same up to this monotonic time; false: not by then. */
static inline must_check bool
await_until(sem_t *sem, const struct timespec *until)
{
    while (sem_clockwait(sem, CLOCK_MONOTONIC, until) != 0) {
        if (errno == ETIMEDOUT) {
            return false;
        }
        must(errno == EINTR);
    }
    return true;
}
