/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A trace, record by record, whatever its format: constant memory for a file of any length.
 * One thread each.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/must.h"
#include "loadgen/work/trace_record.h"
#include "loadgen/work/trace_text.h"

#define TRACE_ERR_MAX 512
#define TRACE_NAMES_MAX 16 /* unknown verbs that are counted each for itself */
#define TRACE_NAME_MAX 24

enum trace_format {
    TRACE_AUTO,     /* binary or cachelib when it begins so, else twitter */
    TRACE_TWITTER,  /* lines of timestamp, key, key size, value size, client, verb, ttl */
    TRACE_CACHELIB, /* lines behind one that names the columns */
    TRACE_CSV,      /* lines of the columns given */
    TRACE_BINARY,
};

struct trace_conf {
    const char *path;
    const char *opened; /* in place of the path, which stays its name; or NULL */
    enum trace_format format;
    struct trace_layout layout; /* CSV */
    bool skips_bad;             /* lines that make no sense are counted, not an error */
    const atomic_bool
        *stop; /* set by whoever wants no more: the trace ends; NULL: none */
};

/* What was met on the way. */
struct trace_notes {
    uint64_t records;
    uint64_t bad;           /* lines passed over */
    uint64_t backwards;     /* times before that of the record before, which they get */
    uint64_t unknown_other; /* requests with verbs beyond those named here */
    struct {
        char name[TRACE_NAME_MAX + 1];
        uint64_t count;
    } unknown[TRACE_NAMES_MAX];
};

enum trace_status {
    TRACE_RECORD,
    TRACE_END,
    TRACE_FAILED,
};

struct trace;

/* "auto", "twitter", "cachelib", "csv:COLUMNS", "binary". NULL, or a sentence. */
must_check const char *trace_format_parse(struct trace_conf *conf, const char *text);
/* "error", "skip": skips_bad. NULL, or a sentence. */
must_check const char *trace_bad_parse(struct trace_conf *conf, const char *text);
/* A line for each kind of thing that was met, none for nothing. */
void trace_notes_print(const struct trace_notes *n, const char *path, FILE *out);

/* NULL, or a sentence (err) that names the file. */
must_check const char *trace_open(struct trace **t, const struct trace_conf *conf,
                                  char err[TRACE_ERR_MAX]);
/* Also of NULL. */
void trace_close(struct trace **t);

/* The next record, its time never before that of the last one. FAILED: trace_error says why,
 * with file and line. */
must_check enum trace_status trace_next(struct trace *t, struct trace_record *r);
const char *trace_error(const struct trace *t);

const struct trace_notes *trace_notes(const struct trace *t);
/* Whether records have times at all. */
bool trace_has_times(const struct trace *t);
/* What times cannot tell apart, in ns, from the first record on: that of a format, or of the
 * most digits in a line so far. */
uint64_t trace_step(const struct trace *t);
/* Whether no line to come can make it smaller. */
bool trace_has_fixed_step(const struct trace *t);
