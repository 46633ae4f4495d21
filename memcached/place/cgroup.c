/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/cgroup.h"

#include <sys/stat.h>

#include "base/num.h"

#define TEXT_LEN 256
#define MILLI 1000
#define V1_NO_LIMIT (UINT64_C(1) << 62) /* and above: all pages that a long can count */

/* A directory of a hierarchy: where it is mounted, and the process's group beneath. */
struct group {
    bool is_v2;
    size_t top_len; /* of dir: the mount point, above which nothing belongs to it */
    char dir[CGROUP_PATH_MAX];
};

/* ---- finding the group ---------------------------------------------------------------- */

/* Is `word` one of a comma-separated list? */
static bool
has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = list; *p != '\0'; p += strcspn(p, ",")) {
        p += *p == ',';
        if (strcspn(p, ",\n") == len && strncmp(p, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static FILE *
open_below(const char *root, const char *path)
{
    char full[CGROUP_PATH_MAX];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    return n < 0 || (size_t)n >= sizeof full ? NULL : fopen(full, "re");
}

/* The process's path in the hierarchy with this controller, or else in version 2. */
static bool
find_path(const char *root, const char *controller, char path[CGROUP_PATH_MAX],
          bool *is_v2)
{
    FILE *file = open_below(root, "/proc/self/cgroup");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (file != NULL && !(is_found && !*is_v2) && getline(&line, &room, file) > 0) {
        char *controllers = strchr(line, ':');
        char *at = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (at == NULL) {
            continue;
        }
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        bool is_unified = controllers[1] == '\0';
        if (is_unified || has_word(controllers + 1, controller)) {
            *is_v2 = is_unified;
            is_found = true;
            snprintf(path, CGROUP_PATH_MAX, "%s", at);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

/* One line of mountinfo: "id parent dev root point options ... - type source options". */
static bool
is_mount_of(char *line, const char *controller, bool is_v2, char **inner, char **point)
{
    char *save = NULL;
    char *rest = strstr(line, " - ");
    if (rest == NULL) {
        return false;
    }
    *rest = '\0';
    char *type = strtok_r(rest + 3, " \n", &save);
    char *source = strtok_r(NULL, " \n", &save);
    char *options = strtok_r(NULL, " \n", &save);
    if (type == NULL || source == NULL || options == NULL ||
        strcmp(type, is_v2 ? "cgroup2" : "cgroup") != 0 ||
        (!is_v2 && !has_word(options, controller))) {
        return false;
    }
    char *word = strtok_r(line, " ", &save);
    for (unsigned i = 0; i < 3 && word != NULL; i++) {
        word = strtok_r(NULL, " ", &save);
    }
    *inner = word;
    *point = strtok_r(NULL, " ", &save);
    return *inner != NULL && *point != NULL;
}

/* A container may see a part of the hierarchy only: then the mount's root is the beginning of
 * the path, or the path makes no sense here and the mount point is all there is to look at. */
static bool
join_paths(struct group *g, const char *root, const char *point, const char *inner,
           const char *path)
{
    struct stat st;
    size_t inner_len = strcmp(inner, "/") == 0 ? 0 : strlen(inner);
    if (strncmp(path, inner, inner_len) == 0 &&
        (path[inner_len] == '/' || path[inner_len] == '\0')) {
        path += inner_len;
    }
    int top = snprintf(g->dir, sizeof g->dir, "%s%s", root, point);
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

static bool
find_group(const char *root, const char *controller, struct group *g)
{
    char path[CGROUP_PATH_MAX];
    if (!find_path(root, controller, path, &g->is_v2)) {
        return false;
    }
    FILE *file = open_below(root, "/proc/self/mountinfo");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (file != NULL && !is_found && getline(&line, &room, file) > 0) {
        char *inner, *point;
        is_found = is_mount_of(line, controller, g->is_v2, &inner, &point) &&
                   join_paths(g, root, point, inner, path);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

/* False: this was the mount point. */
static bool
go_up(struct group *g)
{
    char *slash = strrchr(g->dir + g->top_len, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* ---- what it says --------------------------------------------------------------------- */

static bool
read_text(const struct group *g, const char *name, char text[TEXT_LEN])
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", g->dir, name);
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fgets(text, TEXT_LEN, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    if (is_read) {
        text[strcspn(text, "\n")] = '\0';
    }
    return is_read;
}

/* 0: no quota, which both versions say with a word that is no number ("max", "-1"). */
static unsigned
milli_of(const char *quota, size_t quota_len, const char *period)
{
    uint64_t quota_us, period_us;
    if (!num_u64(quota, quota_len, &quota_us) ||
        !num_u64(period, strlen(period), &period_us) || quota_us == 0 || period_us == 0 ||
        quota_us > UINT64_MAX / (2 * MILLI)) {
        return 0;
    }
    uint64_t milli = (quota_us * MILLI + period_us - 1) / period_us;
    return milli > UINT32_MAX ? 0 : (unsigned)milli;
}

static unsigned
quota_here(const struct group *g)
{
    char quota[TEXT_LEN], period[TEXT_LEN];
    if (!g->is_v2) {
        return read_text(g, "cpu.cfs_quota_us", quota) &&
                       read_text(g, "cpu.cfs_period_us", period)
                   ? milli_of(quota, strlen(quota), period)
                   : 0;
    }
    if (!read_text(g, "cpu.max", quota)) {
        return 0;
    }
    size_t len = strcspn(quota, " ");
    return quota[len] == ' ' ? milli_of(quota, len, quota + len + 1) : 0;
}

unsigned
cgroup_quota_milli(const char *root)
{
    struct group g;
    unsigned least = 0;
    if (!find_group(root, "cpu", &g)) {
        return 0;
    }
    do {
        unsigned here = quota_here(&g);
        least = here != 0 && (least == 0 || here < least) ? here : least;
    } while (go_up(&g));
    return least;
}

/* 0: no limit, which version 1 says with the largest number of whole pages. */
static uint64_t
memory_here(const struct group *g)
{
    char text[TEXT_LEN];
    uint64_t bytes;
    if (!read_text(g, g->is_v2 ? "memory.max" : "memory.limit_in_bytes", text) ||
        !num_u64(text, strlen(text), &bytes) || bytes >= V1_NO_LIMIT) {
        return 0;
    }
    return bytes;
}

uint64_t
cgroup_memory_bytes(const char *root)
{
    struct group g;
    uint64_t least = 0;
    if (!find_group(root, "memory", &g)) {
        return 0;
    }
    do {
        uint64_t here = memory_here(&g);
        least = here != 0 && (least == 0 || here < least) ? here : least;
    } while (go_up(&g));
    return least;
}

bool
cgroup_is_grouped(const char *root)
{
    struct group g;
    char text[TEXT_LEN];
    if (!find_group(root, "cpu", &g)) {
        return false;
    }
    if (!g.is_v2) {
        return g.dir[g.top_len] != '\0';
    }
    /* Version 2 makes groups for CPU time only where the controller is on. */
    while (g.dir[g.top_len] != '\0') {
        if (read_text(&g, "cpu.weight", text)) {
            return true;
        }
        (void)!go_up(&g);
    }
    return false;
}

bool
cgroup_lacks_rt_budget(const char *root, char *file, size_t file_len)
{
    struct group g;
    char text[TEXT_LEN];
    if (!find_group(root, "cpu", &g) || g.is_v2 ||
        !read_text(&g, "cpu.rt_runtime_us", text) || strcmp(text, "0") != 0) {
        return false;
    }
    snprintf(file, file_len, "%s/cpu.rt_runtime_us", g.dir);
    return true;
}
