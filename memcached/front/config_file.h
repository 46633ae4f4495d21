/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A file of options as lines: what is written where, with the files that it includes. It knows
 * no option. One thread at a time.
 *
 *     # a comment
 *     qps-limit = 50k
 *     pin
 *     -m 64
 *     include more.conf
 */
#pragma once

#include "base/must.h"

#define CONFIG_BYTES_MAX (1 << 20) /* of a file */
#define CONFIG_LINE_MAX 4096       /* bytes */
#define CONFIG_FILES_MAX 256       /* read in all */
#define CONFIG_LINES_MAX 10000     /* with options, in all */
#define CONFIG_DEPTH_MAX 16        /* of files that include files */
#define CONFIG_ERRORS_MAX 100      /* that are shown */

struct config_line {
    const char *file; /* absolute */
    unsigned number;  /* from 1 */
    char *name;       /* without dashes, unless it is a letter: "-m" */
    char *value;      /* NULL: none */
};

struct config_file {
    struct config_line *lines;
    size_t count, room;
    char **texts; /* what the lines and the files' names are parts of */
    size_t text_count;
    unsigned files, errors;
};

/* Appends the lines of a file and of what it includes. What is wrong is printed, a line each;
 * false then, with all lines that are right. `path` is absolute. */
must_check bool config_file_read(struct config_file *c, const char *path, FILE *err);
void config_file_fini(struct config_file *c);

/* One line without its end, which is cut in place: *name NULL: there is nothing in it. NULL, or
 * what is wrong. */
const char *config_file_split(char *text, char **name, char **value);
/* Counts an error, for which the caller has printed a line, and says when it is the last to be
 * shown. */
void config_file_blame(struct config_file *c, FILE *err);
