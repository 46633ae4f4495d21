/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * TLS of client connections, by OpenSSL. A struct ltls is what all connections share,
 * constant once open; a session belongs to the thread of its connection. Nothing is
 * allocated for a request once the handshake is over.
 */
#pragma once

#include "base/must.h"
#include "loadgen/wire/link.h"

struct ltls_conf {
    const char *ca;    /* file of authorities; NULL: the system's */
    const char *cert;  /* of this client, with its chain; NULL: none */
    const char *key;   /* NULL: in the same file */
    unsigned verifies; /* 1: the server's certificate, and its name */
};

/* NULL with a sentence in err, also when this build has no TLS. */
must_check struct ltls *ltls_open(const struct ltls_conf *conf, char *err,
                                  size_t err_len);
/* NULL is fine. When all sessions have ended. */
void ltls_close(struct ltls *t);

/* Of a session; all NULL in a build without TLS, where there is none. */
struct ltls_ops {
    /* Over that socket with a server called so; NULL when memory is short. The thread's
     * SIGPIPE is blocked from then on: OpenSSL writes to sockets without a word about it. */
    struct ltls_session *(*begin)(struct ltls *t, int fd, const char *host);
    void (*end)(struct ltls_session *s);
    /* As link_go_on, link_send and link_receive. *why lives as long as the thread. */
    enum link_io (*shake_hands)(struct ltls_session *s, bool *wants_write,
                                const char **why);
    enum link_io (*send)(struct ltls_session *s, const char *bytes, size_t len,
                         size_t *sent, bool *wants_write);
    enum link_io (*receive)(struct ltls_session *s, char *to, size_t room, size_t *len,
                            bool *has_more);
};
extern const struct ltls_ops ltls_ops;
