/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Each check of --doctor on made-up hosts: what level it finds, and what it says.
 */
#include "doctor/check.h"

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

/* ---- settings ------------------------------------------------------------------------- */

static void
pinned(struct doctor_conf *c)
{
    c->is_pinned = true;
    cpumask_add(&c->workers, 0);
    cpumask_add(&c->workers, 2);
}

static void
two_workers(struct doctor_conf *c)
{
    c->threads = 2;
}

static void
one_worker(struct doctor_conf *c)
{
    c->threads = 1;
}

static void
fifo(struct doctor_conf *c)
{
    c->sched = "fifo:1";
    c->is_realtime = true;
}

static void
locked(struct doctor_conf *c)
{
    c->locks_memory = true;
}

static void
root_locked(struct doctor_conf *c)
{
    c->locks_memory = c->may_raise = true;
}

static void
large_items(struct doctor_conf *c)
{
    c->item_max = 32 << 20;
}

static void
bound_memory(struct doctor_conf *c)
{
    c->has_membind = true;
}

static void
suspending(struct doctor_conf *c)
{
    c->suspends_irqs = true;
}

static void
as_root(struct doctor_conf *c)
{
    c->may_raise = true;
}

static void
local(struct doctor_conf *c)
{
    c->reach = DOCTOR_REACH_HOST;
}

static void
one_address(struct doctor_conf *c)
{
    c->reach = DOCTOR_REACH_SOME;
}

static void
with_udp(struct doctor_conf *c)
{
    c->has_udp = true;
}

static void
with_tls(struct doctor_conf *c)
{
    c->guard = DOCTOR_GUARD_TLS;
}

static void
with_password(struct doctor_conf *c)
{
    c->guard = DOCTOR_GUARD_CLIENT;
}

static void
running(struct doctor_conf *c)
{
    c->process = 77;
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
    void (*set)(struct doctor_conf *c);
    struct file files[12];
} rows[] = {
    {"cpu-quota", DOCTOR_GOOD, "no quota", NULL, NOTHING},
    {"cpu-quota", DOCTOR_BAD, "1.50 CPUs for 4 workers", NULL,
     {CGROUPS("cpu.max", "150000 100000\n")}},
    {"cpu-quota", DOCTOR_GOOD, "4.00 CPUs", NULL,
     {CGROUPS("cpu.max", "400000 100000\n")}},
    {"cpu-quota", DOCTOR_BAD, "0.50 CPUs", running,
     {{"/proc/77/cgroup", "0::/b\n"},
      {"/proc/self/mountinfo", "24 22 0:21 / /cg rw - cgroup2 cgroup2 rw\n"},
      {"/cg/b/cpu.max", "50000 100000\n"}}},
    {"cpu-quota", DOCTOR_BAD, "0.25 CPUs", NULL,
     {{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
      {"/proc/self/mountinfo", "30 23 0:26 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
      {"/cpu/a/cpu.cfs_quota_us", "25000\n"},
      {"/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    {"cpuset", DOCTOR_GOOD, "4 workers may use 4 CPUs: 0-3", NULL, NOTHING},
    {"cpuset", DOCTOR_WARN, "4 workers may use 2 CPUs: 1,3", NULL,
     {{"/proc/self/task/1/status", "Name:\tmemcached\nCpus_allowed_list:\t1,3\n"}}},
    {"cpuset", DOCTOR_UNKNOWN, "could not be read", NULL,
     {{"/proc/self/task/1/status", "Name:\tmemcached\n"}}},
    /* The main thread of a pinned server has the CPUs that are left. */
    {"cpuset", DOCTOR_GOOD, "2 workers may use 4 CPUs", running,
     {{"/proc/77/task/77/status", "Name:\tmemcached\nCpus_allowed_list:\t1,3\n"},
      {"/proc/77/task/78/status", "Name:\tmc-worker 0\nCpus_allowed_list:\t0\n"},
      {"/proc/77/task/79/status", "Name:\tmc-worker 1\nCpus_allowed_list:\t2\n"}}},
    {"pinning", DOCTOR_NOTE, "4 workers are not pinned", NULL, NOTHING},
    {"pinning", DOCTOR_GOOD, "pinned", pinned, NOTHING},
    {"pinning", DOCTOR_GOOD, "one worker", one_worker, NOTHING},
    {"pinning", DOCTOR_GOOD, "are pinned", running,
     {{"/proc/77/task/78/status", "Name:\tmc-worker 0\nCpus_allowed_list:\t0\n"}}},
    {"smt-siblings", DOCTOR_GOOD, "no worker is pinned", NULL, NOTHING},
    {"smt-siblings", DOCTOR_GOOD, "share no core", pinned,
     {{CPU "cpu0/topology/thread_siblings_list", "0\n"},
      {CPU "cpu2/topology/thread_siblings_list", "0,2\n"}}},
    {"smt-siblings", DOCTOR_WARN, "CPUs 1 share cores with workers; up to 80 % busy", pinned,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"},
      {"/proc/stat", STAT("9 9 9 9 9 9 9 9", "100 0 0 100 0 0 0 0")},
      {LATER, STAT("9 9 9 9 9 9 9 9", "150 10 20 120 0 0 0 0")}}},
    {"smt-siblings", DOCTOR_GOOD, "CPUs 1 share cores with workers, less than 20 %", pinned,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"},
      {"/proc/stat", STAT("9 9 9 9 9 9 9 9", "100 0 0 100 0 0 0 0")},
      {LATER, STAT("9 9 9 9 9 9 9 9", "101 0 0 199 0 0 0 0")}}},
    {"smt-siblings", DOCTOR_UNKNOWN, "/proc/stat", pinned,
     {{CPU "cpu0/topology/thread_siblings_list", "0-1\n"}}},
    {"steal", DOCTOR_UNKNOWN, "/proc/stat", NULL, NOTHING},
    {"steal", DOCTOR_UNKNOWN, "/proc/stat", NULL, {{"/proc/stat", "cpu  1 2 x\n"}}},
    {"steal", DOCTOR_GOOD, "0.1 %", NULL,
     {{"/proc/stat", STAT("500 0 499 0 0 0 0 1", "1 1 1 1 1 1 1 1")}}},
    {"steal", DOCTOR_NOTE, "1.0 %", NULL,
     {{"/proc/stat", STAT("500 0 490 0 0 0 0 10", "1 1 1 1 1 1 1 1")}}},
    {"steal", DOCTOR_WARN, "20.0 %", NULL,
     {{"/proc/stat", STAT("500 0 300 0 0 0 0 200", "1 1 1 1 1 1 1 1")}}},
    {"idle-states", DOCTOR_GOOD, "no idle state", NULL, NOTHING},
    {"idle-states", DOCTOR_WARN, "C6: 133 us", NULL,
     {{CPU "cpu1/cpuidle/state0/latency", "0\n"},
      {CPU "cpu1/cpuidle/state1/latency", "133\n"},
      {CPU "cpu1/cpuidle/state1/name", "C6\n"},
      {CPU "cpu1/cpuidle/state1/disable", "0\n"}}},
    {"idle-states", DOCTOR_GOOD, "C1: 2 us", NULL,
     {{CPU "cpu1/cpuidle/state0/latency", "2\n"},
      {CPU "cpu1/cpuidle/state0/name", "C1\n"},
      {CPU "cpu1/cpuidle/state1/latency", "133\n"},
      {CPU "cpu1/cpuidle/state1/disable", "1\n"}}},
    {"idle-states", DOCTOR_GOOD, "no idle state", NULL,
     {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
      {CPU "cpu1/cpuidle/state0/name", "C6\n"},
      {CPU "cpu1/power/pm_qos_resume_latency_us", "20\n"}}},
    {"idle-states", DOCTOR_GOOD, "no idle state", NULL,
     {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
      {CPU "cpu1/cpuidle/state0/name", "C6\n"},
      {CPU "cpu1/power/pm_qos_resume_latency_us", "n/a\n"}}},
    {"idle-states", DOCTOR_WARN, "C6", NULL,
     {{CPU "cpu1/cpuidle/state0/latency", "133\n"},
      {CPU "cpu1/cpuidle/state0/name", "C6\n"},
      {CPU "cpu1/power/pm_qos_resume_latency_us", "0\n"}}},
    {"governor", DOCTOR_GOOD, "does not scale", NULL, NOTHING},
    {"governor", DOCTOR_WARN, "schedutil on CPUs 1,3", NULL,
     {{CPU "cpu0/cpufreq/scaling_governor", "performance\n"},
      {CPU "cpu1/cpufreq/scaling_governor", "schedutil\n"},
      {CPU "cpu3/cpufreq/scaling_governor", "schedutil\n"}}},
    {"governor", DOCTOR_GOOD, "performance", NULL,
     {{CPU "cpu0/cpufreq/scaling_governor", "performance\n"}}},
    {"turbo", DOCTOR_GOOD, "no switch", NULL, NOTHING},
    {"turbo", DOCTOR_NOTE, "are on", NULL, {{CPU "intel_pstate/no_turbo", "0\n"}}},
    {"turbo", DOCTOR_GOOD, "are off", NULL, {{CPU "intel_pstate/no_turbo", "1\n"}}},
    {"turbo", DOCTOR_NOTE, "are on", NULL, {{CPU "cpufreq/boost", "1\n"}}},
    {"clock", DOCTOR_UNKNOWN, "could not be read", NULL, NOTHING},
    {"clock", DOCTOR_GOOD, "tsc", NULL,
     {{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"}}},
    {"clock", DOCTOR_WARN, "hpet", NULL,
     {{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"}}},
    {"mitigations", DOCTOR_GOOD, "lists none", NULL, NOTHING},
    {"mitigations", DOCTOR_NOTE, "PTI", NULL,
     {{CPU "vulnerabilities/meltdown", "Mitigation: PTI\n"}}},
    {"mitigations", DOCTOR_GOOD, "Not affected", NULL,
     {{CPU "vulnerabilities/meltdown", "Not affected\n"}}},

    {"autogroup", DOCTOR_GOOD, "no autogroups", NULL, NOTHING},
    {"autogroup", DOCTOR_NOTE, "one session", NULL,
     {{SYSCTL "kernel/sched_autogroup_enabled", "1\n"}}},
    {"autogroup", DOCTOR_GOOD, "off", NULL,
     {{SYSCTL "kernel/sched_autogroup_enabled", "0\n"}}},
    {"autogroup", DOCTOR_GOOD, "control group", NULL,
     {{SYSCTL "kernel/sched_autogroup_enabled", "1\n"}, CGROUPS("cpu.weight", "100\n")}},
    {"sched-slice", DOCTOR_NOTE, "could not be read", NULL, NOTHING},
    {"sched-slice", DOCTOR_NOTE, "slices of 2800 us", NULL,
     {{"/sys/kernel/debug/sched/base_slice_ns", "2800000\n"}}},
    {"sched-slice", DOCTOR_GOOD, "slices of 750 us", NULL,
     {{SYSCTL "kernel/sched_min_granularity_ns", "750000\n"}}},
    {"sched-slice", DOCTOR_GOOD, "--sched=fifo:1", fifo,
     {{"/sys/kernel/debug/sched/base_slice_ns", "2800000\n"}}},
    {"sched-features", DOCTOR_UNKNOWN, "run as root, with debugfs", NULL, NOTHING},
    {"sched-features", DOCTOR_WARN, "PREEMPT_SHORT is off", NULL,
     {{"/sys/kernel/debug/sched/features",
       "WAKEUP_PREEMPTION NO_PREEMPT_SHORT NO_HRTICK \n"}}},
    {"sched-features", DOCTOR_NOTE, "HRTICK is off", NULL,
     {{"/sys/kernel/debug/sched/features",
       "PREEMPT_SHORT WAKEUP_PREEMPTION NO_HRTICK NO_HRTICK_DL \n"}}},
    {"sched-features", DOCTOR_GOOD, "are on", NULL,
     {{"/sys/kernel/debug/sched/features",
       "PREEMPT_SHORT WAKEUP_PREEMPTION HRTICK NO_HRTICK_DL \n"}}},
    {"sched-features", DOCTOR_GOOD, "are on", fifo,
     {{"/sys/kernel/debug/sched/features", "NO_HRTICK \n"}}},
    {"rt-budget", DOCTOR_GOOD, "no worker", NULL, NOTHING},
    {"rt-budget", DOCTOR_GOOD, "no limit", fifo, NOTHING},
    {"rt-budget", DOCTOR_BAD, "0 in /cpu/a/cpu.rt_runtime_us", fifo,
     {{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
      {"/proc/self/mountinfo", "30 23 0:26 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
      {"/cpu/a/cpu.rt_runtime_us", "0\n"}}},

    {"memory-limit", DOCTOR_GOOD, "no limit", NULL, NOTHING},
    {"memory-limit", DOCTOR_BAD, "a limit of 64 MB; -m 64", NULL,
     {CGROUPS("memory.max", "67108864\n")}},
    {"memory-limit", DOCTOR_WARN, "a limit of 80 MB; -m 64 takes about 87 MB", NULL,
     {CGROUPS("memory.max", "83886080\n")}},
    {"memory-limit", DOCTOR_GOOD, "a limit of 256 MB", NULL,
     {CGROUPS("memory.max", "268435456\n")}},
    {"memory-host", DOCTOR_UNKNOWN, "/proc/meminfo", NULL, NOTHING},
    {"memory-host", DOCTOR_BAD, "10 of 48 MB", NULL,
     {{"/proc/meminfo", "MemTotal: 50000 kB\nMemAvailable: 10300 kB\n"}}},
    {"memory-host", DOCTOR_WARN, "48 of 976 MB", NULL,
     {MEMINFO("MemAvailable:   50000 kB\n")}},
    {"memory-host", DOCTOR_GOOD, "48 of 976 MB", running,
     {MEMINFO("MemAvailable:   50000 kB\n")}},
    {"memory-host", DOCTOR_GOOD, "878 of 976 MB", NULL,
     {MEMINFO("MemAvailable:   900000 kB\n")}},
    {"overcommit", DOCTOR_UNKNOWN, "overcommit_memory", NULL, NOTHING},
    {"overcommit", DOCTOR_GOOD, "is 1", NULL, {{SYSCTL "vm/overcommit_memory", "1\n"}}},
    {"overcommit", DOCTOR_BAD, "0 MB", NULL,
     {{SYSCTL "vm/overcommit_memory", "2\n"},
      MEMINFO("CommitLimit: 1000 kB\nCommitted_AS: 2000 kB\n")}},
    {"overcommit", DOCTOR_NOTE, "488 MB", NULL,
     {{SYSCTL "vm/overcommit_memory", "2\n"},
      MEMINFO("CommitLimit: 700000 kB\nCommitted_AS: 200000 kB\n")}},
    {"memlock", DOCTOR_GOOD, "no memory is to be locked", NULL, NOTHING},
    {"memlock", DOCTOR_GOOD, "raises", root_locked, NOTHING},
    {"memlock", DOCTOR_UNKNOWN, "could not be read", locked, NOTHING},
    {"memlock", DOCTOR_GOOD, "no limit", locked,
     {LIMITS("Max locked memory  unlimited  unlimited  bytes")}},
    {"memlock", DOCTOR_WARN, "8 MB", locked,
     {LIMITS("Max locked memory  8388608  8388608  bytes")}},
    {"item-size", DOCTOR_GOOD, "1024 KB, of which -m 64 holds 64", NULL, NOTHING},
    {"item-size", DOCTOR_WARN, "32768 KB, of which -m 64 holds 2", large_items, NOTHING},
    {"huge-pages", DOCTOR_GOOD, "has none", NULL, NOTHING},
    {"huge-pages", DOCTOR_WARN, "enabled is always", NULL,
     {{THP "enabled", "[always] madvise never\n"}}},
    {"huge-pages", DOCTOR_GOOD, "enabled is madvise", NULL,
     {{THP "enabled", "always [madvise] never\n"}}},
    {"huge-pages", DOCTOR_UNKNOWN, "could not be read", NULL,
     {{THP "enabled", "always\n"}}},
    {"huge-pages-defrag", DOCTOR_WARN, "defrag is always", NULL,
     {{THP "defrag", "[always] defer defer+madvise madvise never\n"}}},
    {"huge-pages-defrag", DOCTOR_GOOD, "defrag is madvise", NULL,
     {{THP "defrag", "always defer defer+madvise [madvise] never\n"}}},
    {"swap", DOCTOR_UNKNOWN, "/proc/meminfo", NULL, NOTHING},
    {"swap", DOCTOR_GOOD, "no swap", NULL, {SWAP("0", "0")}},
    {"swap", DOCTOR_NOTE, "0 of 976 MB", NULL, {SWAP("1000000", "1000000")}},
    {"swap", DOCTOR_WARN, "195 of 976 MB", NULL, {SWAP("1000000", "800000")}},
    {"swap", DOCTOR_GOOD, "-k", locked, {SWAP("1000000", "800000")}},
    {"swap", DOCTOR_BAD, "120 KB of the server", running,
     {SWAP("1000000", "800000"), {"/proc/77/status", "VmSwap:\t     120 kB\n"}}},
    {"swappiness", DOCTOR_GOOD, "no swap", NULL, {SWAP("0", "0")}},
    {"swappiness", DOCTOR_NOTE, "60", NULL,
     {SWAP("10", "10"), {SYSCTL "vm/swappiness", "60\n"}}},
    {"swappiness", DOCTOR_GOOD, "1", NULL,
     {SWAP("10", "10"), {SYSCTL "vm/swappiness", "1\n"}}},
    {"memory-nodes", DOCTOR_GOOD, "one memory node", NULL, NOTHING},
    {"memory-nodes", DOCTOR_WARN, "on 2 of 2 memory nodes, without", NULL, {NODES}},
    {"memory-nodes", DOCTOR_NOTE, "on 2 of 2 memory nodes, with --membind", bound_memory,
     {NODES}},
    {"memory-nodes", DOCTOR_GOOD, "on 1 of 2", NULL,
     {NODES, {"/proc/self/task/1/status", "Cpus_allowed_list:\t2-3\n"}}},
    {"numa-balancing", DOCTOR_GOOD, "one memory node", NULL,
     {{SYSCTL "kernel/numa_balancing", "1\n"}}},
    {"numa-balancing", DOCTOR_WARN, "numa_balancing is 1", NULL,
     {NODES, {SYSCTL "kernel/numa_balancing", "1\n"}}},
    {"numa-balancing", DOCTOR_GOOD, "has none", NULL, {NODES}},
    {"zone-reclaim", DOCTOR_WARN, "zone_reclaim_mode is 1", NULL,
     {NODES, {SYSCTL "vm/zone_reclaim_mode", "1\n"}}},
    {"zone-reclaim", DOCTOR_GOOD, "is 0", NULL,
     {NODES, {SYSCTL "vm/zone_reclaim_mode", "0\n"}}},

    {"irqbalance", DOCTOR_GOOD, "does not run", NULL, {{"/proc/12/comm", "memcached\n"}}},
    {"irqbalance", DOCTOR_WARN, "/proc/13/comm", NULL,
     {{"/proc/13/comm", "irqbalance\n"}}},
    {"nic-interrupts", DOCTOR_GOOD, "no network card", NULL, NOTHING},
    {"nic-interrupts", DOCTOR_GOOD, "on this host only", local,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "0")}},
    {"nic-interrupts", DOCTOR_WARN, "2 queues are all on CPU 0", NULL,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "0")}},
    {"nic-interrupts", DOCTOR_GOOD, "2 interrupts on CPUs 0-1", NULL,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "1")}},
    {"nic-interrupts", DOCTOR_NOTE, "those of 1 of 2 workers", pinned,
     {CARD, QUEUE(0), QUEUE(1), IRQ(30, "0"), IRQ(31, "1")}},
    {"nic-interrupts", DOCTOR_GOOD, "no network card", NULL,
     {{ETH "device/vendor", "0x1\n"},
      {ETH "operstate", "down\n"},
      QUEUE(0),
      QUEUE(1),
      IRQ(30, "0"),
      IRQ(31, "0")}},
    /* A part of another device; and of two cards the one with the worse finding. */
    {"nic-interrupts", DOCTOR_WARN, "eth1: the interrupts of 2 queues", NULL,
     {CARD,
      QUEUE(0),
      {"/sys/class/net/eth1/device/vendor", "0x1\n"},
      {"/sys/class/net/eth1/msi_irqs/40", "msix\n"},
      {"/proc/irq/40/smp_affinity_list", "3\n"},
      {"/sys/class/net/eth1/queues/rx-0/rps_cpus", "0\n"},
      {"/sys/class/net/eth1/queues/rx-1/rps_cpus", "0\n"}}},
    {"nic-queues", DOCTOR_WARN, "4 workers, receive queues: 1", NULL, {CARD, QUEUE(0)}},
    {"nic-queues", DOCTOR_GOOD, "those with RPS: 1", NULL,
     {CARD, {ETH "queues/rx-0/rps_cpus", "0,00000f\n"}}},
    {"nic-queues", DOCTOR_GOOD, "receive queues: 2", two_workers,
     {CARD, QUEUE(0), QUEUE(1)}},
    {"flow-steering", DOCTOR_GOOD, "RPS on 0 of 1 queues, RFS on 0", NULL,
     {CARD, QUEUE(0)}},
    {"flow-steering", DOCTOR_NOTE, "RPS on 1 of 1 queues, RFS on 0", NULL,
     {CARD,
      {ETH "queues/rx-0/rps_cpus", "f\n"},
      {ETH "queues/rx-0/rps_flow_cnt", "0\n"}}},
    {"flow-steering", DOCTOR_NOTE, "rps_sock_flow_entries 32768", NULL,
     {CARD, QUEUE(0), {SYSCTL "net/core/rps_sock_flow_entries", "32768\n"}}},
    {"flow-steering", DOCTOR_GOOD, "RFS on 1", NULL,
     {CARD,
      {ETH "queues/rx-0/rps_cpus", "f\n"},
      {ETH "queues/rx-0/rps_flow_cnt", "4096\n"},
      {SYSCTL "net/core/rps_sock_flow_entries", "32768\n"}}},
    {"transmit-steering", DOCTOR_GOOD, "0 of 1", NULL,
     {CARD, {ETH "queues/tx-0/xps_cpus", "0\n"}}},
    {"transmit-steering", DOCTOR_NOTE, "0 of 2", NULL,
     {CARD, {ETH "queues/tx-0/xps_cpus", "0\n"}, {ETH "queues/tx-1/xps_cpus", "0\n"}}},
    {"transmit-steering", DOCTOR_GOOD, "2 of 2", NULL,
     {CARD, {ETH "queues/tx-0/xps_cpus", "1\n"}, {ETH "queues/tx-1/xps_cpus", "2\n"}}},
    {"gro-flush", DOCTOR_GOOD, "is 0 us", NULL, {CARD, {ETH "gro_flush_timeout", "0\n"}}},
    {"gro-flush", DOCTOR_WARN, "is 200 us", NULL,
     {CARD, {ETH "gro_flush_timeout", "200000\n"}}},
    {"gro-flush", DOCTOR_GOOD, "is 200 us", suspending,
     {CARD, {ETH "gro_flush_timeout", "200000\n"}}},
    {"busy-poll", DOCTOR_GOOD, "does not poll", NULL, NOTHING},
    {"busy-poll", DOCTOR_NOTE, "busy_poll is 50, busy_read 0", NULL,
     {{SYSCTL "net/core/busy_poll", "50\n"}, {SYSCTL "net/core/busy_read", "0\n"}}},
    {"somaxconn", DOCTOR_WARN, "128, and -b asks for 1024", NULL,
     {{SYSCTL "net/core/somaxconn", "128\n"}}},
    {"somaxconn", DOCTOR_GOOD, "4096", NULL, {{SYSCTL "net/core/somaxconn", "4096\n"}}},
    {"somaxconn", DOCTOR_UNKNOWN, "somaxconn", NULL, NOTHING},
    {"syn-backlog", DOCTOR_NOTE, "512, and -b asks for 1024", NULL,
     {{SYSCTL "net/ipv4/tcp_max_syn_backlog", "512\n"}}},
    {"syn-backlog", DOCTOR_GOOD, "1024", NULL,
     {{SYSCTL "net/ipv4/tcp_max_syn_backlog", "1024\n"}}},
    {"congestion", DOCTOR_UNKNOWN, "tcp_congestion_control", NULL, NOTHING},
    {"congestion", DOCTOR_GOOD, "cubic", NULL,
     {{SYSCTL "net/ipv4/tcp_congestion_control", "cubic\n"}}},
    {"congestion", DOCTOR_NOTE, "bbr, with the queue discipline fq", NULL,
     {{SYSCTL "net/ipv4/tcp_congestion_control", "bbr\n"},
      {SYSCTL "net/core/default_qdisc", "fq\n"}}},
    {"open-files", DOCTOR_UNKNOWN, "limits", NULL, NOTHING},
    {"open-files", DOCTOR_GOOD, "1048576 files", NULL,
     {LIMITS("Max open files  1024  1048576  files")}},
    {"open-files", DOCTOR_BAD, "512 files may be open; -c 1024", NULL,
     {LIMITS("Max open files  512  512  files")}},
    {"open-files", DOCTOR_WARN, "1030 files", NULL,
     {LIMITS("Max open files  1030  1030  files")}},
    {"open-files", DOCTOR_GOOD, "raises", as_root,
     {LIMITS("Max open files  5  5  files")}},
    {"open-files", DOCTOR_BAD, "512 files", running,
     {{"/proc/77/limits", "Max open files   512   4096   files\n"}}},
    {"listeners", DOCTOR_WARN, "listens on all addresses, with no auth", NULL, NOTHING},
    {"listeners", DOCTOR_BAD, "also for UDP", with_udp, NOTHING},
    {"listeners", DOCTOR_NOTE, "addresses of a network", one_address, NOTHING},
    {"listeners", DOCTOR_NOTE, "TLS without certificates", with_tls, NOTHING},
    {"listeners", DOCTOR_GOOD, "this host", local, NOTHING},
    {"listeners", DOCTOR_GOOD, "with authentication", with_password, NOTHING},
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
        .files = 1050,
        .backlog = 1024,
        .memory_bytes = 64 << 20,
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
    if (row->set != NULL) {
        row->set(&conf);
    }
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
    expect_part(text, "  now       systemctl set-property --runtime memcached "
                      "CPUQuota=enp65s0%\n");
    expect_part(text, "echo 0 > /sys/class/net/enp65s0/gro_flush_timeout\n");
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
    expect_part(text, "BAD   cpu-quota\n"
                      "  found     a quota of 1.50 CPUs for 4 workers\n"
                      "  wanted    400 % of a CPU, or fewer workers\n");
    expect_part(text,
                "good     governor           the kernel does not scale frequencies\n");
    report.of_level[DOCTOR_BAD] = report.of_level[DOCTOR_WARN] = 0;
    ck_assert(!doctor_has_complaints(&report));
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
