/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/group.h"

#include <ctype.h>

#include "base/alloc.h"
#include "base/opt_name.h"

#define BLANKS " \t\n"
#define SHAPE "a class is NAME:{OPTIONS}, e.g. bulk:{--connections=4 --getcount=50}"

static const struct opt *
find(const struct opt_table *t, char letter, const char *name, size_t len)
{
    char why[OPT_WHY_MAX];
    return letter != '\0' ? opt_find_letter(t, letter) : opt_find_long(t, name, len, why);
}

struct split {
    struct words *words;
    const struct opt_table *own, *all;
    char *to;         /* room for the next word */
    bool wants_value; /* the next word is that of the last one */
    char *err;
};

static const char *
add(struct split *s, const char *dashes, const char *word, size_t len)
{
    if (s->words->argc > WORDS_MAX) {
        return "too many words in a class";
    }
    s->words->argv[s->words->argc++] = s->to;
    s->to += sprintf(s->to, "%s%.*s", dashes, (int)len, word) + 1;
    return NULL;
}

static const char *
add_option(struct split *s, const char *word, size_t len)
{
    size_t dashes = len > 1 && strncmp(word, "--", 2) == 0 ? 2 : len > 0 && *word == '-';
    bool is_short = dashes == 1;
    const char *name = word + dashes;
    const char *equals = memchr(name, '=', len - dashes);
    size_t name_len = equals != NULL ? (size_t)(equals - name) : len - dashes;
    char letter = is_short && len > 1 ? *name : '\0';
    const struct opt *row = find(s->own, letter, name, name_len);
    if (row == NULL) {
        if (dashes == 0 && name_len == 1 && find(s->own, *name, name, name_len) != NULL) {
            snprintf(s->err, WORDS_ERR_MAX,
                     "a short option keeps its dash in class %s: -%c", s->words->name,
                     *name);
            return s->err;
        }
        bool is_known = find(s->all, letter, name, name_len) != NULL;
        snprintf(s->err, WORDS_ERR_MAX, "%s in class %s: %.*s",
                 is_known ? "an option of the whole run" : "unknown option",
                 s->words->name, (int)(is_short ? len : dashes + name_len), word);
        return s->err;
    }
    bool has_value = is_short ? len > 2 : equals != NULL;
    s->wants_value = opt_takes_value(row) && !opt_is_optional(row) && !has_value;
    return add(s, is_short ? "" : "--", is_short ? word : name,
               is_short ? len : len - dashes);
}

static const char *
split(struct split *s, const char *text, size_t len)
{
    const char *wrong = NULL;
    const char *end = text + len;
    while (wrong == NULL && text < end) {
        text += strspn(text, BLANKS);
        size_t n = strcspn(text, BLANKS);
        n = n < (size_t)(end - text) ? n : (size_t)(end - text);
        if (text < end && n > 0) {
            if (s->wants_value) {
                s->wants_value = false;
                wrong = add(s, "", text, n);
            } else {
                wrong = add_option(s, text, n);
            }
        }
        text += n;
    }
    if (wrong == NULL && s->wants_value) {
        snprintf(s->err, WORDS_ERR_MAX, "option needs a value in class %s: %s",
                 s->words->name, s->words->argv[s->words->argc - 1]);
        wrong = s->err;
    }
    return wrong;
}

static const char *
take_name(struct words *w, const char *text, const char **open)
{
    const char *colon = strchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    if (colon == NULL || len == 0 || colon[1] != '{') {
        return SHAPE;
    }
    if (len > WORDS_NAME_MAX) {
        return "the name of a class is at most 32 letters long";
    }
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && strchr("_.-", text[i]) == NULL) {
            return "the name of a class is made of letters, digits, '_', '.' and '-'";
        }
        w->name[i] = text[i];
    }
    *open = colon + 1;
    return NULL;
}

const char *
words_parse(struct words *w, const char *text, const struct opt_table *own,
            const struct opt_table *all, char err[WORDS_ERR_MAX])
{
    static char program[] = "mcload";
    const char *open;
    *w = (struct words){.argv = {program}, .argc = 1};
    const char *wrong = take_name(w, text, &open);
    if (wrong != NULL) {
        return wrong;
    }
    size_t len = strlen(open + 1);
    while (len > 0 && strchr(BLANKS, open[len]) != NULL) {
        len--;
    }
    if (len == 0 || open[len] != '}') {
        return SHAPE;
    }
    /* Each word grows by two dashes and an end at most. */
    w->text = alloc_bytes(4 * len + 1);
    struct split s = {w, own, all, w->text, false, err};
    return split(&s, open + 1, len - 1);
}

void
words_fini(struct words *w)
{
    free(w->text);
    w->text = NULL;
}
