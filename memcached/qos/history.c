/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/history.h"

static nsec_t
trickled_at(const struct history_peers *peers, uint64_t peer)
{
    return peer != 0 ? peers->trickled_at[peer % HISTORY_PEERS] : 0;
}

/* One more request may be served in parts for each that was served in whole. */
static void
reckon(struct history *h, uint32_t served)
{
    uint32_t paid = served - h->paid;
    h->debt = paid < h->debt ? (uint8_t)(h->debt - paid) : 0;
    h->paid = served;
    h->came = paid > 0 ? 0 : h->came; /* that was of an earlier request */
    h->floor = h->debt > HISTORY_DEBT_FREE ? HISTORY_GREEDY : 0;
}

void
history_begin(struct history *h, const struct history_peers *peers, uint64_t peer,
              nsec_t now)
{
    nsec_t at = trickled_at(peers, peer);
    *h = (struct history){
        .debt = at != 0 && now < at + HISTORY_PEER_NS ? HISTORY_DEBT_FREE : 0};
}

bool
history_charge(struct history *h, struct history_peers *peers, uint64_t peer,
               uint64_t came, uint32_t served, nsec_t now)
{
    reckon(h, served);
    uint64_t part = came >= h->came ? came - h->came : came;
    h->came = came;
    if (part == 0 || part >= HISTORY_PIECE) {
        return false;
    }
    h->debt += h->debt < HISTORY_DEBT_MOST;
    if (h->debt > HISTORY_DEBT_FREE) {
        h->floor = HISTORY_GREEDY;
        h->burst = HISTORY_GREEDY;
        if (peer != 0) {
            peers->trickled_at[peer % HISTORY_PEERS] = now;
        }
    }
    return true;
}

enum req_class
history_queue(struct history *h, uint32_t served)
{
    if (!history_trickles(h)) {
        return CLASS_SMALL;
    }
    reckon(h, served);
    if (history_trickles(h)) {
        return CLASS_BACKGROUND;
    }
    h->burst = 0;
    h->is_greedy = false;
    return CLASS_NONE;
}
