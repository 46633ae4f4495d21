/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the request classes came to. Private to stats.c and stats_qos.c.
 */
#pragma once

#include "front/stats.h"

/* "stats classes" */
void stats_show_classes(struct stats *st, struct sink *sink);
/* "stats latency", told in pieces */
enum reply stats_show_latency(struct stats *st, struct serve_place *place,
                              struct sink *sink);
/* The lines of "stats qos" about classes. */
void stats_put_classes(struct stats *st, struct sink *sink);
