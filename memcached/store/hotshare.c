/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/hotshare.h"

#include "base/must.h"

#define PCT_LEAST 5u
#define PCT_MOST 50u
#define TIMES_LEAST 8u  /* as many come back of ghosts as of losses: more than usual, */
#define TIMES_MOST 16u  /* and what no main queue explains */
#define LOOK_PART 50u   /* of the items: so many ghosts from one look to the next, */
#define LOOK_LEAST 512u /* or so many, if there are few items */
#define FADE_PART 5u    /* is forgotten with each look */
#define KNOWN_PART 4u /* of the items have left the main queue before it can be judged */

void
hotshare_init(struct hotshare *h, const pthread_mutexattr_t *lock_attr)
{
    memset(h, 0, sizeof(*h));
    atomic_init(&h->pct, PCT_LEAST);
    PTHREAD_OK(pthread_mutex_init(&h->lock, lock_attr));
}

void
hotshare_fini(struct hotshare *h)
{
    PTHREAD_OK(pthread_mutex_destroy(&h->lock));
}

static unsigned
decide(const struct hotshare *h)
{
    uint64_t least = TIMES_LEAST * (h->returns + 1);
    uint64_t most = TIMES_MOST * (h->returns + 1);
    uint64_t times = h->came_back < least  ? least
                     : h->came_back > most ? most
                                           : h->came_back;

    return PCT_LEAST +
           (unsigned)((times - least) * (PCT_MOST - PCT_LEAST) / (most - least));
}

static void
look(struct hotshare *h, uint64_t items)
{
    h->came_back += h->now.came_back - h->came_back / FADE_PART;
    h->returns += h->now.returns - h->returns / FADE_PART;
    h->now = (struct hotshare_counts){.ghosts = 0};
    atomic_store_explicit(&h->pct,
                          h->losses >= items / KNOWN_PART ? decide(h) : PCT_LEAST,
                          memory_order_relaxed);
}

void
hotshare_add(struct hotshare *h, const struct hotshare_counts *more, uint64_t items)
{
    PTHREAD_OK(pthread_mutex_lock(&h->lock));
    h->losses += more->losses;
    h->now.ghosts += more->ghosts;
    h->now.came_back += more->came_back;
    h->now.returns += more->returns;
    if (h->now.ghosts >= LOOK_LEAST && h->now.ghosts >= items / LOOK_PART) {
        look(h, items);
    }
    PTHREAD_OK(pthread_mutex_unlock(&h->lock));
}
