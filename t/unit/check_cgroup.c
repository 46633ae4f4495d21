/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What control groups say, on trees made up for the purpose; and what the kernel says of
 * threads and CPUs.
 */
#include "place/cgroup.h"

#include "base/clock.h"
#include "check_main.h"
#include "check_tree.h"
#include "place/cpustat.h"
#include "place/threadstat.h"

#define V1_MOUNT                                                                         \
    "30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup "       \
    "rw,cpu,cpuacct\n"
#define V1_OTHER "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
#define V2_MOUNT "24 22 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

struct file {
    const char *path, *text;
};

#define CPU "/sys/fs/cgroup/cpu,cpuacct"
#define V2 "/sys/fs/cgroup"

static const struct {
    const char *name, *cgroup, *mounts;
    struct file files[6];
    unsigned quota_milli;
    bool is_grouped, lacks_rt;
} trees[] = {
    {"nothing there", NULL, NULL, {{NULL, NULL}}, 0, false, false},
    {"not mounted", "4:cpu,cpuacct:/a\n", V1_OTHER, {{NULL, NULL}}, 0, false, false},
    {"garbage", "lorem\n:::\n", "ipsum - - -\n - \n", {{NULL, NULL}}, 0, false, false},
    {"v1, no quota",
     "4:cpu,cpuacct:/a\n3:cpuset:/b\n",
     V1_OTHER V1_MOUNT,
     {{CPU "/a/cpu.cfs_quota_us", "-1\n"}, {CPU "/a/cpu.cfs_period_us", "100000\n"}},
     0,
     true,
     false},
    {"v1, a CPU and a half",
     "3:cpuset:/b\n4:cpuacct,cpu:/a\n0::/c\n",
     V1_OTHER V1_MOUNT,
     {{CPU "/a/cpu.cfs_quota_us", "150000\n"}, {CPU "/a/cpu.cfs_period_us", "100000\n"}},
     1500,
     true,
     false},
    {"v1, the group above is tighter",
     "4:cpu,cpuacct:/a/b/c\n",
     V1_MOUNT,
     {{CPU "/a/b/c/cpu.cfs_quota_us", "400000\n"},
      {CPU "/a/b/c/cpu.cfs_period_us", "100000\n"},
      {CPU "/a/cpu.cfs_quota_us", "25000\n"},
      {CPU "/a/cpu.cfs_period_us", "20000\n"},
      {CPU "/a/b/c/cpu.rt_runtime_us", "0\n"}},
     1250,
     true,
     true},
    {"v1, the root group has a budget",
     "4:cpu,cpuacct:/\n",
     V1_MOUNT,
     {{CPU "/cpu.rt_runtime_us", "950000\n"}},
     0,
     false,
     false},
    {"v1, a container sees its own part as /",
     "4:cpu,cpuacct:/docker/abc\n",
     "30 23 0:26 /docker/abc " CPU " ro - cgroup cgroup rw,cpu,cpuacct\n",
     {{CPU "/cpu.cfs_quota_us", "200000\n"}, {CPU "/cpu.cfs_period_us", "100000\n"}},
     2000,
     false,
     false},
    {"v1, a path that is not there",
     "4:cpu,cpuacct:/gone\n",
     V1_MOUNT,
     {{CPU "/cpu.cfs_quota_us", "1000\n"}, {CPU "/cpu.cfs_period_us", "3000\n"}},
     334,
     false,
     false},
    {"v2, no quota",
     "0::/a\n",
     V2_MOUNT,
     {{V2 "/a/cpu.max", "max 100000\n"}, {V2 "/a/cpu.weight", "100\n"}},
     0,
     true,
     false},
    {"v2, the tightest of three",
     "0::/a/b/c\n",
     V2_MOUNT,
     {{V2 "/a/b/c/cpu.max", "max 100000\n"},
      {V2 "/a/b/cpu.max", "350000 100000\n"},
      {V2 "/a/cpu.max", "400000 100000\n"},
      {V2 "/a/cpu.weight", "100\n"}},
     3500,
     true,
     false},
    {"v2, a container sees its own part as the top",
     "0::/\n",
     V2_MOUNT,
     {{V2 "/cpu.weight", "100\n"}},
     0,
     true,
     false},
    {"v2, without the controller",
     "0::/a/b\n",
     V2_MOUNT,
     {{V2 "/a/b/cgroup.procs", "1\n"}},
     0,
     false,
     false},
    {"v2, outside of the namespace",
     "0::/../x\n",
     V2_MOUNT,
     {{V2 "/cpu.max", "50000 100000\n"}},
     500,
     false,
     false},
    {"v2, senseless numbers",
     "0::/a\n",
     V2_MOUNT,
     {{V2 "/a/cpu.max", "0 0\n"}, {V2 "/cpu.max", "99999999999999999999 1\n"}},
     0,
     false,
     false},
};

#define V1_MEMORY                                                                        \
    "32 23 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
#define MEM "/sys/fs/cgroup/memory"
#define V1_NONE "9223372036854771712\n"

static const struct {
    const char *name, *cgroup, *mounts;
    struct file files[4];
    uint64_t bytes;
} memories[] = {
    {"nothing there", NULL, NULL, {{NULL, NULL}}, 0},
    {"v1, no limit",
     "5:memory:/a\n",
     V1_MOUNT V1_MEMORY,
     {{MEM "/a/memory.limit_in_bytes", V1_NONE}},
     0},
    {"v1, the group above is tighter",
     "4:cpu,cpuacct:/a\n5:memory:/b/c\n0::/d\n",
     V1_MOUNT V1_MEMORY,
     {{MEM "/b/c/memory.limit_in_bytes", "268435456\n"},
      {MEM "/b/memory.limit_in_bytes", "67108864\n"},
      {MEM "/memory.limit_in_bytes", V1_NONE}},
     67108864},
    {"v1, that of the cpu controller's group is another",
     "4:cpu,cpuacct:/a\n5:memory:/\n",
     V1_MOUNT V1_MEMORY,
     {{CPU "/a/memory.limit_in_bytes", "4096\n"},
      {MEM "/memory.limit_in_bytes", V1_NONE}},
     0},
    {"v2, no limit", "0::/a\n", V2_MOUNT, {{V2 "/a/memory.max", "max\n"}}, 0},
    {"v2, the tightest of three",
     "0::/a/b/c\n",
     V2_MOUNT,
     {{V2 "/a/b/c/memory.max", "max\n"},
      {V2 "/a/b/memory.max", "104857600\n"},
      {V2 "/a/memory.max", "209715200\n"}},
     104857600},
    {"v2, no number", "0::/a\n", V2_MOUNT, {{V2 "/a/memory.max", "64M\n"}}, 0},
};

static void
put_groups(const char *cgroup, const char *mounts, const struct file *files)
{
    make_root();
    if (cgroup != NULL) {
        put_file("/proc/self/cgroup", cgroup);
        put_file("/proc/self/mountinfo", mounts);
    }
    for (const struct file *f = files; f->path != NULL; f++) {
        put_file(f->path, f->text);
    }
}

TEST_LOOP(memory_limits_are_read, ROWS(memories))
{
    put_groups(memories[_i].cgroup, memories[_i].mounts, memories[_i].files);
    uint64_t bytes = cgroup_memory_bytes(root, CGROUP_SELF, NULL);
    remove_root();
    ck_assert_msg(bytes == memories[_i].bytes, "%s: %ju", memories[_i].name,
                  (uintmax_t)bytes);
}

TEST_LOOP(groups_are_read, ROWS(trees))
{
    char file[CGROUP_PATH_MAX];
    put_groups(trees[_i].cgroup, trees[_i].mounts, trees[_i].files);
    unsigned quota = cgroup_quota_milli(root, CGROUP_SELF, NULL);
    bool is_grouped = cgroup_is_grouped(root, CGROUP_SELF);
    bool lacks_rt = cgroup_lacks_rt_budget(root, CGROUP_SELF, file, sizeof file);
    remove_root();
    ck_assert_msg(quota == trees[_i].quota_milli, "%s: quota %u", trees[_i].name, quota);
    ck_assert_msg(is_grouped == trees[_i].is_grouped, "%s: grouped", trees[_i].name);
    ck_assert_msg(lacks_rt == trees[_i].lacks_rt, "%s: real time", trees[_i].name);
    if (lacks_rt) {
        ck_assert_ptr_nonnull(strstr(file, "/a/b/c/cpu.rt_runtime_us"));
    }
}

/* ---- threads and CPUs --------------------------------------------------------------------------- */

TEST(times_are_parsed)
{
    struct threadstat t = {0};
    ck_assert(threadstat_parse_times("123 4567 89\n", &t));
    ck_assert_uint_eq(t.run_ns, 123);
    ck_assert_uint_eq(t.wait_ns, 4567);
    ck_assert(!threadstat_parse_times("", &t));
    ck_assert(!threadstat_parse_times("12", &t));
    ck_assert(!threadstat_parse_times("12 x 3", &t));
    ck_assert(!threadstat_parse_times("99999999999999999999999 1 1", &t));
    ck_assert_uint_eq(t.run_ns, 123);
}

TEST(migrations_are_parsed)
{
    struct threadstat t = {0};
    ck_assert(threadstat_parse_migrations("a (1, #threads: 2)\n----\n"
                                          "se.exec_start    :   1.5\n"
                                          "se.nr_migrations                :      17\n"
                                          "nr_switches      :   3\n",
                                          &t));
    ck_assert_uint_eq(t.migrations, 17);
    ck_assert(!threadstat_parse_migrations("", &t));
    ck_assert(!threadstat_parse_migrations("\nse.nr_migrations ", &t));
    ck_assert(!threadstat_parse_migrations("\nse.nr_migrations : -\n", &t));
    ck_assert_uint_eq(t.migrations, 17);
}

/* Behind the state; each has its number but for that of the CPU, 39. */
#define STAT_END                                                                         \
    " 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 "                         \
    "25 26 27 28 29 30 31 32 33 34 35 36 37 38 17 40 41\n"

TEST(states_are_parsed)
{
    char state;
    int cpu;
    ck_assert(threadstat_parse_state("7 (mc-worker 0) S" STAT_END, &state, &cpu));
    ck_assert_int_eq(state, 'S');
    ck_assert_int_eq(cpu, 17);
    ck_assert(threadstat_parse_state("7 (a) R 1) R" STAT_END, &state, &cpu));
    ck_assert_int_eq(state, 'R');
    ck_assert(!threadstat_parse_state("", &state, &cpu));
    ck_assert(!threadstat_parse_state("7 (a)", &state, &cpu));
    ck_assert(!threadstat_parse_state("7 (a) R 1 2 3", &state, &cpu));
    ck_assert(!threadstat_waits_for(gettid(), sched_getcpu() + 1));
    ck_assert(!threadstat_waits_for(-1, 0));
}

TEST(kernel_tells_of_this_thread)
{
    struct threadstat t;
    if (access("/proc/self/schedstat", R_OK) == 0) {
        uint64_t last = 0;
        for (unsigned i = 0; i < 100; i++) { /* many within a tick */
            threadstat_read_times(gettid(), &t);
            ck_assert_uint_gt(t.run_ns, last);
            last = t.run_ns;
        }
        ck_assert_uint_le(last, clock_of_thread());
    }
    threadstat_read_times(-1, &t);
    ck_assert_uint_eq(t.run_ns, 0);
}

TEST_LOOP(cpus_are_read, 7)
{
    static const char text[] = "cpu  1 2 3 4 5 6 7 8 9 10\n"
                               "cpu0 100 20 3 4000 50 600 70 8 9 10\n"
                               "cpu1 7 0 0 0 0 0 0 1 0 0\n"
                               "cpu10 5 5 5 5 5 5 5 5 5 5\n"
                               "cpu12 5 5 5\n"
                               "cpu13 a b c\n"
                               "intr 5\n";
    static const struct {
        int cpu;
        uint64_t ticks; /* 0: not told */
    } cases[] = {{0, 131}, {1, 8}, {10, 20}, {12, 0}, {13, 0}, {2, 0}, {-1, 14}};
    struct cpustat stat = {0};
    bool is_told = cpustat_parse(text, cases[_i].cpu, &stat);
    ck_assert_int_eq(is_told, cases[_i].ticks != 0);
    ck_assert_uint_eq(stat.busy + stat.stolen, cases[_i].ticks);
    ck_assert(!cpustat_parse("", cases[_i].cpu, &stat));
}
