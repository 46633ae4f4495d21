/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the HTTP server answers while the server starts and stops, when nothing of it may be read,
 * and whether it is healthy; and the stream into memory.
 */
#include "admin/health.h"
#include "base/text_out.h"
#include "front/stats.h"

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

/* A page of plain text that begins so. */
static void
expect_page(struct admin_view *view, const char *path, int status, const char *content)
{
    struct http_exchange x = {.path = path, .status = HTTP_OK, .type = HTTP_PLAIN};
    struct text_out out;
    ck_assert(text_out_open(&out));
    x.out = out.file;
    admin_answer(view, &x);
    ck_assert(text_out_close(&out));
    ck_assert_int_eq(x.status, status);
    ck_assert_str_eq(x.type, HTTP_PLAIN);
    ck_assert(!x.has_failed && out.len >= strlen(content));
    ck_assert_mem_eq(out.bytes, content, strlen(content));
    free(out.bytes);
}

TEST_ROWS(pages_without_a_server, rows, row->path)
{
    struct admin_view view = {.state = row->state};
    expect_page(&view, row->path, row->status, row->content);
}

/* While the server serves, by what its listeners say. */
static const struct {
    const char *name;
    bool is_open;
    unsigned paused, connections;
    int status;
    const char *content;
} listening[] = {
    {"accepts", true, 0, 9, HTTP_OK, "ok\n"},
    {"is full", true, 0, 10, HTTP_SERVUNAVAIL,
     "all 10 connections of clients are in use (-c)\n"},
    {"is full and waits", true, 1, 10, HTTP_SERVUNAVAIL,
     "all 10 connections of clients are in use (-c)\n"},
    {"has no descriptors", true, 1, 9, HTTP_SERVUNAVAIL, "out of file descriptors\n"},
    {"does not listen yet", false, 0, 0, HTTP_SERVUNAVAIL, "starting\n"},
};

TEST_ROWS(health_while_serving, listening, row->name)
{
    struct net_shared shared = {.open_conns = row->connections};
    struct listen listen = {
        .conf.max_conns = 10, .paused = row->paused, .is_open = row->is_open};
    struct stats stats = {.shared = &shared, .listen = &listen};
    FREED struct health *health = health_create(0, 0);
    struct admin_view view = {.state = ADMIN_SERVING, .stats = &stats, .health = health};
    expect_page(&view, "/health", row->status, row->content);
    expect_page(&view, "/health/live", HTTP_OK, "ok\n");
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
