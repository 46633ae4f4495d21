/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Listening sockets: opening them, and which thread accepts on which (net/accept.h): the
 * main thread, or with --steer=reuseport each worker on listeners of its own. Main thread
 * only, except the counters, which any thread may read and acceptors write.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "net/hosts.h"
#include "qos/steer.h"
#include "serve/env.h"
#include "sock/inherited.h"
#include "sock/poller.h"
#include "sock/registry.h"
#include "sock/reuseport.h"
#include "sock/unix_listen.h"

struct handoff;
struct net_shared;
struct worker;

#define LISTEN_PORT_OFF 0
#define LISTEN_PORT_ANY (-1) /* the kernel chooses */

/* Whose connections may change how others are served; never datagrams. */
enum listen_control {
    LISTEN_CONTROL_LOCAL,  /* those of UNIX sockets, loopback and marked listeners */
    LISTEN_CONTROL_MARKED, /* those of marked listeners alone */
    LISTEN_CONTROL_ANY,
};

struct listen_conf {
    const char *addresses;    /* net/hosts.h; NULL: all */
    struct hosts_rules rules; /* for these */
    int port, udp_port;       /* or LISTEN_PORT_* */
    const char *socket_path;  /* UNIX socket instead of the network; NULL: none */
    unsigned socket_mode;     /* permission bits */
    struct hosts_marks socket_marks;
    const struct inherited *inherited; /* sockets in place of all these; NULL: none */
    enum listen_control control;
    int backlog;
    unsigned max_conns;    /* of clients */
    bool rejects_fast;     /* over the limit: answer and close instead of waiting */
    const char *port_file; /* where the ports are written down; NULL: nowhere */
    enum steer_mode steer;
    unsigned
        napi_ids; /* receive queues that --steer=napi tells apart; 0: as many as it can */
};

/* A listening socket. */
struct listener {
    struct poll_source source;
    bool is_watched;
    bool is_shut; /* by a process that shares it: for good */
    struct registry_entry entry;
    char addr[REGISTRY_ADDR_MAX];
    enum serve_binding binding;
    enum tls_mode tls;
    struct hosts_marks marks;    /* of what is accepted here */
    char tag[HOSTS_TAG_MAX + 1]; /* empty: none */
    bool is_further;             /* of an address that a listener before it has told of */
    struct acceptor *acceptor;
    struct listener *next; /* of the same acceptor */
};

struct acceptor {
    struct listen *listen;
    struct poller *poller; /* NULL: not started, or closed */
    struct worker *self;   /* whose thread it is; NULL: main's */
    int cpu;               /* of self, as the kernel was told */
    struct listener *listeners;
    bool is_watching; /* not while out of connections or descriptors */
    bool is_starved;  /* of descriptors or memory: until a look finds that it is not */
    struct poll_source resume; /* a timer */
    struct handoff *held; /* accepted, and waits for a place under the limit; or NULL */
    struct steer steer;
};

struct listen {
    struct listen_conf conf;
    struct net_shared *shared;
    struct worker *workers; /* while connections are accepted */
    struct listener **list;
    unsigned count;
    unsigned addresses; /* of TCP, or the UNIX socket: what `count` is without further
                           listeners of the same address */
    enum steer_mode steer_mode; /* what conf's has come to */
    enum reuseport_kind kind;   /* how the kernel chooses, when it does */
    struct acceptor main;
    struct acceptor *members; /* one for each worker, or NULL */
    bool is_closed;
    struct unix_file socket_file;
    ctr_t rejected, disabled_times, disabled_us;
    _Atomic unsigned paused;    /* acceptors */
    _Atomic uint64_t paused_at; /* ns, when the first of them paused */
    _Atomic bool is_open;       /* connections are accepted, or will be after a pause */
};

struct steer_sum {
    uint64_t local, near, overflow, fallback, unexpected;
};

/* Opens every socket of conf, those of UDP in `shared`. False with a sentence in err. */
must_check bool listen_open(struct listen *l, const struct listen_conf *conf,
                            struct net_shared *shared, char *err, size_t err_len);
/* After accept_stop, and after the workers have ended. */
void listen_fini(struct listen *l);
/* Any thread. */
bool listen_is_accepting(const struct listen *l);
/* Any thread: the sum of what the acceptors counted. */
struct steer_sum listen_steered(const struct listen *l);
