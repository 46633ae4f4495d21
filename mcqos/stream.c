/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos ping, watch and dump.
 */
#include <stdio.h>

#include "base/json.h"
#include "mcqos/command.h"
#include "mcqos/facts.h"

#define QUESTION_MAX 400

/* ---- ping ----------------------------------------------------------------------------- */

enum outcome
ping_run(const struct options *o, struct link *l)
{
    nsec_t begin = clock_now();
    const char *version = "";
    char *line = link_open(l, o->server, clock_seconds(o->timeout))
                     ? link_word(l, "version")
                     : NULL;
    double us =
        line != NULL ? (double)(clock_now() - begin) / (double)NSEC_PER_USEC : NAN;
    enum outcome outcome = UNREACHABLE;
    if (line != NULL && strncmp(line, "VERSION ", strlen("VERSION ")) == 0) {
        version = line + strlen("VERSION ");
        outcome = DONE;
    } else if (line != NULL) {
        outcome = link_refused(l, "version", line);
    }
    if (o->is_json) {
        struct json j;
        command_open_json(&j, o);
        json_put(&j, JSON("answered", line != NULL), JSON("is_well", outcome == DONE),
                 JSON("latency_us", us), JSON("version", version),
                 JSON("error", (const char *)l->why));
        json_close(&j, '}');
    } else if (outcome == DONE) {
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
    json_put(&j, JSON("line", (const char *)line));
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        if (equals != NULL) {
            *equals = '\0';
            json_put(&j, JSON((const char *)word, (const char *)equals + 1));
        }
    }
    json_close(&j, '}');
}

enum outcome
watch_run(const struct options *o, struct link *l)
{
    char question[QUESTION_MAX];
    options_join(o, 0, question, sizeof question);
    char *line = link_word(l, question);
    if (line != NULL && strcmp(line, "OK") != 0) {
        return link_refused(l, question, line);
    }
    link_wait_forever(l);
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
        if (strcmp(line, "END") == 0 ||
            strncmp(line, "VERSION ", strlen("VERSION ")) == 0) {
            return DONE;
        }
        if (strncmp(line, "key=", strlen("key=")) == 0) {
            put_line(line, o->is_json);
            l->deadline = clock_now() + l->timeout; /* of each line */
        } else if (strcmp(line, "OK") != 0 &&
                   strncmp(line, "NOTSTARTED", strlen("NOTSTARTED")) != 0) {
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
        if (j == NULL) {
            printf("%s %s\n", f->rows[i].name, f->rows[i].value);
        } else {
            json_put(j, JSON((const char *)f->rows[i].name, f->rows[i].value));
        }
    }
    if (j != NULL) {
        json_close(j, '}');
    }
}

/* Groups that the server does not have are left out. */
static enum outcome
dump_stats(const struct options *o, struct link *l)
{
    static const char *const groups[] = {"",        "settings", "items",  "slabs",
                                         "sizes",   "conns",    "qos",    "classes",
                                         "latency", "pin",      "resctrl"};
    struct json j;
    enum outcome outcome = DONE;
    if (o->is_json) {
        command_open_json(&j, o);
        json_open(&j, "stats", '{');
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && outcome != UNREACHABLE;
         i++) {
        struct facts f = {0};
        outcome = facts_ask(&f, l, groups[i]);
        if (outcome == DONE) {
            put_group(&f, *groups[i] != '\0' ? groups[i] : "general",
                      o->is_json ? &j : NULL);
        }
        facts_fini(&f);
        if (i == 0 && outcome == REFUSED) {
            break;
        }
        outcome = outcome == REFUSED ? DONE : outcome;
    }
    if (o->is_json) {
        json_close(&j, '}');
        json_close(&j, '}');
    }
    return outcome;
}

enum outcome
dump_run(const struct options *o, struct link *l)
{
    if (strcmp(o->words[1], "keys") == 0) {
        return dump_keys(o, l);
    }
    if (strcmp(o->words[1], "stats") == 0) {
        return dump_stats(o, l);
    }
    snprintf(l->why, sizeof l->why, "dump keys or dump stats, not \"%s\"", o->words[1]);
    return USAGE;
}
