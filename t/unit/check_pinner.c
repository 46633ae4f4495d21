/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Threads are kept where the plan has them: real threads on the machine at hand, moved by
 * hand. What needs two CPUs is left out on one.
 */
#include "place/pinner.h"

#include <semaphore.h>
#include <unistd.h>

#include "check_main.h"

#define WORKERS 2

/* Threads that do nothing but be somewhere. */
struct pinned {
    struct pinner pinner;
    struct pin_spec spec;
    pthread_t threads[WORKERS];
    pid_t tids[WORKERS];
    unsigned joined;
    sem_t ready, end;
};

static struct pinned pool;

static void *
worker_main(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    ck_assert_int_eq(pinner_join(&pool.pinner, i), 0);
    pool.tids[i] = gettid();
    sem_post(&pool.ready);
    sem_wait(&pool.end);
    return NULL;
}

static void
start(const char *policy)
{
    sem_init(&pool.ready, 0, 0);
    sem_init(&pool.end, 0, 0);
    ck_assert_ptr_null(pin_spec_parse(&pool.spec, policy));
    ck_assert(pinner_init(&pool.pinner, &pool.spec, WORKERS, NULL));
    for (unsigned i = 0; i < WORKERS; i++) {
        PTHREAD_OK(
            pthread_create(&pool.threads[i], NULL, worker_main, (void *)(uintptr_t)i));
        sem_wait(&pool.ready);
    }
    pinner_settle(&pool.pinner);
}

static void
stop(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        sem_post(&pool.end);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        PTHREAD_OK(pthread_join(pool.threads[i], NULL));
    }
    pinner_fini(&pool.pinner);
    pin_spec_fini(&pool.spec);
}

/* The CPUs that this process may use: the first two as lists and masks. */
static unsigned cpus[CPUMASK_CPUS], cpu_count;
static struct cpumask allowed;

static void
look_at_machine(void)
{
    cpu_count = 0;
    ck_assert_int_eq(cpumask_read(0, &allowed), 0);
    for (unsigned i = 0; i < CPUMASK_CPUS; i++) {
        if (cpumask_has(&allowed, i)) {
            cpus[cpu_count++] = i;
        }
    }
}

static struct cpumask
only(unsigned cpu)
{
    struct cpumask one = {0};
    cpumask_add(&one, cpu);
    return one;
}

static bool
is_on(pid_t tid, unsigned cpu)
{
    struct cpumask now, one = only(cpu);
    ck_assert_int_eq(cpumask_read(tid, &now), 0);
    return cpumask_equals(&now, &one);
}

static const char *
list_of(unsigned n)
{
    static char text[64];
    snprintf(text, sizeof text, n == 1 ? "list:%u" : "list:%u,%u", cpus[0], cpus[1]);
    return text;
}

static struct pinner_summary
summary(void)
{
    struct pinner_summary s;
    pinner_summary(&pool.pinner, &s);
    return s;
}

TEST(everybody_is_placed)
{
    look_at_machine();
    start(list_of(1));
    ck_assert(is_on(pool.tids[0], cpus[0]));
    ck_assert(is_on(pool.tids[1], cpus[0]));
    ck_assert_int_eq(pinner_cpu(&pool.pinner, 1), (int)cpus[0]);
    ck_assert(summary().is_oversubscribed);
    ck_assert_uint_eq(summary().errors, 0);
    struct cpumask now, rest = allowed;
    cpumask_remove(&rest, cpus[0]);
    ck_assert_int_eq(cpumask_read(0, &now), 0);
    /* What is left is the main thread's; or else it floats, and does not preempt. */
    ck_assert(cpumask_equals(&now, cpu_count > 1 ? &rest : &allowed));
    ck_assert_int_eq(sched_getscheduler(0), cpu_count > 1 ? SCHED_OTHER : SCHED_BATCH);
    char line[640];
    ck_assert(!pinner_check(&pool.pinner, line, sizeof line));
    ck_assert_uint_eq(summary().replans, 0);
    stop();
}

TEST(moved_worker_is_moved_back)
{
    look_at_machine();
    if (cpu_count < 2) {
        return;
    }
    char line[640];
    start(list_of(2));
    ck_assert(is_on(pool.tids[1], cpus[1]));
    struct cpumask other = only(cpus[0]);
    ck_assert_int_eq(cpumask_bind(pool.tids[1], &other), 0);
    ck_assert(pinner_check(&pool.pinner, line, sizeof line));
    ck_assert_ptr_nonnull(strstr(line, "1 workers had moved"));
    ck_assert(is_on(pool.tids[1], cpus[1]));
    struct pinner_seat seat;
    pinner_seat(&pool.pinner, 1, &seat);
    ck_assert_uint_eq(seat.drifts, 1);
    ck_assert_int_eq(seat.tid, pool.tids[1]);
    pinner_seat(&pool.pinner, 0, &seat);
    ck_assert_uint_eq(seat.drifts, 0);
    ck_assert_uint_eq(summary().replans, 1);
    ck_assert(!pinner_check(&pool.pinner, line, sizeof line));
    ck_assert_uint_eq(summary().replans, 1);

    ck_assert_int_eq(cpumask_bind(pool.tids[0], &allowed), 0);
    pinner_repin(&pool.pinner);
    ck_assert(is_on(pool.tids[0], cpus[0]));
    ck_assert_uint_eq(summary().replans, 2);
    pinner_repin(&pool.pinner);
    ck_assert_uint_eq(summary().replans, 3);
    stop();
}

/* taskset on all threads is the operator's will, until the next one. */
TEST(new_mask_of_the_process_is_obeyed)
{
    look_at_machine();
    if (cpu_count < 2 || !HAVE_HWLOC) {
        return;
    }
    char line[640], list[PIN_LIST_LEN];
    struct cpumask first = only(cpus[0]);
    start("cores");
    pid_t tids[] = {getpid(), pool.tids[0], pool.tids[1]};
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(cpumask_bind(tids[i], &first), 0);
    }
    ck_assert(pinner_check(&pool.pinner, line, sizeof line));
    cpumask_describe(&first, list, sizeof list);
    ck_assert_str_eq(summary().allowed_list, list);
    ck_assert(summary().is_oversubscribed);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(is_on(tids[i], cpus[0]));
    }
    ck_assert(!pinner_check(&pool.pinner, line, sizeof line));
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(cpumask_bind(tids[i], &allowed), 0);
    }
    ck_assert(pinner_check(&pool.pinner, line, sizeof line));
    ck_assert_uint_eq(summary().allowed, cpu_count);
    ck_assert(!summary().is_oversubscribed);
    ck_assert(!is_on(tids[1], cpus[1]) || !is_on(tids[2], cpus[1]));
    ck_assert_uint_eq(summary().replans, 2);
    stop();
}

/* A listed CPU is not there: nobody is pinned, until it comes. */
TEST(plan_that_fails_leaves_threads_free)
{
    look_at_machine();
    if (cpu_count < 2) {
        return;
    }
    char line[640];
    struct cpumask second = only(cpus[1]);
    ck_assert_int_eq(cpumask_bind(getpid(), &second), 0);
    start(list_of(1));
    ck_assert_ptr_nonnull(strstr(pool.pinner.why, "not among the allowed"));
    ck_assert_int_eq(summary().policy, PIN_NONE);
    ck_assert_uint_eq(summary().errors, 1);
    ck_assert_int_eq(pinner_cpu(&pool.pinner, 0), -1);
    ck_assert(!pinner_check(&pool.pinner, line, sizeof line));
    ck_assert_int_eq(cpumask_bind(getpid(), &allowed), 0);
    ck_assert(pinner_check(&pool.pinner, line, sizeof line));
    ck_assert_uint_eq(summary().errors, 0);
    ck_assert(is_on(pool.tids[0], cpus[0]));
    stop();
}

TEST(none_touches_nobody)
{
    look_at_machine();
    char line[640];
    struct cpumask now, first = only(cpus[0]);
    start("none");
    ck_assert_int_eq(cpumask_bind(pool.tids[0], &first), 0);
    ck_assert(!pinner_check(&pool.pinner, line, sizeof line));
    pinner_repin(&pool.pinner);
    ck_assert(is_on(pool.tids[0], cpus[0]));
    ck_assert_int_eq(cpumask_read(pool.tids[1], &now), 0);
    ck_assert(cpumask_equals(&now, &allowed));
    ck_assert_uint_eq(summary().replans, 0);
    ck_assert_uint_eq(summary().errors, 0);
    stop();
}

/* ---- masks ----------------------------------------------------------------------------- */

/* Whatever the asking thread is bound to. */
TEST(asking_for_the_cpuset_leaves_no_trace)
{
    struct cpumask before, cpuset;
    look_at_machine();
    ck_assert_int_eq(cpumask_read_cpuset(&before), 0);
    ck_assert_uint_ge(cpumask_count(&before), cpu_count);
    for (unsigned i = 0; i < cpu_count && i < 4; i++) {
        struct cpumask one = only(cpus[i]);
        ck_assert_int_eq(cpumask_bind(0, &one), 0);
        ck_assert_int_eq(cpumask_read_cpuset(&cpuset), 0);
        ck_assert(cpumask_equals(&cpuset, &before));
        ck_assert(is_on(0, cpus[i]));
    }
}

TEST(masks_are_described)
{
    static const struct {
        const char *text;
        unsigned cap;
        unsigned cpus[8]; /* ended by 0, which is always there */
    } rows[] = {
        {"0", 8, {0}},
        {"0-1", 8, {1}},
        {"0-2,8,10-11", 32, {1, 2, 8, 10, 11}},
        {"0,4095", 32, {4095}},
        {"0,2,4,6...", 11, {2, 4, 6, 8}},
        {"...", 4, {1}},
    };
    for (unsigned i = 0; i < ROWS(rows); i++) {
        struct cpumask m = {0};
        char text[32];
        cpumask_add(&m, 0);
        for (unsigned n = 0; rows[i].cpus[n] != 0; n++) {
            cpumask_add(&m, rows[i].cpus[n]);
        }
        cpumask_describe(&m, text, rows[i].cap);
        ck_assert_str_eq(text, rows[i].text);
    }
}
