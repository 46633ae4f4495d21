/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The findings as text and as JSON.
 */
#include "config.h"
#include "base/json.h"
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

static void
put_member(struct json *j, const char *name, const char *text, const char *value)
{
    char expanded[TEXT_LEN];
    expand(text != NULL ? text : "", value, expanded);
    json_put(j, JSON(name, expanded));
}

static void
put_finding(struct json *j, const struct doctor_finding *f)
{
    const struct doctor_check *c = f->check;
    json_open(j, NULL, '{');
    json_put(j, JSON("name", c->name), JSON("level", levels[f->level].name),
             JSON("found", f->found));
    put_member(j, "wanted", c->wanted, f->value);
    put_member(j, "why", c->why, f->value);
    put_member(j, "now", c->mend, f->value);
    put_member(j, "for_good", c->stay, f->value);
    json_close(j, '}');
}

void
doctor_print_json(const struct doctor_report *r, FILE *out)
{
    struct json j;
    json_init(&j, out);
    json_open(&j, NULL, '{');
    json_put(&j, JSON("program", PACKAGE_NAME " " PACKAGE_VERSION));
    json_open(&j, "counts", '{');
    for (unsigned i = 0; i < DOCTOR_LEVELS; i++) {
        json_put(&j, JSON(levels[i].name, r->of_level[i]));
    }
    json_close(&j, '}');
    json_open(&j, "checks", '[');
    for (unsigned i = 0; i < r->count; i++) {
        put_finding(&j, &r->list[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
}
