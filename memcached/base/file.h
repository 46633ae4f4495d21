/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Small files, of the kernel's and of users.
 */
#pragma once

#include "base/must.h"

/* The first line of a file, without its end, cut short when there is no room. False: there is
 * none, and `line` is empty. */
must_check bool file_read_line(const char *path, char *line, size_t len);

/* `path`, as it is seen from here, for a process that leaves its directory. To be freed; NULL:
 * no memory, or the directory is gone. */
must_check char *file_absolute(const char *path);
