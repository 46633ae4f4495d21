/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Request classes and what puts a request into one. Pure; any thread.
 */
#pragma once

#include "base/must.h"

enum req_class {
#define CLASS(id, name, is_inline, is_limited, share, help) CLASS_##id,
#include "qos/class.def"
#undef CLASS
    CLASS_COUNT,
    CLASS_NONE = CLASS_COUNT, /* of a connection: its requests tell */
};

#define CLASS_BULK_KEYS 16    /* default: a get of more keys is bulk */
#define CLASS_BULK_BYTES 8192 /* default: a value of more bytes is bulk */
#define CLASS_SHARES_TOTAL 1000
#define CLASS_SHARES_MAX 900 /* of all deferred classes: the small one keeps a tenth */

/* Where a class begins. All requests but control commands are small when it is off. */
struct class_conf {
    bool is_on;
    uint32_t bulk_keys;
    uint64_t
        bulk_bytes; /* a larger value makes its request bulk, also when it is found */
};

struct class_conf class_conf_make(bool is_on, uint32_t bulk_keys, uint64_t bulk_bytes);

/* What is known of a request when it has been parsed. */
struct class_traits {
    bool is_control;
    bool is_write;
    uint32_t keys;        /* of a retrieval; 1 otherwise */
    uint64_t value_bytes; /* of a storage command, or of a value found; 0 otherwise */
    bool is_incomplete;   /* a retrieval whose line goes on */
};

enum req_class class_of(const struct class_conf *conf, const struct class_traits *t);
const char *class_name(enum req_class c);
/* CLASS_NONE: no class has this name. */
enum req_class class_by_name(const char *name, size_t len);
/* As class_by_name, without the one that cannot be declared: control. */
enum req_class class_by_declared_name(const char *name, size_t len);
bool class_is_limited(enum req_class c);
/* Whether no request is served better after a connection's class has changed from one to the
 * other; NONE: each request tells, has_key_rules: or its key does. */
bool class_is_lower(enum req_class from, enum req_class to, bool has_key_rules);

/* The first classes of the table are those that run where they are read. */
static inline bool
class_is_inline(enum req_class c)
{
    return c <= CLASS_SMALL;
}

/* With --classes=off all requests but control commands are small. */
static inline bool
class_occurs(const struct class_conf *conf, enum req_class c)
{
    return conf->is_on || class_is_inline(c);
}

/* The queue of a request that waits for a deferred turn. is_long: of a control command that comes
 * in pieces, whatever they come to; others are as small as small ones. */
static inline enum req_class
class_lane(enum req_class c, bool is_long)
{
    return is_long ? CLASS_CONTROL : c > CLASS_SMALL ? c : CLASS_SMALL;
}

/* What a class stores is of one owner of memory (store/store.h): 0, what nothing is declared of.
 * Control commands store nothing. */
#define CLASS_OWNERS 4
static inline uint8_t
class_owner(enum req_class c)
{
    return ((unsigned)c + CLASS_OWNERS - CLASS_WRITE) % CLASS_OWNERS;
}

struct class_shares {
    unsigned per_mille[CLASS_COUNT]; /* of the deferred classes */
};

void class_shares_init(struct class_shares *s);
/* Reads "write:10,bulk:5,background:0.5", percent; classes left out keep theirs. NULL, or
 * what is wrong. */
const char *class_shares_parse(void *to, const char *text);
