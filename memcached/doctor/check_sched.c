/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The kernel's scheduler.
 */
#include <errno.h>

#include "base/part.h"
#include "doctor/rows.h"
#include "place/cgroup.h"

#define SLICE_GOOD_NS UINT64_C(1000000)
#define WORKER "(mc-worker "
#define PATTERN_LEN 64
#define HOW_LEN 32

static const char *
is_grouped(const struct host *h)
{
    return cgroup_is_grouped(h->conf.root, h->process)
               ? "the server is in a control group for CPU time"
               : NULL;
}

/* False where it does not say. */
static bool
is_before(const struct host *h, unsigned major, unsigned minor)
{
    char release[HOST_LINE];
    unsigned first, second;
    return host_line(h, release, "/proc/sys/kernel/osrelease") &&
           sscanf(release, "%u.%u", &first, &second) == 2 &&
           (first < major || (first == major && second < minor));
}

/* By sched_ext-bvt or by linux-6.1-bvt, of patches/. */
static bool
gives_warps(const struct host *h)
{
    char line[HOST_LINE];
    return (host_line(h, line, "/sys/kernel/sched_ext/root/ops") &&
            strcmp(line, "bvt") == 0) ||
           host_line(h, line, "/proc/self/sched_warp_ns");
}

/* ---- what the kernel has applied ------------------------------------------------------ */

/* Fields of /proc/PID/task/TID/stat, as proc(5) counts them; the name is the second. */
enum {
    STAT_STATE = 3,
    STAT_NICE = 19,
    STAT_PRIORITY = 40,
    STAT_POLICY = 41,
};

/* How a worker is scheduled. False: the file is not a worker's, or it has ended. */
static bool
read_worker(const struct host *h, const char *path, long now[STAT_POLICY + 1])
{
    char line[HOST_LINE], *rest, *word;
    if (!host_line(h, line, path) || strstr(line, WORKER) == NULL) {
        return false;
    }
    int field = STAT_STATE;
    for (word = strtok_r(strrchr(line, ')') + 1, " ", &rest);
         word != NULL && field <= STAT_POLICY; word = strtok_r(NULL, " ", &rest)) {
        now[field++] = strtol(word, NULL, 10);
    }
    return field > STAT_POLICY;
}

enum {
    OTHER = 0,
    FIFO = 1,
    RR = 2,
    BATCH = 3,
    EXT = 7,
};

/* As --sched is described, where it has such a word. */
static void
describe(const long now[STAT_POLICY + 1], char how[HOW_LEN])
{
    static const char *const names[] = {
        [OTHER] = "other", [FIFO] = "fifo",  [RR] = "rr",  [BATCH] = "batch",
        [5] = "idle",      [6] = "deadline", [EXT] = "ext"};
    long policy = now[STAT_POLICY];
    bool is_known = policy >= 0 && policy < (long)(sizeof names / sizeof *names) &&
                    names[policy] != NULL;
    bool is_realtime = policy == FIFO || policy == RR;
    snprintf(how, HOW_LEN, "%s:%ld", is_known ? names[policy] : "unknown",
             now[is_realtime ? STAT_PRIORITY : STAT_NICE]);
}

/* Slices are not in the file. */
static bool
is_applied(const struct host *h, const long now[STAT_POLICY + 1], const char *how)
{
    const char *sched = h->conf.sched;
    char warp[HOST_LINE];
    if (part_after(sched, "slice") != NULL) {
        return now[STAT_POLICY] == OTHER;
    }
    if (part_after(sched, "batch") != NULL) {
        return now[STAT_POLICY] == BATCH;
    }
    if (part_after(sched, "bvt") != NULL) {
        return now[STAT_POLICY] == EXT || host_line(h, warp, "/proc/self/sched_warp_ns");
    }
    return strcmp(how, sched) == 0;
}

enum applied {
    APPLIED_NONE_ASKED, /* or it does not run yet */
    APPLIED_UNKNOWN,
    APPLIED,
    APPLIED_OTHERWISE, /* in how */
};

/* Does the kernel schedule the workers as --sched asks? */
static enum applied
read_applied(const struct host *h, char how[HOW_LEN])
{
    char pattern[PATTERN_LEN];
    enum applied applied = APPLIED_UNKNOWN;
    glob_t stats;
    if (h->conf.process == 0 || h->conf.sched == NULL) {
        return APPLIED_NONE_ASKED;
    }
    snprintf(pattern, sizeof pattern, "/proc/%s/task/[0-9]*/stat", h->process);
    unsigned count = host_glob(h, pattern, &stats);
    for (unsigned i = 0; i < count && applied != APPLIED_OTHERWISE; i++) {
        long now[STAT_POLICY + 1] = {0};
        if (read_worker(h, host_found(h, &stats, i), now)) {
            describe(now, how);
            applied = is_applied(h, now, how) ? APPLIED : APPLIED_OTHERWISE;
        }
    }
    globfree(&stats);
    return applied;
}

static void
look_policy(const struct host *h, struct doctor_finding *f)
{
    char how[HOW_LEN];
    switch (read_applied(h, how)) {
    case APPLIED_NONE_ASKED:
        finding_set(f, DOCTOR_GOOD,
                    h->conf.sched != NULL ? "the server does not run yet" : "no --sched");
        break;
    case APPLIED_UNKNOWN:
        errno = ENODATA;
        finding_unread(f, "the workers' policy in /proc", NULL);
        break;
    case APPLIED:
        finding_set(f, DOCTOR_GOOD, "workers have what --sched=%.64s asks for",
                    h->conf.sched);
        break;
    case APPLIED_OTHERWISE:
        finding_set(f, DOCTOR_WARN, "--sched=%.64s, but workers have %s", h->conf.sched,
                    how);
        break;
    }
}

/* ---- what was asked for --------------------------------------------------------------- */

/* What each kernel needs is in doc/tuning.md. */
static void
judge_sched(const struct host *h, struct doctor_finding *f, const char *sched)
{
    if (part_after(sched, "slice") != NULL && is_before(h, 6, 12)) {
        finding_set(f, DOCTOR_WARN, "--sched=%.64s, which this kernel ignores", sched);
    } else if (part_after(sched, "bvt") != NULL && !gives_warps(h)) {
        finding_set(f, DOCTOR_WARN, "--sched=%.64s, but this kernel gives no warps",
                    sched);
    } else if (part_after(sched, "other") != NULL && !is_before(h, 6, 6)) {
        finding_set(f, DOCTOR_NOTE,
                    "--sched=%.64s, beside which other threads keep their slices (from "
                    "Linux 6.6 on)",
                    sched);
    } else {
        finding_set(f, DOCTOR_GOOD, "--sched=%.64s", sched);
    }
}

static bool
raises(const char *sched)
{
    return part_after(sched, "batch") == NULL &&
           (part_after(sched, "other:") == NULL || part_after(sched, "other:-") != NULL);
}

static void
look_slice(const struct host *h, struct doctor_finding *f)
{
    uint64_t ns;
    char how[96] = "no --sched", now[HOW_LEN];
    bool is_refused = read_applied(h, now) == APPLIED_OTHERWISE;
    if (h->conf.sched != NULL && raises(h->conf.sched) && !is_refused) {
        judge_sched(h, f, h->conf.sched);
        return;
    }
    if (h->conf.sched != NULL) {
        snprintf(how, sizeof how, "--sched=%.64s%s", h->conf.sched,
                 is_refused ? " (not applied)" : "");
    }
    if (is_before(h, 6, 6)) {
        finding_set(f, DOCTOR_NOTE,
                    "%s, and CFS, under which workers wait for milliseconds", how);
    } else if (host_number(h, &ns, f->check->path)) {
        finding_set(f, ns > SLICE_GOOD_NS ? DOCTOR_NOTE : DOCTOR_GOOD,
                    "%s, and slices of %llu us", how, (unsigned long long)ns / 1000);
    } else {
        finding_set(f, DOCTOR_NOTE, "%s, and the kernel's slice could not be read: %s",
                    how, strerror(errno));
    }
}

static void
look_features(const struct host *h, struct doctor_finding *f)
{
    static const struct {
        const char *off, *name;
        enum doctor_level level;
    } features[] = {
        {"NO_WAKEUP_PREEMPTION", "WAKEUP_PREEMPTION", DOCTOR_WARN},
        {"NO_PREEMPT_SHORT", "PREEMPT_SHORT", DOCTOR_WARN},
        {"NO_HRTICK ", "HRTICK", DOCTOR_NOTE},
    };
    char *text = host_text(h, f->check->path);
    if (text == NULL) {
        finding_unread(f, f->check->path, NULL);
        return;
    }
    finding_set(f, DOCTOR_GOOD, "those that matter are on");
    for (unsigned i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (f->level == DOCTOR_GOOD && !h->conf.is_realtime &&
            strstr(text, features[i].off) != NULL) {
            finding_value(f, "%s", features[i].name);
            finding_set(f, features[i].level, "%s is off", features[i].name);
        }
    }
    free(text);
}

static void
look_rt_budget(const struct host *h, struct doctor_finding *f)
{
    char path[CGROUP_PATH_MAX];
    if (!h->conf.is_realtime) {
        finding_set(f, DOCTOR_GOOD, "no worker is to have a real-time priority");
    } else if (cgroup_lacks_rt_budget(h->conf.root, h->process, path, sizeof path)) {
        finding_set(f, DOCTOR_BAD, "0 in %.200s", path + strlen(h->conf.root));
    } else {
        finding_set(f, DOCTOR_GOOD, "the control group sets no limit of its own");
    }
}

/* clang-format off */
static const struct doctor_check rows[] = {
    {.name = "autogroup", .look = look_file,
     .path = "/proc/sys/kernel/sched_autogroup_enabled", .level = DOCTOR_NOTE,
     .spare = is_grouped, .absent = "the kernel has no autogroups", .good = "0",
     .wanted = "off, or the server in a control group for CPU time",
     .why = "Each session shares the CPUs as a whole: a batch job in another terminal has "
            "as much as the server, and nice values count within a session only (doc/qos.md, "
            "6). As a systemd service with CPUWeight= the server is not concerned.",
     .mend = "sysctl -w kernel.sched_autogroup_enabled=0",
     .stay = "kernel.sched_autogroup_enabled = 0 in /etc/sysctl.d/, or the\n"
             "kernel parameter noautogroup"},
    {.name = "sched-slice", .look = look_slice,
     .path = "/sys/kernel/debug/sched/base_slice_ns",
     .wanted = "--sched=slice:100us; fifo on CPUs that are the server's first",
     .why = "A worker that wakes up beside another program waits for the end of its slice. "
            "Measured: p99 beside a batch job 2.7 ms by default, 0.26 ms with slice:100us, "
            "0.09 ms with fifo, at 10 % of the load (doc/benchmarks.md). Sharing a CPU cost "
            "46 % of the requests within the target, with fifo 2 % (Managing Interference, "
            "table 3).",
     .mend = "start with --sched=slice:100us (Linux 6.12 or later), with\n"
             "other:-20 (before Linux 6.6), or with fifo",
     .stay = "LimitRTPRIO=10 in the unit gives the right to it"},
    {.name = "sched-policy", .look = look_policy, .path = "/proc/self/stat",
     .wanted = "workers that are scheduled as --sched says",
     .why = "The kernel refused it, or another program has changed it since: the workers wait "
            "for a CPU as without the option. Negative nice values and real-time priority need "
            "a right at the start.",
     .mend = "start as root, with CAP_SYS_NICE, or after ulimit -r 99 (fifo, rr)\n"
             "or ulimit -e 40 (other); the log of the start says why",
     .stay = "LimitRTPRIO=99 or LimitNICE=-20 in the unit; of a container\n"
             "--cap-add=SYS_NICE"},
    {.name = "sched-features", .look = look_features,
     .path = "/sys/kernel/debug/sched/features",
     .wanted = "WAKEUP_PREEMPTION, PREEMPT_SHORT and HRTICK",
     .why = "Without the first two a worker that wakes up waits for the slice of what runs; "
            "without HRTICK its turn is noticed at the next tick only, up to 4 ms later "
            "(doc/benchmarks.md, a square wave on the worker's CPU).",
     .mend = "echo {} > /sys/kernel/debug/sched/features",
     .stay = "a unit that does this at each start of the machine"},
    {.name = "rt-budget", .look = look_rt_budget, .path = "/proc/self/cgroup",
     .wanted = "a budget above 0",
     .why = "The kernel refuses --sched=fifo and rr in a control group without a budget of "
            "real-time CPU time (CONFIG_RT_GROUP_SCHED); the workers then have the default "
            "policy.",
     .mend = "echo 950000 > the file that was found, and first to those of\n"
             "the groups above it",
     .stay = "start the server outside of that group"},
};
/* clang-format on */

const struct doctor_table doctor_sched = DOCTOR_TABLE(rows);
