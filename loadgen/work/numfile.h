/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Files of numbers: one or two in each line, separated by blanks, a comma or a tab; what
 * follows a '#' and empty lines do not count. Start-up thread.
 */
#pragma once

#include <stddef.h>

#include "base/must.h"

#define NUMFILE_ROWS_MAX 100000000 /* a bound on the memory that a file can take */

struct numfile {
    size_t rows;
    unsigned columns; /* 1 or 2, the same in all rows */
    double *values;   /* rows * columns */
};

/* NULL, or a sentence saying what is wrong (a buffer that the next call overwrites). */
must_check const char *numfile_read(struct numfile *f, const char *path);
void numfile_fini(struct numfile *f);
