/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/nudger.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/cpumask.h"
#include "place/pinner.h"
#include "place/prio.h"
#include "place/threadstat.h"

static const struct prio_spec realtime = {.policy = PRIO_FIFO, .priority = 1};

static uint64_t
waited(const struct nudger *n)
{
    struct threadstat times;
    threadstat_reread_times(n->schedstat, &times);
    return times.wait_ns;
}

/* ---- the nudger's thread ---------------------------------------------------------------- */

static void
sleep_for(nsec_t pause)
{
    struct timespec t = {.tv_nsec = (long)pause};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
    }
}

static void
work(struct nudger *n)
{
    nsec_t pause;
    nudge_begin(&n->policy, waited(n), clock_now());
    while (!atomic_load_explicit(&n->is_stopping, memory_order_relaxed) &&
           (pause = nudge_step(&n->policy, waited(n), clock_now())) != 0) {
        sleep_for(pause);
        ctr_add(&n->nudges, 1);
    }
}

/* Is it the worker's only CPU, and no other worker's? Those that share one wait for each other. */
static bool
has_own_cpu(const struct nudger *n, const struct cpumask *there)
{
    for (unsigned i = 0; i < n->others->count; i++) {
        struct cpumask other, common;
        if (i != n->index && cpumask_read(n->others->all[i].worker, &other) == 0) {
            common = cpumask_common(&other, there);
            if (cpumask_count(&common) > 0) {
                return false;
            }
        }
    }
    return cpumask_count(there) == 1;
}

/* On the worker's CPU, and where it was before afterwards. */
static void
work_beside(struct nudger *n)
{
    struct cpumask before, there;
    if (cpumask_read(0, &before) == 0 && cpumask_read(n->worker, &there) == 0 &&
        has_own_cpu(n, &there) && cpumask_bind(0, &there) == 0) {
        work(n);
        (void)!cpumask_bind(0, &before); /* it only sleeps, wherever that is */
    }
}

static void
await(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
        must(errno == EINTR);
    }
}

static void *
nudger_main(void *arg)
{
    struct nudger *n = arg;
    char name[16];
    snprintf(name, sizeof name, "mc-nudge %u", n->index % 1000);
    PTHREAD_OK(pthread_setname_np(pthread_self(), name));
    n->tid = gettid();
    must(sem_post(&n->is_known) == 0);
    await(&n->go);
    while (!atomic_load(&n->is_stopping)) {
        work_beside(n);
        atomic_store(&n->is_at_work, false);
        await(&n->go);
    }
    return NULL;
}

/* ---- once a second ---------------------------------------------------------------------- */

static void
look_after(struct nudger *n)
{
    if (!n->is_started || atomic_load(&n->is_at_work) ||
        !nudge_suspects(&n->policy, waited(n), clock_now())) {
        return;
    }
    atomic_store(&n->is_at_work, true);
    must(sem_post(&n->go) == 0);
}

void
nudgers_second(struct nudgers *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        look_after(&n->all[i]);
    }
}

/* ---- life ------------------------------------------------------------------------------- */

static void
start(struct nudger *n)
{
    n->is_started = pthread_create(&n->thread, NULL, nudger_main, n) == 0;
    if (n->is_started) {
        await(&n->is_known);
    } else {
        n->is_refused = true;
    }
}

static void
stop(struct nudger *n)
{
    if (n->is_started) {
        atomic_store(&n->is_stopping, true);
        must(sem_post(&n->go) == 0);
        PTHREAD_OK(pthread_join(n->thread, NULL));
        n->is_started = false;
    }
}

bool
nudgers_open(struct nudgers *n, struct pinner *pinner, unsigned count)
{
    n->all = calloc(count, sizeof n->all[0]);
    if (n->all == NULL) {
        return false;
    }
    n->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct nudger *one = &n->all[i];
        one->index = i;
        one->others = n;
        struct pinner_seat seat;
        pinner_seat(pinner, i, &seat);
        one->worker = seat.tid;
        one->schedstat = threadstat_open_times(one->worker);
        must(sem_init(&one->is_known, 0, 0) == 0 && sem_init(&one->go, 0, 0) == 0);
        start(one);
    }
    return true;
}

void
nudgers_raise(struct nudgers *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        struct nudger *one = &n->all[i];
        if (one->is_started && prio_apply(&realtime, one->tid) != 0) {
            one->is_refused = true;
            stop(one);
        }
    }
}

void
nudgers_close(struct nudgers *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        struct nudger *one = &n->all[i];
        stop(one);
        must(sem_destroy(&one->is_known) == 0 && sem_destroy(&one->go) == 0);
        if (one->schedstat >= 0) {
            close(one->schedstat);
        }
    }
    free(n->all);
    *n = (struct nudgers){.count = 0};
}

uint64_t
nudgers_nudges(const struct nudgers *n)
{
    uint64_t nudges = 0;
    for (unsigned i = 0; i < n->count; i++) {
        nudges += ctr_get(&n->all[i].nudges);
    }
    return nudges;
}

unsigned
nudgers_refused(const struct nudgers *n)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < n->count; i++) {
        refused += n->all[i].is_refused;
    }
    return refused;
}
