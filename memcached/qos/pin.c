/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/pin.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>

#include "qos/topo.h"

#define LAYOUT_PACKAGES 4 /* packages whose core counts are written out one by one */

static const char *const policy_names[] = {
    [PIN_NONE] = "none",   [PIN_SPREAD] = "spread", [PIN_COMPACT] = "compact",
    [PIN_CORES] = "cores", [PIN_LIST] = "list",
};

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
    const char *wrong = topo_parse_list(text + sizeof prefix - 1, cpus, &count);
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

/* ---- planning ------------------------------------------------------------------------- */

static int
policy_order(const void *a_, const void *b_)
{
    const struct topo_cpu *a = a_, *b = b_;
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
order_by_policy(struct topo_cpu *cpus, unsigned count, enum pin_policy policy)
{
    for (unsigned i = 0; i < count; i++) {
        struct topo_cpu *c = &cpus[i];
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

/* Writes the CPUs in the order in which workers get them; returns how many, 0 with err. */
static unsigned
choose(const struct pin_spec *spec, const struct topo *m, struct topo_cpu *chosen,
       const char *allowed_list, char *err, size_t err_len)
{
    if (spec->policy != PIN_LIST) {
        memcpy(chosen, m->cpus, m->count * sizeof chosen[0]);
        order_by_policy(chosen, m->count, spec->policy);
        return m->count;
    }
    for (unsigned i = 0; i < spec->list_len; i++) {
        const struct topo_cpu *cpu = topo_find(m, spec->list[i]);
        if (cpu == NULL) {
            topo_fail(err, err_len,
                      "CPU %d of the pin list is not among the allowed CPUs (%s)",
                      spec->list[i], allowed_list);
            return 0;
        }
        chosen[i] = *cpu;
    }
    return spec->list_len;
}

static void
describe_allowed(const struct topo *m, char *dst, size_t cap)
{
    struct topo_mask mask = {0};
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
describe_layout(struct topo_cpu *used, unsigned count, char *dst, size_t cap)
{
    unsigned packages = 0, cores[PIN_CPUS_MAX], core_low = UINT32_MAX, core_high = 0;
    unsigned thread_low = UINT32_MAX, thread_high = 0;
    qsort(used, count, sizeof used[0], topo_tree_order);
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
plan_places(const struct pin_spec *spec, const struct topo *m, struct pin_plan *plan,
            char *err, size_t err_len)
{
    if (spec->policy == PIN_NONE) {
        for (unsigned i = 0; i < plan->count; i++) {
            plan->places[i] = (struct pin_place){-1, -1, -1, -1, -1};
        }
        must(append(plan->layout, sizeof plan->layout, "none"));
        return true;
    }
    struct topo_cpu *chosen = calloc(PIN_CPUS_MAX, sizeof chosen[0]);
    if (chosen == NULL) {
        return topo_fail(err, err_len, "out of memory");
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
plan_on(const struct pin_spec *spec, unsigned workers, const struct topo *m,
        struct pin_plan *plan, char *err, size_t err_len)
{
    must(workers > 0);
    if (m->count == 0) {
        return topo_fail(err, err_len, "no CPU is allowed");
    }
    *plan = (struct pin_plan){
        .policy = spec->policy,
        .count = workers,
        .places = calloc(workers, sizeof plan->places[0]),
        .allowed = m->count,
    };
    if (plan->places == NULL) {
        return topo_fail(err, err_len, "out of memory");
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
    struct topo_mask mask = {0};
    if (!topo_read_affinity(&mask, err, err_len)) {
        return false;
    }
    struct topo m;
    bool is_known;
    if (spec->policy == PIN_NONE || (spec->policy == PIN_LIST && !HAVE_HWLOC)) {
        is_known = topo_from_mask(&m, &mask) || topo_fail(err, err_len, "out of memory");
    } else {
        is_known = topo_discover(&m, NULL, &mask, err, err_len);
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
    struct topo_mask mask = {0};
    if (allowed != NULL) {
        int cpus[PIN_CPUS_MAX];
        unsigned count;
        const char *wrong = topo_parse_list(allowed, cpus, &count);
        if (wrong != NULL) {
            return topo_fail(err, err_len, "%s", wrong);
        }
        for (unsigned i = 0; i < count; i++) {
            mask.has[cpus[i]] = true;
        }
    }
    struct topo m;
    bool is_planned =
        topo_discover(&m, synthetic, allowed != NULL ? &mask : NULL, err, err_len) &&
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
