/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The writer of JSON: what is a number, and what of any bytes is left valid.
 */
#include "base/json.h"

#include "check_main.h"

static const struct {
    const char *value, *written;
} rows[] = {
    {"0", "0"},
    {"-1", "-1"},
    {"18446744073709551615", "18446744073709551615"},
    {"0.50", "0.50"},
    {"1e9", "1e9"},
    {"1E-9", "1E-9"},
    {"", "\"\""},
    {"-", "\"-\""},
    {"007", "\"007\""},
    {"00", "\"00\""},
    {"1.", "\"1.\""},
    {".5", "\".5\""},
    {"+1", "\"+1\""},
    {"1e", "\"1e\""},
    {"0x10", "\"0x10\""},
    {"1.6.45", "\"1.6.45\""},
    {"nan", "\"nan\""},
    {"1e999", "\"1e999\""},
    {"50%", "\"50%\""},
    {" 1", "\" 1\""},
    {"a\"b\\c\n\x01\x7f\xff", "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\\u00ff\""},
};

TEST_ROWS(values, rows, row->value)
{
    FREED char *text = NULL;
    size_t len;
    struct json j;
    FILE *out = open_memstream(&text, &len);
    json_init(&j, out);
    json_open(&j, NULL, '[');
    json_put(&j, json_of_value(NULL, row->value));
    json_close(&j, ']');
    ck_assert_int_eq(fclose(out), 0);
    char want[128];
    snprintf(want, sizeof want, "[%s]\n", row->written);
    ck_assert_str_eq(text, want);
}
