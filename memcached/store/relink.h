/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A store and its snapshot: describes the store that is, and makes an empty one into the store
 * that was, from memory that may hold anything. See store/restart.h. Private to store/.
 */
#pragma once

#include "store/core.h"
#include "store/snapshot.h"

struct census;

/* The part of the snapshot that must be as it was. */
void relink_describe_conf(const struct store_conf *conf, struct snapshot *snap);

/* All of it but the times and the stamp. No other thread is in the store. False: no memory. */
must_check bool relink_describe(struct store *s, struct snapshot *snap);

/* Whether pages and counts fit this store's memory and classes. False: no memory to find out. */
must_check bool relink_check_pages(const struct store *s, const struct snapshot *snap,
                                   bool *are_good);

/* Into an empty store. *wrong: NULL, or what does not fit; then the store is of no use. False: no
 * memory, likewise. In any case the slab memory is as good for another store as it was. The caller
 * closes the census. */
must_check bool relink_items(struct store *s, const struct snapshot *snap, uint32_t now,
                             struct census **census, const char **wrong);
/* Then, when the memory need not be good for another one: drops what has expired or was flushed. */
void relink_settle(struct store *s, struct census *census);
