/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "doctor/host.h"

#include <errno.h>
#include <stdarg.h>

#include "base/num.h"
#include "place/topo.h"

#define PATH_LEN 512
#define WORKER_NAME "Name:\tmc-worker "

static FILE *
open_file(const struct host *h, const char *path)
{
    char full[PATH_LEN];
    int n = snprintf(full, sizeof full, "%s%s", h->conf.root, path);
    if (n < 0 || (size_t)n >= sizeof full) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(full, "re");
}

/* The first line that begins with `start`. */
bool
host_find(const struct host *h, char line[HOST_LINE], const char *path, const char *start)
{
    FILE *file = open_file(h, path);
    bool is_found = false, is_whole = true;
    if (file == NULL) {
        return false;
    }
    /* The rest of a line that is too long is no line. */
    for (bool begins = true; !is_found && fgets(line, HOST_LINE, file) != NULL;
         begins = is_whole) {
        is_whole = strchr(line, '\n') != NULL;
        is_found = begins && strncmp(line, start, strlen(start)) == 0;
    }
    int error = ferror(file) ? errno : ENODATA;
    fclose(file);
    line[is_found ? strcspn(line, "\n") : 0] = '\0';
    errno = is_found ? 0 : error;
    return is_found;
}

const char *
host_at(const char *format, ...)
{
    static char path[PATH_LEN];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    return path;
}

bool
host_line(const struct host *h, char line[HOST_LINE], const char *path)
{
    return host_find(h, line, path, "");
}

bool
host_field(const struct host *h, uint64_t *number, const char *path, const char *start)
{
    char line[HOST_LINE];
    if (!host_find(h, line, path, start)) {
        return false;
    }
    const char *value = line + strlen(start);
    value += strspn(value, " \t");
    bool is_number = num_u64(value, strspn(value, "0123456789"), number);
    errno = is_number ? 0 : EINVAL;
    return is_number;
}

bool
host_number(const struct host *h, uint64_t *number, const char *path)
{
    return host_field(h, number, path, "");
}

static bool
take_cpus(const char *text, struct cpumask *cpus)
{
    static int numbers[CPUMASK_CPUS];
    unsigned count;
    *cpus = (struct cpumask){0};
    if (topo_parse_list(text, numbers, &count) != NULL) {
        errno = EINVAL;
        return false;
    }
    while (count > 0) {
        cpumask_add(cpus, (unsigned)numbers[--count]);
    }
    return true;
}

bool
host_cpus(const struct host *h, struct cpumask *cpus, const char *path)
{
    char line[HOST_LINE];
    return host_line(h, line, path) && take_cpus(line, cpus);
}

bool
host_choice(const struct host *h, char word[HOST_LINE], const char *path)
{
    if (!host_line(h, word, path)) {
        return false;
    }
    char *begin = strchr(word, '[');
    char *end = begin != NULL ? strchr(begin, ']') : NULL;
    if (end != NULL) {
        *end = '\0';
        memmove(word, begin + 1, (size_t)(end - begin));
    }
    return true;
}

bool
host_limit(const struct host *h, uint64_t *limit, const char *start)
{
    char line[HOST_LINE];
    if (!host_find(h, line, host_at("/proc/%s/limits", h->process), start)) {
        return false;
    }
    const char *soft = strtok(line + strlen(start), " "), *hard = strtok(NULL, " ");
    const char *own = h->conf.process != 0 ? soft : hard;
    bool is_free = own != NULL && strcmp(own, "unlimited") == 0;
    bool is_number = own != NULL && num_u64(own, strlen(own), limit);
    *limit = is_free ? UINT64_MAX : *limit;
    errno = EINVAL;
    return is_free || is_number;
}

char *
host_text(const struct host *h, const char *path)
{
    FILE *file = open_file(h, path);
    char *text = NULL;
    size_t room = 0;
    if (file == NULL) {
        return NULL;
    }
    if (getdelim(&text, &room, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

unsigned
host_glob(const struct host *h, const char *pattern, glob_t *found)
{
    char full[PATH_LEN];
    *found = (glob_t){0};
    int n = snprintf(full, sizeof full, "%s%s", h->conf.root, pattern);
    bool fits = n >= 0 && (size_t)n < sizeof full;
    return fits && glob(full, 0, NULL, found) == 0 ? (unsigned)found->gl_pathc : 0;
}

static void
add_cpus(struct cpumask *to, const struct cpumask *cpus)
{
    CPU_OR_S(sizeof to->sets, to->sets, to->sets, cpus->sets);
}

/* A server that runs tells where its threads are and how many of them are workers. */
static void
read_threads(struct host *h)
{
    char pattern[64], line[HOST_LINE];
    unsigned workers = 0;
    glob_t tasks;
    snprintf(pattern, sizeof pattern, "/proc/%s/task/[0-9]*/status", h->process);
    unsigned count = host_glob(h, pattern, &tasks);
    for (unsigned i = 0; i < count; i++) {
        static const char start[] = "Cpus_allowed_list:\t";
        const char *path = host_found(h, &tasks, i);
        struct cpumask cpus;
        bool is_worker = host_find(h, line, path, WORKER_NAME);
        if (!host_find(h, line, path, start) || !take_cpus(line + strlen(start), &cpus)) {
            continue; /* has ended meanwhile */
        }
        add_cpus(&h->allowed, &cpus);
        workers += is_worker;
        if (is_worker && cpumask_count(&cpus) == 1) {
            add_cpus(&h->workers, &cpus);
        }
    }
    globfree(&tasks);
    /* A thread may be allowed CPUs that are not there. */
    if (host_cpus(h, &h->online, HOST_CPUS "/online")) {
        h->allowed = cpumask_common(&h->allowed, &h->online);
    }
    h->conf.threads = workers > 0 ? workers : h->conf.threads;
}

/* "0::/system.slice/memcached-qos.service": the last word, where it is a service. */
static void
read_unit(struct host *h)
{
    static const char service[] = ".service";
    char line[HOST_LINE];
    snprintf(h->unit, sizeof h->unit, "%s", PACKAGE_NAME);
    if (h->conf.process == 0 ||
        !host_line(h, line, host_at("/proc/%s/cgroup", h->process))) {
        return;
    }
    const char *name = strrchr(line, '/');
    size_t len = name != NULL ? strlen(++name) : 0;
    if (len > strlen(service) && len < sizeof h->unit &&
        strcmp(name + len - strlen(service), service) == 0) {
        snprintf(h->unit, sizeof h->unit, "%.*s", (int)(len - strlen(service)), name);
    }
}

static bool
is_there(const struct host *h, const char *pattern)
{
    glob_t found;
    unsigned count = host_glob(h, pattern, &found);
    globfree(&found);
    return count > 0;
}

void
host_init(struct host *h, const struct doctor_conf *conf)
{
    glob_t nodes;
    *h = (struct host){.conf = *conf, .workers = conf->workers};
    if (conf->process == 0) {
        snprintf(h->process, sizeof h->process, "self");
    } else {
        snprintf(h->process, sizeof h->process, "%u", conf->process);
    }
    h->has_proc = is_there(h, "/proc/self");
    h->has_sys = is_there(h, "/sys/devices/system");
    read_threads(h);
    read_unit(h);
    h->nodes = host_glob(h, "/sys/devices/system/node/node[0-9]*", &nodes);
    globfree(&nodes);
}
