/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Workloads: texts for the options that a name stands for (models.def), or that a text of the
 * user's own gives: a line each,
 *
 *     # comments, and nothing, are lines as well
 *     keysize = normal:30,5
 *     ops = get:90,set:10
 *
 * with ';' as good as the end of a line. Pure.
 */
#pragma once

#include "base/must.h"

/* Stands before a text where the name of a workload or of a file could stand, too. */
#define MODEL_TEXT "text:"

/* The long names of options. */
enum model_field {
    MODEL_KEYSIZE,
    MODEL_VALUESIZE,
    MODEL_POPULARITY,
    MODEL_OPS,
    MODEL_EXPIRY,
    MODEL_ARRIVALS,
    MODEL_ON_MISS,
    /* No name has those from here on. */
    MODEL_GETCOUNT,
    MODEL_MISS_RATIO,
    MODEL_ONE_HIT,
    MODEL_CHURN,
    MODEL_VALUE_SIZE_PER,
    MODEL_KEY_FORMAT,
    MODEL_KEY_PREFIX,
    MODEL_FLAGS,
    MODEL_RECORDS,
    MODEL_FIELDS,
};

struct model {
    const char *name;
    const char *about;               /* NULL: nothing is told */
    const char *texts[MODEL_FIELDS]; /* NULL: it does not say */
    unsigned lines[MODEL_FIELDS];    /* where it says so, from 1; 0: it has a name */
};

/* NULL when there is none of that name. */
const struct model *model_find(const char *name);
/* What may have been meant: '-', '_' and ':' are alike, and so is the case. NULL: nothing. */
const struct model *model_like(const char *name);
/* All of them with what they stand for, as options. */
void model_help(FILE *out);

extern const char *const model_field_names[MODEL_FIELDS];

/* Fills in the texts that are told, and their lines. `text` ends with a 0 behind its `len` bytes,
 * is cut in place and lives as long as m, whose name and about are kept. NULL, or a sentence (a
 * buffer that the next call overwrites) with *line. */
must_check const char *model_parse(struct model *m, char *text, size_t len,
                                   unsigned *line);
/* As such a text, one line each. */
void model_print(const struct model *m, FILE *out);
/* In one word of less than `cap` bytes, with ';'. False when there is no room, or a text has
 * a ';' or a blank itself. */
must_check bool model_put(const struct model *m, char *dst, size_t cap);
