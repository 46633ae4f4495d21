/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a test writes to its standard error.
 */
#pragma once

#include <unistd.h>

#include "check_unit.h"

static FILE *captured;

static inline void
capture_stderr(void)
{
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    fflush(stderr);
    ck_assert_int_ge(dup2(fileno(captured), STDERR_FILENO), 0);
}

static inline void
end_capture(void)
{
    fclose(captured);
}

/* What has been written since the last call. */
static inline const char *
written(void)
{
    static char text[65536];
    static long mark;
    fflush(stderr);
    ck_assert_int_eq(fseek(captured, mark, SEEK_SET), 0);
    size_t n = fread(text, 1, sizeof text - 1, captured);
    text[n] = '\0';
    mark += (long)n;
    ck_assert_int_eq(fseek(captured, mark, SEEK_SET), 0);
    return text;
}
