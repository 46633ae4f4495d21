/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/coalesce.h"

#include "core/core.h"
#include "core/pump.h"

/* Turns a pass, so that they do not become a long one: most are sent with the next read. */
#define SERVED_MOST 4

void
coalesce_note(struct pump *p, size_t before, enum req_class class)
{
    if (p->coalesced.bytes == before) {
        p->coalesced.bytes = p->out.bytes;
        p->coalesced.class = class;
    }
}

static void
append(struct pump *p)
{
    struct coalesce *list = &p->core->coalesce;
    p->coalesced.is_held = true;
    p->coalesced.since = p->core->now;
    p->coalesced.next = NULL;
    p->coalesced.prev = list->last;
    *(list->last != NULL ? &list->last->coalesced.next : &list->first) = p;
    list->last = p;
}

static bool
is_over(const struct pump *p)
{
    const struct core *k = p->core;
    return k->now - p->coalesced.since >=
           slo_coalesce_ns(&k->admission.slo, p->coalesced.class);
}

bool
coalesce_keeps(struct pump *p)
{
    struct core *k = p->core;
    if (likely(p->coalesced.bytes != p->out.bytes) || k->is_draining || p->has_budget) {
        return false;
    }
    if (p->coalesced.is_held && is_over(p)) {
        return false;
    }
    if (!p->coalesced.is_held) {
        append(p);
    }
    ctr_add(&k->coalesce.kept, 1);
    return true;
}

void
coalesce_forget(struct pump *p)
{
    struct coalesced *c = &p->coalesced;
    struct coalesce *list = &p->core->coalesce;
    if (!c->is_held) {
        return;
    }
    *(c->prev != NULL ? &c->prev->coalesced.next : &list->first) = c->next;
    *(c->next != NULL ? &c->next->coalesced.prev : &list->last) = c->prev;
    c->is_held = false;
}

void
coalesce_serve(struct core *k, bool is_idle)
{
    struct pump *p;
    bool serves_all = is_idle || k->is_draining;
    unsigned served = 0;
    while ((p = k->coalesce.first) != NULL &&
           (serves_all || (served++ < SERVED_MOST && is_over(p)))) {
        coalesce_forget(p);
        /* No longer to be held, not by the turn that it may be queued for either. */
        p->coalesced.bytes = 0;
        if (p->out.bytes > 0 && !work_is_queued(&p->work)) {
            struct turn turn = core_inline_turn(k);
            p->work.type->turn(&p->work, &turn);
        }
    }
}
