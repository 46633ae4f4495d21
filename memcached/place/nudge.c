/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/nudge.h"

bool
nudge_suspects(struct nudge *n, uint64_t wait_ns, nsec_t now)
{
    nsec_t took = now > n->asked_at ? now - n->asked_at : 0;
    uint64_t waited = wait_ns > n->asked_wait_ns ? wait_ns - n->asked_wait_ns : 0;
    bool has_waited = n->asked_at != 0 && (double)waited > NUDGE_WAIT * (double)took;
    n->asked_at = now;
    n->asked_wait_ns = wait_ns;
    if (!has_waited) {
        n->futile = n->skip = 0;
        return false;
    }
    n->skip -= n->skip > 0;
    return n->skip == 0;
}

void
nudge_begin(struct nudge *n, uint64_t wait_ns, nsec_t now)
{
    n->began_at = n->judged_at = now;
    n->late_at = 0;
    n->wait_ns = wait_ns;
    n->waited = n->outlasted = 0;
}

static nsec_t
end(struct nudge *n, bool was_futile)
{
    n->futile = was_futile ? n->futile + (n->futile < NUDGE_FUTILE_MAX) : 0;
    n->skip = was_futile ? 1U << n->futile : 0;
    return 0;
}

/* What the worker has waited in the window that is over: it is known when it got its CPU. */
static void
note(struct nudge *n, uint64_t wait_ns, nsec_t now)
{
    uint64_t waited = wait_ns > n->wait_ns ? wait_ns - n->wait_ns : 0;
    n->wait_ns = wait_ns;
    n->waited += waited;
    if (waited < NUDGE_LATE_NS) {
        return;
    }
    n->late_at = now;
    n->outlasted += waited >= NUDGE_OUTLAST_NS ? waited : 0;
}

static bool
is_of_no_use(struct nudge *n, nsec_t now)
{
    if (now - n->judged_at < NUDGE_JUDGE_NS) {
        return false;
    }
    bool is_so = (double)n->outlasted > NUDGE_OUTLASTED * (double)n->waited;
    n->judged_at = now;
    n->waited = n->outlasted = 0;
    return is_so;
}

nsec_t
nudge_step(struct nudge *n, uint64_t wait_ns, nsec_t now)
{
    note(n, wait_ns, now);
    if (is_of_no_use(n, now)) {
        return end(n, true);
    }
    if (now - n->began_at >= NUDGE_STINT_NS) {
        return end(n, n->late_at == 0);
    }
    if (n->late_at == 0) {
        return now - n->began_at < NUDGE_TRIAL_NS ? NUDGE_WIDE_NS : end(n, true);
    }
    nsec_t since = now - n->late_at;
    if (since >= NUDGE_LAST_NS) {
        return end(n, false);
    }
    return since < NUDGE_SOON_NS ? NUDGE_CLOSE_NS : NUDGE_WIDE_NS;
}
