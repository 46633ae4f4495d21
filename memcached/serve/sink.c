/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/sink.h"

#include <stdarg.h>

#include "proto/ascii.h"
#include "proto/binary.h"

#define SINK_VALUE_MAX 512
#define SINK_NAME_MAX 64

static bool
is_binary(const struct sink *sink)
{
    return sink->req->protocol == PROTOCOL_BINARY;
}

static bool
put_binary(struct sink *sink, const char *name, const char *text, size_t len,
           bool ends_lines)
{
    return binary_put_stat(sink->out, sink->env, sink->req,
                           (struct slice){name, strlen(name)}, (struct slice){text, len},
                           ends_lines);
}

void
sink_stat(struct sink *sink, const char *name, const char *value)
{
    if (sink->take != NULL) {
        sink->take(sink->ctx, name, value);
        return;
    }
    sink->has_failed |= is_binary(sink)
                            ? !put_binary(sink, name, value, strlen(value), false)
                            : !ascii_put_stat(sink->out, sink->env, name, value);
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
sink_stat_of(struct sink *sink, const char *prefix, const char *name, const char *fmt,
             ...)
{
    char full[SINK_NAME_MAX];
    char value[SINK_VALUE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    snprintf(full, sizeof full, "%s%s", prefix, name);
    sink_stat(sink, full, value);
}

void
sink_text(struct sink *sink, const char *name, const char *text, size_t len,
          bool has_more)
{
    if (sink->take != NULL) {
        return;
    }
    sink->has_failed |= is_binary(sink) ? !put_binary(sink, name, text, len, !has_more)
                                        : !chain_copy(sink->out, sink->env, text, len);
}
