/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * All items of slab memory, looked at in the order in which they lie there, by several threads; what
 * is linked says so itself. Nothing is trusted: what an item says of itself is compared with the
 * chunk that it lies in before anything else of it is read. Three steps:
 *
 *   pages    Each item is checked, added to the sum and, if the store is to be put together again,
 *            inserted into the table. Chunks of long values are claimed, so that no two items share
 *            memory.
 *   buckets  No two items have one key.
 *   lists    Each is followed from its tail, by way of the first items of the pages: many short walks
 *            at once, of which each waits for another piece of memory. A list is whole when they have
 *            met all its items, and from each the way back is the way there.
 *
 * What these write another census does not miss: an address is understood wherever the memory lay
 * (memfile_offset_mask), and h_next, refs and what no item has do not count. So a process may end at
 * any moment, and the next one begins anew.
 *
 * No other thread is in the store. Private to store/.
 */
#pragma once

#include "store/core.h"
#include "store/snapshot.h"

struct census; /* under way */

/* Of the pages that the snapshot names, which have been checked. restores: into the store, which is
 * empty but for these pages; items from after `now`, and those that have gone then, are noted.
 * NULL: no memory. */
struct census *census_open(struct store *s, const struct snapshot *snap, bool restores,
                           uint32_t now);
void census_close(struct census **c);

/* Pages. False: they are not all as they must be. */
must_check bool census_count(struct census *c, uint64_t *items, uint64_t *sum);
/* Buckets and lists, which the LRU has then. The same. */
must_check bool census_link(struct census *c);

enum census_kind {
    CENSUS_FREE,      /* has no item */
    CENSUS_UNSETTLED, /* has one that was noted */
};

typedef void census_fn(struct store *s, uint32_t now, unsigned class_id, void *chunk);

/* Each chunk of that kind, the lowest last. */
void census_each(struct census *c, enum census_kind kind, census_fn *fn);
