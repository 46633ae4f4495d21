/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the HTTP server answers while the server starts and stops, when nothing of it may be read;
 * and its stream into memory.
 */
#include "admin/page.h"
#include "base/text_out.h"

#include "check_main.h"

static const struct {
    const char *path;
    enum admin_state state;
    int status;
    const char *content;
} rows[] = {
    {"/health", ADMIN_STARTING, HTTP_SERVUNAVAIL, "starting\n"},
    {"/health/ready", ADMIN_STARTING, HTTP_SERVUNAVAIL, "starting\n"},
    {"/health/live", ADMIN_STARTING, HTTP_OK, "ok\n"},
    {"/metrics", ADMIN_STARTING, HTTP_SERVUNAVAIL, "starting\n"},
    {"/stats.json", ADMIN_STARTING, HTTP_SERVUNAVAIL, "starting\n"},
    {"/health", ADMIN_STOPPING, HTTP_SERVUNAVAIL, "stopping\n"},
    {"/health/ready", ADMIN_STOPPING, HTTP_SERVUNAVAIL, "stopping\n"},
    {"/health/live", ADMIN_STOPPING, HTTP_OK, "ok\n"},
    {"/metrics", ADMIN_STOPPING, HTTP_SERVUNAVAIL, "stopping\n"},
    {"/stats.json", ADMIN_STOPPING, HTTP_SERVUNAVAIL, "stopping\n"},
    {"/health/", ADMIN_STARTING, HTTP_NOTFOUND, "nothing is here; "},
};

TEST_ROWS(pages_without_a_server, rows, row->path)
{
    struct admin_view view = {.state = row->state};
    struct http_exchange x = {.path = row->path, .status = HTTP_OK, .type = HTTP_PLAIN};
    struct text_out out;
    ck_assert(text_out_open(&out));
    x.out = out.file;
    admin_answer(&view, &x);
    ck_assert(text_out_close(&out));
    ck_assert_int_eq(x.status, row->status);
    ck_assert_str_eq(x.type, HTTP_PLAIN);
    ck_assert(!x.has_failed && out.len >= strlen(row->content));
    ck_assert_mem_eq(out.bytes, row->content, strlen(row->content));
    free(out.bytes);
}

TEST(stream_of_many_sizes)
{
    struct text_out out;
    FREED char *part = calloc(1, 20000);
    size_t total = 0;
    ck_assert(text_out_open(&out));
    for (size_t n = 0; n < 20000; n += 1 + n / 3) {
        ck_assert_uint_eq(fwrite(part, 1, n, out.file), n);
        fputc('x', out.file);
        total += n + 1;
    }
    ck_assert(text_out_close(&out));
    ck_assert_uint_eq(out.len, total);
    ck_assert_int_eq(out.bytes[total - 1], 'x');
    free(out.bytes);
}

TEST(stream_of_nothing)
{
    struct text_out out;
    ck_assert(text_out_open(&out));
    ck_assert(text_out_close(&out));
    ck_assert_uint_eq(out.len, 0);
    free(out.bytes);
}
