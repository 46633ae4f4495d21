/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into mcload, counts what its request path must not do: locks and formatted
 * prints, those of the main thread and those of all others apart. $COUNT_CALLS names a file
 * that holds a struct control, which the test reads afterwards. Allocations are counted by
 * fail_alloc.c.
 */
#undef _FORTIFY_SOURCE /* its functions are defined here themselves */

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "preload.h"

enum who {
    WHO_MAIN,
    WHO_OTHERS,
    WHO_COUNT,
};

struct control {
    _Atomic int64_t locks[WHO_COUNT], prints[WHO_COUNT];
};

static struct control *control;

__attribute__((constructor)) static void
begin(void)
{
    control = map_control("COUNT_CALLS", sizeof *control, mmap);
}

static enum who
who(void)
{
    return gettid() == getpid() ? WHO_MAIN : WHO_OTHERS;
}

static void
count_lock(void)
{
    if (control != NULL) {
        atomic_fetch_add(&control->locks[who()], 1);
    }
}

static void
count_print(void)
{
    if (control != NULL) {
        atomic_fetch_add(&control->prints[who()], 1);
    }
}

#define LOCK(name, type)                                                                 \
    static int (*real_##name)(type *);                                                   \
    int name(type *lock)                                                                 \
    {                                                                                    \
        FIND(name);                                                                      \
        count_lock();                                                                    \
        return real_##name(lock);                                                        \
    }

LOCK(pthread_mutex_lock, pthread_mutex_t)
LOCK(pthread_mutex_trylock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
LOCK(pthread_spin_lock, pthread_spinlock_t)

#define LIST(...) __VA_ARGS__

/* A function that prints and its sibling that takes a list; the last parameter is `format`. */
#define PRINT(name, vname, parameters, arguments)                                        \
    static int (*real_##vname)(parameters, va_list);                                     \
    int vname(parameters, va_list list)                                                  \
    {                                                                                    \
        FIND(vname);                                                                     \
        count_print();                                                                   \
        return real_##vname(arguments, list);                                            \
    }                                                                                    \
    int name(parameters, ...)                                                            \
    {                                                                                    \
        va_list list;                                                                    \
        va_start(list, format);                                                          \
        int n = vname(arguments, list);                                                  \
        va_end(list);                                                                    \
        return n;                                                                        \
    }

#define FORMAT const char *format
PRINT(printf, vprintf, LIST(FORMAT), LIST(format))
PRINT(fprintf, vfprintf, LIST(FILE *to, FORMAT), LIST(to, format))
PRINT(dprintf, vdprintf, LIST(int to, FORMAT), LIST(to, format))
PRINT(sprintf, vsprintf, LIST(char *to, FORMAT), LIST(to, format))
PRINT(snprintf, vsnprintf, LIST(char *to, size_t room, FORMAT), LIST(to, room, format))
PRINT(asprintf, vasprintf, LIST(char **to, FORMAT), LIST(to, format))
/* What fortified programs call in their place. */
PRINT(__printf_chk, __vprintf_chk, LIST(int flag, FORMAT), LIST(flag, format))
PRINT(__fprintf_chk, __vfprintf_chk, LIST(FILE *to, int flag, FORMAT),
      LIST(to, flag, format))
PRINT(__dprintf_chk, __vdprintf_chk, LIST(int to, int flag, FORMAT),
      LIST(to, flag, format))
PRINT(__sprintf_chk, __vsprintf_chk, LIST(char *to, int flag, size_t room, FORMAT),
      LIST(to, flag, room, format))
PRINT(__snprintf_chk, __vsnprintf_chk,
      LIST(char *to, size_t most, int flag, size_t room, FORMAT),
      LIST(to, most, flag, room, format))
PRINT(__asprintf_chk, __vasprintf_chk, LIST(char **to, int flag, FORMAT),
      LIST(to, flag, format))
