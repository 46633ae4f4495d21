/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/waitq.h"

#include <stddef.h>

#include "base/must.h"

void
waitq_init(struct waitq *g, struct limit *limit)
{
    *g = (struct waitq){.limit = limit};
    g->head.next = g->head.prev = g->bare = &g->head;
}

/* ---- slots ---------------------------------------------------------------------------- */

static struct waitq_slot *
slot_at(struct waitq *g, unsigned i)
{
    return &g->ring[(g->first + i) % WAITQ_SLOTS];
}

/* The first or the last slot is used, or void. */
static uint32_t
drop_slot(struct waitq *g, bool is_first)
{
    uint32_t cost = slot_at(g, is_first ? 0 : g->slots - 1)->cost;
    g->first = (g->first + is_first) % WAITQ_SLOTS;
    g->slots--;
    limit_redeem(g->limit, g->epoch, cost);
    return cost;
}

/* As many slots as may be, for the nodes that wait, in their order. */
static void
fill_slots(struct waitq *g, nsec_t now)
{
    while (g->bare != &g->head && g->slots < WAITQ_SLOTS) {
        struct waitq_slot *slot = slot_at(g, g->slots);
        slot->cost = g->bare->cost;
        if (!limit_reserve(g->limit, &g->lease, slot->cost, now, &slot->due)) {
            return; /* waitq_pop tries again */
        }
        g->slots++;
        g->bare->has_slot = true;
        g->bare = g->bare->next;
    }
}

/* The first g->slots that wait keep theirs, the others have none any more. */
static void
deal_slots(struct waitq *g)
{
    unsigned i = 0;
    g->bare = g->head.next;
    for (struct waitq_node *n = g->head.next; n != &g->head && n->has_slot; n = n->next) {
        n->has_slot = i++ < g->slots;
        if (n->has_slot) {
            g->bare = n->next;
        }
    }
}

/* After a change of the limit nothing that was reserved counts. */
static void
refresh_slots(struct waitq *g, nsec_t now)
{
    uint64_t epoch = limit_epoch(g->limit);
    if (g->epoch == epoch) {
        return;
    }
    g->epoch = epoch;
    g->slots = 0;
    deal_slots(g);
    fill_slots(g, now);
}

/* ---- nodes ---------------------------------------------------------------------------- */

static void
unlink_node(struct waitq *g, struct waitq_node *n)
{
    must(g->length > 0 && n->prev->next == n && n->next->prev == n);
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
    n->has_slot = false;
    g->length--;
}

bool
waitq_take(struct waitq *g, struct waitq_node *n, nsec_t now, bool has_waited)
{
    nsec_t ignored;
    return (g->length == 0 || has_waited) &&
           limit_take_n(g->limit, &g->lease, n->cost, now, &ignored);
}

void
waitq_untake(struct waitq *g, const struct waitq_node *n)
{
    if (g->lease.epoch == limit_epoch(g->limit)) {
        limit_refund(g->limit, &g->lease, n->cost);
    }
}

nsec_t
waitq_push(struct waitq *g, struct waitq_node *n, nsec_t now)
{
    must(!waitq_is_waiting(n) && n->cost > 0);
    n->has_slot = false;
    n->next = &g->head;
    n->prev = g->head.prev;
    n->prev->next = n;
    g->head.prev = n;
    g->length++;
    if (g->bare == &g->head) {
        g->bare = n;
    }
    refresh_slots(g, now);
    fill_slots(g, now);
    return g->slots > 0 ? slot_at(g, g->slots - 1)->due : now;
}

void
waitq_remove(struct waitq *g, struct waitq_node *n)
{
    if (n == g->bare) {
        g->bare = n->next;
    } else if (n->has_slot && g->bare != &g->head) {
        g->bare->has_slot = true; /* those behind move up */
        g->bare = g->bare->next;
    } else if (n->has_slot) {
        uint32_t cost = drop_slot(g, false);
        if (g->lease.epoch == g->epoch && g->epoch == limit_epoch(g->limit)) {
            limit_refund(g->limit, &g->lease, cost);
        }
    }
    unlink_node(g, n);
}

/* Slots that are void. */
static void
drop_late(struct waitq *g, nsec_t now)
{
    nsec_t patience = limit_burst_time(g->limit) + WAITQ_LATE_MAX;
    unsigned before = g->slots;
    while (g->slots > 0 && now > slot_at(g, 0)->due &&
           now - slot_at(g, 0)->due > patience) {
        drop_slot(g, true);
    }
    if (g->slots < before) {
        deal_slots(g);
    }
}

/* The slot may have been reserved for another, of another price. */
static void
settle(struct waitq *g, const struct waitq_node *n, uint32_t paid, nsec_t now)
{
    if (n->cost > paid) {
        limit_owe(g->limit, &g->lease, n->cost - paid, now);
    } else if (n->cost < paid && g->lease.epoch == g->epoch) {
        limit_refund(g->limit, &g->lease, paid - n->cost);
    }
}

struct waitq_node *
waitq_pop(struct waitq *g, nsec_t now)
{
    if (g->length == 0) {
        return NULL;
    }
    refresh_slots(g, now);
    drop_late(g, now);
    fill_slots(g, now);
    if (g->slots == 0 || slot_at(g, 0)->due > now) {
        return NULL;
    }
    struct waitq_node *n = g->head.next;
    uint32_t paid = drop_slot(g, true);
    unlink_node(g, n);
    settle(g, n, paid, now);
    fill_slots(g, now);
    return n;
}

void
waitq_give_back(struct waitq *g, uint32_t cost, nsec_t now)
{
    if (g->epoch != limit_epoch(g->limit) || g->lease.epoch != g->epoch) {
        return;
    }
    if (g->slots > 0) {
        /* All nodes move up, and the last slot is free. */
        uint32_t last = slot_at(g, g->slots - 1)->cost;
        g->first = (g->first + WAITQ_SLOTS - 1) % WAITQ_SLOTS;
        g->ring[g->first] = (struct waitq_slot){.due = now, .cost = cost};
        limit_redeem(g->limit, g->epoch, (int64_t)last - cost);
        cost = last;
    }
    limit_refund(g->limit, &g->lease, cost);
}

nsec_t
waitq_due(const struct waitq *g, nsec_t now)
{
    if (g->length == 0) {
        return UINT64_MAX;
    }
    return g->slots > 0 && g->epoch == limit_epoch(g->limit) ? g->ring[g->first].due
                                                             : now;
}
