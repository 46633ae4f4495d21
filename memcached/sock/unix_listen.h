/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Listening UNIX sockets, and the files that stand for them. The thread that opens them.
 */
#pragma once

#include <sys/types.h>

#include "base/must.h"

/* Which file it is: by the end the path may be another server's. */
struct unix_file {
    const char *path; /* the caller's */
    dev_t dev;
    ino_t ino;
};

/* A socket that is there already is removed first, a file of another kind is not. `option` is
 * where the path comes from, for the sentence in err. The descriptor does not block; -1: err. */
must_check int unix_listen(const char *path, unsigned mode, int backlog,
                           const char *option, struct unix_file *file, char *err,
                           size_t err_len);
/* Removes the file, if it still is this one. */
void unix_remove(const struct unix_file *file);
