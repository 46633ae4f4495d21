/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/sink.h"

#include <stdarg.h>

#include "proto/ascii.h"

#define SINK_VALUE_MAX 512

void
sink_stat(struct sink *sink, const char *name, const char *value)
{
    sink->has_failed |= !ascii_put_stat(sink->out, sink->env, name, value);
}

void
sink_statf(struct sink *sink, const char *name, const char *fmt, ...)
{
    char value[SINK_VALUE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    sink_stat(sink, name, value);
}

void
sink_text(struct sink *sink, const char *name, const char *text, size_t len)
{
    (void)name;
    sink->has_failed |= !chain_copy(sink->out, sink->env, text, len);
}
