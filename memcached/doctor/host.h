/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the kernel tells of this host and of one process, read from /proc and /sys below a root
 * directory. Where a function returns false, errno says why.
 */
#pragma once

#include <glob.h>

#include "doctor/doctor.h"

/* The longest line that counts: a list of every other CPU. */
#define HOST_LINE (CPUMASK_CPUS / 2 * 5)
#define HOST_CPUS "/sys/devices/system/cpu"

struct host {
    struct doctor_conf conf;
    char process[16];       /* of the server: its folder in /proc */
    struct cpumask online;  /* empty: it cannot be read */
    struct cpumask allowed; /* the CPUs that one of its threads or another may use */
    struct cpumask workers; /* those that a worker is bound to; empty: none is */
    unsigned nodes;         /* of memory */
    bool has_proc, has_sys; /* mounted */
    char unit[DOCTOR_VALUE_LEN];
};

void host_init(struct host *h, const struct doctor_conf *conf);

/* A path with numbers and names in it; until the next call. */
__attribute__((format(printf, 1, 2))) const char *host_at(const char *format, ...);

/* The first line of a file. */
must_check bool host_line(const struct host *h, char line[HOST_LINE], const char *path);
/* The number that a file begins with. */
must_check bool host_number(const struct host *h, uint64_t *number, const char *path);
/* CPUs as a list, "0-3,8". */
must_check bool host_cpus(const struct host *h, struct cpumask *cpus, const char *path);
/* A file's first line; of "always [madvise] never" what is chosen. */
must_check bool host_choice(const struct host *h, char word[HOST_LINE], const char *path);
/* The line of a file that begins with `start`. */
must_check bool host_find(const struct host *h, char line[HOST_LINE], const char *path,
                          const char *start);
/* The same of a number behind `start` and blanks. */
must_check bool host_field(const struct host *h, uint64_t *number, const char *path,
                           const char *start);
/* A limit of the server's process, such as "Max open files"; UINT64_MAX: there is none. Of one that is to
 * run that to which it may raise its own. */
must_check bool host_limit(const struct host *h, uint64_t *limit, const char *start);
/* A whole file, to be freed. NULL: it could not be read. */
must_check char *host_text(const struct host *h, const char *path);

/* The paths that fit, without the root; the caller ends it with globfree. Their number. */
unsigned host_glob(const struct host *h, const char *pattern, glob_t *found);
static inline const char *
host_found(const struct host *h, const glob_t *found, unsigned i)
{
    return found->gl_pathv[i] + strlen(h->conf.root);
}
