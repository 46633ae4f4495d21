/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Lengths of time as people write them: "0.5", "250us", "10ms", "5s", "2m", "24h". Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

/* Seconds; false when it is none, or below 0. */
must_check bool duration_parse(const char *text, size_t len, double *seconds);
