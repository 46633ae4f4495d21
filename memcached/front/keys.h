/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The groups of "stats" that tell of keys and items rather than of counters. As the hooks of
 * serve/env.h: `words` are those behind the name of the group; the result is the closing
 * reply, NONE when the call is to be repeated with the same place.
 */
#pragma once

#include "front/stats.h"

/* stats detail on|off|dump */
enum reply stats_detail(struct stats *st, const struct slice *words, unsigned count,
                        struct serve_place *place, struct sink *sink);
/* stats cachedump <class> <limit> */
enum reply stats_cachedump(struct stats *st, const struct slice *words, unsigned count,
                           uint32_t now, struct serve_place *place, struct sink *sink);
/* stats sizes */
enum reply stats_sizes(struct stats *st, struct serve_place *place, struct sink *sink);
/* stats sizes_enable, sizes_disable */
enum reply stats_switch_sizes(struct stats *st, bool is_on, struct sink *sink);
