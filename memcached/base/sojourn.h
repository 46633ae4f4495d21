/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long input has waited for its server: in the kernel until the socket was reported ready,
 * and from then until it was read. Pure.
 *
 * The kernel stamps packets by the wall clock, the server lives by the monotonic one; both are
 * read together when the input is. The stamp is that of the last packet which the read
 * consumed, so requests that came together look younger than the oldest of them is: the time
 * since the socket was reported ready bounds that from below. A stamp that lies in the future
 * or further back than SOJOURN_MAX_NS says that the wall clock was set, and is not believed.
 */
#pragma once

#include "base/clock.h"

#define SOJOURN_MAX_NS NSEC_PER_SEC

struct sojourn_times {
    nsec_t rx_wall;   /* the kernel's stamp; 0: there was none */
    nsec_t read_wall; /* when it was read, by either clock */
    nsec_t read_mono;
    nsec_t ready_mono; /* when the socket was reported ready */
};

struct sojourn {
    bool has_kernel; /* `kernel` is known */
    nsec_t kernel;   /* from the packet to the report */
    nsec_t loop;     /* from the report to the read */
    nsec_t total;    /* from the packet, as far as that is known, to the read */
};

struct sojourn sojourn_of(const struct sojourn_times *t);
