/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/log.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"

#include "base/changes.h"

#define LOG_LINE_MAX 1024
#define LOG_CLIENT_MAX 512 /* bytes of a client that a line shows */
#define LOG_EXTRA_MAX 96   /* beside a line: the time, or what was left out */
#define PATIENCE_MS 100    /* for a reader of the log that is behind */

static _Atomic unsigned shown_level;
static bool has_stamps;

/* What reads standard error, when that is a pipe. */
static struct {
    pthread_mutex_t lock;
    bool is_stuck; /* it has left no room for PATIENCE_MS, and none since */
    uint64_t lost; /* lines meanwhile */
} reader = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

/* Whether a line can be written at once; an error of standard error is not waited for. */
static bool
has_room(void)
{
    struct pollfd end = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&end, 1, reader.is_stuck ? 0 : PATIENCE_MS) != 0;
}

/* Requests and the end of the server do not wait for a reader that does not read. */
static void
put(const char *line)
{
    PTHREAD_OK(pthread_mutex_lock(&reader.lock));
    if (!has_room()) {
        reader.is_stuck = true;
        reader.lost++;
    } else {
        if (reader.is_stuck) {
            fprintf(stderr,
                    "memcached: warning: %" PRIu64
                    " lines are lost, as the log was not read\n",
                    reader.lost);
            reader.is_stuck = false;
            reader.lost = 0;
        }
        fprintf(stderr, "%s\n", line);
    }
    PTHREAD_OK(pthread_mutex_unlock(&reader.lock));
}

static void
write_line(const char *fmt, va_list args, uint64_t left_out)
{
    char message[LOG_LINE_MAX], line[LOG_LINE_MAX + LOG_EXTRA_MAX], when[32];
    vsnprintf(message, sizeof message, fmt, args);
    int len = snprintf(line, sizeof line, "%s%s", stamp(when), message);
    if (left_out > 0) {
        snprintf(line + len, sizeof line - (size_t)len, " (%" PRIu64 " more left out)",
                 left_out);
    }
    put(line);
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
    char line[4 * LOG_CLIENT_MAX + LOG_EXTRA_MAX]; /* "\\xNN" a byte */
    size_t shown = len < LOG_CLIENT_MAX ? len : LOG_CLIENT_MAX;
    if (log_level() < LOG_DEBUG) {
        return;
    }
    int at = sprintf(line, "%c%d ", way, fd);
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = c >= ' ' && c < 0x7f && c != '\\';
        at += sprintf(line + at, is_plain ? "%c" : "\\x%02x", c);
    }
    strcpy(line + at, shown < len ? "..." : "");
    put(line);
}
