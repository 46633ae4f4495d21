/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/options.h"

#include <limits.h>
#include <unistd.h>

/* From the folder of this program, in a build. */
#define SIBLING "/../memcached/memcached"
#define MOST_SECONDS 3600
#define MOST_MEGABYTES (1 << 30)

enum section { COMMON, LAYOUT, HELP };

static const struct opt_section sections[] = {
    [COMMON] = {"common", "Server and output"},
    [LAYOUT] = {"layout", "Layouts"},
    [HELP] = {"help", "Help"},
};

static const char *const pers[] = {
    [PER_THREAD] = "thread",
    [PER_CORE] = "core",
    [PER_SOCKET] = "socket",
};

static const char *
call_help(void *conf, const char *text)
{
    struct options *o = conf;
    o->wants_help = true;
    o->help_topic = text;
    return NULL;
}

#define OF(field) OPT_FIELD(struct options, field)

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 's', .name = "server", .kind = OPT_TEXT, OF(server), .section = COMMON,
     .arg = "HOST[:PORT]|PATH", .preset = "127.0.0.1:11211",
     .help = "server, or the path of its UNIX socket"},
    {.name = "auth-file", .kind = OPT_TEXT, OF(auth_file), .section = COMMON, .arg = "FILE",
     .help = "for a server with -Y: USER:PASSWORD is the first line of FILE"},
    {.letter = 'j', .name = "json", .kind = OPT_FLAG, OF(is_json), .section = COMMON,
     .help = "answer in JSON"},
    {.letter = 't', .name = "timeout", .kind = OPT_DOUBLE, OF(timeout), .section = COMMON,
     .min = 0.001, .max = MOST_SECONDS, .arg = "SECONDS", .preset = "2",
     .error = "a time-out is a number of seconds, 0.001 to 3600",
     .help = "longest time to connect, and to answer a command"},
    {.letter = 'i', .name = "interval", .kind = OPT_DOUBLE, OF(interval), .section = COMMON,
     .min = 0, .max = MOST_SECONDS, .arg = "SECONDS", .preset = "1",
     .error = "an interval is a number of seconds, 0 to 3600",
     .help = "time that rates are taken over; 0: since the start of the server"},
    {.letter = 'm', .name = "memory", .kind = OPT_MEGS, OF(layout.memory_mb), .section = LAYOUT,
     .min = 1, .max = MOST_MEGABYTES, .arg = "MB", .preset_help = "64 each",
     .error = "memory is a number of megabytes from 1",
     .help = "megabytes of items of all processes; 1g is 1024"},
    {.name = "share", .kind = OPT_TEXT, OF(layout.share), .section = LAYOUT, .arg = "N,N...",
     .preset = "1", .help = "memory and keys of the processes, in turn: 2,1 is twice as much "
                            "for each other one"},
    {.letter = 'p', .name = "port", .kind = OPT_INT, OF(layout.port), .section = LAYOUT,
     .min = 1, .max = 65535, .arg = "N", .preset = "11211",
     .error = "port must be from 1 to 65535", .help = "port of the first process"},
    {.letter = 'l', .name = "listen", .kind = OPT_TEXT, OF(layout.listen), .section = LAYOUT,
     .arg = "ADDR", .preset = "127.0.0.1", .help = "address that they listen on"},
    {.name = "per", .kind = OPT_CHOICE, OF(layout.per), .section = LAYOUT,
     .arg = "thread|core|socket", OPT_CHOICES(pers), .preset = "thread",
     .error = "per must be thread, core or socket", .help = "what a process has"},
    {.name = "machine", .kind = OPT_TEXT, OF(layout.machine), .section = LAYOUT,
     .arg = "FILE|TEXT", .preset_help = "this one",
     .help = "plan for another machine: XML of lstopo, a path with a slash in it, or such as "
             "\"pack:2 core:6 pu:2\""},
    {.name = "memcached", .kind = OPT_TEXT, OF(layout.program), .section = LAYOUT,
     .arg = "PATH", .preset = SERVER_PATH, .help = "the server, of layout and doctor"},
    {.name = "units", .kind = OPT_TEXT, OF(layout.units), .section = LAYOUT, .arg = "DIR",
     .help = "write units of systemd there"},
    {.letter = 'h', .name = "help", .kind = OPT_CALL, .call = call_help, .section = HELP,
     .arg = "TOPIC?", .help = "print this, or one section or option"},
    {.letter = 'V', .name = "version", .kind = OPT_FLAG, OF(wants_version), .section = HELP,
     .help = "print the version"},
};
/* clang-format on */

static const char *
take_word(void *conf, const char *text)
{
    struct options *o = conf;
    if (o->count == OPTIONS_WORDS_MAX) {
        return "too many words";
    }
    o->words[o->count++] = text;
    return NULL;
}

const struct opt_table *
options_table(void)
{
    static const struct opt_table table = {
        .rows = rows,
        .count = sizeof rows / sizeof rows[0],
        .program = "mcqos",
        .operand = take_word,
        .sections = sections,
        .section_count = sizeof sections / sizeof sections[0],
    };
    return &table;
}

/* Before it is installed, the one of the same build, or the one in PATH. A unit needs a path. */
static void
find_server(struct layout_options *l)
{
    static char built[PATH_MAX];
    if (l->units != NULL || strcmp(l->program, SERVER_PATH) != 0 ||
        access(SERVER_PATH, X_OK) == 0) {
        return;
    }
    ssize_t len = readlink("/proc/self/exe", built, sizeof built - sizeof SIBLING);
    char *slash = len > 0 ? memrchr(built, '/', (size_t)len) : NULL;
    if (slash != NULL) {
        memcpy(slash, SIBLING, sizeof SIBLING);
    }
    l->program =
        slash != NULL && access(built, X_OK) == 0 ? built : strrchr(SERVER_PATH, '/') + 1;
}

bool
options_parse(struct options *o, int argc, char **argv)
{
    int status = 0;
    *o = (struct options){0};
    opt_preset(options_table(), o, false);
    bool is_done = opt_parse(options_table(), o, argc, argv, stderr, &status) == OPT_DONE;
    find_server(&o->layout);
    return is_done;
}

bool
options_join(const struct options *o, unsigned from, char dst[OPTIONS_LINE_MAX])
{
    size_t len = 0;
    *dst = '\0';
    for (unsigned i = from; i < o->count && len < OPTIONS_LINE_MAX; i++) {
        len += (size_t)snprintf(dst + len, OPTIONS_LINE_MAX - len, "%s%s",
                                i > from ? " " : "", o->words[i]);
    }
    return len < OPTIONS_LINE_MAX && strpbrk(dst, "\r\n") == NULL;
}
