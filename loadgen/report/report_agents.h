/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The processes of a swarm, as a part of both reports. Nothing without a swarm.
 */
#pragma once

#include <stdio.h>

#include "loadgen/measure/result.h"
#include "loadgen/report/json.h"

void report_agents_text(const struct result *r, FILE *out);
void report_agents_json(const struct result *r, struct json *j);
