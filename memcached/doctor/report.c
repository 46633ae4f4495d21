/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The findings as text and as JSON.
 */
#include "config.h"
#include "doctor/check.h"

#define TEXT_LEN 1024
#define LINE_COLUMNS 80
#define LABEL_COLUMNS (LINE_COLUMNS - DOCTOR_TEXT_COLUMNS)
#define NAME_COLUMNS 28 /* of a level and the name of a check */

static const struct {
    const char *name, *title;
} levels[] = {
    [DOCTOR_BAD] = {"bad", "BAD"},    [DOCTOR_WARN] = {"warn", "WARN"},
    [DOCTOR_NOTE] = {"note", "NOTE"}, [DOCTOR_UNKNOWN] = {"unknown", "unknown"},
    [DOCTOR_GOOD] = {"good", "good"},
};

/* The text with the value in place of {}. */
static void
expand(const char *text, const char *value, char to[TEXT_LEN])
{
    size_t len = 0;
    while (*text != '\0' && len + 1 < TEXT_LEN) {
        if (strncmp(text, "{}", 2) == 0) {
            int n = snprintf(to + len, TEXT_LEN - len, "%s", value);
            len += (size_t)n < TEXT_LEN - len ? (size_t)n : TEXT_LEN - len - 1;
            text += 2;
        } else {
            to[len++] = *text++;
        }
    }
    to[len] = '\0';
}

/* ---- text ----------------------------------------------------------------------------- */

/* How much of the text goes onto a line: up to the last blank that fits, or all of a word that
 * does not fit. */
static size_t
fitting(const char *text, size_t columns)
{
    size_t end = strcspn(text, "\n");
    if (end <= columns) {
        return end;
    }
    size_t cut = columns;
    while (cut > 0 && text[cut] != ' ') {
        cut--;
    }
    return cut > 0 ? cut : strcspn(text, " \n");
}

/* The text beside its label. */
static void
print_part(FILE *out, int columns, const char *label, const char *text, const char *value)
{
    char expanded[TEXT_LEN];
    expand(text, value, expanded);
    for (const char *at = expanded; *at != '\0';) {
        size_t len = fitting(at, (size_t)(LINE_COLUMNS - columns));
        fprintf(out, "%-*s%.*s\n", columns, label, (int)len, at);
        label = "";
        at += len;
        at += *at != '\0';
    }
}

static void
print_finding(FILE *out, const struct doctor_finding *f)
{
    const struct doctor_check *c = f->check;
    const struct {
        const char *label, *text;
    } parts[] = {{"  found", f->found},
                 {"  wanted", c->wanted},
                 {"  why", c->why},
                 {"  now", c->mend},
                 {"  for good", c->stay}};
    fprintf(out, "%-6s%s\n", levels[f->level].title, c->name);
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].text != NULL) {
            print_part(out, LABEL_COLUMNS, parts[i].label, parts[i].text, f->value);
        }
    }
    fputc('\n', out);
}

static void
print_briefly(FILE *out, const struct doctor_finding *f)
{
    char label[NAME_COLUMNS];
    snprintf(label, sizeof label, "%-9s%s", levels[f->level].title, f->check->name);
    print_part(out, NAME_COLUMNS, label, f->found, "");
}

void
doctor_print(const struct doctor_report *r, bool shows_all, FILE *out)
{
    unsigned good = r->of_level[DOCTOR_GOOD];
    fprintf(out, "%u bad, %u warnings, %u notes, %u unknown, %u good\n\n",
            r->of_level[DOCTOR_BAD], r->of_level[DOCTOR_WARN], r->of_level[DOCTOR_NOTE],
            r->of_level[DOCTOR_UNKNOWN], good);
    for (unsigned i = 0; i < r->count; i++) {
        const struct doctor_finding *f = &r->list[i];
        if (f->level < DOCTOR_UNKNOWN) {
            print_finding(out, f);
        } else if (f->level == DOCTOR_UNKNOWN || shows_all) {
            print_briefly(out, f);
        }
    }
    if (good > 0 && !shows_all) {
        fprintf(out, "%u %s good; --doctor=all shows %s\n", good,
                good == 1 ? "check is" : "checks are", good == 1 ? "it" : "them");
    }
}

/* ---- JSON ----------------------------------------------------------------------------- */

/* Bytes that are not ASCII are shown as Latin-1, which always is valid. */
static void
put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else if (*p < ' ' || *p >= 0x7f) {
            fprintf(out, "\\u%04x", *p);
        } else {
            fputc(*p, out);
        }
    }
    fputc('"', out);
}

static void
put_member(FILE *out, const char *name, const char *text, const char *value)
{
    char expanded[TEXT_LEN];
    expand(text != NULL ? text : "", value, expanded);
    fprintf(out, ",\n   \"%s\": ", name);
    put_string(out, expanded);
}

void
doctor_print_json(const struct doctor_report *r, FILE *out)
{
    fprintf(out, "{\n \"program\": \"%s %s\",\n \"counts\": {", PACKAGE_NAME,
            PACKAGE_VERSION);
    for (unsigned i = 0; i < DOCTOR_LEVELS; i++) {
        fprintf(out, "%s\"%s\": %u", i > 0 ? ", " : "", levels[i].name, r->of_level[i]);
    }
    fputs("},\n \"checks\": [", out);
    for (unsigned i = 0; i < r->count; i++) {
        const struct doctor_finding *f = &r->list[i];
        const struct doctor_check *c = f->check;
        fprintf(out, "%s\n  {\"name\": ", i > 0 ? "," : "");
        put_string(out, c->name);
        put_member(out, "level", levels[f->level].name, "");
        put_member(out, "found", f->found, "");
        put_member(out, "wanted", c->wanted, f->value);
        put_member(out, "why", c->why, f->value);
        put_member(out, "now", c->mend, f->value);
        put_member(out, "for_good", c->stay, f->value);
        fputs("}", out);
    }
    fputs("\n ]\n}\n", out);
}
