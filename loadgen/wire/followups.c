/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/followups.h"

#include "base/alloc.h"

/* Whether there can be any. */
static bool
has_followups(const struct workload *w)
{
    return w->conf.fills || w->conf.is_replay || mix_share(&w->conf.mix, MIX_CAS) > 0 ||
           mix_share(&w->conf.mix, MIX_RMW) > 0;
}

void
followups_init(struct followups *q, const struct workload *w, unsigned requests)
{
    *q = (struct followups){.trace_buffer = w->trace_buffer,
                            .room = requests * w->keys_max};
    q->cap = has_followups(w) ? q->room * (w->conf.defers ? 2 : 1) : 0;
    q->ring = alloc_zeroed(q->cap, sizeof *q->ring);
    q->missed_room = w->conf.defers ? w->keys_max : 0;
    q->missed = alloc_zeroed(q->missed_room, sizeof *q->missed);
}

void
followups_fini(struct followups *q)
{
    free(q->ring);
    free(q->missed);
    *q = (struct followups){0};
}

void
followups_reset(struct followups *q)
{
    while (unlikely(q->trace_buffer != NULL) && q->count > 0) {
        followups_pop(q);
    }
    while (unlikely(q->trace_buffer != NULL) && q->missed_count > 0) {
        trace_buffer_release(q->trace_buffer, q->missed[--q->missed_count].key);
    }
    q->head = q->count = q->missed_count = q->stale = 0;
}

void
followups_add(struct followups *q, const struct workload *w, struct followup next)
{
    must(q->count < q->cap);
    unsigned at = (q->head + q->count++) % q->cap;
    q->ring[at] = next;
    workload_get_key(w, next.key);
}

void
followups_pop(struct followups *q)
{
    must(q->count > 0);
    if (unlikely(q->trace_buffer != NULL)) {
        trace_buffer_release(q->trace_buffer, q->ring[q->head].key);
    }
    q->head = (q->head + 1) % q->cap;
    q->count--;
}

void
followups_miss(struct followups *q, const struct workload *w, struct missed missed)
{
    must(q->missed_count < q->missed_room);
    q->missed[q->missed_count++] = missed;
    workload_get_key(w, missed.key);
}
