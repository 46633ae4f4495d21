/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The bytes of a trace, in a plain file or one that zstd has compressed: read and written in
 * one go, in constant memory. One thread each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/must.h"

struct trace_zstd;

struct trace_file {
    FILE *file;
    struct trace_zstd *zstd; /* NULL: plain */
};

/* What it holds says whether it is compressed. NULL, or a sentence (constant, or strerror's). */
must_check const char *trace_file_open(struct trace_file *f, const char *path);
/* Fills buf as far as the file goes: *len below cap only at its end. As above. */
must_check const char *trace_file_read(struct trace_file *f, char *buf, size_t cap,
                                       size_t *len);

/* Compressed when the name ends in ".zst". */
must_check const char *trace_file_create(struct trace_file *f, const char *path);
must_check const char *trace_file_write(struct trace_file *f, const char *buf,
                                        size_t len);
/* Ends what was written. As above. */
must_check const char *trace_file_finish(struct trace_file *f);

/* Also after a failed open or create. */
void trace_file_close(struct trace_file *f);
