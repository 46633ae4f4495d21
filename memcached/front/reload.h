/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The server's settings against those of the file of --config: from the file, or into it. Main
 * thread; the server runs, and has a file. What is done is told in lines:
 *
 *     CHANGED qps-limit off -> 50000
 *     RESTART memory-file /etc/memcached.conf:7
 *     WRONG /etc/memcached.conf:3: unknown option --qps-limt; did you mean --qps-limit? See --help
 */
#pragma once

#include "base/must.h"

struct stats;

/* Reads the file again and applies what can change now. False: nothing has changed. */
must_check bool reload_file(struct stats *st, FILE *out);
/* Writes what differs from the file to the file. False: it is as it was. */
must_check bool reload_save(struct stats *st, FILE *out);
