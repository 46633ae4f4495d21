/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What clients ask of the thread in the background, and what it needs to know: is the crawler
 * on, is a crawl under way. The workers call the functions of the first group; the thread
 * waits for them and does the work (control/maintenance.h).
 *
 * Everything is under the lock, which is taken before any lock of the store.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/must.h"
#include "store/store.h"

#define ORDERS_CRAWLER_SLEEP_MAX_US 1000000

struct orders_conf {
    bool has_maintainer; /* the lists are kept in order, expired items looked for */
    bool has_crawler;
    uint32_t crawler_sleep_us; /* between stretches of a crawl */
    uint32_t crawler_tocrawl;  /* items of a list; 0: all */
};

struct orders {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* CLOCK_MONOTONIC */
    bool is_posted;      /* there is something new to do */
    bool is_stopping;
    struct orders_conf conf;
    bool is_crawling;
    bool is_automatic;     /* no client has asked for this crawl */
    uint32_t crawl_ticket; /* of the walk */
    uint32_t yielded_at;   /* when an automatic crawl had to give way; 0: never */
};

void orders_init(struct orders *o, const struct orders_conf *conf,
                 const pthread_mutexattr_t *lock_attr);
void orders_fini(struct orders *o);

/* ---- workers -------------------------------------------------------------------------- */

struct orders_conf orders_conf(struct orders *o);
/* Switches the crawler. False: it is so already. Off ends a crawl. */
must_check bool orders_switch_crawler(struct orders *o, struct store *s, bool is_on);
void orders_set_crawler_sleep(struct orders *o, uint32_t us);
void orders_set_crawler_tocrawl(struct orders *o, uint32_t items);
/* A walk for the thread to step, */
must_check enum store_walk_status orders_crawl(struct orders *o, struct store *s,
                                               uint64_t classes, uint32_t now);
/* or for the caller, *ticket being its name. An automatic crawl gives way to both. */
must_check enum store_walk_status orders_dump(struct orders *o, struct store *s,
                                              const struct store_walk_ask *ask,
                                              uint32_t now, uint32_t *ticket);
/* Something has been begun in the store. */
void orders_wake(struct orders *o);

/* ---- the thread ----------------------------------------------------------------------- */

void orders_stop(struct orders *o);
/* Waits until there are new orders, or for the monotonic time. False: stop. */
must_check bool orders_wait(struct orders *o, const struct timespec *until);
/* Once a second: crawls the lists whose time has come, when there are any, no walk is open,
 * and no client had to be given way to a short while ago. */
void orders_crawl_automatically(struct orders *o, struct store *s, uint32_t now);
/* The crawl under way, if any. */
must_check bool orders_crawling(struct orders *o, uint32_t *ticket);
/* It is over. */
void orders_end_crawl(struct orders *o, struct store *s, uint32_t ticket);
