/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/sequels.h"

#include <stdlib.h>

/* Whether there can be any. */
static bool
has_sequels(const struct workload *w)
{
    return w->conf.fills || w->conf.is_replay || mix_share(&w->conf.mix, MIX_CAS) > 0 ||
           mix_share(&w->conf.mix, MIX_RMW) > 0;
}

bool
sequels_init(struct sequels *q, const struct workload *w, unsigned requests)
{
    *q = (struct sequels){.book = w->book, .room = requests * w->keys_max};
    q->cap = has_sequels(w) ? q->room * (w->conf.defers ? 2 : 1) : 0;
    q->ring = calloc(q->cap + 1, sizeof *q->ring);
    q->missed_room = w->conf.defers ? w->keys_max : 0;
    q->missed = calloc(q->missed_room + 1, sizeof *q->missed);
    if (q->ring == NULL || q->missed == NULL) {
        sequels_fini(q);
        return false;
    }
    return true;
}

void
sequels_fini(struct sequels *q)
{
    free(q->ring);
    free(q->missed);
    *q = (struct sequels){0};
}

void
sequels_reset(struct sequels *q)
{
    while (unlikely(q->book != NULL) && q->count > 0) {
        sequels_pop(q);
    }
    while (unlikely(q->book != NULL) && q->missed_count > 0) {
        book_release(q->book, q->missed[--q->missed_count].key);
    }
    q->head = q->count = q->missed_count = q->stale = 0;
}

void
sequels_add(struct sequels *q, const struct workload *w, struct sequel next)
{
    must(q->count < q->cap);
    unsigned at = (q->head + q->count++) % q->cap;
    q->ring[at] = next;
    workload_hold(w, next.key);
}

void
sequels_pop(struct sequels *q)
{
    must(q->count > 0);
    if (unlikely(q->book != NULL)) {
        book_release(q->book, q->ring[q->head].key);
    }
    q->head = (q->head + 1) % q->cap;
    q->count--;
}

void
sequels_miss(struct sequels *q, const struct workload *w, struct missed missed)
{
    must(q->missed_count < q->missed_room);
    q->missed[q->missed_count++] = missed;
    workload_hold(w, missed.key);
}
