/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/nudge.h"

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
    n->began_at = now;
    n->late_at = 0;
    n->wait_ns = wait_ns;
}

static nsec_t
end(struct nudge *n)
{
    if (n->late_at == 0) {
        n->futile += n->futile < NUDGE_FUTILE_MAX;
        n->skip = 1U << n->futile;
    } else {
        n->futile = 0;
    }
    return 0;
}

nsec_t
nudge_step(struct nudge *n, uint64_t wait_ns, nsec_t now)
{
    if (wait_ns >= n->wait_ns + NUDGE_LATE_NS) {
        n->late_at = now;
    }
    n->wait_ns = wait_ns;
    if (now - n->began_at >= NUDGE_STINT_NS) {
        return end(n);
    }
    if (n->late_at == 0) {
        return now - n->began_at < NUDGE_TRIAL_NS ? NUDGE_WIDE_NS : end(n);
    }
    nsec_t since = now - n->late_at;
    if (since >= NUDGE_LAST_NS) {
        return end(n);
    }
    return since < NUDGE_SOON_NS ? NUDGE_CLOSE_NS : NUDGE_WIDE_NS;
}
