/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The process: user, background, log, and what is printed in place of serving.
 */
#include "base/log.h"
#include "base/num.h"
#include "front/front.h"

/* -v, -vv, --verbose, --verbose=N. */
static const char *
set_verbosity(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t level;
    if (text == NULL) {
        s->verbosity++;
    } else if (num_u32(text, strlen(text), &level)) {
        s->verbosity = level;
    } else {
        return "verbose must be a number";
    }
    return NULL;
}

static void
read_verbosity(void *program, void *conf)
{
    (void)program;
    ((struct settings *)conf)->verbosity = log_level();
}

static bool
apply_verbosity(void *program, const void *conf)
{
    (void)program;
    log_set_level(((const struct settings *)conf)->verbosity);
    return true;
}

static const struct opt_live live = {read_verbosity, apply_verbosity, NULL, NULL};

static const char *
set_short_help(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    s->action =
        rules_of(s->profile)->starts_its_own_way ? ACTION_SHORT_HELP : ACTION_HELP;
    return NULL;
}

static const char *
set_help(void *conf, const char *text)
{
    struct settings *s = conf;
    s->action = ACTION_HELP;
    s->help_topic = text;
    return NULL;
}

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'v', .name = "verbose", SET(set_verbosity), OF(verbosity), .arg = "N?", .section = PROCESS,
     .common = 6, .adds_up = true, .live = &live, .help = "log to stderr; -vv: commands and replies"},
    {.letter = 'u', .name = "user", .kind = OPT_TEXT, OF(user), .exit_status = FRONT_USAGE,
     .arg = "USER", .section = PROCESS, .common = 11,
     .help = "become this user when started as root"},
    {.letter = 'P', .name = "pidfile", .kind = OPT_TEXT, OF(pid_file), .arg = "FILE",
     .section = PROCESS, .common = 12, .help = "write the process id to FILE"},
    {.letter = 'd', .name = "daemon", .kind = OPT_FLAG, OF(is_daemon), .section = PROCESS,
     .common = 13, .help = "run in the background"},
    {.letter = 'r', .name = "enable-coredumps", .kind = OPT_FLAG, OF(wants_core),
     .section = PROCESS, .help = "allow core files of any size"},
    {.letter = 'h', SET(set_short_help), .is_argv_only = true, .section = PROCESS,
     .help = "print the most important options; with --compat=1.4 or 1.6 all"},
    {.name = "help", SET(set_help), .is_argv_only = true, .arg = "TOPIC?", .may_follow = true, .section = PROCESS,
     .help = "print all options, one section or those with TOPIC in their name"},
    {.letter = 'V', .name = "version", .kind = OPT_SET, OF(action),
     .value = ACTION_VERSION, .section = PROCESS, .is_argv_only = true,
     .help = "print the versions"},
    {.letter = 'i', .name = "license", .kind = OPT_SET, OF(action),
     .value = ACTION_LICENSE, .section = PROCESS, .is_argv_only = true,
     .help = "print the licence"},
};
/* clang-format on */

/* A line of Debian's file, which a service manager overrules: it follows the process itself. */
static const char *
settle(struct settings *s, struct settling *to)
{
    if (s->is_daemon && getenv("NOTIFY_SOCKET") != NULL) {
        fputs("memcached: warning: -d has no effect under a service manager\n", to->err);
        s->is_daemon = false;
    }
    return NULL;
}

const struct front front_process = {OPTIONS(options), .settle = settle};
