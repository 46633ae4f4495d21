/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The dead man's switch of an agent and the pauses after failed proofs. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

#define LEASE_RENEW NSEC_PER_SEC      /* the leader renews the lease at this interval */
#define LEASE_TERM (3 * NSEC_PER_SEC) /* without a word for this long, an agent stops */
#define LEASE_PAUSE_FIRST (100 * NSEC_PER_MSEC)
#define LEASE_PAUSE_LAST (5 * NSEC_PER_SEC)

struct lease {
    nsec_t renewed_at;
};

static inline void
lease_renew(struct lease *l, nsec_t now)
{
    l->renewed_at = now > l->renewed_at ? now : l->renewed_at;
}

/* When it ends unless renewed. */
static inline nsec_t
lease_end(const struct lease *l)
{
    return l->renewed_at + LEASE_TERM;
}

static inline bool
lease_is_over(const struct lease *l, nsec_t now)
{
    return now >= lease_end(l);
}

/* How long the next attempt waits after so many failures in a row: doubled each time. */
static inline nsec_t
lease_pause(unsigned failures)
{
    nsec_t pause = failures == 0 ? 0 : LEASE_PAUSE_FIRST;
    for (unsigned i = 1; i < failures && pause < LEASE_PAUSE_LAST; i++) {
        pause *= 2;
    }
    return pause < LEASE_PAUSE_LAST ? pause : LEASE_PAUSE_LAST;
}
