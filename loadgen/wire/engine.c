/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/engine.h"

#include <stddef.h>
#include <string.h>

#include "config.h"

static const struct engine *const engines[] = {
    &engine_epoll,
#if HAVE_URING
    &engine_uring,
#endif
};

const struct engine *
engine_at(unsigned i)
{
    return i < sizeof engines / sizeof engines[0] ? engines[i] : NULL;
}

const struct engine *
engine_find(const char *name)
{
    const struct engine *e;
    for (unsigned i = 0; (e = engine_at(i)) != NULL && strcmp(e->name, name) != 0; i++) {
    }
    return e;
}
