/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/model.h"

#include <assert.h>
#include <ctype.h>

#include "base/opt_name.h"
#include "base/part.h"

#define BLANKS " \t\r"
#define ENDS "\n;"
#define ERR_MAX 160
#define SHOWN_MAX 40 /* of a word that is none */

static const struct model models[] = {
#define MODEL(model, key_size, value_size, popularity, ops, expiry, arrivals, on_miss,   \
              what)                                                                      \
    {.name = model,                                                                      \
     .about = what,                                                                      \
     .texts = {key_size, value_size, popularity, ops, expiry, arrivals, on_miss}},
#include "loadgen/work/models.def"
#undef MODEL
};
#define MODELS (sizeof models / sizeof models[0])

const char *const model_field_names[MODEL_FIELDS] = {
    [MODEL_KEYSIZE] = "keysize",       [MODEL_VALUESIZE] = "valuesize",
    [MODEL_POPULARITY] = "popularity", [MODEL_OPS] = "ops",
    [MODEL_EXPIRY] = "expiry",         [MODEL_ARRIVALS] = "arrivals",
    [MODEL_ON_MISS] = "on-miss",       [MODEL_GETCOUNT] = "getcount",
    [MODEL_MISS_RATIO] = "miss-ratio", [MODEL_ONE_HIT] = "one-hit",
    [MODEL_CHURN] = "churn",           [MODEL_VALUE_SIZE_PER] = "value-size-per",
    [MODEL_KEY_FORMAT] = "key-format", [MODEL_KEY_PREFIX] = "key-prefix",
    [MODEL_FLAGS] = "flags",           [MODEL_RECORDS] = "records",
};
const struct model *
model_find(const char *name)
{
    return part_row(PART_ROWS(models), name, strlen(name));
}

static char
bare(char c)
{
    return c == '-' || c == '_' ? ':' : (char)tolower((unsigned char)c);
}

const struct model *
model_like(const char *name)
{
    for (unsigned i = 0; i < MODELS; i++) {
        const char *p = name, *q = models[i].name;
        for (; *p != '\0' && bare(*p) == bare(*q); p++, q++) {
        }
        if (*p == '\0' && *q == '\0') {
            return &models[i];
        }
    }
    return NULL;
}

/* ---- printing ------------------------------------------------------------------------- */

void
model_help(FILE *out)
{
    for (unsigned i = 0; i < MODELS; i++) {
        const char *const *texts = models[i].texts;
        fprintf(out,
                "%s\n    %s\n    --keysize=%s\n    --valuesize=%s\n    --popularity=%s"
                " --ops=%s\n    --expiry=%s --arrivals=%s --on-miss=%s\n",
                models[i].name, models[i].about, texts[MODEL_KEYSIZE],
                texts[MODEL_VALUESIZE], texts[MODEL_POPULARITY], texts[MODEL_OPS],
                texts[MODEL_EXPIRY], texts[MODEL_ARRIVALS], texts[MODEL_ON_MISS]);
    }
    fputs("twitter: statistics of March 2020 by Twitter and the authors of \"A large "
          "scale\n"
          "analysis of hundreds of in-memory cache clusters at Twitter\" (OSDI 2020),\n"
          "github.com/twitter/cache-trace, CC BY 4.0, adapted\n",
          out);
}

void
model_print(const struct model *m, FILE *out)
{
    fprintf(out, "# %s%s%s\n", m->name, m->about != NULL ? ": " : "",
            m->about != NULL ? m->about : "");
    for (unsigned i = 0; i < MODEL_FIELDS; i++) {
        if (m->texts[i] != NULL) {
            fprintf(out, "%s = %s\n", model_field_names[i], m->texts[i]);
        }
    }
}

bool
model_put(const struct model *m, char *dst, size_t cap)
{
    size_t used = 0;
    for (unsigned i = 0; i < MODEL_FIELDS; i++) {
        const char *text = m->texts[i];
        if (text == NULL) {
            continue;
        }
        int n = snprintf(dst + used, cap - used, "%s%s=%s", used > 0 ? ";" : "",
                         model_field_names[i], text);
        if (strpbrk(text, BLANKS ENDS) != NULL || n < 0 || (size_t)n >= cap - used) {
            return false;
        }
        used += (size_t)n;
    }
    return used > 0;
}

/* ---- parsing -------------------------------------------------------------------------- */

static char err[ERR_MAX];

/* '_' and '-' are alike. */
static enum model_field
find_field(const char *name, size_t len)
{
    unsigned i = 0;
    while (i < MODEL_FIELDS && (strlen(model_field_names[i]) != len ||
                                !opt_begins_with(model_field_names[i], name, len))) {
        i++;
    }
    return (enum model_field)i;
}

static bool
is_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* A comment begins where a word may. */
static size_t
without_comment(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '#' && (i == 0 || strchr(BLANKS, line[i - 1]) != NULL)) {
            return i;
        }
    }
    return len;
}

static size_t
without_blanks(const char *text, size_t len)
{
    while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL) {
        len--;
    }
    return len;
}

/* "NAME = VALUE", nothing around it; the byte behind it may be written. */
static const char *
take_field(struct model *m, char *text, size_t len, unsigned line)
{
    char *equals = memchr(text, '=', len);
    if (equals == NULL) {
        return "a line of a workload is NAME = VALUE";
    }
    const char *name = text + (len > 2 && memcmp(text, "--", 2) == 0 ? 2 : 0);
    size_t name_len = equals > name ? without_blanks(name, (size_t)(equals - name)) : 0;
    enum model_field field = find_field(name, name_len);
    if (field == MODEL_FIELDS) {
        int shown = name_len < SHOWN_MAX ? (int)name_len : SHOWN_MAX;
        snprintf(err, sizeof err, "no field of a workload: \"%.*s\"", shown, name);
        return err;
    }
    text[len] = '\0';
    char *value = equals + 1 + strspn(equals + 1, BLANKS);
    if (*value == '\0') {
        snprintf(err, sizeof err, "%s has no value", model_field_names[field]);
        return err;
    }
    if (m->texts[field] != NULL) {
        snprintf(err, sizeof err, "%s was told before, in line %u",
                 model_field_names[field], m->lines[field]);
        return err;
    }
    m->texts[field] = value;
    m->lines[field] = line;
    return NULL;
}

static const char *
take_line(struct model *m, char *text, size_t len, unsigned line)
{
    const char *wrong = is_text(text, len) ? NULL : "has bytes that are no text";
    char *end = text + (wrong == NULL ? without_comment(text, len) : 0);
    while (wrong == NULL && text < end) {
        char *part = text + strspn(text, BLANKS);
        char *stop = memchr(text, ';', (size_t)(end - text));
        stop = stop != NULL ? stop : end;
        size_t used = part < stop ? without_blanks(part, (size_t)(stop - part)) : 0;
        wrong = used > 0 ? take_field(m, part, used, line) : NULL;
        text = stop + 1;
    }
    return wrong;
}

const char *
model_parse(struct model *m, char *text, size_t len, unsigned *line)
{
    const char *wrong = NULL;
    must(text[len] == '\0');
    memset(m->texts, 0, sizeof m->texts);
    memset(m->lines, 0, sizeof m->lines);
    *line = 0;
    for (char *end = text + len; wrong == NULL && text < end;) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop != NULL ? stop : end;
        wrong = take_line(m, text, (size_t)(stop - text), ++*line);
        text = stop + 1;
    }
    if (wrong != NULL) {
        return wrong;
    }
    for (unsigned i = 0; i < MODEL_FIELDS; i++) {
        if (m->texts[i] != NULL) {
            return NULL;
        }
    }
    *line = 1;
    return "says nothing of a workload";
}
