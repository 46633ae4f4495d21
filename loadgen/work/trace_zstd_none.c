/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Without libzstd.
 */
#include "loadgen/work/trace_file.h"

const struct trace_codec *const trace_zstd = NULL;
