/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos ping, watch and dump.
 */

#include "mcqos/command.h"
#include "mcqos/facts.h"

static bool
begins(const char *line, const char *start)
{
    return strncmp(line, start, strlen(start)) == 0;
}

/* ---- ping ----------------------------------------------------------------------------- */

enum outcome
ping_run(const struct options *o, struct link *l)
{
    nsec_t begin = clock_now();
    struct json room, *j;
    enum outcome outcome = link_open(l, o);
    char *line = outcome == DONE ? link_word(l, "version") : NULL;
    bool has_answer = line != NULL, is_well = has_answer && begins(line, "VERSION ");
    double us = has_answer ? (double)(clock_now() - begin) / (double)NSEC_PER_USEC : NAN;
    const char *version = is_well ? line + strlen("VERSION ") : "";
    if (outcome == DONE) {
        outcome = is_well      ? DONE
                  : has_answer ? link_refused(l, "version", line)
                               : UNREACHABLE;
    }
    if ((j = command_open(&room, o, NULL, '\0')) != NULL) {
        json_put(j, JSON("answered", has_answer), JSON("is_well", is_well),
                 JSON("latency_us", us), JSON("version", version), JSON("error", l->why));
        json_close(j, '}');
    } else if (is_well) {
        printf("%s: memcached %s answers in %.0f us\n", o->server, version, us);
    }
    return outcome;
}

/* ---- lines of name=value -------------------------------------------------------------- */

static void
put_line(char *line, bool is_json)
{
    struct json j;
    if (!is_json) {
        puts(line);
        return;
    }
    json_init(&j, stdout);
    j.is_line = true;
    json_open(&j, NULL, '{');
    json_put(&j, JSON("line", line));
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        if (equals != NULL) {
            *equals = '\0';
            json_put(&j, JSON(word, equals + 1));
        }
    }
    json_close(&j, '}');
}

enum outcome
watch_run(const struct options *o, struct link *l)
{
    char question[OPTIONS_LINE_MAX];
    if (!options_join(o, 0, question)) {
        return link_no_line(l);
    }
    char *line = link_word(l, question);
    if (line != NULL && strcmp(line, "ERROR") == 0) {
        return link_explain(l, REFUSED,
                            "%s has no log of that name: fetchers, mutations, evictions, "
                            "connevents, deletions, rawcmds, sysevents",
                            o->server);
    }
    if (line != NULL && strcmp(line, "OK") != 0) {
        return link_refused(l, question, line);
    }
    l->deadline = 0; /* what comes from here on may take any time */
    while (line != NULL && (line = link_line(l)) != NULL) {
        put_line(line, o->is_json);
        fflush(stdout);
    }
    return UNREACHABLE; /* the server ends it */
}

/* ---- dump ----------------------------------------------------------------------------- */

#define METADUMP "lru_crawler metadump all"

/* "OK", lines and "END". The profile 1.4 has the lines alone, so a second question marks the end. */
static enum outcome
dump_keys(const struct options *o, struct link *l)
{
    char *line = link_ask(l, METADUMP) ? link_word(l, "version") : NULL;
    for (; line != NULL; line = link_line(l)) {
        if (strcmp(line, "END") == 0 || begins(line, "VERSION ")) {
            return DONE;
        }
        if (begins(line, "key=")) {
            put_line(line, o->is_json);
            l->deadline = clock_now() + l->timeout; /* of each line */
        } else if (strcmp(line, "OK") != 0 && !begins(line, "NOTSTARTED")) {
            return link_refused(l, METADUMP, line);
        }
    }
    return UNREACHABLE;
}

static void
put_group(const struct facts *f, const char *name, struct json *j)
{
    if (j == NULL) {
        printf("[%s]\n", name);
    } else {
        json_open(j, name, '{');
    }
    for (size_t i = 0; i < f->count; i++) {
        command_put(j, 0, f->rows[i].name, f->rows[i].value);
    }
    if (j != NULL) {
        json_close(j, '}');
    }
}

/* Groups that the server does not have are left out. */
static enum outcome
dump_stats(const struct options *o, struct link *l)
{
    static const char *const groups[] = {"",      "settings", "items", "slabs",
                                         "sizes", "conns",    "qos",   "classes",
                                         "fair",  "latency",  "pin",   "resctrl"};
    struct json room, *j = command_open(&room, o, "stats", '{');
    enum outcome outcome = DONE;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && outcome == DONE; i++) {
        struct facts f = {0};
        outcome = facts_ask(&f, l, groups[i]);
        if (outcome == DONE) {
            put_group(&f, *groups[i] != '\0' ? groups[i] : "general", j);
        }
        facts_fini(&f);
        outcome = i > 0 && outcome == REFUSED ? DONE : outcome;
    }
    command_close(j, '}');
    return outcome;
}

enum outcome
dump_run(const struct options *o, struct link *l)
{
    return strcmp(o->words[1], "keys") == 0    ? dump_keys(o, l)
           : strcmp(o->words[1], "stats") == 0 ? dump_stats(o, l)
                                               : link_explain(l, USAGE,
                                                              "dump keys or dump stats, "
                                                              "not \"%s\"",
                                                              o->words[1]);
}
