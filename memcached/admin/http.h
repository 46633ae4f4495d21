/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * An HTTP server: GET and HEAD, one request a connection, and bounds on what a client can hold:
 * connections, bytes of a request, and time. libevent's own neither bounds connections nor
 * outlives the want of memory. One thread: that of its base.
 */
#pragma once

#include "base/must.h"

struct event_base;

#define HTTP_CONNECTIONS 16        /* at a time; one more takes the oldest's place */
#define HTTP_HEADER_BYTES 8192     /* of a request's first line and headers */
#define HTTP_IDLE_SECONDS 5        /* without a byte from the client, or taken by it */
#define HTTP_CONNECTION_SECONDS 20 /* in all */

#define HTTP_OK 200
#define HTTP_BADREQUEST 400
#define HTTP_NOTFOUND 404
#define HTTP_BADMETHOD 405
#define HTTP_TOO_LONG 431
#define HTTP_SERVUNAVAIL 503

#define HTTP_PLAIN "text/plain; charset=utf-8"
#define HTTP_LOAD_NOTHING "default-src 'none'; frame-ancestors 'none'"

/* A GET or HEAD, and what it is answered. */
struct http_exchange {
    const char *path;   /* without escapes */
    char *query;        /* behind '?', as it was sent; NULL: none */
    const char *accept; /* the header of this name; NULL: none */
    int status;         /* of the reply; 200 unless it is set */
    const char *type;   /* of its content; plain text unless it is set */
    const char *policy; /* Content-Security-Policy; nothing loads unless it is set */
    FILE *out;          /* its content */
    bool has_failed;    /* there was no memory for it: 503 */
};
typedef void http_handler(void *ctx, struct http_exchange *x);

/* The value of a parameter of the query, without escapes; NULL: there is none of this name. Takes
 * the query apart: one can be asked for. */
const char *http_parameter(struct http_exchange *x, const char *name);

struct http;

/* Listens at `where`, "ADDR:PORT" or "unix:PATH" with those permission bits, on the base. NULL
 * with a sentence in err. */
must_check struct http *http_open(struct event_base *base, const char *where,
                                  unsigned socket_mode, http_handler *handle, void *ctx,
                                  char *err, size_t err_len);
/* Whether others than this machine may reach it. */
bool http_is_remote(const struct http *h);
/* Closes all connections. Before its base is freed. */
void http_close(struct http **h);
