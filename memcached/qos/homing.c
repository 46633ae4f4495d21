/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/homing.h"

bool
homing_note(struct homing *h, int home, uint32_t served, nsec_t now)
{
    bool is_used = served != h->served;
    unsigned seen = home < 0 ? 0 : (unsigned)home + 1;
    h->served = served;
    if (!is_used) {
        return false;
    }
    if (seen != h->home) {
        h->home = seen;
        h->since = now;
        return false;
    }
    return seen != 0 && now >= h->since && now - h->since >= HOMING_LAST_NS;
}

bool
homing_suits(uint32_t own_milli, uint32_t home_milli)
{
    return home_milli <= own_milli + HOMING_LOAD_MILLI;
}

unsigned
homing_most(unsigned conns)
{
    unsigned most = (unsigned)((uint64_t)conns * HOMING_CONNS_PCT / 100);
    return most > 0 ? most : 1;
}
