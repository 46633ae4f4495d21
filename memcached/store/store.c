/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/store.h"

#include "store/core.h"
#include "store/peek.h"

/* ---- life ---------------------------------------------------------------------------- */

struct store *
store_create_failing(const struct store_conf *conf, long fail_in, char *err,
                     size_t err_len)
{
    struct store *s = NULL;
    struct mem mem;

    atomic_init(&mem.fail_in, fail_in);
    atomic_init(&mem.failures, 0);
    if (mem_may(&mem)) {
        s = aligned_alloc(_Alignof(struct store), sizeof(*s));
    }
    if (s == NULL) {
        snprintf(err, err_len, "no memory for the store");
        return NULL;
    }
    memset(s, 0, sizeof(*s));
    s->conf = *conf;
    s->conf.sizes = NULL; /* borrowed for this call only */
    atomic_init(&s->mem.fail_in, atomic_load(&mem.fail_in));
    if (!slab_init(&s->slab, conf, &s->mem, err, err_len)) {
        free(s);
        return NULL;
    }
    if (!table_init(&s->table, conf, &s->slab.pages.range, &s->mem, err, err_len)) {
        slab_fini(&s->slab);
        free(s);
        return NULL;
    }
    lru_init(&s->lru, conf, &s->mem);
    sizes_init(&s->sizes, conf->item_max, conf->lock_attr);
    PTHREAD_OK(pthread_mutex_init(&s->flush.lock, conf->lock_attr));
    mover_init(s, conf->lock_attr);
    PTHREAD_OK(pthread_mutex_init(&s->walk.lock, conf->lock_attr));
    PTHREAD_OK(pthread_mutex_init(&s->dumps.lock, conf->lock_attr));
    return s;
}

struct store *
store_create(const struct store_conf *conf, char *err, size_t err_len)
{
    return store_create_failing(conf, 0, err, err_len);
}

bool
store_check(const struct store_conf *conf, bool at_once, char *err, size_t err_len)
{
    return slab_check(conf, at_once, err, err_len);
}

void
store_destroy(struct store **sp)
{
    struct store *s = *sp;

    if (s == NULL) {
        return;
    }
    *sp = NULL;
    mover_fini(s);
    PTHREAD_OK(pthread_mutex_destroy(&s->dumps.lock));
    PTHREAD_OK(pthread_mutex_destroy(&s->walk.lock));
    PTHREAD_OK(pthread_mutex_destroy(&s->flush.lock));
    sizes_fini(&s->sizes);
    lru_fini(&s->lru);
    table_fini(&s->table);
    slab_fini(&s->slab);
    free(s);
}

/* ---- reading ------------------------------------------------------------------------- */

static inline enum store_status
hold_item(struct store *s, struct key key, uint64_t hash, uint32_t now,
          struct item **item)
{
    enum store_status status = core_find(s, key, hash, now, item);

    if (status != STORE_OK) {
        return status;
    }
    if (unlikely(item_refs(*item) > STORE_REFS_MAX)) {
        *item = NULL;
        return STORE_BUSY;
    }
    item_ref(*item);
    return STORE_OK;
}

enum store_status
store_get_and_touch(struct store *s, struct key key, uint32_t exptime, uint32_t now,
                    struct item **item)
{
    uint64_t hash = hash_of(s, key);

    table_lock(&s->table, hash);
    enum store_status status = hold_item(s, key, hash, now, item);
    if (status == STORE_OK) {
        core_use(s, *item, now);
        item_set_exptime(*item, exptime);
    }
    table_unlock(&s->table, hash);
    return status;
}

/* Of an item, or of a copy of the header of the one at `place`. */
static inline void
describe_hit(struct store_hit *hit, const struct item *it, const struct item *place,
             uint8_t layout)
{
    hit->head = it;
    hit->value = layout & ITEM_CHAINED
                     ? NULL
                     : (const char *)place + item_key_behind(layout) + it->key_len;
    hit->cas = layout & ITEM_HAS_CAS
                   ? atomic_load_explicit(item_cas_slot(place), memory_order_relaxed)
                   : 0;
    hit->flags = item_client_flags(it, place);
    hit->value_len = it->value_len;
    hit->slot = item_slot_of(it);
    hit->list = item_list_of(it);
}

/* A look at one key with the lock. */
struct look {
    enum store_status status;
    struct store_hit hit; /* when that is OK */
    struct stripe *stripe;
    struct item *item; /* what was found */
    bool writes;       /* the look has something to note */
};

/* Whether there is something to write is decided once: a flush may come meanwhile. */
static void
look_locked(struct store *s, const struct store_read *read, const struct core_rest *rest,
            struct look *look)
{
    struct item *item;

    look->stripe = table_lock_to_read(&s->table, read->hash);
    item = table_find(&s->table, read->key, read->hash);
    look->writes = item != NULL && !core_is_settled(rest, item);
    look->status = item != NULL ? STORE_OK : STORE_MISS;
    if (look->writes) {
        seq_write_begin(&look->stripe->seq);
        look->status = core_check(s, item, read->hash, rest->now, &item);
    }
    if (look->status == STORE_OK) {
        describe_hit(&look->hit, item, item, item->layout);
        look->hit.item = item;
        look->hit.seq = NULL;
        look->status = item_refs(item) <= STORE_REFS_MAX ? STORE_OK : STORE_BUSY;
    }
    look->item = item;
}

static void
end_locked(struct store *s, const struct look *look, enum store_take taken, uint32_t now)
{
    if (look->status == STORE_OK && likely(taken != STORE_TAKE_STOP)) {
        if (look->writes) {
            core_use(s, look->item, now);
        }
        if (taken == STORE_TAKE_HOLD) {
            item_ref(look->item);
        }
    }
    if (look->writes) {
        seq_write_end(&look->stripe->seq);
    }
    PTHREAD_OK(pthread_mutex_unlock(&look->stripe->lock));
}

static __attribute__((noinline)) enum store_take
take_locked(struct store *s, const struct store_read *read, unsigned i,
            struct core_rest *rest, store_take_fn *take, void *ctx)
{
    struct look look;

    look_locked(s, read, rest, &look);
    enum store_take taken =
        take(ctx, i, look.status, look.status == STORE_OK ? &look.hit : NULL);
    end_locked(s, &look, taken, rest->now);
    if (look.writes) {
        *rest = core_rest(
            s, rest->now); /* it may have met a flush that the next ones have to know */
    }
    return taken;
}

/* Without the lock. AGAIN, HOLD: it has to be with it. Nothing of it is known elsewhere, so that it need not be
 * in memory. */
static inline enum store_take
take_freely(const struct store *s, const struct core_rest *rest, struct peek p,
            struct key key, unsigned i, store_take_fn *take, void *ctx)
{
    struct item head;
    struct store_hit hit;

    if (!peek_find(&p, &s->table, key, &head)) {
        return STORE_TAKE_AGAIN;
    }
    if (p.it == NULL) {
        return take(ctx, i, STORE_MISS, NULL);
    }
    uint8_t layout = head.layout;
    if (unlikely(!core_is_settled(rest, &head) || layout & ITEM_CHAINED ||
                 item_refs(&head) > STORE_REFS_MAX)) {
        return STORE_TAKE_AGAIN;
    }
    describe_hit(&hit, &head, p.it, layout);
    hit.item = NULL;
    hit.seq = p.seq;
    hit.seen = p.seen;
    return take(ctx, i, STORE_OK, &hit);
}

unsigned
store_read(struct store *s, struct store_read *reads, unsigned n, uint32_t now,
           store_take_fn *take, void *ctx)
{
    struct peek peeks[STORE_READS_MAX];

    must(n <= STORE_READS_MAX);
    for (unsigned i = 0; i < n; i++) {
        reads[i].hash = hash_of(s, reads[i].key);
        peek_open(&peeks[i], &s->table, reads[i].hash);
        __builtin_prefetch(peeks[i].bucket);
    }
    struct core_rest rest = core_rest(s, now);
    for (unsigned i = 0; i < n; i++) {
        enum store_take taken =
            take_freely(s, &rest, peeks[i], reads[i].key, i, take, ctx);
        if (unlikely(taken == STORE_TAKE_AGAIN || taken == STORE_TAKE_HOLD)) {
            taken = take_locked(s, &reads[i], i, &rest, take, ctx);
        }
        if (unlikely(taken != STORE_TAKEN)) {
            return i + (taken == STORE_TAKE_HOLD);
        }
    }
    return n;
}

enum store_status
store_get(struct store *s, struct key key, uint32_t now, struct item **item)
{
    struct store_read read = {.key = key, .hash = hash_of(s, key)};
    struct core_rest rest = core_rest(s, now);
    struct look look;

    look_locked(s, &read, &rest, &look);
    *item = look.status == STORE_OK ? look.item : NULL;
    end_locked(s, &look, STORE_TAKE_HOLD, now);
    return look.status;
}

/* Which client refreshes an item: the first that finds it stale, or about to expire,
 * unless another one has been asked to already. */
static void
give_token(struct item *it, const struct store_look *ask, uint32_t now,
           struct store_seen *seen)
{
    uint32_t end = ask->recache_sees_touch ? seen->exptime_after : seen->exptime_before;
    bool is_ending = ask->recaches && end != STORE_NEVER &&
                     (end <= now || end - now < ask->recache_below);

    bool is_due = is_ending || (ask->takes_stale && seen->is_stale);

    if (is_due && !seen->is_won_before) {
        item_mark(it, ITEM_WON);
        seen->is_won = true;
    }
}

/* Before anything is written. */
static struct store_seen
see(const struct item *it, uint64_t cas, uint32_t flags)
{
    unsigned marks = item_marks(it);

    return (struct store_seen){
        .is_won_before = (marks & ITEM_WON) != 0,
        .is_stale = (marks & ITEM_STALE) != 0,
        .was_fetched = (marks & ITEM_FETCHED) != 0,
        .cas = cas,
        .flags = flags,
        .last_access = item_time(it),
        .exptime_before = item_exptime(it),
        .exptime_after = item_exptime(it),
    };
}

void
store_hit_see(const struct store_hit *hit, struct store_seen *seen)
{
    *seen = see(hit->head, hit->cas, hit->flags);
}

static void
look_at(struct item *it, const struct store_look *ask, uint32_t now,
        struct store_seen *seen)
{
    *seen = see(it, item_cas_load(it), item_client_flags(it, it));
    if (ask->touches) {
        item_set_exptime(it, ask->exptime);
    }
    seen->exptime_after = item_exptime(it);
    give_token(it, ask, now, seen);
}

/* An empty item with two references, the table's and the caller's. */
static enum store_status
create_empty(struct store *s, struct key key, const struct store_look *ask, uint64_t hash,
             uint32_t now, struct store_seen *seen, struct item **item)
{
    enum store_status status = item_create(s, key, 0, ask->create_exptime, 0, now, item);

    if (status != STORE_OK) {
        return status;
    }
    item_terminate(*item);
    if (ask->is_binary_key) {
        item_mark_binary_key(*item);
    }
    (*item)->owner = ask->owner % STORE_OWNERS;
    item_mark(*item, ITEM_WON);
    core_link(s, *item, ask->new_cas, hash, now);
    item_ref(*item);
    seen->is_created = true;
    seen->is_won = true;
    seen->cas = item_cas_load(*item);
    seen->last_access = now;
    seen->exptime_before = ask->create_exptime;
    seen->exptime_after = ask->create_exptime;
    return STORE_OK;
}

enum store_status
store_look(struct store *s, struct key key, const struct store_look *ask, uint32_t now,
           struct store_seen *seen, struct item **item)
{
    uint64_t hash = hash_of(s, key);

    memset(seen, 0, sizeof(*seen));
    table_lock(&s->table, hash);
    enum store_status status = hold_item(s, key, hash, now, item);
    if (status == STORE_OK) {
        look_at(*item, ask, now, seen);
    } else if (status != STORE_BUSY && ask->creates) {
        status = create_empty(s, key, ask, hash, now, seen, item);
    }
    if (status == STORE_OK && ask->is_use) {
        core_use(s, *item, now);
    }
    table_unlock(&s->table, hash);
    return status;
}

void
store_release(struct store *s, struct item *item)
{
    item_unref(s, item);
}

static void
raise_border(_Atomic uint64_t *border, uint64_t to)
{
    if (atomic_load_explicit(border, memory_order_relaxed) < to) {
        atomic_store_explicit(border, to, memory_order_relaxed);
    }
}

/* All numbers have been used up since the beginning of one of the last seconds. */
static bool
have_epochs_wrapped(const struct flush *f, uint16_t next, uint32_t now)
{
    for (unsigned i = 0; i < FLUSH_SPAN; i++) {
        const struct flush_mark *mark = &f->marks[i];
        if (mark->second != 0 && now - mark->second < FLUSH_SPAN && mark->epoch == next) {
            return true;
        }
    }
    return false;
}

/* Ends the present epoch. Epochs are numbered modulo 2^16, and items of the one that had the
 * next number before must not come back: what is older than a few seconds goes by its time.
 * Only when all numbers were used within these seconds, this whole second goes. */
static void
end_epoch(struct flush *f, uint32_t now)
{
    uint16_t current = atomic_load_explicit(&f->epoch, memory_order_relaxed);
    uint16_t next = (uint16_t)(current + 1);
    struct flush_mark *mark = &f->marks[now % FLUSH_SPAN];

    if (mark->second != now) {
        *mark = (struct flush_mark){now, current};
    }
    if (now > FLUSH_SPAN) {
        raise_border(&f->time_below, (uint64_t)now - FLUSH_SPAN + 1);
    }
    if (have_epochs_wrapped(f, next, now)) {
        raise_border(&f->time_below, (uint64_t)now + 1);
        memset(f->marks, 0, sizeof(f->marks));
    }
    atomic_store_explicit(&f->epoch, next, memory_order_relaxed);
}

void
store_flush(struct store *s, uint32_t at, uint32_t now)
{
    struct flush *f = &s->flush;

    PTHREAD_OK(pthread_mutex_lock(&f->lock));
    uint32_t pending = atomic_load_explicit(&f->at, memory_order_relaxed);
    if (pending != 0 && pending <= now) {
        /* It has struck: what it killed stays dead when the time is overwritten. */
        raise_border(&f->time_below, (uint64_t)pending + 1);
    }
    if (at >= now) {
        f->latest = at;
        atomic_store_explicit(&f->at, at, memory_order_relaxed);
    } else {
        f->latest = now;
        if (s->conf.use_cas) {
            end_epoch(f, now);
        } else {
            raise_border(&f->time_below, (uint64_t)now + 1);
        }
        atomic_store_explicit(&f->at, 0, memory_order_relaxed);
    }
    PTHREAD_OK(pthread_mutex_unlock(&f->lock));
}

/* ---- maintenance --------------------------------------------------------------------- */

bool
store_set_limit(struct store *s, uint64_t bytes)
{
    if (!slab_set_limit(&s->slab, bytes)) {
        return false;
    }
    atomic_store_explicit(&s->lru.shares.limit_bytes, bytes, memory_order_relaxed);
    return true;
}

bool
store_step(struct store *s, unsigned buckets)
{
    return table_step(&s->table, lru_number(&s->lru), buckets);
}

void
store_debug_lock(struct store *s, struct key key, bool is_locked)
{
    if (is_locked) {
        table_lock(&s->table, hash_of(s, key));
    } else {
        table_unlock(&s->table, hash_of(s, key));
    }
}
