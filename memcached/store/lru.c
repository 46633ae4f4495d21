/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/lru.h"

#include "store/core.h"
#include "store/policy.h"

#define ITEM_BYTES_LEAST 64u /* about as large as the smallest item */
#define GHOST_FIT_PERIOD                                                                 \
    1024u /* evictions of a class between two looks at how many items there are */

/* limit_bytes, mem: the store's. */
static void
set_conf(struct lru *l, const struct store_lru_conf *conf, uint64_t limit_bytes,
         struct mem *mem)
{
    l->conf = *conf;
    if (conf->policy == STORE_LRU_S3FIFO) {
        ghost_open(&l->ghost, mem, limit_bytes / ITEM_BYTES_LEAST);
        ghost_open(&l->lost, mem, limit_bytes / ITEM_BYTES_LEAST / LRU_LOST_ONE_IN);
    }
    atomic_store_explicit(&l->policy, conf->policy, memory_order_relaxed);
    atomic_store_explicit(&l->temp_ttl, conf->temp_ttl, memory_order_relaxed);
    atomic_store_explicit(&l->warm_pct, conf->warm_pct, memory_order_relaxed);
}

void
lru_init(struct lru *l, const struct store_conf *store_conf, struct mem *mem)
{
    const pthread_mutexattr_t *lock_attr = store_conf->lock_attr;

    memset(l, 0, sizeof(*l));
    PTHREAD_OK(pthread_mutex_init(&l->conf_lock, lock_attr));
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        PTHREAD_OK(pthread_mutex_init(&l->classes[i].lock, lock_attr));
    }
    set_conf(l, &store_conf->lru, store_conf->limit_bytes, mem);
    atomic_init(&l->shares.limit_bytes, store_conf->limit_bytes);
    shares_set(&l->shares, &store_conf->shares, mem);
    hotshare_init(&l->hot_share, lock_attr);
}

void
lru_fini(struct lru *l)
{
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        PTHREAD_OK(pthread_mutex_destroy(&l->classes[i].lock));
    }
    PTHREAD_OK(pthread_mutex_destroy(&l->conf_lock));
    hotshare_fini(&l->hot_share);
    ghost_close(&l->ghost);
    ghost_close(&l->lost);
    shares_fini(&l->shares);
}

void
store_set_lru(struct store *s, const struct store_lru_conf *conf)
{
    PTHREAD_OK(pthread_mutex_lock(&s->lru.conf_lock));
    set_conf(&s->lru, conf, s->conf.limit_bytes, &s->mem);
    PTHREAD_OK(pthread_mutex_unlock(&s->lru.conf_lock));
}

struct store_lru_conf
store_lru(struct store *s)
{
    PTHREAD_OK(pthread_mutex_lock(&s->lru.conf_lock));
    struct store_lru_conf conf = s->lru.conf;
    PTHREAD_OK(pthread_mutex_unlock(&s->lru.conf_lock));
    return conf;
}

/* ---- lists; the lock of the class is held --------------------------------------------- */

static struct lru_list *
list_of(struct lru_class *c, const struct item *it)
{
    return &c->lists[item_list(it)];
}

static void
push_head(const struct link_range *range, struct lru_list *list, struct item *it)
{
    it->prev = 0;
    it->next = 0;
    if (list->head != NULL) {
        it->next = link_to(range, list->head);
        list->head->prev = link_to(range, it);
    } else {
        list->tail = it;
    }
    list->head = it;
}

void
lru_cursor_open(struct lru_list *list, struct lru_cursor *cursor, bool is_downwards)
{
    cursor->is_downwards = is_downwards;
    cursor->at = is_downwards ? list->head : list->tail;
    cursor->next = list->cursors;
    list->cursors = cursor;
}

void
lru_cursor_close(struct lru_list *list, struct lru_cursor *cursor)
{
    struct lru_cursor **link = &list->cursors;

    while (*link != cursor) {
        must(*link != NULL);
        link = &(*link)->next;
    }
    *link = cursor->next;
    cursor->at = NULL;
}

static void
move_cursors(const struct link_range *range, struct lru_list *list, const struct item *it)
{
    for (struct lru_cursor *c = list->cursors; c != NULL; c = c->next) {
        if (c->at == it) {
            c->at = link_item(range, c->is_downwards ? it->next : it->prev);
        }
    }
}

static void
take_out(const struct link_range *range, struct lru_list *list, struct item *it)
{
    struct item *next = link_item(range, it->next);
    struct item *prev = link_item(range, it->prev);

    if (unlikely(list->cursors != NULL)) {
        move_cursors(range, list, it);
    }
    if (prev != NULL) {
        prev->next = it->next;
    } else {
        must(list->head == it);
        list->head = next;
    }
    if (next != NULL) {
        next->prev = it->prev;
    } else {
        must(list->tail == it);
        list->tail = prev;
    }
    it->next = 0;
    it->prev = 0;
}

static void
add_number(struct lru_class *c, uint64_t n)
{
    uint64_t number = atomic_load_explicit(&c->number, memory_order_relaxed);

    atomic_store_explicit(&c->number, number + n, memory_order_relaxed);
}

static void
enter_list(const struct store *s, struct lru_class *c, struct item *it,
           enum store_list list, uint64_t total)
{
    unsigned marks = item_marks(it) & ((1u << ITEM_LIST_SHIFT) - 1);

    item_set_marks(it, marks | (unsigned)list << ITEM_LIST_SHIFT);
    push_head(&s->table.range, &c->lists[list], it);
    c->lists[list].number++;
    c->lists[list].bytes += total;
}

static void
leave_list(const struct store *s, struct lru_class *c, struct item *it, uint64_t total)
{
    struct lru_list *list = list_of(c, it);

    take_out(&s->table.range, list, it);
    list->number--;
    list->bytes -= total;
}

/* Of the list that it is in. */
static void
to_head(const struct store *s, struct lru_class *c, struct item *it)
{
    take_out(&s->table.range, list_of(c, it), it);
    push_head(&s->table.range, list_of(c, it), it);
}

static void
link_locked(struct store *s, struct item *it, enum store_list list, uint64_t total,
            uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    sizes_add(&s->sizes, it, total);
    item_set_time(it, now);
    enter_list(s, c, it, list, total);
    shares_add(&c->uses[it->owner], total, 1);
    add_number(c, 1);
    c->count.total_items++;
}

static void
unlink_locked(struct store *s, struct lru_class *c, struct item *it, uint64_t total)
{
    sizes_subtract(&s->sizes, it, total);
    leave_list(s, c, it, total);
    shares_add(&c->uses[it->owner], -total, (uint64_t)-1);
    add_number(c, (uint64_t)-1);
}

void
lru_move_locked(struct store *s, struct item *it, enum store_list to)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    uint64_t total = item_total_of(&s->conf, it);

    leave_list(s, c, it, total);
    item_unmark(it, ITEM_ACTIVE | ITEM_KEEN);
    enter_list(s, c, it, to, total);
}

/* ---- with the stripe held ------------------------------------------------------------- */

/* `before` are the marks of what it comes instead of, 0: of nothing. */
static void
link_after(struct store *s, struct item *it, unsigned before, uint64_t hash, uint32_t now)
{
    struct lru *l = &s->lru;

    if (before == 0 && unlikely(shares_are_on(&l->shares))) {
        shares_note_new(&l->shares, &l->classes[it->class_id].uses[it->owner], it->owner,
                        hash);
    }
    link_locked(s, it, policy_place(s, it, before, hash, now),
                item_total_of(&s->conf, it), now);
}

static void
cap(struct store *s, const struct item *it, uint32_t now)
{
    if (unlikely(shares_have_caps(&s->lru.shares))) {
        policy_cap(s, it->class_id, it->owner, now);
    }
}

void
lru_link(struct store *s, struct item *it, uint64_t hash, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    link_after(s, it, 0, hash, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    cap(s, it, now);
}

void
lru_unlink(struct store *s, struct item *it)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    uint64_t total = item_total_of(&s->conf, it);

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    unlink_locked(s, c, it, total);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

void
lru_replace(struct store *s, struct item *old, struct item *it, uint64_t hash,
            uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    unsigned before = item_marks(old);

    if (old->class_id != it->class_id) {
        lru_unlink(s, old);
    }
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    if (old->class_id == it->class_id) {
        unlink_locked(s, c, old, item_total_of(&s->conf, old));
    }
    link_after(s, it, before, hash, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    cap(s, it, now);
}

void
lru_renew(struct store *s, struct item *it, unsigned class_id,
          const struct store_value *value, uint64_t hash, uint64_t total, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[class_id];
    uint64_t before = item_total_of(&s->conf, it);
    unsigned marks = item_marks(it);

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    leave_list(s, c, it, before);
    it->value_len = value->len & STORE_VALUE_MAX;
    item_set_flags(it, value->flags);
    it->epoch = atomic_load_explicit(&s->flush.epoch, memory_order_relaxed);
    item_set_exptime(it, value->exptime);
    item_set_time(it, now);
    item_set_marks(it, ITEM_LINKED);
    enter_list(s, c, it, policy_place(s, it, marks, hash, now), total);
    c->count.total_items++;
    c->recharged += total - before;
    if (total != before) {
        shares_add(&c->uses[it->owner], total - before, 0);
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    if (total > before) {
        cap(s, it, now);
    }
}

void
lru_relocate(struct store *s, const struct item *old, struct item *it)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    struct lru_list *list = list_of(c, it);

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    struct item *next = link_item(&s->table.range, old->next);
    struct item *prev = link_item(&s->table.range, old->prev);
    it->next = old->next;
    it->prev = old->prev;
    for (struct lru_cursor *k = list->cursors; k != NULL; k = k->next) {
        k->at = k->at == old ? it : k->at;
    }
    if (prev != NULL) {
        prev->next = link_to(&s->table.range, it);
    } else {
        list->head = it;
    }
    if (next != NULL) {
        next->prev = link_to(&s->table.range, it);
    } else {
        list->tail = it;
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

void
lru_adopt(struct store *s, unsigned class_id, enum store_list list, struct item *head,
          struct item *tail, uint64_t number, uint64_t bytes)
{
    struct lru_class *c = &s->lru.classes[class_id];

    must(c->lists[list].head == NULL);
    c->lists[list] =
        (struct lru_list){.head = head, .tail = tail, .number = number, .bytes = bytes};
    add_number(c, number);
    c->count.total_items += number;
}

void
lru_flatten(struct store *s)
{
    static const enum store_list order[] = {STORE_LIST_TEMP, STORE_LIST_HOT,
                                            STORE_LIST_WARM};
    struct item *it;

    for (unsigned id = 1; id <= s->slab.class_count; id++) {
        struct lru_class *c = &s->lru.classes[id];

        PTHREAD_OK(pthread_mutex_lock(&c->lock));
        for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++) {
            while ((it = c->lists[order[i]].tail) != NULL) {
                lru_move_locked(s, it, STORE_LIST_COLD);
            }
        }
        PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    }
}

void
lru_bump(struct store *s, struct item *it, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    to_head(s, c, it);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    item_note_read(it, now);
}

/* ---- tails ---------------------------------------------------------------------------- */

void
lru_remove_locked(struct store *s, struct item *it, uint64_t hash)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    table_remove(&s->table, it, hash);
    unlink_locked(s, c, it, item_total_of(&s->conf, it));
    item_unmark(it, ITEM_LINKED);
}

/* LRU lock and stripe held. Puts it on the list of those to free without them. */
static void
remove_victim(struct store *s, struct item *it, uint64_t hash, struct item **removed)
{
    lru_remove_locked(s, it, hash);
    it->next = *removed != NULL ? link_to(&s->table.range, *removed) : 0;
    *removed = it;
}

static void
free_removed(struct store *s, struct item *removed)
{
    while (removed != NULL) {
        struct item *next = link_item(&s->table.range, removed->next);

        removed->next = 0;
        item_unref(s, removed);
        removed = next;
    }
}

static void
count_eviction(struct store *s, struct lru_class *c, const struct item *it, uint32_t now)
{
    uint32_t exptime = item_exptime(it);

    c->count.evicted++;
    c->count.evicted_time = lru_idle(it, now);
    c->count.evicted_nonzero += exptime != STORE_NEVER;
    c->count.evicted_unfetched += !item_is(it, ITEM_FETCHED);
    c->count.evicted_active += item_is(it, ITEM_ACTIVE);
    if (unlikely(s->conf.on_event != NULL)) {
        struct store_event event = {
            .kind = STORE_EVENT_EVICTION,
            .key = item_key_of(it),
            .was_fetched = item_is(it, ITEM_FETCHED),
            .ttl = exptime == STORE_NEVER ? -1 : (int64_t)exptime - now,
            .idle = lru_idle(it, now),
            .value_len = it->value_len,
            .class_id = it->class_id,
            .list = item_list(it),
        };

        s->conf.on_event(s->conf.event_ctx, &event);
    }
}

void
lru_count_eviction(struct store *s, const struct item *it, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    count_eviction(s, c, it, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

/* A counter that may have gone back to 0. */
static uint64_t
grown(uint64_t now, uint64_t *before)
{
    uint64_t more = now > *before ? now - *before : 0;

    *before = now;
    return more;
}

static void
tell_hot_share(struct lru *l, struct lru_class *c)
{
    struct hotshare_counts more = {
        .ghosts = grown(c->ghosts, &c->told.ghosts),
        .came_back = grown(c->count.ghost_hits, &c->told.came_back),
        .losses = LRU_LOST_ONE_IN * grown(c->losses, &c->told.losses),
        .returns = LRU_LOST_ONE_IN * grown(c->count.returns, &c->told.returns),
    };

    hotshare_add(&l->hot_share, &more, lru_number(l));
}

/* There are no ghosts but for s3fifo, which alone evicts from HOT. */
static void
add_ghost(struct store *s, struct lru_class *c, uint64_t hash)
{
    if (c->ghosts++ % GHOST_FIT_PERIOD == 0) {
        ghost_fit(&s->lru.ghost, lru_number(&s->lru));
        ghost_fit(&s->lru.lost, lru_number(&s->lru) / LRU_LOST_ONE_IN);
    }
    if (c->ghosts % HOTSHARE_PERIOD == 0) {
        tell_hot_share(&s->lru, c);
    }
    ghost_add(&s->lru.ghost, hash);
}

static void
add_loss(struct store *s, struct lru_class *c, uint64_t hash)
{
    if (lru_is_sample(hash)) {
        c->losses++;
        ghost_add(&s->lru.lost, hash);
    }
}

/* The class had no room for another one. */
static void
note_need(struct store *s, struct lru_class *c, const struct item *it, uint64_t hash)
{
    c->has_evicted = true;
    if (item_list(it) == STORE_LIST_HOT) {
        add_ghost(s, c, hash);
    } else {
        add_loss(s, c, hash);
    }
    mover_note_eviction(s, it->class_id);
}

/* An item that is held would not give its memory now, and is in use: it goes to the
 * head instead of being lost, unless it has been held for suspiciously long. */
static enum pull
evict(struct store *s, struct lru_class *c, struct item *it, uint64_t hash, bool caps,
      uint32_t now, struct item **removed)
{
    uint32_t repair = s->conf.tail_repair_seconds;

    if (item_refs(it) == 1) {
        count_eviction(s, c, it, now);
        if (!caps) {
            note_need(s, c, it, hash);
        }
        shares_note_eviction(&s->lru, &c->uses[it->owner], it->owner, hash);
        remove_victim(s, it, hash, removed);
        return PULL_EVICTED;
    }
    c->count.reflocked++;
    if (repair != 0 && lru_idle(it, now) > repair) {
        c->count.tailrepairs++;
        remove_victim(s, it, hash, removed);
    } else {
        to_head(s, c, it);
    }
    return PULL_BUSY;
}

/* Stripe and LRU lock held. */
static enum pull
act(struct store *s, struct lru_class *c, struct item *it, enum action action,
    uint64_t hash, bool caps, uint32_t now, struct item **removed)
{
    switch (action) {
    case ACTION_KEEP:
    case ACTION_PASS: /* before, without the stripe */
        break;
    case ACTION_RECLAIM:
        c->count.reclaimed++;
        c->count.expired_unfetched += !item_is(it, ITEM_FETCHED);
        remove_victim(s, it, hash, removed);
        return PULL_RECLAIMED;
    case ACTION_EVICT:
        return evict(s, c, it, hash, caps, now, removed);
    case ACTION_TO_HEAD:
        c->count.moves_within_lru++;
        lru_move_locked(s, it, item_list(it));
        return PULL_MOVED;
    case ACTION_AGAIN: {
        unsigned left = item_is(it, ITEM_KEEN) ? ITEM_ACTIVE : 0;

        c->count.moves_within_lru++;
        lru_move_locked(s, it, item_list(it));
        item_mark(it, left);
        return PULL_MOVED;
    }
    case ACTION_TO_WARM:
        c->count.moves_to_warm++;
        lru_move_locked(s, it, STORE_LIST_WARM);
        return PULL_MOVED;
    case ACTION_TO_COLD:
        c->count.moves_to_cold++;
        lru_move_locked(s, it, STORE_LIST_COLD);
        return PULL_COOLED;
    }
    return PULL_NOTHING;
}

/* What was seen without the stripe may have changed. */
static enum pull
pull_one(struct store *s, struct lru_class *c, struct item *it,
         const struct pull_rule *ask, unsigned kept, uint32_t now, struct item **removed)
{
    uint64_t hash = hash_of(s, item_key_of(it));
    enum pull pull = PULL_BUSY;

    if (table_try_lock(&s->table, hash)) {
        pull = act(s, c, it, policy_judge(s, it, ask, kept, now), hash, ask->caps, now,
                   removed);
        table_unlock(&s->table, hash);
    }
    return pull;
}

enum pull
lru_pull(struct store *s, unsigned class_id, enum store_list list,
         const struct pull_rule *ask, struct pull_bypass *bypass, unsigned tries,
         uint32_t now)
{
    struct lru_class *c = &s->lru.classes[class_id];
    enum pull result = PULL_NOTHING;
    struct item *removed = NULL;
    struct item *prev;
    unsigned kept = bypass != NULL && bypass->left > 0 ? bypass->owners : 0;
    unsigned passes = LRU_PASSES_A_PULL;

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    list = ask->picks ? policy_pick(&s->lru, c) : list;
    for (struct item *it = c->lists[list].tail; it != NULL && tries > 0; it = prev) {
        enum pull pull = PULL_BUSY;
        enum action action = policy_judge(s, it, ask, kept, now);

        prev = link_item(&s->table.range, it->prev);
        if (action == ACTION_KEEP) {
            break; /* without hashing: this is the way of every allocation */
        }
        if (unlikely(action == ACTION_PASS)) {
            to_head(s, c, it);
            tries = --bypass->left > 0 && --passes > 0 ? tries : 0;
        } else {
            pull = pull_one(s, c, it, ask, kept, now, &removed);
            tries--;
        }
        result = pull > result ? pull : result;
        if (ask->goes_on ? pull >= PULL_RECLAIMED
                         : pull != PULL_RECLAIMED && pull != PULL_BUSY) {
            break;
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    free_removed(s, removed);
    return result;
}

/* ---- room for a chunk ----------------------------------------------------------------- */

void *
lru_take_chunk(struct store *s, unsigned class_id, uint32_t requested, unsigned victims,
               uint32_t now)
{
    static const struct pull_rule dead_only;
    struct pull_bypass bypass = {.left = LRU_PASSES};
    void *chunk = NULL;
    uint32_t rounds = 0;
    unsigned attempt = 1;

    while (attempt <= LRU_ATTEMPTS) {
        if (lru_policy(&s->lru) == STORE_LRU_FLAT) {
            (void)lru_pull(s, victims, STORE_LIST_COLD, &dead_only, NULL, LRU_TAIL_TRIES,
                           now);
        }
        chunk = slab_take(&s->slab, class_id, requested, true);
        if (likely(chunk != NULL)) {
            break;
        }
        enum pull pull = policy_make_room(s, victims, attempt, &bypass, now);
        if (pull == PULL_NOTHING) {
            break;
        }
        rounds++;
        /* The oldest page is the first to change its class, and the oldest items are the first
         * to go: what they leave behind on that page is no room, but the attempt did not fail
         * either. Two rounds an item: to COLD, and out. A page may be full of them. */
        bool is_late = rounds >= LRU_ROUNDS;
        attempt +=
            !slab_is_losing(&s->slab, class_id, is_late) || is_late || pull <= PULL_BUSY;
    }
    if (unlikely(rounds > 0)) {
        atomic_fetch_add_explicit(&s->lru.classes[victims].direct_reclaims, rounds,
                                  memory_order_relaxed);
    }
    return chunk;
}

bool
lru_evict(struct store *s, unsigned class_id, uint32_t now)
{
    struct pull_bypass bypass = {.left = LRU_PASSES};

    return s->conf.can_evict &&
           policy_make_room(s, class_id, 1, &bypass, now) > PULL_BUSY;
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
