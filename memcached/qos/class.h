/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Request classes and the rules that put a request into one. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum req_class {
#define CLASS(id, name, is_inline, is_limited, help) CLASS_##id,
#include "qos/class.def"
#undef CLASS
    CLASS_COUNT,
    CLASS_NONE = CLASS_COUNT, /* of a connection: its requests tell */
};

#define CLASS_BULK_KEYS 16    /* a get of more keys is bulk */
#define CLASS_BULK_BYTES 8192 /* a value of more bytes is bulk */

/* What is known of a request when it has been parsed. */
struct class_traits {
    bool is_control;
    uint32_t keys;        /* of a retrieval; 1 otherwise */
    uint64_t value_bytes; /* of a storage command, or of a value found; 0 otherwise */
    bool is_incomplete;   /* part of it is still on its way */
};

enum req_class class_of(const struct class_traits *t);
const char *class_name(enum req_class c);
bool class_is_inline(enum req_class c);
bool class_is_limited(enum req_class c);
