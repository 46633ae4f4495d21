/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Without libzstd.
 */
#include "loadgen/work/trace_zstd.h"

static const char none[] = "compressed, and this build has no zstd (see zstd -d)";

const char *
trace_zstd_open(struct trace_zstd **z, bool writes)
{
    (void)writes;
    *z = NULL;
    return none;
}

void
trace_zstd_close(struct trace_zstd **z)
{
    *z = NULL;
}

const char *
trace_zstd_read(struct trace_zstd *z, FILE *in, char *buf, size_t cap, size_t *len)
{
    (void)z;
    (void)in;
    (void)buf;
    (void)cap;
    *len = 0;
    return none;
}

const char *
trace_zstd_write(struct trace_zstd *z, FILE *out, const char *buf, size_t len,
                 bool is_last)
{
    (void)z;
    (void)out;
    (void)buf;
    (void)len;
    (void)is_last;
    return none;
}
