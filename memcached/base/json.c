/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/json.h"

#include <math.h>

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
