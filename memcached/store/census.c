/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/census.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/parallel.h"
#include "store/memfile.h"

#define BITS 64u
#define NOWHERE UINT64_MAX
#define INSERTS_AHEAD 16u
#define BUCKETS_AT_ONCE 4096u
#define BUCKETS_AHEAD 16u
#define WALKS_AT_ONCE 16u
#define REFS_SHIFT                                                                       \
    48u /* of a hash, for the bits that refs has until its bucket is good */

_Static_assert(BUCKETS_AT_ONCE <= 1u << TABLE_POWER_MIN, "of any table");

struct page {
    size_t bits; /* where those of its chunks begin */
    uint32_t chunks, chunk_size;
    uint8_t class_id;
};

/* A part of a list, from an item towards the head. */
struct stretch {
    struct item *first;
    struct item *last;
    struct item *end; /* behind that: the first of its page; NULL: none */
    uint64_t items;
};

struct list_findings {
    struct item *tail;
    uint64_t items, bytes;
};

struct owned {
    uint64_t items, bytes;
};

struct insert {
    struct item *it; /* NULL: none */
    uint64_t hash;
};

/* What one thread has found. */
struct findings {
    uint64_t items, sum;
    uint64_t requested[STORE_CLASSES];
    struct list_findings lists[STORE_CLASSES][STORE_LISTS];
    struct owned owned[STORE_CLASSES][STORE_OWNERS];
    struct insert
        inserts[INSERTS_AHEAD]; /* whose buckets are on their way to the cache */
    unsigned insert_at;
};

struct census {
    struct store *s;
    bool restores;
    uint32_t now;
    char *base;
    uintptr_t mask;
    size_t page_count;
    struct page *pages; /* by number */
    /* Bits of chunks; relaxed: a thread learns from its own write whether it came second. */
    _Atomic uint64_t *used, *unsettled;
    struct stretch
        *stretches; /* by page of the first item; then those that begin at a tail */
    unsigned size;  /* threads */
    struct findings *findings;
};

/* ---- life ------------------------------------------------------------------------------- */

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

/* How many chunks there are. */
static size_t
list_pages(struct census *c, const struct snapshot *snap)
{
    const struct slab *sl = &c->s->slab;
    size_t bits = 0;

    for (unsigned id = 1; id <= sl->class_count; id++) {
        const struct snapshot_class *class = &snap->classes[id];

        for (size_t i = 0; i < class->page_count; i++) {
            struct page page = {.bits = bits,
                                .chunks = used_chunks(sl, snap, id, i),
                                .chunk_size = sl->classes[id].chunk_size,
                                .class_id = (uint8_t)id};

            c->pages[snap->pages[class->first_page + i]] = page;
            bits += page.chunks;
        }
    }
    return bits;
}

static size_t
stretch_count(const struct census *c)
{
    return c->page_count + (size_t)STORE_CLASSES * STORE_LISTS;
}

struct census *
census_open(struct store *s, const struct snapshot *snap, bool restores, uint32_t now)
{
    struct census *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return NULL;
    }
    c->s = s;
    c->restores = restores;
    c->now = now;
    c->base = s->slab.pages.arena;
    c->mask = memfile_offset_mask(s->conf.limit_bytes);
    must(((uintptr_t)c->base & c->mask) == 0);
    c->page_count = snap->page_count;
    c->size = parallel_size(s->conf.threads, c->page_count);
    c->pages = calloc(c->page_count + 1, sizeof(*c->pages));
    c->stretches = calloc(stretch_count(c), sizeof(*c->stretches));
    c->findings = calloc(c->size, sizeof(*c->findings));
    if (c->pages != NULL && c->stretches != NULL && c->findings != NULL) {
        size_t words = list_pages(c, snap) / BITS + 1;

        c->used = calloc(words, sizeof(*c->used));
        c->unsettled = calloc(words, sizeof(*c->unsettled));
    }
    if (c->used == NULL || c->unsettled == NULL) {
        census_close(&c);
    }
    return c;
}

void
census_close(struct census **cp)
{
    struct census *c = *cp;

    if (c == NULL) {
        return;
    }
    *cp = NULL;
    free(c->pages);
    free(c->stretches);
    free(c->findings);
    free(c->used);
    free(c->unsettled);
    free(c);
}

/* ---- chunks ----------------------------------------------------------------------------- */

struct place {
    void *at; /* NULL: there is no chunk */
    const struct page *page;
    size_t bit;
};

static uint64_t
offset_of(const struct census *c, const void *link)
{
    return link != NULL ? (uintptr_t)link & c->mask : NOWHERE;
}

static struct place
place_at(const struct census *c, uint64_t offset)
{
    uint64_t number = offset / STORE_PAGE_BYTES;

    if (number < c->page_count && c->pages[number].chunks > 0) {
        const struct page *page = &c->pages[number];
        uint32_t within = offset % STORE_PAGE_BYTES;
        uint32_t chunk = within / page->chunk_size;

        if (chunk < page->chunks && within == chunk * page->chunk_size) {
            return (struct place){c->base + offset, page, page->bits + chunk};
        }
    }
    return (struct place){NULL, NULL, 0};
}

/* What an address leads to that some process left. */
static struct place
place_of(const struct census *c, const void *address)
{
    return place_at(c, offset_of(c, address));
}

static struct place
place_of_link(const struct census *c, uint32_t link)
{
    const struct link_range *range = &c->s->table.range;

    return place_at(c, link != 0 ? (uint64_t)(link - 1) << range->shift : NOWHERE);
}

static bool
is_set(const _Atomic uint64_t *bits, size_t bit)
{
    return (atomic_load_explicit(&bits[bit / BITS], memory_order_relaxed) >> bit % BITS &
            1) != 0;
}

/* False: it was. */
static bool
set(_Atomic uint64_t *bits, size_t bit)
{
    uint64_t mask = UINT64_C(1) << bit % BITS;

    return (atomic_fetch_or_explicit(&bits[bit / BITS], mask, memory_order_relaxed) &
            mask) == 0;
}

void
census_each(struct census *c, enum census_kind kind, census_fn *fn)
{
    const _Atomic uint64_t *bits = kind == CENSUS_FREE ? c->used : c->unsettled;

    for (size_t n = c->page_count; n > 0; n--) {
        const struct page *page = &c->pages[n - 1];
        char *at = c->base + (n - 1) * STORE_PAGE_BYTES;

        for (uint32_t i = page->chunks; i > 0; i--) {
            if (is_set(bits, page->bits + i - 1) == (kind == CENSUS_UNSETTLED)) {
                fn(c->s, c->now, page->class_id, at + (size_t)(i - 1) * page->chunk_size);
            }
        }
    }
}

/* ---- one item --------------------------------------------------------------------------- */

/* In table and list. */
static bool
is_linked(const struct item *it)
{
    const unsigned kind = ITEM_CHUNK | ITEM_FREE | ITEM_KNOWN | ITEM_OUT;

    return (it->layout & kind) == ITEM_KNOWN && item_is(it, ITEM_LINKED);
}

/* The header, which lies in a chunk in any case, and the length of the key. */
static bool
is_header_good(const struct census *c, const struct item *it)
{
    const unsigned may = ITEM_CHAINED | ITEM_BINARY_KEY | ITEM_SIZED;
    const unsigned must_be = ITEM_KNOWN | (c->s->conf.use_cas ? ITEM_HAS_CAS : 0);

    return (it->layout & ~may) == must_be && it->key_len >= 1 &&
           it->key_len <= STORE_KEY_MAX;
}

/* They lie in the chunk, and are there if and only if they are not 0. */
static bool
are_flags_good(const struct place *place, const struct item *it)
{
    return !it->has_flags || (item_flags_at(it) + ITEM_FLAGS <= place->page->chunk_size &&
                              item_client_flags(it, it) != 0);
}

static bool
is_plain_good(const struct census *c, const struct place *place, const struct item *it)
{
    uint64_t total = item_total_of(&c->s->conf, it);

    return total <= c->s->slab.chunk_max && it->class_id == place->page->class_id &&
           total <= place->page->chunk_size;
}

/* Where the chunks of a chained item begin; behind the key, in the head's chunk. NULL: it is
 * not like that. */
static struct chunk *
first_chunk_of(const struct census *c, const struct place *place, struct item *it)
{
    const struct slab *sl = &c->s->slab;
    uint64_t total = item_total_of(&c->s->conf, it);
    uint32_t head = item_head_bytes(&c->s->conf, it);

    if (total <= sl->chunk_max || total > c->s->conf.item_max ||
        it->class_id != sl->class_count || head > place->page->chunk_size) {
        return NULL;
    }
    struct chunk *first = item_first_chunk(it);
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

static bool
is_line_end(const char *p)
{
    return p[0] == '\r' && p[1] == '\n';
}

/* Claims the chunks that hold the value, in turn, and points them at each other again. */
static bool
visit_chunks(struct census *c, struct findings *t, struct item *it, struct chunk *first,
             uint64_t *sum)
{
    uint64_t left = (uint64_t)it->value_len + ITEM_LINE_END;
    char end[ITEM_LINE_END] = {0};
    struct chunk *prev = NULL;
    struct chunk *ch = first;

    while (true) {
        struct place place = place_of(c, ch->next);

        if (c->restores) {
            ch->prev = prev;
            ch->next = place.at;
            ch->owner = it;
            ch->cursor = NULL;
        }
        if (left == 0 || place.at == NULL) {
            return left == 0 && ch->next == NULL && is_line_end(end);
        }
        prev = ch;
        ch = place.at;
        if (!is_chunk_good(ch, &place, left) || !set(c->used, place.bit)) {
            return false;
        }
        t->requested[ch->class_id] += item_chunk_bytes(ch);
        left -= ch->used;
        *sum = XXH3_64bits_withSeed(ch + 1, ch->used, *sum + offset_of(c, ch));
        const char *last = (const char *)(ch + 1) + ch->used - 1;
        end[0] = ch->used > 1 ? last[-1] : end[1];
        end[1] = *last;
    }
}

/* What is to be the same in any process. */
struct essence {
    uint64_t body; /* checksum of CAS number, key and value */
    uint32_t next, prev, time, exptime, value_len, flags;
    uint16_t epoch, owner;
    uint8_t layout, marks, class_id, key_len;
};

_Static_assert(sizeof(struct essence) == sizeof(uint64_t) + 8 * sizeof(uint32_t),
               "no byte that is not set");

static uint64_t
sum_of(const struct census *c, const struct item *it, uint64_t body)
{
    struct essence e = {.body = body,
                        .next = it->next,
                        .prev = it->prev,
                        .time = item_time(it),
                        .exptime = item_exptime(it),
                        .value_len = it->value_len,
                        .flags = item_client_flags(it, it),
                        .epoch = it->epoch,
                        .owner = it->owner,
                        .layout = (uint8_t)(it->layout & ~ITEM_SIZED),
                        .marks = (uint8_t)item_marks(it),
                        .class_id = it->class_id,
                        .key_len = it->key_len};

    return XXH3_64bits_withSeed(&e, sizeof(e), offset_of(c, it));
}

/* The bucket has to be read and written: while it comes the next items are looked at. */
static void
insert_later(struct census *c, struct findings *t, struct item *it, uint64_t hash)
{
    struct insert *at = &t->inserts[t->insert_at++ % INSERTS_AHEAD];

    if (at->it != NULL) {
        table_adopt(&c->s->table, at->it, at->hash);
    }
    *at = (struct insert){it, hash};
    if (it != NULL) {
        __builtin_prefetch(table_bucket(&c->s->table, hash), 1);
    }
}

/* Only what another census does not miss is written. */
static void
put_back(struct census *c, struct findings *t, const struct place *place)
{
    struct store *s = c->s;
    struct item *it = place->at;
    uint64_t total = item_total_of(&s->conf, it);
    uint64_t hash = hash_of(s, item_key_of(it));
    struct list_findings *list = &t->lists[it->class_id][item_list_of(it)];
    struct owned *owned = &t->owned[it->class_id][it->owner];

    list->tail = it->next == 0 ? it : list->tail;
    list->items++;
    list->bytes += total;
    owned->items++;
    owned->bytes += total;
    if (is_flushed(s, it, c->now) || is_expired(it, c->now) || item_time(it) > c->now) {
        (void)set(c->unsettled, place->bit);
    }
    atomic_store_explicit(&it->refs, (uint16_t)(hash >> REFS_SHIFT),
                          memory_order_relaxed);
    item_set_layout(it, it->layout & (uint8_t)~ITEM_SIZED);
    sizes_add(&s->sizes, it, total);
    insert_later(c, t, it, hash);
}

static bool
visit_item(struct census *c, struct findings *t, const struct place *place)
{
    struct item *it = place->at;
    size_t head = item_key_at(it) - sizeof(*it) + it->key_len;
    uint64_t body;

    if (!is_header_good(c, it) || !are_flags_good(place, it) ||
        (it->prev != 0 && place_of_link(c, it->prev).at == NULL)) {
        return false;
    }
    if ((it->layout & ITEM_CHAINED) == 0) {
        if (!is_plain_good(c, place, it)) {
            return false;
        }
        const char *value = (const char *)(it + 1) + head;
        if (!is_line_end(value + it->value_len)) {
            return false;
        }
        body = XXH3_64bits(it + 1, head + it->value_len + ITEM_LINE_END);
    } else {
        struct chunk *first = first_chunk_of(c, place, it);

        if (first == NULL) {
            return false;
        }
        body = XXH3_64bits(it + 1, head);
        if (!visit_chunks(c, t, it, first, &body)) {
            return false;
        }
    }
    if (!set(c->used, place->bit)) {
        return false;
    }
    t->items++;
    t->sum += sum_of(c, it, body);
    t->requested[place->page->class_id] += item_head_bytes(&c->s->conf, it);
    if (c->restores) {
        put_back(c, t, place);
    }
    return true;
}

/* ---- pages ------------------------------------------------------------------------------ */

static bool
visit_page(void *ctx, unsigned thread, size_t number)
{
    struct census *c = ctx;
    struct findings *t = &c->findings[thread];
    const struct page *page = &c->pages[number];
    char *at = c->base + number * STORE_PAGE_BYTES;

    for (uint32_t i = 0; i < page->chunks; i++, at += page->chunk_size) {
        struct place place = {at, page, page->bits + i};
        struct item *it = place.at;

        if (is_linked(it)) {
            if (!visit_item(c, t, &place)) {
                return false;
            }
            if (c->stretches[number].first == NULL) {
                c->stretches[number].first = it;
            }
        }
    }
    for (unsigned i = 0; i < INSERTS_AHEAD; i++) {
        insert_later(c, t, NULL, 0);
    }
    return true;
}

bool
census_count(struct census *c, uint64_t *items, uint64_t *sum)
{
    *items = 0;
    *sum = 0;
    if (!parallel_run(c->size, c->page_count, visit_page, c)) {
        return false;
    }
    for (unsigned i = 0; i < c->size; i++) {
        *items += c->findings[i].items;
        *sum += c->findings[i].sum;
    }
    return true;
}

/* ---- buckets ---------------------------------------------------------------------------- */

/* With the same bits of the hash in refs. */
static bool
is_same_key(const struct item *a, const struct item *b)
{
    return item_refs(a) == item_refs(b) && a->key_len == b->key_len &&
           memcmp(item_key_slot(a), item_key_slot(b), a->key_len) == 0;
}

static bool
check_bucket(const struct link_range *r, struct item *first)
{
    for (struct item *a = first; a != NULL; a = link_item(r, a->h_next)) {
        for (const struct item *b = link_item(r, a->h_next); b != NULL;
             b = link_item(r, b->h_next)) {
            if (is_same_key(a, b)) {
                return false;
            }
        }
        atomic_store_explicit(&a->refs, 1, memory_order_relaxed);
    }
    return true;
}

/* Asks for the first item of a bucket, and halfway there for its second one. */
static void
fetch_ahead(const struct table *t, uint64_t i, uint64_t end)
{
    if (i + BUCKETS_AHEAD < end) {
        __builtin_prefetch(table_first(t, i + BUCKETS_AHEAD));
    }
    if (i + BUCKETS_AHEAD / 2 < end) {
        const struct item *it = table_first(t, i + BUCKETS_AHEAD / 2);

        __builtin_prefetch(it != NULL ? link_item(&t->range, it->h_next) : NULL);
    }
}

static bool
check_buckets(void *ctx, unsigned thread, size_t n)
{
    const struct table *t = &((const struct census *)ctx)->s->table;
    uint64_t begin = (uint64_t)n * BUCKETS_AT_ONCE;
    uint64_t end = begin + BUCKETS_AT_ONCE;

    (void)thread;
    for (uint64_t i = begin; i < end; i++) {
        fetch_ahead(t, i, end);
        if (!check_bucket(&t->range, table_first(t, i))) {
            return false;
        }
    }
    return true;
}

/* ---- lists ------------------------------------------------------------------------------ */

enum step {
    STEP_ON,
    STEP_END, /* of the list, or another stretch begins there */
    STEP_WRONG,
};

/* One item further, which has been asked for; then asks for the next one. WRONG: the way back leads
 * elsewhere. As it never does, no way meets itself. */
static enum step
go_on(const struct census *c, struct stretch *w)
{
    const struct item *from = w->last;
    const struct link_range *range = &c->s->table.range;
    struct item *it = link_item(range, from->prev);

    if (it == NULL) {
        return STEP_END;
    }
    if (!is_linked(it) || link_item(range, it->next) != from ||
        it->class_id != from->class_id || item_list_of(it) != item_list_of(from)) {
        return STEP_WRONG;
    }
    if (c->stretches[offset_of(c, it) / STORE_PAGE_BYTES].first == it) {
        w->end = it;
        return STEP_END;
    }
    __builtin_prefetch(link_item(range, it->prev));
    w->last = it;
    w->items++;
    return STEP_ON;
}

static bool
walk(void *ctx, unsigned thread, size_t n)
{
    struct census *c = ctx;
    struct stretch *some[WALKS_AT_ONCE];
    size_t begin = n * WALKS_AT_ONCE;
    unsigned count = 0;

    (void)thread;
    for (size_t i = begin; i < begin + WALKS_AT_ONCE && i < stretch_count(c); i++) {
        if (c->stretches[i].first != NULL) {
            some[count++] = &c->stretches[i];
        }
    }
    while (count > 0) {
        for (unsigned i = count; i > 0; i--) {
            enum step step = go_on(c, some[i - 1]);

            if (step == STEP_WRONG) {
                return false;
            }
            if (step == STEP_END) {
                some[i - 1] = some[--count];
            }
        }
    }
    return true;
}

/* The sum of what all threads have found. */
static void
add_up(struct census *c)
{
    for (unsigned i = 1; i < c->size; i++) {
        for (unsigned id = 1; id < STORE_CLASSES; id++) {
            c->findings[0].requested[id] += c->findings[i].requested[id];
            for (unsigned n = 0; n < STORE_LISTS; n++) {
                struct list_findings *to = &c->findings[0].lists[id][n];
                const struct list_findings *from = &c->findings[i].lists[id][n];

                to->tail = to->tail != NULL ? to->tail : from->tail;
                to->items += from->items;
                to->bytes += from->bytes;
            }
            for (unsigned n = 0; n < STORE_OWNERS; n++) {
                c->findings[0].owned[id][n].items += c->findings[i].owned[id][n].items;
                c->findings[0].owned[id][n].bytes += c->findings[i].owned[id][n].bytes;
            }
        }
    }
}

/* Stretch by stretch. False: not all its items are on this way, as from one of two tails. */
static bool
join(const struct census *c, unsigned class_id, enum store_list list)
{
    const struct list_findings *t = &c->findings[0].lists[class_id][list];
    const struct stretch *w =
        &c->stretches[c->page_count + (size_t)class_id * STORE_LISTS + list];
    uint64_t items = w->items;

    if (t->items == 0) {
        return true;
    }
    while (w->end != NULL) {
        w = &c->stretches[offset_of(c, w->end) / STORE_PAGE_BYTES];
        items += w->items;
    }
    if (items != t->items) {
        return false;
    }
    lru_adopt(c->s, class_id, list, w->last, t->tail, t->items, t->bytes);
    return true;
}

static void
begin_stretches(struct census *c)
{
    for (unsigned i = 0; i < STORE_CLASSES * STORE_LISTS; i++) {
        c->stretches[c->page_count + i].first =
            c->findings[0].lists[i / STORE_LISTS][i % STORE_LISTS].tail;
    }
    for (size_t i = 0; i < stretch_count(c); i++) {
        c->stretches[i].last = c->stretches[i].first;
        c->stretches[i].items = c->stretches[i].first != NULL;
    }
}

bool
census_link(struct census *c)
{
    size_t buckets = (size_t)(table_buckets(&c->s->table) / BUCKETS_AT_ONCE);
    size_t walks = stretch_count(c) / WALKS_AT_ONCE;

    add_up(c);
    if (!parallel_run(c->size, buckets, check_buckets, c)) {
        return false;
    }
    begin_stretches(c);
    if (!parallel_run(c->size, walks + 1, walk, c)) {
        return false;
    }
    for (unsigned id = 1; id <= c->s->slab.class_count; id++) {
        c->s->slab.classes[id].requested_bytes += c->findings[0].requested[id];
        for (unsigned n = 0; n < STORE_OWNERS; n++) {
            const struct owned *owned = &c->findings[0].owned[id][n];

            shares_add(&c->s->lru.classes[id].uses[n], owned->bytes, owned->items);
        }
        for (unsigned list = 0; list < STORE_LISTS; list++) {
            if (!join(c, id, list)) {
                return false;
            }
        }
    }
    return true;
}
