/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The thread in the background: makes the hash table grow, keeps the LRU lists in order,
 * crawls, moves pages. Each pass does one bounded piece of everything that is due and then
 * sleeps until the next thing is, at most a second, or until there is an order.
 *
 * Owner of struct maintenance: the thread, from maintenance_start to maintenance_stop.
 */
#pragma once

#include <pthread.h>

#include "base/clock.h"
#include "base/must.h"
#include "serve/maint.h"
#include "store/store.h"

/* How often a class's lists are visited. */
struct maintenance_visit {
    nsec_t due, sleep;
};

/* What else is to be done once a second. */
typedef void maintenance_second(void *ctx);

#define MAINTENANCE_GROW_BUCKETS 256
#define MAINTENANCE_MOVE_CHUNKS 64
#define MAINTENANCE_STEP_MAX 65536 /* of either: a pass stays short */

struct maintenance_conf {
    struct store *store;
    struct maint *maint;
    maintenance_second *second;
    void *second_ctx;
    unsigned grow_buckets; /* that a growing hash table moves in a pass */
    unsigned move_chunks;  /* that the page mover looks at in a pass */
};

struct maintenance {
    pthread_t thread;
    bool is_started;
    struct maintenance_conf conf;
    nsec_t grow_due, grow_sleep;
    struct maintenance_visit visits[STORE_CLASSES];
    nsec_t crawl_due;
    unsigned crawled; /* items since the last sleep */
    nsec_t move_due;
    unsigned move_waits; /* in a row */
    bool moves_again;    /* the automover has more for the pool */
    nsec_t second_due;
};

/* How long a class's lists are left alone whose last visit came after `sleep` and has done so much
 * of its items: as long as it takes for a visit to be worth a wake-up. Where all items are read
 * all the time there is no end of what could be reordered: that is done less often. */
nsec_t maintenance_juggle_sleep(nsec_t sleep, struct store_juggled done, uint64_t items);

/* False: no thread, with errno. */
must_check bool maintenance_start(struct maintenance *u,
                                  const struct maintenance_conf *conf);
/* Returns when the thread has ended. Nothing happens if it was not started. */
void maintenance_stop(struct maintenance *u);
