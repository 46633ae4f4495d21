/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/opt.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/num.h"
#include "base/opt_name.h"
#include "base/part.h"

struct opt_run {
    const struct opt_table *table;
    void *conf;
    FILE *err;
    int *exit_status;
    opt_visit *visit; /* instead of applying rows; NULL: none */
};

static char *
skip_blanks(char *text)
{
    return text == NULL ? NULL : text + strspn(text, " ");
}

/* A line of its own kind, and the exit status of usage. */
__attribute__((format(printf, 2, 3))) static enum opt_result
refuse(const struct opt_run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(run->err, "%s: ", run->table->program);
    vfprintf(run->err, fmt, args);
    fputc('\n', run->err);
    va_end(args);
    *run->exit_status = 1;
    return OPT_BAD;
}

/* About a value that a row does not take. */
static enum opt_result
complain(const struct opt_run *run, const struct opt *row, const char *text,
         const char *sentence)
{
    char how[80];
    const char *why = row->error != NULL ? row->error : sentence;
    if (text != NULL) {
        bool has_two = run->table->is_file && strstr(text, " -") != NULL;
        fprintf(run->err, "%s: %s (%s \"%s\")%s\n", run->table->program, why,
                opt_spelling(row, how), text,
                has_two ? ", and a line is one option" : "");
    } else {
        fprintf(run->err, "%s: %s (%s)\n", run->table->program, why,
                opt_spelling(row, how));
    }
    *run->exit_status = row->exit_status != 0 ? row->exit_status : 1;
    return OPT_BAD;
}

static bool
has_bounds(const struct opt *row)
{
    return row->min != 0 || row->max != 0;
}

static bool
is_in_bounds(const struct opt *row, double value)
{
    return !has_bounds(row) || (value >= row->min && value <= row->max);
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

/* "64", "64m", "64MB", "1g", "1gb". */
static bool
parse_megabytes(const char *text, size_t len, int64_t *out)
{
    len -= len > 1 && (text[len - 1] | ' ') == 'b';
    char suffix = len > 0 ? (char)(text[len - 1] | ' ') : '\0';
    bool has_suffix = suffix == 'm' || suffix == 'g';
    bool is_whole = has_suffix || text[len] == '\0' || text[len] == ' '; /* no b alone */
    return is_whole && num_i64(text, len - has_suffix, out) &&
           !__builtin_mul_overflow(*out, suffix == 'g' ? 1024 : 1, out);
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
    case OPT_MEGS:
        return parse_megabytes(text, len, out);
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
    const char *why = has_bounds(row) ? bounds : "not a number";
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
    value *= row->unit != 0 ? row->unit : 1;
    if (row->size == sizeof(uint32_t)) { /* its bounds are those of the field */
        *(uint32_t *)field = (uint32_t)value;
    } else {
        *(int64_t *)field = value;
    }
    return OPT_DONE;
}

static enum opt_result
set_choice(const struct opt_run *run, const struct opt *row, const char *text,
           unsigned *field)
{
    unsigned i = part_find(row->choices, row->choice_count, text, strlen(text));
    if (i < row->choice_count) {
        *field = i;
        return OPT_DONE;
    }
    char values[160], sentence[192];
    snprintf(sentence, sizeof sentence, "must be %s", opt_values(row, values));
    return complain(run, row, text, sentence);
}

static enum opt_result apply_words(const struct opt_run *run, char *list);

static enum opt_result
apply_text(const struct opt_run *run, const struct opt *row, char *text)
{
    void *field = (char *)run->conf + row->offset;
    if (opt_takes_value(row) && text == NULL && !opt_is_optional(row)) {
        fprintf(run->err, "%s: Missing %s argument\n", run->table->program, row->word);
        *run->exit_status = row->exit_status != 0 ? row->exit_status : 1;
        return OPT_BAD;
    }
    switch (row->kind) {
    case OPT_FLAG:
    case OPT_OFF:
        *(bool *)field = row->kind == OPT_FLAG;
        return OPT_DONE;
    case OPT_SWITCH:
        *(bool *)field = strcmp(text, "on") == 0;
        return *(bool *)field || strcmp(text, "off") == 0
                   ? OPT_DONE
                   : complain(run, row, text, "must be on or off");
    case OPT_SET:
        *(unsigned *)field = row->value;
        return OPT_DONE;
    case OPT_COUNT:
        *(unsigned *)field += 1;
        return OPT_DONE;
    case OPT_CHOICE:
        return set_choice(run, row, text, field);
    case OPT_TEXT:
        *(const char **)field = text;
        return OPT_DONE;
    case OPT_CALL:
    case OPT_PARSE: {
        const char *why = row->call(row->kind == OPT_CALL ? run->conf : field, text);
        return why == NULL ? OPT_DONE : complain(run, row, text, why);
    }
    case OPT_WORDS:
        return apply_words(run, text);
    case OPT_IGNORE: {
        char how[80];
        fprintf(run->err, "%s: %s is accepted, but has no effect in this version\n",
                run->table->program, opt_spelling(row, how));
        return OPT_DONE;
    }
    case OPT_REFUSE:
        return complain(run, row, NULL, "not supported by this version");
    default:
        return set_number(run, row, text, field);
    }
}

static enum opt_result
apply(const struct opt_run *run, const struct opt *row, char *value)
{
    const struct opt_table *t = run->table;
    char *text = skip_blanks(value);
    if (t->is_file && row->is_argv_only) {
        char how[80];
        return refuse(run, "%s belongs on the command line, not in a file",
                      opt_spelling(row, how));
    }
    enum opt_result result = apply_text(run, row, text);
    if (result != OPT_DONE || t->heard == NULL || row->kind == OPT_WORDS) {
        return result;
    }
    const char *why = t->heard(t->heard_arg, row, text);
    return why == NULL ? OPT_DONE : refuse(run, "%s", why);
}

static enum opt_result
apply_word(const struct opt_run *run, char *text)
{
    char *equals = strchr(text, '=');
    size_t len = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct opt *row = opt_find_word(run->table, text, len);
    if (row == NULL) {
        char meant[OPT_NAMES_MAX];
        opt_suggest(run->table, true, text, len, meant);
        if (run->table->is_file) {
            return refuse(run, "unknown word of -o: %s%s", text, meant);
        }
        fprintf(run->table->tells_words_on_stdout ? stdout : run->err,
                "Illegal suboption \"%s\"%s\n", text, meant);
        *run->exit_status = 1;
        return OPT_BAD;
    }
    return apply(run, row, equals != NULL && opt_takes_value(row) ? equals + 1 : NULL);
}

/* "a,b=1,c": cut in place, so that OPT_TEXT fields may point into argv. */
static enum opt_result
apply_words(const struct opt_run *run, char *list)
{
    char *rest = list;
    char *word;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (*word != '\0' && apply_word(run, word) != OPT_DONE) {
            return OPT_BAD;
        }
    }
    return OPT_DONE;
}

/* ---- the command line ------------------------------------------------------------------ */

/* Where the walk stands; `next` is the argument that follows. */
struct opt_walk {
    const struct opt_run *run;
    int argc, next;
    char **argv;
    const struct opt *bare; /* the option just taken, if its value was left out */
};

static enum opt_result
take(struct opt_walk *w, const struct opt *row, char *value)
{
    const struct opt_run *run = w->run;
    bool may_be_bare = opt_takes_value(row) && opt_is_optional(row) && row->name != NULL;
    w->bare = value == NULL && may_be_bare && row->kind != OPT_COUNT ? row : NULL;
    if (run->visit == NULL) {
        return apply(run, row, value);
    }
    const char *why = run->visit(run->conf, row, skip_blanks(value));
    return why == NULL ? OPT_DONE : complain(run, row, value, why);
}

/* With the value at `value`, or, where that is NULL, in the next argument. */
static enum opt_result
take_with_value(struct opt_walk *w, const struct opt *row, char *value,
                const char *dashes, const char *name)
{
    if (value == NULL && w->next < w->argc) {
        value = w->argv[w->next++];
    }
    if (value == NULL) {
        char values[160];
        return refuse(w->run, "option %s%s needs a value: %s", dashes, name,
                      opt_values(row, values));
    }
    return take(w, row, value);
}

/* The letter, and the argument from its first letter on: maybe a name whose second dash is missing. */
static enum opt_result
unknown_letter(const struct opt_run *run, char letter, const char *letters)
{
    if (!run->table->tells_as_getopt) {
        char why[OPT_WHY_MAX];
        size_t len = strcspn(letters, "=");
        const struct opt *row =
            len > 1 ? opt_find_long(run->table, letters, len, why) : NULL;
        return row == NULL
                   ? refuse(run, "unknown option -%c. See --help", letter)
                   : refuse(run, "unknown option -%c; did you mean --%s? See --help",
                            letter, row->name);
    }
    enum opt_result result = refuse(run, "invalid option -- '%c'", letter);
    fputs("Illegal argument \"?\"\n", run->err);
    return result;
}

/* "-abc", "-p11211", "-p 11211". */
static enum opt_result
take_letters(struct opt_walk *w, char *letters)
{
    enum opt_result result = OPT_DONE;
    const char *first = letters;
    while (result == OPT_DONE && *letters != '\0') {
        const char name[2] = {*letters++, '\0'};
        const struct opt *row = opt_find_letter(w->run->table, name[0]);
        if (row == NULL) {
            return unknown_letter(w->run, name[0], first);
        }
        if (opt_takes_value(row) && !opt_is_optional(row)) {
            return take_with_value(w, row, *letters != '\0' ? letters : NULL, "-", name);
        }
        result = take(w, row, NULL);
    }
    return result;
}

static bool
has_value_behind(const struct opt_walk *w, const struct opt *row)
{
    return row->may_follow && w->next < w->argc && w->argv[w->next][0] != '-';
}

/* "name", "name=value", "name value". */
static enum opt_result
take_long(struct opt_walk *w, char *text)
{
    char why[OPT_WHY_MAX];
    size_t len = strcspn(text, "=");
    char *value = text[len] == '=' ? text + len + 1 : NULL;
    const struct opt *row = opt_find_long(w->run->table, text, len, why);
    if (row == NULL) {
        return refuse(w->run, "%s", why);
    }
    if (!opt_takes_value(row)) {
        return value == NULL
                   ? take(w, row, NULL)
                   : refuse(w->run, "option --%s takes no value: --%s", row->name, text);
    }
    if (value != NULL || (opt_is_optional(row) && !has_value_behind(w, row))) {
        return take(w, row, value);
    }
    return take_with_value(w, row, NULL, "--", row->name);
}

static enum opt_result
take_operand(struct opt_walk *w, const char *text)
{
    const struct opt_run *run = w->run;
    const struct opt_table *t = run->table;
    const struct opt *bare = w->bare;
    w->bare = NULL;
    if (t->operand != NULL) {
        const char *wrong = t->operand(run->conf, text);
        return wrong == NULL ? OPT_DONE : refuse(run, "%s: %s", wrong, text);
    }
    const char *outcome = t->skips_operands ? ", ignored" : "";
    enum opt_result result =
        bare == NULL
            ? refuse(run, "not an option%s: %s", outcome, text)
            : refuse(run, "not an option%s: %s; a value of --%s is written --%s=%s",
                     outcome, text, bare->name, bare->name, text);
    return t->skips_operands ? OPT_DONE : result;
}

static enum opt_result
walk(const struct opt_run *run, int argc, char **argv)
{
    struct opt_walk w = {run, argc, 1, argv, NULL};
    enum opt_result result = OPT_DONE;
    bool is_end = false; /* all behind "--" are operands */
    while (result == OPT_DONE && w.next < argc) {
        char *text = argv[w.next++];
        if (run->table->is_file && w.next > 2) {
            result = refuse(run, "%s takes no value, and a line is one option: %s",
                            argv[1], text);
        } else if (is_end || text[0] != '-' || text[1] == '\0') {
            result = take_operand(&w, text);
        } else if (text[1] != '-') {
            result = take_letters(&w, text + 1);
        } else if (text[2] != '\0') {
            result = take_long(&w, text + 2);
        } else {
            is_end = true;
        }
    }
    return result;
}

void
opt_preset(const struct opt_table *t, void *conf, bool is_old)
{
    int exit_status;
    struct opt_run run = {t, conf, stderr, &exit_status, NULL};
    for (size_t i = 0; i < t->count; i++) {
        const struct opt *row = &t->rows[i];
        const char *text =
            is_old && row->old_preset != NULL ? row->old_preset : row->preset;
        /* only lists of words would be cut in place */
        must(text == NULL || apply(&run, row, (char *)text) == OPT_DONE);
    }
}

enum opt_result
opt_parse(const struct opt_table *t, void *conf, int argc, char **argv, FILE *err,
          int *exit_status)
{
    struct opt_run run = {t, conf, err, exit_status, NULL};
    return walk(&run, argc, argv);
}

/* A line of a file that begins with no option's name; maybe with its letter. */
static enum opt_result
refuse_name(const struct opt_run *run, const char *name, const char *value,
            const char *why)
{
    static const char see[] = ". See --help";
    const char *end = strstr(why, see);
    if (name[0] == '\0' || name[1] != '\0' ||
        opt_find_letter(run->table, name[0]) == NULL) {
        return refuse(run, "%s", why);
    }
    return refuse(run, "%.*s; the letter is written -%s%s%s",
                  end != NULL ? (int)(end - why) : (int)strlen(why), why, name,
                  value != NULL ? " " : "", value != NULL ? value : "");
}

enum opt_result
opt_set(const struct opt_table *t, void *conf, const char *name, char *value, FILE *err,
        int *exit_status)
{
    struct opt_run run = {t, conf, err, exit_status, NULL};
    char why[OPT_WHY_MAX], how[80], values[160];
    const struct opt *row = opt_find_word(t, name, strlen(name));
    if (row == NULL) {
        row = opt_find_long(t, name, strlen(name), why);
    }
    if (row == NULL) {
        return refuse_name(&run, name, value, why);
    }
    if (value != NULL && !opt_takes_value(row)) {
        return refuse(&run, "%s takes no value: write its name alone",
                      opt_spelling(row, how));
    }
    if (value == NULL && opt_takes_value(row) && !opt_is_optional(row)) {
        return refuse(&run, "%s needs a value: %s", opt_spelling(row, how),
                      opt_values(row, values));
    }
    return apply(&run, row, value);
}

static int64_t
number_of(const struct opt *row, const void *field)
{
    int64_t value = row->size == sizeof(uint32_t) ? *(const uint32_t *)field
                                                  : *(const int64_t *)field;
    return value / (row->unit != 0 ? row->unit : 1);
}

/* In full: num_double knows no exponents. */
static void
tell_double(double value, char to[OPT_TOLD_MAX])
{
    size_t len = (size_t)snprintf(to, OPT_TOLD_MAX, "%.10f", value);
    while (to[len - 1] == '0') {
        to[--len] = '\0';
    }
    to[len - (to[len - 1] == '.')] = '\0';
}

void
opt_tell(const struct opt *row, const void *conf, char to[OPT_TOLD_MAX])
{
    const void *field = (const char *)conf + row->offset;
    must(row->live != NULL);
    if (row->live->tell != NULL) {
        row->live->tell(conf, to, OPT_TOLD_MAX);
        return;
    }
    switch (row->kind) {
    case OPT_FLAG:
    case OPT_SWITCH:
        snprintf(to, OPT_TOLD_MAX, "%s", *(const bool *)field ? "on" : "off");
        break;
    case OPT_OFF:
        snprintf(to, OPT_TOLD_MAX, "%s", *(const bool *)field ? "off" : "on");
        break;
    case OPT_CHOICE:
        snprintf(to, OPT_TOLD_MAX, "%s", row->choices[*(const unsigned *)field]);
        break;
    case OPT_DOUBLE:
        tell_double(*(const double *)field, to);
        break;
    default:
        snprintf(to, OPT_TOLD_MAX, "%" PRIi64, number_of(row, field));
        break;
    }
}

bool
opt_takes(const struct opt *row, const void *conf)
{
    const void *field = (const char *)conf + row->offset;
    return !has_bounds(row) ||
           is_in_bounds(row, row->kind == OPT_DOUBLE ? *(const double *)field
                                                     : (double)number_of(row, field));
}

enum opt_result
opt_each(const struct opt_table *t, opt_visit *visit, void *arg, int argc, char **argv,
         FILE *err)
{
    int exit_status;
    struct opt_run run = {t, arg, err, &exit_status, visit};
    return walk(&run, argc, argv);
}
