/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The bytes of a trace, in a plain file or one that zstd has compressed, read and written in
 * one go, in constant memory; and mcload's own compact form of them. One thread each.
 */
#pragma once

#include "loadgen/work/trace.h"

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

/* ---- streams of zstd, for trace_file.c -------------------------------------------------- */

/* As the functions above, from and to a file. */
struct trace_codec {
    const char *(*open)(struct trace_zstd **z, bool writes);
    const char *(*read)(struct trace_zstd *z, FILE *in, char *buf, size_t cap,
                        size_t *len);
    const char *(*write)(struct trace_zstd *z, FILE *out, const char *buf, size_t len,
                         bool is_last);
    void (*close)(struct trace_zstd **z);
};
extern const struct trace_codec *const trace_zstd; /* NULL: not in this build */

/* ---- the compact form --------------------------------------------------------------- */

/* What "mcload convert trace" writes. Numbers of more than one byte are little-endian; a varint
 * has seven bits a byte, the lowest first, and the eighth set when more follow. Pure.
 *
 *     header   "MCTRACE\n"  u32 version  u32 flags (1: no times)  u64 step: what times
 *              are multiples of, in ns
 *     record   u8 verb (| 0x80: repeated)  varint steps since the record before (the first:
 *              since 0)  varint client  varint value bytes  varint seconds to live
 *              [varint repeat]  u8 key bytes  key
 *     end      u8 0  u64 number of records
 */
#define TRACE_BINARY_VERSION 1
#define TRACE_BINARY_HEADER 24
#define TRACE_BINARY_RECORD_MAX 300
#define TRACE_BINARY_END 9

/* Where a reader or a writer is. */
struct trace_binary {
    uint64_t step_ns; /* above 0 */
    uint64_t time_ns; /* of the last record */
    uint64_t records;
    bool has_no_times; /* those of its records mean nothing */
};

enum trace_binary_take {
    TRACE_BINARY_TAKEN,
    TRACE_BINARY_CUT,  /* more bytes are needed */
    TRACE_BINARY_OVER, /* that was the end */
    TRACE_BINARY_BAD,
};

bool trace_binary_is(const char *buf, size_t len);
/* TRACE_BINARY_HEADER bytes at dst. */
size_t trace_binary_put_header(const struct trace_binary *b, char *dst);
/* At most TRACE_BINARY_RECORD_MAX bytes. The time is at least that of the record before, and
 * rounded down to a step. */
size_t trace_binary_put(struct trace_binary *b, const struct trace_record *r, char *dst);
/* TRACE_BINARY_END bytes. */
size_t trace_binary_put_end(const struct trace_binary *b, char *dst);

/* NULL, or a sentence. */
must_check const char *trace_binary_take_header(struct trace_binary *b, const char *buf,
                                                size_t len);
/* *taken bytes are used unless CUT. */
must_check enum trace_binary_take trace_binary_take(struct trace_binary *b,
                                                    const char *buf, size_t len,
                                                    struct trace_record *r,
                                                    size_t *taken);
