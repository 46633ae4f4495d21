/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * First lines of files.
 */
#include "base/file.h"

#include "check_main.h"

static const struct {
    const char *text, *line;
    bool is_read;
} cases[] = {
    {"", "", false},
    {"\n", "", true},
    {"a b\n", "a b", true},
    {"a\nb\n", "a", true},
    {"no end", "no end", true},
    {"1234567\n", "1234567", true},
    {"12345678", "1234567", true},
};

TEST_LOOP(first_line_is_read, ROWS(cases))
{
    char path[SCRATCH_PATH], line[8] = "before";
    scratch_file(path, cases[_i].text, strlen(cases[_i].text));
    ck_assert_int_eq(file_read_line(path, line, sizeof line), cases[_i].is_read);
    ck_assert_str_eq(line, cases[_i].line);
    unlink(path);
    ck_assert(!file_read_line(path, line, sizeof line));
    ck_assert_str_eq(line, "");
}
