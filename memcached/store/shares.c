/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/shares.h"

#include "store/core.h"

#define FIT_PERIOD 1024u /* evictions between two looks at how many items there are */
#define TENTH 10u
#define GHOST_BYTES_LEAST (64u * TENTH) /* a tenth of the items that there is room for */
#define KEPT_BITS 8 /* of lru_class.kept; above them: for how many more looks they hold */
#define KEPT_LOOKS 16u
#define KEPT_BYTES 16384u /* or so many bytes of chunks */
#define KEPT_OTHERS                                                                      \
    64u /* a part of a class that it would take too long to find others in */

void
shares_set(struct shares *sh, const struct store_shares *conf, struct mem *mem)
{
    unsigned capped = 0;

    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        const struct store_share *share = &conf->of[o];

        if (conf->is_on) {
            ghost_open(&sh->gone[o], mem,
                       atomic_load_explicit(&sh->limit_bytes, memory_order_relaxed) /
                           GHOST_BYTES_LEAST);
        }
        atomic_store_explicit(&sh->per_mille[o], share->per_mille, memory_order_relaxed);
        capped |= (unsigned)(conf->is_on && share->is_ceiling) << o;
    }
    atomic_store_explicit(&sh->capped, capped, memory_order_relaxed);
    atomic_store_explicit(&sh->is_on, conf->is_on, memory_order_relaxed);
}

void
shares_fini(struct shares *sh)
{
    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        ghost_close(&sh->gone[o]);
    }
}

void
store_set_shares(struct store *s, const struct store_shares *conf)
{
    struct lru *l = &s->lru;

    PTHREAD_OK(pthread_mutex_lock(&l->conf_lock));
    shares_set(&l->shares, conf, &s->mem);
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        atomic_store_explicit(&l->classes[i].kept, 0, memory_order_relaxed);
    }
    PTHREAD_OK(pthread_mutex_unlock(&l->conf_lock));
}

struct store_shares
store_shares(struct store *s)
{
    const struct shares *sh = &s->lru.shares;
    struct store_shares conf;

    PTHREAD_OK(pthread_mutex_lock(&s->lru.conf_lock));
    conf.is_on = shares_are_on(sh);
    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        conf.of[o] = (struct store_share){
            .per_mille = atomic_load_explicit(&sh->per_mille[o], memory_order_relaxed),
            .is_ceiling = shares_cap(sh, o)};
    }
    PTHREAD_OK(pthread_mutex_unlock(&s->lru.conf_lock));
    return conf;
}

static uint64_t
bytes_in(const struct lru_class *c, unsigned owner)
{
    return atomic_load_explicit(&c->uses[owner].bytes, memory_order_relaxed);
}

static uint64_t
sum_bytes(const struct lru *l, unsigned owner)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        sum += bytes_in(&l->classes[i], owner);
    }
    return sum;
}

static uint64_t
part_of(const struct shares *sh, unsigned owner, uint64_t all)
{
    return all * atomic_load_explicit(&sh->per_mille[owner], memory_order_relaxed) /
           STORE_SHARES_TOTAL;
}

/* ---- what is passed over -------------------------------------------------------------- */

/* The owners that have no more than what is reserved for them. */
static unsigned
find_kept(const struct lru *l)
{
    uint64_t bytes[STORE_OWNERS];
    uint64_t all = 0;
    unsigned kept = 0;

    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        bytes[o] = sum_bytes(l, o);
        all += bytes[o];
    }
    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        uint64_t reserved = part_of(&l->shares, o, all);

        kept |= (unsigned)(reserved > 0 && bytes[o] <= reserved) << o;
    }
    return kept;
}

/* Of the items in the class that are kept; *others: of the other ones. */
static uint64_t
sum_kept(const struct lru_class *c, unsigned kept, uint64_t *others)
{
    uint64_t sum = 0;

    *others = 0;
    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        *(kept >> o & 1 ? &sum : others) += bytes_in(c, o);
    }
    return sum;
}

/* Of two threads that look at the same moment, both may sum up. */
unsigned
shares_keep(struct store *s, unsigned class_id)
{
    struct lru_class *c = &s->lru.classes[class_id];

    if (likely(!shares_are_on(&s->lru.shares))) {
        return 0;
    }
    unsigned seen = atomic_load_explicit(&c->kept, memory_order_relaxed);
    if (seen >> KEPT_BITS == 0) {
        unsigned looks = KEPT_BYTES / s->slab.classes[class_id].chunk_size;
        unsigned kept = find_kept(&s->lru);
        uint64_t others;

        bool is_rare = sum_kept(c, kept, &others) >= others * KEPT_OTHERS;
        looks = looks < 1 ? 1 : looks > KEPT_LOOKS ? KEPT_LOOKS : looks;
        seen = looks << KEPT_BITS | (is_rare ? 0 : kept);
    }
    atomic_store_explicit(&c->kept, seen - (1u << KEPT_BITS), memory_order_relaxed);
    return seen & SHARES_EVERY;
}

bool
shares_keep_most(const struct store *s, unsigned class_id)
{
    uint64_t others;

    return shares_are_on(&s->lru.shares) &&
           sum_kept(&s->lru.classes[class_id], find_kept(&s->lru), &others) > others;
}

bool
shares_is_over(const struct store *s, unsigned owner)
{
    const struct shares *sh = &s->lru.shares;
    uint64_t limit = atomic_load_explicit(&sh->limit_bytes, memory_order_relaxed);

    return shares_cap(sh, owner) && sum_bytes(&s->lru, owner) > part_of(sh, owner, limit);
}

unsigned
shares_largest(const struct store *s, unsigned owner, unsigned but)
{
    uint64_t most = 0;
    unsigned largest = but;

    for (unsigned id = 1; id < STORE_CLASSES; id++) {
        uint64_t bytes = bytes_in(&s->lru.classes[id], owner);
        if (id != but && bytes > most) {
            most = bytes;
            largest = id;
        }
    }
    return largest;
}

/* ---- statistics ----------------------------------------------------------------------- */

static uint64_t
sum_items(const struct lru *l, unsigned owner)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        sum +=
            atomic_load_explicit(&l->classes[i].uses[owner].items, memory_order_relaxed);
    }
    return sum;
}

void
shares_note_eviction(struct lru *l, struct share_use *use, unsigned owner, uint64_t hash)
{
    if (shares_are_on(&l->shares)) {
        struct ghost *gone = &l->shares.gone[owner];

        if (use->evicted % FIT_PERIOD == 0) {
            ghost_fit(gone, sum_items(l, owner) / TENTH);
        }
        ghost_add(gone, hash);
    }
    use->evicted++;
}

void
store_owner_stats(struct store *s, unsigned owner, struct store_owner_stats *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        struct lru_class *c = &s->lru.classes[i];
        const struct share_use *use = &c->uses[owner];

        PTHREAD_OK(pthread_mutex_lock(&c->lock));
        out->bytes += atomic_load_explicit(&use->bytes, memory_order_relaxed);
        out->items += atomic_load_explicit(&use->items, memory_order_relaxed);
        out->evicted += use->evicted;
        out->would_hit += use->would_hit;
        PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    }
}
