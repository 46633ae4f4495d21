/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A build without TLS: there is no struct tls, so the rest is never reached.
 */
#include "sock/tls.h"

/* None of these uses what it is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

const char *
tls_version_name(unsigned min_version)
{
    return NULL;
}

struct tls *
tls_open(const struct tls_conf *conf, char *err, size_t err_len)
{
    snprintf(err, err_len, "This server is not built with TLS support.");
    return NULL;
}

bool
tls_reload(struct tls *t, uint32_t now, char *err, size_t err_len)
{
    unreachable();
}

uint32_t
tls_loaded_at(const struct tls *t)
{
    unreachable();
}

void
tls_close(struct tls **t)
{
}

bool
tls_thread_init(struct tls_thread *thread, const struct tls *t)
{
    return t == NULL;
}

void
tls_thread_fini(struct tls_thread *thread)
{
}

struct tls_session *
tls_begin(struct tls *t, int fd, enum tls_mode mode)
{
    unreachable();
}

enum tls_io
tls_handshake(struct tls_session *s, struct tls_thread *thread)
{
    unreachable();
}

enum tls_io
tls_recv(struct tls_session *s, struct tls_thread *thread, char *to, size_t room,
         size_t *got, bool *has_more)
{
    unreachable();
}

enum tls_io
tls_send(struct tls_session *s, struct tls_thread *thread, const struct iovec *iov,
         unsigned runs, size_t *sent)
{
    unreachable();
}

void
tls_end(struct tls_session **s)
{
}
