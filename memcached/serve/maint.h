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

#include "base/clock.h"
#include "base/must.h"
#include "store/store.h"

#define MAINT_CRAWLER_SLEEP_MAX_US 1000000

struct maint_conf {
    bool has_maintainer; /* the lists are kept in order, expired items looked for */
    bool has_crawler;
    uint32_t crawler_sleep_us; /* between stretches of a crawl */
    uint32_t crawler_tocrawl;  /* items of a list; 0: all */
};

struct maint {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* CLOCK_MONOTONIC */
    bool is_posted;      /* there is something new to do */
    bool is_stopping;
    struct maint_conf conf;
    bool is_crawling;
    bool is_automatic;     /* no client has asked for this crawl */
    uint32_t crawl_ticket; /* of the walk */
    uint32_t yielded_at;   /* when an automatic crawl had to give way; 0: never */
};

void maint_init(struct maint *m, const struct maint_conf *conf,
                const pthread_mutexattr_t *lock_attr);
void maint_fini(struct maint *m);

/* ---- workers -------------------------------------------------------------------------- */

struct maint_conf maint_conf(struct maint *m);
/* Switches the crawler. False: it is so already. Off ends a crawl. */
must_check bool maint_switch_crawler(struct maint *m, struct store *s, bool is_on);
void maint_set_crawler_sleep(struct maint *m, uint32_t us);
void maint_set_crawler_tocrawl(struct maint *m, uint32_t items);
/* A walk for the thread to step, */
must_check enum store_walk_status maint_crawl(struct maint *m, struct store *s,
                                              uint64_t classes, uint32_t now);
/* or for the caller, *ticket being its name. An automatic crawl gives way to both. */
must_check enum store_walk_status maint_dump(struct maint *m, struct store *s,
                                             const struct store_walk_spec *ask,
                                             uint32_t now, uint32_t *ticket);
/* Something has been begun in the store. */
void maint_wake(struct maint *m);

/* ---- the thread ----------------------------------------------------------------------- */

void maint_stop(struct maint *m);
/* Waits until there is something new to do, or for the monotonic time. False: stop. */
must_check bool maint_wait(struct maint *m, nsec_t until);
/* Once a second: crawls the lists whose time has come, when there are any, no walk is open,
 * and no client had to be given way to a short while ago. */
void maint_crawl_automatically(struct maint *m, struct store *s, uint32_t now);
/* The crawl under way, if any. */
must_check bool maint_crawling(struct maint *m, uint32_t *ticket);
/* It is over. */
void maint_end_crawl(struct maint *m, struct store *s, uint32_t ticket);
