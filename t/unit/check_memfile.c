/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The file that slab memory is mapped from, also on a kernel of larger pages.
 */
#include "store/memfile.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check_main.h"

#define MIB (1 << 20)
#define KIB 1024

static size_t page_bytes; /* 0: the machine's own */

/* Sanitizers ask before they are ready for what they watch. */
__attribute__((no_sanitize("address", "thread", "undefined"))) int
getpagesize(void)
{
    return page_bytes != 0 ? (int)page_bytes : (int)sysconf(_SC_PAGESIZE);
}

/* What is in between is left mapped. */
void *
mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    if (page_bytes == 0 || at != NULL || (flags & MAP_ANONYMOUS) == 0) {
        return mmap64(at, len, protection, flags, fd, offset);
    }
    char *room = mmap64(NULL, len + 2 * page_bytes, protection, flags, fd, offset);
    return room == MAP_FAILED ? room : room + (-(uintptr_t)room & (page_bytes - 1));
}

int
munmap(void *at, size_t len)
{
    if (page_bytes != 0 && (uintptr_t)at % page_bytes != 0) {
        errno = EINVAL;
        return -1;
    }
    size_t more = page_bytes != 0 ? -len & (page_bytes - 1) : 0;
    return (int)syscall(SYS_munmap, at, len + more);
}

TEST_LOOP(it_keeps_what_is_written, 3)
{
    static const size_t pages[] = {0, 16 * KIB, 64 * KIB};
    char dir[SCRATCH_PATH], path[SCRATCH_PATH + 8], err[256];
    struct memfile f;
    page_bytes = pages[_i];
    scratch_name(dir, "check_memfile");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/items", dir);
    for (unsigned life = 0; life < 2; life++) {
        ck_assert(memfile_open(&f, path, err, sizeof err));
        ck_assert(memfile_map(&f, 3 * MIB, err, sizeof err));
        ck_assert_uint_eq((uintptr_t)f.base & memfile_offset_mask(3 * MIB), 0);
        if (life == 0) {
            memset(f.base, 'x', 3 * MIB);
        }
        ck_assert(f.base[0] == 'x' && f.base[3 * MIB - 1] == 'x');
        ck_assert_uint_eq(memfile_stamp(&f), life * 7);
        ck_assert(memfile_set_stamp(&f, 7, err, sizeof err));
        memfile_close(&f);
    }
    page_bytes = 0;
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
