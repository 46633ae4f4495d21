/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/maint.h"

#define YIELD_SECONDS 60u /* that clients have for themselves after a conflict */

void
maint_init(struct maint *m, const struct maint_conf *conf,
           const pthread_mutexattr_t *lock_attr)
{
    *m = (struct maint){.conf = *conf};
    PTHREAD_OK(pthread_mutex_init(&m->lock, lock_attr));
    clock_cond_init(&m->wake);
}

void
maint_fini(struct maint *m)
{
    PTHREAD_OK(pthread_cond_destroy(&m->wake));
    PTHREAD_OK(pthread_mutex_destroy(&m->lock));
}

static void
lock(struct maint *m)
{
    PTHREAD_OK(pthread_mutex_lock(&m->lock));
}

static void
unlock(struct maint *m)
{
    PTHREAD_OK(pthread_mutex_unlock(&m->lock));
}

static void
post(struct maint *m)
{
    m->is_posted = true;
    PTHREAD_OK(pthread_cond_signal(&m->wake));
}

static void
end_crawl(struct maint *m, struct store *s)
{
    store_walk_close(s, m->crawl_ticket);
    m->is_crawling = false;
}

/* ---- workers -------------------------------------------------------------------------- */

struct maint_conf
maint_conf(struct maint *m)
{
    lock(m);
    struct maint_conf conf = m->conf;
    unlock(m);
    return conf;
}

bool
maint_switch_crawler(struct maint *m, struct store *s, bool is_on)
{
    lock(m);
    bool is_new = m->conf.has_crawler != is_on;
    m->conf.has_crawler = is_on;
    if (!is_on && m->is_crawling) {
        end_crawl(m, s);
    }
    unlock(m);
    return is_new;
}

void
maint_set_crawler_sleep(struct maint *m, uint32_t us)
{
    lock(m);
    m->conf.crawler_sleep_us = us;
    unlock(m);
}

void
maint_set_crawler_tocrawl(struct maint *m, uint32_t items)
{
    lock(m);
    m->conf.crawler_tocrawl = items;
    unlock(m);
}

static void
yield(struct maint *m, struct store *s, uint32_t now)
{
    if (m->is_crawling && m->is_automatic) {
        end_crawl(m, s);
        m->yielded_at = now;
    }
}

static enum store_walk_status
open_crawl(struct maint *m, struct store *s, uint64_t classes, bool is_automatic,
           uint32_t now)
{
    struct store_walk_spec ask = {.classes = classes,
                                  .is_crawl = true,
                                  .only_due = is_automatic,
                                  .per_list = m->conf.crawler_tocrawl};
    uint32_t ticket;
    enum store_walk_status status = store_walk_open(s, &ask, now, &ticket);
    if (status == STORE_WALK_OK) {
        m->is_crawling = true;
        m->is_automatic = is_automatic;
        m->crawl_ticket = ticket;
        post(m);
    }
    return status;
}

enum store_walk_status
maint_crawl(struct maint *m, struct store *s, uint64_t classes, uint32_t now)
{
    lock(m);
    yield(m, s, now);
    enum store_walk_status status = open_crawl(m, s, classes, false, now);
    unlock(m);
    return status;
}

enum store_walk_status
maint_dump(struct maint *m, struct store *s, const struct store_walk_spec *ask,
           uint32_t now, uint32_t *ticket)
{
    lock(m);
    yield(m, s, now);
    enum store_walk_status status = store_walk_open(s, ask, now, ticket);
    unlock(m);
    return status;
}

void
maint_wake(struct maint *m)
{
    lock(m);
    post(m);
    unlock(m);
}

/* ---- the thread ----------------------------------------------------------------------- */

void
maint_stop(struct maint *m)
{
    lock(m);
    m->is_stopping = true;
    post(m);
    unlock(m);
}

bool
maint_wait(struct maint *m, nsec_t until)
{
    lock(m);
    while (!m->is_posted && clock_cond_wait(&m->wake, &m->lock, until)) {
    }
    m->is_posted = false;
    bool goes_on = !m->is_stopping;
    unlock(m);
    return goes_on;
}

void
maint_crawl_automatically(struct maint *m, struct store *s, uint32_t now)
{
    lock(m);
    if (m->conf.has_maintainer && m->conf.has_crawler && !m->is_crawling &&
        (m->yielded_at == 0 || now - m->yielded_at >= YIELD_SECONDS)) {
        (void)!open_crawl(m, s, STORE_WALK_ALL, true, now);
    }
    unlock(m);
}

bool
maint_crawling(struct maint *m, uint32_t *ticket)
{
    lock(m);
    bool is_crawling = m->is_crawling;
    *ticket = m->crawl_ticket;
    unlock(m);
    return is_crawling;
}

void
maint_end_crawl(struct maint *m, struct store *s, uint32_t ticket)
{
    lock(m);
    if (m->is_crawling && m->crawl_ticket == ticket) {
        end_crawl(m, s);
    }
    unlock(m);
}
