/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/agent/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "loadgen/options/scope.h"

static bool
is_for(enum message_role role, enum scope scope)
{
    return scope == SCOPE_SHARED || (scope == SCOPE_MEASURE && role == ROLE_MEASURE) ||
           (scope == SCOPE_OBSERVE && role == ROLE_OBSERVE);
}

/* A word of a leader's, as a copy, when it may be one for this role. NULL with *wrong. */
static char *
take_word(const struct frame_field *field, enum message_role role, const char **wrong)
{
    static char why[MESSAGE_TEXT_MAX];
    char name[MESSAGE_WORD_MAX], *value = NULL;
    if (field->len >= MESSAGE_WORD_MAX || field->len < 2 || !frame_is_text(field) ||
        memcmp(field->p, "--", 2) != 0) {
        *wrong = "has options that are none";
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", (int)field->len - 2, (const char *)field->p + 2);
    char *equals = strchr(name, '=');
    if (equals != NULL) {
        *equals = '\0';
        value = equals + 1;
    }
    if (!is_for(role, scope_of(name, value))) {
        snprintf(why, sizeof why, "takes no --%.400s from a leader", name);
        *wrong = why;
        return NULL;
    }
    return alloc_checked(strndup((const char *)field->p, field->len));
}

/* What concerns this machine is its own, all else the leader's. NULL, or why not. */
static const char *
parse_words(struct job *j, const struct scope_words *host, const struct frame *f)
{
    static char why[MESSAGE_TEXT_MAX];
    static char *argv[2 * MESSAGE_WORDS_MAX + 2];
    static char program[] = "mcload";
    struct frame_field field;
    const char *wrong = NULL;
    size_t cursor = 0;
    int argc = 0;
    argv[argc++] = program;
    for (unsigned i = 0; i < host->count; i++) {
        argv[argc++] = host->words[i];
    }
    while (wrong == NULL && frame_next(f, &cursor, &field)) {
        if (field.tag == FIELD_WORD && argc > 2 * MESSAGE_WORDS_MAX) {
            wrong = "has too many options";
        } else if (field.tag == FIELD_WORD) {
            argv[argc++] = take_word(&field, j->role, &wrong);
        }
    }
    if (wrong == NULL && !options_parse_told(&j->options, argc, argv, j->said)) {
        fflush(j->said);
        snprintf(why, sizeof why, "cannot do it: %.*s", (int)strcspn(j->said_text, "\n"),
                 j->said_text);
        wrong = why;
    }
    return wrong;
}

/* Whether all classes have a name and a password. */
static bool
has_secret(const struct options *o)
{
    bool has = true;
    for (unsigned i = 0; i < o->classes_len; i++) {
        has = has && o->classes[i].password != NULL;
    }
    return has;
}

static const char *
check_target(const struct allow *allow, bool allows_udp, const struct target *t)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&t->addr;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&t->addr;
    uint8_t ip[IPNET_BYTES] = {[10] = 0xff, [11] = 0xff};
    if (t->transport == TRANSPORT_UDP && !allows_udp) {
        return "is loaded over UDP, which the agent does not allow";
    }
    switch (t->addr.ss_family) {
    case AF_UNIX:
        return allow_path(allow, ((const struct sockaddr_un *)&t->addr)->sun_path);
    case AF_INET:
        memcpy(ip + 12, &in->sin_addr, 4);
        return allow_ip(allow, ip, ntohs(in->sin_port));
    default:
        memcpy(ip, &in6->sin6_addr, sizeof ip);
        return allow_ip(allow, ip, ntohs(in6->sin6_port));
    }
}

/* By their addresses, which are what is connected to later, again and again: a name that
 * means something else by then changes nothing. */
static const char *
find_servers(struct job *j, const struct options *own)
{
    static char why[MESSAGE_TEXT_MAX];
    char err[MESSAGE_TEXT_MAX / 2];
    if (servers_open(&j->servers, &j->options, err, sizeof err) != EXIT_VALID) {
        snprintf(why, sizeof why, "cannot do it: %s", err);
        return why;
    }
    for (unsigned i = 0; i < j->servers.count; i++) {
        const struct target *t = &j->servers.all[i];
        const char *wrong = check_target(&own->agent_allow, own->allows_udp, t);
        if (wrong != NULL) {
            snprintf(why, sizeof why, "refuses: %.200s %s", t->name, wrong);
            return why;
        }
    }
    return NULL;
}

/* ---- traces ---------------------------------------------------------------------------- */

/* What is opened below a directory is what is read later: links that are put in place of
 * the file, or of a directory on the way to it, lead nowhere. glibc has no call for it. */
static int
open_below(const char *top, const char *rest)
{
    struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir == -1) {
        return -1;
    }
    int fd = (int)syscall(SYS_openat2, dir, rest, &how, sizeof how);
    int why = errno;
    close(dir);
    errno = why;
    return fd;
}

/* Opens a file that is one below the directory, wherever links lead, with its path. -1: it is
 * none, or cannot be opened so (errno). */
static int
open_trace(const char *dir, const char *file, char path[PATH_MAX])
{
    char top[PATH_MAX];
    struct stat st;
    if (realpath(dir, top) == NULL || realpath(file, path) == NULL) {
        return -1;
    }
    size_t len = strlen(top);
    len -= len == 1 ? 1 : 0; /* the root's slash is also the first of what is below */
    if (strncmp(path, top, len) != 0 || path[len] != '/') {
        return -1;
    }
    int fd = open_below(top, path + len + 1);
    if (fd != -1 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The leader's name of a trace as a file of this machine, which stays open as long as the
 * process is there: one leader long. NULL, or why not. */
static const char *
find_trace(const struct options *own, struct trace_conf *trace)
{
    static char why[MESSAGE_TEXT_MAX];
    const char *name = trace->path;
    char file[PATH_MAX], path[PATH_MAX], opened[32];
    for (unsigned i = 0; i < own->agent_traces_len; i++) {
        const char *dir = own->agent_traces[i];
        int n = name[0] == '/' ? snprintf(file, sizeof file, "%s", name)
                               : snprintf(file, sizeof file, "%s/%s", dir, name);
        errno = 0;
        int fd = n > 0 && (size_t)n < sizeof file ? open_trace(dir, file, path) : -1;
        if (fd != -1) {
            snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
            trace->path = alloc_text(path);
            trace->opened = alloc_text(opened);
            return NULL;
        }
        if (errno == ENOSYS) {
            return "refuses: its kernel cannot confine traces to a directory (openat2)";
        }
    }
    snprintf(why, sizeof why, "refuses: %.400s is none of its traces", name);
    return why;
}

/* Traces are the only files that are read for a leader, and only those in directories for
 * them: nothing is revealed about others, not even whether they exist. */
static const char *
resolve_traces(struct job *j, const struct options *own)
{
    for (unsigned i = 0; i < j->options.classes_len; i++) {
        struct trace_conf *trace = &j->options.classes[i].trace.file;
        if (trace->path == NULL) {
            continue;
        }
        if (own->agent_traces_len == 0) {
            return "refuses: it reads no traces for leaders (--agent-traces)";
        }
        const char *wrong = find_trace(own, trace);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

static struct allow_limits
demand_of(const struct job *j, double seconds, double qps)
{
    const struct options *o = &j->options;
    struct allow_limits d = {.qps = qps, .seconds = seconds};
    if (j->role == ROLE_OBSERVE) {
        d.conns = o->servers_len;
        d.qps = o->servers_len / o->server_stats_s;
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        d.conns +=
            (double)(o->classes[i].threads * o->classes[i].connections) * o->servers_len;
    }
    return d;
}

const char *
job_config_check(const struct job *j, const struct options *own, double seconds,
                 double qps)
{
    static char why[MESSAGE_TEXT_MAX];
    struct allow_limits d = demand_of(j, seconds, qps);
    struct allow_limits caps = {(double)own->agent_max_qps, (double)own->agent_max_conns,
                                own->agent_max_time};
    const char *wrong = allow_within(&caps, &d);
    snprintf(why, sizeof why, "refuses: %s", wrong != NULL ? wrong : "");
    return wrong != NULL ? why : NULL;
}

/* A leader that names none wants load. */
static bool
take_role(struct job *j, const struct frame *f)
{
    uint64_t role = ROLE_LOAD;
    bool is_good =
        !frame_has(f, FIELD_ROLE) || frame_number(f, FIELD_ROLE, 0, ROLES - 1, &role);
    j->role = (enum message_role)role;
    return is_good;
}

/* Of the classes that the words made those that are this agent's to send. */
static bool
keep_classes(struct job *j)
{
    struct options *o = &j->options;
    const struct lclass *last = &o->classes[o->classes_len - 1];
    switch (j->role) {
    case ROLE_MEASURE:
        o->classes += o->classes_len - 1;
        o->classes_len = 1;
        return last->is_measuring;
    case ROLE_OBSERVE:
        o->classes_len = 0;
        return o->server_stats_s > 0;
    case ROLE_LOAD:
    case ROLES:
        break;
    }
    return true;
}

/* A leader that does not tell senders apart means all. */
static bool
take_numbers(struct job *j, const struct frame *f)
{
    uint64_t agent, agents, sender, senders;
    if (!frame_number(f, FIELD_AGENTS, 1, MESSAGE_AGENTS_MAX + 1, &agents) ||
        !frame_number(f, FIELD_AGENT, 0, agents - 1, &agent)) {
        return false;
    }
    sender = agent;
    senders = agents;
    if (frame_has(f, FIELD_SENDERS) &&
        (!frame_number(f, FIELD_SENDERS, 1, MESSAGE_AGENTS_MAX + 1, &senders) ||
         !frame_number(f, FIELD_SENDER, 0, senders - 1, &sender))) {
        return false;
    }
    j->agent = (unsigned)agent;
    j->agents = (unsigned)agents;
    j->sender = (unsigned)sender;
    j->senders = (unsigned)senders;
    return true;
}

const char *
job_config_take(struct job *j, const struct service_conf *conf, const struct frame *f)
{
    uint64_t wants_secret;
    if (!take_numbers(j, f) || !take_role(j, f)) {
        return "does not understand the leader";
    }
    j->cap = cap_is_on(&conf->shared->cap) ? &conf->shared->cap : NULL;
    const char *wrong = parse_words(j, conf->host, f);
    if (wrong == NULL && !keep_classes(j)) {
        wrong = "does not understand the leader";
    }
    if (wrong == NULL && frame_number(f, FIELD_WANTS_SECRET, 1, 1, &wants_secret) &&
        !has_secret(&j->options)) {
        wrong = "has no --auth-file of its own";
    }
    wrong = wrong != NULL ? wrong : find_servers(j, conf->own);
    wrong = wrong != NULL ? wrong : resolve_traces(j, conf->own);
    if (wrong == NULL) {
        /* The rate is asked for with each run; any that is allowed will do here. */
        wrong = job_config_check(j, conf->own, j->options.time_s + j->options.warmup_s,
                                 conf->own->agent_max_qps > 0 ? 1 : 0);
    }
    return wrong;
}
