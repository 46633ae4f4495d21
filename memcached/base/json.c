/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/json.h"

#include "base/must.h"

static void
write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else if (*p < ' ' || *p >= 0x7f) {
            /* Bytes of arguments need not be UTF-8: shown as Latin-1, which always is
             * valid. */
            fprintf(out, "\\u%04x", *p);
        } else {
            fputc(*p, out);
        }
    }
    fputc('"', out);
}

static const char *
skip_digits(const char *p)
{
    return p + strspn(p, "0123456789");
}

/* By the grammar of JSON, which has no plus, no leading zeros and no bare point. */
static bool
is_number(const char *text)
{
    const char *p = text + (*text == '-');
    const char *whole = p;
    p = skip_digits(p);
    if (p == whole || (*whole == '0' && p > whole + 1)) {
        return false;
    }
    if (*p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p);
        if (p == fraction) {
            return false;
        }
    }
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '+' || p[1] == '-' ? 2 : 1;
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent) {
            return false;
        }
    }
    return *p == '\0' &&
           isfinite(strtod(text, NULL)); /* or readers have no number for it */
}

static void
start_member(struct json *j, const char *key)
{
    if (j->depth > 0) {
        fputs(j->has_members ? "," : "", j->out);
        /* Members of objects stand on their own lines, elements of arrays do not. */
        if (key != NULL) {
            if (!j->is_line) {
                fprintf(j->out, "\n%*s", (int)j->depth, "");
            }
            write_text(j->out, key);
            fputs(": ", j->out);
        }
    }
    j->has_members = true;
}

void
json_init(struct json *j, FILE *out)
{
    *j = (struct json){.out = out};
}

void
json_open(struct json *j, const char *key, char bracket)
{
    start_member(j, key);
    fputc(bracket, j->out);
    j->depth++;
    j->has_members = false;
}

void
json_close(struct json *j, char bracket)
{
    must(j->depth > 0);
    j->depth--;
    fputc(bracket, j->out);
    j->has_members = true;
    if (j->depth == 0) {
        fputc('\n', j->out);
    }
}

static void
write_number(FILE *out, int digits, double value)
{
    if (isfinite(value)) {
        fprintf(out, "%.*g", digits, value);
    } else {
        fputs("null", out);
    }
}

static void
write_member(struct json *j, const struct json_member *m)
{
    start_member(j, m->key);
    switch (m->kind) {
    case JSON_IS_TEXT:
        write_text(j->out, m->text);
        break;
    case JSON_IS_VALUE:
        if (is_number(m->text)) {
            fputs(m->text, j->out);
        } else {
            write_text(j->out, m->text);
        }
        break;
    case JSON_IS_COUNT:
        fprintf(j->out, "%ju", (uintmax_t)m->count);
        break;
    case JSON_IS_NUMBER:
        write_number(j->out, 9, m->number);
        break;
    case JSON_IS_EXACT:
        must(isfinite(m->number));
        write_number(j->out, 17, m->number);
        break;
    case JSON_IS_BOOL:
        fputs(m->is ? "true" : "false", j->out);
        break;
    case JSON_IS_LEFT_OUT:
    case JSON_IS_END:
        unreachable();
    }
}

void
json_members(struct json *j, const struct json_member *m)
{
    for (; m->kind != JSON_IS_END; m++) {
        if (m->kind != JSON_IS_LEFT_OUT) {
            write_member(j, m);
        }
    }
}
