/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/walk.h"

#include "store/core.h"

#define TRIES_MAX 64  /* for a stripe that others hold; then the item is passed over */
#define SORTED_MAX 32 /* items of a bucket that are put in order at once */
#define STALE_SECONDS 60u  /* a walk that has not got on for this long is over, */
#define DUMP_SECONDS 1800u /* and so is one for a client after this time */

/* What a visit came to. */
enum visited { VISITED, VISIT_RETRY, VISIT_FULL };

/* The function that visits the items of this step. */
struct visitor {
    store_visit *visit;
    void *ctx;
    uint32_t now;
};

static bool
show(const struct visitor *v, const struct item *it)
{
    return v->visit == NULL || v->visit(v->ctx, it);
}

/* ---- lists --------------------------------------------------------------------------- */

/* Plans the next crawl of the list, which has been seen to its end. */
static void
plan_crawl(struct store *s, struct walk *w, uint32_t now)
{
    struct store_event event = {.kind = STORE_EVENT_CRAWL,
                                .class_id = (uint8_t)w->class_id,
                                .list = w->list,
                                .crawl = {.examined = w->examined,
                                          .reclaimed = w->reclaimed,
                                          .elapsed = now - w->list_start}};

    crawlplan_end(&w->plan, w->class_id, w->list, now, &event.crawl);
    if (s->conf.on_event != NULL) {
        s->conf.on_event(s->conf.event_ctx, &event);
    }
}

static void
end_list(struct store *s)
{
    struct walk *w = &s->walk;
    struct lru_class *c = &s->lru.classes[w->class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    lru_cursor_close(&c->lists[w->list], &w->cursor);
    /* reclaimed counts those that a store has replaced */
    c->count.expired_unfetched += w->unfetched;
    c->count.crawler_reclaimed += w->reclaimed;
    c->count.crawler_items_checked += w->examined;
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    w->todo[w->class_id] &= (uint8_t) ~(1u << w->list);
    w->is_in_list = false;
}

/* False when all are done. */
static bool
begin_list(struct store *s, uint32_t now)
{
    struct walk *w = &s->walk;

    while (w->class_id < STORE_CLASSES && w->todo[w->class_id] == 0) {
        w->class_id++;
    }
    if (w->class_id == STORE_CLASSES) {
        return false;
    }
    w->list = (enum store_list)__builtin_ctz(w->todo[w->class_id]);
    w->is_in_list = true;
    w->tries = 0;
    w->list_start = now;
    w->examined = 0;
    w->reclaimed = 0;
    w->unfetched = 0;
    crawlplan_begin(&w->plan);
    struct lru_class *c = &s->lru.classes[w->class_id];
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    lru_cursor_open(&c->lists[w->list], &w->cursor, false);
    w->most = c->lists[w->list].number;
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    if (w->per_list != 0 && w->most > w->per_list) {
        w->most = w->per_list;
    }
    return true;
}

/* The list's lock and the stripe are held. *dead: the item, to be dropped without them. */
static enum visited
visit_item(struct store *s, struct item *it, uint64_t hash, const struct visitor *v,
           struct item **dead)
{
    struct walk *w = &s->walk;

    if (is_dead(s, it, v->now)) {
        w->reclaimed++;
        w->unfetched += !item_is(it, ITEM_FETCHED);
        lru_remove_locked(s, it, hash);
        *dead = it;
        return VISITED;
    }
    if (!show(v, it)) {
        return VISIT_FULL;
    }
    if (w->is_crawl) {
        crawlplan_note(&w->plan, item_expires(it), v->now);
    }
    return VISITED;
}

/* The item at the cursor. False: the list is at its end. */
static bool
visit_next(struct store *s, const struct visitor *v, enum visited *visited)
{
    struct walk *w = &s->walk;
    struct lru_class *c = &s->lru.classes[w->class_id];
    struct item *dead = NULL;

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    struct item *it = w->cursor.at;
    if (it != NULL) {
        uint64_t hash = hash_of(s, item_key_of(it));

        *visited = VISIT_RETRY;
        if (table_try_lock(&s->table, hash)) {
            *visited = visit_item(s, it, hash, v, &dead);
            table_unlock(&s->table, hash);
        } else if (++w->tries == TRIES_MAX) {
            *visited = VISITED;
        }
        if (*visited == VISITED) {
            w->tries = 0;
            w->moved_at = v->now;
            w->examined++;
            if (dead == NULL) {
                w->cursor.at = link_item(&s->table.range, it->prev);
            }
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    if (dead != NULL) {
        item_unref(s, dead);
    }
    return it != NULL;
}

/* A stretch of the lists. False when all are done. */
static bool
step_lists(struct store *s, unsigned items, const struct visitor *v)
{
    struct walk *w = &s->walk;
    enum visited visited = VISITED;

    while (items > 0 && visited == VISITED) {
        if (!w->is_in_list && !begin_list(s, v->now)) {
            return false;
        }
        if (w->examined == w->most || !visit_next(s, v, &visited)) {
            end_list(s);
            if (w->is_crawl) {
                plan_crawl(s, w, v->now);
            }
            visited = VISITED;
            continue;
        }
        items--;
    }
    return true;
}

/* ---- the table ----------------------------------------------------------------------- */

struct sorted {
    uint64_t hash[SORTED_MAX];
    struct item *item[SORTED_MAX];
    unsigned count;
    bool has_more;
};

static void
sort_item(struct sorted *sorted, struct item *it, uint64_t hash)
{
    unsigned i = sorted->count;

    if (i == SORTED_MAX) {
        sorted->has_more = true;
        if (hash >= sorted->hash[--i]) {
            return;
        }
    } else {
        sorted->count++;
    }
    for (; i > 0 && sorted->hash[i - 1] > hash; i--) {
        sorted->hash[i] = sorted->hash[i - 1];
        sorted->item[i] = sorted->item[i - 1];
    }
    sorted->hash[i] = hash;
    sorted->item[i] = it;
}

/* The items of the bucket with the lowest hashes that have not come yet. The bucket is that
 * of the table when the walk began; it has one stripe, which is held. While the table grows,
 * two of its buckets may be one that has not been moved. */
static void
sort_bucket(struct store *s, struct sorted *sorted)
{
    const struct walk *w = &s->walk;
    uint64_t buckets = table_buckets(&s->table);

    sorted->count = 0;
    sorted->has_more = false;
    for (uint64_t i = w->bucket; i < buckets; i += w->buckets) {
        const uint32_t *bucket = table_bucket(&s->table, i);

        if (i >= buckets / 2 && buckets > w->buckets &&
            bucket == table_bucket(&s->table, i - buckets / 2)) {
            continue;
        }
        for (struct item *it = link_item(&s->table.range, *bucket); it != NULL;
             it = link_item(&s->table.range, it->h_next)) {
            uint64_t hash = hash_of(s, item_key_of(it));

            if (!w->has_last || hash > w->last_hash) {
                sort_item(sorted, it, hash);
            }
        }
    }
}

static void
drop_dead(struct store *s, struct item *it, uint64_t hash)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    c->count.crawler_reclaimed++;
    c->count.expired_unfetched += !item_is(it, ITEM_FETCHED);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    core_drop(s, it, hash);
}

/* With the stripe held. False: the visitor has no room. */
static bool
visit_bucket(struct store *s, const struct visitor *v, unsigned *items)
{
    struct walk *w = &s->walk;
    struct sorted sorted;

    sort_bucket(s, &sorted);
    for (unsigned i = 0; i < sorted.count; i++) {
        if (is_dead(s, sorted.item[i], v->now)) {
            drop_dead(s, sorted.item[i], sorted.hash[i]);
        } else if (!show(v, sorted.item[i])) {
            return false;
        }
        w->moved_at = v->now;
        w->has_last = true;
        w->last_hash = sorted.hash[i];
        *items -= *items > 0;
    }
    if (!sorted.has_more) {
        w->moved_at = v->now;
        w->has_last = false;
        w->bucket++;
    }
    return true;
}

/* Empty buckets cost, too, but less: a step looks at so many for each item it may visit. */
static bool
step_table(struct store *s, unsigned items, const struct visitor *v)
{
    struct walk *w = &s->walk;
    bool has_room = true;

    for (unsigned left = items; left > 0 && items > 0 && has_room; left--) {
        uint64_t bucket = w->bucket;

        if (bucket == w->buckets) {
            return false;
        }
        if (!table_try_lock(&s->table, bucket)) {
            break; /* another thread has it: next time */
        }
        has_room = visit_bucket(s, v, &items);
        table_unlock(&s->table, bucket);
    }
    return w->bucket < w->buckets;
}

/* ---- life of a walk; the lock is held ------------------------------------------------ */

/* Which lists have something in them. */
static bool
find_lists(struct store *s, const struct store_walk_spec *ask, uint32_t now)
{
    struct walk *w = &s->walk;
    uint64_t starts = 0;

    for (unsigned id = 0; id < STORE_CLASSES; id++) {
        struct lru_class *c = &s->lru.classes[id];

        w->todo[id] = 0;
        if ((ask->classes >> id & 1) == 0) {
            continue;
        }
        PTHREAD_OK(pthread_mutex_lock(&c->lock));
        for (unsigned list = 0; list < STORE_LISTS; list++) {
            if (c->lists[list].tail != NULL &&
                (!ask->only_due || crawlplan_is_due(&w->plan, id, list, now))) {
                w->todo[id] |= (uint8_t)(1u << list);
                starts++;
            }
        }
        PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    }
    atomic_fetch_add_explicit(&w->starts, starts, memory_order_relaxed);
    return starts > 0;
}

static enum store_walk_status
open_locked(struct store *s, const struct store_walk_spec *ask, uint32_t now)
{
    struct walk *w = &s->walk;

    if (w->is_open) {
        return STORE_WALK_BUSY;
    }
    if (ask->by_table) {
        /* In this order: a thread that sees the new array sees that it is new. */
        w->buckets = table_buckets(&s->table);
        if (atomic_load_explicit(&s->table.is_growing, memory_order_relaxed)) {
            return STORE_WALK_LOCKED;
        }
        w->bucket = 0;
        w->has_last = false;
    } else if (!find_lists(s, ask, now)) {
        return STORE_WALK_EMPTY;
    }
    w->by_table = ask->by_table;
    w->is_crawl = ask->is_crawl && !ask->by_table;
    w->per_list = ask->per_list;
    w->class_id = 0;
    w->is_in_list = false;
    w->is_open = true;
    w->opened_at = w->moved_at = now;
    w->ticket++;
    atomic_store_explicit(&w->is_running, true, memory_order_relaxed);
    return STORE_WALK_OK;
}

static void
close_locked(struct store *s)
{
    struct walk *w = &s->walk;

    if (w->is_in_list) {
        end_list(s);
    }
    w->is_open = false;
    atomic_store_explicit(&w->is_running, false, memory_order_relaxed);
}

enum store_walk_status
store_walk_open(struct store *s, const struct store_walk_spec *ask, uint32_t now,
                uint32_t *ticket)
{
    PTHREAD_OK(pthread_mutex_lock(&s->walk.lock));
    enum store_walk_status status = open_locked(s, ask, now);
    *ticket = s->walk.ticket;
    PTHREAD_OK(pthread_mutex_unlock(&s->walk.lock));
    return status;
}

static bool
is_mine(const struct walk *w, uint32_t ticket)
{
    return w->is_open && w->ticket == ticket;
}

enum store_walk_step
store_walk_step(struct store *s, uint32_t ticket, unsigned items, uint32_t now,
                store_visit *visit, void *ctx)
{
    struct walk *w = &s->walk;
    struct visitor v = {visit, ctx, now};
    enum store_walk_step step = STORE_WALK_LOST;

    PTHREAD_OK(pthread_mutex_lock(&w->lock));
    if (is_mine(w, ticket)) {
        bool has_more = w->by_table ? step_table(s, items, &v) : step_lists(s, items, &v);

        step = has_more ? STORE_WALK_MORE : STORE_WALK_OVER;
    }
    PTHREAD_OK(pthread_mutex_unlock(&w->lock));
    return step;
}

void
store_walk_close(struct store *s, uint32_t ticket)
{
    struct walk *w = &s->walk;

    PTHREAD_OK(pthread_mutex_lock(&w->lock));
    if (is_mine(w, ticket)) {
        close_locked(s);
    }
    PTHREAD_OK(pthread_mutex_unlock(&w->lock));
}

static bool
is_overdue(const struct walk *w, uint32_t now)
{
    return (now > w->moved_at && now - w->moved_at > STALE_SECONDS) ||
           (!w->is_crawl && now > w->opened_at && now - w->opened_at > DUMP_SECONDS);
}

void
store_walk_expire(struct store *s, uint32_t now)
{
    struct walk *w = &s->walk;

    PTHREAD_OK(pthread_mutex_lock(&w->lock));
    if (w->is_open && is_overdue(w, now)) {
        close_locked(s);
    }
    PTHREAD_OK(pthread_mutex_unlock(&w->lock));
    dumps_expire(&s->dumps, now);
}
