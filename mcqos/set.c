/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos limit, slo, pin, reload and save: settings of the server, shown or set by its own commands. What
 * words mean is the server's business.
 */
#include <fnmatch.h>

#include "base/part.h"
#include "mcqos/command.h"
#include "mcqos/facts.h"

#define QUESTION_MAX 400
#define PATTERNS_MAX 8
#define COLUMNS 24 /* of a setting's name */

static const struct verb {
    const char *name;
    const char *usual; /* the server's command when the first word is none of `words` */
    const char *words[PATTERNS_MAX]; /* the server's commands that may be written */
    /* Names in `stats qos` and `stats pin`, with '*'. */
    const char *settings[PATTERNS_MAX];
} verbs[] = {
    {"limit",
     "qps_limit",
     {"qps_limit", "peer", "action", "unit", "cpu_limit", "dry_run", "fair"},
     {"qps_limit*", "qps_burst*", "qps_action", "qps_unit", "qps_dry_run", "cpu_limit",
      "fair"}},
    {"slo",
     "slo",
     {"slo"},
     {"slo", "slo_small", "slo_write", "slo_bulk", "slo_background"}},
    {"pin", NULL, {"repin", "rebalance"}, {"pin_policy", "pin_layout", "pin_errors"}},
};

static bool
is_among(const char *word, const char *const patterns[PATTERNS_MAX])
{
    for (unsigned i = 0; i < PATTERNS_MAX && patterns[i] != NULL; i++) {
        if (fnmatch(patterns[i], word, 0) == 0) {
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

/* The settings, or, with `before`, those that have another value than then. */
static void
show(const struct options *o, const struct verb *v, const struct facts *before,
     const struct facts *now, const char *question)
{
    struct json room, *j = command_open(&room, o, NULL, '\0');
    unsigned count = 0;
    if (j != NULL) {
        json_put(j, JSON_IF(before != NULL, JSON("command", question)));
        json_open(j, before != NULL ? "changed" : "settings", '{');
    }
    for (size_t i = 0; i < now->count; i++) {
        const char *name = now->rows[i].name, *value = now->rows[i].value;
        const char *old = before != NULL ? facts_text(before, "%s", name) : NULL;
        if (!is_among(name, v->settings) || (old != NULL && strcmp(old, value) == 0)) {
            continue;
        }
        count++;
        if (before == NULL) {
            command_put(j, COLUMNS, name, value);
        } else if (j != NULL) {
            json_object_of(j, name, JSON("before", old != NULL ? old : ""),
                           JSON("after", value));
        } else {
            printf("%-*s %s -> %s\n", COLUMNS, name, old != NULL ? old : "-", value);
        }
    }
    command_close(j, '}');
    if (j == NULL && count == 0) {
        puts("OK, and all settings are as they were");
    }
}

static enum outcome
change(const struct options *o, const char *words, const struct verb *v,
       const struct facts *before, struct facts *now, struct link *l)
{
    char question[QUESTION_MAX];
    bool is_word = is_among(o->words[1], v->words);
    if (!is_word && v->usual == NULL) {
        return link_explain(
            l, USAGE,
            "\"%s\" is not known: mcqos pin repin, or mcqos pin rebalance "
            "[FROM TO [N]]",
            o->words[1]);
    }
    snprintf(question, sizeof question, "qos %s%s%s", is_word ? "" : v->usual,
             is_word ? "" : " ", words);
    const char *answer = link_word(l, question);
    if (answer == NULL) {
        return UNREACHABLE;
    }
    if (strcmp(answer, "OK") != 0) {
        return link_refused(l, question, answer);
    }
    enum outcome outcome = ask(now, l);
    if (outcome == DONE) {
        show(o, v, before, now, question);
    }
    return outcome;
}

enum outcome
set_run(const struct options *o, struct link *l)
{
    const struct verb *v = part_row(PART_ROWS(verbs), o->words[0], strlen(o->words[0]));
    struct facts before = {0}, now = {0};
    char words[OPTIONS_LINE_MAX];
    must(v != NULL);
    if (!options_join(o, 1, words)) {
        return link_no_line(l);
    }
    enum outcome outcome = ask(&before, l);
    if (outcome == DONE && o->count > 1) {
        outcome = change(o, words, v, &before, &now, l);
    } else if (outcome == DONE) {
        show(o, v, NULL, &before, NULL);
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

/* Lines, and behind them OK or an error. */
enum outcome
reload_run(const struct options *o, struct link *l)
{
    static const char *const errors[PATTERNS_MAX] = {"ERROR", "CLIENT_ERROR *",
                                                     "SERVER_ERROR *"};
    char question[QUESTION_MAX];
    snprintf(question, sizeof question, "qos %s", o->words[0]);
    const char *line = link_word(l, question);
    bool is_done = false, has_error = false;
    struct json room, *j = command_open(&room, o, "lines", '[');
    for (; line != NULL; line = link_line(l)) {
        is_done = strcmp(line, "OK") == 0;
        has_error = is_among(line, errors);
        if (is_done || has_error) {
            break;
        }
        command_put(j, 0, NULL, line);
    }
    if (j != NULL) {
        json_close(j, ']');
        json_put(j, JSON("is_done", is_done));
        json_close(j, '}');
    } else if (is_done) {
        puts(line);
    }
    if (has_error) {
        bool is_unknown = strstr(line, "usage: qos ") != NULL;
        return link_refused(l, question, is_unknown ? "ERROR" : line);
    }
    return is_done ? DONE : UNREACHABLE;
}
