/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much all processes of an agent together may send and receive, whatever they were asked
 * for: their threads say now and then how much they have moved, and are told how long to do nothing at all, not
 * even to receive, so that servers are not drained either. The generic cell rate algorithm
 * on two times that all threads share; in memory that processes share as well, since nothing
 * else is written after cap_init. Any thread; only where there is such a limit.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* What may be moved at once after a pause: requests of a second, so that those of a schedule
 * at the limit itself are not held up by chance; bytes of a tenth. */
#define CAP_REQUESTS_BURST NSEC_PER_SEC
#define CAP_BYTES_BURST (100 * NSEC_PER_MSEC)

struct cap_rate {
    double gap_ns; /* of one; 0: any */
    nsec_t burst;
    _Atomic uint64_t paid_to; /* relaxed: nothing else hangs on it */
};

struct cap {
    struct cap_rate requests, bytes;
};

/* A second; 0: any. */
void cap_init(struct cap *c, double requests, double bytes);
bool cap_is_on(const struct cap *c);
/* So much was moved: when more may be, at most now when at once. */
nsec_t cap_spend(struct cap *c, uint64_t requests, uint64_t bytes, nsec_t now);
/* The same, and sleeps until then, but not beyond `end` and not once `stop` is set (NULL:
 * never is). Returns the time. */
nsec_t cap_hold(struct cap *c, uint64_t requests, uint64_t bytes, nsec_t end,
                const atomic_bool *stop);
