/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the preloaded libraries share: the real functions, and the file through which a test
 * tells them what to do while the server runs.
 */
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* dlsym may allocate and free, and the compiler is not to know better. */
static volatile int is_finding;

#define FIND(name)                                                                       \
    do {                                                                                 \
        if (real_##name == NULL) {                                                       \
            is_finding = 1;                                                              \
            *(void **)&real_##name = dlsym(RTLD_NEXT, #name);                            \
            is_finding = 0;                                                              \
        }                                                                                \
    } while (0)

/* The file that the environment variable names, mapped; NULL when there is none. */
static inline void *
map_control(const char *variable, size_t bytes,
            void *(*map)(void *, size_t, int, int, int, off_t))
{
    const char *name = getenv(variable);
    int fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) {
        return NULL;
    }
    void *page = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page != MAP_FAILED ? page : NULL;
}
