/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * read_buf_mem_limit: what the buffers of a worker's connections may take. Half of it is for
 * replies that wait to be sent: each counts BUDGET_REPLY_BYTES, whatever it says, so that a
 * client cannot make the server pile up small ones. The blocks of all buffers together may
 * take all of it. The worker's thread; the counters may be read by any.
 */
#pragma once

#include "base/ctr.h"
#include "base/must.h"
#include "base/pool.h"

#define BUDGET_REPLY_BYTES 1024

struct budget {
    uint64_t bytes; /* of this worker; 0: no limit, and nothing is counted */
    ctr_t replies;  /* that wait */
    ctr_t reply_oom;
    ctr_t read_oom;
};

/* A connection's part. */
struct budget_share {
    uint32_t replies;
    size_t produced; /* bytes of output of the request under way; 0 when it begins */
};

/* Whether a connection may take a block to read into. */
must_check bool budget_allows_read(struct budget *b, const struct pool *pool);
/* After each piece: how many replies it made, and bytes. False: too much. */
must_check bool budget_charge(struct budget *b, struct budget_share *share,
                              const struct pool *pool, uint32_t replies, size_t bytes);
/* All output of the connection has been sent, or dropped. */
void budget_release(struct budget *b, struct budget_share *share);
