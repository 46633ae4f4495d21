/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/pin.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>

#include "base/num.h"

#ifndef HAVE_HWLOC
#define HAVE_HWLOC 0
#endif
#if HAVE_HWLOC
#include <hwloc.h>
#endif

#define LAYOUT_PACKAGES 4 /* packages whose core counts are written out one by one */

/* A set of OS numbers. */
struct cpu_mask {
    bool has[PIN_CPUS_MAX];
};

/* A CPU that may be used. Ranks count allowed CPUs only, so that a mask which leaves out
 * the first thread of a core makes the second one that core's first. */
struct cpu {
    struct pin_place place;
    int core_id; /* place.core, or a number of its own where cores are unknown */
    int kind;    /* of hybrid processors: the higher, the faster; else -1 */
    unsigned package_rank;
    unsigned llc_rank;     /* in its package */
    unsigned package_core; /* rank of its core in the package */
    unsigned llc_core;     /* rank of its core in the cache domain */
    unsigned thread;       /* rank in its core */
    unsigned sort_by[4];   /* the policy's key, most significant first */
};

/* The allowed CPUs in tree order: package, cache domain, core, thread. */
struct machine {
    struct cpu *cpus;
    unsigned count;
    bool has_topology; /* false: nothing but the OS numbers is known */
};

static const char *const policy_names[] = {
    [PIN_NONE] = "none",   [PIN_SPREAD] = "spread", [PIN_COMPACT] = "compact",
    [PIN_CORES] = "cores", [PIN_LIST] = "list",
};

__attribute__((format(printf, 3, 4))) static bool
fail(char *err, size_t err_len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(err, err_len, format, args);
    va_end(args);
    return false;
}

/* Appends to the string in dst[0..cap) as a whole or not at all. */
__attribute__((format(printf, 3, 4))) static bool
append(char *dst, size_t cap, const char *format, ...)
{
    size_t len = strlen(dst);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(dst + len, cap - len, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= cap - len) {
        dst[len] = '\0';
        return false;
    }
    return true;
}

/* ---- CPU lists ------------------------------------------------------------------------ */

static bool
parse_cpu(const char *p, size_t n, unsigned *cpu)
{
    uint32_t value;
    if (!num_u32(p, n, &value) || value >= PIN_CPUS_MAX) {
        return false;
    }
    *cpu = value;
    return true;
}

/* Reads "0,2,4-7" into cpus, in the order given. NULL, or what is wrong. */
static const char *
parse_list(const char *text, int cpus[PIN_CPUS_MAX], unsigned *count)
{
    struct cpu_mask seen = {0};
    *count = 0;
    if (*text == '\0') {
        return "the CPU list is empty";
    }
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        const char *dash = memchr(p, '-', len);
        size_t first_len = dash != NULL ? (size_t)(dash - p) : len;
        unsigned first, last;
        if (!parse_cpu(p, first_len, &first)) {
            return "a CPU list is made of numbers below 4096 and ranges, such as 0,2,4-7";
        }
        last = first;
        if (dash != NULL && (!parse_cpu(dash + 1, len - first_len - 1, &last))) {
            return "a CPU list is made of numbers below 4096 and ranges, such as 0,2,4-7";
        }
        if (last < first) {
            return "a range in the CPU list runs backwards";
        }
        for (unsigned cpu = first; cpu <= last; cpu++) {
            if (seen.has[cpu]) {
                return "the CPU list names a CPU twice";
            }
            seen.has[cpu] = true;
            cpus[(*count)++] = (int)cpu;
        }
        p += len;
        if (*p == '\0') {
            return NULL;
        }
    }
}
static_assert(PIN_CPUS_MAX == 4096, "the sentences of parse_list say so");

const char *
pin_spec_parse(struct pin_spec *spec, const char *text)
{
    static const char prefix[] = "list:";
    *spec = (struct pin_spec){.policy = PIN_SPREAD};
    if (text == NULL) {
        return NULL;
    }
    for (unsigned policy = PIN_NONE; policy < PIN_LIST; policy++) {
        if (strcmp(text, policy_names[policy]) == 0) {
            spec->policy = (enum pin_policy)policy;
            return NULL;
        }
    }
    if (strncmp(text, prefix, sizeof prefix - 1) != 0) {
        return "the pin policy is one of spread, compact, cores, none, list:0,2,4-7";
    }
    int cpus[PIN_CPUS_MAX];
    unsigned count;
    const char *wrong = parse_list(text + sizeof prefix - 1, cpus, &count);
    if (wrong != NULL) {
        return wrong;
    }
    spec->list = malloc(count * sizeof cpus[0]);
    if (spec->list == NULL) {
        return "out of memory";
    }
    memcpy(spec->list, cpus, count * sizeof cpus[0]);
    spec->list_len = count;
    spec->policy = PIN_LIST;
    return NULL;
}

void
pin_spec_fini(struct pin_spec *spec)
{
    free(spec->list);
    *spec = (struct pin_spec){.policy = PIN_NONE};
}

const char *
pin_policy_name(enum pin_policy policy)
{
    must((unsigned)policy < sizeof policy_names / sizeof policy_names[0]);
    return policy_names[policy];
}

/* ---- what there is -------------------------------------------------------------------- */

/* The calling thread's affinity: what taskset left, cut by the kernel to the cpuset. */
static bool
read_affinity(struct cpu_mask *mask, char *err, size_t err_len)
{
    cpu_set_t *set = CPU_ALLOC(PIN_CPUS_MAX);
    if (set == NULL) {
        return fail(err, err_len, "out of memory");
    }
    size_t size = CPU_ALLOC_SIZE(PIN_CPUS_MAX);
    bool is_read = sched_getaffinity(0, size, set) == 0;
    if (is_read) {
        for (unsigned i = 0; i < PIN_CPUS_MAX; i++) {
            mask->has[i] = CPU_ISSET_S(i, size, set) != 0;
        }
    } else {
        fail(err, err_len, "cannot read the CPU affinity: %s", strerror(errno));
    }
    CPU_FREE(set);
    return is_read;
}

static int
tree_order(const void *a_, const void *b_)
{
    const struct cpu *a = a_, *b = b_;
    if (a->place.package != b->place.package) {
        return a->place.package < b->place.package ? -1 : 1;
    }
    if (a->place.llc != b->place.llc) {
        return a->place.llc < b->place.llc ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind > b->kind ? -1 : 1; /* fast cores first */
    }
    if (a->core_id != b->core_id) {
        return a->core_id < b->core_id ? -1 : 1;
    }
    return a->place.cpu < b->place.cpu ? -1 : a->place.cpu > b->place.cpu;
}

static void
machine_rank(struct machine *m)
{
    if (m->count == 0) {
        return;
    }
    qsort(m->cpus, m->count, sizeof m->cpus[0], tree_order);
    for (unsigned i = 1; i < m->count; i++) {
        const struct cpu *before = &m->cpus[i - 1];
        struct cpu *cpu = &m->cpus[i];
        bool same_package = cpu->place.package == before->place.package;
        bool same_llc = same_package && cpu->place.llc == before->place.llc;
        bool same_core = same_llc && cpu->core_id == before->core_id;

        cpu->package_rank = before->package_rank + !same_package;
        cpu->llc_rank = same_package ? before->llc_rank + !same_llc : 0;
        cpu->package_core = same_package ? before->package_core + !same_core : 0;
        cpu->llc_core = same_llc ? before->llc_core + !same_core : 0;
        cpu->thread = same_core ? before->thread + 1 : 0;
    }
}

/* The CPUs of the mask, of which nothing more is known. */
static bool
machine_from_mask(struct machine *m, const struct cpu_mask *mask)
{
    *m = (struct machine){.cpus = calloc(PIN_CPUS_MAX, sizeof m->cpus[0])};
    if (m->cpus == NULL) {
        return false;
    }
    for (int i = 0; i < PIN_CPUS_MAX; i++) {
        if (mask->has[i]) {
            m->cpus[m->count++] =
                (struct cpu){.place = {i, -1, -1, -1, -1}, .core_id = i};
        }
    }
    machine_rank(m);
    return true;
}

#if HAVE_HWLOC

static int
logical_of(hwloc_obj_t obj)
{
    return obj != NULL ? (int)obj->logical_index : -1;
}

/* The outermost cache that the CPU is under. */
static hwloc_obj_t
llc_of(hwloc_obj_t pu)
{
    hwloc_obj_t llc = NULL;
    for (hwloc_obj_t obj = pu; obj != NULL; obj = obj->parent) {
        if (hwloc_obj_type_is_dcache(obj->type)) {
            llc = obj;
        }
    }
    return llc;
}

static hwloc_obj_t
numa_of(hwloc_topology_t topology, unsigned cpu)
{
    hwloc_obj_t node = NULL;
    do {
        node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node);
    } while (node != NULL && !hwloc_bitmap_isset(node->cpuset, cpu));
    return node;
}

static int
kind_of(hwloc_topology_t topology, hwloc_obj_t pu)
{
#if HWLOC_API_VERSION >= 0x00020400
    return hwloc_cpukinds_get_by_cpuset(topology, pu->cpuset, 0);
#else
    (void)topology, (void)pu;
    return -1;
#endif
}

static void
machine_add(struct machine *m, hwloc_topology_t topology, hwloc_obj_t pu)
{
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
    m->cpus[m->count++] = (struct cpu){
        .place = {.cpu = (int)pu->os_index,
                  .package = logical_of(package),
                  .llc = logical_of(llc_of(pu)),
                  .numa = logical_of(numa_of(topology, pu->os_index)),
                  .core = logical_of(core)},
        .core_id = logical_of(core != NULL ? core : pu),
        .kind = kind_of(topology, pu),
    };
}

static bool
topology_load(hwloc_topology_t topology, const char *described)
{
    /* Flags 0 leave out CPUs that are offline or outside the cpuset. */
    unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
    if (hwloc_topology_set_flags(topology, flags) != 0) {
        return false;
    }
    if (described != NULL) {
        bool is_file = strchr(described, '/') != NULL;
        int rc = is_file ? hwloc_topology_set_xml(topology, described)
                         : hwloc_topology_set_synthetic(topology, described);
        if (rc != 0) {
            return false;
        }
    }
    return hwloc_topology_load(topology) == 0;
}

/* described NULL: this machine. mask NULL: all CPUs. */
static bool
machine_discover(struct machine *m, const char *described, const struct cpu_mask *mask,
                 char *err, size_t err_len)
{
    *m = (struct machine){.has_topology = true};
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        return fail(err, err_len, "hwloc does not start: %s", strerror(errno));
    }
    if (!topology_load(topology, described)) {
        fail(err, err_len, "hwloc cannot read the topology: %s", strerror(errno));
        hwloc_topology_destroy(topology);
        return false;
    }
    m->cpus = calloc(PIN_CPUS_MAX, sizeof m->cpus[0]);
    hwloc_obj_t pu = NULL;
    while (m->cpus != NULL &&
           (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL) {
        if (pu->os_index < PIN_CPUS_MAX && (mask == NULL || mask->has[pu->os_index])) {
            machine_add(m, topology, pu);
        }
    }
    hwloc_topology_destroy(topology);
    machine_rank(m);
    return m->cpus != NULL || fail(err, err_len, "out of memory");
}

#else

static bool
machine_discover(struct machine *m, const char *described, const struct cpu_mask *mask,
                 char *err, size_t err_len)
{
    (void)mask;
    *m = (struct machine){0};
    return fail(err, err_len, "%s needs hwloc, and this program was built without hwloc",
                described != NULL ? "a described machine" : "this pin policy");
}

#endif

/* ---- planning ------------------------------------------------------------------------- */

static int
policy_order(const void *a_, const void *b_)
{
    const struct cpu *a = a_, *b = b_;
    for (unsigned i = 0; i < sizeof a->sort_by / sizeof a->sort_by[0]; i++) {
        if (a->sort_by[i] != b->sort_by[i]) {
            return a->sort_by[i] < b->sort_by[i] ? -1 : 1;
        }
    }
    return 0;
}

/* A policy is nothing but an order of all allowed CPUs, of which a plan takes the first n:
 * so one more worker never moves another. */
static void
order_by_policy(struct cpu *cpus, unsigned count, enum pin_policy policy)
{
    for (unsigned i = 0; i < count; i++) {
        struct cpu *c = &cpus[i];
        unsigned spread[4] = {c->thread, c->llc_core, c->llc_rank, c->package_rank};
        unsigned compact[4] = {c->package_rank, c->llc_rank, c->llc_core, c->thread};
        unsigned cores[4] = {c->thread, c->package_rank, c->package_core, 0};
        const unsigned *key = policy == PIN_SPREAD    ? spread
                              : policy == PIN_COMPACT ? compact
                                                      : cores;
        memcpy(c->sort_by, key, sizeof c->sort_by);
    }
    qsort(cpus, count, sizeof cpus[0], policy_order);
}

static const struct cpu *
machine_find(const struct machine *m, int os_number)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->cpus[i].place.cpu == os_number) {
            return &m->cpus[i];
        }
    }
    return NULL;
}

/* Writes the CPUs in the order in which workers get them; returns how many, 0 with err. */
static unsigned
choose(const struct pin_spec *spec, const struct machine *m, struct cpu *chosen,
       const char *allowed_list, char *err, size_t err_len)
{
    if (spec->policy != PIN_LIST) {
        memcpy(chosen, m->cpus, m->count * sizeof chosen[0]);
        order_by_policy(chosen, m->count, spec->policy);
        return m->count;
    }
    for (unsigned i = 0; i < spec->list_len; i++) {
        const struct cpu *cpu = machine_find(m, spec->list[i]);
        if (cpu == NULL) {
            fail(err, err_len,
                 "CPU %d of the pin list is not among the allowed CPUs (%s)",
                 spec->list[i], allowed_list);
            return 0;
        }
        chosen[i] = *cpu;
    }
    return spec->list_len;
}

static void
describe_allowed(const struct machine *m, char *dst, size_t cap)
{
    struct cpu_mask mask = {0};
    for (unsigned i = 0; i < m->count; i++) {
        mask.has[m->cpus[i].place.cpu] = true;
    }
    dst[0] = '\0';
    for (int first = 0; first < PIN_CPUS_MAX; first++) {
        if (!mask.has[first]) {
            continue;
        }
        int last = first;
        while (last + 1 < PIN_CPUS_MAX && mask.has[last + 1]) {
            last++;
        }
        const char *comma = dst[0] != '\0' ? "," : "";
        size_t room = cap - strlen("...");
        bool fits = last > first ? append(dst, room, "%s%d-%d", comma, first, last)
                                 : append(dst, room, "%s%d", comma, first);
        if (!fits) {
            must(append(dst, cap, "..."));
            return;
        }
        first = last;
    }
}

static void
append_range(char *dst, size_t cap, unsigned low, unsigned high, char unit)
{
    must(low == high ? append(dst, cap, "%u%c", low, unit)
                     : append(dst, cap, "%u-%u%c", low, high, unit));
}

/* "2s6c1t": sockets, cores of each, threads of each core, of the places taken. Sockets that
 * differ are listed one by one ("2s3,6c2t"), many that differ and threads as a range. */
static void
describe_layout(struct cpu *used, unsigned count, char *dst, size_t cap)
{
    unsigned packages = 0, cores[PIN_CPUS_MAX], core_low = UINT32_MAX, core_high = 0;
    unsigned thread_low = UINT32_MAX, thread_high = 0;
    qsort(used, count, sizeof used[0], tree_order);
    for (unsigned i = 0; i < count;) {
        unsigned first = i, package = packages++;
        cores[package] = 0;
        while (i < count && used[i].package_rank == used[first].package_rank) {
            unsigned core = i;
            while (i < count && used[i].package_rank == used[core].package_rank &&
                   used[i].core_id == used[core].core_id) {
                i++;
            }
            cores[package]++;
            thread_low = i - core < thread_low ? i - core : thread_low;
            thread_high = i - core > thread_high ? i - core : thread_high;
        }
        core_low = cores[package] < core_low ? cores[package] : core_low;
        core_high = cores[package] > core_high ? cores[package] : core_high;
    }
    dst[0] = '\0';
    must(append(dst, cap, "%us", packages));
    if (core_low != core_high && packages <= LAYOUT_PACKAGES) {
        for (unsigned i = 0; i < packages; i++) {
            must(append(dst, cap, "%u%c", cores[i], i + 1 < packages ? ',' : 'c'));
        }
    } else {
        append_range(dst, cap, core_low, core_high, 'c');
    }
    append_range(dst, cap, thread_low, thread_high, 't');
}

static bool
plan_places(const struct pin_spec *spec, const struct machine *m, struct pin_plan *plan,
            char *err, size_t err_len)
{
    if (spec->policy == PIN_NONE) {
        for (unsigned i = 0; i < plan->count; i++) {
            plan->places[i] = (struct pin_place){-1, -1, -1, -1, -1};
        }
        must(append(plan->layout, sizeof plan->layout, "none"));
        return true;
    }
    struct cpu *chosen = calloc(PIN_CPUS_MAX, sizeof chosen[0]);
    if (chosen == NULL) {
        return fail(err, err_len, "out of memory");
    }
    unsigned count = choose(spec, m, chosen, plan->allowed_list, err, err_len);
    if (count > 0) {
        for (unsigned i = 0; i < plan->count; i++) {
            plan->places[i] = chosen[i % count].place;
        }
        plan->is_oversubscribed = plan->count > count;
        if (m->has_topology) {
            unsigned used = plan->count < count ? plan->count : count;
            describe_layout(chosen, used, plan->layout, sizeof plan->layout);
        } else {
            must(append(plan->layout, sizeof plan->layout, "unknown"));
        }
    }
    free(chosen);
    return count > 0;
}

static bool
plan_on(const struct pin_spec *spec, unsigned workers, const struct machine *m,
        struct pin_plan *plan, char *err, size_t err_len)
{
    must(workers > 0);
    if (m->count == 0) {
        return fail(err, err_len, "no CPU is allowed");
    }
    *plan = (struct pin_plan){
        .policy = spec->policy,
        .count = workers,
        .places = calloc(workers, sizeof plan->places[0]),
        .allowed = m->count,
    };
    if (plan->places == NULL) {
        return fail(err, err_len, "out of memory");
    }
    describe_allowed(m, plan->allowed_list, sizeof plan->allowed_list);
    if (!plan_places(spec, m, plan, err, err_len)) {
        pin_plan_fini(plan);
        return false;
    }
    return true;
}

bool
pin_plan(const struct pin_spec *spec, unsigned workers, struct pin_plan *plan, char *err,
         size_t err_len)
{
    *plan = (struct pin_plan){0};
    struct cpu_mask mask = {0};
    if (!read_affinity(&mask, err, err_len)) {
        return false;
    }
    struct machine m;
    bool is_known;
    if (spec->policy == PIN_NONE || (spec->policy == PIN_LIST && !HAVE_HWLOC)) {
        is_known = machine_from_mask(&m, &mask) || fail(err, err_len, "out of memory");
    } else {
        is_known = machine_discover(&m, NULL, &mask, err, err_len);
    }
    bool is_planned = is_known && plan_on(spec, workers, &m, plan, err, err_len);
    free(m.cpus);
    return is_planned;
}

bool
pin_plan_synthetic(const struct pin_spec *spec, unsigned workers, const char *synthetic,
                   const char *allowed, struct pin_plan *plan, char *err, size_t err_len)
{
    *plan = (struct pin_plan){0};
    struct cpu_mask mask = {0};
    if (allowed != NULL) {
        int cpus[PIN_CPUS_MAX];
        unsigned count;
        const char *wrong = parse_list(allowed, cpus, &count);
        if (wrong != NULL) {
            return fail(err, err_len, "%s", wrong);
        }
        for (unsigned i = 0; i < count; i++) {
            mask.has[cpus[i]] = true;
        }
    }
    struct machine m;
    bool is_planned =
        machine_discover(&m, synthetic, allowed != NULL ? &mask : NULL, err, err_len) &&
        plan_on(spec, workers, &m, plan, err, err_len);
    free(m.cpus);
    return is_planned;
}

void
pin_plan_fini(struct pin_plan *plan)
{
    free(plan->places);
    *plan = (struct pin_plan){0};
}

/* ---- application ---------------------------------------------------------------------- */

int
pin_apply(const struct pin_plan *plan, unsigned i)
{
    must(i < plan->count);
    int cpu = plan->places[i].cpu;
    if (cpu < 0) {
        return 0;
    }
    cpu_set_t *set = CPU_ALLOC(PIN_CPUS_MAX);
    if (set == NULL) {
        return ENOMEM;
    }
    size_t size = CPU_ALLOC_SIZE(PIN_CPUS_MAX);
    CPU_ZERO_S(size, set);
    CPU_SET_S((unsigned)cpu, size, set);
    int rc = pthread_setaffinity_np(pthread_self(), size, set);
    if (rc == 0) {
        rc = pthread_getaffinity_np(pthread_self(), size, set);
    }
    /* Some sandboxes accept the call and do nothing. */
    if (rc == 0 &&
        (CPU_COUNT_S(size, set) != 1 || !CPU_ISSET_S((unsigned)cpu, size, set))) {
        rc = ENOTSUP;
    }
    CPU_FREE(set);
    return rc;
}

static void
print_number(FILE *out, const char *name, int value)
{
    if (value < 0) {
        fprintf(out, " %s -", name);
    } else {
        fprintf(out, " %s %d", name, value);
    }
}

void
pin_describe(const struct pin_plan *plan, FILE *out)
{
    fprintf(out, "pin: policy %s, layout %s, %u workers, %u CPUs allowed (%s)%s\n",
            pin_policy_name(plan->policy), plan->layout, plan->count, plan->allowed,
            plan->allowed_list, plan->is_oversubscribed ? ", oversubscribed" : "");
    for (unsigned i = 0; i < plan->count; i++) {
        const struct pin_place *place = &plan->places[i];
        fprintf(out, "worker %u:", i);
        print_number(out, "cpu", place->cpu);
        print_number(out, "package", place->package);
        print_number(out, "llc", place->llc);
        print_number(out, "numa", place->numa);
        print_number(out, "core", place->core);
        fputc('\n', out);
    }
}
