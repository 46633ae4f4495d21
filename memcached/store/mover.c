/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/mover.h"

#include <limits.h>

#include "store/core.h"

/* Rounds over a page that is not getting empty, before referenced chains are unlinked and
 * room is made by evictions though memory is left. */
#define ROUNDS_MAX_EVICTING 1000
#define ROUNDS_MAX_KEEPING 5000
#define AUTOMOVE_EVICTION_LEVEL 2
/* Where spare pages go to the pool in times of need only, more of them go. */
#define SPARE_HALF_PAGES_EVICTING 5
#define SPARE_HALF_PAGES_KEEPING 3
#define WORTH_MOVES 8u /* a second */

/* What became of a chunk. */
enum outcome {
    OUTCOME_PASS, /* out already, or changed hands just now */
    OUTCOME_FROM_SLAB,
    OUTCOME_FROM_LRU,
    OUTCOME_BUSY, /* from here on it stays for now */
    OUTCOME_UPLOADING,
    OUTCOME_FLOATING, /* it is held, in the table or not */
    OUTCOME_LOCKED,
    OUTCOME_NO_MEMORY,
    OUTCOMES,
};

static const char *const outcome_names[OUTCOMES] = {
    [OUTCOME_PASS] = "pass",
    [OUTCOME_FROM_SLAB] = "from_slab",
    [OUTCOME_FROM_LRU] = "from_lru",
    [OUTCOME_BUSY] = "busy",
    [OUTCOME_UPLOADING] = "busy_uploading",
    [OUTCOME_FLOATING] = "busy_floating",
    [OUTCOME_LOCKED] = "locked",
    [OUTCOME_NO_MEMORY] = "busy",
};

/* A chunk that belongs to an item. */
struct find {
    struct item *head;   /* the item, */
    struct chunk *chunk; /* and the chunk, if it is not the one that the item begins in */
    uint64_t hash;
};

static void
count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint32_t
rounds_max(const struct store *s)
{
    return s->conf.keeps_pages_when_full ? ROUNDS_MAX_KEEPING : ROUNDS_MAX_EVICTING;
}

/* ---- one chunk ----------------------------------------------------------------------- */

static bool
is_known(const struct item *it)
{
    return atomic_load_explicit(&((struct item *)(uintptr_t)it)->layout,
                                memory_order_acquire) &
           ITEM_KNOWN;
}

/* The slab lock is held: what is not free now stays what it is. A chunk goes before the head
 * of its item does. */
static enum outcome
look_locked(struct store *s, uint32_t i, struct find *find)
{
    struct item *it = slab_move_chunk(&s->slab, i);
    uint8_t layout = atomic_load_explicit(&it->layout, memory_order_acquire);

    if (layout & ITEM_OUT) {
        s->mover.pending[i / MOVER_PENDING_BITS] &=
            ~(UINT64_C(1) << i % MOVER_PENDING_BITS);
        return OUTCOME_PASS;
    }
    if (layout & ITEM_FREE) {
        slab_move_detach(&s->slab, i);
        return OUTCOME_FROM_SLAB;
    }
    if ((layout & ITEM_KNOWN) == 0) {
        return OUTCOME_UPLOADING;
    }
    find->head = it;
    find->chunk = NULL;
    if (layout & ITEM_CHUNK) {
        find->chunk = (struct chunk *)(void *)it;
        find->head = find->chunk->owner;
    }
    if (!is_known(find->head)) {
        return OUTCOME_UPLOADING;
    }
    find->hash = table_hash(&s->table, item_key_slot(find->head), find->head->key_len);
    return OUTCOME_FROM_LRU;
}

static enum outcome
look(struct store *s, uint32_t i, struct find *find)
{
    PTHREAD_OK(pthread_mutex_lock(&s->slab.lock));
    enum outcome outcome = look_locked(s, i, find);
    PTHREAD_OK(pthread_mutex_unlock(&s->slab.lock));
    return outcome;
}

/* The chunk may have been given to another item since it was looked at. */
static bool
is_still_part(struct store *s, const struct find *find)
{
    if (find->chunk == NULL) {
        return true;
    }
    PTHREAD_OK(pthread_mutex_lock(&s->slab.lock));
    bool is_part = atomic_load_explicit(&find->chunk->layout, memory_order_acquire) ==
                       (ITEM_CHUNK | ITEM_KNOWN) &&
                   find->chunk->owner == find->head;
    PTHREAD_OK(pthread_mutex_unlock(&s->slab.lock));
    return is_part;
}

/* The two below with the stripe held, on a linked item. */

/* To another chunk of the class; no counter changes. */
static enum outcome
rescue(struct store *s, const struct find *find)
{
    unsigned class_id = s->slab.move.from;
    uint32_t accounted = find->chunk != NULL ? item_chunk_bytes(find->chunk)
                                             : item_head_bytes(&s->conf, find->head);
    void *to = slab_take(&s->slab, class_id, accounted, false);

    if (to == NULL) {
        return OUTCOME_NO_MEMORY;
    }
    if (find->chunk != NULL) {
        item_move_chunk(to, find->chunk);
        slab_give(&s->slab, class_id, find->chunk, accounted);
        count(&s->mover.count.chunk_rescues);
    } else {
        core_relocate(s, find->head, to, find->hash);
        slab_give(&s->slab, class_id, find->head, accounted);
        count(&s->mover.count.rescues);
    }
    return OUTCOME_FROM_LRU;
}

static enum outcome
settle(struct store *s, const struct find *find, uint32_t now)
{
    struct item *it = find->head;

    if (item_refs(it) > 1) {
        if (it->layout & ITEM_CHAINED && s->mover.rounds >= rounds_max(s)) {
            /* It is not given out any more, so it becomes free in the end. */
            count(&s->mover.count.busy_deletes);
            core_drop(s, it, find->hash);
        }
        return OUTCOME_FLOATING;
    }
    if (is_dead(s, it, now)) {
        core_drop(s, it, find->hash);
        return OUTCOME_FROM_LRU;
    }
    enum outcome outcome = rescue(s, find);
    if (outcome == OUTCOME_NO_MEMORY && !s->conf.keeps_pages_when_full) {
        count(&s->mover.count.evictions_nomem);
        core_drop(s, it, find->hash);
        return OUTCOME_FROM_LRU;
    }
    return outcome;
}

/* What is chained goes for the chunk of it that has no place. */
static bool
give_up(struct store *s, const struct find *find, uint32_t now)
{
    if (!table_try_lock(&s->table, find->hash)) {
        return false;
    }
    bool is_there = table_has(&s->table, find->head, find->hash) &&
                    find->head->layout & ITEM_CHAINED && is_still_part(s, find);
    if (is_there) {
        count(&s->mover.count.evictions_nomem);
        lru_count_eviction(s, find->head, now);
        core_drop(s, find->head, find->hash);
    }
    table_unlock(&s->table, find->hash);
    return is_there;
}

/* Nothing to copy to. A tail entry of the page's class makes room when nothing else could. Where there is
 * none, what is chained goes itself: it is in the list of another class, whose tail entries have no
 * chunk to leave. True when one went. */
static bool
make_room(struct store *s, const struct find *find, uint32_t now)
{
    bool has_waited = s->mover.rounds >= rounds_max(s);
    count(&s->mover.count.busy_nomem);
    if ((has_waited || slab_is_full(&s->slab)) && lru_evict(s, s->slab.move.from, now)) {
        return true;
    }
    if (!has_waited || s->conf.can_evict) {
        return has_waited && give_up(s, find, now);
    }
    s->mover.is_stuck = true;
    return false;
}

static enum outcome
move_item(struct store *s, const struct find *find, uint32_t now)
{
    enum outcome outcome = OUTCOME_FLOATING;

    if (!table_try_lock(&s->table, find->hash)) {
        return OUTCOME_LOCKED;
    }
    if (table_has(&s->table, find->head, find->hash)) {
        outcome = is_still_part(s, find) ? settle(s, find, now) : OUTCOME_PASS;
    }
    table_unlock(&s->table, find->hash);
    if (outcome == OUTCOME_NO_MEMORY && make_room(s, find, now)) {
        s->mover.has_progress = true;
    }
    return outcome;
}

/* False: there is no room for what is in it, nor for what is in the others. */
static bool
move_chunk(struct store *s, uint32_t i, uint32_t now)
{
    struct mover *m = &s->mover;
    struct find find;
    enum outcome outcome = look(s, i, &find);

    if (outcome == OUTCOME_FROM_LRU) {
        outcome = move_item(s, &find, now);
    }
    if (outcome >= OUTCOME_BUSY) {
        atomic_store_explicit(&m->count.last_busy, outcome_names[outcome],
                              memory_order_relaxed);
        if (outcome != OUTCOME_NO_MEMORY) {
            count(&m->count.busy_items);
        }
        return outcome != OUTCOME_NO_MEMORY;
    }
    m->has_progress |= outcome != OUTCOME_PASS;
    return true;
}

/* ---- the page ------------------------------------------------------------------------ */

/* The first chunk from `i` that may still have something in it; `chunks` when there is
 * none. */
static uint32_t
next_pending(const struct mover *m, uint32_t i, uint32_t chunks)
{
    while (i < chunks) {
        uint64_t bits = m->pending[i / MOVER_PENDING_BITS] >> i % MOVER_PENDING_BITS;

        if (bits != 0) {
            i += (uint32_t)__builtin_ctzll(bits);
            return i < chunks ? i : chunks;
        }
        i = (i / MOVER_PENDING_BITS + 1) * MOVER_PENDING_BITS;
    }
    return chunks;
}

/* Learns of a move that another thread has begun. */
static bool
is_moving(struct store *s)
{
    struct mover *m = &s->mover;

    PTHREAD_OK(pthread_mutex_lock(&s->slab.lock));
    bool is_moving = s->slab.move.page != NULL;
    uint64_t serial = s->slab.move.serial;
    PTHREAD_OK(pthread_mutex_unlock(&s->slab.lock));
    if (is_moving && serial != m->serial) {
        m->serial = serial;
        m->at = 0;
        m->rounds = 0;
        m->has_progress = m->is_stuck = false;
        memset(m->pending, UCHAR_MAX, sizeof(m->pending));
    }
    return is_moving;
}

static void
tell_move(struct store *s, int from, int to, bool has_failed)
{
    struct store_event event = {.kind = STORE_EVENT_PAGE_MOVE,
                                .class_id = (uint8_t)from,
                                .to_class = (uint8_t)to,
                                .has_failed = has_failed};

    if (s->conf.on_event != NULL) {
        s->conf.on_event(s->conf.event_ctx, &event);
    }
}

/* Without evictions (-M) its items have no other place: the class keeps it. */
static void
cancel(struct store *s)
{
    int from = (int)s->slab.move.from, to = (int)s->slab.move.to;

    slab_move_cancel(&s->slab);
    tell_move(s, from, to, true);
}

enum store_move_progress
store_move_step(struct store *s, unsigned chunks, uint32_t now)
{
    struct mover *m = &s->mover;
    enum store_move_progress progress = STORE_MOVE_WORKING;

    if (!is_moving(s)) {
        return STORE_MOVE_IDLE;
    }
    while (chunks-- > 0) {
        m->at = next_pending(m, m->at, s->slab.move.chunks);
        if (m->at < s->slab.move.chunks &&
            (move_chunk(s, m->at++, now) || m->rounds == 0)) {
            continue;
        }
        if (m->is_stuck && !m->has_progress) {
            cancel(s);
            return STORE_MOVE_IDLE;
        }
        progress = m->has_progress ? STORE_MOVE_WORKING : STORE_MOVE_WAITING;
        m->is_stuck = false;
        m->at = 0;
        m->rounds++;
        m->has_progress = false;
        break;
    }
    if (slab_move_end(&s->slab)) {
        count(&m->count.pages_moved);
        return STORE_MOVE_IDLE;
    }
    return progress;
}

enum store_move_status
store_move_page(struct store *s, int from, int to)
{
    enum store_move_status status = slab_move_begin(&s->slab, &from, to);

    if (status == STORE_MOVE_OK) {
        tell_move(s, from, to, false);
    }
    return status;
}

/* Of the automover; -1 is some class and is reported as the pool when there was none. */
static bool
carry_out(struct store *s, int from, int to)
{
    bool is_begun = store_move_page(s, from, to) == STORE_MOVE_OK;

    if (!is_begun) {
        tell_move(s, from < 0 ? 0 : from, to, true);
    }
    return is_begun;
}

/* ---- the automover ------------------------------------------------------------------- */

void
store_set_automove(struct store *s, const struct store_automove *conf)
{
    struct automover *a = &s->automover;

    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    a->conf = *conf;
    if (a->conf.window < AUTOMOVE_WINDOW_MIN) {
        a->conf.window = AUTOMOVE_WINDOW_MIN;
    }
    if (a->conf.window > AUTOMOVE_WINDOW_MAX) {
        a->conf.window = AUTOMOVE_WINDOW_MAX;
    }
    atomic_store_explicit(&a->level, conf->level, memory_order_relaxed);
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
}

struct store_automove
store_automove(struct store *s)
{
    struct automover *a = &s->automover;

    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    struct store_automove conf = a->conf;
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
    return conf;
}

/* Bytes of an item. */
static uint64_t
mean_of(const struct store_class_stats *c)
{
    return c->used_chunks > 0 ? c->requested_bytes / c->used_chunks : c->chunk_size;
}

/* Without evictions a page's items need room in the class's other pages. */
static bool
can_give(const struct store *s, const struct store_class_stats *c)
{
    return s->conf.can_evict || c->free_chunks >= c->chunks_per_page;
}

static void
take_sample(struct store *s, uint32_t now, struct automove_sample *sample)
{
    sample->class_count = s->slab.class_count;
    sample->is_full = slab_has_reached_limit(&s->slab);
    sample->now = now;
    sample->remembered = lru_number(&s->lru) / LRU_LOST_ONE_IN;
    for (unsigned id = 1; id <= sample->class_count; id++) {
        struct store_class_stats c;

        store_class_stats(s, id, now, &c);
        sample->class[id] = (struct automove_class){
            .evicted = c.count.evicted,
            .outofmemory = c.count.outofmemory,
            .losses = c.losses,
            .returns = c.count.returns,
            .free_chunks = c.free_chunks,
            .pages = c.total_pages,
            .chunks_per_page = c.chunks_per_page,
            .age = c.age,
            .keeps_most = shares_keep_most(s, id) || !can_give(s, &c),
            .host = c.host,
            .best = can_give(s, &c) ? slab_best_class(&s->slab, id, mean_of(&c)) : id,
            .is_wanted = c.is_wanted};
    }
}

void
mover_note_eviction(struct store *s, unsigned class_id)
{
    struct automover *a = &s->automover;

    if (atomic_load_explicit(&a->level, memory_order_relaxed) >=
        AUTOMOVE_EVICTION_LEVEL) {
        atomic_store_explicit(&a->wanted_by, class_id, memory_order_relaxed);
    }
}

bool
store_automove_evicted(struct store *s)
{
    struct automover *a = &s->automover;

    if (atomic_load_explicit(&a->level, memory_order_relaxed) < AUTOMOVE_EVICTION_LEVEL) {
        return false;
    }
    unsigned wanted_by = atomic_exchange_explicit(&a->wanted_by, 0, memory_order_relaxed);
    if (wanted_by != 0) {
        carry_out(s, -1, (int)wanted_by);
    }
    return true;
}

bool
store_automove_step(struct store *s, uint32_t now)
{
    struct automover *a = &s->automover;
    struct store_automove conf = store_automove(s);
    struct automove_conf rules = {
        .ratio = conf.ratio,
        .spare_half_pages = s->conf.keeps_pages_when_full ? SPARE_HALF_PAGES_KEEPING
                                                          : SPARE_HALF_PAGES_EVICTING,
        .window = conf.window,
        .waits_until_full = s->conf.keeps_pages_when_full,
        .counts_shares = s->conf.keeps_pages_when_full,
        .ignores_ages = lru_policy(&s->lru) == STORE_LRU_S3FIFO};
    struct automove_sample sample;
    struct automove_move move;

    if (conf.level == 0) {
        return false;
    }
    take_sample(s, now, &sample);
    /* What leaves while a page is on its way says nothing about what its class is worth. */
    bool is_moving = slab_is_moving(&s->slab);
    if (!is_moving) {
        worth_add(&a->worth, &sample);
    }
    if (a->last_second != now) {
        a->last_second = now;
        a->moves = 0;
        if (!automove_add(&a->window, &rules, &sample)) {
            return false;
        }
    }
    if (automove_decide(&a->window, &rules, &sample, &move)) {
        return carry_out(s, (int)move.from, (int)move.to) && move.to == 0;
    }
    return rules.ignores_ages && !is_moving && a->moves++ < WORTH_MOVES &&
           worth_decide(&a->worth, &sample, &move) &&
           carry_out(s, (int)move.from, (int)move.to);
}

/* ---- life and statistics ------------------------------------------------------------- */

void
mover_init(struct store *s, const pthread_mutexattr_t *lock_attr)
{
    struct store_automove conf = {.ratio = 1, .window = AUTOMOVE_WINDOW_MIN};

    PTHREAD_OK(pthread_mutex_init(&s->automover.lock, lock_attr));
    atomic_init(&s->mover.count.last_busy, "none");
    store_set_automove(s, &conf);
}

void
mover_fini(struct store *s)
{
    automove_fini(&s->automover.window);
    PTHREAD_OK(pthread_mutex_destroy(&s->automover.lock));
}

static uint64_t
value(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void
mover_totals(struct store *s, struct store_totals *out)
{
    struct mover_counters *c = &s->mover.count;

    out->pages_moved = value(&c->pages_moved);
    out->move_rescues = value(&c->rescues);
    out->move_chunk_rescues = value(&c->chunk_rescues);
    out->move_evictions_nomem = value(&c->evictions_nomem);
    out->move_busy_items = value(&c->busy_items);
    out->move_busy_deletes = value(&c->busy_deletes);
    out->move_busy_nomem = value(&c->busy_nomem);
    out->move_last_busy = atomic_load_explicit(&c->last_busy, memory_order_relaxed);
    PTHREAD_OK(pthread_mutex_lock(&s->slab.lock));
    out->move_inline_reclaim = s->slab.move.inline_reclaim;
    out->is_moving = s->slab.move.page != NULL;
    out->pool_pages = s->slab.pages.pool_count;
    PTHREAD_OK(pthread_mutex_unlock(&s->slab.lock));
}

void
mover_reset_stats(struct store *s)
{
    struct mover_counters *c = &s->mover.count;
    _Atomic uint64_t *const counters[] = {
        &c->pages_moved, &c->rescues,      &c->chunk_rescues, &c->evictions_nomem,
        &c->busy_items,  &c->busy_deletes, &c->busy_nomem};

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        atomic_store_explicit(counters[i], 0, memory_order_relaxed);
    }
    PTHREAD_OK(pthread_mutex_lock(&s->slab.lock));
    s->slab.move.inline_reclaim = 0;
    PTHREAD_OK(pthread_mutex_unlock(&s->slab.lock));
}
