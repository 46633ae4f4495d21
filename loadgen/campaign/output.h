/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where results go: the report, and the files asked for beside it. Main thread.
 *
 *     output_open before the run, so that a bad name does not cost the result;
 *     output_report once or more; output_close
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "loadgen/measure/machine.h"
#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"

#define OUTPUT_FILES 4

struct output {
    const struct options *o;
    int argc; /* as typed, for the JSON */
    char **argv;
    FILE *report; /* stdout, or a file */
    FILE *json;   /* report with --format=json; NULL: not asked for */
    FILE *save;   /* samples; NULL: not asked for */
    FILE *hlog;   /* intervals; NULL: not asked for */
    FILE *err;
    struct machine env;
    const char *made[OUTPUT_FILES]; /* files that were not there before */
    unsigned made_len;
    bool has_begun;
    nsec_t first_start; /* of the first run's window, when has_first */
    bool has_first;
};

/* False with a line on err. Arguments live longer than out. */
must_check bool output_open(struct output *out, const struct options *o, int argc,
                            char **argv, FILE *err);
/* Empties the files: there is something to be written. Without it output_close removes those that
 * were not there before and leaves the others alone. */
void output_begin(struct output *out);
/* The report of one result, but for JSON, and the files with only that in them. `is_first`: of
 * all, some forms begin with names. False with a line on err when one could not be written. */
must_check bool output_report(struct output *out, const struct result *r, bool is_first);
/* False with a line on err when what was written did not arrive. stdout stays open. */
must_check bool output_close(struct output *out);
/* Closes a stream. False when not all of it was written, with errno. */
must_check bool output_end(FILE *f);
