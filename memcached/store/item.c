/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/item.h"

#include "store/core.h"

#define NUMBER_BASE 10

static unsigned
count_digits(uint32_t n)
{
    unsigned digits = 1;

    for (uint64_t bound = NUMBER_BASE; n >= bound; bound *= NUMBER_BASE) {
        digits++;
    }
    return digits;
}

/* Length of " <flags> <bytes>\r\n", though it is written when the item is read. */
static unsigned
suffix_bytes(const struct store_conf *conf, uint32_t flags, uint32_t value_len)
{
    if (conf->inline_suffix) {
        return 1 + count_digits(flags) + 1 + count_digits(value_len) + ITEM_LINE_END;
    }
    return flags != 0 ? ITEM_FLAGS : 0;
}

/* Header and key, as they are charged for. */
static size_t
key_end(const struct store_conf *conf, size_t key_len)
{
    return (conf->is_lean ? sizeof(struct item) : STORE_ITEM_HEADER + 1) +
           (conf->use_cas ? sizeof(uint64_t) : 0) + key_len;
}

uint64_t
item_total(const struct store_conf *conf, size_t key_len, uint32_t flags,
           uint32_t value_len)
{
    return key_end(conf, key_len) + suffix_bytes(conf, flags, value_len) +
           (uint64_t)value_len + ITEM_LINE_END;
}

uint64_t
item_total_of(const struct store_conf *conf, const struct item *it)
{
    return item_total(conf, it->key_len, item_client_flags(it, it), it->value_len);
}

static size_t
align(size_t offset)
{
    return (offset + _Alignof(struct chunk) - 1) & ~(_Alignof(struct chunk) - 1);
}

/* Of a chained item. */
static uint32_t
head_bytes(const struct store_conf *conf, size_t key_len)
{
    size_t end = key_end(conf, key_len) + (conf->is_lean ? ITEM_FLAGS : 0);

    return (uint32_t)(align(end) + sizeof(struct chunk));
}

struct chunk *
item_first_chunk(const struct item *it)
{
    return (struct chunk *)((uintptr_t)it +
                            align(item_key_at(it) + it->key_len + ITEM_FLAGS));
}

static char *
chunk_data(struct chunk *ch)
{
    return (char *)(ch + 1);
}

static char *
plain_value(const struct item *it)
{
    return item_key_slot(it) + it->key_len;
}

static void
fill_header(struct item *it, const struct store *s, struct key key, uint32_t flags,
            uint32_t exptime, uint32_t value_len, bool is_chained)
{
    it->next = 0;
    it->prev = 0;
    it->h_next = 0;
    atomic_store_explicit(&it->time, 0, memory_order_relaxed);
    item_set_exptime(it, exptime);
    it->value_len = value_len & STORE_VALUE_MAX;
    atomic_store_explicit(&it->refs, 1, memory_order_relaxed);
    item_set_layout(it, (s->conf.use_cas ? ITEM_HAS_CAS : 0) |
                            (is_chained ? ITEM_CHAINED : 0));
    item_set_marks(it, 0);
    it->epoch = 0;
    it->owner = 0;
    it->key_len = (uint8_t)key.len;
    if (s->conf.use_cas) {
        atomic_store_explicit(item_cas_slot(it), 0, memory_order_relaxed);
    }
    memcpy(item_key_slot(it), key.p, key.len);
    item_set_flags(it, flags);
}

/* Gives all chunks and the head back to the slabs. */
static void
free_chain(struct store *s, struct item *it)
{
    struct chunk *first = item_first_chunk(it);
    struct chunk *ch = first->next;

    while (ch != NULL) {
        struct chunk *next = ch->next;

        slab_give(&s->slab, ch->class_id, ch, (uint32_t)sizeof(*ch) + ch->used);
        ch = next;
    }
    slab_give(&s->slab, first->class_id, it, head_bytes(&s->conf, it->key_len));
}

/* One more chunk for at most `left` bytes. The last one is small if a small one can be had;
 * memory for it comes from the items of its class, or else of the largest. */
static struct chunk *
take_chunk(struct store *s, uint64_t left, uint32_t now)
{
    unsigned largest = s->slab.class_count;
    uint64_t room = s->slab.chunk_max - sizeof(struct chunk);
    uint32_t used = (uint32_t)(left < room ? left : room);
    uint32_t bytes = used + (uint32_t)sizeof(struct chunk);
    unsigned class_id = slab_class_of(&s->slab, bytes);
    struct chunk *ch = lru_take_chunk(s, class_id, bytes, class_id, now);

    if (ch == NULL && class_id != largest) {
        class_id = largest;
        ch = lru_take_chunk(s, class_id, bytes, class_id, now);
    }
    if (ch == NULL) {
        return NULL;
    }
    /* Not the layout: the page mover may be reading it. */
    memset(ch, 0, offsetof(struct chunk, layout));
    ch->cursor = NULL;
    ch->cursor_at = 0;
    ch->size = s->slab.classes[class_id].chunk_size - (uint32_t)sizeof(*ch);
    ch->used = used;
    ch->class_id = (uint8_t)class_id;
    item_set_layout((struct item *)(void *)ch, ITEM_CHUNK);
    return ch;
}

static bool
add_chunks(struct store *s, struct item *it, uint32_t now)
{
    uint64_t left = (uint64_t)it->value_len + ITEM_LINE_END;
    struct chunk *last = item_first_chunk(it);

    while (left > 0) {
        struct chunk *ch = take_chunk(s, left, now);

        if (ch == NULL) {
            return false;
        }
        ch->owner = it;
        ch->prev = last;
        last->next = ch;
        item_make_known((struct item *)(void *)ch);
        last = ch;
        left -= ch->used;
    }
    return true;
}

/* A chunk that starts an item, and its class. The class may be full of heads and tails of chained
 * items, which are on the list of the largest class only. */
static void *
take_head(struct store *s, uint32_t bytes, uint32_t now, uint8_t *class_id)
{
    unsigned largest = s->slab.class_count;
    unsigned id = slab_class_of(&s->slab, bytes);
    void *chunk = lru_take_chunk(s, id, bytes, id, now);

    while (unlikely(chunk == NULL) && slab_class_of(&s->slab, bytes) != id) {
        id = slab_class_of(&s->slab, bytes); /* another one serves now */
        chunk = lru_take_chunk(s, id, bytes, id, now);
    }
    if (chunk == NULL && id != largest && s->conf.item_max > s->slab.chunk_max) {
        chunk = lru_take_chunk(s, id, bytes, largest, now);
    }
    if (chunk == NULL) {
        lru_count_oom(s, id);
    }
    *class_id = (uint8_t)id;
    return chunk;
}

static struct item *
create_chained(struct store *s, struct key key, uint32_t flags, uint32_t exptime,
               uint32_t value_len, uint32_t now)
{
    uint8_t class_id;
    struct item *it = take_head(s, head_bytes(&s->conf, key.len), now, &class_id);

    if (it == NULL) {
        return NULL;
    }
    fill_header(it, s, key, flags, exptime, value_len, true);
    it->class_id = s->slab.class_count & STORE_CLASS_MAX;
    struct chunk *first = item_first_chunk(it);
    memset(first, 0, sizeof(*first));
    first->owner = it;
    first->class_id = class_id;
    first->layout = ITEM_CHUNK;
    if (!add_chunks(s, it, now)) {
        lru_count_oom(s, it->class_id);
        free_chain(s, it);
        return NULL;
    }
    return it;
}

static struct item *
create_plain(struct store *s, struct key key, uint32_t flags, uint32_t exptime,
             uint32_t value_len, uint32_t total, uint32_t now)
{
    uint8_t class_id;
    struct item *it = take_head(s, total, now, &class_id);

    if (it == NULL) {
        return NULL;
    }
    fill_header(it, s, key, flags, exptime, value_len, false);
    it->class_id = class_id & STORE_CLASS_MAX;
    return it;
}

enum store_status
item_create(struct store *s, struct key key, uint32_t flags, uint32_t exptime,
            uint32_t value_len, uint32_t now, struct item **item)
{
    uint64_t total = item_total(&s->conf, key.len, flags, value_len);

    must(key.len >= 1 && key.len <= STORE_KEY_MAX);
    *item = NULL;
    if (total > s->conf.item_max) {
        return STORE_TOO_LARGE;
    }
    *item = total <= s->slab.chunk_max
                ? create_plain(s, key, flags, exptime, value_len, (uint32_t)total, now)
                : create_chained(s, key, flags, exptime, value_len, now);
    return *item != NULL ? STORE_OK : STORE_NO_MEMORY;
}

void
item_unref(struct store *s, struct item *it)
{
    /* Release: this holder's reads come before the memory is used again; acquire: for the
     * thread that frees it. A last reference has no other holder, and there will be none. */
    if (atomic_load_explicit(&it->refs, memory_order_acquire) != 1) {
        unsigned before = atomic_fetch_sub_explicit(&it->refs, 1, memory_order_acq_rel);

        must(before != 0);
        if (before > 1) {
            return;
        }
    }
    must(!item_is(it, ITEM_LINKED));
    atomic_store_explicit(&it->refs, 0, memory_order_relaxed);
    if (it->layout & ITEM_CHAINED) {
        free_chain(s, it);
    } else {
        slab_give(&s->slab, it->class_id, it, (uint32_t)item_total_of(&s->conf, it));
    }
}

uint32_t
item_head_bytes(const struct store_conf *conf, const struct item *it)
{
    return it->layout & ITEM_CHAINED ? head_bytes(conf, it->key_len)
                                     : (uint32_t)item_total_of(conf, it);
}

void
item_move_head(struct item *to, const struct item *from)
{
    size_t at = offsetof(struct item, h_next);
    const char *end = from->layout & ITEM_CHAINED
                          ? (const char *)(item_first_chunk(from) + 1)
                          : plain_value(from) + from->value_len + ITEM_LINE_END +
                                (from->has_flags ? ITEM_FLAGS : 0);

    memcpy((char *)to + at, (const char *)from + at,
           (size_t)(end - (const char *)from) - at);
    if (to->layout & ITEM_CHAINED) {
        struct chunk *first = item_first_chunk(to);

        first->next->prev = first;
        for (struct chunk *ch = first; ch != NULL; ch = ch->next) {
            ch->owner = to;
        }
    }
}

void
item_move_chunk(struct chunk *to, const struct chunk *from)
{
    memcpy(to, from, sizeof(*from) + from->used);
    to->prev->next = to;
    if (to->next != NULL) {
        to->next->prev = to;
    }
    /* The place of the last write is of no use to a linked item. */
    item_first_chunk(to->owner)->cursor = NULL;
}

uint32_t
item_chunk_bytes(const struct chunk *ch)
{
    return (uint32_t)sizeof(*ch) + ch->used;
}

static size_t
plain_stretch(const struct item *it, size_t offset, char **p)
{
    *p = plain_value(it) + offset;
    return it->value_len + ITEM_LINE_END - offset;
}

/* Moves *ch, which starts at offset *at, on to the one that offset falls into. */
static void
seek(struct chunk **ch, uint32_t *at, size_t offset)
{
    while (offset - *at >= (*ch)->used) {
        *at += (*ch)->used;
        *ch = (*ch)->next;
    }
}

size_t
item_read(const struct item *it, struct item_place *place, size_t offset, const char **p)
{
    must(offset < (size_t)it->value_len + ITEM_LINE_END);
    if ((it->layout & ITEM_CHAINED) == 0) {
        char *q;
        size_t n = plain_stretch(it, offset, &q);
        *p = q;
        return n;
    }
    if (place->chunk == NULL) {
        place->chunk = item_first_chunk(it)->next;
    }
    seek(&place->chunk, &place->at, offset);
    *p = chunk_data(place->chunk) + (offset - place->at);
    return place->chunk->used - (offset - place->at);
}

size_t
item_bytes(const struct item *it, size_t offset, const char **p)
{
    struct item_place place = {NULL, 0};
    return item_read(it, &place, offset, p);
}

/* A value arrives in many small pieces, so a chain remembers where the last one went. */
size_t
item_space(struct item *it, size_t offset, char **p)
{
    must(!item_is(it, ITEM_LINKED));
    must(offset < (size_t)it->value_len + ITEM_LINE_END);
    if ((it->layout & ITEM_CHAINED) == 0) {
        return plain_stretch(it, offset, p);
    }
    struct chunk *first = item_first_chunk(it);
    if (first->cursor == NULL || offset < first->cursor_at) {
        first->cursor = first->next;
        first->cursor_at = 0;
    }
    seek(&first->cursor, &first->cursor_at, offset);
    offset -= first->cursor_at;
    *p = chunk_data(first->cursor) + offset;
    return first->cursor->used - offset;
}

static size_t
min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

void
item_copy(struct item *dst, size_t at, const struct item *src, size_t len)
{
    struct item_place place = {NULL, 0};
    size_t done = 0;

    while (done < len) {
        const char *from;
        char *to;
        size_t n =
            min_of(item_read(src, &place, done, &from), item_space(dst, at + done, &to));

        n = min_of(n, len - done);
        memcpy(to, from, n);
        done += n;
    }
}

void
item_fill(struct item *it, const struct store_value *value)
{
    static const char line_end[ITEM_LINE_END] = {'\r', '\n'};

    if (likely((it->layout & ITEM_CHAINED) == 0)) {
        memcpy(mempcpy(plain_value(it), value->p, value->len), line_end, ITEM_LINE_END);
        return;
    }
    for (size_t at = 0; at < value->len;) {
        char *to;
        size_t n = min_of(item_space(it, at, &to), value->len - at);

        memcpy(to, value->p + at, n);
        at += n;
    }
    item_terminate(it);
}

void
item_terminate(struct item *it)
{
    static const char line_end[ITEM_LINE_END] = {'\r', '\n'};

    for (unsigned i = 0; i < ITEM_LINE_END; i++) {
        char *p;

        (void)item_space(it, (size_t)it->value_len + i, &p);
        *p = line_end[i];
    }
}

bool
item_is_terminated(const struct item *it)
{
    const char *p;
    size_t n = item_bytes(it, it->value_len, &p);
    if (p[0] != '\r') {
        return false;
    }
    if (n < ITEM_LINE_END) { /* the two bytes lie in different chunks */
        (void)item_bytes(it, (size_t)it->value_len + 1, &p);
        return p[0] == '\n';
    }
    return p[1] == '\n';
}

const char *
item_key(const struct item *it)
{
    return item_key_slot(it);
}

uint8_t
item_key_len(const struct item *it)
{
    return it->key_len;
}

uint32_t
item_flags(const struct item *it)
{
    return item_client_flags(it, it);
}

uint32_t
item_value_len(const struct item *it)
{
    return it->value_len;
}

uint64_t
item_cas(const struct item *it)
{
    return item_cas_load(it);
}

uint8_t
item_class(const struct item *it)
{
    return it->class_id;
}

uint8_t
item_slot(const struct item *it)
{
    return item_slot_of(it);
}

void
item_set_owner(struct item *it, uint8_t owner)
{
    must(!item_is(it, ITEM_LINKED));
    it->owner = owner % STORE_OWNERS;
}

uint32_t
item_expires(const struct item *it)
{
    return item_exptime(it);
}

uint32_t
item_accessed(const struct item *it)
{
    return item_time(it);
}

bool
item_was_fetched(const struct item *it)
{
    return item_is(it, ITEM_FETCHED);
}

enum store_list
item_list(const struct item *it)
{
    return item_list_of(it);
}

bool
item_has_binary_key(const struct item *it)
{
    return (it->layout & ITEM_BINARY_KEY) != 0;
}

void
item_mark_binary_key(struct item *it)
{
    must(!item_is(it, ITEM_LINKED));
    item_set_layout(it, it->layout | ITEM_BINARY_KEY);
}

uint32_t
item_accounted(const struct store *s, const struct item *it)
{
    return (uint32_t)item_total_of(&s->conf, it);
}
