/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos: looks at a server and changes its quality of service.
 */
#include <errno.h>
#include <signal.h>

#include "base/fold.h"
#include "base/part.h"
#include "mcqos/command.h"

#define HELP_INDENT 6
#define HELP_WIDTH 80

enum need { NOTHING, SERVER };

static command_run help_run;

static const struct command {
    const char *name, *arguments, *help;
    command_run *run;
    unsigned least, most; /* words behind the name */
    enum need need;
} commands[] = {
    {"status", "", "what QoS does now: what waits, is refused, and what would help",
     status_run, 0, 0, SERVER},
    {"top", "",
     "the same on a terminal, renewed all the time, and a table of the workers", top_run,
     0, 0, NOTHING},
    {"limit", "[[CLASS] RATE|off [BURST]]",
     "show or set limits; also peer, action, unit, cpu_limit, dry_run, fair, as `qos "
     "help` has them",
     set_run, 0, 3, SERVER},
    {"slo", "[[CLASS] pNN:TIME|off]", "show or set targets of waiting times", set_run, 0,
     2, SERVER},
    {"class", "", "what each class gets and how long it waits", status_run, 0, 0, SERVER},
    {"pin", "[repin | rebalance [FROM TO [N]]]",
     "on which CPUs the workers are; bind them again, or move connections", pin_run, 0, 4,
     SERVER},
    {"doctor", "[all] [PID | -- OPTIONS]",
     "check the host for what makes requests slow: beside this server, the process "
     "PID, or a server that is to run with OPTIONS",
     doctor_run, 0, OPTIONS_WORDS_MAX, NOTHING},
    {"reload", "", "make the server read its configuration file again", reload_run, 0, 0,
     SERVER},
    {"save", "", "make it write settings that were changed at run time to that file",
     reload_run, 0, 0, SERVER},
    {"ping", "", "does the server answer? For probes: see the exit status", ping_run, 0,
     0, NOTHING},
    {"watch", "[fetchers|mutations|evictions|...]", "the live log", watch_run, 0,
     OPTIONS_WORDS_MAX, SERVER},
    {"dump", "keys|stats", "all keys, or all statistics", dump_run, 1, 1, SERVER},
    {"layout", "SHAPE [run] [-- OPTIONS]",
     "several servers on one machine, such as 2s3c2t: one for each thread", layout_run, 1,
     OPTIONS_WORDS_MAX, NOTHING},
    {"help", "[TOPIC]", "this text, or the part about a command, a section or an option",
     help_run, 0, 1, NOTHING},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

/* ---- answers -------------------------------------------------------------------------- */

struct json *
command_open(struct json *room, const struct options *o, const char *member, char bracket)
{
    if (!o->is_json) {
        return NULL;
    }
    json_init(room, stdout);
    json_open(room, NULL, '{');
    json_put(room, JSON("mcqos", COMMAND_SCHEMA), JSON("server", o->server));
    if (member != NULL) {
        json_open(room, member, bracket);
    }
    return room;
}

void
command_put(struct json *j, int columns, const char *name, const char *value)
{
    if (j != NULL) {
        json_put(j, JSON(name, value));
    } else if (name != NULL) {
        printf("%-*s %s\n", columns, name, value);
    } else {
        puts(value);
    }
}

void
command_close(struct json *j, char bracket)
{
    if (j != NULL) {
        json_close(j, bracket);
        json_close(j, '}');
    }
}

/* ---- help ----------------------------------------------------------------------------- */

static void
print_command(const struct command *c)
{
    printf("  %s%s%s\n      ", c->name, *c->arguments != '\0' ? " " : "", c->arguments);
    fold_text(stdout, c->help, HELP_INDENT, HELP_WIDTH);
}

/* Of all, or of one command, section or option. */
static enum outcome
print_help(const char *topic)
{
    const struct command *one =
        topic != NULL ? part_row(PART_ROWS(commands), topic, strlen(topic)) : NULL;
    if (one != NULL) {
        print_command(one);
        return DONE;
    }
    if (topic != NULL) {
        return opt_help_topic(options_table(), topic, stdout, stderr) ? DONE : USAGE;
    }
    puts("usage: mcqos [options] COMMAND\n"
         "Looks at a memcached-qos and changes its quality of service; see mcqos(1).\n\n"
         "Commands:");
    for (size_t i = 0; i < COMMANDS; i++) {
        print_command(&commands[i]);
    }
    putchar('\n');
    opt_help(options_table(), stdout);
    puts("\nExit status: 0 done, 1 the server refuses or answers something else, 2 it "
         "cannot\n"
         "be reached or does not answer in time, 64 wrong usage.");
    return DONE;
}

static enum outcome
help_run(const struct options *o, struct link *l)
{
    (void)l;
    return print_help(o->count > 1 ? o->words[1] : NULL);
}

/* ---- the command line ----------------------------------------------------------------- */

/* The command that is asked for; NULL, with a line on standard error, when the words are wrong. */
static const struct command *
choose(const struct options *o)
{
    const char *name = o->count > 0 ? o->words[0] : "";
    const struct command *c = part_row(PART_ROWS(commands), name, strlen(name));
    if (c != NULL && o->count - 1 >= c->least && o->count - 1 <= c->most) {
        return c;
    }
    if (c != NULL) {
        fprintf(stderr, "mcqos: usage: mcqos %s%s%s\n", name,
                *c->arguments != '\0' ? " " : "", c->arguments);
        return NULL;
    }
    fprintf(stderr,
            "mcqos: no %s%s; there are:", *name != '\0' ? "such command: " : "command",
            name);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(stderr, " %s", commands[i].name);
    }
    fputs(". See --help\n", stderr);
    return NULL;
}

static enum outcome
run(const struct options *o)
{
    static struct link link = {.fd = -1};
    const struct command *c = choose(o);
    if (c == NULL) {
        return USAGE;
    }
    enum outcome outcome = c->need == NOTHING ? DONE : link_open(&link, o);
    if (outcome == DONE) {
        outcome = c->run(o, &link);
    }
    link_close(&link);
    if (outcome != DONE && link.why[0] != '\0') {
        fprintf(stderr, "mcqos: %s\n", link_clean(link.why, strlen(link.why)));
    }
    return outcome;
}

int
main(int argc, char **argv)
{
    struct options o;
    int status = USAGE;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like others */
    if (options_parse(&o, argc, argv)) {
        if (o.wants_version) {
            printf("mcqos %s\n", PACKAGE_VERSION);
            status = DONE;
        } else {
            status = o.wants_help ? (int)print_help(o.help_topic) : (int)run(&o);
        }
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mcqos: cannot write the answer: %s\n", strerror(errno));
        return status == DONE ? UNREACHABLE : status;
    }
    return status;
}
