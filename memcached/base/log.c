/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/changes.h"

#define LOG_LINE_MAX 1024
#define LOG_CLIENT_MAX 512 /* bytes of a client that a line shows */

static _Atomic unsigned shown_level;
static bool has_stamps;

void
log_set_level(unsigned level)
{
    atomic_store_explicit(&shown_level, level, memory_order_relaxed);
    changes_note();
}

unsigned
log_level(void)
{
    return atomic_load_explicit(&shown_level, memory_order_relaxed);
}

void
log_set_stamps(bool are_on)
{
    has_stamps = are_on;
}

/* "" without stamps. */
static const char *
stamp(char text[32])
{
    time_t now = time(NULL);
    struct tm tm;
    text[0] = '\0';
    if (has_stamps) {
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ ", gmtime_r(&now, &tm));
    }
    return text;
}

static void
write_line(const char *fmt, va_list args, uint64_t left_out)
{
    char line[LOG_LINE_MAX], when[32];
    vsnprintf(line, sizeof line, fmt, args);
    if (left_out > 0) {
        fprintf(stderr, "%s%s (%" PRIu64 " more left out)\n", stamp(when), line,
                left_out);
    } else {
        fprintf(stderr, "%s%s\n", stamp(when), line);
    }
}

void
log_write(enum log_level level, const char *fmt, ...)
{
    if ((unsigned)level > log_level()) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    write_line(fmt, args, 0);
    va_end(args);
}

void
log_write_limited(enum log_level level, struct log_rate *rate, nsec_t now,
                  const char *fmt, ...)
{
    if ((unsigned)level > log_level()) {
        return;
    }
    uint64_t next_at = atomic_load_explicit(&rate->next_at, memory_order_relaxed);
    if (now < next_at ||
        !atomic_compare_exchange_strong(&rate->next_at, &next_at, now + NSEC_PER_SEC)) {
        atomic_fetch_add_explicit(&rate->left_out, 1, memory_order_relaxed);
        return;
    }
    va_list args;
    va_start(args, fmt);
    write_line(fmt, args, atomic_exchange(&rate->left_out, 0));
    va_end(args);
}

void
log_client(char way, int fd, const char *text, size_t len)
{
    char line[4 * LOG_CLIENT_MAX + 1]; /* "\\xNN" a byte */
    size_t shown = len < LOG_CLIENT_MAX ? len : LOG_CLIENT_MAX;
    size_t at = 0;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = c >= ' ' && c < 0x7f && c != '\\';
        at += (size_t)sprintf(line + at, is_plain ? "%c" : "\\x%02x", c);
    }
    line[at] = '\0';
    if (log_level() >= LOG_DEBUG) {
        fprintf(stderr, "%c%d %s%s\n", way, fd, line, shown < len ? "..." : "");
    }
}
