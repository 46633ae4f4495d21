/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The lines of "stats settings", from the same table as the options.
 */
#include <stddef.h>

#include "front/settings.h"

/* How a value is written in "stats settings". */
enum show {
    SHOW_NOT,
    SHOW_HOOK, /* changes at run time: asked for */
    SHOW_NUMBER,
    SHOW_FIXED2,
    SHOW_OCTAL,
    SHOW_YESNO,
    SHOW_NOYES, /* the option switches it off */
    SHOW_OFFON,
    SHOW_TEXT,      /* NULL when not given */
    SHOW_TEXT_NULL, /* "(null)" when not given */
    SHOW_ADDRESSES,
    SHOW_TEXT_NO, /* "no" when not given */
    SHOW_PROTOCOL,
    SHOW_CHUNK_MAX,
    SHOW_KILOBYTES, /* in bytes */
    SHOW_MEGABYTES, /* in bytes */
    SHOW_DELIMITER,
    SHOW_TLS_VERSION,
};

static const char *const protocols[] = {
    [BINDING_AUTO] = "auto-negotiate",
    [BINDING_ASCII] = "ascii",
    [BINDING_BINARY] = "binary",
};

static void
show_value(const struct settings *s, struct sink *sink, const char *stat, enum show show,
           const void *field)
{
    const int64_t *number = field;
    const bool *flag = field;
    const char *const *text = field;
    switch (show) {
    case SHOW_NUMBER:
        sink_statf(sink, stat, "%lld", (long long)*number);
        break;
    case SHOW_FIXED2:
        sink_statf(sink, stat, "%.2f", *(const double *)field);
        break;
    case SHOW_OCTAL:
        sink_statf(sink, stat, "%llo", (unsigned long long)*number);
        break;
    case SHOW_YESNO:
        sink_stat(sink, stat, *flag ? "yes" : "no");
        break;
    case SHOW_NOYES:
        sink_stat(sink, stat, *flag ? "no" : "yes");
        break;
    case SHOW_OFFON:
        sink_stat(sink, stat, *flag ? "off" : "on");
        break;
    case SHOW_TEXT:
        sink_stat(sink, stat, *text != NULL ? *text : "NULL");
        break;
    case SHOW_TEXT_NULL:
        sink_stat(sink, stat, *text != NULL ? *text : "(null)");
        break;
    case SHOW_TEXT_NO:
        sink_stat(sink, stat, *text != NULL ? *text : "no");
        break;
    case SHOW_ADDRESSES:
        sink_stat(sink, stat, s->addresses != NULL ? s->addresses : "NULL");
        break;
    case SHOW_PROTOCOL:
        sink_stat(sink, stat, protocols[s->binding]);
        break;
    case SHOW_CHUNK_MAX:
        sink_statf(sink, stat, "%lld", (long long)s->chunk_max);
        break;
    case SHOW_MEGABYTES:
        sink_statf(sink, stat, "%lld", (long long)*number << 20);
        break;
    case SHOW_KILOBYTES:
        sink_statf(sink, stat, "%lld", (long long)*number * 1024);
        break;
    case SHOW_DELIMITER:
        sink_statf(sink, stat, "%c", s->prefix_delimiter);
        break;
    case SHOW_TLS_VERSION:
        sink_stat(sink, stat, tls_version_name((unsigned)*number));
        break;
    case SHOW_NOT:
    case SHOW_HOOK:
        break;
    }
}

struct stat_row {
    const char *stat;
    enum profile since;
    enum show show;
    size_t offset;
    const char *fixed; /* rows without an option */
};

static const struct stat_row stat_rows[] = {
#define SETTING(kind, field, v14, v16, since_, stat_, show_, ...)                        \
    {.stat = stat_,                                                                      \
     .since = since_,                                                                    \
     .show = show_,                                                                      \
     .offset = offsetof(struct settings, field)},
#define PARSED SETTING
#define CALL(function, since_, stat_, show_, ...)                                        \
    {.stat = stat_, .since = since_, .show = show_},
#define NOOP(...)
#define STAT(since_, stat_, value)                                                       \
    {.stat = stat_, .since = since_, .show = SHOW_HOOK, .fixed = value},
#include "front/settings.def"
#undef SETTING
#undef PARSED
#undef CALL
#undef NOOP
#undef STAT
};

void
settings_stats(const struct settings *s, struct sink *sink,
               bool (*hook)(void *ctx, const char *name, struct sink *sink), void *ctx)
{
    for (size_t i = 0; i < sizeof stat_rows / sizeof *stat_rows; i++) {
        const struct stat_row *row = &stat_rows[i];
        if (row->stat == NULL || row->since > s->profile) {
            continue;
        }
        if (row->fixed != NULL) {
            sink_stat(sink, row->stat, row->fixed);
        } else if (row->show == SHOW_HOOK) {
            must(hook(ctx, row->stat, sink));
        } else {
            show_value(s, sink, row->stat, row->show, (const char *)s + row->offset);
        }
    }
}
