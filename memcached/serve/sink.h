/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where generated lines go: statistics are rendered without knowing the protocol that asked.
 * Lives on the stack of one command; the worker's thread.
 */
#pragma once

#include <stdbool.h>

#include "base/chain.h"

struct sink {
    struct chain *out;
    const struct chain_env *env;
    bool has_failed; /* memory ran out: the reply is incomplete, close */
};

void sink_stat(struct sink *sink, const char *name, const char *value);
__attribute__((format(printf, 3, 4))) void sink_statf(struct sink *sink, const char *name,
                                                      const char *fmt, ...);
