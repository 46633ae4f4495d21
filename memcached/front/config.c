/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The options of a file and of the command line, together.
 */
#include "front/config.h"

#include "base/file.h"
#include "front/front.h"

#define WHERE_MAX 4200

/* ---- reading -------------------------------------------------------------------------- */

const char *
config_find(int argc, char **argv, const char *name)
{
    size_t len = strlen(name);
    const char *value = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *text = argv[i];
        if (strncmp(text, "--", 2) != 0 || strncmp(text + 2, name, len) != 0) {
            continue;
        }
        if (text[2 + len] == '=') {
            value = text + 2 + len + 1;
        } else if (text[2 + len] == '\0' && i + 1 < argc) {
            value = argv[i + 1];
        }
    }
    return value;
}

const char *
config_find_line(const struct config *c, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < c->file.count; i++) {
        if (strcmp(c->file.lines[i].name, name) == 0) {
            value = c->file.lines[i].value;
        }
    }
    return value;
}

/* A list that OPT_TEXT may point into and OPT_WORDS may cut. */
static char **
copy_words(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    for (int i = 0; words != NULL && i < argc; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) {
            while (i-- > 0) {
                free(words[i]);
            }
            free(words);
            return NULL;
        }
    }
    return words;
}

bool
config_open(struct config *c, int argc, char **argv, const char *path, FILE *err)
{
    *c = (struct config){.argc = argc, .argv = argv, .words = copy_words(argc, argv)};
    path = path != NULL ? path : config_find(argc, argv, "config");
    c->path = path != NULL && *path != '\0' ? file_absolute(path) : NULL;
    if (c->words == NULL || (path != NULL && *path != '\0' && c->path == NULL)) {
        fputs("memcached: out of memory, or the directory is gone\n", err);
        return false;
    }
    return c->path == NULL || config_file_read(&c->file, c->path, err);
}

void
config_fini(struct config *c)
{
    config_file_fini(&c->file);
    for (int i = 0; c->words != NULL && i < c->argc; i++) {
        free(c->words[i]);
    }
    free(c->words);
    free(c->given);
    free(c->path);
    *c = (struct config){.path = NULL};
}

/* ---- applying ------------------------------------------------------------------------- */

static const char *
hear(void *arg, const struct opt *row, const char *value)
{
    struct config *c = arg;
    struct config_given *given =
        reallocarray(c->given, c->given_count + 1, sizeof *given);
    if (given == NULL) {
        return "out of memory";
    }
    c->given = given;
    c->given[c->given_count++] = (struct config_given){row, value, c->from, c->line};
    return NULL;
}

static enum opt_result
apply_line(struct settings *s, const struct config_line *line, struct opt_table *table,
           FILE *err)
{
    static char where[WHERE_MAX];
    char program[] = "", *argv[] = {program, line->name, line->value, NULL};
    int ignored = 0;
    snprintf(where, sizeof where, "%s:%u", line->file, line->number);
    table->program = where;
    s->config.from = line->file;
    s->config.line = line->number;
    return *line->name == '-'
               ? opt_parse(table, s, line->value != NULL ? 3 : 2, argv, err, &ignored)
               : opt_set(table, s, line->name, line->value, err, &ignored);
}

static bool
apply_file(struct settings *s, const struct opt_table *table, FILE *err)
{
    struct opt_table of_file = *table;
    bool is_good = true;
    of_file.is_file = true;
    of_file.tells_words_on_stdout = of_file.tells_as_getopt = false;
    of_file.skips_operands = false;
    for (size_t i = 0; i < s->config.file.count; i++) {
        if (apply_line(s, &s->config.file.lines[i], &of_file, err) != OPT_DONE) {
            is_good = false;
            if (!config_file_blame(&s->config.file, err)) {
                break;
            }
        }
    }
    s->config.from = NULL;
    return is_good;
}

bool
config_apply(struct settings *s, const struct opt_table *table, FILE *err,
             int *exit_status)
{
    struct opt_table t = *table;
    t.heard = hear;
    t.heard_arg = &s->config;
    bool is_good = apply_file(s, &t, err) && s->config.file.errors == 0;
    *exit_status = CONFIG_STATUS;
    return is_good && opt_parse(&t, s, s->config.argc, s->config.words, err,
                                exit_status) == OPT_DONE;
}

/* ---- telling -------------------------------------------------------------------------- */

/* Whether nothing that comes later takes its place. */
static bool
counts(const struct config *c, size_t at)
{
    for (size_t i = at + 1; i < c->given_count; i++) {
        if (c->given[i].row == c->given[at].row && !c->given[at].row->adds_up) {
            return false;
        }
    }
    return true;
}

static void
print_given(const struct config_given *g, FILE *out)
{
    char letter[] = {'-', g->row->letter, '\0'};
    const char *name = g->row->name != NULL   ? g->row->name
                       : g->row->word != NULL ? g->row->word
                                              : letter;
    fputs(name, out);
    if (g->value != NULL) {
        bool is_quoted = *g->value == '\0' || (strpbrk(g->value, " \t#") != NULL &&
                                               strchr(g->value, '"') == NULL);
        const char *quote = is_quoted ? "\"" : "";
        fprintf(out, "%s%s%s%s", *name == '-' ? " " : " = ", quote, g->value, quote);
    }
    if (g->file != NULL) {
        fprintf(out, "  # %s:%u\n", g->file, g->line);
    } else {
        fputs("  # command line\n", out);
    }
}

void
config_print(const struct config *c, FILE *out)
{
    for (size_t i = 0; i < c->given_count; i++) {
        const struct config_given *g = &c->given[i];
        bool is_default = g->value != NULL && g->row->preset != NULL &&
                          strcmp(g->value, g->row->preset) == 0;
        if (!is_default && !g->row->is_argv_only && counts(c, i)) {
            print_given(g, out);
        }
    }
}

/* ---- options -------------------------------------------------------------------------- */

/* It was looked for before (config_open). */
static const char *
set_config(void *conf, const char *text)
{
    struct settings *s = conf;
    bool is_second = s->config.is_seen;
    s->config.is_seen = true;
    if (*text == '\0') {
        return "there is no name of a file";
    }
    return is_second ? "one file is given to --config; it may include others" : NULL;
}

/* clang-format off */
static const struct opt options[] = {
    {.name = "config", SET(set_config), .arg = "FILE", .section = PROCESS,
     .is_argv_only = true, .common = 18,
     .help = "read options from FILE, before those of the command line"},
    {.name = "check-config", .kind = OPT_SET, OF(action), .value = ACTION_CHECK,
     .section = PROCESS, .is_argv_only = true,
     .help = "say what is wrong with the options, and exit; -v lists them"},
};
/* clang-format on */

const struct front front_config = {OPTIONS(options), .usage = FRONT_USAGE};
