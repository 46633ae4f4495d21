/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos: looks at a server and changes its quality of service.
 */
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "mcqos/command.h"

enum need { NOTHING, SERVER };

static const struct command {
    const char *name, *arguments, *help;
    command_run *run;
    unsigned least, most; /* words behind the name */
    enum need need;
} commands[] = {
    {"status", "", "what QoS does now: what waits, is refused, and what would help",
     status_run, 0, 0, SERVER},
    {"top", "", "the same all the time, with the workers", top_run, 0, 0, NOTHING},
    {"limit", "[[CLASS] RATE|off [BURST]]",
     "show or set limits; also peer, action, unit, "
     "cpu_limit, dry_run, as `qos help` has them",
     set_run, 0, 3, SERVER},
    {"slo", "[[CLASS] pNN:TIME|off]", "show or set targets of waiting times", set_run, 0,
     2, SERVER},
    {"class", "", "what each class gets and how long it waits", status_run, 0, 0, SERVER},
    {"pin", "[repin | rebalance [FROM TO [N]]]",
     "where the workers are; bind them again, or "
     "move connections",
     pin_run, 0, 4, SERVER},
    {"reload", "", "let the server read its configuration file again", reload_run, 0, 0,
     SERVER},
    {"save", "", "let it write settings that were changed at run time to that file",
     reload_run, 0, 0, SERVER},
    {"ping", "", "is it there? exit status 0, 1 or 2", ping_run, 0, 0, NOTHING},
    {"watch", "[fetchers|mutations|evictions|...]", "the live log", watch_run, 0,
     OPTIONS_WORDS_MAX, SERVER},
    {"dump", "keys|stats", "all keys, or all statistics", dump_run, 1, 1, SERVER},
    {"layout", "SHAPE [run] [-- OPTIONS]",
     "several servers on one machine, such as 2s3c2t: one "
     "for each thread",
     layout_run, 1, OPTIONS_WORDS_MAX, NOTHING},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

void
command_open_json(struct json *j, const struct options *o)
{
    json_init(j, stdout);
    json_open(j, NULL, '{');
    json_put(j, JSON("mcqos", COMMAND_SCHEMA), JSON("server", o->server));
}

static int
print_help(const char *topic)
{
    if (topic != NULL) {
        return opt_help_topic(options_table(), topic, stdout, stderr) ? DONE : USAGE;
    }
    puts("usage: mcqos [options] COMMAND\n"
         "Looks at a memcached-qos and changes its quality of service; see mcqos(1).\n\n"
         "Commands:");
    for (size_t i = 0; i < COMMANDS; i++) {
        printf("  %s %s\n      %s\n", commands[i].name, commands[i].arguments,
               commands[i].help);
    }
    putchar('\n');
    opt_help(options_table(), stdout);
    puts("\nExit status: 0 done, 1 the server refuses or answers something else, 2 it "
         "cannot be\n"
         "reached or does not answer in time, 64 wrong usage.");
    return DONE;
}

static const struct command *
find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

/* Of the words there are; NULL, with a line on standard error: they are wrong. */
static const struct command *
choose(const struct options *o)
{
    const struct command *c = o->count > 0 ? find(o->words[0]) : NULL;
    if (c != NULL && o->count - 1 >= c->least && o->count - 1 <= c->most) {
        return c;
    }
    if (c != NULL) {
        fprintf(stderr, "mcqos: usage: mcqos %s %s\n", c->name, c->arguments);
    } else {
        fprintf(stderr, "mcqos: %s%s; there are:",
                o->count > 0 ? "no such command: " : "no command",
                o->count > 0 ? o->words[0] : "");
        for (size_t i = 0; i < COMMANDS; i++) {
            fprintf(stderr, " %s", commands[i].name);
        }
        fputs(". See --help\n", stderr);
    }
    return NULL;
}

static int
run(const struct options *o)
{
    static struct link link = {.fd = -1};
    const struct command *c = choose(o);
    if (c == NULL) {
        return USAGE;
    }
    enum outcome outcome = UNREACHABLE;
    if (c->need == NOTHING || link_open(&link, o->server, clock_seconds(o->timeout))) {
        outcome = c->run(o, &link);
    }
    link_close(&link);
    if (outcome != DONE && link.why[0] != '\0') {
        fprintf(stderr, "mcqos: %s\n", link.why);
    }
    return outcome;
}

int
main(int argc, char **argv)
{
    struct options o;
    int status = USAGE;
    if (options_parse(&o, argc, argv)) {
        if (o.wants_version) {
            printf("mcqos %s\n", PACKAGE_VERSION);
            status = DONE;
        } else {
            status = o.wants_help ? print_help(o.help_topic) : run(&o);
        }
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mcqos: cannot write the answer: %s\n", strerror(errno));
        return status == DONE ? UNREACHABLE : status;
    }
    return status;
}
