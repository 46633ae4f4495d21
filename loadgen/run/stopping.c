/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/stopping.h"

/* Each class has to be: they have objectives of their own. */
static bool
is_sure(const struct options *o, const struct sampler *w)
{
    bool is_sure = until_is_given(&o->until);
    for (unsigned i = 0; is_sure && i < o->classes_len; i++) {
        is_sure =
            o->classes[i].antagonist != NULL || until_is_met(&o->until, w->series[i]);
    }
    return is_sure;
}

bool
stopping_is_reached(struct stopping *s, const struct options *o, const struct sampler *w)
{
    nsec_t next = w->next;
    if (next == s->asked) {
        return false;
    }
    bool was_sure = s->was_sure;
    s->asked = next;
    s->was_sure = is_sure(o, w);
    return was_sure && s->was_sure;
}

bool
stopping_is_met(const struct result *r)
{
    bool is_sure = true;
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct result *c = &r->classes[i];
        is_sure = is_sure && (c->is_antagonist || until_is_met(r->until, c->series));
    }
    return is_sure;
}
