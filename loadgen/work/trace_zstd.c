/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace_file.h"

#include <errno.h>
#include <zstd.h>

#include "base/alloc.h"

#define BLOCK 131072
#define WINDOW_LOG_MAX 27 /* 128 MB: what zstd -d takes without being told */

struct trace_zstd {
    ZSTD_DStream *reader;
    ZSTD_CStream *writer;
    ZSTD_inBuffer in;
    bool is_between; /* frames: here a file may end */
    char block[BLOCK];
};

static void
close_stream(struct trace_zstd **z)
{
    if (*z != NULL) {
        ZSTD_freeDStream((*z)->reader);
        ZSTD_freeCStream((*z)->writer);
        free(*z);
        *z = NULL;
    }
}

static const char *
open_stream(struct trace_zstd **z, bool writes)
{
    *z = alloc_zeroed(1, sizeof **z);
    (*z)->in.src = (*z)->block;
    (*z)->is_between = true;
    if (writes) {
        (*z)->writer = ZSTD_createCStream();
    } else {
        (*z)->reader = ZSTD_createDStream();
    }
    if ((*z)->writer == NULL && (*z)->reader == NULL) {
        close_stream(z);
        return strerror(ENOMEM);
    }
    if ((*z)->reader != NULL) {
        ZSTD_DCtx_setParameter((*z)->reader, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    }
    return NULL;
}

static const char *
read_stream(struct trace_zstd *z, FILE *in, char *buf, size_t cap, size_t *len)
{
    ZSTD_outBuffer out = {buf, cap, 0};
    bool has_ended = false;
    *len = 0;
    while (out.pos < cap && !has_ended) {
        if (z->in.pos == z->in.size) {
            z->in.size = fread(z->block, 1, BLOCK, in);
            z->in.pos = 0;
            has_ended = z->in.size == 0;
        }
        size_t before = out.pos;
        size_t rc = ZSTD_decompressStream(z->reader, &out, &z->in);
        if (ZSTD_isError(rc)) {
            return ZSTD_getErrorName(rc);
        }
        /* Without input it may still hand out what it has. */
        z->is_between = rc == 0 || (z->is_between && has_ended);
        has_ended = has_ended && out.pos == before;
    }
    *len = out.pos;
    if (ferror(in)) {
        return strerror(errno);
    }
    return has_ended && !z->is_between ? "the compressed data is cut" : NULL;
}

static const char *
write_stream(struct trace_zstd *z, FILE *out, const char *buf, size_t len, bool is_last)
{
    ZSTD_inBuffer in = {buf, len, 0};
    size_t left;
    do {
        ZSTD_outBuffer to = {z->block, BLOCK, 0};
        left = ZSTD_compressStream2(z->writer, &to, &in,
                                    is_last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return ZSTD_getErrorName(left);
        }
        if (fwrite(z->block, 1, to.pos, out) != to.pos) {
            return strerror(errno);
        }
    } while (in.pos < in.size || (is_last && left > 0));
    return NULL;
}

static const struct trace_codec codec = {open_stream, read_stream, write_stream,
                                         close_stream};
const struct trace_codec *const trace_zstd = &codec;
