/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How the lists of a class are kept: where an item goes when it is stored, what a read of it
 * does, and which one leaves next. Private to store/.
 *
 *   flat        COLD only, ordered by use.
 *   segmented   HOT (new) -> COLD -> eviction; what is read twice goes to WARM and comes back
 *               to COLD when WARM is too large or too old; TEMP holds what expires soon.
 *   s3fifo      "S3-FIFO" (Yang et al., SOSP 2023): HOT is a queue for new items, a twentieth of
 *               the class. What was not read by its end leaves, and its hash becomes a ghost;
 *               the rest goes to COLD, the main queue, and so does at once what is stored again
 *               while it is a ghost. What was read comes round again at the end of COLD, once
 *               or twice. A read marks the item, at most twice, and moves nothing. TEMP as above.
 *               A delete of what would have stayed leaves a ghost, too, unlike the paper's: what is
 *               deleted and soon stored again would else begin anew each time.
 *
 * The policy may change while the store runs: each knows what to do with what the others left.
 */
#pragma once

#include "store/lru.h"

#define POLICY_BUMP_SECONDS                                                              \
    60 /* but in segmented: the time of an access is at most so late */

/* The list of an item that is stored now, in the place of one with these marks (0: of none). The
 * locks of stripe and class are held. */
enum store_list policy_place(struct store *s, struct item *it, unsigned before,
                             uint64_t hash, uint32_t now);

/* Whether a read, not the first, has anything to note. */
static inline bool
policy_is_hit_due(const struct lru *l, const struct item *it, uint32_t now)
{
    uint32_t time = item_time(it);

    switch (lru_policy(l)) {
    case STORE_LRU_SEGMENTED:
        return time != now || !item_is(it, ITEM_ACTIVE);
    case STORE_LRU_S3FIFO:
        if (!item_is(it, ITEM_KEEN)) {
            return true;
        }
        break;
    case STORE_LRU_FLAT:
    case STORE_LRU_POLICIES:
        break;
    }
    return now > time && now - time > POLICY_BUMP_SECONDS;
}

/* Notes it, with the stripe held: keeps the item from the end of its list. */
void policy_hit(struct store *s, struct item *it, uint32_t now);
/* A client is about to delete it; likewise. */
void policy_delete(struct store *s, const struct item *it, uint64_t hash);

/* s3fifo: the list that has to give; the lock of the class is held. */
enum store_list policy_pick(const struct lru_class *c);
/* What is to be done with a tail entry, if those owners keep theirs. */
enum action policy_judge(const struct store *s, const struct item *it,
                         const struct pull_rule *ask, unsigned kept, uint32_t now);
/* The class is full: lets an item go, looking deeper with each attempt. PULL_NOTHING: there is no
 * point in trying again. As long as *bypass lasts, owners keep what is reserved for them. One stripe may be
 * held. */
enum pull policy_make_room(struct store *s, unsigned class_id, unsigned attempt,
                           struct pull_bypass *bypass, uint32_t now);
/* The owner stores in that class: lets some of its own go, if it has more than its ceiling.
 * One stripe may be held. */
void policy_cap(struct store *s, unsigned class_id, unsigned owner, uint32_t now);
