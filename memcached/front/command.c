/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/command.h"

#include <stdarg.h>

#include "front/brief.h"
#include "front/stats.h"
#include "front/stats_qos.h"

#define LINE_MAX_BYTES 512
#define HELP_COLUMN 46 /* width of the usages that "qos help" shows */

struct row {
    const char *word;
    const char *arguments;
    unsigned least, most;
    bool is_control;
    qos_handler *handler;
    const char *meaning;
};

static const struct row rows[] = {
#define QOS(word, arguments, least, most, is_control, handler, meaning)                  \
    {word, arguments, least, most, is_control, handler, meaning},
#include "front/command.def"
#undef QOS
};

#define ROWS (sizeof rows / sizeof rows[0])

enum reply
qos_refuse(struct serve_qos *q, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    char line[LINE_MAX_BYTES + 32];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(line, sizeof line, "CLIENT_ERROR %s\r\n", text);
    sink_text(q->sink, "", line, strlen(line), false);
    q->sink->is_complete = true;
    return REPLY_NONE;
}

/* Of one sub-command; without a row the words that there are. */
static enum reply
refuse_usage(struct serve_qos *q, const struct row *row)
{
    if (row != NULL) {
        return qos_refuse(q, "usage: qos %s%s%s", row->word, *row->arguments ? " " : "",
                          row->arguments);
    }
    char words[LINE_MAX_BYTES] = "";
    size_t len = 0;
    for (size_t i = 0; i < ROWS; i++) {
        len += (size_t)snprintf(words + len, sizeof words - len, "%s%s", i > 0 ? "|" : "",
                                rows[i].word);
        must(len < sizeof words);
    }
    return qos_refuse(q, "usage: qos %s ...", words);
}

static const struct row *
find_row(struct slice word)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (req_word_is(word, rows[i].word)) {
            return &rows[i];
        }
    }
    return NULL;
}

static void
put_line(struct sink *sink, const char *text)
{
    char line[LINE_MAX_BYTES + 32];
    int len = snprintf(line, sizeof line, "%s\r\n", text);
    must(len > 0 && (size_t)len < sizeof line);
    sink_text(sink, "", line, (size_t)len, true);
}

static void
put_row(const struct row *row, struct sink *sink)
{
    char usage[HELP_COLUMN * 2], line[LINE_MAX_BYTES];
    snprintf(usage, sizeof usage, "qos %s%s%s", row->word, *row->arguments ? " " : "",
             row->arguments);
    snprintf(line, sizeof line, "%-*s  %s", HELP_COLUMN, usage, row->meaning);
    put_line(sink, line);
}

static enum reply
put_help(struct sink *sink)
{
    for (size_t i = 0; i < ROWS; i++) {
        put_row(&rows[i], sink);
    }
    return REPLY_END;
}

static void
put_settings(const struct stats *st, struct sink *sink)
{
    char lines[QOS_BRIEF_LINES][QOS_BRIEF_MAX];
    qos_brief(st, lines);
    for (unsigned i = 0; i < QOS_BRIEF_LINES; i++) {
        put_line(sink, lines[i]);
    }
}

enum reply
qos_refuse_control(struct serve_qos *q)
{
    return q->is_datagram
               ? qos_refuse(q, "not over UDP: use TCP or a UNIX socket")
               : qos_refuse(q,
                            "not from this connection: use a UNIX socket, loopback or a "
                            "listener with ;control (see --control)");
}

enum reply
qos_command(void *ctx, struct serve_qos *q)
{
    if (q->count == 0) {
        put_settings(ctx, q->sink);
        return put_help(q->sink);
    }
    const struct row *row = find_row(q->words[0]);
    if (row == NULL) {
        return refuse_usage(q, NULL);
    }
    if (row->is_control && !q->may_control) {
        return qos_refuse_control(q);
    }
    q->words++;
    q->count--;
    enum reply reply = REPLY_BAD_FORMAT;
    if (q->count >= row->least && q->count <= row->most) {
        reply = row->handler(ctx, q);
    }
    return reply == REPLY_BAD_FORMAT ? refuse_usage(q, row) : reply;
}

enum reply
qos_help(struct stats *st, struct serve_qos *q)
{
    (void)st;
    if (q->count == 0) {
        return put_help(q->sink);
    }
    const struct row *row = find_row(q->words[0]);
    if (row == NULL) {
        return refuse_usage(q, NULL);
    }
    put_row(row, q->sink);
    return REPLY_END;
}

enum reply
qos_show(struct stats *st, struct serve_qos *q)
{
    return stats_show_qos(st, q->place, q->sink);
}

/* Of the connection that asks. */
enum reply
qos_set_class(struct stats *st, struct serve_qos *q)
{
    struct slice name = q->words[0];
    enum req_class class = class_by_declared_name(name.p, name.len);
    bool is_auto = req_word_is(name, "auto");
    if (!is_auto && class == CLASS_NONE) {
        return REPLY_BAD_FORMAT;
    }
    if (q->is_datagram) {
        return qos_refuse(q, "a datagram has no connection to declare a class of");
    }
    if (!st->shared->core.classes.is_on) {
        return qos_refuse(q, "classes are off");
    }
    enum req_class now =
        q->declared == 0 ? CLASS_NONE : (enum req_class)(q->declared - 1);
    bool has_key_rules = st->shared->core.class_rules.key_count > 0;
    enum req_class next = is_auto ? CLASS_NONE : class;
    if (!q->may_control && !class_is_lower(now, next, has_key_rules)) {
        return qos_refuse_control(q);
    }
    q->declared = is_auto ? 0 : (uint8_t)(1 + class);
    return REPLY_OK;
}
