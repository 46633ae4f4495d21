/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The HTTP server of --admin when more clients come than it has room for. What it answers:
 * t/73-admin.t.
 */
#include "admin/http.h"

#include <event2/event.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check_main.h"

#define PASSES 64 /* of the loop: one for each connection, and some */

static void
answer(void *ctx, struct http_exchange *x)
{
    fputs(ctx, x->out);
}

static int
connect_to(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(addr.sun_path, path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    return fd;
}

static void
run(struct event_base *base)
{
    for (unsigned i = 0; i < PASSES; i++) {
        ck_assert_int_ge(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    }
}

TEST(one_more_takes_the_place_of_the_oldest)
{
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    static char text[] = "here";
    char path[SCRATCH_PATH], where[SCRATCH_PATH + 8], err[256], got[1024] = "";
    int silent[HTTP_CONNECTIONS];
    scratch_file(path, "", 0);
    unlink(path);
    snprintf(where, sizeof where, "unix:%s", path);
    struct event_base *base = event_base_new();
    struct http *h = http_open(base, where, 0700, answer, text, err, sizeof err);
    ck_assert_ptr_nonnull(h);
    for (int i = 0; i < ROWS(silent); i++) {
        silent[i] = connect_to(path);
    }
    run(base);
    int one = connect_to(path);
    ck_assert_int_eq(send(one, request, strlen(request), 0), strlen(request));
    run(base);
    ck_assert_int_gt(recv(one, got, sizeof got - 1, MSG_DONTWAIT), 0);
    expect_part(got, "HTTP/1.1 200 OK\r\n");
    expect_part(got, "\r\n\r\nhere");
    ck_assert_int_eq(recv(silent[0], got, sizeof got, MSG_DONTWAIT), 0);
    for (int i = 0; i < ROWS(silent); i++) {
        close(silent[i]);
    }
    close(one);
    http_close(&h);
    event_base_free(base);
}
