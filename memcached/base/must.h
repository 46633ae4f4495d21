/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Assertions that stay on: a failed must() is a bug in this program, never bad input. And the standard
 * headers that nearly every file needs; a file that has this one, also by another header, does not name
 * them again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define must(cond) ((cond) ? (void)0 : must_fail(#cond, __FILE__, __LINE__, __func__))

/* pthread calls return the error instead of setting errno; this is the way to call those
 * that can only fail through a bug. */
#define PTHREAD_OK(call)                                                                 \
    do {                                                                                 \
        int pthread_rc_ = (call);                                                        \
        if (pthread_rc_ != 0) {                                                          \
            must_fail(strerror(pthread_rc_), __FILE__, __LINE__, #call);                 \
        }                                                                                \
    } while (0)

#define unreachable() must_fail("unreachable", __FILE__, __LINE__, __func__)

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define must_check __attribute__((warn_unused_result))

__attribute__((noreturn, cold)) static inline void
must_fail(const char *what, const char *file, int line, const char *func)
{
    fprintf(stderr, "%s:%d: %s: must: %s\n", file, line, func, what);
    abort();
}
