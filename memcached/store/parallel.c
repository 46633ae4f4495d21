/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

/* Its atomics are relaxed: which thread takes which part is of no account, and the end of the threads
 * orders the rest. */
struct parallel_job {
    parallel_step *step;
    void *ctx;
    size_t parts;
    atomic_size_t next;
    atomic_bool has_failed;
};

struct hand {
    struct parallel_job *job;
    unsigned number;
    pthread_t thread;
};

static void *
work(void *arg)
{
    const struct hand *h = arg;
    struct parallel_job *j = h->job;
    size_t i;

    while (!atomic_load_explicit(&j->has_failed, memory_order_relaxed) &&
           (i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) <
               j->parts) {
        if (!j->step(j->ctx, h->number, i)) {
            atomic_store_explicit(&j->has_failed, true, memory_order_relaxed);
        }
    }
    return NULL;
}

unsigned
parallel_size(unsigned threads, size_t parts)
{
    size_t size = threads < PARALLEL_MAX ? threads : PARALLEL_MAX;

    size = size < parts ? size : parts;
    return size > 0 ? (unsigned)size : 1;
}

bool
parallel_run(unsigned size, size_t parts, parallel_step *step, void *ctx)
{
    struct parallel_job job = {.step = step, .ctx = ctx, .parts = parts};
    struct hand hands[PARALLEL_MAX];
    unsigned n;

    must(size >= 1 && size <= PARALLEL_MAX);
    for (n = 0; n < size; n++) {
        hands[n] = (struct hand){.job = &job, .number = n};
        if (n > 0 && pthread_create(&hands[n].thread, NULL, work, &hands[n]) != 0) {
            break; /* fewer do the same */
        }
    }
    (void)work(&hands[0]);
    while (--n > 0) {
        PTHREAD_OK(pthread_join(hands[n].thread, NULL));
    }
    return !atomic_load_explicit(&job.has_failed, memory_order_relaxed);
}
