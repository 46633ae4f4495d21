/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/group.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/part.h"

#define FILE_MAX 65536
#define OPTION_MAX 64
#define PROGRAM_MAX 512

/* ---- reading --------------------------------------------------------------------------- */

/* All of it, a 0 behind. NULL with a line in `err`. */
static char *
read_file(const char *path, size_t *len, FILE *err)
{
    char *text;
    errno = 0;
    const char *wrong = value_file(path, FILE_MAX, "too long for a workload", &text, len);
    if (wrong != NULL && errno == ENOENT) {
        const struct model *like = model_like(path);
        fprintf(err,
                "mcload: unknown workload, and no such file: %s%s%s--workload=help lists "
                "them (--workload \"%s\")\n",
                like != NULL ? "did you mean " : "", like != NULL ? like->name : "",
                like != NULL ? "? " : "", path);
    } else if (wrong != NULL) {
        fprintf(err, "mcload: %s: %s (--workload)\n", path, wrong);
    }
    return text;
}

static void
free_entry(struct models_entry *e)
{
    free(e->word);
    free(e->text);
    free(e);
}

static struct models_entry *
read_entry(const char *word, FILE *err)
{
    size_t len;
    const char *told = part_after(word, MODEL_TEXT);
    char *text = told != NULL ? alloc_text(told) : read_file(word, &len, err);
    if (text == NULL) {
        return NULL;
    }
    len = told != NULL ? strlen(text) : len;
    struct models_entry *e = alloc_zeroed(1, sizeof *e);
    e->text = text;
    e->word = alloc_text(word);
    e->model.name = told != NULL ? "text" : e->word;
    unsigned line;
    const char *wrong = model_parse(&e->model, text, len, &line);
    if (wrong != NULL) {
        fprintf(err, "mcload: %s:%u: %s (--workload)\n", e->model.name, line, wrong);
        free_entry(e);
        return NULL;
    }
    return e;
}

const struct model *
models_known(const struct models *all, const char *word)
{
    for (unsigned i = 0; i < all->count; i++) {
        if (strcmp(all->entries[i]->word, word) == 0) {
            return &all->entries[i]->model;
        }
    }
    return NULL;
}

const struct model *
models_get(struct models *all, const char *word, FILE *err)
{
    const struct model *named = model_find(word);
    named = named != NULL ? named : models_known(all, word);
    if (named != NULL) {
        return named;
    }
    struct models_entry *e = read_entry(word, err);
    if (e == NULL) {
        return NULL;
    }
    all->entries =
        alloc_more(all->entries, all->count + 1, sizeof(struct models_entry *));
    all->entries[all->count++] = e;
    return &e->model;
}

void
models_fini(struct models *all)
{
    for (unsigned i = 0; i < all->count; i++) {
        free_entry(all->entries[i]);
    }
    free(all->entries);
    *all = (struct models){.count = 0};
}

/* ---- applying -------------------------------------------------------------------------- */

/* As "--NAME VALUE" on a command line would; complaints begin with the place. */
static bool
apply_field(struct lclass *c, enum model_field field, const char *text, char *place,
            FILE *err)
{
    char option[OPTION_MAX];
    char *argv[] = {place, option, (char *)text, NULL};
    int status = 0;
    struct opt_table table = *options_class_table();
    table.program = place;
    snprintf(option, sizeof option, "--%s", model_field_names[field]);
    return opt_parse(&table, c, 3, argv, err, &status) == OPT_DONE;
}

bool
models_apply(const struct model *m, struct lclass *c, FILE *err)
{
    bool is_good = true, has_lines = false;
    for (unsigned i = 0; is_good && i < MODEL_FIELDS; i++) {
        char place[PROGRAM_MAX] = "mcload";
        if (m->lines[i] > 0) {
            snprintf(place, sizeof place, "mcload: %s:%u", m->name, m->lines[i]);
            has_lines = true;
        }
        is_good = m->texts[i] == NULL ||
                  apply_field(c, (enum model_field)i, m->texts[i], place, err);
    }
    must(is_good || has_lines); /* a test goes through the table of those with a name */
    return is_good;
}
