/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos limit, slo, pin, reload and save: settings of the server, shown or set by its own commands. What
 * words mean is the server's business.
 */
#include <fnmatch.h>
#include <stdio.h>

#include "base/json.h"
#include "mcqos/command.h"
#include "mcqos/facts.h"

#define QUESTION_MAX 400
#define PATTERNS_MAX 8

static const struct verb {
    const char *name;
    const char *usual; /* the server's command when the first word is none of `words` */
    const char *words[PATTERNS_MAX]; /* the server's commands that may be written */
    const char
        *settings[PATTERNS_MAX]; /* names in `stats qos` and `stats pin`, with '*' */
} verbs[] = {
    {"limit",
     "qps_limit",
     {"qps_limit", "peer", "action", "unit", "cpu_limit", "dry_run"},
     {"qps_limit*", "qps_burst*", "qps_action", "qps_unit", "qps_dry_run", "cpu_limit"}},
    {"slo",
     "slo",
     {"slo"},
     {"slo", "slo_small", "slo_write", "slo_bulk", "slo_background"}},
    {"pin", NULL, {"repin", "rebalance"}, {"pin_policy", "pin_layout", "pin_errors"}},
};

static const struct verb *
find(const char *name)
{
    const struct verb *v = verbs;
    while (strcmp(v->name, name) != 0) {
        v++;
        must(v < verbs + sizeof verbs / sizeof verbs[0]);
    }
    return v;
}

static bool
is_setting(const struct verb *v, const char *name)
{
    for (unsigned i = 0; i < PATTERNS_MAX && v->settings[i] != NULL; i++) {
        if (fnmatch(v->settings[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

static enum outcome
ask(struct facts *f, struct link *l)
{
    enum outcome outcome = facts_ask(f, l, "qos");
    return outcome == DONE ? facts_ask(f, l, "pin") : outcome;
}

/* ---- showing -------------------------------------------------------------------------- */

static void
show(const struct options *o, const struct verb *v, const struct facts *f)
{
    struct json j;
    if (o->is_json) {
        command_open_json(&j, o);
        json_open(&j, "settings", '{');
    }
    for (size_t i = 0; i < f->count; i++) {
        if (!is_setting(v, f->rows[i].name)) {
            continue;
        }
        if (o->is_json) {
            json_put(&j, JSON((const char *)f->rows[i].name, f->rows[i].value));
        } else {
            printf("%-24s %s\n", f->rows[i].name, f->rows[i].value);
        }
    }
    if (o->is_json) {
        json_close(&j, '}');
        json_close(&j, '}');
    }
}

/* ---- setting -------------------------------------------------------------------------- */

/* The server's command. False, with l->why: the words are none. */
static bool
make_question(const struct options *o, const struct verb *v, char dst[QUESTION_MAX],
              struct link *l)
{
    char words[QUESTION_MAX - 32];
    options_join(o, 1, words, sizeof words);
    for (unsigned i = 0; i < PATTERNS_MAX && v->words[i] != NULL; i++) {
        if (strcmp(v->words[i], o->words[1]) == 0) {
            snprintf(dst, QUESTION_MAX, "qos %s", words);
            return true;
        }
    }
    if (v->usual == NULL) {
        snprintf(l->why, sizeof l->why,
                 "\"%s\" is not known: mcqos pin repin, or mcqos pin "
                 "rebalance [FROM TO [N]]",
                 o->words[1]);
        return false;
    }
    snprintf(dst, QUESTION_MAX, "qos %s %s", v->usual, words);
    return true;
}

/* Shows what has another value than before. */
static void
show_changes(const struct options *o, const struct verb *v, const struct facts *before,
             const struct facts *now, const char *question)
{
    struct json j;
    unsigned count = 0;
    if (o->is_json) {
        command_open_json(&j, o);
        json_put(&j, JSON("command", question));
        json_open(&j, "changed", '{');
    }
    for (size_t i = 0; i < now->count; i++) {
        const char *name = now->rows[i].name, *value = now->rows[i].value;
        const char *old = facts_text(before, "%s", name);
        if (!is_setting(v, name) || (old != NULL && strcmp(old, value) == 0)) {
            continue;
        }
        count++;
        if (o->is_json) {
            json_object_of(&j, name, JSON("before", old != NULL ? old : ""),
                           JSON("after", value));
        } else {
            printf("%-24s %s -> %s\n", name, old != NULL ? old : "-", value);
        }
    }
    if (o->is_json) {
        json_close(&j, '}');
        json_close(&j, '}');
    } else if (count == 0) {
        puts("OK, and all settings are as they were");
    }
}

static enum outcome
change(const struct options *o, const struct verb *v, const struct facts *before,
       struct facts *now, struct link *l)
{
    char question[QUESTION_MAX];
    if (!make_question(o, v, question, l)) {
        return USAGE;
    }
    const char *answer = link_word(l, question);
    if (answer == NULL) {
        return UNREACHABLE;
    }
    if (strcmp(answer, "OK") != 0) {
        return link_refused(l, question, answer);
    }
    enum outcome outcome = ask(now, l);
    if (outcome == DONE) {
        show_changes(o, v, before, now, question);
    }
    return outcome;
}

enum outcome
set_run(const struct options *o, struct link *l)
{
    const struct verb *v = find(o->words[0]);
    struct facts before = {0}, now = {0};
    enum outcome outcome = ask(&before, l);
    if (outcome == DONE && o->count > 1) {
        outcome = change(o, v, &before, &now, l);
    } else if (outcome == DONE) {
        show(o, v, &before);
    }
    facts_fini(&before);
    facts_fini(&now);
    return outcome;
}

enum outcome
pin_run(const struct options *o, struct link *l)
{
    return o->count > 1 ? set_run(o, l) : status_run(o, l);
}

/* ---- reload and save ------------------------------------------------------------------ */

static bool
is_error(const char *line)
{
    return strcmp(line, "ERROR") == 0 ||
           strncmp(line, "CLIENT_ERROR ", strlen("CLIENT_ERROR ")) == 0 ||
           strncmp(line, "SERVER_ERROR ", strlen("SERVER_ERROR ")) == 0;
}

/* Lines, and behind them OK or an error. */
enum outcome
reload_run(const struct options *o, struct link *l)
{
    struct json j;
    char question[QUESTION_MAX];
    snprintf(question, sizeof question, "qos %s", o->words[0]);
    const char *line = link_word(l, question);
    if (o->is_json) {
        command_open_json(&j, o);
        json_open(&j, "lines", '[');
    }
    for (; line != NULL && strcmp(line, "OK") != 0 && !is_error(line);
         line = link_line(l)) {
        if (o->is_json) {
            json_put(&j, JSON(NULL, line));
        } else {
            puts(line);
        }
    }
    bool is_done = line != NULL && !is_error(line);
    if (o->is_json) {
        json_close(&j, ']');
        json_put(&j, JSON("is_done", is_done));
        json_close(&j, '}');
    } else if (is_done) {
        puts(line);
    }
    if (line != NULL && !is_done) {
        bool is_unknown = strstr(line, "usage: qos ") != NULL;
        return link_refused(l, question, is_unknown ? "ERROR" : line);
    }
    return is_done ? DONE : UNREACHABLE;
}
