/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/exposition.h"

#include <strings.h>

#include "base/must.h"

#define OPENMETRICS "application/openmetrics-text"
#define OPENMETRICS_VERSION "1.0.0"
#define TOTAL "_total"

/* ---- what is accepted ----------------------------------------------------------------- */

/* A part of the header. */
struct word {
    const char *p;
    size_t len;
};

static struct word
trimmed(const char *p, size_t len)
{
    while (len > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        len--;
    }
    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
        len--;
    }
    return (struct word){p, len};
}

/* Takes the next word off *rest, up to one of the ends. */
static struct word
next_word(struct word *rest, char end)
{
    const char *at = memchr(rest->p, end, rest->len);
    size_t len = at != NULL ? (size_t)(at - rest->p) : rest->len;
    struct word word = trimmed(rest->p, len);
    len += at != NULL;
    *rest = (struct word){rest->p + len, rest->len - len};
    return word;
}

static bool
is_word(struct word word, const char *text)
{
    return word.len == strlen(text) && strncasecmp(word.p, text, word.len) == 0;
}

static double
quality_of(struct word text)
{
    char digits[8] = "";
    memcpy(digits, text.p, text.len < sizeof digits ? text.len : sizeof digits - 1);
    return strtod(digits, NULL);
}

/* Takes "; q=0.5; version=1.0.0". The quality is 0 when it is another version's. */
static double
take_parameters(struct word rest, const char *version)
{
    double quality = 1;
    bool is_other = false;
    while (rest.len > 0) {
        struct word value = next_word(&rest, ';');
        struct word name = next_word(&value, '=');
        value = trimmed(value.p, value.len);
        if (is_word(name, "q")) {
            quality = quality_of(value);
        } else if (version != NULL && is_word(name, "version")) {
            is_other = !is_word(value, version);
        }
    }
    return is_other ? 0 : quality;
}

enum exposition_format
exposition_choose(const char *accept)
{
    struct word rest = {accept, accept != NULL ? strlen(accept) : 0};
    double openmetrics = 0, text = 0;
    while (rest.len > 0) {
        struct word parameters = next_word(&rest, ',');
        struct word type = next_word(&parameters, ';');
        bool is_openmetrics = is_word(type, OPENMETRICS);
        double quality =
            take_parameters(parameters, is_openmetrics ? OPENMETRICS_VERSION : NULL);
        if (is_openmetrics) {
            openmetrics = quality > openmetrics ? quality : openmetrics;
        } else if (is_word(type, "text/plain") || is_word(type, "text/*") ||
                   is_word(type, "*/*")) {
            text = quality > text ? quality : text;
        }
    }
    return openmetrics > 0 && openmetrics >= text ? EXPOSITION_OPENMETRICS
                                                  : EXPOSITION_TEXT;
}

const char *
exposition_type(enum exposition_format format)
{
    return format == EXPOSITION_OPENMETRICS ? OPENMETRICS "; version=" OPENMETRICS_VERSION
                                                          "; charset=utf-8"
                                            : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- writing -------------------------------------------------------------------------- */

/* Of the bytes up to the next that cannot be written as it is, or the end. */
static size_t
plain_len(const unsigned char *p)
{
    size_t len = 0;
    while (p[len] != '\0' && p[len] < 0x80 && p[len] != '\\' && p[len] != '"' &&
           p[len] != '\n') {
        len++;
    }
    return len;
}

/* Bytes that are not ASCII are written as Latin-1, so that the text is UTF-8 in any case. */
static void
write_escaped(FILE *out, const char *text, bool escapes_quotes)
{
    const unsigned char *p = (const unsigned char *)text;
    for (;; p++) {
        size_t len = plain_len(p);
        fwrite(p, 1, len, out);
        p += len;
        if (*p == '\0') {
            return;
        }
        if (*p >= 0x80) {
            fputc(0xc0 | *p >> 6, out);
            fputc(0x80 | (*p & 0x3f), out);
        } else if (*p == '"' && !escapes_quotes) {
            fputc(*p, out);
        } else {
            fputc('\\', out);
            fputc(*p == '\n' ? 'n' : *p, out);
        }
    }
}

/* OpenMetrics names a family of counters without what its samples end in. */
static int
family_len(const struct exposition *e, const char *name, enum metric_type type)
{
    size_t len = strlen(name);
    if (type == METRIC_COUNTER) {
        must(len > strlen(TOTAL) && strcmp(name + len - strlen(TOTAL), TOTAL) == 0);
        len -= e->format == EXPOSITION_OPENMETRICS ? strlen(TOTAL) : 0;
    }
    return (int)len;
}

void
exposition_family(struct exposition *e, const char *name, enum metric_type type,
                  const char *help)
{
    static const char *const types[] = {[METRIC_GAUGE] = "gauge",
                                        [METRIC_COUNTER] = "counter",
                                        [METRIC_HISTOGRAM] = "histogram"};
    if (e->family != NULL && strcmp(e->family, name) == 0) {
        return;
    }
    e->family = name;
    int len = family_len(e, name, type);
    fprintf(e->out, "# HELP %.*s ", len, name);
    write_escaped(e->out, help, e->format == EXPOSITION_OPENMETRICS);
    fprintf(e->out, "\n# TYPE %.*s %s\n", len, name, types[type]);
}

void
exposition_sample(struct exposition *e, const char *suffix,
                  const struct metric_label *labels, unsigned count, const char *value)
{
    fputs(e->family, e->out);
    fputs(suffix, e->out);
    for (unsigned i = 0; i < count; i++) {
        fputc(i == 0 ? '{' : ',', e->out);
        fputs(labels[i].name, e->out);
        fputs("=\"", e->out);
        write_escaped(e->out, labels[i].value, true);
        fputc('"', e->out);
    }
    fputs(count > 0 ? "} " : " ", e->out);
    fputs(value, e->out);
    fputc('\n', e->out);
}

void
exposition_end(struct exposition *e)
{
    if (e->format == EXPOSITION_OPENMETRICS) {
        fputs("# EOF\n", e->out);
    }
}
