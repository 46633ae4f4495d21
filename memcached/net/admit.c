/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/admit.h"

#include "base/probe.h"

enum session_ran
admit_refuse(struct worker *w, const struct admit_owner *owner, struct turn *turn,
             enum req_class class)
{
    PROBE(qos__shed, owner->fd, class);
    turn->has_run = true;
    if (owner->who != NULL) {
        latency_refuse(&w->latency, owner->who);
    }
    return session_refuse(owner->session, &w->env, owner->in, owner->out,
                          limiter_refuses_as_miss(&w->shared->limiter));
}
