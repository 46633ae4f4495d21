/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The pin planner on described machines, and pinning on the machine at hand.
 */
#include "base/fail.h"
#include "place/pin.h"
#include "check_main.h"
#include "place/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef HAVE_HWLOC
#define HAVE_HWLOC 0
#endif

#define PAPER "pack:2 l3:1 core:6 pu:2"
#define CHIPLETS "pack:1 l3:4 core:4 pu:2"
#define NUMA "pack:2 numa:2 core:4 pu:1"
#define ERR_LEN 256

/* ---- the words of the option ---------------------------------------------------------- */

static const struct {
    const char *text;
    enum pin_policy policy;
    const char *list; /* numbers with blanks */
} good_words[] = {
    {NULL, PIN_SPREAD, ""},
    {"spread", PIN_SPREAD, ""},
    {"compact", PIN_COMPACT, ""},
    {"cores", PIN_CORES, ""},
    {"none", PIN_NONE, ""},
    {"list:0", PIN_LIST, "0"},
    {"list:7,0,4-6,2", PIN_LIST, "7 0 4 5 6 2"},
    {"list:3-3", PIN_LIST, "3"},
    {"list:4095", PIN_LIST, "4095"},
    {"llc", PIN_LLC, ""},
    {"1s1c1t", PIN_SHAPE, ""},
    {"2s3,6c2t", PIN_SHAPE, ""},
    {"16s128c2t", PIN_SHAPE, ""},
};

TEST_LOOP(good_words_are_understood, ROWS(good_words))
{
    struct pin_spec spec;
    char list[64] = "";
    ck_assert_ptr_null(pin_spec_parse(&spec, good_words[_i].text));
    ck_assert_int_eq(spec.policy, good_words[_i].policy);
    for (unsigned i = 0; i < spec.list_len; i++) {
        sprintf(list + strlen(list), "%s%d", i > 0 ? " " : "", spec.list[i]);
    }
    ck_assert_str_eq(list, good_words[_i].list);
    pin_spec_fini(&spec);
}

static const char *const bad_words[] = {
    "",           "Spread",
    "spread ",    "list",
    "list:",      "list:,",
    "list:1,",    "list:,1",
    "list:1,,2",  "list:a",
    "list:1-",    "list:-1",
    "list:1-2-3", "list:3-1",
    "list:1,1",   "list:0-4,2",
    "list:4096",  "list:0-9999999999",
    "list: 1",    "list:1 ",
    "list:0x1",   "list:+1",
    "list:1.5",   "list:99999999999999999999",
    "shape",      "2s",
    "2s6c",       "2s6c1",
    "2s6c1t ",    "2s6c1tt",
    "0s6c1t",     "2s0c1t",
    "2s6c0t",     "17s1c1t",
    "2s,6c1t",    "2s3,c1t",
    "2s3,6,9c1t", "3s3,6c1t",
    "1s3,6c1t",   "2s-6c1t",
    "2s6C1t",     "6c1t",
    "1s4097c1t",  "1s99999999999c1t",
    " 2s6c1t",
};

TEST_LOOP(bad_words_are_refused_with_a_sentence, ROWS(bad_words))
{
    struct pin_spec spec;
    const char *wrong = pin_spec_parse(&spec, bad_words[_i]);
    ck_assert_ptr_nonnull(wrong);
    ck_assert_uint_gt(strlen(wrong), 10);
    ck_assert_ptr_null(spec.list);
    pin_spec_fini(&spec);
}

TEST(policies_have_their_names)
{
    ck_assert_str_eq(pin_policy_name(PIN_NONE), "none");
    ck_assert_str_eq(pin_policy_name(PIN_SPREAD), "spread");
    ck_assert_str_eq(pin_policy_name(PIN_COMPACT), "compact");
    ck_assert_str_eq(pin_policy_name(PIN_CORES), "cores");
    ck_assert_str_eq(pin_policy_name(PIN_LIST), "list");
    ck_assert_str_eq(pin_policy_name(PIN_LLC), "llc");
    ck_assert_str_eq(pin_policy_name(PIN_SHAPE), "shape");
}

/* ---- described machines --------------------------------------------------------------- */

/* `machine` is hwloc's synthetic notation ("pack:2 l3:1 core:6 pu:2") or the path of an XML file of
 * its own, `allowed` a list of CPUs that stands for the affinity mask, or NULL for all. */
static bool
plan_described(const struct pin_spec *spec, unsigned workers, const char *machine,
               const char *allowed, struct pin_plan *plan, char *err)
{
    struct cpumask mask = {0};
    struct topo all;
    int cpus[CPUMASK_CPUS];
    unsigned count;
    *plan = (struct pin_plan){0};
    const char *wrong =
        topo_parse_list(allowed != NULL ? allowed : "0-4095", cpus, &count);
    if (wrong != NULL) {
        return fail_because(err, ERR_LEN, "%s", wrong);
    }
    for (unsigned i = 0; i < count; i++) {
        cpumask_add(&mask, (unsigned)cpus[i]);
    }
    bool is_planned = topo_discover(&all, machine, err, ERR_LEN) &&
                      pin_plan_on(spec, workers, &all, &mask, plan, err, ERR_LEN);
    topo_fini(&all);
    return is_planned;
}

/* Plans; returns the CPUs as "0 12 2", or the error with '!' in front. Static storage. */
static const char *
plan_text(const char *policy, unsigned workers, const char *machine, const char *allowed,
          struct pin_plan *plan)
{
    static char text[16384];
    char err[ERR_LEN] = "";
    struct pin_spec spec;
    ck_assert_ptr_null(pin_spec_parse(&spec, policy));
    bool is_planned = machine != NULL
                          ? plan_described(&spec, workers, machine, allowed, plan, err)
                          : pin_plan(&spec, workers, plan, err, sizeof err);
    pin_spec_fini(&spec);
    if (!is_planned) {
        ck_assert_ptr_null(plan->places);
        snprintf(text, sizeof text, "!%s", err);
        return text;
    }
    ck_assert_uint_eq(plan->count, workers);
    text[0] = '\0';
    for (unsigned i = 0; i < workers; i++) {
        sprintf(text + strlen(text), "%s%d", i > 0 ? " " : "", plan->places[i].cpu);
    }
    return text;
}

#if HAVE_HWLOC

static const struct {
    const char *machine, *allowed, *policy;
    unsigned workers;
    const char *cpus, *layout;
    bool is_oversubscribed;
} plans[] = {
    {PAPER, NULL, "spread", 1, "0", "1s1c1t", false},
    {PAPER, NULL, "spread", 2, "0 12", "2s1c1t", false},
    {PAPER, NULL, "spread", 3, "0 12 2", "2s2,1c1t", false},
    {PAPER, NULL, "spread", 12, "0 12 2 14 4 16 6 18 8 20 10 22", "2s6c1t", false},
    {PAPER, NULL, "spread", 13, "0 12 2 14 4 16 6 18 8 20 10 22 1", "2s6c1-2t", false},
    {PAPER, NULL, "spread", 24,
     "0 12 2 14 4 16 6 18 8 20 10 22 1 13 3 15 5 17 7 19 9 21 11 23", "2s6c2t", false},
    {PAPER, NULL, "compact", 12, "0 1 2 3 4 5 6 7 8 9 10 11", "1s6c2t", false},
    {PAPER, NULL, "compact", 14, "0 1 2 3 4 5 6 7 8 9 10 11 12 13", "2s6,1c2t", false},
    {PAPER, NULL, "cores", 6, "0 2 4 6 8 10", "1s6c1t", false},
    {PAPER, NULL, "cores", 13, "0 2 4 6 8 10 12 14 16 18 20 22 1", "2s6c1-2t", false},
    {PAPER, NULL, "list:0-5,12-23", 18, "0 1 2 3 4 5 12 13 14 15 16 17 18 19 20 21 22 23",
     "2s3,6c2t", false},
    {PAPER, NULL, "list:23,0,5", 5, "23 0 5 23 0", "2s2,1c1t", true},
    {PAPER, NULL, "none", 3, "-1 -1 -1", "none", false},
    /* Second threads are as good as first ones when those are not ours. */
    {PAPER, "3,7,9-11", "spread", 5, "3 7 9 10 11", "1s4c1-2t", false},
    {PAPER, "1,3,13,15", "spread", 4, "1 13 3 15", "2s2c1t", false},
    {PAPER, "0-3", "spread", 6, "0 2 1 3 0 2", "1s2c2t", true},
    {PAPER, "0,1000", "spread", 1, "0", "1s1c1t", false},
    {PAPER, NULL, "2s6c1t", 12, "0 12 2 14 4 16 6 18 8 20 10 22", "2s6c1t", false},
    {PAPER, NULL, "2s6c1t", 2, "0 12", "2s1c1t", false},
    {PAPER, NULL, "1s6c2t", 12, "0 2 4 6 8 10 1 3 5 7 9 11", "1s6c2t", false},
    {PAPER, NULL, "2s3,6c2t", 18, "0 12 2 14 4 16 18 20 22 1 13 3 15 5 17 19 21 23",
     "2s3,6c2t", false},
    {PAPER, NULL, "2s6,3c2t", 18, "0 12 2 14 4 16 6 8 10 1 13 3 15 5 17 7 9 11",
     "2s6,3c2t", false},
    {PAPER, NULL, "1s1c1t", 1, "0", "1s1c1t", false},
    /* Cores of which a thread is missing do not count for two. */
    {PAPER, "1-5,12-23", "2s2c2t", 8, "2 12 4 14 3 13 5 15", "2s2c2t", false},
    {PAPER, "12-23", "1s2c1t", 2, "12 14", "1s2c1t", false},
    {CHIPLETS, NULL, "1s5c1t", 5, "0 2 4 6 8", "1s5c1t", false},
    {CHIPLETS, NULL, "llc", 6, "0 8 16 24 2 10", "1s6c1t", false},
    {CHIPLETS, NULL, "llc", 17, "0 8 16 24 2 10 18 26 4 12 20 28 6 14 22 30 1",
     "1s16c1-2t", false},
    {"pack:2 l3:2 core:2 pu:1", NULL, "llc", 4, "0 2 4 6", "2s2c1t", false},
    {"pack:2 l3:2 core:2 pu:1", NULL, "spread", 4, "0 4 2 6", "2s2c1t", false},
    {"core:2 pu:1", NULL, "llc", 3, "0 1 0", "1s2c1t", true},
    {CHIPLETS, NULL, "spread", 5, "0 8 16 24 2", "1s5c1t", false},
    {CHIPLETS, NULL, "compact", 5, "0 1 2 3 4", "1s3c1-2t", false},
    {CHIPLETS, NULL, "cores", 5, "0 2 4 6 8", "1s5c1t", false},
    {NUMA, NULL, "spread", 4, "0 8 1 9", "2s2c1t", false},
    {NUMA, NULL, "compact", 4, "0 1 2 3", "1s4c1t", false},
    {"core:2 pu:1", NULL, "spread", 3, "0 1 0", "1s2c1t", true},
    {"core:1 pu:1", NULL, "spread", 2, "0 0", "1s1c1t", true},
    {"pack:8 core:2 pu:1", NULL, "spread", 9, "0 2 4 6 8 10 12 14 1", "8s1-2c1t", false},
};

TEST_LOOP(plan_is_as_drawn, ROWS(plans))
{
    SCOPED(pin_plan_fini) struct pin_plan plan;
    ck_assert_str_eq(plan_text(plans[_i].policy, plans[_i].workers, plans[_i].machine,
                               plans[_i].allowed, &plan),
                     plans[_i].cpus);
    ck_assert_str_eq(plan.layout, plans[_i].layout);
    ck_assert_int_eq(plan.is_oversubscribed, plans[_i].is_oversubscribed);
}

TEST(place_tells_where_the_cpu_is)
{
    struct pin_plan plan;
    plan_text("spread", 4, NUMA, NULL, &plan);
    const struct cpu_place *p = &plan.places[3];
    ck_assert_int_eq(p->cpu, 9);
    ck_assert_int_eq(p->package, 1);
    ck_assert_int_eq(p->numa, 2);
    ck_assert_int_eq(p->core, 9);
    ck_assert_int_eq(p->llc, -1);
    pin_plan_fini(&plan);
    plan_text("spread", 2, CHIPLETS, NULL, &plan);
    ck_assert_int_eq(plan.places[1].llc, 1);
    pin_plan_fini(&plan);
}

static const struct {
    const char *machine, *allowed, *policy, *error;
} refused[] = {
    {PAPER, NULL, "list:0,24",
     "!CPU 24 of the pin list is not among the allowed CPUs (0-23)"},
    {PAPER, "0-3,8", "list:0,4",
     "!CPU 4 of the pin list is not among the allowed CPUs (0-3,8)"},
    {PAPER, "24-30", "spread", "!no CPU is allowed"},
    {PAPER, NULL, "3s1c1t",
     "!the pin shape does not fit: socket 2 has 0 of the 1 cores with 1 threads"},
    {PAPER, NULL, "2s7c1t",
     "!the pin shape does not fit: socket 0 has 6 of the 7 cores with 1 threads"},
    {PAPER, NULL, "1s1c3t",
     "!the pin shape does not fit: socket 0 has 0 of the 1 cores with 3 threads"},
    {PAPER, "0-4,12-23", "2s3c2t",
     "!the pin shape does not fit: socket 0 has 2 of the 3 cores with 2 threads"},
    {PAPER, NULL, "1s1c1t", "!the pin shape has 1 CPUs for 2 workers"},
    {PAPER, "zero", "spread",
     "!a CPU list is made of numbers below 4096 and ranges, such as 0,2,4-7"},
};

TEST_LOOP(impossible_plan_is_refused_with_a_sentence, ROWS(refused))
{
    struct pin_plan plan;
    ck_assert_str_eq(
        plan_text(refused[_i].policy, 2, refused[_i].machine, refused[_i].allowed, &plan),
        refused[_i].error);
}

TEST(garbage_machine_is_refused)
{
    struct pin_plan plan;
    ck_assert_int_eq(plan_text("spread", 2, "lorem:ipsum", NULL, &plan)[0], '!');
    ck_assert_int_eq(plan_text("spread", 2, "./no-such-file.xml", NULL, &plan)[0], '!');
}

static const char *const machines[] = {
    PAPER,
    CHIPLETS,
    NUMA,
    "core:2 pu:1",
    "core:1 pu:1",
    "pack:4 l3:2 l2:2 core:2 pu:2",
    "pack:2 l3:2 core:3 pu:4",
    "pu:5",
};
static const char *const orders[] = {"spread", "compact", "cores", "llc"};
#define ORDERS (sizeof orders / sizeof orders[0])
static const char *const masks[] = {NULL, "0", "0-3", "0-4,1000", "0,2-4", "0,3"};

/* One more worker never moves the others; all places are allowed and, up to the number of
 * CPUs, different. */
TEST_LOOP(plans_grow_at_the_end, ROWS(machines) * ROWS(orders))
{
    const char *machine = machines[(size_t)_i / ORDERS],
               *policy = orders[(size_t)_i % ORDERS];
    for (unsigned m = 0; m < sizeof masks / sizeof masks[0]; m++) {
        struct pin_plan full;
        const char *text = plan_text(policy, 80, machine, masks[m], &full);
        ck_assert_msg(text[0] != '!', "%s %s: %s", machine, policy, text);
        for (unsigned n = 1; n < 80; n += n < 30 ? 1 : 7) {
            struct pin_plan plan;
            plan_text(policy, n, machine, masks[m], &plan);
            ck_assert_mem_eq(plan.places, full.places, n * sizeof plan.places[0]);
            ck_assert_int_eq(plan.is_oversubscribed, n > plan.allowed);
            pin_plan_fini(&plan);
        }
        bool seen[256] = {false};
        for (unsigned i = 0; i < full.count; i++) {
            int cpu = full.places[i].cpu;
            ck_assert(cpu >= 0 && cpu < 256);
            ck_assert(!seen[cpu] || i >= full.allowed);
            seen[cpu] = true;
            if (masks[m] != NULL) {
                ck_assert_int_le(cpu, 4);
            }
            ck_assert_int_eq(cpu, full.places[i % full.allowed].cpu);
        }
        pin_plan_fini(&full);
    }
}

/* The same for shapes, which do not wrap around; and what is left over is for the rest. */
TEST_LOOP(shapes_grow_at_the_end, 4)
{
    static const char *const shapes[] = {"2s6c2t", "2s3,6c2t", "2s6c1t", "1s6c2t"};
    struct pin_plan full;
    plan_text(shapes[_i], 1, PAPER, NULL, &full);
    unsigned capacity = full.capacity;
    pin_plan_fini(&full);
    plan_text(shapes[_i], capacity, PAPER, NULL, &full);
    for (unsigned n = 1; n <= capacity; n++) {
        struct pin_plan plan;
        plan_text(shapes[_i], n, PAPER, NULL, &plan);
        ck_assert_uint_eq(plan.capacity, capacity);
        ck_assert_mem_eq(plan.places, full.places, n * sizeof plan.places[0]);
        ck_assert_uint_eq(cpumask_count(&plan.background), n < 24 ? 24 - n : 24);
        ck_assert_int_eq(plan.has_background, n < 24);
        for (unsigned i = 0; i < n && n < 24; i++) {
            ck_assert(!cpumask_has(&plan.background, (unsigned)plan.places[i].cpu));
        }
        pin_plan_fini(&plan);
    }
    pin_plan_fini(&full);
}

static const struct {
    const char *allowed, *policy;
    unsigned workers;
    const char *background;
} left_over[] = {
    {NULL, "spread", 2, "1-11,13-23"},
    {NULL, "list:0-22", 23, "23"},
    {NULL, "spread", 24, ""},
    {"0-3", "compact", 2, "2-3"},
    {"0-3", "compact", 5, ""},
    {NULL, "none", 2, ""},
    {"0-3,12", "list:0,2", 9, "1,3,12"},
};

TEST_LOOP(other_threads_get_what_is_left, ROWS(left_over))
{
    SCOPED(pin_plan_fini) struct pin_plan plan;
    plan_text(left_over[_i].policy, left_over[_i].workers, PAPER, left_over[_i].allowed,
              &plan);
    ck_assert_str_eq(plan.background_list, left_over[_i].background);
    if (!plan.has_background) {
        ck_assert_uint_eq(cpumask_count(&plan.background), plan.allowed);
    }
}

/* Two fast cores of two threads (CPUs 2-5) behind two slow ones of one thread (0, 1). */
static const char hybrid_xml[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
#define SETS(mask)                                                                       \
    " cpuset=\"" mask "\" complete_cpuset=\"" mask "\" nodeset=\"0x1\""                  \
    " complete_nodeset=\"0x1\""
#define PU(n, mask) "<object type=\"PU\" os_index=\"" n "\"" SETS(mask) "/>\n"
#define CORE(n, mask) "<object type=\"Core\" os_index=\"" n "\"" SETS(mask) ">\n"
    "<object type=\"Machine\" os_index=\"0\"" SETS(
        "0x3f") " allowed_cpuset=\"0x3f\""
                " allowed_nodeset=\"0x1\">\n"
                "<object type=\"NUMANode\" os_index=\"0\"" SETS(
                    "0x3f") " local_memory=\"1024\"/>\n"
                            "<object type=\"Package\" os_index=\"0\"" SETS(
                                "0x3f") ">\n" CORE("0", "0x1")
                                PU("0", "0x1") "</object>\n" CORE("1", "0x2")
                                    PU("1", "0x2") "</object>\n" CORE("2", "0xc")
                                        PU("2", "0x4") PU("3", "0x8") "</object>\n" CORE(
                                            "3", "0x30") PU("4", "0x10")
                                            PU("5", "0x20") "</object>\n"
                                                            "</object>\n</object>\n"
                                                            "<cpukind cpuset=\"0x3\" "
                                                            "forced_efficiency=\"0\"/>\n"
                                                            "<cpukind cpuset=\"0x3c\" "
                                                            "forced_efficiency=\"1\"/>\n"
                                                            "</topology>\n";

TEST(fast_cores_come_before_slow_ones)
{
    char path[SCRATCH_PATH];
    scratch_file(path, hybrid_xml, sizeof hybrid_xml - 1);
    struct pin_plan plan;
    ck_assert_str_eq(plan_text("spread", 6, path, NULL, &plan), "2 4 0 1 3 5");
    ck_assert_str_eq(plan.layout, "1s4c1-2t");
    pin_plan_fini(&plan);
    ck_assert_str_eq(plan_text("compact", 6, path, NULL, &plan), "2 3 4 5 0 1");
    pin_plan_fini(&plan);
    unlink(path);
}

/* As many as the policy has, as far as the quota goes. */
TEST(automatic_threads_follow_cpus_and_quota)
{
    struct pin_spec spec = {.policy = PIN_NONE};
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    unsigned cpus = (unsigned)CPU_COUNT(&set);
    ck_assert_uint_eq(pin_workers(&spec, 0), cpus);
    ck_assert_uint_eq(pin_workers(&spec, 1), 1);
    ck_assert_uint_eq(pin_workers(&spec, 1000), 1);
    ck_assert_uint_eq(pin_workers(&spec, 1001), cpus < 2 ? cpus : 2);
    ck_assert_uint_eq(pin_workers(&spec, 5000000), cpus);
    ck_assert_ptr_null(pin_spec_parse(&spec, "1s1c1t"));
    ck_assert_uint_eq(pin_workers(&spec, 0), 1);
    ck_assert_ptr_null(pin_spec_parse(&spec, "list:4095"));
    ck_assert_uint_eq(pin_workers(&spec, 0), cpus);
    pin_spec_fini(&spec);
}

TEST(long_list_of_cpus_is_cut)
{
    SCOPED(pin_plan_fini) struct pin_plan plan;
    char mask[4096] = "";
    for (unsigned i = 0; i < 400; i += 2) {
        sprintf(mask + strlen(mask), "%s%u", i > 0 ? "," : "", i);
    }
    plan_text("spread", 1, "core:400 pu:1", mask, &plan);
    size_t len = strlen(plan.allowed_list);
    ck_assert_uint_lt(len, sizeof plan.allowed_list);
    ck_assert_uint_gt(len, sizeof plan.allowed_list - 8);
    ck_assert_str_eq(plan.allowed_list + len - 3, "...");
    ck_assert_uint_eq(plan.allowed, 200);
}

TEST(description_has_a_line_for_each_worker)
{
    SCOPED(pin_plan_fini) struct pin_plan plan;
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    plan_text("spread", 3, "core:2 pu:1", NULL, &plan);
    pin_describe(&plan, out);
    fclose(out);
    ck_assert_str_eq(
        text, "pin: policy spread, layout 1s2c1t, 3 workers, 2 CPUs allowed (0-1), "
              "oversubscribed\n"
              "worker 0: cpu 0 package - llc - numa 0 core 0\n"
              "worker 1: cpu 1 package - llc - numa 0 core 1\n"
              "worker 2: cpu 0 package - llc - numa 0 core 0\n"
              "other threads: any allowed CPU\n");
    free(text);
}

#else

TEST(policies_need_hwloc)
{
    static const char *const policies[] = {"spread", "compact", "cores"};
    struct pin_plan plan;
    for (unsigned i = 0; i < 3; i++) {
        const char *text = plan_text(policies[i], 2, NULL, NULL, &plan);
        ck_assert_int_eq(text[0], '!');
        ck_assert_ptr_nonnull(strstr(text, "built without hwloc"));
    }
}

#endif

/* ---- this machine --------------------------------------------------------------------- */

static int
first_allowed(void)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            return cpu;
        }
    }
    return -1;
}

static int
last_allowed(void)
{
    cpu_set_t set;
    int last = -1;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        last = CPU_ISSET(cpu, &set) ? cpu : last;
    }
    return last;
}

struct pinned {
    const struct pin_plan *plan;
    unsigned worker;
    int rc;
    cpu_set_t set;
};

static void *
pinned_thread(void *arg)
{
    struct pinned *p = arg;
    p->rc = pin_apply(p->plan, p->worker);
    PTHREAD_OK(pthread_getaffinity_np(pthread_self(), sizeof p->set, &p->set));
    return NULL;
}

static void
check_applies(const struct pin_plan *plan)
{
    for (unsigned i = 0; i < plan->count; i++) {
        struct pinned p = {.plan = plan, .worker = i};
        pthread_t thread;
        PTHREAD_OK(pthread_create(&thread, NULL, pinned_thread, &p));
        PTHREAD_OK(pthread_join(thread, NULL));
        ck_assert_int_eq(p.rc, 0);
        ck_assert_int_eq(CPU_COUNT(&p.set), 1);
        ck_assert(CPU_ISSET(plan->places[i].cpu, &p.set));
    }
}

TEST_LOOP(threads_end_up_where_planned, 2)
{
    SCOPED(pin_plan_fini) struct pin_plan plan;
    char list[32];
    cpu_set_t before, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    sprintf(list, "list:%d", last_allowed());
    const char *policy = HAVE_HWLOC && _i == 0 ? "spread" : list;
    const char *text = plan_text(policy, 4, NULL, NULL, &plan);
    ck_assert_msg(text[0] != '!', "%s", text);
    ck_assert_uint_eq(plan.allowed, (unsigned)CPU_COUNT(&before));
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after)); /* planning moves nobody */
    check_applies(&plan);
}

TEST(none_pins_nobody)
{
    SCOPED(pin_plan_fini) struct pin_plan plan;
    cpu_set_t before, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    ck_assert_str_eq(plan_text("none", 2, NULL, NULL, &plan), "-1 -1");
    ck_assert_int_eq(pin_apply(&plan, 1), 0);
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
    ck_assert_uint_eq(plan.allowed, (unsigned)CPU_COUNT(&before));
}

TEST(pinning_to_what_is_not_there_says_so)
{
    struct cpu_place place = {.cpu = CPUMASK_CPUS - 1};
    struct pin_plan plan = {.policy = PIN_LIST, .count = 1, .places = &place};
    ck_assert_int_eq(pin_apply(&plan, 0), EINVAL);
}

/* Each test runs in a child of its own, so the mask dies with it. */
TEST(inherited_mask_is_respected)
{
    int first = first_allowed(), last = last_allowed();
    char list[32], expected[64];
    struct pin_plan plan;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
    sprintf(list, "list:%d", last);
    sprintf(expected, "%d %d", last, last);
    ck_assert_str_eq(plan_text(HAVE_HWLOC ? "spread" : list, 2, NULL, NULL, &plan),
                     expected);
    ck_assert_uint_eq(plan.allowed, 1);
    ck_assert(plan.is_oversubscribed);
    check_applies(&plan);
    pin_plan_fini(&plan);
    if (first != last) {
        sprintf(list, "list:%d", first);
        ck_assert_int_eq(plan_text(list, 1, NULL, NULL, &plan)[0], '!');
    }
}

#define CPUSET "/sys/fs/cgroup/cpuset"

static bool
write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY);
    if (fd < 0) {
        return false;
    }
    bool is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && is_written;
}

/* The child's verdict, as its exit status. */
static int
plan_in_cpuset(const char *dir, const char *cpu)
{
    char err[ERR_LEN], pid[16];
    struct pin_plan plan;
    struct pin_spec spec;
    sprintf(pid, "%d", (int)getpid());
    if (!write_file(dir, "cgroup.procs", pid)) {
        return 2;
    }
    char list[32];
    snprintf(list, sizeof list, "list:%s", cpu);
    if (pin_spec_parse(&spec, HAVE_HWLOC ? "spread" : list) != NULL ||
        !pin_plan(&spec, 2, &plan, err, sizeof err)) {
        return 3;
    }
    bool is_inside = plan.allowed == 1 && strcmp(plan.allowed_list, cpu) == 0 &&
                     plan.places[0].cpu == atoi(cpu) && plan.places[1].cpu == atoi(cpu) &&
                     pin_apply(&plan, 0) == 0;
    pin_plan_fini(&plan);
    pin_spec_fini(&spec);
    return is_inside ? 0 : 4;
}

TEST(cpuset_is_respected)
{
    char dir[64], cpu[16];
    sprintf(dir, CPUSET "/check_pin.%d", (int)getpid());
    sprintf(cpu, "%d", last_allowed());
    if (mkdir(dir, 0755) != 0) {
        printf("# cpuset_is_respected does nothing: no writable cgroup v1 cpuset (%s)\n",
               strerror(errno));
        fflush(stdout);
        return;
    }
    int status = -1;
    bool is_ready =
        write_file(dir, "cpuset.cpus", cpu) && write_file(dir, "cpuset.mems", "0");
    pid_t child = is_ready ? fork() : -1;
    if (child == 0) {
        _exit(plan_in_cpuset(dir, cpu));
    }
    if (child > 0) {
        waitpid(child, &status, 0);
    }
    /* The kernel lets go of the last member a moment after its end. */
    int rc;
    while ((rc = rmdir(dir)) != 0 && errno == EBUSY) {
        usleep(10000);
    }
    ck_assert(is_ready && child > 0);
    ck_assert_int_eq(rc, 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
