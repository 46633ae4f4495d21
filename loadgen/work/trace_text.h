/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Lines of traces: Twitter's, CacheLib's and others with commas between their fields. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/must.h"
#include "loadgen/work/trace_record.h"

#define TRACE_COLUMNS_MAX 32

enum trace_column {
    TRACE_COLUMN_NONE, /* passed over */
    TRACE_COLUMN_TIME,
    TRACE_COLUMN_KEY,
    TRACE_COLUMN_KEY_SIZE,
    TRACE_COLUMN_VALUE_SIZE,
    TRACE_COLUMN_CLIENT,
    TRACE_COLUMN_OP,
    TRACE_COLUMN_TTL,
    TRACE_COLUMN_COUNT,
    TRACE_COLUMNS,
};

/* What the fields of a line are. */
struct trace_layout {
    enum trace_column columns[TRACE_COLUMNS_MAX];
    unsigned count;
    unsigned key;      /* index of the key's column */
    bool has_time;     /* there is a column of times, */
    uint64_t unit_ns;  /* which count in this */
    bool has_open_key; /* commas in the key belong to it: no field may be missing */
};

/* "time,key,op,...": names of columns. Those that are not known are passed over when `is_header`
 * says that a file has written them, else refused but for "-". NULL, or a sentence. */
must_check const char *trace_layout_parse(struct trace_layout *l, const char *text,
                                          size_t len, bool is_header);
/* timestamp, key, key size, value size, client, operation, time to live. */
void trace_layout_twitter(struct trace_layout *l);

enum trace_line {
    TRACE_LINE_GOOD,
    TRACE_LINE_UNKNOWN, /* its verb is none of ours */
    TRACE_LINE_BAD,
};

/* What a line was found to be, beside the record. */
struct trace_line_note {
    const char *wrong;    /* BAD: a sentence */
    const char *verb;     /* UNKNOWN: within the line */
    size_t verb_len;      /* of it */
    unsigned fine_digits; /* of the time, behind its point */
};

/* `line` without its end. A key shorter than its size is made as long with dots behind it; one
 * that is longer stays as it is. */
must_check enum trace_line trace_line_parse(const struct trace_layout *l,
                                            const char *line, size_t len,
                                            struct trace_record *r,
                                            struct trace_line_note *note);

/* Of get, set and so on, in any case of letters; TRACE_VERBS_END when it is none. */
enum trace_verb trace_verb_find(const char *name, size_t len);
const char *trace_verb_name(enum trace_verb verb);
