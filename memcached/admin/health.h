/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether the server serves: "ok", or the reason why not as a line of text. Each second each
 * worker is given something to do; one that has not done it for HEALTH_STUCK_SECONDS is stuck.
 * The HTTP server's thread.
 */
#pragma once

#include "admin/page.h"

#define HEALTH_STUCK_SECONDS 10

struct health {
    unsigned count;
    uint32_t alive_at[]; /* of each worker, in seconds of the relative clock */
};

/* Of so many workers, all alive. NULL: no memory. */
must_check struct health *health_create(unsigned count, uint32_t now);

/* /health and /health/ready: whether new clients are served. */
admin_page health_ready;
/* /health/live: whether it is worth while to wait; a restart would help if not. */
admin_page health_live;
void health_second(struct admin_view *view);
