/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The findings as text and as JSON.
 */
#include "base/fold.h"
#include "base/json.h"
#include "doctor/rows.h"

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

/* The text with what stands for {} and {unit}. */
static void
expand(const char *text, const char *value, const char *unit, char to[TEXT_LEN])
{
    for (size_t len = 0; *text != '\0' && len + 1 < TEXT_LEN; len = strlen(to)) {
        bool is_value = strncmp(text, "{}", strlen("{}")) == 0;
        bool is_unit = strncmp(text, "{unit}", strlen("{unit}")) == 0;
        if (is_value || is_unit) {
            snprintf(to + len, TEXT_LEN - len, "%s", is_unit ? unit : value);
            text += is_unit ? strlen("{unit}") : strlen("{}");
        } else {
            size_t plain = 1 + strcspn(text + 1, "{");
            snprintf(to + len, TEXT_LEN - len, "%.*s", (int)plain, text);
            text += plain;
        }
    }
}

/* ---- text ----------------------------------------------------------------------------- */

static void
print_finding(FILE *out, const struct doctor_report *r, const struct doctor_finding *f)
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
            char text[TEXT_LEN] = "";
            expand(parts[i].text, f->value, f->unit[0] != '\0' ? f->unit : r->unit, text);
            fprintf(out, "%-*s", LABEL_COLUMNS, parts[i].label);
            fold_text(out, text, LABEL_COLUMNS, LINE_COLUMNS);
        }
    }
    fputc('\n', out);
}

void
doctor_print(const struct doctor_report *r, bool shows_all, FILE *out)
{
    unsigned good = r->of_level[DOCTOR_GOOD];
    unsigned warnings = r->of_level[DOCTOR_WARN], notes = r->of_level[DOCTOR_NOTE];
    fprintf(out, "%u bad, %u warning%s, %u note%s, %u unknown, %u good\n\n",
            r->of_level[DOCTOR_BAD], warnings, warnings == 1 ? "" : "s", notes,
            notes == 1 ? "" : "s", r->of_level[DOCTOR_UNKNOWN], good);
    for (unsigned i = 0; i < r->count; i++) {
        const struct doctor_finding *f = &r->list[i];
        if (f->level < DOCTOR_UNKNOWN) {
            print_finding(out, r, f);
        } else if (f->level == DOCTOR_UNKNOWN || shows_all) {
            fprintf(out, "%-9s%-*s", levels[f->level].title, NAME_COLUMNS - 9,
                    f->check->name);
            fold_text(out, f->found, NAME_COLUMNS, LINE_COLUMNS);
        }
    }
    if (good > 0 && !shows_all) {
        fprintf(out, "%u %s good; --doctor=all shows %s\n", good,
                good == 1 ? "check is" : "checks are", good == 1 ? "it" : "them");
    }
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void
put_finding(struct json *j, const struct doctor_report *r, const struct doctor_finding *f)
{
    const struct doctor_check *c = f->check;
    const struct {
        const char *key, *text;
    } parts[] = {
        {"wanted", c->wanted}, {"why", c->why}, {"now", c->mend}, {"for_good", c->stay}};
    json_open(j, NULL, '{');
    json_put(j, JSON("name", c->name), JSON("level", levels[f->level].name),
             JSON("found", f->found));
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char text[TEXT_LEN] = "";
        expand(parts[i].text != NULL ? parts[i].text : "", f->value,
               f->unit[0] != '\0' ? f->unit : r->unit, text);
        json_put(j, JSON(parts[i].key, text));
    }
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
        put_finding(&j, r, &r->list[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
}
