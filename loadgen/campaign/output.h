/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where results go: the report, and the files asked for beside it. Main thread.
 *
 *     output_open before the run, so that a bad name does not cost the result;
 *     output_report once or more; output_close
 */
#pragma once

#include "loadgen/measure/machine.h"
#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"

enum output_to {
    OUTPUT_REPORT,
    OUTPUT_JSON, /* the report's stream with --format=json */
    OUTPUT_SAVE, /* samples */
    OUTPUT_HLOG, /* intervals */
    OUTPUT_FILES,
};

struct output {
    const struct options *o;
    int argc; /* as typed, for the JSON */
    char **argv;
    /* NULL: not asked for; the report goes to stdout then */
    const char *names[OUTPUT_FILES];
    FILE *to[OUTPUT_FILES];
    bool was_made[OUTPUT_FILES]; /* it was not there before */
    FILE *err;
    struct machine env;
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
