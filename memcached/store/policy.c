/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/policy.h"

#include "store/core.h"

#define PER_CENT 100u
#define WARM_SLACK 4u
#define S3FIFO_ROUNDS 32u /* entries that come round before one goes that was read, too */
#define CAP_EVICTIONS 2u  /* of an owner above its ceiling for each item that it stores */

const char *
store_lru_name(enum store_lru_policy policy)
{
    static const char *const names[STORE_LRU_POLICIES] = {
        [STORE_LRU_FLAT] = "flat",
        [STORE_LRU_SEGMENTED] = "segmented",
        [STORE_LRU_S3FIFO] = "s3fifo",
    };

    return names[policy];
}

/* ---- new items and hits --------------------------------------------------------------- */

static bool
is_temporary(const struct lru *l, const struct item *it, uint32_t now)
{
    int64_t temp_ttl = atomic_load_explicit(&l->temp_ttl, memory_order_relaxed);
    uint32_t exptime = item_exptime(it);

    return lru_policy(l) != STORE_LRU_FLAT && temp_ttl >= 0 && exptime != STORE_NEVER &&
           (int64_t)exptime - now <= temp_ttl;
}

/* HOT has more than its share of both. */
static bool
is_hot_full(const struct lru *l, const struct lru_class *c)
{
    uint64_t hot = c->lists[STORE_LIST_HOT].bytes;

    return hot * PER_CENT >
           (hot + c->lists[STORE_LIST_COLD].bytes) * hotshare_pct(&l->hot_share);
}

/* What is stored anew stays in its queue, at the head, and its reads count on. Before the class has
 * evicted anything, the main queue takes what does not fit into the other. */
static enum store_list
place_s3fifo(struct store *s, struct item *it, unsigned before, uint64_t hash)
{
    struct lru_class *c = &s->lru.classes[it->class_id];

    if (before != 0) {
        unsigned list = before >> ITEM_LIST_SHIFT;

        item_mark(it, before & (ITEM_ACTIVE | ITEM_KEEN));
        return list == STORE_LIST_COLD || list == STORE_LIST_WARM ? STORE_LIST_COLD
                                                                  : STORE_LIST_HOT;
    }
    if (ghost_take(&s->lru.ghost, hash)) {
        c->count.ghost_hits++;
        return STORE_LIST_COLD;
    }
    if (!c->has_evicted) {
        return is_hot_full(&s->lru, c) && !shares_cap(&s->lru.shares, it->owner)
                   ? STORE_LIST_COLD
                   : STORE_LIST_HOT;
    }
    if (lru_is_sample(hash)) {
        c->count.returns += ghost_take(&s->lru.lost, hash);
    }
    return STORE_LIST_HOT;
}

enum store_list
policy_place(struct store *s, struct item *it, unsigned before, uint64_t hash,
             uint32_t now)
{
    enum store_lru_policy policy = lru_policy(&s->lru);

    if (policy == STORE_LRU_FLAT) {
        return STORE_LIST_COLD;
    }
    if (is_temporary(&s->lru, it, now)) {
        return STORE_LIST_TEMP;
    }
    return policy == STORE_LRU_S3FIFO ? place_s3fifo(s, it, before, hash)
                                      : STORE_LIST_HOT;
}

/* Reads alone must not fill WARM: what they push out of COLD's reach could not be evicted
 * before store_juggle has come by. So they may use a quarter more than its share. */
static bool
has_warm_room(const struct store *s, const struct lru_class *c)
{
    uint64_t share = atomic_load_explicit(&s->lru.warm_pct, memory_order_relaxed);
    uint64_t bytes = c->lists[STORE_LIST_HOT].bytes + c->lists[STORE_LIST_WARM].bytes +
                     c->lists[STORE_LIST_COLD].bytes;

    share += share / WARM_SLACK;
    return c->lists[STORE_LIST_WARM].bytes * PER_CENT <= bytes * share;
}

/* An item in COLD moves to WARM, unless that is full or another thread has the list just
 * now: then the mark stays, and the next use or store_juggle does it. */
static void
hit_segmented(struct store *s, struct item *it, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[it->class_id];
    unsigned marks = item_marks(it);

    item_note_read(it, now);
    if ((marks & ITEM_ACTIVE) == 0) {
        item_set_marks(it, marks | ITEM_ACTIVE);
    }
    if (item_list(it) == STORE_LIST_COLD && pthread_mutex_trylock(&c->lock) == 0) {
        if (has_warm_room(s, c)) {
            lru_move_locked(s, it, STORE_LIST_WARM);
            c->count.moves_to_warm++;
        }
        PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    }
}

void
policy_hit(struct store *s, struct item *it, uint32_t now)
{
    switch (lru_policy(&s->lru)) {
    case STORE_LRU_SEGMENTED:
        hit_segmented(s, it, now);
        break;
    case STORE_LRU_S3FIFO:
        item_mark(it, item_is(it, ITEM_ACTIVE) ? ITEM_KEEN : ITEM_ACTIVE);
        item_note_read(it, now);
        break;
    case STORE_LRU_FLAT:
    case STORE_LRU_POLICIES:
        lru_bump(s, it, now);
        break;
    }
}

void
policy_delete(struct store *s, const struct item *it, uint64_t hash)
{
    bool stays = item_list(it) == STORE_LIST_COLD || item_is(it, ITEM_ACTIVE);

    if (lru_policy(&s->lru) == STORE_LRU_S3FIFO && stays) {
        ghost_add(&s->lru.ghost, hash);
    }
}

/* ---- which one leaves next ------------------------------------------------------------ */

static enum action
judge_s3fifo(const struct item *it, const struct pull_rule *ask)
{
    switch (item_list(it)) {
    case STORE_LIST_HOT:
        if (ask->evicts && item_is(it, ITEM_ACTIVE)) {
            return ACTION_TO_COLD;
        }
        break;
    case STORE_LIST_COLD:
        if (ask->evicts && !ask->forces && item_is(it, ITEM_ACTIVE)) {
            return ACTION_AGAIN;
        }
        break;
    case STORE_LIST_WARM: /* of another policy */
        return ask->forces ? ACTION_TO_COLD : ACTION_KEEP;
    case STORE_LIST_TEMP:
    case STORE_LISTS:
        break;
    }
    return ask->evicts ? ACTION_EVICT : ACTION_KEEP;
}

/* What would leave stays its owner's: of HOT it goes on, as if it had been read. */
static enum action
pass_over(const struct store *s, enum store_list list, const struct pull_rule *ask)
{
    if (ask->caps || list == STORE_LIST_COLD) {
        return ACTION_PASS;
    }
    return list == STORE_LIST_HOT && lru_policy(&s->lru) == STORE_LRU_S3FIFO
               ? ACTION_TO_COLD
               : ACTION_KEEP;
}

enum action
policy_judge(const struct store *s, const struct item *it, const struct pull_rule *ask,
             unsigned kept, uint32_t now)
{
    const struct lru_class *c = &s->lru.classes[it->class_id];
    enum store_list list = item_list(it);
    bool is_active = ask->moves_active && item_is(it, ITEM_ACTIVE);

    if (is_dead(s, it, now)) {
        return ACTION_RECLAIM;
    }
    if (unlikely(kept >> it->owner & 1) && ask->evicts) {
        return pass_over(s, list, ask);
    }
    bool is_s3fifo = lru_policy(&s->lru) == STORE_LRU_S3FIFO;
    if (unlikely(ask->caps) &&
        (!is_s3fifo || list == STORE_LIST_WARM || list == STORE_LIST_TEMP)) {
        return ACTION_EVICT; /* nowhere has it more than its ceiling */
    }
    if (is_s3fifo && list != STORE_LIST_TEMP) {
        return judge_s3fifo(it, ask);
    }
    switch (list) {
    case STORE_LIST_HOT:
    case STORE_LIST_WARM:
        if (is_active) {
            return list == STORE_LIST_HOT ? ACTION_TO_WARM : ACTION_TO_HEAD;
        }
        return ask->forces ||
                       (ask->has_bounds && (c->lists[list].bytes > ask->bytes_max ||
                                            lru_idle(it, now) > ask->idle_max))
                   ? ACTION_TO_COLD
                   : ACTION_KEEP;
    case STORE_LIST_COLD:
        if (ask->evicts) {
            return ACTION_EVICT;
        }
        return is_active && c->lists[STORE_LIST_WARM].bytes <= ask->bytes_max
                   ? ACTION_TO_WARM
                   : ACTION_KEEP;
    case STORE_LIST_TEMP:
        return is_temporary(&s->lru, it, now) ? ACTION_KEEP : ACTION_TO_COLD;
    case STORE_LISTS:
        break;
    }
    return ACTION_KEEP;
}

/* Nothing in COLD can go: sends it something from the other lists, or at least removes what is
 * dead there. What is in TEMP and still about to expire is never evicted. */
static enum pull
refill_cold(struct store *s, unsigned class_id, uint32_t now)
{
    static const struct pull_rule dead_only,
        any_hot = {.moves_active = true, .forces = true}, any_warm = {.forces = true};
    bool may = s->conf.can_evict;
    enum pull pull;

    /* What is read often makes way to WARM, for the next one in HOT. */
    for (unsigned tries = 0; tries < LRU_TAIL_TRIES; tries++) {
        pull = lru_pull(s, class_id, STORE_LIST_HOT, may ? &any_hot : &dead_only, NULL,
                        LRU_TAIL_TRIES, now);
        if (pull != PULL_MOVED) {
            break;
        }
    }
    if (pull < PULL_COOLED) { /* there may be nothing else */
        pull = lru_pull(s, class_id, STORE_LIST_WARM, may ? &any_warm : &dead_only, NULL,
                        LRU_TAIL_TRIES, now);
    }
    if (pull < PULL_COOLED) {
        pull =
            lru_pull(s, class_id, STORE_LIST_TEMP, &dead_only, NULL, LRU_TAIL_TRIES, now);
    }
    return pull;
}

enum store_list
policy_pick(const struct lru *l, const struct lru_class *c)
{
    return is_hot_full(l, c) || c->lists[STORE_LIST_COLD].tail == NULL ? STORE_LIST_HOT
                                                                       : STORE_LIST_COLD;
}

/* Where all that has come round was read, one goes that was, too: the time that a set takes has a
 * bound. Last come lists that another policy has left, and what is dead in TEMP. */
static enum pull
make_room_s3fifo(struct store *s, unsigned class_id, unsigned attempt,
                 struct pull_bypass *bypass, uint32_t now)
{
    static const struct pull_rule tail = {.picks = true, .evicts = true, .goes_on = true},
                                  unread = {.evicts = true, .goes_on = true},
                                  any = {.evicts = true, .forces = true},
                                  drain = {.forces = true}, dead_only;
    static const struct {
        const struct pull_rule *ask;
        enum store_list list;
    } steps[] = {
        {&unread, STORE_LIST_COLD}, {&any, STORE_LIST_COLD},       {&any, STORE_LIST_HOT},
        {&drain, STORE_LIST_WARM},  {&dead_only, STORE_LIST_TEMP},
    };
    enum pull best = PULL_NOTHING;

    if (likely(s->conf.can_evict)) {
        best = lru_pull(s, class_id, STORE_LIST_HOT, &tail, bypass, S3FIFO_ROUNDS, now);
    }
    for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps) && best < PULL_RECLAIMED;
         i++) {
        const struct pull_rule *ask = s->conf.can_evict ? steps[i].ask : &dead_only;
        unsigned tries = ask->goes_on ? S3FIFO_ROUNDS : LRU_TAIL_TRIES * attempt;
        enum pull pull = lru_pull(s, class_id, steps[i].list, ask, bypass, tries, now);

        best = pull > best ? pull : best;
    }
    return best;
}

enum pull
policy_make_room(struct store *s, unsigned class_id, unsigned attempt,
                 struct pull_bypass *bypass, uint32_t now)
{
    struct pull_rule ask = {.evicts = s->conf.can_evict};
    enum pull pull, refill;

    bypass->owners = bypass->left > 0 ? shares_keep(s, class_id) : 0;
    if (lru_policy(&s->lru) == STORE_LRU_S3FIFO) {
        return make_room_s3fifo(s, class_id, attempt, bypass, now);
    }
    /* Deeper each time, in case a few busy items sit at the tail. */
    pull = lru_pull(s, class_id, STORE_LIST_COLD, &ask, bypass, LRU_TAIL_TRIES * attempt,
                    now);
    if (pull > PULL_BUSY) {
        return pull;
    }
    refill = refill_cold(s, class_id, now);
    return refill > pull ? refill : pull;
}

static uint32_t
tail_idle(struct store *s, unsigned class_id, uint32_t now)
{
    struct lru_class *c = &s->lru.classes[class_id];

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    const struct item *cold = c->lists[STORE_LIST_COLD].tail;
    uint32_t idle = lru_idle(cold != NULL ? cold : c->lists[STORE_LIST_HOT].tail, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    return idle;
}

/* Where the owner's next item is to go: where as much comes, or else where it has most beside that,
 * if what is there has not been read for longer. So what it has of other sizes leaves when none of
 * those are stored any more. */
static unsigned
cap_next(struct store *s, unsigned class_id, unsigned owner, unsigned n, uint32_t now)
{
    unsigned other = shares_largest(s, owner, class_id);
    bool is_older =
        other != class_id && tail_idle(s, other, now) > tail_idle(s, class_id, now);

    return is_older == (n == 0) ? other : class_id;
}

void
policy_cap(struct store *s, unsigned class_id, unsigned owner, uint32_t now)
{
    static const struct pull_rule own = {.evicts = true, .goes_on = true, .caps = true};
    static const enum store_list queues[] = {STORE_LIST_HOT, STORE_LIST_COLD,
                                             STORE_LIST_WARM, STORE_LIST_TEMP},
                                 by_age[] = {STORE_LIST_COLD, STORE_LIST_HOT,
                                             STORE_LIST_WARM, STORE_LIST_TEMP};
    const enum store_list *lists =
        lru_policy(&s->lru) == STORE_LRU_S3FIFO ? queues : by_age;
    struct pull_bypass others = {SHARES_EVERY & ~(1u << owner), LRU_PASSES};

    for (unsigned n = 0; n < CAP_EVICTIONS && others.left > 0 && shares_is_over(s, owner);
         n++) {
        unsigned id = cap_next(s, class_id, owner, n, now);
        for (unsigned i = 0; i < STORE_LISTS && others.left > 0; i++) {
            if (lru_pull(s, id, lists[i], &own, &others, S3FIFO_ROUNDS, now) >=
                PULL_RECLAIMED) {
                break;
            }
        }
    }
}

/* ---- maintenance ---------------------------------------------------------------------- */

/* When live items of HOT and WARM go to COLD, and those of COLD to WARM: not while that has its
 * share. Else a COLD that has been read through as a whole would change places with WARM, and
 * what WARM gave for it would lie behind the newest items, which then went first. Nor does a
 * tail that was read again show how long items last in COLD: then the shares alone count. */
static void
set_bounds(struct store *s, unsigned class_id, const struct store_lru_conf *conf,
           uint32_t now, struct pull_rule *hot, struct pull_rule *warm,
           struct pull_rule *cold)
{
    struct lru_class *c = &s->lru.classes[class_id];

    memset(hot, 0, sizeof(*hot));
    memset(warm, 0, sizeof(*warm));
    memset(cold, 0, sizeof(*cold));
    if (conf->policy != STORE_LRU_SEGMENTED) {
        hot->forces = conf->policy == STORE_LRU_FLAT;
        warm->forces = true;
        return;
    }
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    uint64_t bytes = c->lists[STORE_LIST_HOT].bytes + c->lists[STORE_LIST_WARM].bytes +
                     c->lists[STORE_LIST_COLD].bytes;
    const struct item *tail = c->lists[STORE_LIST_COLD].tail;
    double age =
        tail != NULL && item_is(tail, ITEM_ACTIVE) ? UINT32_MAX : lru_idle(tail, now);
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    *hot = (struct pull_rule){.moves_active = true,
                              .has_bounds = true,
                              .bytes_max = bytes * conf->hot_pct / PER_CENT,
                              .idle_max = age * conf->hot_factor};
    *warm = (struct pull_rule){.moves_active = true,
                               .has_bounds = true,
                               .bytes_max = bytes * conf->warm_pct / PER_CENT,
                               .idle_max = age * conf->warm_factor};
    *cold = (struct pull_rule){.moves_active = true, .bytes_max = warm->bytes_max};
}

/* The lock is given back after each entry: a request waits for one at most. */
static unsigned
pull_many(struct store *s, unsigned class_id, enum store_list list,
          const struct pull_rule *ask, unsigned moves, uint32_t now)
{
    unsigned moved = 0;

    while (moved < moves && lru_pull(s, class_id, list, ask, NULL, 1, now) > PULL_BUSY) {
        moved++;
    }
    return moved;
}

struct store_juggled
store_juggle(struct store *s, unsigned class_id, unsigned moves, uint32_t now)
{
    static const struct pull_rule dead_only;
    struct store_lru_conf conf = store_lru(s);
    struct pull_rule hot, warm, cold;
    struct store_juggled done;

    must(class_id >= 1 && class_id <= s->slab.class_count);
    set_bounds(s, class_id, &conf, now, &hot, &warm, &cold);
    done.settled = pull_many(s, class_id, STORE_LIST_TEMP, &dead_only, moves, now);
    done.settled += pull_many(s, class_id, STORE_LIST_HOT, &hot, moves, now);
    done.reordered = pull_many(s, class_id, STORE_LIST_WARM, &warm, moves, now);
    done.reordered += pull_many(s, class_id, STORE_LIST_COLD, &cold, moves, now);
    if (class_id == s->slab.class_count) {
        atomic_fetch_add_explicit(&s->lru.juggles, 1, memory_order_relaxed);
    }
    return done;
}
