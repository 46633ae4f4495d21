/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The right to raise priorities (CAP_SYS_NICE), past the change of user that ends all others.
 * Rights belong to threads, and a new thread inherits its creator's. So main hands this one to
 * a thread that waits, before it starts any other; the thread runs one errand, when the
 * workers exist, and ends.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/must.h"

struct rights {
    bool is_kept; /* the process was root and is another user now */
    bool is_lent; /* the thread waits */
    pthread_t thread;
    sem_t go;
    void (*errand)(void *ctx);
    void *ctx;
};

/* As root, before the change of user. */
void rights_keep(struct rights *r);
/* After it: of what root had, this one right is left, or none. False, with errno: the kernel
 * refuses to take the others, and the process must not go on. */
must_check bool rights_reduce(struct rights *r);
/* Before other threads start: the caller has no rights any more. False: no thread, and no
 * right is left. */
must_check bool rights_lend(struct rights *r);
/* Runs the errand to its end: in the thread that has the right, or, when none was kept, in the
 * calling one. NULL: the thread just ends. */
void rights_use(struct rights *r, void (*errand)(void *ctx), void *ctx);
