/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/facts.h"

#include <math.h>
#include <stdarg.h>

#include "base/alloc.h"
#include "base/num.h"

#define FACTS_MAX 200000 /* an answer that goes on is garbage */
#define NAME_MAX_BYTES 128

void
facts_add(struct facts *f, const char *name, const char *value)
{
    f->rows = alloc_grown(f->rows, f->count, sizeof *f->rows);
    f->rows[f->count++] = (struct fact){alloc_text(name), alloc_text(value)};
}

enum outcome
facts_ask(struct facts *f, struct link *l, const char *group)
{
    char question[NAME_MAX_BYTES];
    snprintf(question, sizeof question, "stats%s%s", *group != '\0' ? " " : "", group);
    for (char *line = link_word(l, question); line != NULL; line = link_line(l)) {
        if (strcmp(line, "END") == 0) {
            return DONE;
        }
        if (strncmp(line, "STAT ", strlen("STAT ")) != 0 || f->count == FACTS_MAX) {
            return link_refused(l, question, line);
        }
        const char *name = strtok(line + strlen("STAT "), " "), *value = strtok(NULL, "");
        facts_add(f, name != NULL ? name : "", value != NULL ? value : "");
    }
    return UNREACHABLE;
}

void
facts_fini(struct facts *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->rows[i].name);
        free(f->rows[i].value);
    }
    free(f->rows);
    *f = (struct facts){0};
}

static const char *
find(const struct facts *f, const char *format, va_list args)
{
    char name[NAME_MAX_BYTES];
    vsnprintf(name, sizeof name, format, args);
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->rows[i].name, name) == 0) {
            return f->rows[i].value;
        }
    }
    return NULL;
}

const char *
facts_text(const struct facts *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *value = find(f, format, args);
    va_end(args);
    return value;
}

double
facts_number(const struct facts *f, const char *format, ...)
{
    double number;
    va_list args;
    va_start(args, format);
    const char *value = find(f, format, args);
    va_end(args);
    return value != NULL && num_double(value, strlen(value), &number) ? number : NAN;
}
