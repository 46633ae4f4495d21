/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Borrowed virtual time as a scheduler of sched_ext. A thread's virtual time is the CPU time that it
 * has used, divided by its weight. The one with the least effective time, which is virtual time minus
 * warp, runs. So a warp decides who is next, and virtual time, from which it takes nothing, what each
 * has in the long run. A thread that wakes up is put at most half of `latency` behind the others; it
 * takes the CPU from one that is ahead of it by more than `granularity`. Threads that are bound to CPUs
 * make the virtual times of CPUs differ: a thread that comes to another CPU is put near what runs there.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bvt.h"

#define QUEUE 0
#define WEIGHT 100      /* of nice 0 */
#define WEIGHT_LEAST 10 /* of nice 10; with less, threads of nice 19 wait for minutes */
#define ENQ_WAKEUP 1ULL
#define ENQ_PREEMPT (1ULL << 32)
#define LOCAL_ON (0xC0ULL << 56)
#define KICK_IDLE 1ULL
#define IS_QUEUED 1U
#define APART 100000000ULL /* ns of CPU time; threads of one CPU are not, but for warps */
#define ENOENT 2
#define SCHED_EXT 7

/* Of the kernel's types, what is used here. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
    __u64 id;
};
struct cgroup {
    struct kernfs_node *kn;
};
struct css_set {
    struct cgroup *dfl_cgrp;
};
struct sched_ext_entity {
    __u32 flags, weight;
    __u64 slice, dsq_vtime;
};
struct cpumask {
    unsigned long bits[1];
};
struct task_struct {
    unsigned policy;
    const struct cpumask *cpus_ptr;
    char comm[BVT_NAME_LEN];
    struct css_set *cgroups;
    struct sched_ext_entity scx;
};
struct scx_init_task_args;
struct sched_ext_ops {
    void (*enqueue)(struct task_struct *p, __u64 flags);
    void (*dispatch)(__s32 cpu, struct task_struct *prev);
    void (*runnable)(struct task_struct *p, __u64 flags);
    void (*running)(struct task_struct *p);
    void (*stopping)(struct task_struct *p, bool is_runnable);
    void (*enable)(struct task_struct *p);
    void (*cpu_online)(__s32 cpu);
    void (*cpu_offline)(__s32 cpu);
    __s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
    __s32 (*init)(void);
    char name[128];
};
#pragma clang attribute pop

struct bpf_iter_scx_dsq {
    __u64 opaque[6];
};
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *i, __u64 id, __u64 flags) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *i) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *i) __ksym;
extern bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *allowed) __ksym;
extern __s32 scx_bpf_create_dsq(__u64 id, __s32 node) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 id) __ksym;
extern __s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 id, __u64 slice,
                               __u64 flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 id, __u64 slice,
                                     __u64 vtime, __u64 flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 id) __ksym;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags) __ksym;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;

const volatile __u64 latency = 6000000, granularity = 1000000;
const volatile struct bvt_warp asked = {
    .warp = 40000000}; /* of threads that ask, by SCHED_EXT */
static __u64 minimum;  /* the largest one of a CPU */

struct thread {
    __u64 vtime, warp, since; /* since: its run began */
    __u64 warped, rests_until;
};

struct cpu { /* what runs there, or would but for a real-time thread */
    __u64 vtime, warp, since, weight;
    __u64 minimum; /* no thread that is ready for it has a virtual time below it */
    bool is_taken, is_running;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, BVT_CPUS_MOST);
    __type(key, __u32);
    __type(value, struct cpu);
} cpus SEC(".maps");

struct { /* the longest beginning of a thread's name decides */
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, BVT_RULES_MOST);
    __type(key, struct bvt_name);
    __type(value, struct bvt_warp);
} names SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BVT_RULES_MOST);
    __type(key, __u64);
    __type(value, struct bvt_warp);
} groups SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BVT_COUNTERS);
    __type(key, __u32);
    __type(value, __u64);
} counters SEC(".maps");

static void
count(__u32 which)
{
    __u64 *counter = bpf_map_lookup_elem(&counters, &which);
    if (counter != NULL) {
        ++*counter;
    }
}

static bool
is_before(__u64 a, __u64 b)
{
    return (__s64)(a - b) < 0;
}

static __u64
latest(__u64 a, __u64 b)
{
    return is_before(a, b) ? b : a;
}

static struct cpu *
cpu_of(const struct task_struct *p)
{
    __u32 cpu = (__u32)scx_bpf_task_cpu(p);
    return bpf_map_lookup_elem(&cpus, &cpu);
}

static __u64
weight_of(const struct task_struct *p)
{
    return p->scx.weight < WEIGHT_LEAST ? WEIGHT_LEAST : p->scx.weight;
}

static __u64
vtime_now(const struct cpu *c, __u64 now)
{
    return c->vtime + (c->is_running ? (now - c->since) * WEIGHT / c->weight : 0);
}

/* In virtual time, which passes slowly while a thread with much weight runs. */
static __u64
apart(__u64 weight)
{
    return 2 * latency + APART * WEIGHT / weight;
}

/* Of a thread that runs there is known that no other one has a lower effective time; of their
 * virtual times only if it is alone, or has no warp. */
static void
advance(struct cpu *c, __u64 vtime, __u64 warp)
{
    c->minimum =
        latest(c->minimum, scx_bpf_dsq_nr_queued(QUEUE) == 0 ? vtime : vtime - warp);
    minimum = latest(minimum, c->minimum);
}

/* A thread that has not been ready takes no part of that time. */
static void
catch_up(struct thread *t, struct cpu *c)
{
    if (c->is_taken) {
        advance(c, vtime_now(c, bpf_ktime_get_ns()), c->warp);
    }
    t->vtime = latest(t->vtime, (c->is_taken ? c->minimum : minimum) - latency / 2);
}

static const struct bvt_warp *
rule_of(struct task_struct *p)
{
    struct bvt_name name = {.bits = 8 * BVT_NAME_LEN};
    bpf_probe_read_kernel_str(name.text, sizeof name.text, p->comm);
    const struct bvt_warp *rule = bpf_map_lookup_elem(&names, &name);
    if (rule == NULL) {
        __u64 group = BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
        rule = bpf_map_lookup_elem(&groups, &group);
    }
    if (rule == NULL && p->policy == SCHED_EXT) {
        rule = (const struct bvt_warp *)&asked;
    }
    return rule;
}

/* Threads may change their names and groups. */
static void
settle_warp(struct task_struct *p, struct thread *t, __u64 now)
{
    const struct bvt_warp *rule = rule_of(p);
    if (rule != NULL && rule->limit != 0 && t->warped >= rule->limit) {
        t->rests_until = now + rule->rest;
        t->warped = 0;
        count(BVT_LIMITED);
    }
    t->warp = rule == NULL || is_before(now, t->rests_until) ? 0 : rule->warp;
}

SEC("struct_ops/runnable")
void
BPF_PROG(bvt_runnable, struct task_struct *p, __u64 flags)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
    struct cpu *c = cpu_of(p);
    if (t == NULL || c == NULL || !(flags & ENQ_WAKEUP)) {
        return;
    }
    catch_up(t, c);
    count(BVT_WAKEUPS);
}

SEC("struct_ops/enable")
void
BPF_PROG(bvt_enable, struct task_struct *p)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
    struct cpu *c = cpu_of(p);
    if (t != NULL && c != NULL) {
        catch_up(t, c);
    }
}

SEC("struct_ops/enqueue")
void
BPF_PROG(bvt_enqueue, struct task_struct *p, __u64 flags)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
    struct cpu *c = cpu_of(p);
    __u64 now = bpf_ktime_get_ns(), slice = latency / 2;
    if (t == NULL || c == NULL) {
        scx_bpf_dsq_insert_vtime(p, QUEUE, slice, minimum, flags);
        return;
    }
    settle_warp(p, t, now);
    if (c->is_taken) {
        __u64 most = vtime_now(c, now) + t->warp + apart(c->weight);
        t->vtime = is_before(most, t->vtime) ? most : t->vtime;
    }
    __u64 effective = t->vtime - t->warp;
    if ((flags & ENQ_WAKEUP) && c->is_taken &&
        is_before(effective + granularity, vtime_now(c, now) - c->warp)) {
        count(BVT_PREEMPTED);
        scx_bpf_dsq_insert(p, LOCAL_ON | (__u64)scx_bpf_task_cpu(p), slice,
                           flags | ENQ_PREEMPT);
    } else {
        scx_bpf_dsq_insert_vtime(p, QUEUE, slice, effective, flags);
        __s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
        if (idle >= 0) {
            scx_bpf_kick_cpu(idle, KICK_IDLE);
        }
    }
}

/* Who is in the queue, and may run there, with less effective time or as much. */
static bool
has_better(__s32 cpu, __u64 effective)
{
    struct task_struct *p;
    bpf_for_each(scx_dsq, p, QUEUE, 0)
    {
        if (is_before(effective, p->scx.dsq_vtime)) {
            break;
        }
        if (bpf_cpumask_test_cpu((__u32)cpu, p->cpus_ptr)) {
            return true;
        }
    }
    return false;
}

static void
charge(struct task_struct *p, struct thread *t, struct cpu *c)
{
    __u64 now = bpf_ktime_get_ns(), ran = now - t->since;
    t->since = now;
    t->vtime += ran * WEIGHT / weight_of(p);
    t->warped += t->warp != 0 ? ran : 0;
    c->vtime = t->vtime;
    c->since = now;
}

/* `prev` has had its time, and goes on if none is better. */
SEC("struct_ops/dispatch")
void
BPF_PROG(bvt_dispatch, __s32 cpu, struct task_struct *prev)
{
    struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
    struct thread *t = NULL;
    if (prev != NULL && (prev->scx.flags & IS_QUEUED)) {
        t = bpf_task_storage_get(&threads, prev, NULL, 0);
    }
    bool goes_on = false;
    if (t != NULL && c != NULL) {
        charge(prev, t, c);
        settle_warp(prev, t, t->since);
        c->warp = t->warp;
        goes_on = !has_better(cpu, t->vtime - t->warp);
    }
    if (!goes_on && scx_bpf_dsq_move_to_local(QUEUE)) {
        return;
    }
    if (t != NULL) {
        prev->scx.slice = latency / 2;
    }
    if (c != NULL) {
        c->is_taken = t != NULL;
    }
}

SEC("struct_ops/running")
void
BPF_PROG(bvt_running, struct task_struct *p)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
    struct cpu *c = cpu_of(p);
    if (t == NULL || c == NULL) {
        return;
    }
    t->since = bpf_ktime_get_ns();
    settle_warp(p, t, t->since);
    t->vtime = latest(t->vtime, c->vtime - c->warp - apart(weight_of(p)));
    *c = (struct cpu){.vtime = t->vtime,
                      .warp = t->warp,
                      .since = t->since,
                      .is_taken = true,
                      .weight = weight_of(p),
                      .minimum = c->minimum,
                      .is_running = true};
    advance(c, t->vtime, t->warp);
    if (p->scx.slice > latency / 2) { /* the kernel gives more where a CPU is idle */
        p->scx.slice = latency / 2;
    }
    count(BVT_RUNS);
    if (t->warp != 0) {
        count(BVT_WARPED);
    }
}

SEC("struct_ops/stopping")
void
BPF_PROG(bvt_stopping, struct task_struct *p, bool is_runnable)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
    struct cpu *c = cpu_of(p);
    if (t == NULL || c == NULL) {
        return;
    }
    charge(p, t, c);
    c->is_running = false;
    c->is_taken = is_runnable;
}

SEC("struct_ops.s/init_task")
__s32
BPF_PROG(bvt_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct cpu *c = cpu_of(p); /* where its parent runs */
    struct thread first = {.vtime =
                               c != NULL ? vtime_now(c, bpf_ktime_get_ns()) : minimum};
    return bpf_task_storage_get(&threads, p, &first, BPF_LOCAL_STORAGE_GET_F_CREATE) !=
                   NULL
               ? 0
               : -ENOENT;
}

/* Without these the kernel ends a scheduler when CPUs come or go. */
SEC("struct_ops/cpu_online")
void
BPF_PROG(bvt_cpu_online, __s32 cpu)
{
}

SEC("struct_ops/cpu_offline")
void
BPF_PROG(bvt_cpu_offline, __s32 cpu)
{
}

SEC("struct_ops.s/init")
__s32
BPF_PROG(bvt_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops bvt = {
    .enqueue = (void *)bvt_enqueue,
    .dispatch = (void *)bvt_dispatch,
    .runnable = (void *)bvt_runnable,
    .running = (void *)bvt_running,
    .stopping = (void *)bvt_stopping,
    .enable = (void *)bvt_enable,
    .cpu_online = (void *)bvt_cpu_online,
    .cpu_offline = (void *)bvt_cpu_offline,
    .init_task = (void *)bvt_init_task,
    .init = (void *)bvt_init,
    .name = "bvt",
};

char licence[] SEC("license") = "Dual BSD/GPL";
