/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/arrival.h"

#include "core/core.h"

/* The age of the oldest of several requests that were read together; the kernel stamps the last.
 * CoDel (Nichols and Jacobson 2012) goes by the least delay, and of a stream that never pauses the
 * last request is fresh however long the first has waited. Sockets are read in the order in which
 * they became ready, so the first came right behind the poll before: it has waited for as long as
 * that pass took, but not since before the socket was read empty. */
static nsec_t
oldest_age(const struct arrival *a, const struct pass *pass,
           const struct sojourn_times *t)
{
    nsec_t took = t->ready_mono == pass->woke_at ? pass->woke_at - pass->heard_at : 0;
    nsec_t unread = t->read_mono > a->empty_at ? t->read_mono - a->empty_at : 0;
    return a->has_rest || unread < took ? unread : took;
}

void
arrival_note(struct arrival *a, const struct pass *pass, const struct arrival_read *r)
{
    struct sojourn waited = sojourn_of(&r->times);
    nsec_t age = a->was_blocked ? waited.loop : waited.total;
    nsec_t unread =
        r->times.read_mono > a->empty_at ? r->times.read_mono - a->empty_at : 0;
    age = a->has_rest || age < unread ? age : unread;
    const char *line_feed = memchr(r->bytes, '\n', r->len);
    if (!a->was_blocked && line_feed != NULL && line_feed < r->bytes + r->len - 1) {
        nsec_t oldest = oldest_age(a, pass, &r->times);
        age = oldest > age ? oldest : age;
    }
    a->since = r->is_own_delay ? 0 : r->times.read_mono - age;
    a->was_blocked = false;
    a->has_rest = r->has_rest;
    a->empty_at = r->has_rest ? r->times.read_mono - age : r->times.read_mono;
}

void
arrival_resume(struct arrival *a, nsec_t now)
{
    a->since = a->empty_at = now;
    a->has_rest = false;
}

void
arrival_note_unmeasured(struct arrival *a, const struct pass *pass, bool has_rest)
{
    a->since = 0;
    a->was_blocked = false;
    a->has_rest = has_rest;
    a->empty_at = pass->woke_at;
}

void
arrival_note_empty(struct arrival *a, const struct pass *pass)
{
    a->has_rest = false;
    a->empty_at = pass->woke_at;
}

nsec_t
arrival_of(const struct sojourn_times *times)
{
    return times->read_mono - sojourn_of(times).total;
}
