/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the test server says: requests of memcached's text, meta and binary protocols, of RESP
 * and of HTTP executed against a small store that forgets nothing, and their replies. Written
 * without a line of the programs under test, so that a misunderstanding is not shared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes that grow. */
struct bytes {
    char *p;
    size_t len, cap;
};

void bytes_add(struct bytes *b, const char *p, size_t len);
__attribute__((format(printf, 2, 3))) void bytes_addf(struct bytes *b, const char *fmt,
                                                      ...);

/* What a request was and where its reply's value lies. */
struct spoken {
    char verb[16];
    bool is_read;
    bool closes;                /* the connection, behind the reply */
    size_t value_at, value_len; /* in the reply; len 0: none */
};

struct speak_conf {
    size_t invented;  /* length of values of keys that were never stored, 0: a miss */
    const char *http; /* a header of each HTTP reply, NULL: none */
};

/* Takes one request from buf and appends its reply, which may be nothing. Returns the bytes
 * used, 0 when the request goes on, -1 when it is nonsense. */
ssize_t speak(const struct speak_conf *conf, const char *buf, size_t len,
              struct bytes *reply, struct spoken *what);
/* Appends what says in the protocol of that request that it failed. */
void speak_error(const char *request, struct bytes *reply);
