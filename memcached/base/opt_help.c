/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/fold.h"
#include "base/opt_name.h"
#include "base/phrase.h"

#define HELP_LEFT 2    /* blanks before an option */
#define HELP_COLUMN 37 /* where sentences begin */
#define HELP_WIDTH 80
#define HELP_MAX 240  /* bytes of a sentence */
#define COMMON_MAX 24 /* places of the short help, which fits a terminal */

/* "-p, --port=N". */
static void
describe(const struct opt *row, char *dst, size_t size)
{
    struct phrase t = {dst, size, 0};
    const char *comma = "";
    if (row->letter != 0) {
        phrase_add(&t, "-%c", row->letter);
        comma = ", ";
    }
    if (row->name != NULL) {
        phrase_add(&t, "%s--%s", comma, row->name);
        comma = ", ";
    }
    if (row->word != NULL) {
        phrase_add(&t, "%s-o %s", comma, row->word);
    }
    if (row->arg != NULL) {
        bool is_optional = opt_is_optional(row);
        bool is_letter = row->name == NULL && row->word == NULL;
        phrase_add(&t, "%s%.*s%s",
                   is_optional ? "[="
                   : is_letter ? " "
                               : "=",
                   (int)strlen(row->arg) - is_optional, row->arg, is_optional ? "]" : "");
    }
}

/* With its default behind it: "sentence (1)", "sentence (1; in OLD 0)". */
static void
print_help(const struct opt_table *t, const struct opt *row, FILE *out)
{
    const char *preset = row->preset_help != NULL ? row->preset_help : row->preset;
    char text[HELP_MAX], old[HELP_MAX] = "";
    if (row->old_preset != NULL) {
        snprintf(old, sizeof old, "; in %s %s", t->old_version, row->old_preset);
    }
    bool has_preset = preset != NULL && row->arg != NULL;
    int len = has_preset
                  ? snprintf(text, sizeof text, "%s (%s%s)", row->help, preset, old)
                  : snprintf(text, sizeof text, "%s", row->help);
    must(len >= 0 && (size_t)len < sizeof text);
    fold_text(out, text, HELP_COLUMN, HELP_WIDTH);
}

static void
print_row(const struct opt_table *t, const struct opt *row, FILE *out)
{
    char left[120];
    describe(row, left, sizeof left);
    if (HELP_LEFT + strlen(left) >= HELP_COLUMN) { /* has a line of its own */
        fprintf(out, "%*s%s\n", HELP_LEFT, "", left);
        left[0] = '\0';
    }
    fprintf(out, "%*s%-*s", HELP_LEFT, "", HELP_COLUMN - HELP_LEFT, left);
    print_help(t, row, out);
}

static void
print_section(const struct opt_table *t, unsigned section, FILE *out)
{
    if (t->sections != NULL) {
        fprintf(out, "%s:\n", t->sections[section].title);
    }
    for (size_t i = 0; i < t->count; i++) {
        if (t->rows[i].help != NULL && t->rows[i].section == section) {
            print_row(t, &t->rows[i], out);
        }
    }
}

void
opt_help(const struct opt_table *t, FILE *out)
{
    print_section(t, 0, out);
    for (unsigned i = 1; i < t->section_count; i++) {
        fputc('\n', out);
        print_section(t, i, out);
    }
}

void
opt_help_common(const struct opt_table *t, FILE *out)
{
    for (unsigned place = 1; place <= COMMON_MAX; place++) {
        for (size_t i = 0; i < t->count; i++) {
            if (t->rows[i].help != NULL && t->rows[i].common == place) {
                print_row(t, &t->rows[i], out);
            }
        }
    }
}

void
opt_help_topics(const struct opt_table *t, FILE *out)
{
    for (size_t i = 0; i < t->section_count; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", t->sections[i].topic);
    }
}

static bool
contains(const char *name, const char *part)
{
    for (; name != NULL && *name != '\0'; name++) {
        if (opt_begins_with(name, part, strlen(part))) {
            return true;
        }
    }
    return false;
}

/* A letter is that option, more of them a part of a name. */
static bool
is_about(const struct opt *row, const char *topic)
{
    if (row->help == NULL || *topic == '\0') {
        return false;
    }
    return topic[1] == '\0' ? row->letter == *topic
                            : contains(row->name, topic) || contains(row->word, topic);
}

bool
opt_help_topic(const struct opt_table *t, const char *topic, FILE *out, FILE *err)
{
    bool has_any = false;
    for (unsigned i = 0; i < t->section_count; i++) {
        if (strcmp(t->sections[i].topic, topic) == 0) {
            print_section(t, i, out);
            return true;
        }
    }
    topic += strspn(topic, "-");
    for (size_t i = 0; i < t->count; i++) {
        if (is_about(&t->rows[i], topic)) {
            print_row(t, &t->rows[i], out);
            has_any = true;
        }
    }
    if (!has_any) {
        fprintf(err, "%s: no help on \"%s\"; topics: ", t->program, topic);
        opt_help_topics(t, err);
        fputs("; or a part of an option's name\n", err);
    }
    return has_any;
}
