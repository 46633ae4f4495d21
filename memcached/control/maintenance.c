/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "control/maintenance.h"

#include <errno.h>
#include <sched.h>

#define GROW_SLEEP_MIN (50 * NSEC_PER_MSEC)
#define JUGGLE_MOVES 500 /* of each kind in a visit */
#define JUGGLE_SLEEP_MIN NSEC_PER_MSEC
#define JUGGLE_SLEEP_GROWTH 8 /* an eighth longer when there was little to do */
#define JUGGLE_REORDER_SLEEP (4 * NSEC_PER_MSEC) /* while there is no end of it */
#define JUGGLE_WORTH                                                                     \
    64 /* moves that one visit may wait for, or such a part of the items */
#define CRAWL_ITEMS 250    /* in a pass */
#define CRAWL_STRETCH 1000 /* then it sleeps */
/* For chunks that are in use; longer when they have been so for long. */
#define MOVE_SLEEP_MIN (200 * NSEC_PER_USEC)
#define MOVE_SLEEP_MAX (2 * NSEC_PER_MSEC)
#define MOVE_WAITS_SHORT 6000
/* How often is looked whether an eviction has asked for a page, on automover level 2. */
#define MOVE_POLL (5 * NSEC_PER_MSEC)
#define SLEEP_MAX NSEC_PER_SEC

static nsec_t
least(nsec_t a, nsec_t b)
{
    return a < b ? a : b;
}

/* What need not be soon waits for the next second, so that there is one wake-up for all. */
static nsec_t
due_after(const struct maintenance *u, nsec_t now, nsec_t sleep)
{
    return sleep > SLEEP_MAX / 2 ? u->second_due : now + sleep;
}

/* ---- the parts; each returns when it wants to be called again ------------------------- */

static nsec_t
grow(struct maintenance *u, nsec_t now)
{
    if (now >= u->grow_due) {
        bool has_more = store_step(u->conf.store, u->conf.grow_buckets);
        u->grow_sleep = has_more ? GROW_SLEEP_MIN : least(2 * u->grow_sleep, SLEEP_MAX);
        u->grow_due = has_more ? now : due_after(u, now, u->grow_sleep);
    }
    return u->grow_due;
}

nsec_t
maintenance_juggle_sleep(nsec_t sleep, struct store_juggled done, uint64_t items)
{
    unsigned moved = done.settled + done.reordered;
    uint64_t worth = items / JUGGLE_WORTH + 1;
    worth = worth < JUGGLE_WORTH ? worth : JUGGLE_WORTH;
    if (done.settled >= JUGGLE_MOVES) {
        return JUGGLE_SLEEP_MIN; /* there is more */
    }
    if (moved >= JUGGLE_MOVES) {
        sleep = JUGGLE_REORDER_SLEEP;
    } else if (moved == 0) {
        sleep *= 2;
    } else if (moved < worth) {
        sleep += sleep / JUGGLE_SLEEP_GROWTH;
    } else if (moved > 2 * worth) {
        sleep /= 2;
    }
    return least(sleep < JUGGLE_SLEEP_MIN ? JUGGLE_SLEEP_MIN : sleep, SLEEP_MAX);
}

static void
juggle_class(struct maintenance *u, unsigned id, nsec_t now, uint32_t rel)
{
    struct maintenance_visit *visit = &u->visits[id];
    struct store_juggled done = store_juggle(u->conf.store, id, JUGGLE_MOVES, rel);
    visit->sleep = maintenance_juggle_sleep(visit->sleep, done,
                                            store_class_items(u->conf.store, id));
    visit->due = due_after(u, now, visit->sleep);
}

static nsec_t
juggle(struct maintenance *u, bool has_maintainer, nsec_t now, uint32_t rel)
{
    nsec_t due = now + SLEEP_MAX;
    if (!has_maintainer) {
        return due;
    }
    for (unsigned id = 1; id <= store_class_count(u->conf.store); id++) {
        if (now >= u->visits[id].due) {
            juggle_class(u, id, now, rel);
        }
        due = least(due, u->visits[id].due);
    }
    return due;
}

static nsec_t
crawl(struct maintenance *u, uint32_t sleep_us, nsec_t now, uint32_t rel)
{
    uint32_t ticket;
    if (!maint_crawling(u->conf.maint, &ticket)) {
        return now + SLEEP_MAX;
    }
    if (now < u->crawl_due) {
        return u->crawl_due;
    }
    if (store_walk_step(u->conf.store, ticket, CRAWL_ITEMS, rel, NULL, NULL) !=
        STORE_WALK_MORE) {
        maint_end_crawl(u->conf.maint, u->conf.store, ticket);
        u->crawl_due = now;
        return now + SLEEP_MAX;
    }
    u->crawled += CRAWL_ITEMS;
    u->crawl_due = now;
    if (u->crawled >= CRAWL_STRETCH) {
        u->crawled = 0;
        u->crawl_due = now + sleep_us * NSEC_PER_USEC;
    }
    return u->crawl_due;
}

/* While there is no page under way. */
static nsec_t
begin_move(struct maintenance *u, nsec_t now, uint32_t rel)
{
    if (store_automove_evicted(u->conf.store)) {
        return now + MOVE_POLL;
    }
    if (u->moves_again) {
        u->moves_again = store_automove_step(u->conf.store, rel);
        return u->moves_again ? now : now + SLEEP_MAX;
    }
    return now + SLEEP_MAX;
}

static nsec_t
move(struct maintenance *u, nsec_t now, uint32_t rel)
{
    if (now < u->move_due) {
        return u->move_due;
    }
    switch (store_move_step(u->conf.store, u->conf.move_chunks, rel)) {
    case STORE_MOVE_IDLE:
        u->move_waits = 0;
        return begin_move(u, now, rel);
    case STORE_MOVE_WAITING:
        u->move_waits++;
        u->move_due =
            now + (u->move_waits < MOVE_WAITS_SHORT ? MOVE_SLEEP_MIN : MOVE_SLEEP_MAX);
        return u->move_due;
    case STORE_MOVE_WORKING:
        break;
    }
    return now;
}

static nsec_t
each_second(struct maintenance *u, nsec_t now, uint32_t rel)
{
    if (now < u->second_due) {
        return u->second_due;
    }
    u->second_due = now + NSEC_PER_SEC;
    u->conf.second(u->conf.second_ctx);
    store_walk_expire(u->conf.store, rel);
    u->moves_again |= store_automove_step(u->conf.store, rel);
    maint_crawl_automatically(u->conf.maint, u->conf.store, rel);
    return u->second_due;
}

/* ---- the thread ----------------------------------------------------------------------- */

static nsec_t
pass(struct maintenance *u, nsec_t now)
{
    uint32_t rel = clock_rel(now);
    struct maint_conf conf = maint_conf(u->conf.maint);
    nsec_t due = each_second(u, now, rel);
    due = least(due, grow(u, now));
    due = least(due, juggle(u, conf.has_maintainer, now, rel));
    due = least(due, crawl(u, conf.crawler_sleep_us, now, rel));
    return least(due, move(u, now, rel));
}

static void *
maintenance_main(void *arg)
{
    struct maintenance *u = arg;
    nsec_t due;
    PTHREAD_OK(pthread_setname_np(pthread_self(), "mc-upkeep"));
    do {
        nsec_t now = clock_now();
        due = pass(u, now);
        if (due <= now) {
            /* There is more to do at once. A worker that woke up on this thread's CPU meanwhile
             * would have to wait for the rest of a slice of milliseconds; so it runs first. */
            must(sched_yield() == 0);
        }
    } while (maint_wait(u->conf.maint, due));
    return NULL;
}

bool
maintenance_start(struct maintenance *u, const struct maintenance_conf *conf)
{
    *u = (struct maintenance){.conf = *conf, .grow_sleep = GROW_SLEEP_MIN};
    errno = pthread_create(&u->thread, NULL, maintenance_main, u);
    u->is_started = errno == 0;
    return u->is_started;
}

void
maintenance_stop(struct maintenance *u)
{
    if (u->is_started) {
        maint_stop(u->conf.maint);
        PTHREAD_OK(pthread_join(u->thread, NULL));
        u->is_started = false;
    }
}
