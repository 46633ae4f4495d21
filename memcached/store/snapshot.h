/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What FILE.meta says (store/memfile.h), as a struct and as text: a first line `Tmain`, then
 * lines `K<name> <value>`, the last of them a checksum of what is before it. The names that
 * memcached 1.6 has there mean the same here; the others say which page belongs to which
 * class and where the LRU lists end.
 *
 * Pure. Nothing of a parsed snapshot has been compared with the memory that it describes:
 * its numbers are not to be trusted. Private to store/.
 */
#pragma once

#include "base/must.h"
#include "store/store.h"

#define SNAPSHOT_CONFIG_BYTES 512   /* text of the class sizes */
#define SNAPSHOT_BYTES_FIXED 65536  /* of text, beside */
#define SNAPSHOT_BYTES_PER_PAGE 16u /* of slab memory */

/* Pages of a class, oldest first; id 0 is the pool. Page numbers count from the beginning of the
 * slab memory. */
struct snapshot_class {
    uint64_t cut_count;   /* the first so many pages are in use, */
    uint64_t fresh_count; /* but for so many chunks at the end of the last of these */
    size_t first_page;    /* in snapshot.pages */
    size_t page_count;
};

struct snapshot {
    /* These must be as they were: they say what lies where. */
    char slab_config[SNAPSHOT_CONFIG_BYTES]; /* growth factor, or sizes */
    uint64_t maxbytes;
    uint64_t chunk_size; /* least space for key and value */
    uint64_t item_size_max, slab_chunk_size_max, slab_page_size;
    uint64_t use_cas;       /* 0 or 1 */
    uint64_t counts_suffix; /* 0 or 1 */
    uint64_t lean_items;    /* 0 or 1 */
    /* These go on. */
    uint64_t slab_reassign;              /* 0 or 1 */
    uint64_t current_time;               /* relative clock at the stop */
    uint64_t process_started, stop_time; /* wall time: relative clock 0; the stop */
    uint64_t current_cas, logger_gid, hashpower;
    uint64_t oldest_live; /* of struct flush, with the three below */
    uint64_t flush_epoch, flush_below, flush_at;
    uint64_t items;
    uint64_t contents; /* checksum of the items */
    uint64_t stamp;    /* as in FILE */
    struct snapshot_class classes[STORE_CLASSES];
    uint32_t *pages; /* of all classes */
    size_t page_count, page_room;
};

enum snapshot_status {
    SNAPSHOT_OK,
    SNAPSHOT_INCOMPLETE, /* lines are missing, or all: another server wrote it */
    SNAPSHOT_CORRUPT,    /* it was changed after it was written */
    SNAPSHOT_NO_MEMORY,
};

/* An empty one. */
void snapshot_init(struct snapshot *snap);
void snapshot_fini(struct snapshot *snap);

/* Appends pages to those of the class that was the last one to get any. */
must_check bool snapshot_add_page(struct snapshot *snap, unsigned class_id,
                                  uint32_t page);

/* Fills an empty one. */
must_check enum snapshot_status snapshot_parse(struct snapshot *snap, const char *text,
                                               size_t len);
/* The caller frees it; NULL: no memory. */
char *snapshot_format(const struct snapshot *snap, size_t *len);

/* The name of the first setting that must be the same and is not; NULL: none. */
const char *snapshot_difference(const struct snapshot *was, const struct snapshot *is);
