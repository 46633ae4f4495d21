/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Looks for an item without its stripe's lock, and writes nothing. Private to store/.
 *
 * The number of the stripe is odd while a writer has its lock: table_lock and table_unlock see to
 * it, and nothing that a reader looks at changes outside of these. A reader asks whether the
 * number is still what it was
 *   - after it has loaded a pointer, before it follows it: then an item was there;
 *   - after it has copied the item's header: then it was the header of an item in this bucket,
 *     and key and value lie where it says;
 *   - after it has looked at key and value: then all of it was so at one moment.
 * If the answer is no, it takes the lock, so no reader waits for anything else. While it has that it
 * leaves the number alone unless it has to write: else a crowd of readers that were disturbed once
 * would go on to disturb each other.
 * Where an item once was may be another one by the time that the pointer is followed, or a page
 * of the pool; but it is memory: arrays of buckets and pages are not unmapped while the store
 * lives (mem_empty).
 */
#pragma once

#include "base/bytes.h"
#include "base/seq.h"
#include "store/item.h"
#include "store/table.h"

struct peek {
    const struct seq *seq;
    uint64_t seen;
    const uint32_t *bucket; /* NULL: the lock has to be taken */
    const struct item *it;  /* where it lies; NULL: there is none */
};

static inline bool
peek_holds(const struct peek *p)
{
    return seq_read_holds(p->seq, p->seen);
}

/* Begins: other keys may be looked at before this one is gone on with. */
static inline void
peek_open(struct peek *p, const struct table *t, uint64_t hash)
{
    p->seq = &table_stripe(t, hash)->seq;
    p->bucket = likely(seq_read_begin(p->seq, &p->seen)) ? table_bucket(t, hash) : NULL;
}

/* Goes on to the item with that key; *head: a copy of its header but for the links of the list, which
 * is not a part of `p` so that the rest of that can be in registers. False: the lock has to be
 * taken. */
static inline bool
peek_find(struct peek *p, const struct table *t, struct key key, struct item *head)
{
    const size_t from = offsetof(struct item, h_next);
    const struct link_range range = t->range;

    if (unlikely(p->bucket == NULL)) {
        return false;
    }
    p->it = link_item(&range, __atomic_load_n(p->bucket, __ATOMIC_RELAXED));
    while (likely(peek_holds(p))) {
        if (p->it == NULL) {
            return true;
        }
        memcpy((char *)head + from, (const char *)p->it + from, sizeof(*head) - from);
        if (unlikely(!peek_holds(p))) {
            break;
        }
        if (head->key_len == key.len &&
            bytes_equal((const char *)p->it + item_key_at(head), key.p, key.len)) {
            return true;
        }
        p->it = link_item(&range, head->h_next);
    }
    return false;
}
