/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/lthread.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/drive/load.h"

void
gate_init(struct gate *g)
{
    *g = (struct gate){0};
    PTHREAD_OK(pthread_mutex_init(&g->mutex, NULL));
    PTHREAD_OK(pthread_cond_init(&g->changed, NULL));
}

void
gate_fini(struct gate *g)
{
    PTHREAD_OK(pthread_cond_destroy(&g->changed));
    PTHREAD_OK(pthread_mutex_destroy(&g->mutex));
}

static void
gate_report(struct gate *g, bool is_ready)
{
    PTHREAD_OK(pthread_mutex_lock(&g->mutex));
    g->ready += is_ready ? 1 : 0;
    g->failed += is_ready ? 0 : 1;
    PTHREAD_OK(pthread_cond_broadcast(&g->changed));
    PTHREAD_OK(pthread_mutex_unlock(&g->mutex));
}

/* False when there is nothing to run. */
static bool
gate_wait(struct gate *g, struct drive_window *window)
{
    PTHREAD_OK(pthread_mutex_lock(&g->mutex));
    while (!g->is_open) {
        PTHREAD_OK(pthread_cond_wait(&g->changed, &g->mutex));
    }
    bool runs = !g->is_cancelled;
    *window = g->window;
    PTHREAD_OK(pthread_mutex_unlock(&g->mutex));
    return runs;
}

static const char *
take_place(struct lthread *t)
{
    if (t->conf.pin == NULL) {
        return NULL;
    }
    int error = pin_apply(t->conf.pin, t->conf.index);
    if (error != 0) {
        snprintf(t->err, sizeof t->err, "cannot pin a thread: %s", strerror(error));
        return t->err;
    }
    return NULL;
}

/* After loading, so that a server on the same CPUs is not kept from it. */
static const char *
take_priority(struct lthread *t)
{
    if (t->conf.fifo_priority == 0) {
        return NULL;
    }
    struct sched_param param = {.sched_priority = t->conf.fifo_priority};
    int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
    if (error != 0) {
        snprintf(t->err, sizeof t->err, "cannot set real-time priority %d: %s",
                 t->conf.fifo_priority, strerror(error));
        return t->err;
    }
    return NULL;
}

static const char *
load_slice(struct lthread *t, struct lset *set)
{
    if (!t->conf.loads) {
        return NULL;
    }
    struct load_slice slice =
        load_slice_of(set->conf.workload->conf.records, t->conf.index, t->conf.threads);
    return load_run(set, slice, &t->tally, t->err, sizeof t->err);
}

static const char *
prepare(struct lthread *t, struct lset *set, struct drive *d)
{
    const char *failed = take_place(t);
    failed =
        failed != NULL ? failed : lset_open(set, &t->conf.set, t->err, sizeof t->err);
    failed = failed != NULL ? failed : load_slice(t, set);
    failed = failed != NULL ? failed : take_priority(t);
    if (failed == NULL && !drive_init(d, &t->conf.drive, set, &t->tally)) {
        snprintf(t->err, sizeof t->err, "out of memory");
        failed = t->err;
    }
    return failed;
}

static void *
lthread_main(void *arg)
{
    struct lthread *t = arg;
    struct drive d = {0};
    struct drive_window window;
    /* Allocated here, so that its memory is local to the CPU. */
    struct lset *set = calloc(1, sizeof *set);
    must(set != NULL);
    set->epoll_fd = set->timer_fd = -1;
    bool is_ready = prepare(t, set, &d) == NULL;
    gate_report(t->gate, is_ready);
    if (is_ready && gate_wait(t->gate, &window)) {
        drive_run(&d, &window);
        t->cost = d.cost;
    }
    drive_fini(&d);
    lset_close(set);
    free(set);
    return NULL;
}

bool
lthread_start(struct lthread *t, const struct lthread_conf *conf, struct gate *gate)
{
    *t = (struct lthread){.conf = *conf, .gate = gate};
    if (!tally_init(&t->tally)) {
        return false;
    }
    if (pthread_create(&t->id, NULL, lthread_main, t) != 0) {
        tally_fini(&t->tally);
        return false;
    }
    t->is_started = true;
    return true;
}

void
lthread_join(struct lthread *t)
{
    if (t->is_started) {
        PTHREAD_OK(pthread_join(t->id, NULL));
        tally_fini(&t->tally);
        t->is_started = false;
    }
}
