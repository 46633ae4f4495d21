/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What all workers share: set up by main before the first one starts. The owner of each
 * field and its readers are in doc/threads.md.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "core/core.h"
#include "qos/steer.h"
#include "serve/env.h"
#include "sock/busypoll.h"
#include "sock/registry.h"
#include "sock/tls.h"
#include "sock/udp_open.h"

struct governor;
struct membind;
struct peer;
struct pinner;
struct prefixes;
struct resctrl;
struct scheduling;
struct stint;
struct store;
struct watch;
struct watchers;
struct worker;

/* How the workers answer the thread that starts and ends them (net/worker_pool.h). */
struct worker_pool {
    sem_t ready; /* posted by each worker once it is pinned and can take connections */
    sem_t go;    /* posted for each worker once all are: none serves before */
    sem_t ended; /* posted by each worker as the last thing it does */
    unsigned started;
};

struct net_shared {
    struct store *store;
    const struct serve_conf *serve;
    const struct serve_hooks *hooks;
    struct watch *watch;
    struct watchers *watchers;
    struct prefixes *prefixes;
    struct tls *tls; /* NULL: TLS is off */
    struct registry registry;
    struct udp_sockets udp;
    struct core_shared core;
    struct governor *governor; /* main owns it */
    struct pinner *pinner;
    const struct membind *membind;
    const struct scheduling *schedule;
    const struct resctrl *resctrl;
    struct busypoll busy_poll;
    struct worker_pool worker_pool;
    uint32_t idle_seconds; /* connections idle for longer are closed; 0: none */
    unsigned worker_count;
    uint64_t peer_seed;          /* of peers' keys */
    uint64_t buffer_bytes;       /* read_buf_mem_limit, of all workers; 0: none */
    _Atomic unsigned open_conns; /* accepted and not yet destroyed */
    ctr_t total_conns;           /* acceptors write, ctr_add_shared */
    _Atomic unsigned *loads;     /* connections that each worker has or will get */
    struct steer_map steer;
    struct worker *workers;
    struct stint *stints;            /* of the workers (net/stint.h) */
    _Atomic bool has_stopped_moving; /* no connection goes to another worker any more */
    _Atomic unsigned last_move;      /* enum balance_reason */
    bool calls_home; /* connections go to where their packets arrive, also later on */
    bool checks_rx;  /* it is sampled whether workers run where their input arrives */
};

/* Any thread: brings the map for steering up to date with where the workers are pinned. */
void net_shared_map(struct net_shared *shared);
/* What the client's address or else its listener declares, as session.declared. */
uint8_t net_shared_declared(const struct net_shared *shared, const struct peer *peer,
                            enum req_class listener);
