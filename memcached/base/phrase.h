/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A text that is made piece by piece in an array of the caller's. Any thread, one at a time.
 */
#pragma once

#include "base/must.h"

struct phrase {
    char *to; /* ends with a zero once something was added */
    size_t size, len;
};

/* Puts it behind what is there; all of it has room. */
__attribute__((format(printf, 2, 3))) void phrase_add(struct phrase *t, const char *fmt,
                                                      ...);
