/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#pragma once

#include <stddef.h>

/* The `type` of which *at is `member`; the compiler checks that at points to one. */
#define OWNER_OF(at, type, member)                                                       \
    ((type *)(void *)((char *)(1 ? (at) : &((type *)NULL)->member) -                     \
                      offsetof(type, member)))
