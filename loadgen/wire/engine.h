/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How a thread waits for its connections and takes in what they receive: by epoll and recv,
 * or by io_uring; and the sockets and the clock beneath it, which unit tests replace. Each send
 * is a system call of its own, so that a request is stamped with the time at which it goes.
 * Called by lset.c only.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/wire/link.h"

struct lset;
struct lset_bytes;
struct lconn;
enum lset_input;

struct engine {
    const char *name; /* for --engine */
    /* Without TLS and datagrams. */
    bool is_plain;
    /* Sets s->waiter up for all of s->conns: NULL, or why it cannot (lives as long as the
     * thread). */
    const char *(*open)(struct lset *s);
    /* Also after a failed open, or none. */
    void (*close)(struct lset *s);
    /* Tells from now on when c can receive (for_send alone while it connects), and when it
     * can send if asked to. False with errno. */
    bool (*watch)(struct lset *s, struct lconn *c, bool for_send);
    /* c's socket is about to be closed. */
    void (*forget)(struct lset *s, struct lconn *c);
    /* The rest is as lset.h says. */
    unsigned (*wait)(struct lset *s, int timeout_ms);
    struct lconn *(*event)(struct lset *s, unsigned i, unsigned *can);
    void (*wake_at)(struct lset *s, nsec_t when);
    enum lset_input (*receive)(struct lset *s, struct lconn *c, struct lset_bytes *in);

    /* As link.h says: link_open, link_go_on and link_send of sockets. */
    enum link_io (*dial)(struct link *l, const struct link_conf *conf, const char **why);
    enum link_io (*dial_on)(struct link *l, const struct link_conf *conf,
                            const char **why);
    enum link_io (*send)(struct link *l, const char *bytes, size_t len, size_t *sent);
    nsec_t (*now)(void);
};
#define ENGINE_OF_SOCKETS                                                                \
    .dial = link_open, .dial_on = link_go_on, .send = link_send, .now = clock_now

extern const struct engine engine_epoll, engine_uring;

/* The engines of this build, the default first; NULL behind the last. */
extern const struct engine *const engine_all[];
/* NULL: none is called so. */
const struct engine *engine_find(const char *name);
