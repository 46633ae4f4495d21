/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/orders.h"

#include <errno.h>

#define YIELD_SECONDS 60u /* that clients have for themselves after a conflict */

void
orders_init(struct orders *o, const struct orders_conf *conf,
            const pthread_mutexattr_t *lock_attr)
{
    pthread_condattr_t attr;
    *o = (struct orders){.conf = *conf};
    PTHREAD_OK(pthread_mutex_init(&o->lock, lock_attr));
    PTHREAD_OK(pthread_condattr_init(&attr));
    PTHREAD_OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    PTHREAD_OK(pthread_cond_init(&o->wake, &attr));
    PTHREAD_OK(pthread_condattr_destroy(&attr));
}

void
orders_fini(struct orders *o)
{
    PTHREAD_OK(pthread_cond_destroy(&o->wake));
    PTHREAD_OK(pthread_mutex_destroy(&o->lock));
}

static void
lock(struct orders *o)
{
    PTHREAD_OK(pthread_mutex_lock(&o->lock));
}

static void
unlock(struct orders *o)
{
    PTHREAD_OK(pthread_mutex_unlock(&o->lock));
}

static void
post(struct orders *o)
{
    o->is_posted = true;
    PTHREAD_OK(pthread_cond_signal(&o->wake));
}

static void
end_crawl(struct orders *o, struct store *s)
{
    store_walk_close(s, o->crawl_ticket);
    o->is_crawling = false;
}

/* ---- workers -------------------------------------------------------------------------- */

struct orders_conf
orders_conf(struct orders *o)
{
    lock(o);
    struct orders_conf conf = o->conf;
    unlock(o);
    return conf;
}

bool
orders_switch_crawler(struct orders *o, struct store *s, bool is_on)
{
    lock(o);
    bool is_new = o->conf.has_crawler != is_on;
    o->conf.has_crawler = is_on;
    if (!is_on && o->is_crawling) {
        end_crawl(o, s);
    }
    unlock(o);
    return is_new;
}

void
orders_set_crawler_sleep(struct orders *o, uint32_t us)
{
    lock(o);
    o->conf.crawler_sleep_us = us;
    unlock(o);
}

void
orders_set_crawler_tocrawl(struct orders *o, uint32_t items)
{
    lock(o);
    o->conf.crawler_tocrawl = items;
    unlock(o);
}

static void
yield(struct orders *o, struct store *s, uint32_t now)
{
    if (o->is_crawling && o->is_automatic) {
        end_crawl(o, s);
        o->yielded_at = now;
    }
}

static enum store_walk_status
open_crawl(struct orders *o, struct store *s, uint64_t classes, bool is_automatic,
           uint32_t now)
{
    struct store_walk_ask ask = {.classes = classes,
                                 .is_crawl = true,
                                 .only_due = is_automatic,
                                 .per_list = o->conf.crawler_tocrawl};
    uint32_t ticket;
    enum store_walk_status status = store_walk_open(s, &ask, now, &ticket);
    if (status == STORE_WALK_OK) {
        o->is_crawling = true;
        o->is_automatic = is_automatic;
        o->crawl_ticket = ticket;
        post(o);
    }
    return status;
}

enum store_walk_status
orders_crawl(struct orders *o, struct store *s, uint64_t classes, uint32_t now)
{
    lock(o);
    yield(o, s, now);
    enum store_walk_status status = open_crawl(o, s, classes, false, now);
    unlock(o);
    return status;
}

enum store_walk_status
orders_dump(struct orders *o, struct store *s, const struct store_walk_ask *ask,
            uint32_t now, uint32_t *ticket)
{
    lock(o);
    yield(o, s, now);
    enum store_walk_status status = store_walk_open(s, ask, now, ticket);
    unlock(o);
    return status;
}

void
orders_wake(struct orders *o)
{
    lock(o);
    post(o);
    unlock(o);
}

/* ---- the thread ----------------------------------------------------------------------- */

void
orders_stop(struct orders *o)
{
    lock(o);
    o->is_stopping = true;
    post(o);
    unlock(o);
}

bool
orders_wait(struct orders *o, const struct timespec *until)
{
    int rc = 0;
    lock(o);
    while (!o->is_posted && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&o->wake, &o->lock, until);
        must(rc == 0 || rc == ETIMEDOUT);
    }
    o->is_posted = false;
    bool goes_on = !o->is_stopping;
    unlock(o);
    return goes_on;
}

void
orders_crawl_automatically(struct orders *o, struct store *s, uint32_t now)
{
    lock(o);
    if (o->conf.has_maintainer && o->conf.has_crawler && !o->is_crawling &&
        (o->yielded_at == 0 || now - o->yielded_at >= YIELD_SECONDS)) {
        (void)!open_crawl(o, s, STORE_WALK_ALL, true, now);
    }
    unlock(o);
}

bool
orders_crawling(struct orders *o, uint32_t *ticket)
{
    lock(o);
    bool is_crawling = o->is_crawling;
    *ticket = o->crawl_ticket;
    unlock(o);
    return is_crawling;
}

void
orders_end_crawl(struct orders *o, struct store *s, uint32_t ticket)
{
    lock(o);
    if (o->is_crawling && o->crawl_ticket == ticket) {
        end_crawl(o, s);
    }
    unlock(o);
}
