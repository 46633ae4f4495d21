/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * /stats.json: what "stats" and its groups tell, an object each. "items:5:number" is
 * {"5": {"number": ...}} there, and "31:addr" of a connection {"31": {"addr": ...}}.
 */
#pragma once

#include "admin/page.h"

#define STATS_JSON_SCHEMA "memcached-qos-stats/1"

/* "?groups=qos,conns" chooses, "?groups=all" takes all; by default all but those of which there
 * may be many. */
admin_page stats_json_page;
