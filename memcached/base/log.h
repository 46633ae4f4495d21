/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Messages for the operator, on stderr, one line each. Any thread. Never called by proto/,
 * store/ or qos/. Where they are not read, lines are lost after a moment, and counted.
 */
#pragma once

#include <stddef.h>

#include "base/clock.h"

enum log_level { LOG_WARNING, LOG_INFO, LOG_DEBUG }; /* shown with 0, -v, -vv */

/* Level at start and by the command "verbosity". */
void log_set_level(unsigned level);
unsigned log_level(void);
/* Whether lines begin with the time, "2026-01-31T23:59:59Z "; those of clients do not. Before
 * other threads start. */
void log_set_stamps(bool are_on);

__attribute__((format(printf, 2, 3))) void log_write(enum log_level level,
                                                     const char *fmt, ...);

/* What a client sent ('<') or is sent ('>'), with LOG_DEBUG: "<28 get k". What is not printable
 * ASCII is escaped, what is long is cut. */
void log_client(char way, int fd, const char *text, size_t len);

/* For messages that a flood of events could repeat: at most one line a second for each
 * `struct log_rate`, with the number of lines left out. */
struct log_rate {
    _Atomic uint64_t next_at; /* ns */
    _Atomic uint64_t left_out;
};

__attribute__((format(printf, 4, 5))) void log_write_limited(enum log_level level,
                                                             struct log_rate *rate,
                                                             nsec_t now, const char *fmt,
                                                             ...);
