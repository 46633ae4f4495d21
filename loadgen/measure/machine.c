/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/machine.h"

#include <dirent.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"

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
machine_add(struct machine *e, const char *name, const char *value)
{
    size_t len = strcspn(value, "\n");
    len = len < MACHINE_VALUE_MAX ? len : MACHINE_VALUE_MAX - 1;
    if (len == 0 || e->count == MACHINE_FACTS_MAX) {
        return;
    }
    snprintf(e->facts[e->count].name, MACHINE_NAME_MAX, "%s", name);
    memcpy(e->facts[e->count].value, value, len);
    e->facts[e->count++].value[len] = '\0';
}

/* False when the kernel does not tell. */
static bool
read_line(const char *root, const char *path, char line[LINE_MAX_LEN])
{
    char whole[PATH_LEN_MAX];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return file_read_line(whole, line, LINE_MAX_LEN);
}

static DIR *
open_folder(const char *root, const char *path)
{
    char whole[PATH_LEN_MAX];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return opendir(whole);
}

/* The first processor's: "model name : ..."; whether it knows of a hypervisor. */
static void
add_cpu(struct machine *e, const char *root)
{
    char line[LINE_MAX_LEN];
    snprintf(line, sizeof line, "%s/proc/cpuinfo", root);
    FILE *f = fopen(line, "re");
    bool has_model = false, has_flags = false;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL) {
            continue;
        }
        if (!has_model && strncmp(line, "model name", 10) == 0) {
            machine_add(e, "cpu_model", colon + 1 + strspn(colon + 1, " "));
            has_model = true;
        } else if (!has_flags && strncmp(line, "flags", 5) == 0) {
            machine_add(e, "virtual", strstr(line, " hypervisor") != NULL ? "yes" : "no");
            has_flags = true;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

/* What is mitigated costs system calls; what is vulnerable does not. */
static void
add_mitigations(struct machine *e, const char *root)
{
    static const char folder[] = "/sys/devices/system/cpu/vulnerabilities";
    static const char *const states[] = {"Mitigation", "Vulnerable", "Not affected"};
    char path[PATH_LEN_MAX], line[LINE_MAX_LEN], text[MACHINE_VALUE_MAX];
    unsigned counts[3] = {0};
    DIR *dir = open_folder(root, folder);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%.200s", folder, d->d_name);
        bool has_line = d->d_name[0] != '.' && read_line(root, path, line);
        for (unsigned i = 0; has_line && i < 3; i++) {
            counts[i] += strncmp(line, states[i], strlen(states[i])) == 0 ? 1 : 0;
        }
    }
    if (dir != NULL) {
        closedir(dir);
        snprintf(text, sizeof text, "%u mitigated, %u vulnerable, %u not affected",
                 counts[0], counts[1], counts[2]);
        machine_add(e, "mitigations", text);
    }
}

/* "lo eth0/10000": name and Mb/s of those that have a speed. */
static void
add_interfaces(struct machine *e, const char *root)
{
    char path[PATH_LEN_MAX], line[LINE_MAX_LEN], text[MACHINE_VALUE_MAX] = "";
    DIR *dir = open_folder(root, "/sys/class/net");
    size_t len = 0;
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.' || len + 64 > sizeof text) {
            continue;
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.32s",
                                len > 0 ? " " : "", d->d_name);
        snprintf(path, sizeof path, "/sys/class/net/%.64s/speed", d->d_name);
        long speed = read_line(root, path, line) ? strtol(line, NULL, 10) : 0;
        if (speed > 0) {
            len += (size_t)snprintf(text + len, sizeof text - len, "/%ld", speed);
        }
    }
    if (dir != NULL) {
        closedir(dir);
        machine_add(e, "interfaces", text);
    }
}

static void
add_number(struct machine *e, const char *name, long value)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    machine_add(e, name, value >= 0 ? text : "");
}

static void
add_process(struct machine *e)
{
    struct utsname u;
    cpu_set_t set;
    if (uname(&u) == 0) {
        char text[MACHINE_VALUE_MAX];
        snprintf(text, sizeof text, "%.80s %.80s %.40s", u.sysname, u.release, u.machine);
        machine_add(e, "kernel", text);
    }
    add_number(e, "cpus_online", sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        add_number(e, "cpus_allowed", CPU_COUNT(&set));
    }
    add_number(e, "timer_slack_ns", prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    machine_add(e, "libc", gnu_get_libc_version());
    machine_add(e, "compiler", __VERSION__);
}

void
machine_collect(struct machine *e, const char *root)
{
    static const struct {
        const char *name, *version;
    } libraries[] = {BUILT_WITH};
    char line[LINE_MAX_LEN];
    e->count = 0;
    add_process(e);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        machine_add(e, libraries[i].name, libraries[i].version);
    }
    add_cpu(e, root);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (read_line(root, files[i].path, line)) {
            machine_add(e, files[i].name, line);
        }
    }
    add_mitigations(e, root);
    add_interfaces(e, root);
}
