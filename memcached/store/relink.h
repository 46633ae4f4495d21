/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A store and its snapshot: describes the store that is, and makes an empty one into the store
 * that was, from memory that may hold anything. See store/restart.h. Private to store/.
 */
#pragma once

#include "store/core.h"
#include "store/snapshot.h"

/* The part of the snapshot that must be as it was. */
void relink_describe_conf(const struct store_conf *conf, struct snapshot *snap);

/* All of it but the times, mmap_oldbase apart, and the stamp. `base` is where the slab memory
 * begins. False: no memory. */
must_check bool relink_describe(const struct store *s, struct snapshot *snap);

/* Checksum of the slab memory that a snapshot says is in use; its pages have been checked. */
uint64_t relink_checksum(const struct store *s, const struct snapshot *snap);

/* Whether pages and counts fit this store's memory and classes. */
must_check bool relink_are_pages_good(const struct store *s, const struct snapshot *snap);

/* NULL, or what is wrong; then the store is of no use. The pages have been checked. */
must_check const char *relink_items(struct store *s, const struct snapshot *snap,
                                    uint32_t now);
