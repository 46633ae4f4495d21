/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/pin.h"

#include "base/fail.h"
#include "place/topo.h"

#define LAYOUT_PACKAGES 4 /* packages whose core counts are written out one by one */

/* A policy is nothing but an order of all allowed CPUs, of which a plan takes the first n:
 * so one more worker never moves another. These are its keys, the most significant first. */
#define KEYS 4
static const enum topo_rank orders[][KEYS] = {
    [PIN_SPREAD] = {TOPO_THREAD, TOPO_LLC_CORE, TOPO_LLC, TOPO_PACKAGE},
    [PIN_COMPACT] = {TOPO_PACKAGE, TOPO_LLC, TOPO_LLC_CORE, TOPO_THREAD},
    [PIN_CORES] = {TOPO_THREAD, TOPO_PACKAGE, TOPO_PACKAGE_CORE, TOPO_PACKAGE_CORE},
    [PIN_LLC] = {TOPO_THREAD, TOPO_LLC_CORE, TOPO_PACKAGE, TOPO_LLC},
    [PIN_SHAPE] = {TOPO_THREAD, TOPO_PACKAGE_CORE, TOPO_PACKAGE, TOPO_PACKAGE},
};

static int
policy_order(const void *a, const void *b, void *keys_)
{
    const enum topo_rank *keys = keys_;
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned x = ((const struct topo_cpu *)a)->rank[keys[i]];
        unsigned y = ((const struct topo_cpu *)b)->rank[keys[i]];
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return 0;
}

static unsigned
choose_listed(const struct pin_spec *spec, const struct topo *m, struct topo_cpu *chosen,
              const char *allowed_list, char *err, size_t err_len)
{
    for (unsigned i = 0; i < spec->list_len; i++) {
        const struct topo_cpu *cpu = topo_find(m, spec->list[i]);
        if (cpu == NULL) {
            fail_because(err, err_len,
                         "CPU %d of the pin list is not among the allowed CPUs (%s)",
                         spec->list[i], allowed_list);
            return 0;
        }
        chosen[i] = *cpu;
    }
    return spec->list_len;
}

/* How many CPUs of the core that cpus[first] is the first of are there. */
static unsigned
threads_of_core(const struct topo *m, unsigned first)
{
    const struct topo_cpu *core = &m->cpus[first];
    unsigned n = 1;
    while (first + n < m->count && m->cpus[first + n].rank[TOPO_THREAD] == n &&
           m->cpus[first + n].core_id == core->core_id) {
        n++;
    }
    return n;
}

/* Of each socket the first cores that have enough threads, of these the first threads. */
static unsigned
choose_shape(const struct pin_spec *spec, const struct topo *m, struct topo_cpu *chosen,
             char *err, size_t err_len)
{
    const struct pin_shape *shape = &spec->shape;
    unsigned count = 0;
    unsigned taken[PIN_SOCKETS_MAX] = {0};
    for (unsigned i = 0; i < m->count; i++) {
        unsigned socket = m->cpus[i].rank[TOPO_PACKAGE];
        if (m->cpus[i].rank[TOPO_THREAD] != 0 || socket >= shape->sockets ||
            taken[socket] == shape->cores[socket] ||
            threads_of_core(m, i) < shape->threads) {
            continue;
        }
        for (unsigned n = 0; n < shape->threads; n++) {
            chosen[count] = m->cpus[i + n];
            chosen[count++].rank[TOPO_PACKAGE_CORE] = taken[socket];
        }
        taken[socket]++;
    }
    for (unsigned i = 0; i < shape->sockets; i++) {
        if (taken[i] < shape->cores[i]) {
            fail_because(
                err, err_len,
                "the pin shape does not fit: socket %u has %u of the %u cores with "
                "%u threads",
                i, taken[i], shape->cores[i], shape->threads);
            return 0;
        }
    }
    return count;
}

/* Writes the CPUs in the order in which workers get them; returns how many, 0 with err. */
static unsigned
choose(const struct pin_spec *spec, const struct topo *m, struct topo_cpu *chosen,
       const struct pin_plan *plan, char *err, size_t err_len)
{
    unsigned count = m->count;
    switch (spec->policy) {
    case PIN_LIST:
        return choose_listed(spec, m, chosen, plan->allowed_list, err, err_len);
    case PIN_SHAPE:
        count = choose_shape(spec, m, chosen, err, err_len);
        if (count > 0 && count < plan->count) {
            fail_because(err, err_len, "the pin shape has %u CPUs for %u workers", count,
                         plan->count);
            return 0;
        }
        break;
    default:
        memcpy(chosen, m->cpus, m->count * sizeof chosen[0]);
        break;
    }
    qsort_r(chosen, count, sizeof chosen[0], policy_order,
            (void *)(uintptr_t)orders[spec->policy]);
    return count;
}

/* Writes "6c" or "3-6c"; returns how long it is. */
static int
write_range(char *dst, size_t cap, unsigned low, unsigned high, char unit)
{
    return low == high ? snprintf(dst, cap, "%u%c", low, unit)
                       : snprintf(dst, cap, "%u-%u%c", low, high, unit);
}

/* "2s6c1t": sockets, cores of each, threads of each core, of the places taken. Sockets that
 * differ are listed one by one ("2s3,6c2t"), many that differ and threads as a range. */
static void
describe_layout(struct topo_cpu *used, unsigned count, char *dst, size_t cap)
{
    unsigned packages = 0, cores[CPUMASK_CPUS], core_low = UINT32_MAX, core_high = 0;
    unsigned thread_low = UINT32_MAX, thread_high = 0;
    qsort(used, count, sizeof used[0], topo_tree_order);
    for (unsigned i = 0; i < count;) {
        unsigned first = i, package = packages++;
        cores[package] = 0;
        while (i < count &&
               used[i].rank[TOPO_PACKAGE] == used[first].rank[TOPO_PACKAGE]) {
            unsigned core = i;
            while (i < count && used[i].core_id == used[core].core_id &&
                   used[i].rank[TOPO_PACKAGE] == used[core].rank[TOPO_PACKAGE]) {
                i++;
            }
            cores[package]++;
            thread_low = i - core < thread_low ? i - core : thread_low;
            thread_high = i - core > thread_high ? i - core : thread_high;
        }
        core_low = cores[package] < core_low ? cores[package] : core_low;
        core_high = cores[package] > core_high ? cores[package] : core_high;
    }
    int len = snprintf(dst, cap, "%us", packages);
    if (core_low != core_high && packages <= LAYOUT_PACKAGES) {
        for (unsigned i = 0; i < packages; i++) {
            char mark = i + 1 < packages ? ',' : 'c';
            len += snprintf(dst + len, cap - (size_t)len, "%u%c", cores[i], mark);
        }
    } else {
        len += write_range(dst + len, cap - (size_t)len, core_low, core_high, 'c');
    }
    len += write_range(dst + len, cap - (size_t)len, thread_low, thread_high, 't');
    must((size_t)len < cap);
}

/* What no worker has is for the other threads; when that is nothing, all is. */
static void
plan_background(struct pin_plan *plan, const struct cpumask *allowed)
{
    plan->background = *allowed;
    for (unsigned i = 0; i < plan->count && plan->policy != PIN_NONE; i++) {
        cpumask_remove(&plan->background, (unsigned)plan->places[i].cpu);
    }
    plan->has_background =
        plan->policy != PIN_NONE && cpumask_count(&plan->background) > 0;
    if (plan->has_background) {
        cpumask_describe(&plan->background, plan->background_list,
                         sizeof plan->background_list);
    } else {
        plan->background = *allowed;
    }
}

static bool
plan_places(const struct pin_spec *spec, const struct topo *m, struct pin_plan *plan,
            char *err, size_t err_len)
{
    if (spec->policy == PIN_NONE) {
        for (unsigned i = 0; i < plan->count; i++) {
            plan->places[i] = (struct cpu_place){-1, -1, -1, -1, -1};
        }
        plan->capacity = m->count;
        snprintf(plan->layout, sizeof plan->layout, "none");
        return true;
    }
    struct topo_cpu *chosen = calloc(CPUMASK_CPUS, sizeof chosen[0]);
    if (chosen == NULL) {
        return fail_because(err, err_len, "out of memory");
    }
    unsigned count = choose(spec, m, chosen, plan, err, err_len);
    if (count > 0) {
        for (unsigned i = 0; i < plan->count; i++) {
            plan->places[i] = chosen[i % count].place;
        }
        plan->capacity = count;
        plan->is_oversubscribed = plan->count > count;
        if (m->has_topology) {
            describe_layout(chosen, plan->count < count ? plan->count : count,
                            plan->layout, sizeof plan->layout);
        } else {
            snprintf(plan->layout, sizeof plan->layout, "unknown");
        }
    }
    free(chosen);
    return count > 0;
}

static bool
plan_selected(const struct pin_spec *spec, unsigned workers, const struct topo *m,
              struct pin_plan *plan, char *err, size_t err_len)
{
    struct cpumask allowed = {0};
    must(workers > 0);
    if (m->count == 0) {
        return fail_because(err, err_len, "no CPU is allowed");
    }
    *plan = (struct pin_plan){
        .policy = spec->policy,
        .count = workers,
        .places = calloc(workers, sizeof plan->places[0]),
        .allowed = m->count,
    };
    if (plan->places == NULL) {
        return fail_because(err, err_len, "out of memory");
    }
    for (unsigned i = 0; i < m->count; i++) {
        cpumask_add(&allowed, (unsigned)m->cpus[i].place.cpu);
    }
    cpumask_describe(&allowed, plan->allowed_list, sizeof plan->allowed_list);
    if (!plan_places(spec, m, plan, err, err_len)) {
        pin_plan_fini(plan);
        return false;
    }
    plan_background(plan, &allowed);
    return true;
}

bool
pin_plan_on(const struct pin_spec *spec, unsigned workers, const struct topo *all,
            const struct cpumask *mask, struct pin_plan *plan, char *err, size_t err_len)
{
    struct topo m;
    *plan = (struct pin_plan){0};
    bool is_planned =
        (topo_select(&m, all, mask) || fail_because(err, err_len, "out of memory")) &&
        plan_selected(spec, workers, &m, plan, err, err_len);
    topo_fini(&m);
    return is_planned;
}

bool
pin_topology(const struct pin_spec *spec, const struct cpumask *mask, struct topo *all,
             char *err, size_t err_len)
{
    if (spec->policy != PIN_NONE && (spec->policy != PIN_LIST || HAVE_HWLOC)) {
        return topo_discover(all, NULL, err, err_len);
    }
    /* the OS numbers are enough */
    return topo_from_mask(all, mask) || fail_because(err, err_len, "out of memory");
}

bool
pin_plan_within(const struct pin_spec *spec, unsigned workers, const struct cpumask *mask,
                struct pin_plan *plan, char *err, size_t err_len)
{
    struct topo all;
    *plan = (struct pin_plan){0};
    bool is_planned = pin_topology(spec, mask, &all, err, err_len) &&
                      pin_plan_on(spec, workers, &all, mask, plan, err, err_len);
    topo_fini(&all);
    return is_planned;
}

bool
pin_plan(const struct pin_spec *spec, unsigned workers, struct pin_plan *plan, char *err,
         size_t err_len)
{
    struct cpumask mask;
    int error = cpumask_read(0, &mask);
    if (error != 0) {
        *plan = (struct pin_plan){0};
        return fail_because(err, err_len, "cannot read the CPU affinity: %s",
                            strerror(error));
    }
    return pin_plan_within(spec, workers, &mask, plan, err, err_len);
}

void
pin_plan_fini(struct pin_plan *plan)
{
    free(plan->places);
    *plan = (struct pin_plan){0};
}

unsigned
pin_workers(const struct pin_spec *spec, unsigned quota_milli)
{
    struct pin_spec none = {.policy = PIN_NONE};
    struct pin_plan plan;
    char err[PIN_LIST_LEN];
    /* Without a plan no thread is pinned. */
    bool is_planned = pin_plan(spec, 1, &plan, err, sizeof err) ||
                      pin_plan(&none, 1, &plan, err, sizeof err);
    unsigned workers = is_planned ? plan.capacity : 1;
    unsigned quota = (quota_milli + 999) / 1000;
    pin_plan_fini(&plan);
    return quota > 0 && quota < workers ? quota : workers;
}

/* ---- application ---------------------------------------------------------------------- */

int
pin_apply(const struct pin_plan *plan, unsigned i)
{
    struct cpumask one = {0};
    must(i < plan->count);
    if (plan->places[i].cpu < 0) {
        return 0;
    }
    cpumask_add(&one, (unsigned)plan->places[i].cpu);
    return cpumask_bind(0, &one);
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
        const struct cpu_place *place = &plan->places[i];
        fprintf(out, "worker %u:", i);
        print_number(out, "cpu", place->cpu);
        print_number(out, "package", place->package);
        print_number(out, "llc", place->llc);
        print_number(out, "numa", place->numa);
        print_number(out, "core", place->core);
        fputc('\n', out);
    }
    if (plan->has_background) {
        fprintf(out, "other threads: CPUs %s\n", plan->background_list);
    } else if (plan->policy != PIN_NONE) {
        fputs("other threads: any allowed CPU\n", out);
    }
}
