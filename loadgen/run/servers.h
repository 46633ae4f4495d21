/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The servers of a run: where they are, and what is needed to speak with them. Start-up thread.
 */
#pragma once

#include "loadgen/options/options.h"

struct servers {
    struct target *all; /* one for each of options->servers; owned */
    unsigned count;
    struct ltls *tls; /* NULL: no server speaks it */
    struct shard keys;
    bool share_keys;
};

/* Finds their addresses. EXIT_VALID, or a sentence and how to end; servers_close in any case. */
must_check enum exit_status servers_open(struct servers *s, const struct options *o,
                                         char *err, size_t err_len);
/* How they share the keys; NULL: each has all. */
const struct shard *servers_shard(const struct servers *s);
void servers_close(struct servers *s);
