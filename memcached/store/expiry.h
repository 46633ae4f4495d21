/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Expiry as clients write it, turned into the relative clock. Pure.
 */
#pragma once

#include "store/store.h"

#define EXPIRY_RELATIVE_MAX (60 * 60 * 24 * 30) /* larger numbers are wall times */

/* exptime: 0 never, negative already expired, up to 30 days seconds from now, beyond that a
 * wall time. `started` is the wall time at which the relative clock showed 0. */
static inline uint32_t
expiry_from_wire(int64_t exptime, uint32_t now, int64_t started)
{
    if (exptime == 0) {
        return STORE_NEVER;
    }
    if (exptime < 0) {
        return STORE_EXPIRED;
    }
    if (exptime > EXPIRY_RELATIVE_MAX) {
        int64_t rel = exptime - started;
        return rel <= STORE_EXPIRED ? STORE_EXPIRED
               : rel > UINT32_MAX   ? UINT32_MAX
                                    : (uint32_t)rel;
    }
    return now + (uint32_t)exptime;
}
