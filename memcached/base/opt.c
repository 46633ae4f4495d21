/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/opt.h"

#include <getopt.h>

#include "base/num.h"

#define OPT_LETTERS_MAX 256
#define OPT_LONG_BASE 1000 /* getopt_long codes of rows, above any letter */
#define OPT_WORDS_CODE 999 /* above any letter, below the rows */

struct opt_run {
    const struct opt_table *table;
    void *conf;
    FILE *err;
    int *exit_status;
    opt_visit *visit; /* instead of applying rows; NULL: none */
};

static bool
takes_value(const struct opt *row)
{
    return row->arg != NULL;
}

static bool
is_optional(const struct opt *row)
{
    return row->arg[strlen(row->arg) - 1] == '?';
}

static const char *
skip_blanks(const char *text)
{
    return text == NULL ? NULL : text + strspn(text, " ");
}

/* How the user wrote it, for messages. */
static const char *
spelling(const struct opt *row, char dst[80])
{
    if (row->name != NULL) {
        snprintf(dst, 80, "--%s", row->name);
    } else if (row->word != NULL) {
        snprintf(dst, 80, "-o %s", row->word);
    } else {
        snprintf(dst, 80, "-%c", row->letter);
    }
    return dst;
}

static enum opt_result
complain(const struct opt_run *run, const struct opt *row, const char *text,
         const char *sentence)
{
    char how[80];
    const char *why = row->error != NULL ? row->error : sentence;
    if (text != NULL) {
        fprintf(run->err, "%s: %s (%s \"%s\")\n", run->table->program, why,
                spelling(row, how), text);
    } else {
        fprintf(run->err, "%s: %s (%s)\n", run->table->program, why, spelling(row, how));
    }
    *run->exit_status = row->exit_status != 0 ? row->exit_status : 1;
    return OPT_BAD;
}

static bool
is_in_bounds(const struct opt *row, double value)
{
    return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

static bool
parse_octal(const char *text, int64_t *out)
{
    int64_t value = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '7' || value > 0777777) {
            return false;
        }
        value = value * 8 + (*p - '0');
    }
    *out = value;
    return *text != '\0';
}

static bool
parse_integer(const struct opt *row, const char *text, int64_t *out)
{
    size_t len = strlen(text);
    uint64_t scaled;
    while (len > 0 && text[len - 1] == ' ') {
        len--;
    }
    switch (row->kind) {
    case OPT_INT:
        return num_i64(text, len, out);
    case OPT_OCTAL:
        return parse_octal(text, out);
    default:
        if (!num_scaled(text, len, row->kind == OPT_BYTES ? 1024 : 1000, &scaled) ||
            scaled > INT64_MAX) {
            return false;
        }
        *out = (int64_t)scaled;
        return true;
    }
}

static enum opt_result
set_number(const struct opt_run *run, const struct opt *row, const char *text,
           void *field)
{
    char bounds[160];
    snprintf(bounds, sizeof bounds, "not a number between %.0f and %.0f", row->min,
             row->max);
    const char *why = row->min == 0 && row->max == 0 ? "not a number" : bounds;
    if (row->kind == OPT_DOUBLE) {
        double value;
        if (!num_double(text, strlen(text), &value) || !is_in_bounds(row, value)) {
            return complain(run, row, text, why);
        }
        *(double *)field = value;
        return OPT_DONE;
    }
    int64_t value;
    if (!parse_integer(row, text, &value) || !is_in_bounds(row, (double)value)) {
        return complain(run, row, text, why);
    }
    *(int64_t *)field = value;
    return OPT_DONE;
}

static enum opt_result
set_choice(const struct opt_run *run, const struct opt *row, const char *text,
           unsigned *field)
{
    for (unsigned i = 0; i < row->choice_count; i++) {
        if (row->choices[i] != NULL && strcmp(text, row->choices[i]) == 0) {
            *field = i;
            return OPT_DONE;
        }
    }
    return complain(run, row, text, "none of the values it may have");
}

static enum opt_result
apply(const struct opt_run *run, const struct opt *row, const char *value)
{
    const char *text = skip_blanks(value);
    void *field = (char *)run->conf + row->offset;
    if (takes_value(row) && text == NULL && !is_optional(row)) {
        fprintf(run->err, "%s: Missing %s argument\n", run->table->program, row->word);
        *run->exit_status = row->exit_status != 0 ? row->exit_status : 1;
        return OPT_BAD;
    }
    switch (row->kind) {
    case OPT_FLAG:
    case OPT_OFF:
        *(bool *)field = row->kind == OPT_FLAG;
        return OPT_DONE;
    case OPT_COUNT:
        *(unsigned *)field += 1;
        return OPT_DONE;
    case OPT_CHOICE:
        return set_choice(run, row, text, field);
    case OPT_TEXT:
        *(const char **)field = text;
        return OPT_DONE;
    case OPT_CALL: {
        const char *why = row->call(run->conf, text);
        return why == NULL ? OPT_DONE : complain(run, row, text, why);
    }
    case OPT_IGNORE: {
        char how[80];
        fprintf(run->err, "%s: %s is accepted, but has no effect in this version\n",
                run->table->program, spelling(row, how));
        return OPT_DONE;
    }
    case OPT_REFUSE:
        return complain(run, row, NULL, "not supported by this version");
    default:
        return set_number(run, row, text, field);
    }
}

static const struct opt *
find_word(const struct opt_table *t, const char *word, size_t len)
{
    for (size_t i = 0; i < t->count; i++) {
        const char *w = t->rows[i].word;
        if (w != NULL && strlen(w) == len && memcmp(w, word, len) == 0) {
            return &t->rows[i];
        }
    }
    return NULL;
}

static enum opt_result
apply_word(const struct opt_run *run, char *text)
{
    char *equals = strchr(text, '=');
    size_t len = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct opt *row = find_word(run->table, text, len);
    if (row == NULL) {
        fprintf(run->table->tells_words_on_stdout ? stdout : run->err,
                "Illegal suboption \"%s\"\n", text);
        *run->exit_status = 1;
        return OPT_BAD;
    }
    return apply(run, row, equals != NULL && takes_value(row) ? equals + 1 : NULL);
}

/* "a,b=1,c": cut in place, so that OPT_TEXT fields may point into argv. */
static enum opt_result
apply_words(const struct opt_run *run, char *list)
{
    char *rest = list + strspn(list, " ");
    char *word;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (*word != '\0' && apply_word(run, word) != OPT_DONE) {
            return OPT_BAD;
        }
    }
    return OPT_DONE;
}

/* getopt's own tables, made from the rows. */
struct opt_getopt {
    char letters[OPT_LETTERS_MAX];
    struct option *longs;
    char *prefixes; /* names among them that are no row's */
};

static int
has_arg(const struct opt *row)
{
    if (!takes_value(row)) {
        return no_argument;
    }
    return is_optional(row) ? optional_argument : required_argument;
}

static const struct opt *
find_long(const struct opt_table *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->count; i++) {
        const char *n = t->rows[i].name;
        if (n != NULL && strlen(n) == len && memcmp(n, name, len) == 0) {
            return &t->rows[i];
        }
    }
    return NULL;
}

/* How many elders begin so. */
static unsigned
count_elders(const struct opt_table *t, const char *prefix, size_t len)
{
    unsigned n = 0;
    for (const char *const *e = t->elders; *e != NULL; e++) {
        n += strncmp(*e, prefix, len) == 0 ? 1 : 0;
    }
    return n;
}

/* Abbreviations of elders as names of their own: getopt takes those first. Without `g` only
 * counts them, and the bytes that they take. */
static size_t
add_prefixes(const struct opt_table *t, struct opt_getopt *g, size_t longs, size_t *bytes)
{
    size_t at = 0;
    for (const char *const *e = t->elders; e != NULL && *e != NULL; e++) {
        const struct opt *row = find_long(t, *e, strlen(*e));
        for (size_t len = 1; row != NULL && (*e)[len] != '\0'; len++) {
            if (find_long(t, *e, len) != NULL || count_elders(t, *e, len) > 1) {
                continue;
            }
            if (g != NULL) {
                memcpy(g->prefixes + at, *e, len);
                g->longs[longs] = (struct option){g->prefixes + at, has_arg(row), NULL,
                                                  OPT_LONG_BASE + (int)(row - t->rows)};
            }
            at += len + 1;
            longs++;
        }
    }
    *bytes = at;
    return longs;
}

/* False: no memory. */
static bool
make_room(const struct opt_table *t, struct opt_getopt *g)
{
    size_t bytes;
    size_t longs = add_prefixes(t, NULL, t->count + 2, &bytes);
    g->longs = calloc(longs, sizeof *g->longs);
    g->prefixes = calloc(bytes + 1, 1);
    return g->longs != NULL && g->prefixes != NULL;
}

static void
free_getopt(struct opt_getopt *g)
{
    free(g->longs);
    free(g->prefixes);
}

/* False: no memory. */
static bool
build_getopt(const struct opt_table *t, struct opt_getopt *g)
{
    size_t at = 0;
    size_t longs = 0;
    g->letters[at++] =
        '+'; /* in the order given: what is next is an option, or the end */
    g->letters[at++] = ':'; /* report a missing value apart from an unknown letter */
    if (!make_room(t, g)) {
        return false;
    }
    for (size_t i = 0; i < t->count; i++) {
        const struct opt *row = &t->rows[i];
        must(at + 4 < sizeof g->letters);
        if (row->letter != 0) {
            g->letters[at++] = row->letter;
            if (takes_value(row) && !is_optional(row)) {
                g->letters[at++] = ':';
            }
        }
        if (row->name != NULL) {
            g->longs[longs++] =
                (struct option){row->name, has_arg(row), NULL, OPT_LONG_BASE + (int)i};
        }
    }
    if (t->has_words) {
        g->letters[at++] = 'o';
        g->letters[at++] = ':';
        g->longs[longs++] =
            (struct option){"extended", required_argument, NULL, OPT_WORDS_CODE};
    }
    size_t bytes;
    add_prefixes(t, g, longs, &bytes);
    g->letters[at] = '\0';
    return true;
}

static const struct opt *
find_row(const struct opt_table *t, int code)
{
    if (code >= OPT_LONG_BASE) {
        return &t->rows[code - OPT_LONG_BASE];
    }
    for (size_t i = 0; i < t->count; i++) {
        if (t->rows[i].letter == code) {
            return &t->rows[i];
        }
    }
    return NULL;
}

/* '_' reads as '-' in the name part of a long option; values are left alone. */
static void
normalise_name(char *arg)
{
    if (arg != NULL && strncmp(arg, "--", 2) == 0) {
        for (char *p = arg + 2; *p != '\0' && *p != '='; p++) {
            *p = *p == '_' ? '-' : *p;
        }
    }
}

static enum opt_result
one_option(const struct opt_run *run, int code, char **argv)
{
    if (code == '?' || code == ':') {
        const char *written =
            optopt != 0 && optopt < OPT_LETTERS_MAX ? NULL : argv[optind - 1];
        char letter[3] = {'-', (char)optopt, '\0'};
        fprintf(run->err, "%s: %s: %s: Illegal argument \"?\"\n", run->table->program,
                code == '?' ? "unknown or ambiguous option" : "option needs a value",
                written != NULL ? written : letter);
        *run->exit_status = 1;
        return OPT_BAD;
    }
    if (run->table->has_words && (code == 'o' || code == OPT_WORDS_CODE)) {
        return apply_words(run, optarg);
    }
    const struct opt *row = find_row(run->table, code);
    must(row != NULL);
    if (run->visit != NULL) {
        const char *why = run->visit(run->conf, row, skip_blanks(optarg));
        return why == NULL ? OPT_DONE : complain(run, row, optarg, why);
    }
    return apply(run, row, optarg);
}

/* Goes on behind it: getopt would end here. */
static enum opt_result
one_operand(const struct opt_run *run, char **argv)
{
    if (run->table->operand != NULL) {
        const char *wrong = run->table->operand(run->conf, argv[optind++]);
        if (wrong != NULL) {
            fprintf(run->err, "%s: %s: %s\n", run->table->program, wrong,
                    argv[optind - 1]);
            *run->exit_status = 1;
        }
        return wrong == NULL ? OPT_DONE : OPT_BAD;
    }
    fprintf(run->err, "%s: not an option%s: %s\n", run->table->program,
            run->table->skips_operands ? ", left out" : "", argv[optind]);
    optind++;
    *run->exit_status = 1;
    return run->table->skips_operands ? OPT_DONE : OPT_BAD;
}

static enum opt_result
walk(const struct opt_run *run, int argc, char **argv)
{
    const struct opt_table *t = run->table;
    struct opt_getopt g;
    if (!build_getopt(t, &g)) {
        fprintf(run->err, "%s: out of memory\n", t->program);
        *run->exit_status = 1;
        free_getopt(&g);
        return OPT_BAD;
    }
    enum opt_result result = OPT_DONE;
    int code;
    opterr = 0;
    optind = 0; /* glibc: start afresh, so that tests may parse more than once */
    normalise_name(argc > 1 ? argv[1] : NULL);
    bool is_end = false; /* all behind "--" are operands */
    while (result == OPT_DONE && !is_end) {
        code = getopt_long(argc, argv, g.letters, g.longs, NULL);
        is_end = code == -1 && (optind >= argc || strcmp(argv[optind - 1], "--") == 0);
        if (code != -1) {
            result = one_option(run, code, argv);
        } else if (optind < argc) {
            result = one_operand(run, argv);
        }
        normalise_name(optind < argc ? argv[optind] : NULL);
    }
    free_getopt(&g);
    return result;
}

enum opt_result
opt_parse(const struct opt_table *t, void *conf, int argc, char **argv, FILE *err,
          int *exit_status)
{
    struct opt_run run = {t, conf, err, exit_status, NULL};
    return walk(&run, argc, argv);
}

enum opt_result
opt_each(const struct opt_table *t, opt_visit *visit, void *arg, int argc, char **argv,
         FILE *err)
{
    int exit_status;
    struct opt_run run = {t, arg, err, &exit_status, visit};
    return walk(&run, argc, argv);
}

#define HELP_COLUMN 34

void
opt_help(const struct opt_table *t, FILE *out)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct opt *row = &t->rows[i];
        if (row->help == NULL) {
            continue;
        }
        char left[96];
        int n = 0;
        n += row->letter != 0 ? snprintf(left, sizeof left, "-%c", row->letter) : 0;
        n += row->name != NULL ? snprintf(left + n, sizeof left - (size_t)n, "%s--%s",
                                          n > 0 ? ", " : "", row->name)
                               : 0;
        n += row->word != NULL ? snprintf(left + n, sizeof left - (size_t)n, "%s-o %s",
                                          n > 0 ? ", " : "", row->word)
                               : 0;
        if (row->arg != NULL) {
            int len = (int)strlen(row->arg) - is_optional(row);
            n += snprintf(left + n, sizeof left - (size_t)n, "%s%.*s%s",
                          is_optional(row)                         ? "[="
                          : row->name != NULL || row->word != NULL ? "="
                                                                   : " ",
                          len, row->arg, is_optional(row) ? "]" : "");
        }
        if (n > HELP_COLUMN) { /* words that do not fit have a line of their own */
            fprintf(out, "  %s\n", left);
            left[0] = '\0';
        }
        fprintf(out, "  %-*s %s\n", HELP_COLUMN, left, row->help);
    }
}
