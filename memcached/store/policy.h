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

/* A read, not the first, has nothing to note if the item has these marks and was used since then. */
struct policy_rest {
    unsigned marks;
    uint32_t since;
};

static inline struct policy_rest
policy_rest(const struct lru *l, uint32_t now)
{
    static const struct {
        uint8_t marks, seconds;
    } rests[STORE_LRU_POLICIES] = {[STORE_LRU_FLAT] = {0, POLICY_BUMP_SECONDS},
                                   [STORE_LRU_SEGMENTED] = {ITEM_ACTIVE, 0},
                                   [STORE_LRU_S3FIFO] = {ITEM_KEEN, POLICY_BUMP_SECONDS}};
    unsigned policy = lru_policy(l), seconds = rests[policy].seconds;

    return (struct policy_rest){rests[policy].marks, now > seconds ? now - seconds : 0};
}

static inline bool
policy_is_hit_due(const struct lru *l, const struct item *it, uint32_t now)
{
    struct policy_rest rest = policy_rest(l, now);

    return (item_marks(it) & rest.marks) != rest.marks || item_time(it) < rest.since;
}

/* Notes it, with the stripe held: keeps the item from the end of its list. */
void policy_hit(struct store *s, struct item *it, uint32_t now);
/* A client is about to delete it; likewise. */
void policy_delete(struct store *s, const struct item *it, uint64_t hash);

/* s3fifo: the list that has to give; the lock of the class is held. */
enum store_list policy_pick(const struct lru *l, const struct lru_class *c);
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
