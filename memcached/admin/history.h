/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * /history.json: what the live page shows, for it and for programs. A member that
 * changes its meaning makes a new HISTORY_VERSION, an added one does not. null: not known, or not
 * set. The HTTP server's thread.
 *
 *     schema, version, time             what this is; seconds since 1970
 *     step_seconds, steps               of the samples; as many as are kept
 *     server                            version, uptime, and what is set, in words
 *     hits, misses, classes             counts since the start; limits, tokens and SLO
 *     workers                           where each is bound; its last step
 *     memory                            by slab class; pages_then: 15 minutes ago
 *     samples                           one value of each step in each row, the oldest first
 */
#pragma once

#include "admin/page.h"

#define HISTORY_SCHEMA "memcached-qos/history"
#define HISTORY_VERSION 1

admin_page history_page;
