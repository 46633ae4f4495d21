/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/cgroup.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/num.h"
#include "base/part.h"

#define TEXT_LEN 256
#define MILLI 1000
#define V1_NO_LIMIT (UINT64_C(1) << 62) /* and above: all pages that a long can count */

/* A directory of a hierarchy: where it is mounted, and the process's group beneath. */
struct group {
    const char *root, *controller;
    bool is_v2;
    char path[CGROUP_PATH_MAX]; /* of the process in the hierarchy */
    size_t top_len; /* of dir: the mount point, above which nothing belongs to it */
    char dir[CGROUP_PATH_MAX];
};

/* ---- finding the group ---------------------------------------------------------------- */

/* Calls `take` with the lines of a file until it returns true. */
static bool
find_line(struct group *g, const char *path, bool (*take)(struct group *, char *line))
{
    char full[CGROUP_PATH_MAX];
    int n = snprintf(full, sizeof full, "%s%s", g->root, path);
    FILE *file = n < 0 || (size_t)n >= sizeof full ? NULL : fopen(full, "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (file != NULL && !is_found && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        is_found = take(g, line);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

/* A line of /proc/self/cgroup, "number:controllers:path"; version 2 has no controllers, and is
 * used where no hierarchy of version 1 has this one. */
static bool
take_path(struct group *g, char *line)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return false;
    }
    *path++ = '\0';
    controllers++;
    bool is_v1 = part_has(controllers, ',', g->controller);
    if (is_v1 || *controllers == '\0') {
        g->is_v2 = !is_v1;
        snprintf(g->path, sizeof g->path, "%s", path);
    }
    return is_v1;
}

/* A container may see a part of the hierarchy only: then the mount's root is the beginning of
 * the path, or the path makes no sense here and the mount point is all there is to look at. */
static bool
join_paths(struct group *g, const char *point, const char *inner)
{
    struct stat st;
    const char *path = g->path;
    size_t inner_len = strcmp(inner, "/") == 0 ? 0 : strlen(inner);
    if (strncmp(path, inner, inner_len) == 0 &&
        (path[inner_len] == '/' || path[inner_len] == '\0')) {
        path += inner_len;
    }
    int top = snprintf(g->dir, sizeof g->dir, "%s%s", g->root, point);
    if (top < 0 || (size_t)top >= sizeof g->dir) {
        return false;
    }
    g->top_len = (size_t)top;
    if (*path == '\0' || strcmp(path, "/") == 0 || strstr(path, "/..") != NULL) {
        return true;
    }
    int n = snprintf(g->dir + top, sizeof g->dir - (size_t)top, "%s", path);
    if ((size_t)top + (size_t)n >= sizeof g->dir || stat(g->dir, &st) != 0) {
        g->dir[top] = '\0';
    }
    return true;
}

/* A line of mountinfo: "id parent dev root point options ... - type source options". */
static bool
take_mount(struct group *g, char *line)
{
    char inner[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX], type[16], options[TEXT_LEN];
    const char *rest = strstr(line, " - ");
    return rest != NULL && sscanf(line, "%*s %*s %*s %4095s %4095s", inner, point) == 2 &&
           sscanf(rest, " - %15s %*s %255s", type, options) == 2 &&
           strcmp(type, g->is_v2 ? "cgroup2" : "cgroup") == 0 &&
           (g->is_v2 || part_has(options, ',', g->controller)) &&
           join_paths(g, point, inner);
}

/* Of a process; it is looked for where this one sees the hierarchies mounted. */
static bool
find_group(const char *root, const char *process, const char *controller, struct group *g)
{
    char path[64];
    *g = (struct group){.root = root, .controller = controller};
    snprintf(path, sizeof path, "/proc/%s/cgroup", process);
    (void)find_line(g, path, take_path);
    return g->path[0] != '\0' && find_line(g, "/proc/self/mountinfo", take_mount);
}

/* False: this was the mount point. */
static bool
go_up(struct group *g)
{
    char *slash = strrchr(g->dir + g->top_len, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    return slash != NULL;
}

/* ---- what it says --------------------------------------------------------------------- */

static bool
read_text(const struct group *g, const char *name, char text[TEXT_LEN])
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", g->dir, name);
    return file_read_line(path, text, TEXT_LEN);
}

/* No quota is a word that is no number ("max", "-1"). */
static uint64_t
quota_here(const struct group *g)
{
    char quota[TEXT_LEN], other[TEXT_LEN];
    uint64_t quota_us, period_us;
    if (!read_text(g, g->is_v2 ? "cpu.max" : "cpu.cfs_quota_us", quota) ||
        (!g->is_v2 && !read_text(g, "cpu.cfs_period_us", other))) {
        return 0;
    }
    size_t len = strcspn(quota, " "); /* behind it version 2 has the period */
    const char *period = g->is_v2 ? quota + len + (quota[len] == ' ') : other;
    if (!num_u64(quota, len, &quota_us) || !num_u64(period, strlen(period), &period_us) ||
        period_us == 0 || quota_us > UINT64_MAX / (2 * MILLI)) {
        return 0;
    }
    uint64_t milli = (quota_us * MILLI + period_us - 1) / period_us;
    return milli > UINT32_MAX ? 0 : milli;
}

/* Version 1 says with the largest number of whole pages that there is no limit. */
static uint64_t
memory_here(const struct group *g)
{
    char text[TEXT_LEN];
    uint64_t bytes;
    bool is_told =
        read_text(g, g->is_v2 ? "memory.max" : "memory.limit_in_bytes", text) &&
        num_u64(text, strlen(text), &bytes) && bytes < V1_NO_LIMIT;
    return is_told ? bytes : 0;
}

/* The least of what this group and those above say; 0: nothing. */
static uint64_t
tightest(const char *root, const char *process, const char *controller,
         uint64_t (*here)(const struct group *), struct cgroup_setter *setter)
{
    struct group g;
    uint64_t least = 0;
    struct cgroup_setter ignored = {.name = ""};
    setter = setter != NULL ? setter : &ignored;
    *setter = ignored;
    if (!find_group(root, process, controller, &g)) {
        return 0;
    }
    do {
        uint64_t limit = here(&g);
        if (limit != 0 && (least == 0 || limit < least)) {
            const char *slash = strrchr(g.dir + g.top_len, '/');
            least = limit;
            snprintf(setter->name, sizeof setter->name, "%s",
                     slash != NULL ? slash + 1 : "/");
        }
    } while (go_up(&g));
    return least;
}

unsigned
cgroup_quota_milli(const char *root, const char *process, struct cgroup_setter *setter)
{
    return (unsigned)tightest(root, process, "cpu", quota_here, setter);
}

uint64_t
cgroup_memory_bytes(const char *root, const char *process, struct cgroup_setter *setter)
{
    return tightest(root, process, "memory", memory_here, setter);
}

/* Version 2 makes groups for CPU time only where the controller is on. */
bool
cgroup_is_grouped(const char *root, const char *process)
{
    struct group g;
    char text[TEXT_LEN];
    if (!find_group(root, process, "cpu", &g)) {
        return false;
    }
    bool is_grouped = false;
    do {
        /* The root group has no weight; in a container the top is another one. */
        is_grouped =
            g.is_v2 ? read_text(&g, "cpu.weight", text) : g.dir[g.top_len] != '\0';
    } while (!is_grouped && go_up(&g));
    return is_grouped;
}

bool
cgroup_lacks_rt_budget(const char *root, const char *process, char *file, size_t file_len)
{
    struct group g;
    char text[TEXT_LEN];
    if (!find_group(root, process, "cpu", &g) || g.is_v2 ||
        !read_text(&g, "cpu.rt_runtime_us", text) || strcmp(text, "0") != 0) {
        return false;
    }
    snprintf(file, file_len, "%s/cpu.rt_runtime_us", g.dir);
    return true;
}
