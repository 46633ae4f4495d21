/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is set for quality of service now, in three lines for people: for "qos" and for the log
 * at the start. Any thread.
 */
#pragma once

struct stats;

#define QOS_BRIEF_LINES 3
#define QOS_BRIEF_MAX 512

/* Lines without their ends: limits, targets, the rest. */
void qos_brief(const struct stats *st, char lines[QOS_BRIEF_LINES][QOS_BRIEF_MAX]);
