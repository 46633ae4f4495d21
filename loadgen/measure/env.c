/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/env.h"

#include <dirent.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PATH_LEN_MAX 512
#define LINE_MAX_LEN 4096

/* Files of one line each. */
static const struct {
    const char *name, *path;
} files[] = {
    {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
    {"frequency_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
    {"boost", "/sys/devices/system/cpu/cpufreq/boost"},
    {"no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"},
    {"idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver"},
    {"idle_governor", "/sys/devices/system/cpu/cpuidle/current_governor"},
    {"smt", "/sys/devices/system/cpu/smt/control"},
    {"cpus_isolated", "/sys/devices/system/cpu/isolated"},
    {"numa_nodes", "/sys/devices/system/node/online"},
    {"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {"transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"},
    {"hypervisor_type", "/sys/hypervisor/type"},
    {"product", "/sys/class/dmi/id/product_name"},
    {"vendor", "/sys/class/dmi/id/sys_vendor"},
    {"cgroup_cpu_max", "/sys/fs/cgroup/cpu.max"},
    {"cgroup_cpu_quota", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"},
    {"cgroup_cpu_period", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"},
    {"sched_features", "/sys/kernel/debug/sched/features"},
    {"sched_autogroup", "/proc/sys/kernel/sched_autogroup_enabled"},
    {"preempt", "/sys/kernel/debug/sched/preempt"},
    {"busy_poll", "/proc/sys/net/core/busy_poll"},
    {"somaxconn", "/proc/sys/net/core/somaxconn"},
    {"tcp_congestion", "/proc/sys/net/ipv4/tcp_congestion_control"},
    {"load_average", "/proc/loadavg"},
};

void
env_add(struct env *e, const char *name, const char *value)
{
    size_t len = strcspn(value, "\n");
    len = len < ENV_VALUE_MAX ? len : ENV_VALUE_MAX - 1;
    if (len == 0 || e->count == ENV_FACTS_MAX) {
        return;
    }
    snprintf(e->facts[e->count].name, ENV_NAME_MAX, "%s", name);
    memcpy(e->facts[e->count].value, value, len);
    e->facts[e->count++].value[len] = '\0';
}

const char *
env_find(const struct env *e, const char *name)
{
    for (unsigned i = 0; i < e->count; i++) {
        if (strcmp(e->facts[i].name, name) == 0) {
            return e->facts[i].value;
        }
    }
    return NULL;
}

static FILE *
open_below(const char *root, const char *path)
{
    char whole[PATH_LEN_MAX];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return fopen(whole, "re");
}

static void
add_file(struct env *e, const char *root, const char *name, const char *path)
{
    char line[LINE_MAX_LEN];
    FILE *f = open_below(root, path);
    if (f != NULL) {
        if (fgets(line, sizeof line, f) != NULL) {
            env_add(e, name, line);
        }
        fclose(f);
    }
}

/* The first processor's: "model name : ..."; whether it knows of a hypervisor. */
static void
add_cpu(struct env *e, const char *root)
{
    char line[LINE_MAX_LEN];
    FILE *f = open_below(root, "/proc/cpuinfo");
    bool has_model = false, has_flags = false;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL) {
            continue;
        }
        if (!has_model && strncmp(line, "model name", 10) == 0) {
            env_add(e, "cpu_model", colon + 1 + strspn(colon + 1, " "));
            has_model = true;
        } else if (!has_flags && strncmp(line, "flags", 5) == 0) {
            env_add(e, "virtual", strstr(line, " hypervisor") != NULL ? "yes" : "no");
            has_flags = true;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

/* What is mitigated costs system calls; what is vulnerable does not. */
static void
add_mitigations(struct env *e, const char *root)
{
    static const char folder[] = "/sys/devices/system/cpu/vulnerabilities";
    char path[PATH_LEN_MAX], line[LINE_MAX_LEN], text[ENV_VALUE_MAX];
    unsigned mitigated = 0, vulnerable = 0, unaffected = 0;
    snprintf(path, sizeof path, "%s%s", root, folder);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%.200s", folder, d->d_name);
        FILE *f = d->d_name[0] != '.' ? open_below(root, path) : NULL;
        if (f != NULL && fgets(line, sizeof line, f) != NULL) {
            mitigated += strncmp(line, "Mitigation", 10) == 0 ? 1 : 0;
            vulnerable += strncmp(line, "Vulnerable", 10) == 0 ? 1 : 0;
            unaffected += strncmp(line, "Not affected", 12) == 0 ? 1 : 0;
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    if (dir != NULL) {
        closedir(dir);
        snprintf(text, sizeof text, "%u mitigated, %u vulnerable, %u not affected",
                 mitigated, vulnerable, unaffected);
        env_add(e, "mitigations", text);
    }
}

/* "lo eth0/10000": name and Mb/s of those that have a speed. */
static void
add_interfaces(struct env *e, const char *root)
{
    char path[PATH_LEN_MAX], line[LINE_MAX_LEN], text[ENV_VALUE_MAX] = "";
    snprintf(path, sizeof path, "%s/sys/class/net", root);
    DIR *dir = opendir(path);
    size_t len = 0;
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.' || len + 64 > sizeof text) {
            continue;
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.32s",
                                len > 0 ? " " : "", d->d_name);
        snprintf(path, sizeof path, "/sys/class/net/%.64s/speed", d->d_name);
        FILE *f = open_below(root, path);
        long speed =
            f != NULL && fgets(line, sizeof line, f) != NULL ? strtol(line, NULL, 10) : 0;
        if (speed > 0) {
            len += (size_t)snprintf(text + len, sizeof text - len, "/%ld", speed);
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    if (dir != NULL) {
        closedir(dir);
        env_add(e, "interfaces", text);
    }
}

static void
add_number(struct env *e, const char *name, long value)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    env_add(e, name, value >= 0 ? text : "");
}

static void
add_process(struct env *e)
{
    struct utsname u;
    cpu_set_t set;
    if (uname(&u) == 0) {
        char text[ENV_VALUE_MAX];
        snprintf(text, sizeof text, "%.80s %.80s %.40s", u.sysname, u.release, u.machine);
        env_add(e, "kernel", text);
    }
    add_number(e, "cpus_online", sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        add_number(e, "cpus_allowed", CPU_COUNT(&set));
    }
    add_number(e, "timer_slack_ns", prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    env_add(e, "libc", gnu_get_libc_version());
    env_add(e, "compiler", __VERSION__);
}

static void
add_libraries(struct env *e)
{
    static const struct {
        const char *name, *version;
    } libraries[] = {BUILT_WITH};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        env_add(e, libraries[i].name, libraries[i].version);
    }
}

void
env_collect(struct env *e, const char *root)
{
    e->count = 0;
    add_process(e);
    add_libraries(e);
    add_cpu(e, root);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        add_file(e, root, files[i].name, files[i].path);
    }
    add_mitigations(e, root);
    add_interfaces(e, root);
}
