/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/cpuset.h"

#include <errno.h>
#include <unistd.h>

static void
await(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
        must(errno == EINTR);
    }
}

static void
close_semaphores(struct cpuset *c)
{
    must(sem_destroy(&c->is_known) == 0 && sem_destroy(&c->end) == 0);
}

static void *
sleeper_main(void *arg)
{
    struct cpuset *c = arg;
    PTHREAD_OK(pthread_setname_np(pthread_self(), "mc-cpuset"));
    c->tid = gettid();
    must(sem_post(&c->is_known) == 0);
    await(&c->end);
    return NULL;
}

bool
cpuset_open(struct cpuset *c)
{
    must(sem_init(&c->is_known, 0, 0) == 0 && sem_init(&c->end, 0, 0) == 0);
    int error = pthread_create(&c->thread, NULL, sleeper_main, c);
    if (error != 0) {
        close_semaphores(c);
        errno = error;
        return false;
    }
    await(&c->is_known);
    return true;
}

void
cpuset_close(struct cpuset *c)
{
    if (c->tid != 0) {
        must(sem_post(&c->end) == 0);
        PTHREAD_OK(pthread_join(c->thread, NULL));
        close_semaphores(c);
        c->tid = 0;
    }
}

int
cpuset_read(const struct cpuset *c, struct cpumask *m)
{
    struct cpumask before, all;
    int error = cpumask_read(c->tid, &before);
    if (error != 0) {
        return error;
    }
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(c->tid, sizeof all.sets, all.sets) != 0) {
        return errno;
    }
    error = cpumask_read(c->tid, m);
    /* Fails when the cpuset has lost all of them meanwhile: then the thread may stay free. */
    (void)!sched_setaffinity(c->tid, sizeof before.sets, before.sets);
    return error;
}
