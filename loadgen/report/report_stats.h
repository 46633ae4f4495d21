/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the servers said of themselves; nothing when they were not asked.
 */
#pragma once

#include <stdio.h>

#include "loadgen/measure/result.h"
#include "loadgen/report/json.h"

/* Version and settings, a line each; what has the letters that begin mutilate's table is left
 * to the JSON. */
void report_settings_text(const struct server_settings *s, const char *const *names,
                          FILE *out);
/* A member of the object that j is in; none when nobody told. */
void report_settings_json(const struct server_settings *s, const char *const *names,
                          struct json *j);
/* A line. */
void report_stats_text(const struct server_stats *s, FILE *out);
/* A member of the object that j is in. */
void report_stats_json(const struct server_stats *s, const char *const *names,
                       struct json *j);
