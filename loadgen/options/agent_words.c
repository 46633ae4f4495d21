/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/agent_words.h"

#include <stdlib.h>

#include "loadgen/options/words.h"
#include "loadgen/swarm/words.h"

#define SEED "seed"
#define SERVER "server"
#define WORKLOAD "workload"
#define NOT_INLINE "is too long for agents, or has ';' or blanks in its values"

static const char *
add(struct agent_words *w, const char *name, const char *value)
{
    char word[MESSAGE_WORD_MAX];
    int n = snprintf(word, sizeof word, value != NULL ? "--%s=%s" : "--%s", name, value);
    if (n < 0 || (size_t)n >= sizeof word || w->count == MESSAGE_WORDS_MAX) {
        return "too long for agents";
    }
    w->words[w->count] = strdup(word);
    must(w->words[w->count] != NULL);
    w->count++;
    return NULL;
}

static const char *
visit_told(struct agent_words *w, const struct opt *row, const char *value)
{
    switch (words_use_of(row->name, value)) {
    case WORDS_SHARED:
        /* These are told as what they came to. */
        return strcmp(row->name, SEED) == 0 || strcmp(row->name, SERVER) == 0
                   ? NULL
                   : add(w, row->name, value);
    case WORDS_LEADER:
    case WORDS_HOST:
    case WORDS_MEASURE: /* these as well, to those who need them */
    case WORDS_OBSERVE:
        return NULL;
    case WORDS_AGENT:
        return "what an agent allows is said to the agent (--agent-mode)";
    case WORDS_FILE:
        return "names a file, which agents do not read";
    case WORDS_SECRET:
        return "is secret, and not sent to agents: --auth-file on each machine";
    case WORDS_ALONE:
        return "is for one process, without agents";
    case WORDS_UNKNOWN:
        break;
    }
    return strcmp(row->name, "class") == 0
               ? "agents take classes of long options, --NAME=VALUE, that are theirs too"
               : "is nothing that agents know";
}

/* ---- workloads of files: what they say travels, in place of their names -------------------- */

/* The text of a workload that is a file's; NULL when it is not one that was read. False: it is
 * nothing to be put into one word. */
static bool
inline_workload(const struct options *o, const char *value, char text[MESSAGE_WORD_MAX],
                bool *is_own)
{
    static const char head[] = MODEL_TEXT;
    size_t used = sizeof head - 1;
    const struct model *m = models_known(&o->models, value);
    *is_own = m != NULL;
    memcpy(text, head, used);
    return m == NULL || model_put(m, text + used, MESSAGE_WORD_MAX - used);
}

/* One word of a class, after a blank; or its workload, which may be two. Returns how many it
 * was, 0 when they are nothing to be sent. */
static int
put_words(const struct options *o, FILE *out, char *const *words)
{
    static const char name[] = "--" WORKLOAD;
    const size_t len = sizeof name - 1;
    char text[MESSAGE_WORD_MAX];
    bool is_own = false;
    if (strncmp(words[0], name, len) != 0 ||
        (words[0][len] != '=' && words[0][len] != '\0')) {
        return fprintf(out, " %s", words[0]) > 0 ? 1 : 0;
    }
    int n = words[0][len] == '=' ? 1 : 2;
    const char *value = n == 1 ? words[0] + len + 1 : words[1];
    bool is_good = inline_workload(o, value, text, &is_own) &&
                   fprintf(out, " %s=%s", name, is_own ? text : value) > 0;
    return is_good ? n : 0;
}

/* The class with the texts of its workloads. NULL: there is no such text. Freed by the caller. */
static char *
inline_class(const struct options *o, const char *class)
{
    char why[WORDS_ERR_MAX], *text = NULL;
    size_t len;
    struct words words;
    const char *wrong =
        words_parse(&words, class, options_class_table(), options_table(), why);
    FILE *out = open_memstream(&text, &len);
    must(wrong == NULL && out != NULL); /* the options have been parsed before */
    fprintf(out, "%s:{", words.name);
    int put = 1;
    for (int i = 1; put > 0 && i < words.argc; i += put) {
        put = put_words(o, out, words.argv + i);
    }
    fputs("}", out);
    must(fclose(out) == 0);
    words_fini(&words);
    if (put == 0) {
        free(text);
        text = NULL;
    }
    return text;
}

struct leader {
    struct agent_words *words;
    const struct options *o;
};

static const char *
visit_leaders(void *arg, const struct opt *row, const char *value)
{
    const struct leader *l = arg;
    char text[MESSAGE_WORD_MAX];
    bool is_own = false;
    char *class = NULL;
    const char *wrong = NULL;
    if (strcmp(row->name, WORKLOAD) == 0 &&
        !inline_workload(l->o, value, text, &is_own)) {
        return NOT_INLINE;
    }
    if (strcmp(row->name, "class") == 0) {
        class = inline_class(l->o, value);
        if (class == NULL) {
            return NOT_INLINE;
        }
        value = class;
    }
    wrong = visit_told(l->words, row, is_own ? text : value);
    free(class);
    return wrong;
}

/* ---- what a role needs ------------------------------------------------------------------- */

static const char *
add_number(struct agent_words *w, const char *name, int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%jd", (intmax_t)n);
    return add(w, name, text);
}

/* The last class, as it is to be made again. */
static const char *
add_measuring(struct agent_words *w, const struct lclass *c)
{
    const char *wrong = add_number(w, "measure-connections", c->connections);
    wrong = wrong != NULL ? wrong : add_number(w, "measure-depth", c->depth);
    return wrong != NULL ? wrong : add_number(w, "measure-qps", c->qps);
}

static const char *
add_servers(struct agent_words *w, const struct options *o,
            const struct agent_words_reader *r)
{
    const char *wrong = NULL;
    for (unsigned i = 0; wrong == NULL && i < o->servers_len; i++) {
        bool is_its = r->role != ROLE_OBSERVE || i % r->count == r->index;
        wrong = is_its ? add(w, SERVER, o->servers[i]) : NULL;
    }
    return wrong;
}

static const char *
add_role(struct agent_words *w, const struct options *o, enum message_role role)
{
    char seconds[32];
    switch (role) {
    case ROLE_MEASURE:
        return add_measuring(w, &o->classes[o->classes_len - 1]);
    case ROLE_OBSERVE:
        snprintf(seconds, sizeof seconds, "%.9f", o->server_stats_s);
        return add(w, "server-stats", seconds);
    case ROLE_LOAD:
    case ROLES:
        break;
    }
    return NULL;
}

enum exit_status
agent_words_shared(struct agent_words *w, const struct options *o,
                   const struct agent_words_reader *reader, int argc, char **argv,
                   FILE *err)
{
    char seed[32];
    *w = (struct agent_words){.count = 0};
    struct leader leader = {w, o};
    if (opt_each(options_table(), visit_leaders, &leader, argc, argv, err) != OPT_DONE) {
        return EXIT_USAGE;
    }
    snprintf(seed, sizeof seed, "%ju", (uintmax_t)o->seed);
    const char *wrong = add(w, SEED, seed);
    wrong = wrong != NULL ? wrong : add_servers(w, o, reader);
    wrong = wrong != NULL ? wrong : add_role(w, o, reader->role);
    if (wrong != NULL) {
        fprintf(err, "mcload: %s\n", wrong);
        return EXIT_USAGE;
    }
    return EXIT_VALID;
}

/* Of options that are otherwise a leader's. */
static bool
is_used_by_agents(const char *name)
{
    static const char *const names[] = {"agent-port", "help",    "key-file", "lambda-mul",
                                        "quiet",      "verbose", "version"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        is = is || strcmp(names[i], name) == 0;
    }
    return is;
}

struct visit {
    struct agent_words *words;
    FILE *err;
};

static const char *
visit_hosts(void *arg, const struct opt *row, const char *value)
{
    struct visit *v = arg;
    enum words_use use = words_use_of(row->name, value);
    if (use == WORDS_HOST) {
        return add(v->words, row->name, value);
    }
    if (use != WORDS_AGENT && !is_used_by_agents(row->name)) {
        fprintf(v->err,
                "mcload: --%s is the leader's to say: an agent has no use for it\n",
                row->name);
    }
    return NULL;
}

enum exit_status
agent_words_host(struct agent_words *w, int argc, char **argv, FILE *err)
{
    struct visit visit = {w, err};
    *w = (struct agent_words){.count = 0};
    return opt_each(options_table(), visit_hosts, &visit, argc, argv, err) == OPT_DONE
               ? EXIT_VALID
               : EXIT_USAGE;
}

void
agent_words_fini(struct agent_words *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        free(w->words[i]);
    }
    w->count = 0;
}
