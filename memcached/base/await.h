/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#pragma once

#include <errno.h>
#include <semaphore.h>

#include "base/must.h"

/* Waits for the semaphore, whatever signals come. */
static inline void
await(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
        must(errno == EINTR);
    }
}
