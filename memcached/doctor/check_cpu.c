/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * CPUs: how many the server has, what else uses them, how long they take to wake up.
 */
#include <errno.h>

#include "base/num.h"
#include "doctor/rows.h"
#include "place/cgroup.h"
#include "place/cpustat.h"

#define MILLI 1000
#define PERCENT 100
#define BUSY_PCT 20 /* of a sibling: more is another program's work */
#define STEAL_WARN_MILLI 20
#define STEAL_NOTE_MILLI 5
#define WAKE_WARN_US 50 /* as much as a request takes */
#define WAKE_ANY_US UINT64_MAX

/* ---- how many there are --------------------------------------------------------------- */

static void
look_quota(const struct host *h, struct doctor_finding *f)
{
    unsigned threads = h->conf.threads, cpus = cpumask_count(&h->allowed);
    /* More workers than CPUs use no more time than the CPUs have. */
    unsigned used = cpus > 0 && cpus < threads ? cpus : threads;
    struct cgroup_setter setter;
    unsigned milli = cgroup_quota_milli(h->conf.root, h->process, &setter);
    finding_value(f, "%u", used * PERCENT);
    finding_unit(f, setter.name);
    if (milli == 0) {
        finding_set(f, DOCTOR_GOOD, "no quota of CPU time");
    } else {
        finding_set(f, milli < used * MILLI ? DOCTOR_BAD : DOCTOR_GOOD,
                    "a quota of %u.%02u CPUs for %u workers, of the control group %s",
                    milli / MILLI, milli % MILLI / 10, threads, setter.name);
    }
}

static void
look_cpuset(const struct host *h, struct doctor_finding *f)
{
    char list[DOCTOR_VALUE_LEN];
    unsigned count = cpumask_count(&h->allowed);
    if (count == 0) {
        errno = ENODATA;
        finding_unread(f, "the affinity in /proc", NULL);
        return;
    }
    cpumask_describe(&h->allowed, list, sizeof list);
    finding_value(f, "%u", count);
    finding_set(f, h->conf.threads > count ? DOCTOR_WARN : DOCTOR_GOOD,
                "%u workers may use %u CPUs: %s", h->conf.threads, count, list);
}

static void
look_pinning(const struct host *h, struct doctor_finding *f)
{
    finding_value(f, "start with --pin; --pin-dry-run shows the plan");
    if (cpumask_count(&h->workers) > 0) {
        finding_set(f, DOCTOR_GOOD, "workers are pinned");
    } else if (h->conf.is_pinned) {
        finding_value(f, "--pin-dry-run with the same options says why");
        finding_set(f, DOCTOR_WARN, "workers are not pinned, although --pin asks for it");
    } else if (h->conf.threads == 1 || cpumask_count(&h->allowed) == 1) {
        finding_set(f, DOCTOR_GOOD, "one worker, or one CPU");
    } else {
        finding_set(f, DOCTOR_NOTE, "%u workers are not pinned", h->conf.threads);
    }
}

/* ---- what else uses them -------------------------------------------------------------- */

/* Hardware threads of the workers' cores that no worker is on. */
static struct cpumask
siblings_of(const struct host *h)
{
    struct cpumask siblings = {0}, of_core;
    for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++) {
        if (!cpumask_has(&h->workers, cpu) ||
            !host_cpus(h, &of_core,
                       host_at(HOST_CPUS "/cpu%u/topology/thread_siblings_list", cpu))) {
            continue;
        }
        for (unsigned other = 0; other < CPUMASK_CPUS; other++) {
            if (cpumask_has(&of_core, other) && !cpumask_has(&h->workers, other)) {
                cpumask_add(&siblings, other);
            }
        }
    }
    return siblings;
}

/* Those of them that were busy between two texts of /proc/stat; the busiest one's share. */
static struct cpumask
busy_of(const struct cpumask *cpus, const char *before, const char *after, unsigned *most)
{
    struct cpumask busy = {0};
    *most = 0;
    for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++) {
        struct cpustat from, to;
        if (!cpumask_has(cpus, cpu) || !cpustat_parse(before, (int)cpu, &from) ||
            !cpustat_parse(after, (int)cpu, &to) || to.all <= from.all ||
            to.busy < from.busy) {
            continue; /* a CPU that was off line begins again */
        }
        uint64_t pct = (to.busy - from.busy) * PERCENT / (to.all - from.all);
        if (pct >= BUSY_PCT) {
            cpumask_add(&busy, cpu);
            *most = pct > *most ? (unsigned)pct : *most;
        }
    }
    return busy;
}

static void
look_siblings(const struct host *h, struct doctor_finding *f)
{
    struct cpumask siblings = siblings_of(h);
    unsigned most;
    if (cpumask_count(&h->workers) == 0) {
        finding_set(f, DOCTOR_GOOD, "no worker is pinned to a CPU");
        return;
    }
    if (cpumask_count(&siblings) == 0) {
        finding_set(f, DOCTOR_GOOD, "workers share no core with other CPUs");
        return;
    }
    char *before = host_text(h, CPUSTAT_PATH);
    h->conf.pause();
    char *after = host_text(h, CPUSTAT_PATH);
    if (before == NULL || after == NULL) {
        finding_unread(f, CPUSTAT_PATH, NULL);
    } else {
        struct cpumask busy = busy_of(&siblings, before, after, &most);
        bool is_busy = cpumask_count(&busy) > 0;
        cpumask_describe(is_busy ? &busy : &siblings, f->value, sizeof f->value);
        finding_set(f, is_busy ? DOCTOR_WARN : DOCTOR_GOOD,
                    is_busy ? "CPUs %s share cores with workers; up to %u %% busy"
                            : "CPUs %s share cores with workers, less than %d %% busy",
                    f->value, is_busy ? most : BUSY_PCT);
    }
    free(before);
    free(after);
}

static void
look_steal(const struct host *h, struct doctor_finding *f)
{
    struct cpustat t;
    char *text = host_text(h, CPUSTAT_PATH);
    if (text == NULL || !cpustat_parse(text, -1, &t) || t.all == 0) {
        finding_unread(f, CPUSTAT_PATH, NULL);
    } else {
        unsigned milli = (unsigned)(t.stolen * MILLI / t.all);
        finding_set(f,
                    milli >= STEAL_WARN_MILLI   ? DOCTOR_WARN
                    : milli >= STEAL_NOTE_MILLI ? DOCTOR_NOTE
                                                : DOCTOR_GOOD,
                    "%u.%u %% of the CPU time since the start was stolen", milli / 10,
                    milli % 10);
    }
    free(text);
}

/* ---- how fast they are ---------------------------------------------------------------- */

/* The longest that the CPU may take to wake up, as drivers and programs ask for. */
static uint64_t
wake_limit(const struct host *h, unsigned cpu)
{
    char text[HOST_LINE], path[HOST_LINE];
    uint64_t limit = WAKE_ANY_US, own;
    int32_t all = -1;
    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", h->conf.root);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        limit = fread(&all, sizeof all, 1, file) == 1 && all >= 0 ? (uint64_t)all : limit;
        fclose(file);
    }
    if (!host_line(h, text,
                   host_at(HOST_CPUS "/cpu%u/power/pm_qos_resume_latency_us", cpu))) {
        return limit;
    }
    if (strcmp(text, "n/a") == 0) {
        return 0;
    }
    bool is_limited = num_u64(text, strlen(text), &own) && own > 0;
    return is_limited && own < limit ? own : limit;
}

/* Makes *us the time that the CPU takes to leave its deepest idle state, if it is longer. */
static void
look_deeper(const struct host *h, unsigned cpu, uint64_t *us, char name[HOST_LINE])
{
    uint64_t latency, is_off, limit = wake_limit(h, cpu);
    for (unsigned i = 0; host_number(
             h, &latency, host_at(HOST_CPUS "/cpu%u/cpuidle/state%u/latency", cpu, i));
         i++) {
        if (!host_number(h, &is_off,
                         host_at(HOST_CPUS "/cpu%u/cpuidle/state%u/disable", cpu, i))) {
            is_off = 0;
        }
        if (is_off == 0 && latency <= limit && latency > *us &&
            host_line(h, name,
                      host_at(HOST_CPUS "/cpu%u/cpuidle/state%u/name", cpu, i))) {
            *us = latency;
        }
    }
}

static void
look_idle(const struct host *h, struct doctor_finding *f)
{
    char name[HOST_LINE] = "";
    uint64_t us = 0;
    for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++) {
        if (cpumask_has(&h->allowed, cpu)) {
            look_deeper(h, cpu, &us, name);
        }
    }
    if (us == 0) {
        finding_set(f, DOCTOR_GOOD, "no idle state that takes time to leave");
    } else {
        finding_set(f, us > WAKE_WARN_US ? DOCTOR_WARN : DOCTOR_GOOD,
                    "idle state %.32s: %llu us until the CPU works again", name,
                    (unsigned long long)us);
    }
}

static void
look_governor(const struct host *h, struct doctor_finding *f)
{
    struct cpumask slow = {0};
    char word[HOST_LINE], other[HOST_LINE] = "", list[DOCTOR_VALUE_LEN];
    unsigned scaled = 0;
    for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++) {
        if (cpumask_has(&h->allowed, cpu) &&
            host_line(h, word,
                      host_at(HOST_CPUS "/cpu%u/cpufreq/scaling_governor", cpu))) {
            scaled++;
            if (strcmp(word, "performance") != 0) {
                cpumask_add(&slow, cpu);
                memcpy(other, word, sizeof other);
            }
        }
    }
    if (cpumask_count(&slow) > 0) {
        cpumask_describe(&slow, list, sizeof list);
        finding_set(f, DOCTOR_WARN, "governor %.32s on CPUs %s", other, list);
    } else {
        finding_set(f, DOCTOR_GOOD, "%s",
                    scaled > 0 ? "governor performance"
                               : "the kernel does not scale frequencies");
    }
}

static void
look_turbo(const struct host *h, struct doctor_finding *f)
{
    uint64_t is_off, is_on;
    if (host_number(h, &is_off, HOST_CPUS "/intel_pstate/no_turbo")) {
        is_on = is_off == 0;
    } else if (!host_number(h, &is_on, HOST_CPUS "/cpufreq/boost")) {
        finding_unread(f, HOST_CPUS "/cpufreq/boost", "no switch for turbo frequencies");
        return;
    }
    finding_set(f, is_on ? DOCTOR_NOTE : DOCTOR_GOOD, "turbo frequencies are %s",
                is_on ? "on" : "off");
}

/* clang-format off */
static const struct doctor_check rows[] = {
    {.name = "cpu-quota", .look = look_quota, .path = "/proc/self/cgroup",
     .wanted = "{} % of a CPU, or fewer workers",
     .why = "Workers that have used up the quota stand still until its next period. "
            "Published: 16 threads under a quota of 4 CPUs had a p99 of 54 ms, on 4 CPUs "
            "21.9 ms (LKML 2021, Memcached with cfs quota). Reconciling, 4.3.3; kernel: "
            "scheduler/sched-bwc.",
     .mend = "systemctl set-property --runtime {unit} CPUQuota={}%",
     .stay = "systemctl set-property {unit} CPUQuota={}%\n"
             "or start with -t auto; to hold the server back: --cpu-limit"},
    {.name = "cpuset", .look = look_cpuset, .path = "/proc/self/status",
     .wanted = "a CPU for each worker",
     .why = "Workers that share a CPU wait for each other for milliseconds. Measured: 24 "
            "on 12 CPUs kept their target up to 590,000 requests a second, 12 on 12 up to "
            "717,000 (Managing Interference, table 1).",
     .mend = "start with -t {} or -t auto, or give the server more CPUs:\n"
             "systemctl set-property --runtime {unit} AllowedCPUs=LIST",
     .stay = "systemctl set-property {unit} AllowedCPUs=LIST"},
    {.name = "pinning", .look = look_pinning,
     .wanted = "--pin, where the CPUs are the server's",
     .why = "The scheduler puts two workers on one CPU and leaves another idle. Measured: "
            "865,000 requests a second within the target pinned, 519,000 not (Managing "
            "Interference, table 1); pinned, p95 stayed below 1 ms up to 90 % of the peak "
            "(Reconciling, 4.2). Beside programs that use the same CPUs, try both.",
     .mend = "{}"},
    {.name = "smt-siblings", .look = look_siblings, .path = HOST_CPUS,
     .wanted = "no other work on CPUs {}",
     .why = "A busy hardware thread on the same core cost 31 to 52 % of the requests "
            "within the target (Managing Interference, table 3).",
     .mend = "keep other work off them: systemctl set-property --runtime\n"
             "user.slice AllowedCPUs=OTHERS (system.slice likewise)\n"
             "or let workers use both threads of a core: --pin=compact",
     .stay = "the same without --runtime"},
    {.name = "steal", .look = look_steal, .path = CPUSTAT_PATH,
     .wanted = "less than 0.5 %",
     .why = "The hypervisor ran other machines while this one wanted a CPU; each time is a "
            "stop of some milliseconds for a worker. mcload calls runs with more than 2 % "
            "invalid (doc/measuring.md).",
     .mend = "a virtual machine with CPUs of its own"},
    {.name = "idle-states", .look = look_idle, .path = HOST_CPUS,
     .wanted = "states that are left within 50 us",
     .why = "A CPU that sleeps deeply answers the next request later, by hundreds of us "
            "at low load; the papers disabled C6 (Reconciling, 3.2.1). Kernel: "
            "admin-guide/pm/cpuidle.",
     .mend = "cpupower idle-set -D 50",
     .stay = "tuned-adm profile network-latency, or the kernel parameter\n"
             "intel_idle.max_cstate=1 (elsewhere processor.max_cstate=1)"},
    {.name = "governor", .look = look_governor, .path = HOST_CPUS,
     .wanted = "governor performance",
     .why = "A CPU at a low frequency serves the first requests of a burst slowly; the "
            "papers disabled scaling because results varied at moderate load "
            "(Reconciling, 3.2.1).",
     .mend = "cpupower frequency-set -g performance",
     .stay = "tuned-adm profile network-latency, or the kernel parameter\n"
             "cpufreq.default_governor=performance"},
    {.name = "turbo", .look = look_turbo, .path = HOST_CPUS,
     .wanted = "off for measurements; else as it is",
     .why = "The frequency depends on what other cores do, so results of runs differ. "
            "For service turbo is a gain as a rule.",
     .mend = "echo 1 > " HOST_CPUS "/intel_pstate/no_turbo\n"
             "or: echo 0 > " HOST_CPUS "/cpufreq/boost"},
    {.name = "clock", .look = look_file,
     .path = "/sys/devices/system/clocksource/clocksource0/current_clocksource",
     .level = DOCTOR_WARN, /* good are those that are read without a system call */
     .good = "tsc kvm-clock hyperv_clocksource_tsc_page arch_sys_counter riscv_clocksource",
     .wanted = "tsc, or the hypervisor's own",
     .why = "Other sources are read by a system call or a slow register, several times "
            "for each turn of a worker and each request that is sampled.",
     .mend = "echo tsc > /sys/devices/system/clocksource/\\\n"
             "clocksource0/current_clocksource",
     .stay = "kernel parameter clocksource=tsc (tsc=reliable where the\n"
             "kernel has rejected it and the hardware is known to be good)"},
    {.name = "mitigations", .look = look_file,
     .path = HOST_CPUS "/vulnerabilities/meltdown", .level = DOCTOR_NOTE,
     .absent = "the kernel lists none", .bad = "PTI",
     .wanted = "hardware that needs no page table isolation",
     .why = "With it each system call costs more, and a get takes two or three of them. "
            "It protects against other programs on this host: leave it on where those are "
            "not trusted.",
     .mend = "newer hardware"},
};
/* clang-format on */

const struct doctor_table doctor_cpu = DOCTOR_TABLE(rows);
