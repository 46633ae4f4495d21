/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a connection asks of qos/class.h: which class its requests are in, and what they came
 * to. For conn.c; the worker's thread only.
 */
#pragma once

#include "net/classify.h"
#include "net/conn.h"
#include "net/worker.h"

enum req_class conn_judge(struct conn *c);
void conn_account_other(struct conn *c, enum session_ran ran, size_t bytes);

/* The class of the request at the head, when it is new. What conn_judge says of most requests is
 * known without it. */
static inline enum req_class
conn_classify(struct conn *c)
{
    const struct net_shared *shared = c->worker->shared;
    enum req_class class = CLASS_SMALL;
    if (likely(session_is_get(&c->session, shared->classes.bulk_keys) &&
               c->session.declared == 0 && shared->class_rules.key_count == 0)) {
        c->is_class_told = false;
    } else {
        class = conn_judge(c);
    }
    c->habit.class = (uint8_t) class;
    return class;
}

/* The queue in which the request at the head, or else the next one, waits. */
static inline enum req_class
conn_lane(const struct conn *c)
{
    return class_lane((enum req_class)c->habit.class,
                      c->session.is_long && !c->is_class_told);
}

/* The request at the head has made so many bytes of output, and may be finished. */
static inline void
conn_account(struct conn *c, enum session_ran ran, size_t bytes)
{
    if (likely(ran == RAN_DONE && c->habit.class == CLASS_SMALL && !c->session.is_open &&
               bytes <= c->worker->shared->classes.bulk_bytes)) {
        habit_note(&c->habit, CLASS_SMALL);
        worker_account(c->worker, CLASS_SMALL, bytes, true);
    } else {
        conn_account_other(c, ran, bytes);
    }
}
