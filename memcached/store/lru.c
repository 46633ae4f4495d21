/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/lru.h"

#include "store/core.h"

/* What became of a tail entry; of the entries looked at, the largest counts. */
enum pull {
    PULL_NOTHING, /* nothing here to remove */
    PULL_BUSY,    /* what could be removed is in use just now */
    PULL_RECLAIMED,
    PULL_EVICTED,
};

void
lru_init(struct lru *l)
{
    memset(l, 0, sizeof(*l));
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        PTHREAD_OK(pthread_mutex_init(&l->classes[i].lock, NULL));
    }
}

void
lru_fini(struct lru *l)
{
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        PTHREAD_OK(pthread_mutex_destroy(&l->classes[i].lock));
    }
}

static void
push_head(struct lru_class *c, struct item *it)
{
    it->prev = NULL;
    it->next = c->head;
    if (c->head != NULL) {
        c->head->prev = it;
    } else {
        c->tail = it;
    }
    c->head = it;
}

static void
take_out(struct lru_class *c, struct item *it)
{
    if (it->prev != NULL) {
        it->prev->next = it->next;
    } else {
        must(c->head == it);
        c->head = it->next;
    }
    if (it->next != NULL) {
        it->next->prev = it->prev;
    } else {
        must(c->tail == it);
        c->tail = it->prev;
    }
    it->next = NULL;
    it->prev = NULL;
}

static void
add_number(struct lru_class *c, uint64_t n)
{
    uint64_t number = atomic_load_explicit(&c->number, memory_order_relaxed);

    atomic_store_explicit(&c->number, number + n, memory_order_relaxed);
}

static void
link_locked(struct lru_class *c, struct item *it, uint64_t total, uint32_t now)
{
    item_set_time(it, now);
    push_head(c, it);
    add_number(c, 1);
    c->bytes += total;
    c->count.total_items++;
}

static void
unlink_locked(struct lru_class *c, struct item *it, uint64_t total)
{
    take_out(c, it);
    add_number(c, (uint64_t)-1);
    c->bytes -= total;
}

void
lru_link(struct store *s, struct item *it, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    uint64_t total = item_total_of(&s->conf, it);

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    link_locked(c, it, total, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

void
lru_unlink(struct store *s, struct item *it)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    uint64_t total = item_total_of(&s->conf, it);

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    unlink_locked(c, it, total);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

void
lru_replace(struct store *s, struct item *old, struct item *it, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    uint64_t total = item_total_of(&s->conf, it);

    if (old->class_id != it->class_id) {
        lru_unlink(s, old);
        lru_link(s, it, now);
        return;
    }
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    unlink_locked(c, old, item_total_of(&s->conf, old));
    link_locked(c, it, total, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

static void
bump_locked(struct lru_class *c, struct item *it, uint32_t now)
{
    take_out(c, it);
    item_set_time(it, now);
    push_head(c, it);
}

void
lru_use(struct store *s, struct item *it, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    if (likely(now <= item_time(it) || now - item_time(it) <= LRU_BUMP_SECONDS)) {
        return;
    }
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    bump_locked(c, it, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

/* LRU lock and stripe held. Puts it on the list of those to free without them. */
static void
remove_victim(struct store *s, struct lru_class *c, struct item *it, uint64_t hash,
              struct item **removed)
{
    table_remove(&s->table, it, hash);
    unlink_locked(c, it, item_total_of(&s->conf, it));
    item_unmark(it, ITEM_LINKED);
    it->next = *removed;
    *removed = it;
}

static void
free_removed(struct store *s, struct item *removed)
{
    while (removed != NULL) {
        struct item *next = removed->next;

        removed->next = NULL;
        item_unref(s, removed);
        removed = next;
    }
}

static void
count_eviction(struct lru_class *c, const struct item *it, uint32_t now)
{
    c->count.evicted++;
    c->count.evicted_time = now > item_time(it) ? now - item_time(it) : 0;
    c->count.evicted_nonzero += item_exptime(it) != STORE_NEVER;
    c->count.evicted_unfetched += !item_is(it, ITEM_FETCHED);
}

/* Decides about one tail entry; stripe and LRU lock held. An item that someone holds would
 * not give its memory now, and is in use: it goes to the head instead of being lost. */
static enum pull
try_victim(struct store *s, struct lru_class *c, struct item *it, uint64_t hash,
           bool evict, uint32_t now, struct item **removed)
{
    if (is_dead(s, it, now)) {
        c->count.reclaimed++;
        c->count.expired_unfetched += !item_is(it, ITEM_FETCHED);
        remove_victim(s, c, it, hash, removed);
        return PULL_RECLAIMED;
    }
    if (!evict) {
        return PULL_NOTHING;
    }
    if (item_refs(it) > 1) {
        c->count.reflocked++;
        bump_locked(c, it, now);
        return PULL_BUSY;
    }
    count_eviction(c, it, now);
    remove_victim(s, c, it, hash, removed);
    return PULL_EVICTED;
}

/* Removes dead items from the tail, up to the first live one, which goes too if `evict`.
 * Looks at up to `tries` entries. */
static enum pull
pull_tail(struct store *s, unsigned class_id, bool evict, unsigned tries, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[class_id];
    enum pull result = PULL_NOTHING;
    struct item *removed = NULL;
    struct item *prev;

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    for (struct item *it = c->tail; it != NULL && tries > 0; it = prev, tries--) {
        enum pull pull = PULL_BUSY;
        uint64_t hash;

        prev = it->prev;
        if (!evict && !is_dead(s, it, now)) {
            break; /* without hashing: this is the way of every allocation */
        }
        hash = table_hash(&s->table, item_key_slot(it), it->key_len);
        if (table_try_lock(&s->table, hash)) {
            pull = try_victim(s, c, it, hash, evict, now, &removed);
            table_unlock(&s->table, hash);
        }
        result = pull > result ? pull : result;
        if (pull == PULL_NOTHING || pull == PULL_EVICTED) {
            break;
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    free_removed(s, removed);
    return result;
}

void *
lru_take_chunk(struct store *s, unsigned class_id, uint32_t requested, unsigned victims,
               uint32_t now)
{
    for (unsigned attempt = 1; attempt <= LRU_ATTEMPTS; attempt++) {
        void *chunk;

        (void)pull_tail(s, victims, false, LRU_TAIL_TRIES, now);
        chunk = slab_take(&s->slab, class_id, requested);
        if (chunk != NULL || !s->conf.can_evict) {
            return chunk;
        }
        /* Deeper each time, in case a few busy items sit at the tail. */
        if (pull_tail(s, victims, true, LRU_TAIL_TRIES * attempt, now) == PULL_NOTHING) {
            return NULL;
        }
    }
    return NULL;
}

void
lru_count_oom(struct store *s, unsigned class_id)
{
    struct lru_class *c = &s->lru.classes[class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    c->count.outofmemory++;
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

uint64_t
lru_number(const struct lru *l)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        sum += atomic_load_explicit(&l->classes[i].number, memory_order_relaxed);
    }
    return sum;
}
