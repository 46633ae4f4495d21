/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is set for quality of service now, in three lines for people: for "qos" and for the log
 * at the start. Any thread.
 */
#pragma once

struct stats;

#define BRIEF_LINES 3
#define BRIEF_MAX 512

/* Lines without their ends: limits, targets, the rest. */
void brief_settings(const struct stats *st, char lines[BRIEF_LINES][BRIEF_MAX]);
