/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One request of a trace, as every format tells it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TRACE_KEY_MAX 250
#define TRACE_VALUE_MAX UINT32_MAX
#define TRACE_REPEAT_MAX 1000000000

/* Their numbers stand in files. */
enum trace_verb {
    TRACE_GET = 1,
    TRACE_GETS,
    TRACE_SET,
    TRACE_ADD,
    TRACE_REPLACE,
    TRACE_CAS,
    TRACE_APPEND,
    TRACE_PREPEND,
    TRACE_DELETE,
    TRACE_INCR,
    TRACE_DECR,
    TRACE_TOUCH,
    TRACE_VERBS_END,
};

struct trace_record {
    uint64_t time_ns;
    uint64_t client; /* its number, or a hash of its name; 0: not told */
    uint32_t value_len;
    uint32_t ttl;    /* seconds, 0: for ever or not told */
    uint32_t repeat; /* so many requests like this, one after another; at least 1 */
    enum trace_verb verb;
    size_t key_len; /* 1 to TRACE_KEY_MAX, without blanks and control characters */
    char key[TRACE_KEY_MAX];
};
