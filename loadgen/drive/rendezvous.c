/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/rendezvous.h"

#include <errno.h>
#include <time.h>

void
rendezvous_init(struct rendezvous *v)
{
    *v = (struct rendezvous){.round = 0};
    PTHREAD_OK(pthread_mutex_init(&v->mutex, NULL));
    pthread_condattr_t attr;
    PTHREAD_OK(pthread_condattr_init(&attr));
    PTHREAD_OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    PTHREAD_OK(pthread_cond_init(&v->changed, &attr));
    PTHREAD_OK(pthread_condattr_destroy(&attr));
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
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    nsec_t ns = (nsec_t)until.tv_nsec + wait;
    until.tv_sec += (time_t)(ns / NSEC_PER_SEC);
    until.tv_nsec = (long)(ns % NSEC_PER_SEC);
    PTHREAD_OK(pthread_mutex_lock(&v->mutex));
    while (v->ready + v->failed < threads && rc == 0) {
        rc = pthread_cond_timedwait(&v->changed, &v->mutex, &until);
        must(rc == 0 || rc == ETIMEDOUT);
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
