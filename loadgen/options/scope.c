/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/scope.h"

#include <ctype.h>

#include "base/alloc.h"
#include "base/part.h"
#include "loadgen/options/group.h"

#define CLASS "class"
#define SEED "seed"
#define SERVER "server"
#define WORKLOAD "workload"
#define LEN(a) (sizeof(a) / sizeof(a)[0])

/* ---- scopes ---------------------------------------------------------------------------- */

static bool
is_row(const struct opt *row, const char *name)
{
    return row->name != NULL && strcmp(row->name, name) == 0;
}

/* A law of a file's values, wherever it stands in a text: behind a letter it is part of a name. */
static bool
has_file_law(const char *text)
{
    static const char *const heads[] = {"file:", "cdf:", "gaps:", "times:"};
    bool has = false;
    for (size_t i = 0; i < LEN(heads); i++) {
        for (const char *at = strstr(text, heads[i]); at != NULL;
             at = strstr(at + 1, heads[i])) {
            has = has || at == text || !isalpha((unsigned char)at[-1]);
        }
    }
    return has;
}

/* A workload is one that the agent knows by its name, or its text. A trace is named as well, but
 * looked for by the agent in its own directories of traces. */
static bool
names_a_file(const struct opt *row, const char *value)
{
    bool is_known = value != NULL &&
                    (model_find(value) != NULL || part_after(value, MODEL_TEXT) != NULL);
    return (is_row(row, WORKLOAD) && !is_known) || (value != NULL && has_file_law(value));
}

static enum scope
scope_of_row(const struct opt *row, const char *value)
{
    return row->scope != SCOPE_LAW    ? (enum scope)row->scope
           : names_a_file(row, value) ? SCOPE_FILE
                                      : SCOPE_SHARED;
}

/* A class cannot be left out, nor can a part of it: the first that does not travel counts. */
static const char *
visit_class(void *arg, const struct opt *row, const char *value)
{
    enum scope *all = arg, one = scope_of_row(row, value);
    if (*all == SCOPE_SHARED && one != SCOPE_SHARED) {
        *all = one == SCOPE_SECRET || one == SCOPE_FILE ? one
               : is_row(row, "auth-file")               ? SCOPE_FILE
                                                        : SCOPE_UNKNOWN;
    }
    return NULL;
}

/* The class as words, when all are long: NULL, or why not. words_fini in any case. */
static const char *
parse_class(struct words *words, const char *class, char why[WORDS_ERR_MAX])
{
    const char *wrong =
        words_parse(words, class, options_class_table(), options_table(), why);
    for (int i = 1; wrong == NULL && i < words->argc; i++) {
        const char *word = words->argv[i];
        wrong = word[0] == '-' && word[1] != '-' ? "short options do not travel" : NULL;
    }
    return wrong;
}

static enum scope
scope_of_class(const char *class)
{
    char why[WORDS_ERR_MAX];
    struct words words;
    enum scope scope = SCOPE_SHARED;
    const char *wrong = parse_class(&words, class, why);
    if (wrong != NULL || opt_each(options_class_table(), visit_class, &scope, words.argc,
                                  words.argv, stderr) != OPT_DONE) {
        scope = SCOPE_UNKNOWN;
    }
    words_fini(&words);
    return scope;
}

enum scope
scope_of(const char *name, const char *value)
{
    const struct opt_table *t = options_table();
    enum scope scope = SCOPE_UNKNOWN;
    for (size_t i = 0; i < t->count; i++) {
        scope = is_row(&t->rows[i], name) ? scope_of_row(&t->rows[i], value) : scope;
    }
    bool is_class = scope == SCOPE_SHARED && strcmp(name, CLASS) == 0;
    return !is_class ? scope : value == NULL ? SCOPE_UNKNOWN : scope_of_class(value);
}

/* ---- words ------------------------------------------------------------------------------ */

static const char *
add(struct scope_words *w, const char *name, const char *value)
{
    char word[MESSAGE_WORD_MAX];
    int n = snprintf(word, sizeof word, value != NULL ? "--%s=%s" : "--%s", name, value);
    if (n < 0 || (size_t)n >= sizeof word || w->count == MESSAGE_WORDS_MAX) {
        return "too long for agents";
    }
    w->words[w->count++] = alloc_text(word);
    return NULL;
}

/* A value as agents are told it: of a workload that is a file's what the file says. False: that
 * is nothing to be put into one word. */
static bool
put_value(FILE *out, const struct options *o, const struct opt *row, const char *value)
{
    char text[MESSAGE_WORD_MAX - sizeof MODEL_TEXT];
    const struct model *m =
        is_row(row, WORKLOAD) && value != NULL ? models_known(&o->models, value) : NULL;
    if (m != NULL && !model_put(m, text, sizeof text)) {
        return false;
    }
    fprintf(out, m != NULL ? MODEL_TEXT "%s" : "%s", m != NULL ? text : value);
    return true;
}

struct telling {
    struct scope_words *words;
    const struct options *o;
    FILE *out; /* of a class */
    bool has_failed;
};

static const char *
visit_word(void *arg, const struct opt *row, const char *value)
{
    struct telling *t = arg;
    fprintf(t->out, value != NULL ? " --%s=" : " --%s", row->name);
    t->has_failed =
        (value != NULL && !put_value(t->out, t->o, row, value)) || t->has_failed;
    return NULL;
}

/* The same of a class, whose options may be such workloads. */
static bool
put_class(struct telling *t, const char *class)
{
    char why[WORDS_ERR_MAX];
    struct words words;
    if (parse_class(&words, class, why) != NULL) {
        fputs(class, t->out); /* it does not travel */
    } else {
        fprintf(t->out, "%s:{", words.name);
        t->has_failed = opt_each(options_class_table(), visit_word, t, words.argc,
                                 words.argv, stderr) != OPT_DONE ||
                        t->has_failed;
        fputs("}", t->out);
    }
    words_fini(&words);
    return !t->has_failed;
}

/* Servers and the seed are told as what they came to, by roles what those need. */
static const char *
tell(struct scope_words *w, const struct opt *row, const char *value)
{
    static const char *const refusals[] = {
        [SCOPE_UNKNOWN] = "is nothing that agents know",
        [SCOPE_AGENT] = "what an agent allows is said to the agent (--agent-mode)",
        [SCOPE_FILE] = "names a file, which agents do not read",
        [SCOPE_SECRET] = "is secret, and not sent to agents: --auth-file on each machine",
        [SCOPE_ALONE] = "is for one process, without agents",
    };
    enum scope scope = scope_of(row->name, value);
    if (scope == SCOPE_SHARED && !is_row(row, SEED) && !is_row(row, SERVER)) {
        return add(w, row->name, value);
    }
    return scope == SCOPE_UNKNOWN && is_row(row, CLASS)
               ? "agents take classes of long options, --NAME=VALUE, that are theirs too"
               : refusals[scope];
}

static const char *
visit_leaders(void *arg, const struct opt *row, const char *value)
{
    struct telling *t = arg;
    char *text = NULL;
    size_t len;
    t->out = open_memstream(&text, &len);
    must(t->out != NULL);
    bool is_good =
        value == NULL ||
        (is_row(row, CLASS) ? put_class(t, value) : put_value(t->out, t->o, row, value));
    must(fclose(t->out) == 0);
    const char *wrong =
        is_good ? tell(t->words, row, value != NULL ? text : NULL)
                : "is too long for agents, or has ';' or blanks in its values";
    free(text);
    return wrong;
}

/* ---- what a role needs ------------------------------------------------------------------- */

static const char *
add_number(struct scope_words *w, const char *name, uint64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%ju", (uintmax_t)n);
    return add(w, name, text);
}

/* The last class, as it is to be made again. */
static const char *
add_measuring(struct scope_words *w, const struct lclass *c)
{
    const char *wrong = add_number(w, "measure-connections", (uint64_t)c->connections);
    wrong = wrong != NULL ? wrong : add_number(w, "measure-depth", (uint64_t)c->depth);
    return wrong != NULL ? wrong : add_number(w, "measure-qps", (uint64_t)c->qps);
}

static const char *
add_role(struct scope_words *w, const struct options *o, const struct scope_reader *r)
{
    char seconds[32];
    const char *wrong = add_number(w, SEED, o->seed);
    for (unsigned i = 0; wrong == NULL && i < o->servers_len; i++) {
        bool is_its = r->role != ROLE_OBSERVE || i % r->count == r->index;
        wrong = is_its ? add(w, SERVER, o->servers[i]) : NULL;
    }
    if (wrong == NULL && r->role == ROLE_MEASURE) {
        wrong = add_measuring(w, &o->classes[o->classes_len - 1]);
    } else if (wrong == NULL && r->role == ROLE_OBSERVE) {
        snprintf(seconds, sizeof seconds, "%.9f", o->server_stats_s);
        wrong = add(w, "server-stats", seconds);
    }
    return wrong;
}

bool
scope_tell_agent(struct scope_words *w, const struct options *o,
                 const struct scope_reader *reader, int argc, char **argv, FILE *err)
{
    struct telling telling = {.words = w, .o = o};
    w->count = 0;
    if (opt_each(options_table(), visit_leaders, &telling, argc, argv, err) != OPT_DONE) {
        return false;
    }
    const char *wrong = add_role(w, o, reader);
    if (wrong != NULL) {
        fprintf(err, "mcload: %s\n", wrong);
    }
    return wrong == NULL;
}

struct keeping {
    struct scope_words *words;
    FILE *err;
};

static const char *
visit_hosts(void *arg, const struct opt *row, const char *value)
{
    struct keeping *k = arg;
    enum scope scope = scope_of(row->name, value);
    if (scope == SCOPE_HOST) {
        return add(k->words, row->name, value);
    }
    if (scope != SCOPE_AGENT && scope != SCOPE_EACH) {
        fprintf(k->err,
                "mcload: --%s is the leader's to say: an agent has no use for it\n",
                row->name);
    }
    return NULL;
}

bool
scope_keep_host(struct scope_words *w, int argc, char **argv, FILE *err)
{
    struct keeping keeping = {w, err};
    w->count = 0;
    return opt_each(options_table(), visit_hosts, &keeping, argc, argv, err) == OPT_DONE;
}

void
scope_words_fini(struct scope_words *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        free(w->words[i]);
    }
    w->count = 0;
}
