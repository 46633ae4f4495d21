/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Listening sockets: opening them, accepting, and handing connections to the workers in
 * turn. Main thread only, except the counters, which any thread may read.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "net/hosts.h"
#include "net/registry.h"
#include "qos/class.h"
#include "serve/env.h"

struct worker;
struct net_shared;

#define LISTEN_PORT_OFF 0
#define LISTEN_PORT_ANY (-1) /* the kernel chooses */

struct listen_conf {
    const char *addresses;   /* net/hosts.h; NULL: all */
    bool has_prefixes;       /* elements may start with proto[...]: and tag[...]: */
    int port, udp_port;      /* or LISTEN_PORT_* */
    const char *socket_path; /* UNIX socket instead of the network; NULL: none */
    unsigned socket_mode;    /* permission bits */
    int backlog;
    unsigned max_conns;
    bool rejects_fast;     /* over the limit: answer and close instead of waiting */
    const char *port_file; /* where the ports are written down; NULL: nowhere */
};

struct listener {
    int fd;
    struct event event;
    struct registry_entry entry;
    enum serve_binding binding;
    enum req_class declared;     /* of what is accepted here, or CLASS_NONE */
    char tag[HOSTS_TAG_MAX + 1]; /* empty: none */
    struct listen *owner;
};

struct listen {
    struct listen_conf conf;
    struct net_shared *shared;
    struct event_base *base;
    struct worker *workers;
    unsigned worker_count, next_worker;
    struct listener **list;
    unsigned count;
    bool is_paused; /* out of connections or descriptors: nothing is accepted */
    bool is_closed;
    dev_t
        socket_dev; /* of the UNIX socket's file: it may be another server's by the end */
    ino_t socket_ino;
    struct event resume_event;
    nsec_t paused_at;
    ctr_t rejected, disabled_times, disabled_us;
    _Atomic bool is_accepting;
};

/* Opens every socket of conf, those of UDP in `shared`. False with a sentence in err. */
must_check bool listen_open(struct listen *l, const struct listen_conf *conf,
                            struct net_shared *shared, char *err, size_t err_len);
/* Starts accepting on the calling thread's base. */
void listen_start(struct listen *l, struct event_base *base, struct worker *workers,
                  unsigned count);
/* No new connections from here on; the sockets are closed. */
void listen_close(struct listen *l);
void listen_fini(struct listen *l);
