/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Each check of --doctor on made-up hosts: what level it finds, and what it says.
 */
#include "doctor/rows.h"

#include "check_main.h"
#include "check_tree.h"

#define CGROUPS(file, text)                                                              \
    {"/proc/self/cgroup", "0::/a\n"},                                                    \
        {"/proc/self/mountinfo", "24 22 0:21 / /cg rw - cgroup2 cgroup2 rw\n"},          \
    {                                                                                    \
        "/cg/a/" file, text                                                              \
    }
#define CPU "/sys/devices/system/cpu/"
#define NODES                                                                            \
    {"/sys/devices/system/node/node0/cpulist", "0-1\n"},                                 \
    {                                                                                    \
        "/sys/devices/system/node/node1/cpulist", "2-3\n"                                \
    }
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define ETH "/sys/class/net/eth0/"
#define CARD                                                                             \
    {ETH "device/vendor", "0x1\n"},                                                      \
    {                                                                                    \
        ETH "operstate", "up\n"                                                          \
    }
#define QUEUE(n)                                                                         \
    {                                                                                    \
        ETH "queues/rx-" #n "/rps_cpus", "00,00000000\n"                                 \
    }
#define IRQ(n, cpus)                                                                     \
    {ETH "device/msi_irqs/" #n, "msix\n"},                                               \
    {                                                                                    \
        "/proc/irq/" #n "/effective_affinity_list", cpus "\n"                            \
    }
#define STAT(all, cpu1) "cpu  " all " 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 " cpu1 " 0 0\n"
#define LIMITS(text)                                                                     \
    {                                                                                    \
        "/proc/self/limits", "Limit  Soft Limit  Hard Limit  Units\n" text "\n"          \
    }
#define MEMINFO(text)                                                                    \
    {                                                                                    \
        "/proc/meminfo", "MemTotal:  1000000 kB\n" text                                  \
    }
#define SWAP(total, left) MEMINFO("SwapTotal: " total " kB\nSwapFree: " left " kB\n")
#define SYSCTL "/proc/sys/"
/* A thread's line: between state and nice value, and between that and the priority. */
#define STAT_FIELDS " 1 1 1 0 -1 4194368 1 0 0 0 1 1 0 0 20 "
#define STAT_MORE " 6 0 100 5000 60 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 -1 1 "
#define WORKER_STAT(nice, priority, policy)                                              \
    {                                                                                    \
        "/proc/77/task/78/stat",                                                         \
            "78 (mc-worker 0) S" STAT_FIELDS nice STAT_MORE priority " " policy          \
            " 0 0 0\n"                                                                   \
    }
#define TEN(n) #n "0," #n "2," #n "4," #n "6," #n "8"
#define EVEN_CPUS                                                                                               \
    TEN()                                                                                                       \
    "," TEN(1) "," TEN(2) "," TEN(3) "," TEN(4) "," TEN(5) "," TEN(6) "," TEN(7) "," TEN(8) "," TEN(9) "," TEN( \
        10) "," TEN(11) "," TEN(12) "," TEN(13) "," TEN(14) "," TEN(15) "," TEN(16) "," TEN(17) "," TEN(18) "," TEN(19)

/* ---- settings ------------------------------------------------------------------------- */

enum {
    PINNED = 1 << 0,
    TWO_WORKERS = 1 << 1,
    ONE_WORKER = 1 << 2,
    FIFO = 1 << 3,
    LOCKED = 1 << 4,
    LARGE_ITEMS = 1 << 5,
    BOUND_MEMORY = 1 << 6,
    SUSPENDING = 1 << 7,
    AS_ROOT = 1 << 8,
    LOCAL = 1 << 9,
    ONE_ADDRESS = 1 << 10,
    WITH_UDP = 1 << 11,
    WITH_TLS = 1 << 12,
    WITH_PASSWORD = 1 << 13,
    RUNNING = 1 << 14,
    SLICE = 1 << 15,
    NICE = 1 << 16,
    BVT = 1 << 17,
    BATCH = 1 << 18,
    NOT_PINNED = 1 << 19, /* --pin could not be kept */
};

static void
set_conf(struct doctor_conf *c, unsigned what)
{
    c->is_pinned = what & (PINNED | NOT_PINNED);
    c->threads = what & TWO_WORKERS ? 2 : what & ONE_WORKER ? 1 : c->threads;
    c->sched = what & FIFO    ? "fifo:1"
               : what & SLICE ? "slice:100us"
               : what & NICE  ? "other:-20"
               : what & BVT   ? "bvt"
               : what & BATCH ? "batch"
                              : NULL;
    c->is_realtime = what & FIFO;
    c->locks_memory = what & LOCKED;
    c->may_raise = what & AS_ROOT;
    c->item_max = what & LARGE_ITEMS ? 32 << 20 : c->item_max;
    c->has_membind = what & BOUND_MEMORY;
    c->suspends_irqs = what & SUSPENDING;
    c->reach = what & LOCAL         ? DOCTOR_REACH_HOST
               : what & ONE_ADDRESS ? DOCTOR_REACH_SOME
                                    : c->reach;
    c->has_udp = what & WITH_UDP;
    c->guard = what & WITH_TLS        ? DOCTOR_GUARD_TLS
               : what & WITH_PASSWORD ? DOCTOR_GUARD_CLIENT
                                      : c->guard;
    c->process = what & RUNNING ? 77 : 0;
    for (unsigned cpu = 0; what & PINNED && cpu <= 2; cpu += 2) {
        cpumask_add(&c->workers, cpu);
    }
}

/* ---- hosts ---------------------------------------------------------------------------- */

struct file {
    const char *path, *text;
};

#define LATER "later" /* what /proc/stat is at the second look */

/* What is not among the files is not there. */
/* clang-format off */
#define NOTHING {{NULL, NULL}}
static const struct {
    const char *check;
    enum doctor_level level;
    const char *part; /* of what is found */
    unsigned set;
    struct file files[12];
} rows[] = {
    {"cpu-quota", DOCTOR_GOOD, "no quota", 0, NOTHING},
    {"cpu-quota", DOCTOR_BAD, "1.50 CPUs for 4 workers", 0,
     {CGROUPS("cpu.max", "150000 100000\n")}},
    {"cpu-quota", DOCTOR_GOOD, "4.00 CPUs", 0,
     {CGROUPS("cpu.max", "400000 100000\n")}},
    {"cpu-quota", DOCTOR_BAD, "0.50 CPUs", RUNNING,
     {{"/proc/77/cgroup", "0::/b\n"},
      {"/proc/self/mountinfo", "24 22 0:21 / /cg rw - cgroup2 cgroup2 rw\n"},
      {"/cg/b/cpu.max", "50000 100000\n"}}},
    {"cpu-quota", DOCTOR_BAD, "0.25 CPUs", 0,
     {{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
      {"/proc/self/mountinfo", "30 23 0:26 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
      {"/cpu/a/cpu.cfs_quota_us", "25000\n"},
      {"/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    /* Two CPUs have no more than the quota. */
    {"cpu-quota", DOCTOR_GOOD, "2.00 CPUs for 4 workers", 0,
     {CGROUPS("cpu.max", "200000 100000\n"),
      {"/proc/self/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t1,3\n"}}},
    {"cpuset", DOCTOR_GOOD, "4 workers may use 4 CPUs: 0-3", 0, NOTHING},
    {"cpuset", DOCTOR_WARN, "4 workers may use 2 CPUs: 0-1", 0,
     {{"/proc/self/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t0-127\n"},
      {"/sys/devices/system/cpu/online", "0-1\n"}}},
    {"cpuset", DOCTOR_WARN, "4 workers may use 2 CPUs: 1,3", 0,
     {{"/proc/self/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t1,3\n"}}},
    {"cpuset", DOCTOR_GOOD, "4 workers may use 100 CPUs", 0,
     {{"/proc/self/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t" EVEN_CPUS "\n"},
      {"/sys/devices/system/cpu/online", "0-511\n"}}},
    {"cpuset", DOCTOR_UNKNOWN, "could not be read", 0,
     {{"/proc/self/task/1/status", "Name:\tmemcached\n"}}},
    /* The main thread of a pinned server has the CPUs that are left. */
    {"cpuset", DOCTOR_GOOD, "2 workers may use 4 CPUs", RUNNING,
     {{"/proc/77/task/77/status", "Name:\tmemcached\nCpus_allowed_list:\t1,3\n"},
      {"/proc/77/task/78/status", "Name:\tmc-worker 0\nCpus_allowed_list:\t0\n"},
      {"/proc/77/task/79/status", "Name:\tmc-worker 1\nCpus_allowed_list:\t2\n"}}},
    {"pinning", DOCTOR_NOTE, "4 workers are not pinned", 0, NOTHING},
    {"pinning", DOCTOR_GOOD, "pinned", PINNED, NOTHING},
    {"pinning", DOCTOR_GOOD, "one worker", ONE_WORKER, NOTHING},
    {"pinning", DOCTOR_WARN, "are not pinned, although", NOT_PINNED, NOTHING},
    {"pinning", DOCTOR_GOOD, "are pinned", RUNNING,
     {{"/proc/77/task/78/status", "Name:\tmc-worker 0\nCpus_allowed_list:\t0\n"}}},
    {"smt-siblings", DOCTOR_GOOD, "no worker is pinned", 0, NOTHING},
    {"smt-siblings", DOCTOR_GOOD, "share no core", PINNED,
     {{CPU "cpu0/topology/thread_siblings_list", "0\n"},
      {CPU "cpu2/topology/thread_siblings_list", "0,2\n"}}},
    {"smt-siblings", DOCTOR_WARN, "CPUs 1 share cores with workers; up to 80 % busy", PINNED,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"},
      {"/proc/stat", STAT("9 9 9 9 9 9 9 9", "100 0 0 100 0 0 0 0")},
      {LATER, STAT("9 9 9 9 9 9 9 9", "150 10 20 120 0 0 0 0")}}},
    {"smt-siblings", DOCTOR_GOOD, "CPUs 1 share cores with workers, less than 20 %", PINNED,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"},
      {"/proc/stat", STAT("9 9 9 9 9 9 9 9", "100 0 0 100 0 0 0 0")},
      {LATER, STAT("9 9 9 9 9 9 9 9", "101 0 0 199 0 0 0 0")}}},
    /* A CPU that was off line in between. */
    {"smt-siblings", DOCTOR_GOOD, "CPUs 1 share cores with workers, less than 20 %", PINNED,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"},
      {"/proc/stat", STAT("9 9 9 9 9 9 9 9", "100 0 0 100 0 0 0 0")},
      {LATER, STAT("9 9 9 9 9 9 9 9", "1 0 0 500 0 0 0 0")}}},
    {"smt-siblings", DOCTOR_UNKNOWN, "/proc/stat", PINNED,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"}}},
    {"steal", DOCTOR_UNKNOWN, "/proc/stat", 0, NOTHING},
    {"steal", DOCTOR_UNKNOWN, "/proc/stat", 0, {{"/proc/stat", "cpu  1 2 x\n"}}},
    {"steal", DOCTOR_GOOD, "0.1 %", 0,
     {{"/proc/stat", STAT("500 0 499 0 0 0 0 1", "1 1 1 1 1 1 1 1")}}},
    {"steal", DOCTOR_NOTE, "1.0 %", 0,
     {{"/proc/stat", STAT("500 0 490 0 0 0 0 10", "1 1 1 1 1 1 1 1")}}},
    {"steal", DOCTOR_WARN, "20.0 %", 0,
     {{"/proc/stat", STAT("500 0 300 0 0 0 0 200", "1 1 1 1 1 1 1 1")}}},
    {"idle-states", DOCTOR_GOOD, "no idle state", 0, NOTHING},
    {"idle-states", DOCTOR_WARN, "C6: 133 us", 0,
     {{CPU "cpu1/cpuidle/state0/latency", "0\n"},
      {CPU "cpu1/cpuidle/state1/latency", "133\n"},
      {CPU "cpu1/cpuidle/state1/name", "C6\n"},
      {CPU "cpu1/cpuidle/state1/disable", "0\n"}}},
    {"idle-states", DOCTOR_GOOD, "C1: 2 us", 0,
     {{CPU "cpu1/cpuidle/state0/latency", "2\n"},
      {CPU "cpu1/cpuidle/state0/name", "C1\n"},
      {CPU "cpu1/cpuidle/state1/latency", "133\n"},
      {CPU "cpu1/cpuidle/state1/disable", "1\n"}}},
    {"idle-states", DOCTOR_GOOD, "no idle state", 0,
     {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
      {CPU "cpu1/cpuidle/state0/name", "C6\n"},
      {CPU "cpu1/power/pm_qos_resume_latency_us", "20\n"}}},
    {"idle-states", DOCTOR_GOOD, "no idle state", 0,
     {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
      {CPU "cpu1/cpuidle/state0/name", "C6\n"},
      {CPU "cpu1/power/pm_qos_resume_latency_us", "n/a\n"}}},
    {"idle-states", DOCTOR_WARN, "C6", 0,
     {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
      {CPU "cpu1/cpuidle/state0/name", "C6\n"},
      {CPU "cpu1/power/pm_qos_resume_latency_us", "0\n"}}},
    {"governor", DOCTOR_GOOD, "does not scale", 0, NOTHING},
    {"governor", DOCTOR_WARN, "schedutil on CPUs 1,3", 0,
     {{CPU "cpu0/cpufreq/scaling_governor", "performance\n"},
      {CPU "cpu1/cpufreq/scaling_governor", "schedutil\n"},
      {CPU "cpu3/cpufreq/scaling_governor", "schedutil\n"}}},
    {"governor", DOCTOR_GOOD, "performance", 0,
     {{CPU "cpu0/cpufreq/scaling_governor", "performance\n"}}},
    {"turbo", DOCTOR_GOOD, "no switch", 0, NOTHING},
    {"turbo", DOCTOR_NOTE, "are on", 0, {{CPU "intel_pstate/no_turbo", "0\n"}}},
    {"turbo", DOCTOR_GOOD, "are off", 0, {{CPU "intel_pstate/no_turbo", "1\n"}}},
    {"turbo", DOCTOR_NOTE, "are on", 0, {{CPU "cpufreq/boost", "1\n"}}},
    {"clock", DOCTOR_UNKNOWN, "could not be read", 0, NOTHING},
    {"clock", DOCTOR_GOOD, "tsc", 0,
     {{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"}}},
    {"clock", DOCTOR_WARN, "hpet", 0,
     {{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"}}},
    {"mitigations", DOCTOR_GOOD, "lists none", 0, NOTHING},
    {"mitigations", DOCTOR_NOTE, "PTI", 0,
     {{CPU "vulnerabilities/meltdown", "Mitigation: PTI\n"}}},
    {"mitigations", DOCTOR_GOOD, "Not affected", 0,
     {{CPU "vulnerabilities/meltdown", "Not affected\n"}}},

    {"autogroup", DOCTOR_GOOD, "no autogroups", 0, NOTHING},
    {"autogroup", DOCTOR_NOTE, "sched_autogroup_enabled is 1", 0,
     {{SYSCTL "kernel/sched_autogroup_enabled", "1\n"}}},
    {"autogroup", DOCTOR_GOOD, "is 0", 0,
     {{SYSCTL "kernel/sched_autogroup_enabled", "0\n"}}},
    {"autogroup", DOCTOR_GOOD, "control group", 0,
     {{SYSCTL "kernel/sched_autogroup_enabled", "1\n"}, CGROUPS("cpu.weight", "100\n")}},
    {"sched-slice", DOCTOR_NOTE, "could not be read", 0, NOTHING},
    {"sched-slice", DOCTOR_NOTE, "slices of 2800 us", 0,
     {{"/sys/kernel/debug/sched/base_slice_ns", "2800000\n"}}},
    {"sched-slice", DOCTOR_GOOD, "slices of 750 us", 0,
     {{"/sys/kernel/debug/sched/base_slice_ns", "750000\n"}}},
    {"sched-slice", DOCTOR_NOTE, "no --sched, and CFS", 0,
     {{SYSCTL "kernel/osrelease", "6.5.13\n"}, {SYSCTL "kernel/sched_min_granularity_ns", "750000\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=fifo:1", FIFO,
     {{"/sys/kernel/debug/sched/base_slice_ns", "2800000\n"}}},
    {"sched-slice", DOCTOR_WARN, "--sched=slice:100us, which this kernel ignores", SLICE,
     {{SYSCTL "kernel/osrelease", "6.11.10-amd64\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=slice:100us", SLICE,
     {{SYSCTL "kernel/osrelease", "6.12.0\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=fifo:1", FIFO,
     {{SYSCTL "kernel/osrelease", "5.10.0\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=other:-20", NICE,
     {{SYSCTL "kernel/osrelease", "6.1.0-50-amd64\n"}}},
    {"sched-slice", DOCTOR_NOTE, "--sched=other:-20, beside which", NICE,
     {{SYSCTL "kernel/osrelease", "6.6.0\n"}}},
    {"sched-slice", DOCTOR_WARN, "--sched=bvt, but this kernel gives no warps", BVT,
     {{"/sys/kernel/sched_ext/root/ops", "simple\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=bvt", BVT,
     {{"/sys/kernel/sched_ext/root/ops", "bvt\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=bvt", BVT,
     {{"/proc/self/sched_warp_ns", "0\n"}}},
    {"sched-slice", DOCTOR_NOTE, "--sched=batch, and slices of 2800 us", BATCH,
     {{"/sys/kernel/debug/sched/base_slice_ns", "2800000\n"}}},
    {"sched-slice", DOCTOR_NOTE, "--sched=fifo:1 (not applied), and slices of 2800 us", RUNNING | FIFO,
     {{"/sys/kernel/debug/sched/base_slice_ns", "2800000\n"}, WORKER_STAT("0", "0", "0")}},
    {"sched-policy", DOCTOR_GOOD, "no --sched", RUNNING, {WORKER_STAT("5", "0", "0")}},
    {"sched-policy", DOCTOR_GOOD, "does not run yet", FIFO, NOTHING},
    {"sched-policy", DOCTOR_UNKNOWN, "could not be read", RUNNING | FIFO,
     {{"/proc/77/task/77/stat", "77 (memcached) S" STAT_FIELDS "0" STAT_MORE "0 0 0\n"}}},
    {"sched-policy", DOCTOR_GOOD, "what --sched=fifo:1 asks for", RUNNING | FIFO,
     {{"/proc/77/task/77/stat", "77 (memcached) S" STAT_FIELDS "0" STAT_MORE "0 0 0\n"},
      WORKER_STAT("0", "1", "1")}},
    {"sched-policy", DOCTOR_WARN, "--sched=fifo:1, but workers have other:0", RUNNING | FIFO,
     {WORKER_STAT("0", "0", "0")}},
    {"sched-policy", DOCTOR_WARN, "--sched=fifo:1, but workers have fifo:2", RUNNING | FIFO,
     {WORKER_STAT("0", "2", "1")}},
    {"sched-policy", DOCTOR_WARN, "--sched=fifo:1, but workers have idle:0", RUNNING | FIFO,
     {WORKER_STAT("0", "0", "5")}},
    {"sched-policy", DOCTOR_GOOD, "what --sched=other:-20", RUNNING | NICE, {WORKER_STAT("-20", "0", "0")}},
    {"sched-policy", DOCTOR_WARN, "--sched=other:-20, but workers have other:3", RUNNING | NICE,
     {WORKER_STAT("3", "0", "0")}},
    {"sched-policy", DOCTOR_GOOD, "what --sched=slice:100us", RUNNING | SLICE, {WORKER_STAT("3", "0", "0")}},
    {"sched-policy", DOCTOR_GOOD, "what --sched=batch", RUNNING | BATCH, {WORKER_STAT("3", "0", "3")}},
    {"sched-policy", DOCTOR_GOOD, "what --sched=bvt", RUNNING | BVT, {WORKER_STAT("0", "0", "7")}},
    {"sched-policy", DOCTOR_WARN, "--sched=bvt, but workers have other:0", RUNNING | BVT,
     {WORKER_STAT("0", "0", "0")}},
    {"sched-policy", DOCTOR_GOOD, "what --sched=bvt", RUNNING | BVT,
     {{"/proc/self/sched_warp_ns", "0\n"}, WORKER_STAT("0", "0", "0")}},
    {"sched-features", DOCTOR_UNKNOWN, "mount -t debugfs debugfs /sys", 0, NOTHING},
    {"sched-features", DOCTOR_WARN, "PREEMPT_SHORT is off", 0,
     {{"/sys/kernel/debug/sched/features",
       "WAKEUP_PREEMPTION NO_PREEMPT_SHORT NO_HRTICK \n"}}},
    {"sched-features", DOCTOR_NOTE, "HRTICK is off", 0,
     {{"/sys/kernel/debug/sched/features",
       "PREEMPT_SHORT WAKEUP_PREEMPTION NO_HRTICK NO_HRTICK_DL \n"}}},
    {"sched-features", DOCTOR_GOOD, "are on", 0,
     {{"/sys/kernel/debug/sched/features",
       "PREEMPT_SHORT WAKEUP_PREEMPTION HRTICK NO_HRTICK_DL \n"}}},
    {"sched-features", DOCTOR_GOOD, "are on", FIFO,
     {{"/sys/kernel/debug/sched/features", "NO_HRTICK \n"}}},
    {"rt-budget", DOCTOR_GOOD, "no worker", 0, NOTHING},
    {"rt-budget", DOCTOR_GOOD, "no limit", FIFO, NOTHING},
    {"rt-budget", DOCTOR_BAD, "0 in /cpu/a/cpu.rt_runtime_us", FIFO,
     {{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
      {"/proc/self/mountinfo", "30 23 0:26 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
      {"/cpu/a/cpu.rt_runtime_us", "0\n"}}},

    {"memory-limit", DOCTOR_GOOD, "no limit", 0, NOTHING},
    {"memory-limit", DOCTOR_BAD, "a limit of 64 MB; -m 64", 0,
     {CGROUPS("memory.max", "67108864\n")}},
    {"memory-limit", DOCTOR_WARN, "a limit of 80 MB; -m 64 takes about 87 MB", 0,
     {CGROUPS("memory.max", "83886080\n")}},
    {"memory-limit", DOCTOR_GOOD, "a limit of 256 MB", 0,
     {CGROUPS("memory.max", "268435456\n")}},
    {"memory-host", DOCTOR_UNKNOWN, "/proc/meminfo", 0, NOTHING},
    {"memory-host", DOCTOR_BAD, "10 of 48 MB", 0,
     {{"/proc/meminfo", "MemTotal: 50000 kB\nMemAvailable: 10300 kB\n"}}},
    {"memory-host", DOCTOR_WARN, "48 of 976 MB", 0,
     {MEMINFO("MemAvailable:   50000 kB\n")}},
    {"memory-host", DOCTOR_GOOD, "48 of 976 MB", RUNNING,
     {MEMINFO("MemAvailable:   50000 kB\n")}},
    {"memory-host", DOCTOR_GOOD, "878 of 976 MB", 0,
     {MEMINFO("MemAvailable:   900000 kB\n")}},
    {"overcommit", DOCTOR_UNKNOWN, "overcommit_memory", 0, NOTHING},
    {"overcommit", DOCTOR_GOOD, "is 1", 0, {{SYSCTL "vm/overcommit_memory", "1\n"}}},
    {"overcommit", DOCTOR_BAD, "0 MB", 0,
     {{SYSCTL "vm/overcommit_memory", "2\n"},
      MEMINFO("CommitLimit: 1000 kB\nCommitted_AS: 2000 kB\n")}},
    {"overcommit", DOCTOR_NOTE, "488 MB", 0,
     {{SYSCTL "vm/overcommit_memory", "2\n"},
      MEMINFO("CommitLimit: 700000 kB\nCommitted_AS: 200000 kB\n")}},
    {"memlock", DOCTOR_GOOD, "no memory is to be locked", 0, NOTHING},
    {"memlock", DOCTOR_GOOD, "raises", AS_ROOT | LOCKED, NOTHING},
    {"memlock", DOCTOR_UNKNOWN, "could not be read", LOCKED, NOTHING},
    {"memlock", DOCTOR_GOOD, "no limit", LOCKED,
     {LIMITS("Max locked memory  unlimited  unlimited  bytes")}},
    {"memlock", DOCTOR_GOOD, "no limit", LOCKED, /* it raises its own at the start */
     {LIMITS("Max locked memory  8388608  unlimited  bytes")}},
    {"memlock", DOCTOR_WARN, "127 MB", LOCKED, /* twice -m is what the server asks for */
     {LIMITS("Max locked memory  133169152  133169152  bytes")}},
    {"memlock", DOCTOR_GOOD, "128 MB", LOCKED,
     {LIMITS("Max locked memory  134217728  134217728  bytes")}},
    {"memlock", DOCTOR_WARN, "8 MB", RUNNING | LOCKED,
     {{"/proc/77/limits", "Max locked memory  8388608  unlimited  bytes\n"}}},
    {"memlock", DOCTOR_WARN, "8 MB", LOCKED,
     {LIMITS("Max locked memory  8388608  8388608  bytes")}},
    {"item-size", DOCTOR_GOOD, "1024 KB, of which -m 64 holds 64", 0, NOTHING},
    {"item-size", DOCTOR_WARN, "32768 KB, of which -m 64 holds 2", LARGE_ITEMS, NOTHING},
    {"huge-pages", DOCTOR_GOOD, "has none", 0, NOTHING},
    {"huge-pages", DOCTOR_WARN, "enabled is always", 0,
     {{THP "enabled", "[always] madvise never\n"}}},
    {"huge-pages", DOCTOR_GOOD, "enabled is madvise", 0,
     {{THP "enabled", "always [madvise] never\n"}}},
    {"huge-pages", DOCTOR_UNKNOWN, "could not be read", 0, {{THP "enabled", ""}}},
    {"huge-pages-defrag", DOCTOR_WARN, "defrag is always", 0,
     {{THP "defrag", "[always] defer defer+madvise madvise never\n"}}},
    {"huge-pages-defrag", DOCTOR_GOOD, "defrag is madvise", 0,
     {{THP "defrag", "always defer defer+madvise [madvise] never\n"}}},
    {"swap", DOCTOR_UNKNOWN, "/proc/meminfo", 0, NOTHING},
    {"swap", DOCTOR_GOOD, "no swap", 0, {SWAP("0", "0")}},
    {"swap", DOCTOR_NOTE, "0 of 976 MB", 0, {SWAP("1000000", "1000000")}},
    {"swap", DOCTOR_WARN, "195 of 976 MB", 0, {SWAP("1000000", "800000")}},
    {"swap", DOCTOR_GOOD, "-k", LOCKED, {SWAP("1000000", "800000")}},
    {"swap", DOCTOR_BAD, "120 KB of the server", RUNNING,
     {SWAP("1000000", "800000"), {"/proc/77/status", "VmSwap:\t     120 kB\n"}}},
    {"swappiness", DOCTOR_GOOD, "no swap", 0, {SWAP("0", "0")}},
    {"swappiness", DOCTOR_NOTE, "60", 0,
     {SWAP("10", "10"), {SYSCTL "vm/swappiness", "60\n"}}},
    {"swappiness", DOCTOR_GOOD, "1", 0,
     {SWAP("10", "10"), {SYSCTL "vm/swappiness", "1\n"}}},
    {"memory-nodes", DOCTOR_GOOD, "one memory node", 0, NOTHING},
    {"memory-nodes", DOCTOR_WARN, "on 2 of 2 memory nodes, without", 0, {NODES}},
    {"memory-nodes", DOCTOR_NOTE, "on 2 of 2 memory nodes, with --membind", BOUND_MEMORY,
     {NODES}},
    {"memory-nodes", DOCTOR_GOOD, "on 1 of 2", 0,
     {NODES, {"/proc/self/task/1/status", "Cpus_allowed_list:\t2-3\n"}}},
    {"numa-balancing", DOCTOR_GOOD, "one memory node", 0,
     {{SYSCTL "kernel/numa_balancing", "1\n"}}},
    {"numa-balancing", DOCTOR_WARN, "numa_balancing is 1", 0,
     {NODES, {SYSCTL "kernel/numa_balancing", "1\n"}}},
    {"numa-balancing", DOCTOR_GOOD, "has none", 0, {NODES}},
    {"zone-reclaim", DOCTOR_WARN, "zone_reclaim_mode is 1", 0,
     {NODES, {SYSCTL "vm/zone_reclaim_mode", "1\n"}}},
    {"zone-reclaim", DOCTOR_GOOD, "is 0", 0,
     {NODES, {SYSCTL "vm/zone_reclaim_mode", "0\n"}}},

    {"irqbalance", DOCTOR_GOOD, "does not run", 0, {{"/proc/12/comm", "memcached\n"}}},
    {"irqbalance", DOCTOR_WARN, "/proc/13/comm", 0,
     {{"/proc/13/comm", "irqbalance\n"}}},
    {"nic-interrupts", DOCTOR_GOOD, "no network card", 0, NOTHING},
    {"nic-interrupts", DOCTOR_GOOD, "on this host only", LOCAL,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "0")}},
    {"nic-interrupts", DOCTOR_WARN, "2 queues are all on CPU 0", 0,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "0")}},
    {"nic-interrupts", DOCTOR_GOOD, "2 interrupts on CPUs 0-1", 0,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "1")}},
    {"nic-interrupts", DOCTOR_NOTE, "those of 1 of 2 workers", PINNED,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "1")}},
    {"nic-interrupts", DOCTOR_GOOD, "no network card", 0,
     {{ETH "device/vendor", "0x1\n"},
      {ETH "operstate", "down\n"},
      QUEUE(0),
      QUEUE(1),
      IRQ(30, "0"),
      IRQ(31, "0")}},
    /* A part of another device; and of two cards the one with the worse finding. */
    {"nic-interrupts", DOCTOR_WARN, "eth1: the interrupts of 2 queues", 0,
     {CARD,
      QUEUE(0),
      {"/sys/class/net/eth1/device/vendor", "0x1\n"},
      {"/sys/class/net/eth1/msi_irqs/40", "msix\n"},
      {"/proc/irq/40/smp_affinity_list", "3\n"},
      {"/sys/class/net/eth1/queues/rx-0/rps_cpus", "0\n"},
      {"/sys/class/net/eth1/queues/rx-1/rps_cpus", "0\n"}}},
    {"nic-queues", DOCTOR_WARN, "4 workers, receive queues: 1", 0, {CARD, QUEUE(0)}},
    {"nic-queues", DOCTOR_GOOD, "those with RPS: 1", 0,
     {CARD, {ETH "queues/rx-0/rps_cpus", "0,00000f\n"}}},
    {"nic-queues", DOCTOR_GOOD, "receive queues: 2", TWO_WORKERS,
     {CARD, QUEUE(0), QUEUE(1)}},
    {"flow-steering", DOCTOR_GOOD, "RPS on 0 of 1 queues, RFS on 0", 0,
     {CARD, QUEUE(0)}},
    {"flow-steering", DOCTOR_NOTE, "RPS on 1 of 1 queues, RFS on 0", 0,
     {CARD,
      {ETH "queues/rx-0/rps_cpus", "f\n"},
      {ETH "queues/rx-0/rps_flow_cnt", "0\n"}}},
    {"flow-steering", DOCTOR_NOTE, "rps_sock_flow_entries 32768", 0,
     {CARD, QUEUE(0), {SYSCTL "net/core/rps_sock_flow_entries", "32768\n"}}},
    {"flow-steering", DOCTOR_GOOD, "RFS on 1", 0,
     {CARD,
      {ETH "queues/rx-0/rps_cpus", "f\n"},
      {ETH "queues/rx-0/rps_flow_cnt", "4096\n"},
      {SYSCTL "net/core/rps_sock_flow_entries", "32768\n"}}},
    {"transmit-steering", DOCTOR_GOOD, "0 of 1", 0,
     {CARD, {ETH "queues/tx-0/xps_cpus", "0\n"}}},
    {"transmit-steering", DOCTOR_NOTE, "0 of 2", 0,
     {CARD, {ETH "queues/tx-0/xps_cpus", "0\n"}, {ETH "queues/tx-1/xps_cpus", "0\n"}}},
    {"transmit-steering", DOCTOR_GOOD, "2 of 2", 0,
     {CARD, {ETH "queues/tx-0/xps_cpus", "1\n"}, {ETH "queues/tx-1/xps_cpus", "2\n"}}},
    {"gro-flush", DOCTOR_GOOD, "is 0 us", 0, {CARD, {ETH "gro_flush_timeout", "0\n"}}},
    {"gro-flush", DOCTOR_WARN, "is 200 us", 0,
     {CARD, {ETH "gro_flush_timeout", "200000\n"}}},
    {"gro-flush", DOCTOR_GOOD, "is 200 us", SUSPENDING,
     {CARD, {ETH "gro_flush_timeout", "200000\n"}}},
    {"busy-poll", DOCTOR_GOOD, "does not poll", 0, NOTHING},
    {"busy-poll", DOCTOR_NOTE, "busy_poll is 50, busy_read 0", 0,
     {{SYSCTL "net/core/busy_poll", "50\n"}, {SYSCTL "net/core/busy_read", "0\n"}}},
    {"somaxconn", DOCTOR_WARN, "128, and -b asks for 1024", 0,
     {{SYSCTL "net/core/somaxconn", "128\n"}}},
    {"somaxconn", DOCTOR_GOOD, "4096", 0, {{SYSCTL "net/core/somaxconn", "4096\n"}}},
    {"somaxconn", DOCTOR_UNKNOWN, "somaxconn", 0, NOTHING},
    {"syn-backlog", DOCTOR_NOTE, "512, and -b asks for 1024", 0,
     {{SYSCTL "net/ipv4/tcp_max_syn_backlog", "512\n"}}},
    {"syn-backlog", DOCTOR_GOOD, "1024", 0,
     {{SYSCTL "net/ipv4/tcp_max_syn_backlog", "1024\n"}}},
    {"congestion", DOCTOR_UNKNOWN, "tcp_congestion_control", 0, NOTHING},
    {"congestion", DOCTOR_GOOD, "cubic", 0,
     {{SYSCTL "net/ipv4/tcp_congestion_control", "cubic\n"}}},
    {"congestion", DOCTOR_NOTE, "tcp_congestion_control is bbr", 0,
     {{SYSCTL "net/ipv4/tcp_congestion_control", "bbr\n"}}},
    {"open-files", DOCTOR_UNKNOWN, "limits", 0, NOTHING},
    {"open-files", DOCTOR_GOOD, "1048576 files", 0,
     {LIMITS("Max open files  1024  1048576  files")}},
    {"open-files", DOCTOR_BAD, "512 files may be open; -c 1024", 0,
     {LIMITS("Max open files  512  512  files")}},
    {"open-files", DOCTOR_WARN, "1030 files", 0,
     {LIMITS("Max open files  1030  1030  files")}},
    {"open-files", DOCTOR_GOOD, "raises", AS_ROOT,
     {LIMITS("Max open files  5  5  files")}},
    {"open-files", DOCTOR_BAD, "512 files", RUNNING,
     {{"/proc/77/limits", "Max open files   512   4096   files\n"}}},
    {"listeners", DOCTOR_WARN, "listens on all addresses, with no auth", 0, NOTHING},
    {"listeners", DOCTOR_BAD, "also for UDP", WITH_UDP, NOTHING},
    {"listeners", DOCTOR_NOTE, "addresses of a network", ONE_ADDRESS, NOTHING},
    {"listeners", DOCTOR_NOTE, "TLS without certificates", WITH_TLS, NOTHING},
    {"listeners", DOCTOR_GOOD, "this host", LOCAL, NOTHING},
    {"listeners", DOCTOR_GOOD, "with authentication", WITH_PASSWORD, NOTHING},
};
/* clang-format on */

/* ---- running them --------------------------------------------------------------------- */

static const char *stat_later;

static void
let_pass(void)
{
    if (stat_later != NULL) {
        put_file("/proc/stat", stat_later);
    }
}

static struct doctor_conf
usual_conf(void)
{
    return (struct doctor_conf){
        .root = root,
        .pause = let_pass,
        .threads = 4,
        .max_conns = 1024,
        .files_least = 1024,
        .files = 1050,
        .backlog = 1024,
        .memory_bytes = 64 << 20,
        .locked_bytes = 128 << 20,
        .item_max = 1 << 20,
        .reach = DOCTOR_REACH_WORLD,
    };
}

/* The report on a host with these files. */
static void
examine(struct doctor_conf *conf, const struct file *files, struct doctor_report *report)
{
    make_root();
    put_file("/proc/self/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t0-3\n");
    put_file("/sys/devices/system/cpu/online", "0-3\n");
    put_file("/proc/77/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t0-3\n");
    stat_later = NULL;
    for (const struct file *f = files; f->path != NULL; f++) {
        if (strcmp(f->path, LATER) == 0) {
            stat_later = f->text;
        } else {
            put_file(f->path, f->text);
        }
    }
    conf->root = root;
    doctor_examine(conf, report);
    remove_root();
}

static const struct doctor_finding *
finding_of(const struct doctor_report *report, const char *name)
{
    for (unsigned i = 0; i < report->count; i++) {
        if (strcmp(report->list[i].check->name, name) == 0) {
            return &report->list[i];
        }
    }
    ck_abort_msg("no check %s", name);
}

TEST_ROWS(hosts_are_examined, rows, row->check)
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    set_conf(&conf, row->set);
    examine(&conf, row->files, &report);
    const struct doctor_finding *f = finding_of(&report, row->check);
    ck_assert_msg(f->level == row->level, "level %d: %s", (int)f->level, f->found);
    expect_part(f->found, row->part);
}

TEST(limit_of_all_cpus)
{
    static struct doctor_report report;
    static const struct file files[] = {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
                                        {CPU "cpu1/cpuidle/state0/name", "C6\n"},
                                        {"/dev/cpu_dma_latency", ""},
                                        {NULL, NULL}};
    struct doctor_conf conf = usual_conf();
    char path[SCRATCH_PATH + 64];
    int32_t us = 20;
    examine(&conf, files, &report);
    ck_assert_int_eq(finding_of(&report, "idle-states")->level, DOCTOR_WARN);
    make_root();
    for (int i = 0; i < 3; i++) {
        put_file(files[i].path, files[i].text);
    }
    put_file("/proc/self/task/1/status", "Cpus_allowed_list:\t0-3\n");
    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", root);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&us, sizeof us, 1, file), 1);
    fclose(file);
    doctor_examine(&conf, &report);
    remove_root();
    ck_assert_int_eq(finding_of(&report, "idle-states")->level, DOCTOR_GOOD);
}

/* An empty tree is no good host: what is not mounted is not known. */
TEST(nothing_is_known_without_proc_and_sys)
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    make_root();
    conf.root = root;
    doctor_examine(&conf, &report);
    remove_root();
    for (unsigned i = 0; i < report.count; i++) {
        const struct doctor_finding *f = &report.list[i];
        ck_assert_msg(f->check->path == NULL || f->level == DOCTOR_UNKNOWN, "%s: %s",
                      f->check->name, f->found);
    }
    expect_part(finding_of(&report, "irqbalance")->found, "/proc is not mounted here");
    expect_part(finding_of(&report, "governor")->found, "/sys is not mounted here");
}

/* ---- what is told --------------------------------------------------------------------- */

/* Each check has a host where all is well and one where it is not. */
TEST(no_check_is_forgotten)
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    examine(&conf, &(struct file){NULL, NULL}, &report);
    for (unsigned i = 0; i < report.count; i++) {
        const char *name = report.list[i].check->name;
        unsigned good = 0, other = 0;
        for (int r = 0; r < ROWS(rows); r++) {
            if (strcmp(rows[r].check, name) == 0) {
                good += rows[r].level == DOCTOR_GOOD;
                other += rows[r].level < DOCTOR_UNKNOWN;
            }
        }
        ck_assert_msg(good > 0 && other > 0, "%s", name);
    }
}

/* The text of all checks, each as if something had been found. */
static char *
print_all(const struct doctor_report *report)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(out);
    doctor_print(report, true, out);
    fclose(out);
    return text;
}

TEST(text_fits_into_80_columns)
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    examine(&conf, &(struct file){NULL, NULL}, &report);
    for (unsigned i = 0; i < report.count; i++) {
        report.list[i].level = DOCTOR_BAD;
        snprintf(report.list[i].value, sizeof report.list[i].value, "enp65s0");
    }
    FREED char *text = print_all(&report);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ck_assert_msg(strcspn(line, "\n") <= 80, "%.100s", line);
    }
    expect_part(text, "  now       systemctl set-property --runtime memcached-qos "
                      "CPUQuota=enp65s0%\n");
    expect_part(text, "echo 0 > /sys/class/net/enp65s0/gro_flush_timeout\n");
}

/* What has been done already is no remedy. */
static const struct {
    unsigned set;
    const char *mend;
} pinning_rows[] = {
    {0, "  now       start with --pin; --pin-dry-run shows the plan\n"},
    {NOT_PINNED, "  now       --pin-dry-run with the same options says why\n"},
};

TEST_ROWS(remedy_for_workers_that_are_not_pinned, pinning_rows,
          row->set == 0 ? "not asked for" : "asked for")
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    set_conf(&conf, row->set);
    examine(&conf, &(struct file){NULL, NULL}, &report);
    FREED char *text = print_all(&report);
    expect_part(text, row->mend);
}

/* What is to be typed stands on one line. */
TEST(commands_are_not_broken)
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    examine(&conf, &(struct file){NULL, NULL}, &report);
    for (unsigned i = 0; i < report.count; i++) {
        const struct doctor_check *c = report.list[i].check;
        const char *const texts[] = {c->mend, c->stay != NULL ? c->stay : ""};
        ck_assert(c->wanted != NULL && c->why != NULL && c->mend != NULL);
        for (int t = 0; t < ROWS(texts); t++) {
            for (const char *p = texts[t]; *p != '\0'; p += *p == '\n') {
                size_t len = strcspn(p, "\n");
                ck_assert_msg(len <= DOCTOR_TEXT_COLUMNS, "%s: %.*s", c->name, (int)len,
                              p);
                p += len;
            }
        }
    }
}

TEST(worst_comes_first)
{
    static struct doctor_report report;
    static const struct file files[] = {{"/proc/13/comm", "irqbalance\n"},
                                        CGROUPS("cpu.max", "150000 100000\n"),
                                        {NULL, NULL}};
    struct doctor_conf conf = usual_conf();
    examine(&conf, files, &report);
    ck_assert(doctor_has_complaints(&report));
    ck_assert_str_eq(report.list[0].check->name, "cpu-quota");
    ck_assert_uint_eq(report.of_level[DOCTOR_BAD], 1);
    for (unsigned i = 1; i < report.count; i++) {
        ck_assert_int_le(report.list[i - 1].level, report.list[i].level);
    }
    FREED char *text = print_all(&report);
    expect_part(text,
                "BAD   cpu-quota\n"
                "  found     a quota of 1.50 CPUs for 4 workers, of the control group a\n"
                "  wanted    400 % of a CPU, or fewer workers\n");
    expect_part(text,
                "good     governor           the kernel does not scale frequencies\n");
    report.of_level[DOCTOR_BAD] = report.of_level[DOCTOR_WARN] = 0;
    ck_assert(!doctor_has_complaints(&report));
}

/* The limit is raised where it is set. */
TEST(the_unit_that_sets_a_limit)
{
    static struct doctor_report report;
    static const struct file files[] = {
        {"/proc/self/cgroup", "0::/web.slice/mc.service\n"},
        {"/proc/self/mountinfo", "24 22 0:21 / /cg rw - cgroup2 cgroup2 rw\n"},
        {"/cg/web.slice/cpu.max", "150000 100000\n"},
        {"/cg/web.slice/mc.service/cpu.max", "max 100000\n"},
        {NULL, NULL}};
    struct doctor_conf conf = usual_conf();
    examine(&conf, files, &report);
    FREED char *text = print_all(&report);
    expect_part(text, "for 4 workers, of the control group web.slice\n");
    expect_part(text, "systemctl set-property --runtime web.slice CPUQuota=400%\n");
}

/* Who is root already, as in a container, is not told to become it. */
TEST(remedy_for_those_who_may_not)
{
    struct doctor_finding f = {0};
    errno = EPERM;
    finding_unread(&f, "/a", NULL);
    expect_part(f.found, geteuid() != 0
                             ? "Operation not permitted; run as root"
                             : "Operation not permitted, not even by root here");
}

/* Commands name the unit that the server is. */
static const struct {
    const char *cgroup, *unit;
} unit_rows[] = {
    {"0::/system.slice/memcached-qos@web.service\n", "memcached-qos@web"},
    {"4:cpu:/system.slice/mc.service\n0::/\n", "mc"},
    {"0::/user.slice/session-1.scope\n", "memcached-qos"},
    {"0::/.service\n", "memcached-qos"},
    {"", "memcached-qos"},
};

TEST_ROWS(units_are_named, unit_rows, row->unit)
{
    static struct doctor_report report;
    const struct file files[] = {{"/proc/77/cgroup", row->cgroup}, {NULL, NULL}};
    struct doctor_conf conf = usual_conf();
    set_conf(&conf, RUNNING);
    examine(&conf, files, &report);
    ck_assert_str_eq(report.unit, row->unit);
    report.list[0].check = finding_of(&report, "cpu-quota")->check;
    report.list[0].level = DOCTOR_BAD;
    char expected[128];
    snprintf(expected, sizeof expected,
             "  for good  systemctl set-property %s CPUQuota=", row->unit);
    FREED char *text = print_all(&report);
    expect_part(text, expected);
}

/* Without a format of its own, the rest of an option's text does no harm. */
TEST(json_is_escaped)
{
    static struct doctor_report report;
    struct doctor_conf conf = usual_conf();
    char *text;
    size_t len;
    examine(&conf, &(struct file){NULL, NULL}, &report);
    snprintf(report.list[0].found, sizeof report.list[0].found, "a\"b\\c\td\xe4");
    FILE *out = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(out);
    doctor_print_json(&report, out);
    fclose(out);
    expect_part(text, "\"found\": \"a\\\"b\\\\c\\u0009d\\u00e4\"");
    ck_assert_uint_eq(count_of(text, "\"name\": "), report.count);
    free(text);
}
