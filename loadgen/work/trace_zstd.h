/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Streams of zstd, for trace_file.c: a build without libzstd has none. One thread each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/must.h"

struct trace_zstd;

/* NULL, or a sentence. */
must_check const char *trace_zstd_open(struct trace_zstd **z, bool writes);
void trace_zstd_close(struct trace_zstd **z);
/* As those of trace_file.h, from and to the file. */
must_check const char *trace_zstd_read(struct trace_zstd *z, FILE *in, char *buf,
                                       size_t cap, size_t *len);
must_check const char *trace_zstd_write(struct trace_zstd *z, FILE *out, const char *buf,
                                        size_t len, bool is_last);
