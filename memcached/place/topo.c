/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/topo.h"

#include <assert.h>
#include <errno.h>

#include "base/fail.h"
#include "base/num.h"

#if HAVE_HWLOC
#include <hwloc.h>
#endif

/* ---- CPU lists ------------------------------------------------------------------------ */

static bool
parse_cpu(const char *p, size_t n, unsigned *cpu)
{
    uint32_t value;
    if (!num_u32(p, n, &value) || value >= CPUMASK_CPUS) {
        return false;
    }
    *cpu = value;
    return true;
}

const char *
topo_parse_list(const char *text, int cpus[CPUMASK_CPUS], unsigned *count)
{
    struct cpumask seen = {0};
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
            if (cpumask_has(&seen, cpu)) {
                return "the CPU list names a CPU twice";
            }
            cpumask_add(&seen, cpu);
            cpus[(*count)++] = (int)cpu;
        }
        p += len;
        if (*p == '\0') {
            return NULL;
        }
    }
}
static_assert(CPUMASK_CPUS == 4096, "the sentences of topo_parse_list say so");

/* ---- what there is -------------------------------------------------------------------- */

int
topo_tree_order(const void *a_, const void *b_)
{
    const struct topo_cpu *a = a_, *b = b_;
    const int keys[][2] = {
        {a->place.package, b->place.package},
        {a->place.llc, b->place.llc},
        {b->kind, a->kind}, /* fast cores first */
        {a->core_id, b->core_id},
        {a->place.cpu, b->place.cpu},
    };
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

static void
rank_all(struct topo *m)
{
    if (m->count == 0) {
        return;
    }
    qsort(m->cpus, m->count, sizeof m->cpus[0], topo_tree_order);
    memset(m->cpus[0].rank, 0, sizeof m->cpus[0].rank);
    for (unsigned i = 1; i < m->count; i++) {
        const struct cpu_place *a = &m->cpus[i - 1].place, *b = &m->cpus[i].place;
        const unsigned *before = m->cpus[i - 1].rank;
        unsigned *rank = m->cpus[i].rank;
        bool same_package = a->package == b->package;
        bool same_llc = same_package && a->llc == b->llc;
        bool same_core = same_llc && m->cpus[i - 1].core_id == m->cpus[i].core_id;

        rank[TOPO_PACKAGE] = before[TOPO_PACKAGE] + !same_package;
        rank[TOPO_LLC] = same_package ? before[TOPO_LLC] + !same_llc : 0;
        rank[TOPO_PACKAGE_CORE] =
            same_package ? before[TOPO_PACKAGE_CORE] + !same_core : 0;
        rank[TOPO_LLC_CORE] = same_llc ? before[TOPO_LLC_CORE] + !same_core : 0;
        rank[TOPO_THREAD] = same_core ? before[TOPO_THREAD] + 1 : 0;
    }
}

bool
topo_from_mask(struct topo *m, const struct cpumask *mask)
{
    *m = (struct topo){.cpus = calloc(CPUMASK_CPUS, sizeof m->cpus[0])};
    if (m->cpus == NULL) {
        return false;
    }
    for (unsigned i = 0; i < CPUMASK_CPUS; i++) {
        if (cpumask_has(mask, i)) {
            m->cpus[m->count++] =
                (struct topo_cpu){.place = {(int)i, -1, -1, -1, -1}, .core_id = (int)i};
        }
    }
    rank_all(m);
    return true;
}

bool
topo_select(struct topo *m, const struct topo *all, const struct cpumask *mask)
{
    *m = (struct topo){.has_topology = all->has_topology,
                       .cpus = calloc(all->count + 1, sizeof m->cpus[0])};
    if (m->cpus == NULL) {
        return false;
    }
    for (unsigned i = 0; i < all->count; i++) {
        if (cpumask_has(mask, (unsigned)all->cpus[i].place.cpu)) {
            m->cpus[m->count++] = all->cpus[i];
        }
    }
    rank_all(m);
    return true;
}

struct cpu_place *
topo_places(const struct topo *m, unsigned *count)
{
    struct cpu_place *places = calloc(m->count + 1, sizeof *places);
    for (unsigned i = 0; places != NULL && i < m->count; i++) {
        places[i] = m->cpus[i].place;
    }
    *count = m->count;
    return places;
}

void
topo_fini(struct topo *m)
{
    free(m->cpus);
    *m = (struct topo){0};
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
add_pu(struct topo *m, hwloc_topology_t topology, hwloc_obj_t pu)
{
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
    m->cpus[m->count++] = (struct topo_cpu){
        .place = {.cpu = (int)pu->os_index,
                  .package = logical_of(package),
                  .llc = logical_of(llc_of(pu)),
                  .numa = logical_of(numa_of(topology, pu->os_index)),
                  .core = logical_of(core)},
        .core_id = logical_of(core != NULL ? core : pu),
        .kind = kind_of(topology, pu),
    };
}

/* CPUs outside the cpuset too: it may grow. */
static bool
topology_load(hwloc_topology_t topology, const char *described)
{
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
    if (hwloc_topology_set_flags(topology, flags) != 0) {
        return false;
    }
    if (described != NULL &&
        (strchr(described, '/') != NULL
             ? hwloc_topology_set_xml(topology, described)
             : hwloc_topology_set_synthetic(topology, described)) != 0) {
        return false;
    }
    return hwloc_topology_load(topology) == 0;
}

bool
topo_discover(struct topo *m, const char *described, char *err, size_t err_len)
{
    *m = (struct topo){.has_topology = true};
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        return fail_because(err, err_len, "hwloc does not start: %s", strerror(errno));
    }
    if (!topology_load(topology, described)) {
        fail_because(err, err_len, "hwloc cannot read the topology: %s", strerror(errno));
        hwloc_topology_destroy(topology);
        return false;
    }
    m->cpus = calloc(CPUMASK_CPUS, sizeof m->cpus[0]);
    hwloc_obj_t pu = NULL;
    while (m->cpus != NULL &&
           (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL) {
        if (pu->os_index < CPUMASK_CPUS) {
            add_pu(m, topology, pu);
        }
    }
    hwloc_topology_destroy(topology);
    rank_all(m);
    return m->cpus != NULL || fail_because(err, err_len, "out of memory");
}

#else

bool
topo_discover(struct topo *m, const char *described, char *err, size_t err_len)
{
    *m = (struct topo){0};
    return fail_because(err, err_len,
                        "%s needs hwloc, and this program was built without hwloc",
                        described != NULL ? "a described machine" : "this pin policy");
}

#endif

const struct topo_cpu *
topo_find(const struct topo *m, int os_number)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->cpus[i].place.cpu == os_number) {
            return &m->cpus[i];
        }
    }
    return NULL;
}
