/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The lists of -l: reading them, and finding the addresses to bind. Main thread.
 */
#pragma once

#include "base/must.h"
#include "qos/class.h"
#include "serve/env.h"
#include "sock/tls.h"

struct addrinfo;

#define HOSTS_NAME_MAX 256
#define HOSTS_TAG_MAX 8 /* bytes of a listener's tag */
#define HOSTS_PORT_NONE (-1)

/* What ";class=NAME" and ";control" behind an address or a path say of its connections. */
struct hosts_marks {
    enum req_class declared; /* or CLASS_NONE */
    bool has_control;        /* they may change how others are served */
};

/* One element of a list. */
struct hosts_element {
    char host[HOSTS_NAME_MAX]; /* empty: any address */
    int port;                  /* or HOSTS_PORT_NONE */
    enum serve_binding binding;
    enum tls_mode tls;
    char tag[HOSTS_TAG_MAX + 1]; /* empty: none */
    struct hosts_marks marks;
};

enum hosts_status { HOSTS_OK, HOSTS_END, HOSTS_BAD };

/* What elements may start with. */
struct hosts_rules {
    bool has_prefixes; /* "proto[...]:" and "tag[...]:" or "tag_..._:" */
    bool has_tls; /* "notls:", "btls:" and "mtls:", behind those; else an element that
                        * has prefixes may not have these */
};

/* Takes the next element off *list: "host", "host:port", "[v6]", "[v6]:port", a v6 address
 * without a port, "*", after prefixes and before marks. Elements are separated by commas and
 * semicolons. BAD: a sentence in err. */
must_check enum hosts_status hosts_next(const char **list, struct hosts_rules rules,
                                        struct hosts_element *element, char *err,
                                        size_t err_len);

/* Takes marks off *text, up to what is none. False with a sentence in err. */
must_check bool hosts_take_marks(const char **text, struct hosts_marks *marks, char *err,
                                 size_t err_len);
/* Where the marks behind a path begin: its end without any. */
const char *hosts_find_marks(const char *path);

struct hosts_spec {
    const char *list; /* NULL: all addresses */
    struct hosts_rules rules;
    int port;             /* of elements without one; 0: the kernel chooses */
    int socket_type;      /* SOCK_STREAM, SOCK_DGRAM */
    const char *protocol; /* for messages */
    /* Binds one address: 0, or the errno. */
    int (*bind)(void *ctx, const struct addrinfo *ai,
                const struct hosts_element *element);
    void *ctx;
};

/* Binds all addresses of all elements. An address in use is tolerated when another of the
 * same element could be bound; a family that the machine does not have is passed over. False
 * with a sentence in err. */
must_check bool hosts_bind(const struct hosts_spec *ask, char *err, size_t err_len);
