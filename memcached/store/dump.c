/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/dump.h"

#include "store/core.h"

#define STALE_SECONDS 60u

/* ---- places; the lock is held --------------------------------------------------------- */

static void
give_up(struct dump_place *p)
{
    if (p->ticket != 0) {
        PTHREAD_OK(pthread_mutex_lock(&p->class->lock));
        lru_cursor_close(p->list, &p->cursor);
        PTHREAD_OK(pthread_mutex_unlock(&p->class->lock));
        p->ticket = 0;
    }
}

/* A free one, or that of the listing whose last step was the earliest. */
static struct dump_place *
take_place(struct dumps *d)
{
    struct dump_place *found = &d->places[0];

    for (unsigned i = 1; i < STORE_DUMPS && found->ticket != 0; i++) {
        struct dump_place *p = &d->places[i];

        if (p->ticket == 0 || p->step < found->step) {
            found = p;
        }
    }
    give_up(found);
    return found;
}

static struct dump_place *
find_place(struct dumps *d, uint32_t ticket)
{
    for (unsigned i = 0; i < STORE_DUMPS; i++) {
        if (d->places[i].ticket == ticket) {
            return &d->places[i];
        }
    }
    return NULL;
}

static void
note_step(struct dumps *d, struct dump_place *p, uint32_t now)
{
    p->step = ++d->steps;
    p->moved_at = now;
}

/* ---- listings ------------------------------------------------------------------------- */

uint32_t
store_dump_begin(struct store *s, unsigned class_id, bool hot_first, uint32_t limit,
                 uint32_t now)
{
    bool is_hot = hot_first && lru_policy(&s->lru) != STORE_LRU_FLAT;
    struct dumps *d = &s->dumps;

    must(class_id < STORE_CLASSES);
    PTHREAD_OK(pthread_mutex_lock(&d->lock));
    struct dump_place *p = take_place(d);
    d->tickets += d->tickets == UINT32_MAX ? 2 : 1; /* 0 is none */
    uint32_t ticket = p->ticket = d->tickets;
    p->class = &s->lru.classes[class_id];
    p->list = &p->class->lists[is_hot ? STORE_LIST_HOT : STORE_LIST_COLD];
    p->left = limit > 0 ? limit : UINT64_MAX;
    note_step(d, p, now);
    PTHREAD_OK(pthread_mutex_lock(&p->class->lock));
    lru_cursor_open(p->list, &p->cursor, true);
    PTHREAD_OK(pthread_mutex_unlock(&p->class->lock));
    PTHREAD_OK(pthread_mutex_unlock(&d->lock));
    return ticket;
}

/* The list's lock keeps its items linked; what visit looks at does not change meanwhile, or
 * is atomic. False: that was all. */
static bool
step(const struct store *s, struct dump_place *p, unsigned items, uint32_t now,
     store_visit *visit, void *ctx)
{
    bool goes_on = true;

    PTHREAD_OK(pthread_mutex_lock(&p->class->lock));
    for (; items > 0 && goes_on && p->cursor.at != NULL; items--) {
        struct item *it = p->cursor.at;

        p->cursor.at = link_item(&s->table.range, it->next);
        if (!is_flushed(s, it, now) && !is_expired(it, now)) {
            goes_on = visit(ctx, it) && --p->left > 0;
        }
    }
    goes_on = goes_on && p->cursor.at != NULL;
    PTHREAD_OK(pthread_mutex_unlock(&p->class->lock));
    return goes_on;
}

bool
store_dump_step(struct store *s, uint32_t ticket, unsigned items, uint32_t now,
                store_visit *visit, void *ctx)
{
    struct dumps *d = &s->dumps;
    bool goes_on = false;

    must(ticket != 0);
    PTHREAD_OK(pthread_mutex_lock(&d->lock));
    struct dump_place *p = find_place(d, ticket);
    if (p != NULL) {
        note_step(d, p, now);
        goes_on = step(s, p, items, now, visit, ctx);
        if (!goes_on) {
            give_up(p);
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&d->lock));
    return goes_on;
}

void
dumps_expire(struct dumps *d, uint32_t now)
{
    PTHREAD_OK(pthread_mutex_lock(&d->lock));
    for (unsigned i = 0; i < STORE_DUMPS; i++) {
        struct dump_place *p = &d->places[i];

        if (p->ticket != 0 && now > p->moved_at && now - p->moved_at > STALE_SECONDS) {
            give_up(p);
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&d->lock));
}
