/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/class.h"

#include <stddef.h>

#include "base/must.h"

struct class_row {
    const char *name;
    bool is_inline;
    bool is_limited;
};

static const struct class_row rows[CLASS_COUNT] = {
#define CLASS(id, name, is_inline, is_limited, help)                                     \
    [CLASS_##id] = {name, is_inline, is_limited},
#include "qos/class.def"
#undef CLASS
};

enum req_class
class_of(const struct class_traits *t)
{
    if (t->is_control) {
        return CLASS_CONTROL;
    }
    if (t->is_incomplete || t->keys > CLASS_BULK_KEYS ||
        t->value_bytes > CLASS_BULK_BYTES) {
        return CLASS_BULK;
    }
    return CLASS_SMALL;
}

static const struct class_row *
row_of(enum req_class c)
{
    must((unsigned)c < CLASS_COUNT);
    return &rows[c];
}

const char *
class_name(enum req_class c)
{
    return row_of(c)->name;
}

bool
class_is_inline(enum req_class c)
{
    return row_of(c)->is_inline;
}

bool
class_is_limited(enum req_class c)
{
    return row_of(c)->is_limited;
}
