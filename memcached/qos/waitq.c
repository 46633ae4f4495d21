/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/waitq.h"

#include "base/must.h"
#include "base/owner_of.h"

void
waitq_init(struct waitq *g, struct limit *limit, unsigned number)
{
    *g = (struct waitq){.limit = limit};
    fair_init(&g->waiting, number, 1, WAITQ_DEBT_MOST);
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
    g->slots_cost -= cost;
    limit_redeem(g->limit, g->epoch, cost);
    return cost;
}

/* What the next slot is to cost: a share of what is not reserved yet. Which node will have it is
 * not known; what it differs is settled then. */
static uint32_t
next_cost(const struct waitq *g)
{
    unsigned bare = g->waiting.length - g->slots;
    uint64_t rest = g->cost > g->slots_cost ? g->cost - g->slots_cost : 0;
    return rest > bare ? (uint32_t)(rest / bare) : 1;
}

/* As many slots as may be, for the nodes that wait. */
static void
fill_slots(struct waitq *g, nsec_t now)
{
    while (g->slots < g->waiting.length && g->slots < WAITQ_SLOTS) {
        struct waitq_slot *slot = slot_at(g, g->slots);
        slot->cost = next_cost(g);
        if (!limit_reserve(g->limit, &g->lease, slot->cost, now, &slot->due)) {
            return; /* waitq_pop tries again */
        }
        g->slots++;
        g->slots_cost += slot->cost;
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
    g->slots_cost = 0;
    fill_slots(g, now);
}

/* ---- nodes ---------------------------------------------------------------------------- */

bool
waitq_take(struct waitq *g, struct waitq_node *n, nsec_t now, bool has_waited)
{
    nsec_t ignored;
    return (g->waiting.length == 0 || has_waited) &&
           limit_take_n(g->limit, &g->lease, n->cost, now, &ignored);
}

void
waitq_untake(struct waitq *g, const struct waitq_node *n)
{
    if (g->lease.epoch == limit_epoch(g->limit)) {
        limit_refund(g->limit, &g->lease, n->cost);
    }
}

/* When the last node of a line is likely to have its turn: the other lines have theirs, too. */
static nsec_t
turn_of_last(struct waitq *g, uint8_t place)
{
    uint64_t ahead = (uint64_t)fair_line_length(&g->waiting, place) * g->waiting.lines;
    ahead = ahead < g->waiting.length ? ahead : g->waiting.length;
    unsigned slots = ahead < g->slots ? (unsigned)ahead : g->slots;
    uint64_t tokens = (ahead - slots) * g->cost / g->waiting.length;
    return slot_at(g, slots - 1)->due + limit_time(g->limit, tokens);
}

nsec_t
waitq_push(struct waitq *g, struct waitq_node *n, nsec_t now)
{
    must(!waitq_is_waiting(n) && n->cost > 0);
    fair_push(&g->waiting, &n->node);
    g->cost += n->cost;
    refresh_slots(g, now);
    fill_slots(g, now);
    return g->slots > 0 ? turn_of_last(g, n->node.place) : now;
}

void
waitq_remove(struct waitq *g, struct waitq_node *n)
{
    fair_remove(&g->waiting, &n->node);
    g->cost -= n->cost;
    if (g->slots > g->waiting.length) {
        uint32_t cost = drop_slot(g, false);
        if (g->lease.epoch == g->epoch && g->epoch == limit_epoch(g->limit)) {
            limit_refund(g->limit, &g->lease, cost);
        }
    }
}

/* Slots that are void. */
static void
drop_late(struct waitq *g, nsec_t now)
{
    nsec_t patience = limit_burst_time(g->limit) + WAITQ_LATE_MAX;
    while (g->slots > 0 && now > slot_at(g, 0)->due &&
           now - slot_at(g, 0)->due > patience) {
        drop_slot(g, true);
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
    if (g->waiting.length == 0) {
        return NULL;
    }
    refresh_slots(g, now);
    drop_late(g, now);
    fill_slots(g, now);
    if (g->slots == 0 || slot_at(g, 0)->due > now) {
        return NULL;
    }
    struct waitq_node *n = OWNER_OF(fair_pop(&g->waiting), struct waitq_node, node);
    fair_charge(&g->waiting, n->node.place, n->cost);
    g->cost -= n->cost;
    uint32_t paid = drop_slot(g, true);
    settle(g, n, paid, now);
    fill_slots(g, now);
    return n;
}

struct waitq_node *
waitq_oldest(const struct waitq *g)
{
    struct fair_node *oldest = NULL;
    const struct fair_line *l = NULL;
    while ((l = fair_each(&g->waiting, l)) != NULL) {
        struct fair_node *n = l->head.next;
        bool is_older = l->length > 0 && (oldest == NULL || n->since < oldest->since);
        oldest = is_older ? n : oldest;
    }
    return oldest != NULL ? OWNER_OF(oldest, struct waitq_node, node) : NULL;
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
        g->slots_cost += (uint64_t)cost - last;
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
    if (g->waiting.length == 0) {
        return UINT64_MAX;
    }
    return g->slots > 0 && g->epoch == limit_epoch(g->limit) ? g->ring[g->first].due
                                                             : now;
}
