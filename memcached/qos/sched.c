/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/sched.h"

#include <stddef.h>

#include "base/must.h"

void
sched_init(struct sched *s)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct sched_queue *q = &s->queues[c];
        q->head.next = &q->head;
        q->head.prev = &q->head;
        q->length = 0;
    }
    s->length = 0;
}

void
sched_push(struct sched *s, struct sched_node *n, enum req_class class, nsec_t now)
{
    must((unsigned)class < CLASS_COUNT);
    must(!class_is_inline(class));
    must(!sched_is_queued(n));

    struct sched_queue *q = &s->queues[class];
    n->class = class;
    n->queued_at = now;
    n->next = &q->head;
    n->prev = q->head.prev;
    n->prev->next = n;
    q->head.prev = n;
    q->length++;
    s->length++;
}

void
sched_remove(struct sched *s, struct sched_node *n)
{
    if (!sched_is_queued(n)) {
        return;
    }
    struct sched_queue *q = &s->queues[n->class];
    must(q->length > 0 && s->length > 0);
    must(n->prev->next == n && n->next->prev == n);
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = NULL;
    n->prev = NULL;
    q->length--;
    s->length--;
}

struct sched_node *
sched_first(const struct sched *s)
{
    if (s->length == 0) {
        return NULL;
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (s->queues[c].length > 0) {
            return s->queues[c].head.next;
        }
    }
    unreachable();
}

struct sched_node *
sched_pop(struct sched *s)
{
    struct sched_node *n = sched_first(s);
    if (n != NULL) {
        sched_remove(s, n);
    }
    return n;
}
