/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The part of "stats qos" on where connections are. Any worker may call.
 */
#pragma once

#include "serve/sink.h"
#include "front/stats.h"

void stats_show_steer(const struct stats *st, struct sink *sink);
