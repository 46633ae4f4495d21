/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into the server, lets chosen allocations fail: malloc and its kin, anonymous mmap,
 * mprotect, pthread_create. $FAIL_ALLOC names a file that holds a struct control, which the test writes
 * and reads while the server runs. What hwloc, libsasl2 and the C library's user database
 * allocate never fails: they crash then. Nor does what the dynamic loader allocates, when
 * libraries load others or a thread first uses its variables: it ends the program then.
 */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload.h"

struct control {
    _Atomic int64_t seen;        /* allocations so far */
    _Atomic int64_t first, last; /* the numbers of those that fail; the first is 1 */
    _Atomic int64_t failed;
};

struct range {
    uintptr_t from, to;
};

#define RANGES_MAX 32
#define EARLY_BYTES 65536

static struct control *control;
static struct range spared[RANGES_MAX];
static size_t spared_count;
/* What dlsym wants before there is an allocator; what it frees then is left. */
static _Alignas(max_align_t) char early[EARLY_BYTES];
static size_t early_used;
/* This thread is inside what is spared. */
static _Thread_local int is_sparing __attribute__((tls_model("initial-exec")));

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);
static void *(*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_mprotect)(void *, size_t, int);
static struct passwd *(*real_getpwnam)(const char *);
static int (*real_pthread_getattr_np)(pthread_t, pthread_attr_t *);
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                  void *);

static int
spare(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    static const char *const names[] = {"libhwloc", "libsasl", "libudev", "libasan",
                                        "libubsan", "/ld-",    "/ld64",   "/ld."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(info->dlpi_name, names[i]) == NULL) {
            continue;
        }
        for (int j = 0; j < info->dlpi_phnum && spared_count < RANGES_MAX; j++) {
            if (info->dlpi_phdr[j].p_type == PT_LOAD) {
                uintptr_t from = info->dlpi_addr + info->dlpi_phdr[j].p_vaddr;
                spared[spared_count++] =
                    (struct range){from, from + info->dlpi_phdr[j].p_memsz};
            }
        }
    }
    return 0;
}

__attribute__((constructor)) static void
begin(void)
{
    FIND(mmap);
    dl_iterate_phdr(spare, NULL);
    control = map_control("FAIL_ALLOC", sizeof *control, real_mmap);
}

/* Whether the allocation that this caller wants is one that fails. */
static int
fails(const void *caller)
{
    if (control == NULL || is_sparing) {
        return 0;
    }
    for (size_t i = 0; i < spared_count; i++) {
        if ((uintptr_t)caller >= spared[i].from && (uintptr_t)caller < spared[i].to) {
            return 0;
        }
    }
    int64_t number = atomic_fetch_add(&control->seen, 1) + 1;
    if (number < control->first || number > control->last) {
        return 0;
    }
    atomic_fetch_add(&control->failed, 1);
    errno = ENOMEM;
    return 1;
}

static void *
early_alloc(size_t bytes)
{
    size_t from = early_used;
    early_used += (bytes + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    return early_used <= EARLY_BYTES ? early + from : NULL;
}

static int
is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + EARLY_BYTES;
}

void *
malloc(size_t bytes)
{
    FIND(malloc);
    return fails(__builtin_return_address(0)) ? NULL : real_malloc(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
    if (real_calloc == NULL && is_finding) {
        return early_alloc(count * bytes);
    }
    FIND(calloc);
    return fails(__builtin_return_address(0)) ? NULL : real_calloc(count, bytes);
}

void *
realloc(void *old, size_t bytes)
{
    FIND(realloc);
    return fails(__builtin_return_address(0)) ? NULL : real_realloc(old, bytes);
}

void
free(void *p)
{
    if (is_early(p) || (real_free == NULL && is_finding)) {
        return;
    }
    FIND(free);
    real_free(p);
}

void *
aligned_alloc(size_t alignment, size_t bytes)
{
    FIND(aligned_alloc);
    return fails(__builtin_return_address(0)) ? NULL
                                              : real_aligned_alloc(alignment, bytes);
}

int
posix_memalign(void **p, size_t alignment, size_t bytes)
{
    FIND(posix_memalign);
    return fails(__builtin_return_address(0)) ? ENOMEM
                                              : real_posix_memalign(p, alignment, bytes);
}

void *
mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    FIND(mmap);
    if ((flags & MAP_ANONYMOUS) != 0 && fails(__builtin_return_address(0))) {
        return MAP_FAILED;
    }
    return real_mmap(at, bytes, protection, flags, fd, offset);
}

/* Addresses become memory. */
int
mprotect(void *at, size_t bytes, int protection)
{
    FIND(mprotect);
    return (protection & PROT_WRITE) != 0 && fails(__builtin_return_address(0))
               ? -1
               : real_mprotect(at, bytes, protection);
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
               void *(*start)(void *), void *argument)
{
    FIND(pthread_create);
    return fails(__builtin_return_address(0))
               ? EAGAIN
               : real_pthread_create(thread, attributes, start, argument);
}

struct passwd *
getpwnam(const char *name)
{
    FIND(getpwnam);
    is_sparing = 1;
    struct passwd *found = real_getpwnam(name);
    is_sparing = 0;
    return found;
}

/* AddressSanitizer asks this of each new thread. */
int
pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    FIND(pthread_getattr_np);
    is_sparing = 1;
    int rc = real_pthread_getattr_np(thread, attributes);
    is_sparing = 0;
    return rc;
}
