/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A store of one page with S3-FIFO, which FIXTURE(set_up_s3fifo, tear_down_store) opens and closes.
 */
#pragma once

#include "fixture_store.h"

#define PLACES 100u /* items of the class that has the page */
#define VALUE 9000u
#define CLASS 1u

static inline void
set_up_s3fifo(void)
{
    static const uint32_t sizes[] = {10480};

    conf = default_conf(MIB);
    conf.sizes = sizes;
    conf.size_count = 1;
    conf.whole_pages = true;
    conf.lru = segmented_lru();
    conf.lru.policy = STORE_LRU_S3FIFO;
    s = open_store(&conf);
}

/* Reads that item without a use; NULL: it is not there. */
static inline struct item *
look(const char *key)
{
    static const struct store_look glance;
    struct store_seen seen;
    struct item *it;

    return store_look(s, key_of(key), &glance, NOW, &seen, &it) == STORE_OK ? it : NULL;
}

static inline unsigned
count_kept(const char *prefix, unsigned from, unsigned to)
{
    unsigned kept = 0;

    for (unsigned i = from; i < to; i++) {
        struct item *it = look(numbered(prefix, i));

        kept += it != NULL;
        if (it != NULL) {
            store_release(s, it);
        }
    }
    return kept;
}
