/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/lthread.h"

#include <sys/prctl.h>

#include "base/alloc.h"
#include "loadgen/work/streams.h"

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
    const char *failed = load_run(set, t->conf.slice, t->conf.drive.cap, &t->counters,
                                  t->err, sizeof t->err);
    ctr_add(&t->loaded, ctr_get(&t->counters.loaded));
    return failed;
}

static void
look_at_conns(struct lthread *t, const struct lset *set)
{
    evenness_log_init(&t->evenness, set->count);
    if (t->conf.sample > 0) {
        samples_init(&t->samples, t->conf.sample);
    }
    for (unsigned i = 0; i < t->evenness.len; i++) {
        t->evenness.server[i] = t->conf.first_server + set->conns[i].server;
    }
}

static const char *
prepare(struct lthread *t, struct lset *set)
{
    const char *failed = take_place(t);
    /* When it sleeps until a time, it is woken at that time: by default the kernel may take
     * 50 us more. Timers of its own are exact anyway, those of io_uring's waits are not. */
    must(prctl(PR_SET_TIMERSLACK, 1UL) == 0);
    failed =
        failed != NULL ? failed : lset_open(set, &t->conf.set, t->err, sizeof t->err);
    if (failed != NULL) {
        return failed;
    }
    look_at_conns(t, set);
    failed = load_slice(t, set);
    return failed != NULL ? failed : take_priority(t);
}

/* Schedule and requests begin anew with each run; the connections go on. */
static void
get_ready(struct lthread *t, struct lset *set, struct event_loop *l)
{
    counters_reset(&t->counters);
    evenness_log_reset(&t->evenness);
    const struct drive_conf *c = &t->conf.drive;
    const struct drive_into into = {&t->counters, &t->evenness, &t->samples,
                                    &t->inserted};
    samples_start(&t->samples, c->seed, drive_stream(c, STREAM_MANNERS));
    event_loop_fini(l);
    event_loop_init(l, c, set, &into);
}

static const char *
obey(struct lthread *t, struct lset *set, struct event_loop *l, enum lthread_order order,
     const struct drive_window *window)
{
    if (order == ORDER_RENEW || order == ORDER_RENEW_ALL) {
        return lset_renew(set, order == ORDER_RENEW_ALL, t->err, sizeof t->err);
    }
    if (order == ORDER_READY) {
        get_ready(t, set, l);
        return NULL;
    }
    event_loop_run(l, window);
    t->cost = l->cost;
    t->is_short = l->has_ended;
    t->ended_at = l->drive.window.end;
    return NULL;
}

static void *
lthread_main(void *arg)
{
    struct lthread *t = arg;
    struct event_loop l = {.sources = NULL};
    struct drive_window window;
    enum lthread_order order;
    /* Allocated here, so that its memory is local to the CPU. */
    struct lset *set = alloc_zeroed(1, sizeof *set);
    bool is_good = prepare(t, set) == NULL;
    rendezvous_report(t->orders, is_good);
    for (unsigned round = 1;
         (order = rendezvous_take(t->orders, round, &window)) != ORDER_END; round++) {
        /* One that has failed stays so: the main thread has heard of it. */
        is_good = is_good && obey(t, set, &l, order, &window) == NULL;
        rendezvous_report(t->orders, is_good);
    }
    event_loop_fini(&l);
    lset_close(set);
    free(set);
    return NULL;
}

bool
lthread_start(struct lthread *t, const struct lthread_conf *conf,
              struct rendezvous *orders)
{
    *t = (struct lthread){.conf = *conf, .orders = orders};
    counters_init(&t->counters);
    t->is_started = pthread_create(&t->id, NULL, lthread_main, t) == 0;
    if (!t->is_started) {
        counters_fini(&t->counters);
    }
    return t->is_started;
}

void
lthread_join(struct lthread *t)
{
    if (t->is_started) {
        PTHREAD_OK(pthread_join(t->id, NULL));
        counters_fini(&t->counters);
        evenness_log_fini(&t->evenness);
        samples_fini(&t->samples);
        t->is_started = false;
    }
}

void
lthread_samples(const struct lthread *threads, unsigned count, struct result *result)
{
    result->samples = alloc_zeroed(count, sizeof *result->samples);
    for (unsigned i = 0; i < count; i++) {
        result->samples[i] = &threads[i].samples;
    }
    result->samples_len = count;
}

/* ---- rendezvous -------------------------------------------------------------------- */

void
rendezvous_init(struct rendezvous *v)
{
    *v = (struct rendezvous){.round = 0};
    PTHREAD_OK(pthread_mutex_init(&v->mutex, NULL));
    clock_cond_init(&v->changed);
}

void
rendezvous_fini(struct rendezvous *v)
{
    PTHREAD_OK(pthread_cond_destroy(&v->changed));
    PTHREAD_OK(pthread_mutex_destroy(&v->mutex));
}

void
rendezvous_give(struct rendezvous *v, enum lthread_order order,
                const struct drive_window *window)
{
    PTHREAD_OK(pthread_mutex_lock(&v->mutex));
    v->ready = v->failed = 0;
    v->round++;
    v->order = order;
    v->window = window != NULL ? *window : (struct drive_window){0};
    PTHREAD_OK(pthread_cond_broadcast(&v->changed));
    PTHREAD_OK(pthread_mutex_unlock(&v->mutex));
}

bool
rendezvous_await(struct rendezvous *v, unsigned threads, nsec_t wait, bool *has_failed)
{
    nsec_t until = clock_now() + wait;
    PTHREAD_OK(pthread_mutex_lock(&v->mutex));
    while (v->ready + v->failed < threads &&
           clock_cond_wait(&v->changed, &v->mutex, until)) {
    }
    bool is_there = v->ready + v->failed >= threads;
    *has_failed = v->failed > 0;
    PTHREAD_OK(pthread_mutex_unlock(&v->mutex));
    return is_there;
}

void
rendezvous_report(struct rendezvous *v, bool is_ready)
{
    PTHREAD_OK(pthread_mutex_lock(&v->mutex));
    v->ready += is_ready ? 1 : 0;
    v->failed += is_ready ? 0 : 1;
    PTHREAD_OK(pthread_cond_broadcast(&v->changed));
    PTHREAD_OK(pthread_mutex_unlock(&v->mutex));
}

enum lthread_order
rendezvous_take(struct rendezvous *v, unsigned round, struct drive_window *window)
{
    PTHREAD_OK(pthread_mutex_lock(&v->mutex));
    while (v->round < round) {
        PTHREAD_OK(pthread_cond_wait(&v->changed, &v->mutex));
    }
    enum lthread_order order = v->order;
    *window = v->window;
    PTHREAD_OK(pthread_mutex_unlock(&v->mutex));
    return order;
}
