/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The items of the last process and for the next one (-e FILE): what the program does with
 * store/restart.h, and what it says. Without -e nothing happens here.
 *
 * Owner: main, before the workers start and after they have ended.
 */
#pragma once

#include "base/must.h"

struct restart;
struct store;
struct store_conf;

struct keep {
    struct restart *file; /* NULL: no -e */
    bool has_items;       /* of the last process, which are not to be lost */
    uint64_t last_gid;    /* of the live log; the next event has one more */
};

/* Opens the file, if path is not NULL, and completes conf. False: it has said why. */
must_check bool keep_open(struct keep *k, const char *path, struct store_conf *conf);

enum keep_status {
    KEEP_DONE,
    KEEP_LOST, /* the store is useless; it is to be created again with the same conf */
    KEEP_FAILED,
};

/* Puts the items, if there are any, into the store that was created with conf. The relative
 * clock goes on from the last process's. Says what happened. */
must_check enum keep_status keep_load(struct keep *k, struct store *store,
                                      struct store_conf *conf);

/* Saves the items, when the store is not used any more. False: the reason is on
 * stderr. */
must_check bool keep_save(struct keep *k, struct store *store, uint64_t last_gid);

/* After the store has been destroyed. */
void keep_close(struct keep *k);
