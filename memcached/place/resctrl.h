/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Cache and memory bandwidth by the kernel's resctrl: the workers join a group that
 * exists, or that is made here when its limits are given. Never a reason not to start.
 * The machine need not have it: `root` may be any directory of the same form.
 *
 * Main opens, joins and closes; any thread reads.
 */
#pragma once

#include <sys/types.h>

#include "base/must.h"

#define RESCTRL_ROOT "/sys/fs/resctrl"
#define RESCTRL_PATH_MAX 512
#define RESCTRL_TEXT_MAX 256

struct resctrl_conf {
    const char *root;
    const char *group;    /* below root; NULL: off */
    const char *schemata; /* "L3:0=ff0;1=ff;MB:0=70": made if need be; NULL: as it is */
};

struct resctrl {
    struct resctrl_conf conf;
    char dir[RESCTRL_PATH_MAX]; /* empty: off */
    int tasks_fd;               /* -1: closed */
    unsigned joined, errors;
    char why[RESCTRL_PATH_MAX + RESCTRL_TEXT_MAX]; /* of the first error */
};

/* NULL, or what is wrong. */
must_check const char *resctrl_check_group(const char *group);
must_check const char *resctrl_check_schemata(const char *schemata);

/* While the process may write there; what fails is in errors and why. */
void resctrl_open(struct resctrl *r, const struct resctrl_conf *conf);
/* A thread of this process joins. After resctrl_open, also with fewer rights. */
void resctrl_join(struct resctrl *r, pid_t tid);
/* No more threads will join. */
void resctrl_close(struct resctrl *r);

/* The group's limits on one line, like resctrl_conf.schemata; empty when they cannot be read. */
void resctrl_schemata(const struct resctrl *r, char *text, size_t len);
/* What the kernel measures, in alphabetical order: visit(ctx, "mon_L3_00", "llc_occupancy",
 * "123456"). */
typedef void resctrl_visit(void *ctx, const char *domain, const char *event,
                           const char *value);
void resctrl_measure(const struct resctrl *r, resctrl_visit *visit, void *ctx);
