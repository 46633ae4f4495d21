/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The form that laws of sizes and gaps, schedules and popularities are written in,
 * "name:1,2,3" or "name:1:2:3": each of the four is a table of names, the arguments that they
 * take, and what makes the thing of them. Pure.
 */
#pragma once

#include "base/must.h"

/* ---- duration ---------------------------------------------------------------------- */

/* Lengths of time as people write them: "0.5", "250us", "10ms", "5s", "2m", "24h". Pure. */
/* Seconds; false when it is none, or below 0. */
must_check bool duration_parse(const char *text, size_t len, double *seconds);

/* ---- form -------------------------------------------------------------------------- */

#define FORM_ARGS_MAX 4
#define FORM_CV_MAX 10
#define FORM_EXPONENT_MAX 20
#define FORM_RATE_MAX 1e8
#define FORM_TIME_MAX_S 1e9

/* What an argument may be: a number within bounds (form.c), or of another kind. */
enum form_type {
    FORM_NONE, /* behind the last */
    FORM_ANY,
    FORM_FROM_0,
    FORM_ABOVE_0,
    FORM_SHARE,        /* 0 to 1 */
    FORM_SHARE_ABOVE,  /* above 0, to 1 */
    FORM_SHARE_WITHIN, /* above 0, below 1 */
    FORM_EXPONENT,     /* 0 to 20, of a law of Zipf */
    FORM_CV,           /* ratio of deviation to mean, 0 to 10 */
    FORM_SHAPE,        /* 0.001 to a million */
    FORM_SHAPE_TENTH,  /* 0.1 to a million */
    FORM_SCV,          /* squared ratio, 1 to a million */
    FORM_RATE,         /* N[k|m] a second, or N% */
    FORM_TIME,         /* as durations are written; a microsecond to 1e9 seconds */
};

struct form;

struct form_args {
    const struct form *form; /* whose they are */
    unsigned count;
    double value[FORM_ARGS_MAX];
    bool is_share[FORM_ARGS_MAX]; /* RATE: in percent; its value is a share then */
};

struct form {
    const char *name;
    unsigned least; /* arguments that must be there */
    enum form_type args[FORM_ARGS_MAX];
    /* NULL, or a sentence. */
    const char *(*make)(void *into, const struct form_args *a);
    int kind;          /* for make */
    const char *usage; /* the sentence for other arguments; NULL: that of the table */
};

struct form_table {
    const struct form *rows;
    size_t count;
    char separator;
    const char *unknown; /* the sentence for another name */
};

#define FORM_TABLE(rows, separator, unknown)                                             \
    {                                                                                    \
        rows, sizeof rows / sizeof rows[0], separator, unknown                           \
    }

/* NULL, or a sentence saying what is wrong. */
must_check const char *form_parse(const struct form_table *t, void *into,
                                  const char *text, size_t len);
/* Whether the text begins so; then it begins behind that. */
bool form_take(const char **text, size_t *len, const char *prefix);

/* ---- files of numbers ------------------------------------------------------------------- */

/* One or two in each line, separated by blanks, a comma or a tab; what follows a '#' and empty
 * lines do not count. Start-up thread. */
#define NUMFILE_ROWS_MAX (1 << 27) /* a bound on the memory that a file can take */

struct numfile {
    size_t rows;
    unsigned columns; /* 1 or 2, the same in all rows */
    double *values;   /* rows * columns */
};

/* NULL, or a sentence saying what is wrong (a buffer that the next call overwrites). */
must_check const char *numfile_read(struct numfile *f, const char *path);
void numfile_fini(struct numfile *f);
