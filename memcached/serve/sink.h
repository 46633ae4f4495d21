/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where generated lines go: statistics are rendered without knowing the protocol that asked.
 * Lives on the stack of one command; the worker's thread.
 */
#pragma once

#include "base/chain.h"
#include "proto/req.h"

struct sink {
    struct chain *out;
    const struct chain_env *env;
    const struct req *req; /* the request, with its protocol */
    bool is_complete;      /* nothing closes the answer, whatever reply is returned */
    bool has_failed;       /* memory ran out: the reply is incomplete, close */
    /* Takes the statistics in place of `out`, and other text is left out. NULL: none. */
    void (*take)(void *ctx, const char *name, const char *value);
    void *ctx; /* of take */
};

void sink_stat(struct sink *sink, const char *name, const char *value);
__attribute__((format(printf, 3, 4))) void sink_statf(struct sink *sink, const char *name,
                                                      const char *fmt, ...);
/* A statistic named prefix and name. */
__attribute__((format(printf, 4, 5))) void sink_stat_of(struct sink *sink,
                                                        const char *prefix,
                                                        const char *name, const char *fmt,
                                                        ...);
/* Lines that are no statistics, with their line ends; nothing closes them. In the binary
 * protocol each call makes a packet of this name, and END ends the last one. */
void sink_text(struct sink *sink, const char *name, const char *text, size_t len,
               bool has_more);
