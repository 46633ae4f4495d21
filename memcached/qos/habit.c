/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/habit.h"

static nsec_t
trickled_at(const struct habit_peers *peers, uint64_t peer)
{
    return peer != 0 ? peers->trickled_at[peer % HABIT_PEERS] : 0;
}

/* One more request may be served in parts for each that was served in whole. */
static void
reckon(struct habit *h, uint32_t served)
{
    uint32_t paid = served - h->paid;
    h->debt = paid < h->debt ? (uint8_t)(h->debt - paid) : 0;
    h->paid = served;
    h->came = paid > 0 ? 0 : h->came; /* that was of an earlier request */
    h->floor = h->debt > HABIT_PATIENCE ? HABIT_GREEDY : 0;
}

void
habit_begin(struct habit *h, const struct habit_peers *peers, uint64_t peer, nsec_t now)
{
    nsec_t at = trickled_at(peers, peer);
    *h = (struct habit){.debt = at != 0 && now < at + HABIT_PEER_NS ? HABIT_PATIENCE : 0};
}

bool
habit_charge(struct habit *h, struct habit_peers *peers, uint64_t peer, uint64_t came,
             uint32_t served, nsec_t now)
{
    reckon(h, served);
    uint64_t part = came >= h->came ? came - h->came : came;
    h->came = came;
    if (part == 0 || part >= HABIT_PIECE) {
        return false;
    }
    h->debt += h->debt < HABIT_DEBT_MOST;
    if (h->debt > HABIT_PATIENCE) {
        h->floor = HABIT_GREEDY;
        h->burst = HABIT_GREEDY;
        if (peer != 0) {
            peers->trickled_at[peer % HABIT_PEERS] = now;
        }
    }
    return true;
}

enum req_class
habit_queue(struct habit *h, uint32_t served)
{
    if (!habit_trickles(h)) {
        return CLASS_SMALL;
    }
    reckon(h, served);
    if (habit_trickles(h)) {
        return CLASS_BACKGROUND;
    }
    h->burst = 0;
    h->is_greedy = false;
    return CLASS_NONE;
}
