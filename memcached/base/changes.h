/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Counts changes of what many requests have to know and few of them see change: settings, the watched
 * types, the clock's shift. A thread keeps what it has made of these, and makes it anew when the count is
 * another one; that is one look instead of one at each.
 *
 *     a thread that changes one           a thread that keeps what follows
 *     stores it                           changes_count, if it is another one:
 *     changes_note                            looks at all
 *
 * Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint32_t changes_noted; /* private */

/* Release: a thread that sees the new count sees what was stored before. */
static inline void
changes_note(void)
{
    atomic_fetch_add_explicit(&changes_noted, 1, memory_order_release);
}

static inline uint32_t
changes_count(void)
{
    return atomic_load_explicit(&changes_noted, memory_order_acquire);
}
