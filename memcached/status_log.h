/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the log says with -v of the server as a whole: lines when it begins to serve, and one a
 * minute while requests are delayed or refused. And the line that a service manager shows.
 */
#pragma once

#include "qos/minute.h"

struct stats;

#define STATUS_MAX 800 /* bytes of status_describe */

/* Two lines: version and listeners; workers, their CPUs, quality of service. Start-up thread. */
void status_log_start(const struct stats *st);
/* "listening on tcp:127.0.0.1:11211; 4 workers". Start-up thread. */
void status_describe(const struct stats *st, char dst[STATUS_MAX]);
/* Once a second; one thread. */
void status_log_second(const struct stats *st, struct minute *m, nsec_t now);
