/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The lists are followed from their tails, as they were left. Each chunk on the way is claimed
 * once: so a list that runs in a circle ends, and no two items share memory. What an item says
 * of itself is compared with the chunk that it lies in before anything else of it is read.
 */
#include "store/relink.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BITS 64u
#define LINE_END_BYTES 2u

/* In a flat LRU all end up in COLD, those that were used last at its head. */
static const enum store_list order[] = {
    STORE_LIST_COLD,
    STORE_LIST_TEMP,
    STORE_LIST_HOT,
    STORE_LIST_WARM,
};

_Static_assert(sizeof(order) / sizeof(*order) == STORE_LISTS, "every list");

/* ---- describing ------------------------------------------------------------------------- */

static void
describe_sizes(const struct store_conf *conf, char *text)
{
    size_t at = 0;

    if (conf->sizes == NULL) {
        snprintf(text, SNAPSHOT_CONFIG_BYTES, "%.17g", conf->growth_factor);
        return;
    }
    for (unsigned i = 0; i < conf->size_count && at < SNAPSHOT_CONFIG_BYTES; i++) {
        at += (size_t)snprintf(text + at, SNAPSHOT_CONFIG_BYTES - at, "%s%u",
                               i > 0 ? "-" : "", conf->sizes[i]);
    }
    must(at < SNAPSHOT_CONFIG_BYTES);
}

void
relink_describe_conf(const struct store_conf *conf, struct snapshot *snap)
{
    describe_sizes(conf, snap->slab_config);
    snap->maxbytes = conf->limit_bytes;
    snap->chunk_size = conf->min_space;
    snap->item_size_max = conf->item_max;
    snap->slab_chunk_size_max = conf->chunk_max;
    snap->slab_page_size = STORE_PAGE_BYTES;
    snap->use_cas = conf->use_cas;
    snap->counts_suffix = conf->inline_suffix;
    snap->slab_reassign = conf->can_reassign;
}

static uint32_t
page_number(const struct slab *sl, const void *page)
{
    return (uint32_t)(((const char *)page - (const char *)sl->pages.arena) /
                      STORE_PAGE_BYTES);
}

static bool
describe_pool(const struct slab *sl, struct snapshot *snap)
{
    for (void *page = sl->pages.pool; page != NULL; page = *(void **)page) {
        if (!snapshot_add_page(snap, 0, page_number(sl, page))) {
            return false;
        }
    }
    return true;
}

static bool
describe_class(const struct store *s, unsigned id, struct snapshot *snap)
{
    const struct slab_class *c = &s->slab.classes[id];
    struct snapshot_class *out = &snap->classes[id];

    out->cut_count = c->cut_count;
    out->fresh_count = c->fresh_count;
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        const struct lru_list *l = &s->lru.classes[id].lists[list];

        snap->items += l->number;
        if (l->tail != NULL) {
            out->tails[list] = (uint64_t)((char *)l->tail - (char *)s->slab.pages.arena);
        }
    }
    for (uint32_t i = 0; i < c->page_count; i++) {
        if (!snapshot_add_page(snap, id, page_number(&s->slab, c->pages[i]))) {
            return false;
        }
    }
    return true;
}

bool
relink_describe(const struct store *s, struct snapshot *snap)
{
    snap->current_cas = atomic_load_explicit(&s->cas, memory_order_relaxed);
    snap->hashpower = atomic_load_explicit(&s->table.power, memory_order_relaxed);
    snap->oldest_live = s->flush.latest;
    snap->flush_epoch = atomic_load_explicit(&s->flush.epoch, memory_order_relaxed);
    snap->flush_below = atomic_load_explicit(&s->flush.time_below, memory_order_relaxed);
    snap->flush_at = atomic_load_explicit(&s->flush.at, memory_order_relaxed);
    if (!describe_pool(&s->slab, snap)) {
        return false;
    }
    for (unsigned id = 1; id <= s->slab.class_count; id++) {
        if (!describe_class(s, id, snap)) {
            return false;
        }
    }
    snap->contents = relink_checksum(s, snap);
    return true;
}

/* ---- pages ------------------------------------------------------------------------------ */

/* Chunks of the class's i-th page that have been in use. */
static uint32_t
used_chunks(const struct slab *sl, const struct snapshot *snap, unsigned id, size_t i)
{
    const struct snapshot_class *c = &snap->classes[id];
    uint32_t all = sl->classes[id].chunks_per_page;

    if (i >= c->cut_count) {
        return 0;
    }
    return i + 1 == c->cut_count ? all - (uint32_t)c->fresh_count : all;
}

uint64_t
relink_checksum(const struct store *s, const struct snapshot *snap)
{
    uint64_t sum = 0;

    for (unsigned id = 1; id <= s->slab.class_count; id++) {
        const struct snapshot_class *c = &snap->classes[id];

        for (size_t i = 0; i < c->page_count; i++) {
            uint32_t page = snap->pages[c->first_page + i];
            size_t bytes = (size_t)used_chunks(&s->slab, snap, id, i) *
                           s->slab.classes[id].chunk_size;

            sum = XXH3_64bits_withSeed((const char *)s->slab.pages.arena +
                                           (size_t)page * STORE_PAGE_BYTES,
                                       bytes, sum);
        }
    }
    return sum;
}

static bool
is_class_good(const struct slab *sl, unsigned id, const struct snapshot_class *c)
{
    if (id > sl->class_count) {
        return c->page_count == 0;
    }
    return id == 0 || (c->cut_count <= c->page_count &&
                       c->fresh_count <= sl->classes[id].chunks_per_page &&
                       (c->cut_count > 0 || c->fresh_count == 0));
}

/* Pages leave the arena in turn and never come back to it: their numbers are all those below
 * how many they are. */
bool
relink_are_pages_good(const struct store *s, const struct snapshot *snap)
{
    uint64_t room = s->slab.pages.arena_left;
    bool is_good = snap->page_count <= room;
    uint8_t *seen = is_good ? calloc(snap->page_count + 1, 1) : NULL;

    if (seen == NULL) {
        return false;
    }
    for (unsigned id = 0; id < STORE_CLASSES; id++) {
        is_good &= is_class_good(&s->slab, id, &snap->classes[id]);
    }
    for (size_t i = 0; i < snap->page_count && is_good; i++) {
        is_good = snap->pages[i] < snap->page_count && !seen[snap->pages[i]];
        if (is_good) {
            seen[snap->pages[i]] = true;
        }
    }
    free(seen);
    return is_good;
}

/* ---- chunks ----------------------------------------------------------------------------- */

struct page {
    size_t bits; /* where the bits of its chunks begin */
    uint32_t chunks, chunk_size;
    uint8_t class_id;
};

struct relink {
    struct store *s;
    const struct snapshot *snap;
    char *base;
    struct page *pages;
    uint64_t *bits; /* of chunks that belong to an item */
    uint64_t items;
};

struct place {
    char *at; /* NULL: there is no chunk, or it is taken */
    const struct page *page;
};

/* The chunk at this offset, which may be claimed only once. */
static struct place
claim(struct relink *r, uint64_t offset)
{
    struct place place = {NULL, NULL};
    uint64_t number = offset / STORE_PAGE_BYTES;
    uint64_t within = offset % STORE_PAGE_BYTES;

    if (number >= r->snap->page_count) {
        return place;
    }
    const struct page *page = &r->pages[number];
    if (page->chunks == 0 || within % page->chunk_size != 0 ||
        within / page->chunk_size >= page->chunks) {
        return place;
    }
    uint64_t chunk = page->bits + within / page->chunk_size;
    uint64_t *word = &r->bits[chunk / BITS];
    if ((*word >> chunk % BITS & 1) != 0) {
        return place;
    }
    *word |= UINT64_C(1) << chunk % BITS;
    return (struct place){r->base + offset, page};
}

/* Of a pointer that the last process left. */
static uint64_t
offset_of(const struct relink *r, const void *p)
{
    return (uint64_t)(uintptr_t)p - r->snap->mmap_oldbase;
}

static void
count_used(struct relink *r, unsigned class_id, uint32_t bytes)
{
    r->s->slab.classes[class_id].requested_bytes += bytes;
}

/* ---- one item --------------------------------------------------------------------------- */

/* The header, which lies in a chunk in any case, and the key. */
static bool
is_header_good(const struct relink *r, const struct item *it, unsigned class_id,
               enum store_list list)
{
    const unsigned may = ITEM_CHAINED | ITEM_BINARY_KEY | ITEM_SIZED;
    const unsigned must_be = ITEM_KNOWN | (r->s->conf.use_cas ? ITEM_HAS_CAS : 0);

    return (it->layout & ~may) == must_be && item_is(it, ITEM_LINKED) &&
           item_list(it) == list && it->class_id == class_id && it->key_len >= 1 &&
           it->key_len <= STORE_KEY_MAX;
}

static bool
is_plain_good(const struct relink *r, const struct place *place, const struct item *it)
{
    uint64_t total = item_total_of(&r->s->conf, it);

    return total <= r->s->slab.chunk_max && it->class_id == place->page->class_id &&
           total <= place->page->chunk_size;
}

/* Where the chunks of a chained item begin; behind the key, in the head's chunk. NULL: it is
 * not like that. */
static struct chunk *
first_chunk_of(const struct relink *r, const struct place *place, struct item *it)
{
    const struct slab *sl = &r->s->slab;
    uint64_t total = item_total_of(&r->s->conf, it);
    uint32_t head = item_head_bytes(&r->s->conf, it);

    if (total <= sl->chunk_max || total > r->s->conf.item_max ||
        it->class_id != sl->class_count || head > place->page->chunk_size) {
        return NULL;
    }
    struct chunk *first = (struct chunk *)(void *)((char *)it + head) - 1;
    return first->class_id == place->page->class_id ? first : NULL;
}

static bool
is_chunk_good(const struct chunk *ch, const struct place *place, uint64_t left)
{
    return ch->layout == (ITEM_CHUNK | ITEM_KNOWN) &&
           ch->class_id == place->page->class_id &&
           ch->size == place->page->chunk_size - sizeof(*ch) && ch->used > 0 &&
           ch->used <= ch->size && ch->used <= left;
}

/* Claims the chunks that hold the value, in turn, and points them at each other again. */
static bool
relink_chunks(struct relink *r, struct item *it, struct chunk *first)
{
    uint64_t left = (uint64_t)it->value_len + LINE_END_BYTES;
    struct chunk *prev = first;

    first->prev = NULL;
    first->owner = it;
    first->cursor = NULL;
    while (left > 0) {
        struct place place = claim(r, offset_of(r, prev->next));
        struct chunk *ch = (struct chunk *)(void *)place.at;

        if (ch == NULL || !is_chunk_good(ch, &place, left)) {
            return false;
        }
        prev->next = ch;
        ch->prev = prev;
        ch->owner = it;
        ch->cursor = NULL;
        count_used(r, ch->class_id, item_chunk_bytes(ch));
        left -= ch->used;
        prev = ch;
    }
    return prev->next == NULL;
}

static bool
relink_item(struct relink *r, const struct place *place, unsigned class_id,
            enum store_list list, uint32_t now)
{
    struct store *s = r->s;
    struct item *it = (struct item *)(void *)place->at;
    struct chunk *first = NULL;

    if (!is_header_good(r, it, class_id, list)) {
        return false;
    }
    if ((it->layout & ITEM_CHAINED) == 0
            ? !is_plain_good(r, place, it)
            : (first = first_chunk_of(r, place, it)) == NULL) {
        return false;
    }
    if (first != NULL && !relink_chunks(r, it, first)) {
        return false;
    }
    count_used(r, place->page->class_id, item_head_bytes(&s->conf, it));
    uint64_t hash = hash_of(s, item_key_of(it));
    if (!item_is_terminated(it) || table_find(&s->table, item_key_of(it), hash) != NULL) {
        return false;
    }
    atomic_store_explicit(&it->refs, 1, memory_order_relaxed);
    item_set_layout(it, it->layout & ~ITEM_SIZED);
    if (item_time(it) > now) {
        item_set_time(it, now);
    }
    lru_relink(s, it, lru_policy(&s->lru) == STORE_LRU_FLAT ? STORE_LIST_COLD : list);
    table_insert(&s->table, it, hash);
    r->items++;
    return true;
}

static bool
relink_list(struct relink *r, unsigned class_id, enum store_list list, uint32_t now)
{
    uint64_t offset = r->snap->classes[class_id].tails[list];

    while (offset != SNAPSHOT_NOWHERE) {
        struct place place = claim(r, offset);

        if (place.at == NULL) {
            return false;
        }
        const struct item *prev = ((struct item *)(void *)place.at)->prev;
        if (!relink_item(r, &place, class_id, list, now)) {
            return false;
        }
        offset = prev != NULL ? offset_of(r, prev) : SNAPSHOT_NOWHERE;
    }
    return true;
}

/* ---- all of it -------------------------------------------------------------------------- */

/* Hands the pages out as they were. False: no memory. */
static bool
place_pages(struct relink *r)
{
    struct slab *sl = &r->s->slab;
    size_t bits = 0;

    for (unsigned id = 0; id <= sl->class_count; id++) {
        const struct snapshot_class *c = &r->snap->classes[id];

        for (size_t i = 0; i < c->page_count; i++) {
            uint32_t number = r->snap->pages[c->first_page + i];
            struct page *page = &r->pages[number];

            if (!slab_adopt_page(sl, id, number)) {
                return false;
            }
            page->class_id = (uint8_t)id;
            page->chunks = id != 0 ? used_chunks(sl, r->snap, id, i) : 0;
            page->chunk_size = sl->classes[id].chunk_size;
            page->bits = bits;
            bits += page->chunks;
        }
        if (id != 0) {
            slab_adopt_cut(sl, id, (uint32_t)c->cut_count, (uint32_t)c->fresh_count);
        }
    }
    r->bits = calloc(bits / BITS + 1, sizeof(*r->bits));
    return r->bits != NULL;
}

/* What no item has claimed, so that the lowest chunk is the first to be taken. */
static void
free_the_rest(struct relink *r)
{
    for (size_t n = r->snap->page_count; n > 0; n--) {
        const struct page *page = &r->pages[n - 1];

        for (uint32_t i = page->chunks; i > 0; i--) {
            size_t chunk = page->bits + i - 1;

            if ((r->bits[chunk / BITS] >> chunk % BITS & 1) == 0) {
                slab_give(&r->s->slab, page->class_id,
                          r->base + (n - 1) * STORE_PAGE_BYTES +
                              (size_t)(i - 1) * page->chunk_size,
                          0);
            }
        }
    }
}

static void
restore_counters(struct store *s, const struct snapshot *snap)
{
    struct flush *f = &s->flush;

    atomic_store_explicit(&s->cas, snap->current_cas, memory_order_relaxed);
    f->latest = (uint32_t)snap->oldest_live;
    atomic_store_explicit(&f->epoch, (uint16_t)snap->flush_epoch, memory_order_relaxed);
    atomic_store_explicit(&f->time_below, snap->flush_below, memory_order_relaxed);
    atomic_store_explicit(&f->at, (uint32_t)snap->flush_at, memory_order_relaxed);
}

static void
drop_dead(struct store *s, uint32_t now)
{
    for (unsigned i = 0; i < STORE_CLASSES * STORE_LISTS; i++) {
        struct item *it = s->lru.classes[i / STORE_LISTS].lists[i % STORE_LISTS].head;

        while (it != NULL) {
            struct item *next = it->next;

            if (is_flushed(s, it, now) || is_expired(it, now)) {
                core_drop(s, it, hash_of(s, item_key_of(it)));
            }
            it = next;
        }
    }
}

static const char *
relink_all(struct relink *r, uint32_t now)
{
    if (r->pages == NULL || !place_pages(r)) {
        return "no memory to put the items back";
    }
    for (unsigned id = 1; id <= r->s->slab.class_count; id++) {
        for (unsigned i = 0; i < STORE_LISTS; i++) {
            if (!relink_list(r, id, order[i], now)) {
                return "an item is damaged";
            }
        }
    }
    if (r->items != r->snap->items) {
        return "items are missing";
    }
    free_the_rest(r);
    restore_counters(r->s, r->snap);
    drop_dead(r->s, now);
    return NULL;
}

const char *
relink_items(struct store *s, const struct snapshot *snap, uint32_t now)
{
    struct relink r = {.s = s, .snap = snap, .base = s->slab.pages.arena};

    r.pages = calloc(snap->page_count + 1, sizeof(*r.pages));
    const char *wrong = relink_all(&r, now);
    free(r.pages);
    free(r.bits);
    return wrong;
}
