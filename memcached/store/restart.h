/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Items that outlive the process (-e FILE). Slab memory is a mapping of FILE; an orderly stop
 * writes FILE.meta, and a start that finds one puts the items back: what lies in memory and was
 * linked is linked again; every other chunk is free.
 *
 * FILE.meta goes away when all items are back and before anything is done to them, so a process that
 * ends in another way leaves none, and the next one starts empty; but one that ends while it loads
 * leaves all to the next one. A start also begins empty when the memory is laid out in another way, or
 * the items are not exactly as they were when FILE.meta was written. Nothing of either file is
 * trusted: each number and pointer is checked before it is followed.
 *
 * One thread, before the others start and after they have ended; it has the help of as many as conf
 * says meanwhile. Besides store.h the only header of this layer for main.
 */
#pragma once

#include "base/must.h"
#include "store/store.h"

struct restart; /* an open FILE */

enum restart_status {
    RESTART_FAILED,    /* err says why */
    RESTART_NEW,       /* there is no FILE.meta */
    RESTART_DISCARDED, /* there was, but the store is to begin empty: err says why */
    RESTART_FOUND,     /* the store that is created with conf wants restart_load */
};

/* What goes on besides the items. */
struct restart_times {
    int64_t started;   /* wall time at which the relative clock showed 0 */
    int64_t stopped;   /* wall time of the stop */
    uint32_t now;      /* relative clock at the stop */
    uint64_t last_gid; /* of the live log */
};

/* Opens FILE, reserves all of conf's limit in it, and makes conf->memory and hash_power. The
 * same conf is for store_create. */
must_check enum restart_status restart_open(struct restart **r, const char *path,
                                            struct store_conf *conf, char *err,
                                            size_t err_len);
/* When the store has been destroyed. */
void restart_close(struct restart **r);

/* After RESTART_FOUND: what the last process said. */
struct restart_times restart_times(const struct restart *r);

/* After RESTART_FOUND, into the store just created; `now` is at least restart_times.now. What
 * has expired or was flushed does not come back. DISCARDED: the store is useless, but conf is
 * for one that begins empty now. FAILED: it is, but another start may have the items. */
must_check enum restart_status restart_load(struct restart *r, struct store *s,
                                            struct store_conf *conf, uint32_t now,
                                            char *err, size_t err_len);

/* Writes FILE.meta. No item is held, and the store is not used from here on. The stamp is
 * a random number, not 0. */
must_check bool restart_save(struct restart *r, struct store *s,
                             const struct restart_times *times, uint64_t stamp, char *err,
                             size_t err_len);
