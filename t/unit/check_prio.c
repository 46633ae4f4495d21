/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The words of --sched, and what the kernel makes of them. Each test runs in a process of its
 * own, so what it changes ends with it.
 */
#include "place/prio.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_tree.h"
#include "check_main.h"
#include "base/file.h"
#include "base/must.h"
#include "place/scheduling.h"

#define NOBODY 65534

static const struct {
    const char *text;
    struct prio_spec spec;
    const char *name;
} good[] = {
    {"other", {.policy = PRIO_OTHER}, "other:0"},
    {"other:-20", {.policy = PRIO_OTHER, .nice = -20}, "other:-20"},
    {"other:19", {.policy = PRIO_OTHER, .nice = 19}, "other:19"},
    {"slice:100us", {.policy = PRIO_SLICE, .slice_ns = 100000}, "slice:100us"},
    {"slice:3ms", {.policy = PRIO_SLICE, .slice_ns = 3000000}, "slice:3000us"},
    {"slice:250000ns", {.policy = PRIO_SLICE, .slice_ns = 250000}, "slice:250us"},
    {"slice:100ms", {.policy = PRIO_SLICE, .slice_ns = 100000000}, "slice:100000us"},
    {"fifo", {.policy = PRIO_FIFO, .priority = 1}, "fifo:1"},
    {"fifo:99", {.policy = PRIO_FIFO, .priority = 99}, "fifo:99"},
    {"rr:7", {.policy = PRIO_RR, .priority = 7}, "rr:7"},
    {"bvt", {.policy = PRIO_BVT}, "bvt"},
    {"batch", {.policy = PRIO_BATCH}, "batch"},
};

TEST_LOOP(good_words_are_understood, ROWS(good))
{
    struct prio_spec spec;
    ck_assert_ptr_null(prio_parse(&spec, good[_i].text));
    ck_assert_int_eq(spec.policy, good[_i].spec.policy);
    ck_assert_int_eq(spec.nice, good[_i].spec.nice);
    ck_assert_uint_eq(spec.priority, good[_i].spec.priority);
    ck_assert_uint_eq(spec.slice_ns, good[_i].spec.slice_ns);
    ck_assert_str_eq(prio_name(&spec), good[_i].name);
    ck_assert_int_eq(prio_is_realtime(&spec),
                     spec.policy == PRIO_FIFO || spec.policy == PRIO_RR);
}

static const struct {
    const char *text, *reason; /* part of it */
} bad[] = {
    {"", "must be other:N"},
    {"idle", "must be other:N"},
    {"Fifo", "must be other:N"},
    {"fif", "must be other:N"},
    {"fifo:", "1 to 99"},
    {"fifo:0", "1 to 99"},
    {"fifo:100", "1 to 99"},
    {"rr:-1", "1 to 99"},
    {"rr:1x", "1 to 99"},
    {"other:", "-20 to 19"},
    {"other:-21", "-20 to 19"},
    {"other:20", "-20 to 19"},
    {"other:1.5", "-20 to 19"},
    {"slice", "100us"},
    {"slice:", "100us"},
    {"slice:100", "100us"},
    {"slice:0us", "100us"},
    {"slice:99us", "from 100us to 100ms"},
    {"slice:101ms", "from 100us to 100ms"},
    {"slice:1s", "from 100us to 100ms"},
    {"slice:us", "100us"},
    {"slice:1h", "100us"},
    {"slice:1.5ms", "100us"},
    {"slice:99999999999999999999s", "100us"},
    {"slice:18446744073709551615s", "100us"},
    {"batch:1", "must be other:N"},
    {"bvt:1", "must be other:N"},
    {"deadline:100us/1ms", "admission control"},
};

TEST_LOOP(bad_words_are_refused_with_the_reason, ROWS(bad))
{
    struct prio_spec spec;
    const char *wrong = prio_parse(&spec, bad[_i].text);
    ck_assert_ptr_nonnull(wrong);
    ck_assert_msg(strstr(wrong, bad[_i].reason) != NULL, "%s: %s", bad[_i].text, wrong);
}

/* Applies to this thread; fails the test on anything but success and a lack of rights. */
static bool
apply(const char *text, struct prio_seen *seen)
{
    struct prio_spec spec;
    ck_assert_ptr_null(prio_parse(&spec, text));
    int error = prio_apply(&spec, 0);
    ck_assert_int_eq(prio_read(0, seen), 0);
    if (error == EPERM) {
        printf("# not permitted here: %s\n", text);
        fflush(stdout);
    } else {
        ck_assert_int_eq(error, 0);
    }
    return error == 0;
}

TEST(kernel_says_what_it_applied)
{
    struct prio_seen seen;
    ck_assert_int_eq(prio_read(0, &seen), 0);
    ck_assert_str_eq(seen.policy, "other");
    if (apply("other:5", &seen)) {
        ck_assert_int_eq(seen.nice, 5);
        ck_assert(seen.resets_on_fork);
    }
    if (apply("fifo:3", &seen)) {
        ck_assert_str_eq(seen.policy, "fifo");
        ck_assert_uint_eq(seen.priority, 3);
        ck_assert_int_eq(sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
    }
    if (apply("rr:2", &seen)) {
        ck_assert_str_eq(seen.policy, "rr");
        ck_assert_uint_eq(seen.priority, 2);
    }
    if (apply("other:-20", &seen)) {
        ck_assert_str_eq(seen.policy, "other");
        ck_assert_int_eq(seen.nice, -20);
    }
    if (apply("batch", &seen)) {
        ck_assert_str_eq(seen.policy, "batch");
        ck_assert_int_eq(sched_getscheduler(0), SCHED_BATCH | SCHED_RESET_ON_FORK);
    }
    ck_assert_int_eq(prio_read(-1, &seen), EINVAL);
}

/* A kernel before 6.12 forgets the slice, which is noticed. */
TEST(slice_is_read_back)
{
    struct prio_spec spec;
    struct prio_seen seen;
    ck_assert_ptr_null(prio_parse(&spec, "slice:200us"));
    int error = prio_apply(&spec, 0);
    ck_assert_int_eq(prio_read(0, &seen), 0);
    if (error == 0) {
        ck_assert_uint_eq(seen.slice_ns, 200000);
    } else {
        ck_assert_int_eq(error, ENOTSUP);
        ck_assert_uint_ne(seen.slice_ns, 200000);
    }
}

TEST(nothing_asked_nothing_done)
{
    struct prio_spec spec = {.policy = PRIO_LEAVE};
    struct prio_seen before, after;
    ck_assert_int_eq(prio_read(0, &before), 0);
    ck_assert_int_eq(prio_apply(&spec, 0), 0);
    ck_assert_int_eq(prio_lift_autogroup(&spec), 0);
    ck_assert_int_eq(prio_read(0, &after), 0);
    ck_assert(!after.resets_on_fork);
    ck_assert_str_eq(before.policy, after.policy);
    ck_assert_uint_eq(before.slice_ns, after.slice_ns);
    ck_assert_str_eq(prio_name(&spec), "default");
}

/* ---- the right to it ------------------------------------------------------------------- */

/* The rights of the calling thread, as in /proc. */
static uint64_t
rights_of_this_thread(void)
{
    char path[64], line[256];
    unsigned long long rights = UINT64_MAX;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)gettid());
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        sscanf(line, "CapPrm: %llx", &rights);
    }
    ck_assert_ptr_nonnull(file);
    fclose(file);
    return rights;
}

/* What needs the right, beside how the process was started, and what it has in the end. */
static const struct {
    const char *wanted;
    int nice; /* at the start */
    bool is_idle;
    const char *policy;
    int got;
} needy[] = {
    {"fifo:2", 0, false, "fifo", 0},    {"other:-7", 0, false, "other", -7},
    {"other:5", 10, false, "other", 5}, {"other", 1, false, "other", 0},
    {"other:0", 0, true, "other", 0},   {"batch", 4, true, "batch", 4},
};

static void
start_as(int nice, bool is_idle)
{
    struct prio_spec plain = {.policy = PRIO_OTHER, .nice = nice};
    struct sched_param none = {0};
    ck_assert_int_eq(prio_apply(&plain, 0), 0);
    if (is_idle) {
        ck_assert_int_eq(sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none),
                         0);
    }
}

/* One thread keeps the right when root is given up, and no thread has it in the end. */
TEST_LOOP(right_outlives_root, ROWS(needy))
{
    struct scheduling schedule;
    struct prio_spec wanted;
    struct prio_seen seen;
    pid_t worker = gettid();
    if (geteuid() != 0) {
        return;
    }
    ck_assert_ptr_null(prio_parse(&wanted, needy[_i].wanted));
    start_as(needy[_i].nice, needy[_i].is_idle);
    bool is_permitted = prio_apply(&wanted, 0) == 0;
    if (is_permitted) {
        start_as(needy[_i].nice, needy[_i].is_idle);
    }
    scheduling_init(&schedule, &wanted);
    ck_assert_int_eq(setgid(NOBODY), 0);
    ck_assert_int_eq(setuid(NOBODY), 0);
    ck_assert(scheduling_reduce(&schedule));
    ck_assert(schedule.is_kept);
    ck_assert_uint_eq(rights_of_this_thread() & ~(UINT64_C(1) << 23), 0);
    ck_assert(scheduling_lend(&schedule));
    ck_assert_uint_eq(rights_of_this_thread(), 0);
    scheduling_workers(&schedule, &worker, 1);
    ck_assert_uint_eq(schedule.errors, !is_permitted);
    ck_assert_int_eq(schedule.error, is_permitted ? 0 : EPERM);
    ck_assert_int_eq(prio_read(0, &seen), 0);
    if (is_permitted) {
        ck_assert_str_eq(seen.policy, needy[_i].policy);
        ck_assert_int_eq(seen.nice, needy[_i].got);
    }
    scheduling_fini(&schedule);
    ck_assert_uint_eq(rights_of_this_thread(), 0);
}

TEST(unused_right_is_given_up)
{
    struct scheduling schedule;
    struct prio_spec wanted;
    if (geteuid() != 0) {
        return;
    }
    ck_assert_ptr_null(prio_parse(&wanted, "fifo:2"));
    scheduling_init(&schedule, &wanted);
    ck_assert_int_eq(setuid(NOBODY), 0);
    ck_assert(scheduling_reduce(&schedule));
    ck_assert(scheduling_lend(&schedule));
    ck_assert(schedule.is_lent);
    scheduling_fini(&schedule);
    ck_assert(!schedule.is_lent);
    ck_assert_uint_eq(rights_of_this_thread(), 0);
}

/* A process that was not root, or still is, or asks for what any thread may have, uses what it
 * has. */
TEST_LOOP(nothing_kept_nothing_lent, 2)
{
    struct scheduling schedule;
    struct prio_spec wanted;
    pid_t worker = gettid();
    ck_assert_ptr_null(prio_parse(&wanted, _i == 0 ? "other:19" : "fifo:2"));
    scheduling_init(&schedule, &wanted);
    ck_assert(_i != 0 || !schedule.is_kept);
    ck_assert(scheduling_reduce(&schedule));
    ck_assert(scheduling_lend(&schedule));
    ck_assert(!schedule.is_lent);
    scheduling_workers(&schedule, &worker, 1);
    ck_assert(_i != 0 || schedule.errors == 0);
    scheduling_fini(&schedule);
}

/* A nudger for each worker if slices and real-time priority are permitted; it nudges nothing as
 * long as no worker waits. */
TEST(nudgers_come_and_go)
{
    struct scheduling schedule;
    struct prio_spec wanted, plain = {.policy = PRIO_OTHER};
    struct prio_spec realtime = {.policy = PRIO_FIFO, .priority = 1};
    pid_t workers[] = {gettid(), gettid()};
    bool is_realtime = prio_apply(&realtime, 0) == 0;
    if (is_realtime) {
        ck_assert_int_eq(prio_apply(&plain, 0), 0);
    }
    ck_assert_ptr_null(prio_parse(&wanted, "slice:200us"));
    scheduling_init(&schedule, &wanted);
    ck_assert(scheduling_reduce(&schedule));
    ck_assert(scheduling_lend(&schedule));
    scheduling_workers(&schedule, workers, 2);
    ck_assert_uint_eq(schedule.nudger_count, schedule.errors == 0 ? 2 : 0);
    ck_assert_uint_eq(scheduling_nudgers_refused(&schedule),
                      is_realtime ? 0 : schedule.nudger_count);
    scheduling_second(&schedule);
    ck_assert_uint_eq(scheduling_nudges(&schedule), 0);
    scheduling_fini(&schedule);
}

TEST(refusals_are_explained)
{
    struct prio_spec spec;
    char text[512];
    ck_assert_ptr_null(prio_parse(&spec, "slice:100us"));
    prio_explain(&spec, ENOTSUP, "/no/such/root", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "--sched=slice:100us"));
    ck_assert_ptr_nonnull(strstr(text, "Linux 6.12"));
    ck_assert_ptr_null(prio_parse(&spec, "fifo:4"));
    prio_explain(&spec, EPERM, "/no/such/root", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "--sched=fifo:4: not permitted"));
    ck_assert_ptr_nonnull(strstr(text, "LimitRTPRIO="));
    ck_assert_ptr_null(prio_parse(&spec, "other:-4"));
    prio_explain(&spec, EPERM, "/no/such/root", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "LimitNICE="));
    prio_explain(&spec, EINVAL, "", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, strerror(EINVAL)));
    ck_assert_ptr_null(prio_parse(&spec, "bvt"));
    prio_explain(&spec, EINVAL, "", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "--sched=bvt: the kernel has no sched_ext"));
    ck_assert_ptr_nonnull(strstr(text, "patches/linux-6.1-bvt"));
    prio_explain(&spec, ENODEV, "", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "--sched=bvt: bvt is not the kernel's scheduler"));
    prio_explain(&spec, ENOTSUP, "", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "--sched=bvt: the kernel did not keep the warp"));
    prio_explain(&spec, EPERM, "", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "--sched=bvt: not permitted"));
    ck_assert_ptr_null(strstr(text, "ulimit"));
}

TEST(a_warp_is_written_and_read_back)
{
    char path[64], line[16];
    make_root();
    snprintf(path, sizeof path, "proc/self/task/%d/sched_warp_ns", 77);
    ck_assert_int_eq(prio_warp(root, 77), ENOENT);
    put_file(path, "0\n");
    ck_assert_int_eq(prio_warp(root, 77), 0);
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    ck_assert(file_read_line(whole, line, sizeof line));
    ck_assert_str_eq(line, "40000000");
    /* A file that takes everything and keeps nothing. */
    must(unlink(whole) == 0 && symlink("/dev/null", whole) == 0);
    ck_assert_int_eq(prio_warp(root, 77), ENOTSUP);
    remove_root();
}

TEST(bvt_is_known_by_its_name)
{
    static const struct {
        const char *name;
        bool is_bvt;
    } loaded[] = {
        {"bvt\n", true}, {"bvt_x\n", false}, {"simple\n", false}, {"\n", false}};
    make_root();
    ck_assert(!prio_has_bvt(root));
    for (unsigned i = 0; i < sizeof loaded / sizeof loaded[0]; i++) {
        put_file("sys/kernel/sched_ext/root/ops", loaded[i].name);
        ck_assert_int_eq(prio_has_bvt(root), loaded[i].is_bvt);
    }
    remove_root();
}
