/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A trace, record by record, whatever its format: constant memory for a file of any length.
 * One thread each; lines and the clock are pure.
 */
#pragma once

#include <stdatomic.h>

#include "base/must.h"
#include "base/rng.h"

/* ---- one request, as every format tells it ------------------------------------------ */

#define TRACE_KEY_MAX 250
#define TRACE_VALUE_MAX UINT32_MAX
#define TRACE_REPEAT_MAX 1000000000

/* Their numbers stand in files. */
enum trace_verb {
    TRACE_GET = 1,
    TRACE_GETS,
    TRACE_SET,
    TRACE_ADD,
    TRACE_REPLACE,
    TRACE_CAS,
    TRACE_APPEND,
    TRACE_PREPEND,
    TRACE_DELETE,
    TRACE_INCR,
    TRACE_DECR,
    TRACE_TOUCH,
    TRACE_VERBS_END,
};

struct trace_record {
    uint64_t time_ns;
    uint64_t client; /* its number, or a hash of its name; 0: not told */
    uint32_t value_len;
    uint32_t ttl;    /* seconds, 0: for ever or not told */
    uint32_t repeat; /* so many requests like this, one after another; at least 1 */
    enum trace_verb verb;
    size_t key_len; /* 1 to TRACE_KEY_MAX, without blanks and control characters */
    char key[TRACE_KEY_MAX];
};

/* ---- lines: Twitter's, CacheLib's and others with commas between their fields ------- */

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

/* ---- files -------------------------------------------------------------------------- */

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
    unsigned skips_bad;      /* 1: lines that make no sense are counted, not an error */
    const atomic_bool *stop; /* set when no more is wanted: the trace ends; NULL: none */
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
must_check const char *trace_format_parse(void *conf, const char *text);
/* The choices for skips_bad, and the sentence for other words. */
#define TRACE_BADS 2
#define TRACE_BAD_WRONG                                                                  \
    "lines that make no sense are an error (error) or passed over (skip)"
extern const char *const trace_bads[TRACE_BADS];
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

/* ---- when requests were meant to start ---------------------------------------------- */

/* Where the trace tells only the second (or another step of time): the n of a step are spread
 * over it, in their order, as the arrivals of a Poisson process of which it is known that n came
 * (the order statistics of n uniform numbers, one after another), or evenly. */
enum trace_spread {
    TRACE_SPREAD_EXPONENTIAL,
    TRACE_SPREAD_UNIFORM,
    TRACE_SPREAD_NONE, /* all at its beginning */
};

struct trace_clock {
    enum trace_spread spread;
    struct rng *rng; /* the caller's */
    uint64_t step_ns, begin_ns;
    uint64_t count, left; /* of this step */
    double at;            /* of the last one, of the step, 0 to 1 */
};

/* `count` requests, at least 1, come in the step that begins then. */
void trace_clock_begin(struct trace_clock *c, uint64_t begin_ns, uint64_t count);
/* When the next of them starts: `count` calls, times do not fall. */
uint64_t trace_clock_next(struct trace_clock *c);
