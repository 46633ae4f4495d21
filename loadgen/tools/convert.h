/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Traces into mcload's own compact form: record by record, in constant memory. One thread.
 */
#pragma once

#include "loadgen/work/trace.h"

/* What was passed over, and how many records there are, goes to `log`. NULL, or a sentence
 * (err); then there is no output file. */
must_check const char *convert_trace(const struct trace_conf *from, const char *to,
                                     FILE *log, char err[TRACE_ERR_MAX]);
