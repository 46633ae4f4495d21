/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Memory of a tool, never NULL: a process that gets none says so and ends. Not for the server,
 * which goes on without. Any thread.
 */
#pragma once

#include <errno.h>
#include <unistd.h>

#include "base/must.h"

#define ALLOC_EXIT 2
#define ALLOC_FIRST 16 /* a power of two */

static inline void *
alloc_checked(void *p)
{
    if (unlikely(p == NULL)) {
        fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
        _exit(ALLOC_EXIT);
    }
    return p;
}

/* So many elements of `size` bytes, all 0; there may be none. */
static inline void *
alloc_zeroed(size_t count, size_t size)
{
    return alloc_checked(calloc(count > 0 ? count : 1, size));
}

static inline void *
alloc_bytes(size_t len)
{
    return alloc_checked(malloc(len > 0 ? len : 1));
}

/* Room for so many elements, those at p among them. */
static inline void *
alloc_more(void *p, size_t count, size_t size)
{
    return alloc_checked(reallocarray(p, count > 0 ? count : 1, size));
}

/* Room for one more element behind `count`, each of which was added by a call of this function: the room is
 * doubled when it is full. */
static inline void *
alloc_grown(void *p, size_t count, size_t size)
{
    bool is_full = count == 0 || (count >= ALLOC_FIRST && (count & (count - 1)) == 0);
    size_t room = count > 0 ? 2 * count : ALLOC_FIRST;
    return is_full ? alloc_more(p, room, size) : p;
}

static inline char *
alloc_text(const char *text)
{
    return alloc_checked(strdup(text));
}
