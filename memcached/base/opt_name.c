/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/opt_name.h"

#include "base/phrase.h"

#define NAME_MAX_BYTES 64 /* longer ones are like no other */
#define SUGGESTIONS_MAX 8 /* names in a message */
#define NAMES_MAX 256
#define BYTES_PER_MISTAKE 3 /* of a name that still looks like another */
#define MISTAKES_MAX 3

const char *
opt_spelling(const struct opt *row, char dst[80])
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

/* Up to the next '|' outside of brackets. */
static size_t
alternative_len(const char *text, size_t len)
{
    int depth = 0;
    for (size_t i = 0; i < len; i++) {
        depth += (text[i] == '[') - (text[i] == ']');
        if (text[i] == '|' && depth == 0) {
            return i;
        }
    }
    return len;
}

const char *
opt_values(const struct opt *row, char dst[160])
{
    struct phrase t = {dst, 160, 0};
    const char *p = row->arg;
    size_t left = strlen(p) - opt_is_optional(row);
    for (bool is_first = true; left > 0; is_first = false) {
        size_t len = alternative_len(p, left);
        const char *between = is_first ? "" : len == left ? " or " : ", ";
        phrase_add(&t, "%s%.*s", between, (int)len, p);
        len += len < left;
        p += len;
        left -= len;
    }
    return dst;
}

/* ---- finding -------------------------------------------------------------------------- */

static char
folded(char c)
{
    return c == '_' ? '-' : c;
}

bool
opt_begins_with(const char *name, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] == '\0' || folded(name[i]) != folded(text[i])) {
            return false;
        }
    }
    return true;
}

static const struct opt *
find_exact(const struct opt_table *t, const char *text, size_t len)
{
    for (size_t i = 0; i < t->count; i++) {
        const char *name = t->rows[i].name;
        if (name != NULL && strlen(name) == len && opt_begins_with(name, text, len)) {
            return &t->rows[i];
        }
    }
    return NULL;
}

const struct opt *
opt_find_letter(const struct opt_table *t, char letter)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->rows[i].letter == letter) {
            return &t->rows[i];
        }
    }
    return NULL;
}

const struct opt *
opt_find_word(const struct opt_table *t, const char *text, size_t len)
{
    for (size_t i = 0; i < t->count; i++) {
        const char *word = t->rows[i].word;
        if (word != NULL && strlen(word) == len && memcmp(word, text, len) == 0) {
            return &t->rows[i];
        }
    }
    return NULL;
}

/* ---- suggesting ----------------------------------------------------------------------- */

static unsigned
least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* How many bytes have to be inserted, left out, replaced or swapped with the next. */
static unsigned
distance(const char *name, const char *text, size_t len)
{
    unsigned d[3][NAME_MAX_BYTES + 1];
    size_t name_len = strlen(name);
    must(name_len <= NAME_MAX_BYTES && len <= NAME_MAX_BYTES);
    for (unsigned j = 0; j <= len; j++) {
        d[0][j] = j;
    }
    for (size_t i = 1; i <= name_len; i++) {
        unsigned *now = d[i % 3], *last = d[(i + 2) % 3], *before = d[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= len; j++) {
            bool is_same = folded(name[i - 1]) == folded(text[j - 1]);
            now[j] = least(least(now[j - 1], last[j]) + 1, last[j - 1] + !is_same);
            if (i > 1 && j > 1 && folded(name[i - 1]) == folded(text[j - 2]) &&
                folded(name[i - 2]) == folded(text[j - 1])) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
    }
    return d[name_len % 3][len];
}

/* How far a name is from what was written; what continues it is near. */
static unsigned
mistakes_in(const char *name, const char *text, size_t len)
{
    if (name == NULL || strlen(name) > NAME_MAX_BYTES) {
        return NAME_MAX_BYTES;
    }
    return opt_begins_with(name, text, len) ? name[len] != '\0'
                                            : distance(name, text, len);
}

/* "--a, --b or --c": returns how many there were. */
static unsigned
list_names(const struct opt **rows, unsigned count, char *dst, size_t size)
{
    struct phrase t = {dst, size, 0};
    for (unsigned i = 0; i < count; i++) {
        char how[80];
        phrase_add(&t, "%s%s",
                   i == 0           ? ""
                   : i + 1 == count ? " or "
                                    : ", ",
                   opt_spelling(rows[i], how));
    }
    return count;
}

const char *
opt_suggest(const struct opt_table *t, bool is_word, const char *text, size_t len,
            char dst[OPT_NAMES_MAX])
{
    const struct opt *near[SUGGESTIONS_MAX];
    char names[NAMES_MAX];
    unsigned count = 0;
    unsigned best = least((unsigned)(len / BYTES_PER_MISTAKE), MISTAKES_MAX);
    for (size_t i = 0; best > 0 && len <= NAME_MAX_BYTES && i < t->count; i++) {
        const struct opt *row = &t->rows[i];
        const char *first = is_word ? row->word : row->name;
        const char *name = first != NULL ? first : is_word ? row->name : row->word;
        unsigned mistakes =
            row->help != NULL ? mistakes_in(name, text, len) : NAME_MAX_BYTES;
        count = mistakes < best ? 0 : count;
        best = least(best, mistakes);
        if (mistakes == best && count < SUGGESTIONS_MAX) {
            near[count++] = row;
        }
    }
    *dst = '\0';
    if (list_names(near, count, names, sizeof names) > 0) {
        snprintf(dst, OPT_NAMES_MAX, "; did you mean %s? See --help", names);
    }
    return dst;
}

const struct opt *
opt_find_long(const struct opt_table *t, const char *text, size_t len,
              char why[OPT_WHY_MAX])
{
    const struct opt *meant[SUGGESTIONS_MAX];
    char names[OPT_NAMES_MAX];
    const struct opt *row = find_exact(t, text, len);
    unsigned count = 0;
    for (const char *const *e = t->elders; row == NULL && e != NULL && *e != NULL; e++) {
        if (len > 0 && opt_begins_with(*e, text, len) && count < SUGGESTIONS_MAX) {
            meant[count] = find_exact(t, *e, strlen(*e));
            must(meant[count] != NULL);
            count++;
        }
    }
    if (row != NULL || count == 1) {
        return row != NULL ? row : meant[0];
    }
    if (count > 1) {
        list_names(meant, count, names, sizeof names);
        snprintf(why, OPT_WHY_MAX, "option --%.*s is ambiguous: %s. See --help", (int)len,
                 text, names);
    } else {
        opt_suggest(t, false, text, len, names);
        snprintf(why, OPT_WHY_MAX, "unknown option --%.*s%s",
                 NAME_MAX_BYTES < len ? NAME_MAX_BYTES : (int)len, text,
                 *names != '\0' ? names : ". See --help");
    }
    return NULL;
}
