/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/resctrl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* ---- the options ----------------------------------------------------------------------- */

const char *
resctrl_check_group(const char *group)
{
    static const char wrong[] =
        "resctrl must be the name of a group below the root of resctrl";
    size_t len;
    if (strlen(group) > RESCTRL_TEXT_MAX) {
        return wrong;
    }
    for (const char *p = group;; p += len + 1) {
        len = strcspn(p, "/");
        if (len == 0 || (len == 1 && p[0] == '.') ||
            (len == 2 && p[0] == '.' && p[1] == '.')) {
            return wrong;
        }
        if (p[len] == '\0') {
            return NULL;
        }
    }
}

/* "L3:" or "MB:", a resource's name, begins a line. */
static bool
begins_line(const char *part)
{
    size_t len = strspn(part, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return len > 0 && part[len] == ':';
}

/* The length of the first line of s: resources are told apart by their names, since domains
 * of one are separated by semicolons too. */
static size_t
line_length(const char *s)
{
    size_t len = strcspn(s, ";");
    while (s[len] == ';' && !begins_line(s + len + 1)) {
        len += 1 + strcspn(s + len + 1, ";");
    }
    return len;
}

const char *
resctrl_check_schemata(const char *schemata)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef0123456789_:=;";
    return begins_line(schemata) && strspn(schemata, good) == strlen(schemata) &&
                   strchr(schemata, '=') != NULL && strlen(schemata) < RESCTRL_TEXT_MAX
               ? NULL
               : "resctrl-schemata must be like L3:0=ff0;1=ff;MB:0=70";
}

/* ---- joining --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void
complain(struct resctrl *r, const char *fmt, ...)
{
    va_list args;
    if (r->errors++ == 0) {
        va_start(args, fmt);
        vsnprintf(r->why, sizeof r->why, fmt, args);
        va_end(args);
    }
}

/* A file of the group. */
static void
path_of(const struct resctrl *r, const char *name, char path[2 * RESCTRL_PATH_MAX])
{
    snprintf(path, 2 * RESCTRL_PATH_MAX, "%s/%s", r->dir, name);
}

/* O_CREAT and O_APPEND are for directories that only look like resctrl. */
static int
open_file(struct resctrl *r, const char *name, int flags)
{
    char path[2 * RESCTRL_PATH_MAX];
    path_of(r, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    if (fd < 0) {
        complain(r, "%s: %s", path, strerror(errno));
    }
    return fd;
}

/* What the kernel itself says of a write that it has refused. */
static void
complain_of_schemata(struct resctrl *r, const char *line, size_t len, int error)
{
    char path[2 * RESCTRL_PATH_MAX], reason[RESCTRL_TEXT_MAX];
    snprintf(path, sizeof path, "%s/info/last_cmd_status", r->conf.root);
    bool has_reason = file_read_line(path, reason, sizeof reason) && reason[0] != '\0';
    complain(r, "schemata %.*s: %s%s%s", (int)len, line, strerror(error),
             has_reason ? ": " : "", reason);
}

static void
write_schemata(struct resctrl *r)
{
    int fd = open_file(r, "schemata", O_TRUNC);
    if (fd < 0) {
        return;
    }
    for (const char *line = r->conf.schemata;;) {
        size_t len = line_length(line);
        char text[RESCTRL_TEXT_MAX + 2];
        int n = snprintf(text, sizeof text, "%.*s\n", (int)len, line);
        if (write(fd, text, (size_t)n) != n) {
            complain_of_schemata(r, line, len, errno);
        }
        if (line[len] == '\0') {
            break;
        }
        line += len + 1;
    }
    close(fd);
}

void
resctrl_open(struct resctrl *r, const struct resctrl_conf *conf)
{
    struct stat st;
    *r = (struct resctrl){.conf = *conf, .tasks_fd = -1};
    if (conf->group == NULL) {
        return;
    }
    int n = snprintf(r->dir, sizeof r->dir, "%s/%s", conf->root, conf->group);
    if (n < 0 || (size_t)n >= sizeof r->dir) {
        r->dir[0] = '\0';
        complain(r, "the path is too long");
        return;
    }
    if (conf->schemata != NULL && mkdir(r->dir, 0755) != 0 && errno != EEXIST) {
        complain(r, "cannot make %s: %s", r->dir, strerror(errno));
        return;
    }
    if (stat(r->dir, &st) != 0) {
        complain(r, "%s: %s; is resctrl mounted, and does the group exist?", r->dir,
                 strerror(errno));
        return;
    }
    if (conf->schemata != NULL) {
        write_schemata(r);
    }
    r->tasks_fd = open_file(r, "tasks", O_APPEND);
}

void
resctrl_join(struct resctrl *r, pid_t tid)
{
    char text[16];
    if (r->tasks_fd < 0) {
        return;
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)tid);
    if (write(r->tasks_fd, text, (size_t)n) == n) {
        r->joined++;
    } else {
        complain(r, "%s/tasks: %s", r->dir, strerror(errno));
    }
}

void
resctrl_close(struct resctrl *r)
{
    if (r->tasks_fd >= 0) {
        close(r->tasks_fd);
        r->tasks_fd = -1;
    }
}

/* ---- reading --------------------------------------------------------------------------- */

void
resctrl_schemata(const struct resctrl *r, char *text, size_t len)
{
    char path[2 * RESCTRL_PATH_MAX], line[RESCTRL_TEXT_MAX];
    size_t used = 0;
    text[0] = '\0';
    path_of(r, "schemata", path);
    FILE *file = r->dir[0] != '\0' ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *p = line + strspn(line, " ");
        int n = snprintf(text + used, len - used, "%s%.*s", used > 0 ? ";" : "",
                         (int)strcspn(p, "\n"), p);
        if (n < 0 || (size_t)n >= len - used) {
            break;
        }
        used += (size_t)n;
    }
    if (file != NULL) {
        fclose(file);
    }
}

static int
is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void
measure_domain(const char *dir, const char *domain, resctrl_visit *visit, void *ctx)
{
    struct dirent **events;
    int count = scandir(dir, &events, is_shown, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4 * RESCTRL_PATH_MAX], value[64];
        snprintf(path, sizeof path, "%s/%s", dir, events[i]->d_name);
        if (file_read_line(path, value, sizeof value)) {
            value[strcspn(value, "\r")] = '\0'; /* it would end the statistic */
            visit(ctx, domain, events[i]->d_name, value);
        }
        free(events[i]);
    }
    if (count >= 0) {
        free(events);
    }
}

void
resctrl_measure(const struct resctrl *r, resctrl_visit *visit, void *ctx)
{
    char dir[2 * RESCTRL_PATH_MAX];
    struct dirent **domains;
    path_of(r, "mon_data", dir);
    int count = r->dir[0] != '\0' ? scandir(dir, &domains, is_shown, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        char path[3 * RESCTRL_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", dir, domains[i]->d_name);
        measure_domain(path, domains[i]->d_name, visit, ctx);
        free(domains[i]);
    }
    if (count >= 0) {
        free(domains);
    }
}
