/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an item looks like in slab memory, and how it comes and goes. Private to store/.
 *
 *   plain    | header 32 | cas 8, if any | key | value | CR LF | flags 4, if not 0 |
 *   chained  | header 32 | cas 8, if any | key | flags 4 | pad | chunk header 48 |   one small chunk
 *              each further chunk: | chunk header 48 | piece of value and CR LF |
 *
 * What it is charged for is this (item_total), or with upstream's sizes more: then the header counts
 * 48 bytes, and one is left behind the key.
 *
 * A plain item lies in a chunk of its own class. A chained one counts as a member of the
 * largest class, and its first chunk header has the class the head itself lies in.
 *
 * Key, key_len, class_id and owner never change while the item lives, and layout not while it is
 * linked. marks, time, exptime, CAS number and the value change under the stripe only, the
 * value only while no other thread holds the item. The list in marks changes under stripe and
 * LRU lock together, so either is enough to read it; so do value_len, flags and epoch,
 * but only while no other thread holds the item (lru_renew).
 */
#pragma once

#include <stdatomic.h>

#include "base/must.h"
#include "store/store.h"

/* layout: what lies here */
#define ITEM_HAS_CAS 1u /* so many numbers lie in front of the key */
#define ITEM_CHAINED 2u
#define ITEM_CHUNK 4u /* this is a struct chunk, not an item */
#define ITEM_FREE 8u  /* on the free list of a class; 0: just taken */
#define ITEM_BINARY_KEY 16u
#define ITEM_OUT 32u    /* in a page on its way to another class, and done with */
#define ITEM_KNOWN 64u  /* an item that has been linked, or a chunk that has an owner */
#define ITEM_SIZED 128u /* is among the counts by size */

/* marks: what happened to it */
#define ITEM_LINKED 1u  /* in hash table and LRU */
#define ITEM_FETCHED 2u /* read since it was stored */
#define ITEM_ACTIVE                                                                      \
    4u /* read again since it was stored or moved to another list; s3fifo: read */
#define ITEM_STALE 8u     /* is to be stored anew */
#define ITEM_WON 16u      /* one client has been asked to do so */
#define ITEM_KEEN 32u     /* s3fifo: and read again after it was marked active */
#define ITEM_LIST_SHIFT 6 /* two bits: enum store_list */

#define ITEM_CLASS_BITS 6
#define ITEM_OWNER_BITS 2

#define ITEM_LINE_END 2u /* CR LF behind every value */
#define ITEM_FLAGS 4u    /* bytes of flags that are not 0 */

struct item {
    /* Links (link.h). */
    uint32_t next; /* LRU, towards the tail; or the free list */
    uint32_t prev; /* LRU, towards the head */
    uint32_t h_next;
    uint32_t value_len : 31;
    uint32_t has_flags : 1; /* of the client, which are not 0 */
    /* Written under the stripe, peeked at without: relaxed. */
    _Atomic uint32_t time; /* last access or store, relative clock */
    _Atomic uint32_t exptime;
    _Atomic uint16_t refs; /* 1 while linked + 1 per holder; 0 -> freed */
    uint16_t epoch;        /* flushes until it was linked; see struct flush */
    /* At the same place in struct chunk. The page mover looks at the chunks in it under
     * the slab lock, without knowing what they are. Release when ITEM_KNOWN is set, acquire
     * by the mover: what it needs to find the stripe has been written. Else relaxed. */
    _Atomic uint8_t layout;
    _Atomic uint8_t marks;
    uint8_t class_id : ITEM_CLASS_BITS;
    uint8_t owner : ITEM_OWNER_BITS; /* whose share of the memory it uses */
    uint8_t key_len;
};

struct chunk {
    struct chunk *next;
    struct chunk *prev;
    struct item *owner;
    uint32_t used; /* bytes that belong to the value and CR LF */
    _Atomic uint8_t layout;
    uint8_t unused_mark_;
    uint8_t class_id; /* slab class of the memory this header lies in */
    uint8_t unused_tail_;
    struct chunk *cursor; /* of the first one: the chunk written last, */
    uint32_t cursor_at;   /* and the offset at which it starts */
    uint32_t size;        /* room behind this header */
};

_Static_assert(sizeof(struct item) == 32, "item header");
_Static_assert(STORE_REFS_MAX < UINT16_MAX / 16 * 15,
               "room for the store's own references");
_Static_assert(sizeof(struct chunk) == STORE_ITEM_HEADER, "chunk header");
_Static_assert(STORE_CLASSES == 1 << ITEM_CLASS_BITS, "class_id");
_Static_assert(STORE_OWNERS == 1 << ITEM_OWNER_BITS, "owner");
_Static_assert(offsetof(struct item, layout) == offsetof(struct chunk, layout), "layout");

static inline void
item_set_layout(struct item *it, uint8_t layout)
{
    atomic_store_explicit(&it->layout, layout, memory_order_relaxed);
}

/* From here on its memory may be moved, under the stripe of its key. */
static inline void
item_make_known(struct item *it)
{
    uint8_t layout = atomic_load_explicit(&it->layout, memory_order_relaxed);

    atomic_store_explicit(&it->layout, layout | ITEM_KNOWN, memory_order_release);
}

/* Relaxed: changed in place under the stripe by incr and decr, peeked at by the LRU, which
 * takes the stripe before it acts on it. */
static inline _Atomic uint64_t *
item_cas_slot(const struct item *it)
{
    return (_Atomic uint64_t *)(uintptr_t)(it + 1);
}

static inline uint64_t
item_cas_load(const struct item *it)
{
    return it->layout & ITEM_HAS_CAS
               ? atomic_load_explicit(item_cas_slot(it), memory_order_relaxed)
               : 0;
}

/* Bytes from the item to its key. */
static inline size_t
item_key_behind(uint8_t layout)
{
    return sizeof(struct item) + (layout & ITEM_HAS_CAS) * sizeof(uint64_t);
}

static inline size_t
item_key_at(const struct item *it)
{
    return item_key_behind(it->layout);
}

static inline char *
item_key_slot(const struct item *it)
{
    return (char *)(uintptr_t)it + item_key_at(it);
}

/* Bytes from the item to the client's flags, if it has some. */
static inline size_t
item_flags_at(const struct item *it)
{
    size_t end = item_key_at(it) + it->key_len;

    return it->layout & ITEM_CHAINED ? end : end + it->value_len + ITEM_LINE_END;
}

/* Of an item, or of a copy of the header of the one at `place`. */
static inline uint32_t
item_client_flags(const struct item *it, const struct item *place)
{
    uint32_t flags = 0;

    if (unlikely(it->has_flags)) {
        memcpy(&flags, (const char *)place + item_flags_at(it), sizeof(flags));
    }
    return flags;
}

/* Once value_len is what it is to be. */
static inline void
item_set_flags(struct item *it, uint32_t flags)
{
    it->has_flags = flags != 0;
    if (unlikely(flags != 0)) {
        memcpy((char *)it + item_flags_at(it), &flags, sizeof(flags));
    }
}

static inline uint32_t
item_exptime(const struct item *it)
{
    return atomic_load_explicit(&it->exptime, memory_order_relaxed);
}

static inline void
item_set_exptime(struct item *it, uint32_t exptime)
{
    atomic_store_explicit(&it->exptime, exptime, memory_order_relaxed);
}

static inline uint32_t
item_time(const struct item *it)
{
    return atomic_load_explicit(&it->time, memory_order_relaxed);
}

/* A line that is often read is not made dirty for nothing. */
static inline void
item_set_time(struct item *it, uint32_t now)
{
    if (item_time(it) != now) {
        atomic_store_explicit(&it->time, now, memory_order_relaxed);
    }
}

/* Read: by a clock that may be behind that of the thread that stored it, and before whose time it would
 * be one of those that a flush took. */
static inline void
item_note_read(struct item *it, uint32_t now)
{
    if (item_time(it) < now) {
        item_set_time(it, now);
    }
}

static inline unsigned
item_marks(const struct item *it)
{
    return atomic_load_explicit(&it->marks, memory_order_relaxed);
}

static inline void
item_set_marks(struct item *it, unsigned marks)
{
    atomic_store_explicit(&it->marks, (uint8_t)marks, memory_order_relaxed);
}

static inline void
item_mark(struct item *it, unsigned bits)
{
    item_set_marks(it, item_marks(it) | bits);
}

static inline void
item_unmark(struct item *it, unsigned bits)
{
    item_set_marks(it, item_marks(it) & ~bits);
}

static inline enum store_list
item_list_of(const struct item *it)
{
    return (enum store_list)(item_marks(it) >> ITEM_LIST_SHIFT);
}

static inline uint8_t
item_slot_of(const struct item *it)
{
    return (uint8_t)STORE_SLOT(it->class_id, it->owner);
}

static inline bool
item_is(const struct item *it, unsigned bits)
{
    return (item_marks(it) & bits) != 0;
}

/* Acquire pairs with the release in item_unref: when this says 1, what the last holder read
 * has been read. */
static inline unsigned
item_refs(const struct item *it)
{
    return atomic_load_explicit(&((struct item *)(uintptr_t)it)->refs,
                                memory_order_acquire);
}

/* Under the stripe, so the item can not die meanwhile: relaxed. */
static inline void
item_ref(struct item *it)
{
    atomic_fetch_add_explicit(&it->refs, 1, memory_order_relaxed);
}

/* The accounted size; decides the class and whether the item is too large. */
uint64_t item_total(const struct store_conf *conf, size_t key_len, uint32_t flags,
                    uint32_t value_len);
uint64_t item_total_of(const struct store_conf *conf, const struct item *it);

/* An unlinked item with one reference: OK, TOO_LARGE or NO_MEMORY. May evict; holding one
 * stripe is allowed. */
must_check enum store_status item_create(struct store *s, struct key key, uint32_t flags,
                                         uint32_t exptime, uint32_t value_len,
                                         uint32_t now, struct item **item);

/* Drops a reference; the last one frees the item. No lock but stripe and LRU may be held. */
void item_unref(struct store *s, struct item *it);

/* How much of the chunk that the item's head lies in is accounted: not the item's total when it is
 * chained. */
uint32_t item_head_bytes(const struct store_conf *conf, const struct item *it);
/* Of a chained item: behind key and flags. */
struct chunk *item_first_chunk(const struct item *it);

/* For the page mover; the stripe is held and the item is not. Copies the chunk that the
 * item begins in, but for the links of the LRU, and makes the chunks know the new place. */
void item_move_head(struct item *to, const struct item *from);
/* Copies one chunk of a chained item, and makes its neighbours know the new place. */
void item_move_chunk(struct chunk *to, const struct chunk *from);
uint32_t item_chunk_bytes(const struct chunk *ch);

/* Writes all of the value, and CR LF. No other thread may hold the item. */
void item_fill(struct item *it, const struct store_value *value);
/* Copies len value bytes of src to dst from offset at. */
void item_copy(struct item *dst, size_t at, const struct item *src, size_t len);
