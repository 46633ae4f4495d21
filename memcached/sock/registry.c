/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/registry.h"

#define REGISTRY_CAPACITY_MIN 256
#define LOOKS_MAX 2048 /* descriptors in a step of a walk, open or not */

static const char *const state_names[REGISTRY_STATES] = {
    [REGISTRY_LISTENING] = "conn_listening", [REGISTRY_READ] = "conn_read",
    [REGISTRY_PARSE] = "conn_parse_cmd",     [REGISTRY_BODY] = "conn_nread",
    [REGISTRY_WRITE] = "conn_mwrite",        [REGISTRY_WAITING] = "conn_waiting",
    [REGISTRY_NEW] = "conn_new_cmd",         [REGISTRY_SWALLOW] = "conn_swallow",
    [REGISTRY_CLOSING] = "conn_closing",     [REGISTRY_WATCH] = "conn_watch",
};

void
registry_init(struct registry *r, const pthread_mutexattr_t *lock_attr)
{
    *r = (struct registry){.capacity = 0};
    PTHREAD_OK(pthread_mutex_init(&r->lock, lock_attr));
}

void
registry_fini(struct registry *r)
{
    free(r->by_fd);
    PTHREAD_OK(pthread_mutex_destroy(&r->lock));
}

static bool
grow(struct registry *r, unsigned fd)
{
    unsigned capacity = r->capacity > 0 ? r->capacity : REGISTRY_CAPACITY_MIN;
    while (capacity <= fd) {
        capacity *= 2;
    }
    struct registry_entry **by_fd = realloc(r->by_fd, capacity * sizeof(*by_fd));
    if (by_fd == NULL) {
        return false;
    }
    memset(by_fd + r->capacity, 0, (capacity - r->capacity) * sizeof(*by_fd));
    r->by_fd = by_fd;
    r->capacity = capacity;
    return true;
}

bool
registry_add(struct registry *r, struct registry_entry *entry)
{
    PTHREAD_OK(pthread_mutex_lock(&r->lock));
    bool has_room = (unsigned)entry->fd < r->capacity || grow(r, (unsigned)entry->fd);
    if (has_room) {
        must(r->by_fd[entry->fd] == NULL);
        r->by_fd[entry->fd] = entry;
    }
    PTHREAD_OK(pthread_mutex_unlock(&r->lock));
    return has_room;
}

void
registry_replace(struct registry *r, struct registry_entry *old,
                 struct registry_entry *entry)
{
    must(old->fd == entry->fd);
    PTHREAD_OK(pthread_mutex_lock(&r->lock));
    must(r->by_fd[old->fd] == old);
    r->by_fd[old->fd] = entry;
    PTHREAD_OK(pthread_mutex_unlock(&r->lock));
}

void
registry_remove(struct registry *r, struct registry_entry *entry)
{
    PTHREAD_OK(pthread_mutex_lock(&r->lock));
    must(r->by_fd[entry->fd] == entry);
    r->by_fd[entry->fd] = NULL;
    PTHREAD_OK(pthread_mutex_unlock(&r->lock));
}

const char *
registry_state_name(enum registry_state state)
{
    must(state < REGISTRY_STATES);
    return state_names[state];
}

bool
registry_walk(struct registry *r, unsigned *fd, unsigned max,
              void (*visit)(void *ctx, const struct registry_entry *entry), void *ctx)
{
    PTHREAD_OK(pthread_mutex_lock(&r->lock));
    for (unsigned looks = 0; *fd < r->capacity && max > 0 && looks < LOOKS_MAX; looks++) {
        const struct registry_entry *entry = r->by_fd[(*fd)++];
        if (entry != NULL) {
            visit(ctx, entry);
            max--;
        }
    }
    bool has_more = *fd < r->capacity;
    PTHREAD_OK(pthread_mutex_unlock(&r->lock));
    return has_more;
}
