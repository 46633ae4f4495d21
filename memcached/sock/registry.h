/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * All open sockets of the process, for "stats conns". Any thread; a lock of its own, never
 * held while another is taken.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/must.h"

/* The names that monitoring knows. */
enum registry_state {
    REGISTRY_LISTENING,
    REGISTRY_READ,    /* idle, or half a line has arrived */
    REGISTRY_PARSE,   /* a request is being executed */
    REGISTRY_BODY,    /* a value is being received */
    REGISTRY_WRITE,   /* output waits for the client */
    REGISTRY_WAITING, /* a request waits for the limiter */
    REGISTRY_NEW,     /* a request waits for its turn */
    REGISTRY_SWALLOW, /* a value that is dropped is being received */
    REGISTRY_CLOSING, /* the last output waits for the client */
    REGISTRY_WATCH,   /* output only: the live log */
    REGISTRY_STATES
};

#define REGISTRY_ADDR_MAX 128

/* Embedded in the socket's owner, which updates the two atomics (relaxed:
 * informational) and has the text of the address. */
struct registry_entry {
    int fd;
    bool is_udp;
    _Atomic uint8_t state;     /* enum registry_state */
    _Atomic uint32_t last_cmd; /* relative clock */
    uint32_t acked;          /* bytes that the client had at the last look (net/idle.c) */
    const char *listen_addr; /* of the listener it came from; NULL for listeners */
    const char *addr;
};

struct registry {
    pthread_mutex_t lock;
    struct registry_entry **by_fd;
    unsigned capacity;
};

void registry_init(struct registry *r, const pthread_mutexattr_t *lock_attr);
void registry_fini(struct registry *r);
/* False: no memory. */
must_check bool registry_add(struct registry *r, struct registry_entry *entry);
/* The new entry stands for the old one's descriptor from here on. */
void registry_replace(struct registry *r, struct registry_entry *old,
                      struct registry_entry *entry);
void registry_remove(struct registry *r, struct registry_entry *entry);
const char *registry_state_name(enum registry_state state);

/* Calls visit for entries in ascending order of descriptor from *fd on, at most `max` of
 * them, under the lock; *fd is where to go on. False when there are no more. */
must_check bool
registry_walk(struct registry *r, unsigned *fd, unsigned max,
              void (*visit)(void *ctx, const struct registry_entry *entry), void *ctx);
