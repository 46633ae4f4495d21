/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * --doctor: what of this host and of a server's settings makes slow requests slower. The checks:
 * doctor/doctor.h.
 */
#include "doctor/doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "front/front.h"
#include "net/hosts.h"

#define STATUS_COMPLAINTS 1
#define STATUS_FAILED 2
#define PAUSE_NS 300000000
#define PATH_LEN 64
#define ARGUMENTS_MAX 65536
#define NAME_LEN 32

struct doctor_state {
    bool shows_all, is_json;
    uint32_t process; /* 0: none; the settings are those of this command line */
};

/* "all", "json" and the number of a process, with commas. */
static const char *
set_doctor(void *conf, const char *text)
{
    struct settings *s = conf;
    struct doctor_state *d = front_state(s, &front_doctor);
    s->action = ACTION_DOCTOR;
    for (const char *p = text; p != NULL && *p != '\0';) {
        size_t len = strcspn(p, ",");
        if (len == strlen("all") && strncmp(p, "all", len) == 0) {
            d->shows_all = true;
        } else if (len == strlen("json") && strncmp(p, "json", len) == 0) {
            d->is_json = true;
        } else if (!num_u32(p, len, &d->process) || d->process == 0) {
            return "--doctor takes all, json, the number of a process, or several of "
                   "these with commas";
        }
        p += len + (p[len] == ',');
    }
    return NULL;
}

/* ---- the settings, as checks see them ------------------------------------------------- */

static void
pause_briefly(void)
{
    struct timespec rest = {.tv_nsec = PAUSE_NS};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static bool
is_any(const char *host)
{
    return *host == '\0' || strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 ||
           strcmp(host, "::") == 0;
}

static bool
is_loopback(const char *host)
{
    struct in_addr v4;
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &v4) == 1 &&
            ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}

static enum doctor_reach
reach_of(const struct settings *s)
{
    enum doctor_reach reach = DOCTOR_REACH_HOST;
    struct hosts_element element;
    char err[HOSTS_NAME_MAX];
    const char *list = s->listen.addresses;
    bool has_port =
        s->listen.port != LISTEN_PORT_OFF || s->listen.udp_port != LISTEN_PORT_OFF;
    if (s->listen.socket_path != NULL || !has_port) {
        return DOCTOR_REACH_HOST;
    }
    if (list == NULL) {
        return DOCTOR_REACH_WORLD;
    }
    /* What is wrong with an element ends the start of a server, and its message is there. */
    while (hosts_next(&list, s->listen.rules, &element, err, sizeof err) == HOSTS_OK) {
        enum doctor_reach one = is_any(element.host)        ? DOCTOR_REACH_WORLD
                                : is_loopback(element.host) ? DOCTOR_REACH_HOST
                                                            : DOCTOR_REACH_SOME;
        reach = one > reach ? one : reach;
    }
    return reach;
}

static enum doctor_guard
guard_of(const struct settings *s)
{
    bool asks =
        s->uses_sasl || s->token_file != NULL || (s->uses_tls && s->tls.verify_mode >= 2);
    return asks          ? DOCTOR_GUARD_CLIENT
           : s->uses_tls ? DOCTOR_GUARD_TLS
                         : DOCTOR_GUARD_NONE;
}

/* Where the workers will be, if that is known. */
static struct cpumask
planned(const struct settings *s)
{
    struct cpumask cpus = {0};
    struct pin_plan plan;
    char err[PIN_LIST_LEN];
    if (!pin_plan(&s->pin, (unsigned)s->threads, &plan, err, sizeof err)) {
        fprintf(stderr, "memcached: warning: workers will not be pinned: %s\n", err);
        return cpus;
    }
    for (unsigned i = 0; i < plan.count; i++) {
        cpumask_add(&cpus, (unsigned)plan.places[i].cpu);
    }
    pin_plan_fini(&plan);
    return cpus;
}

static struct doctor_conf
conf_of(const struct settings *s, uint32_t process)
{
    bool is_pinned = s->is_pinned && s->pin.policy != PIN_NONE;
    struct cpumask workers = {0};
    if (is_pinned && process == 0) {
        workers = planned(s);
    }
    unsigned least, files = settings_files(s, &least);
    struct doctor_conf conf = {
        .root = "",
        .process = process,
        .pause = pause_briefly,
        .may_raise = process == 0 && geteuid() == 0,
        .threads = (unsigned)s->threads,
        .max_conns = (unsigned)s->max_conns,
        .files_least = least,
        .files = files,
        .backlog = (unsigned)s->listen.backlog,
        .memory_bytes = s->store.limit_bytes,
        .locked_bytes = SETTINGS_LOCKED_TIMES * s->store.limit_bytes,
        .item_max = s->store.item_max,
        .is_pinned = is_pinned,
        .workers = workers,
        .sched = s->sched.policy != PRIO_LEAVE ? prio_name(&s->sched) : NULL,
        .is_realtime = prio_is_realtime(&s->sched),
        /* As place/membind.h: pinned workers have it by themselves. */
        .has_membind = s->membind.policy == MEMBIND_DEFAULT
                           ? is_pinned && (process != 0 || cpumask_count(&workers) > 0)
                           : s->membind.policy != MEMBIND_NONE,
        .locks_memory = s->locks_memory,
        .suspends_irqs = s->busy_poll.prefers,
        .reach = reach_of(s),
        .guard = guard_of(s),
        .has_udp = s->listen.udp_port != LISTEN_PORT_OFF,
    };
    return conf;
}

/* ---- a server that runs --------------------------------------------------------------- */

static bool
is_memcached(uint32_t process)
{
    char path[PATH_LEN], name[NAME_LEN];
    snprintf(path, sizeof path, "/proc/%u/comm", process);
    if (!file_read_line(path, name, sizeof name)) {
        fprintf(stderr, "memcached: --doctor: there is no process %u\n", process);
        return false;
    }
    if (strncmp(name, "memcached", strlen("memcached")) != 0) {
        fprintf(stderr, "memcached: --doctor: process %u is %s, not memcached\n", process,
                name);
        return false;
    }
    return true;
}

/* What a process was started with, each argument with its end. The kernel shows no more when a
 * program has overwritten them. */
static size_t
read_arguments(uint32_t process, char text[ARGUMENTS_MAX])
{
    char path[PATH_LEN];
    snprintf(path, sizeof path, "/proc/%u/cmdline", process);
    FILE *file = fopen(path, "re");
    size_t len = file != NULL ? fread(text, 1, ARGUMENTS_MAX, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    return len > 0 && text[len - 1] == '\0' ? len : 0;
}

/* The settings that a server was started with; until the next call. */
static bool
settings_of_process(struct settings *s, uint32_t process)
{
    static char text[ARGUMENTS_MAX];
    static char *argv[ARGUMENTS_MAX / 2];
    char folder[PATH_LEN];
    int count = 0, status;
    size_t len = read_arguments(process, text);
    /* Names of files are seen from there; where this user may not go, only full ones are found. */
    snprintf(folder, sizeof folder, "/proc/%u/cwd", process);
    (void)!chdir(folder);
    for (char *at = text; at < text + len && count < ARGUMENTS_MAX / 2 - 1;
         at += strlen(at) + 1) {
        argv[count++] = at;
    }
    argv[count] = NULL;
    bool is_parsed = count > 0 && settings_parse(s, count, argv, &status);
    if (!is_parsed) {
        fprintf(stderr,
                "memcached: --doctor: the arguments of process %u are not known\n",
                process);
    }
    return is_parsed;
}

int
settings_doctor(struct settings *s)
{
    static struct settings other;
    static struct doctor_report report;
    const struct doctor_state *d = front_state(s, &front_doctor);
    bool is_other = d->process != 0;
    bool is_known = !is_other ||
                    (is_memcached(d->process) && settings_of_process(&other, d->process));
    if (is_known) {
        struct doctor_conf conf = conf_of(is_other ? &other : s, d->process);
        doctor_examine(&conf, &report);
    }
    settings_fini(&other);
    if (!is_known) {
        return STATUS_FAILED;
    }
    if (d->is_json) {
        doctor_print_json(&report, stdout);
    } else {
        doctor_print(&report, d->shows_all, stdout);
    }
    return doctor_has_complaints(&report) ? STATUS_COMPLAINTS : 0;
}

/* clang-format off */
static const struct opt options[] = {
    {.name = "doctor", SET(set_doctor), .exit_status = FRONT_USAGE, .arg = "all|json|PID?",
     .section = PROCESS, .after = "license", .is_argv_only = true,
     .help = "check this host and the other options for what harms latency, and exit"},
};
/* clang-format on */

const struct front front_doctor = {OPTIONS(options), .usage = FRONT_USAGE,
                                   .state_bytes = sizeof(struct doctor_state)};
