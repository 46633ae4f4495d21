/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A build without TLS: nobody gets a struct ltls, so the rest is never reached.
 */
#include "loadgen/wire/ltls.h"

#include <stdio.h>

struct ltls *
ltls_open(const struct ltls_conf *conf, char *err, size_t err_len)
{
    (void)conf;
    snprintf(err, err_len, "this mcload is not built with TLS support");
    return NULL;
}

void
ltls_close(struct ltls *t)
{
    must(t == NULL);
}

struct ltls_session *
ltls_begin(struct ltls *t, int fd, const char *host)
{
    (void)t;
    (void)fd;
    (void)host;
    unreachable();
}

void
ltls_end(struct ltls_session *s)
{
    (void)s;
    unreachable();
}

enum link_io
ltls_shake_hands(struct ltls_session *s, bool *wants_write, const char **why)
{
    (void)s;
    (void)wants_write;
    (void)why;
    unreachable();
}

enum link_io
ltls_send(struct ltls_session *s, const char *bytes, size_t len, size_t *sent,
          bool *wants_write)
{
    (void)s;
    (void)bytes;
    (void)len;
    (void)sent;
    (void)wants_write;
    unreachable();
}

enum link_io
ltls_receive(struct ltls_session *s, char *to, size_t room, size_t *len, bool *has_more)
{
    (void)s;
    (void)to;
    (void)room;
    (void)len;
    (void)has_more;
    unreachable();
}
