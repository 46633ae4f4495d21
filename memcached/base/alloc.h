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

static inline char *
alloc_text(const char *text)
{
    return alloc_checked(strdup(text));
}
