/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/json.h"

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
            fprintf(j->out, "\n%*s", (int)j->depth, "");
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

void
json_text(struct json *j, const char *key, const char *value)
{
    start_member(j, key);
    write_text(j->out, value);
}

void
json_u64(struct json *j, const char *key, uint64_t value)
{
    start_member(j, key);
    fprintf(j->out, "%ju", (uintmax_t)value);
}

void
json_number(struct json *j, const char *key, double value)
{
    start_member(j, key);
    if (isfinite(value)) {
        fprintf(j->out, "%.9g", value);
    } else {
        fputs("null", j->out);
    }
}

void
json_exact(struct json *j, const char *key, double value)
{
    must(isfinite(value));
    start_member(j, key);
    fprintf(j->out, "%.17g", value);
}

void
json_bool(struct json *j, const char *key, bool value)
{
    start_member(j, key);
    fputs(value ? "true" : "false", j->out);
}

void
json_nothing(struct json *j, const char *key)
{
    start_member(j, key);
    fputs("null", j->out);
}
