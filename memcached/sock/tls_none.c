/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A build without TLS: there is no struct tls, so the rest is never reached.
 */
#include "sock/tls.h"

const char *
tls_version_name(unsigned min_version)
{
    (void)min_version;
    return NULL;
}

struct tls *
tls_open(const struct tls_conf *conf, char *err, size_t err_len)
{
    (void)conf;
    snprintf(err, err_len, "This server is not built with TLS support.");
    return NULL;
}

bool
tls_reload(struct tls *t, uint32_t now, char *err, size_t err_len)
{
    (void)t;
    (void)now;
    (void)err;
    (void)err_len;
    unreachable();
}

uint32_t
tls_loaded_at(const struct tls *t)
{
    (void)t;
    unreachable();
}

void
tls_close(struct tls **t)
{
    (void)t;
}

bool
tls_thread_init(struct tls_thread *thread, const struct tls *t)
{
    (void)thread;
    return t == NULL;
}

void
tls_thread_fini(struct tls_thread *thread)
{
    (void)thread;
}

struct tls_session *
tls_begin(struct tls *t, int fd, enum tls_mode mode)
{
    (void)t;
    (void)fd;
    (void)mode;
    unreachable();
}

enum tls_io
tls_handshake(struct tls_session *s, struct tls_thread *thread)
{
    (void)s;
    (void)thread;
    unreachable();
}

bool
tls_is_agreed(const struct tls_session *s)
{
    (void)s;
    unreachable();
}

enum tls_io
tls_recv(struct tls_session *s, struct tls_thread *thread, char *to, size_t room,
         size_t *got, bool *has_more)
{
    (void)s;
    (void)thread;
    (void)to;
    (void)room;
    (void)got;
    (void)has_more;
    unreachable();
}

bool
tls_was_held(const struct tls_session *s)
{
    (void)s;
    unreachable();
}

enum tls_io
tls_send(struct tls_session *s, struct tls_thread *thread, const struct iovec *iov,
         unsigned runs, size_t *sent)
{
    (void)s;
    (void)thread;
    (void)iov;
    (void)runs;
    (void)sent;
    unreachable();
}

bool
tls_is_committed(const struct tls_session *s)
{
    (void)s;
    unreachable();
}

const char *
tls_reason(const struct tls_session *s)
{
    (void)s;
    unreachable();
}

void
tls_end(struct tls_session **s)
{
    (void)s;
}
