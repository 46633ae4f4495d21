/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_class.h"

enum req_class
conn_judge(struct conn *c)
{
    return classify_request(c->worker->shared, &c->session, &c->is_class_told);
}

/* What the request at the head turned out to be tells what the connection's next one will be
 * like. */
void
conn_account_other(struct conn *c, enum session_ran ran, size_t bytes)
{
    enum req_class class =
        classify_account(c->worker, &c->session, (enum req_class)c->habit.class,
                         c->is_class_told, ran, bytes);
    c->habit.class = (uint8_t) class;
    if (ran == RAN_DONE && !c->session.is_open) {
        habit_note(&c->habit, class);
    }
}
