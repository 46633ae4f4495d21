/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * "stats detail": how often keys of each prefix were asked for, found, stored and deleted.
 * A prefix is what a key has in front of the first delimiter; keys without one do not count.
 *
 * Any thread; one lock, taken for each key while counting is on and not otherwise (the caller
 * asks watch_wants first).
 */
#pragma once

#include <pthread.h>

#include "base/must.h"
#include "base/uri.h"
#include "proto/req.h"

#define PREFIX_MAX 65536 /* prefixes that are counted; keys of others do not count */
/* "PREFIX <prefix> get <n> hit <n> set <n> del <n>\r\n" at its longest; a prefix that would
 * not stay one word of one line, which binary clients can make, is shown as %XX. */
#define PREFIX_LINE_MAX (URI_ENCODED_MAX(REQ_KEY_MAX) + 4 * 20 + 32)

enum prefix_count { PREFIX_GET, PREFIX_HIT, PREFIX_SET, PREFIX_DEL, PREFIX_COUNTS };

struct prefix_entry; /* private */

struct prefixes {
    pthread_mutex_t lock;
    char delimiter;
    uint64_t seed;
    _Atomic bool is_on; /* as shown; threads that count ask elsewhere */
    unsigned count;
    unsigned slots;                /* a power of two; 0 while empty */
    struct prefix_entry **entries; /* in the order of their appearance */
    struct prefix_entry **table;   /* open addressing, at most half full */
};

/* seed: of the hash, not to be guessed by clients. */
void prefixes_init(struct prefixes *p, char delimiter, bool is_on, uint64_t seed);
void prefixes_fini(struct prefixes *p);

/* Counts one get, set or delete of the key, and so many hits. A prefix that there is no memory
 * for does not count. */
void prefixes_count(struct prefixes *p, struct slice key, enum prefix_count what,
                    unsigned hits);

/* Cuts a key down to its prefix; false: it has none. Takes no lock. */
must_check bool prefixes_cut(const struct prefixes *p, struct slice *key, uint64_t *hash);

void prefixes_set_on(struct prefixes *p, bool is_on);
bool prefixes_are_on(struct prefixes *p);
/* Forgets all prefixes. */
void prefixes_clear(struct prefixes *p);

/* For tests: the numbers of the prefix that appeared as the index-th. */
uint64_t *prefixes_counts(struct prefixes *p, unsigned index);

/* Describes up to `max` prefixes from *cursor on, each as a line with CR LF; *cursor is where
 * to go on. False when there are no more. */
must_check bool prefixes_tell(struct prefixes *p, unsigned *cursor, unsigned max,
                              void (*tell)(void *ctx, const char *line, size_t len),
                              void *ctx);
