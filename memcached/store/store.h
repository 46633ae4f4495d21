/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The item store: slab memory, hash table, LRU lists. The only header of this layer that
 * others include. It knows no protocol, no socket and no clock: `now` is the relative clock
 * in seconds (base/clock.h), always passed in.
 *
 * Any thread may call any function unless it says otherwise; operations on one key are
 * linearizable. Locks, in the order in which they may be taken: item stripe (by hash) ->
 * LRU list of a class -> slab allocator. A second stripe is only ever tried, not waited for.
 *
 * Items are counted references. A reference keeps the item's bytes unchanged and in place
 * even when the key is deleted or replaced meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

#define STORE_KEY_MAX 250
#define STORE_CLASS_MAX 63       /* slab class ids are 1..63 */
#define STORE_CLASSES 64         /* array size for an index by class id */
#define STORE_PAGE_BYTES 1048576 /* unit of slab memory */
#define STORE_ITEM_HEADER 48
#define STORE_NUMBER_DIGITS 20 /* longest result of incr and decr */
#define STORE_REFS_MAX 60000   /* readers that may hold one item */

/* Relative times that are not times. */
#define STORE_NEVER 0   /* exptime: does not expire */
#define STORE_EXPIRED 1 /* exptime: has expired already */

struct store; /* opaque; shared by all threads */
struct item;  /* opaque; owned by the store, borrowed by counted reference */

struct store_conf {
    uint64_t limit_bytes;  /* for slab pages */
    double growth_factor;  /* > 1 */
    uint32_t min_space;    /* first chunk is header + this, rounded up to 8 */
    uint32_t item_max;     /* largest item total */
    uint32_t chunk_max;    /* largest chunk; item_max is a multiple of it */
    const uint32_t *sizes; /* explicit class sizes, or NULL */
    unsigned size_count;
    unsigned hash_power;       /* 12..32 */
    unsigned threads;          /* how many threads will call; sizes the stripes */
    uint64_t hash_seed;        /* random per process, fixed in tests */
    uint64_t initial_malloced; /* start value of the charged bytes */
    bool use_cas;
    bool can_evict;
    bool can_grow_hash;
    bool whole_pages;   /* charge full pages, not chunk size x chunks */
    bool inline_suffix; /* account the text suffix " <flags> <bytes>\r\n" per item */
};

enum store_status {
    STORE_OK,
    STORE_MISS,         /* absent */
    STORE_GONE_EXPIRED, /* was there, had expired; removed now */
    STORE_GONE_FLUSHED, /* was there, older than the last flush; removed now */
    STORE_NOT_STORED,   /* condition of add, replace, append, prepend not met */
    STORE_EXISTS,       /* cas differs */
    STORE_TOO_LARGE,
    STORE_NO_MEMORY,
    STORE_NOT_NUMERIC,
    STORE_BUSY, /* too many readers hold the item */
};

enum store_mode {
    STORE_SET,
    STORE_ADD,
    STORE_REPLACE,
    STORE_APPEND,
    STORE_PREPEND,
    STORE_CAS,
};

struct key {
    const char *p;
    size_t len; /* 1..STORE_KEY_MAX */
};

/* What a mutation tells its caller beside the status. */
struct store_result {
    uint64_t cas;     /* of the stored item; 0 without CAS */
    uint8_t class_id; /* of the item found or stored; 0 when none */
};

/* ---- life ---------------------------------------------------------------------------- */

/* NULL with a sentence in err when conf is impossible or memory is short. */
struct store *store_create(const struct store_conf *conf, char *err, size_t err_len);
/* No other thread may be inside; references must be released. */
void store_destroy(struct store **s);

/* ---- reading ------------------------------------------------------------------------- */

/* STORE_OK: *item is a counted reference to release. Else MISS, GONE_*, BUSY and *item is
 * NULL. Counts as a use for the LRU. */
must_check enum store_status store_get(struct store *s, struct key key, uint32_t now,
                                       struct item **item);
/* The same and sets the exptime (relative clock) under the same lock. */
must_check enum store_status store_get_and_touch(struct store *s, struct key key,
                                                 uint32_t exptime, uint32_t now,
                                                 struct item **item);
void store_release(struct store *s, struct item *item);

/* Facts of a referenced item; constant while referenced, except the exptime. */
const char *item_key(const struct item *it);
uint8_t item_key_len(const struct item *it);
uint32_t item_flags(const struct item *it);
uint32_t item_value_len(const struct item *it); /* without the CR LF behind it */
uint64_t item_cas(const struct item *it);       /* 0 without CAS */
uint8_t item_class(const struct item *it);      /* class id that counts it in the LRU */

/* The longest contiguous stretch of value-and-CRLF bytes from offset
 * (0..value_len + 1): every value is stored with CR LF behind it. Returns its length. */
size_t item_bytes(const struct item *it, size_t offset, const char **p);

/* ---- writing ------------------------------------------------------------------------- */

/* Takes memory for an item that nobody sees yet. OK, TOO_LARGE or NO_MEMORY. The caller
 * fills all value_len + 2 bytes through item_space and then commits or releases it. */
must_check enum store_status store_reserve(struct store *s, struct key key,
                                           uint32_t flags, uint32_t exptime,
                                           uint32_t value_len, uint32_t now,
                                           struct item **item);
/* Writable stretch from offset of a reserved item; as item_bytes. */
size_t item_space(struct item *it, size_t offset, char **p);

/* Links a reserved item under its key as `mode` says and gives up the caller's reference,
 * whatever the status: OK, NOT_STORED, EXISTS, MISS (cas on an absent key), NO_MEMORY,
 * TOO_LARGE (append and prepend build a new item). `cas` is compared when mode is STORE_CAS.
 * APPEND and PREPEND keep the old flags and exptime. */
must_check enum store_status store_commit(struct store *s, struct item *item,
                                          enum store_mode mode, uint64_t cas,
                                          uint32_t now, struct store_result *result);

/* OK or MISS. */
must_check enum store_status store_delete(struct store *s, struct key key, uint32_t now,
                                          struct store_result *result);
/* OK or MISS. A use for the LRU. */
must_check enum store_status store_touch(struct store *s, struct key key,
                                         uint32_t exptime, uint32_t now,
                                         struct store_result *result);

/* Adds or subtracts; number[0..*digits) is the new value in decimal. Addition wraps at
 * 2^64, subtraction stops at 0. In place and padded with blanks to the old length when the
 * new text is not longer and nobody else holds the item; else a new item of exact length.
 * OK, MISS, NOT_NUMERIC, NO_MEMORY. */
must_check enum store_status store_arith(struct store *s, struct key key, bool increment,
                                         uint64_t delta, uint32_t now,
                                         char number[STORE_NUMBER_DIGITS], size_t *digits,
                                         struct store_result *result);

/* Everything stored so far is gone; with at > now, it goes when the clock reaches `at`,
 * with all that is stored until then. Only the latest future flush is remembered. */
void store_flush(struct store *s, uint32_t at, uint32_t now);

/* ---- upkeep -------------------------------------------------------------------------- */

void store_set_limit(struct store *s, uint64_t bytes);

/* One bounded piece of background work (moving `buckets` buckets of a growing hash table).
 * One thread at a time. False when nothing is left to do for now. */
bool store_step(struct store *s, unsigned buckets);

/* ---- statistics ---------------------------------------------------------------------- */

struct store_totals {
    uint64_t limit_bytes, malloced_bytes;
    uint64_t item_bytes, curr_items, total_items;
    uint64_t evictions, evicted_unfetched, expired_unfetched, reclaimed,
        lrutail_reflocked;
    uint64_t malloc_fails;
    uint32_t flush_time; /* relative; 0: never flushed */
    unsigned hash_power;
    uint64_t hash_bytes;
    bool is_expanding;
    unsigned active_classes; /* with at least one page */
};

struct store_class_stats {
    uint32_t chunk_size, chunks_per_page, total_pages;
    uint64_t total_chunks, used_chunks, free_chunks, requested_bytes;
    uint64_t number; /* items in the LRU */
    uint32_t age;    /* seconds since last access of the LRU tail */
    uint64_t evicted, evicted_nonzero, evicted_time, outofmemory, tailrepairs, reclaimed;
    uint64_t expired_unfetched, evicted_unfetched, lrutail_reflocked;
};

void store_totals(struct store *s, struct store_totals *out);
/* Classes exist for ids 1..store_class_count. */
unsigned store_class_count(const struct store *s);
void store_class_stats(struct store *s, unsigned class_id, uint32_t now,
                       struct store_class_stats *out);
/* Zeroes the counters; states (items, bytes, pages) stay. */
void store_reset_stats(struct store *s);
