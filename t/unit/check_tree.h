/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A directory of a test's own, for what is read from the kernel's: make_root, put_file,
 * remove_root.
 */
#pragma once

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_unit.h"

static char root[SCRATCH_PATH];

static inline void
make_root(void)
{
    scratch_name(root, "check_tree");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static inline int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void
remove_root(void)
{
    ck_assert_int_eq(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Writes the file root/name and makes the directories above it. */
static inline void
put_file(const char *name, const char *text)
{
    char full[SCRATCH_PATH + 256];
    snprintf(full, sizeof full, "%s/%s", root, name);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        ck_assert(mkdir(full, 0755) == 0 || errno == EEXIST);
        *p = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}
