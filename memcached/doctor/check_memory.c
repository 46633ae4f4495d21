/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Memory: whether there is enough, and whether a worker may have to wait for it.
 */

#include "doctor/rows.h"
#include "place/cgroup.h"

#define MB_SHIFT 20
#define KB_SHIFT 10
#define BESIDE_PCT 10           /* of -m: the hash table and the like took 3 to 9 % */
#define BESIDE_BYTES (16 << 20) /* whatever -m is */
#define CONN_BYTES 1280         /* an idle connection: 560, the rest for its socket */
#define ITEMS_FEW 64            /* of the largest size that fit */

#define MB(bytes) ((unsigned long long)((bytes) >> MB_SHIFT))
#define MEMINFO "/proc/meminfo"

/* What the server takes when it is full and all its connections are there. */
static uint64_t
need_of(const struct doctor_conf *c)
{
    return c->memory_bytes + c->memory_bytes * BESIDE_PCT / 100 + BESIDE_BYTES +
           (uint64_t)c->max_conns * CONN_BYTES;
}

static bool
read_meminfo(const struct host *h, const char *name, uint64_t *bytes)
{
    bool is_read = host_field(h, bytes, MEMINFO, name);
    *bytes <<= is_read ? KB_SHIFT : 0;
    return is_read;
}

/* ---- enough --------------------------------------------------------------------------- */

static void
look_limit(const struct host *h, struct doctor_finding *f)
{
    uint64_t need = need_of(&h->conf);
    struct cgroup_setter setter;
    uint64_t limit = cgroup_memory_bytes(h->conf.root, h->process, &setter);
    finding_value(f, "%llu", MB(need) + 1);
    finding_unit(f, setter.name);
    if (limit == 0) {
        finding_set(f, DOCTOR_GOOD, "the control group sets no limit");
    } else {
        finding_set(f,
                    limit <= h->conf.memory_bytes ? DOCTOR_BAD
                    : limit < need                ? DOCTOR_WARN
                                                  : DOCTOR_GOOD,
                    "a limit of %llu MB; -m %llu takes about %llu MB when full",
                    MB(limit), MB(h->conf.memory_bytes), MB(need));
    }
}

static void
look_host(const struct host *h, struct doctor_finding *f)
{
    uint64_t need = need_of(&h->conf), total, free_now;
    if (!read_meminfo(h, "MemTotal:", &total) ||
        !read_meminfo(h, "MemAvailable:", &free_now)) {
        finding_unread(f, MEMINFO, NULL);
        return;
    }
    /* Of a server that runs, a part is in use already. */
    bool is_tight = h->conf.process == 0 && need > free_now;
    finding_value(f, "%llu", MB(free_now / 100 * (100 - BESIDE_PCT)));
    finding_set(f,
                need > total ? DOCTOR_BAD
                : is_tight   ? DOCTOR_WARN
                             : DOCTOR_GOOD,
                "%llu of %llu MB are available; -m %llu takes about %llu MB when full",
                MB(free_now), MB(total), MB(h->conf.memory_bytes), MB(need));
}

static void
look_overcommit(const struct host *h, struct doctor_finding *f)
{
    uint64_t mode, limit, committed;
    if (!host_number(h, &mode, f->check->path)) {
        finding_unread(f, f->check->path, NULL);
    } else if (mode != 2) {
        finding_set(f, DOCTOR_GOOD, "overcommit_memory is %llu",
                    (unsigned long long)mode);
    } else if (!read_meminfo(h, "CommitLimit:", &limit) ||
               !read_meminfo(h, "Committed_AS:", &committed)) {
        finding_unread(f, MEMINFO, NULL);
    } else {
        uint64_t rest = limit > committed ? limit - committed : 0;
        bool is_short = h->conf.process == 0 && rest < need_of(&h->conf);
        finding_set(f, is_short ? DOCTOR_BAD : DOCTOR_NOTE,
                    "overcommit_memory is 2, and %llu MB may still be promised",
                    MB(rest));
    }
}

static void
look_memlock(const struct host *h, struct doctor_finding *f)
{
    uint64_t limit;
    finding_value(f, "%llu", MB(h->conf.locked_bytes) + 1);
    if (!h->conf.locks_memory) {
        finding_set(f, DOCTOR_GOOD, "no memory is to be locked (-k)");
    } else if (h->conf.may_raise) {
        finding_set(f, DOCTOR_GOOD, "the server raises its limit at the start");
    } else if (!host_limit(h, &limit, "Max locked memory")) {
        finding_unread(f, host_at("/proc/%s/limits", h->process), NULL);
    } else if (limit == UINT64_MAX) {
        finding_set(f, DOCTOR_GOOD, "no limit");
    } else {
        finding_set(f, limit < h->conf.locked_bytes ? DOCTOR_WARN : DOCTOR_GOOD,
                    "%llu MB may be locked", MB(limit));
    }
}

static void
look_item(const struct host *h, struct doctor_finding *f)
{
    uint64_t items = h->conf.memory_bytes / h->conf.item_max;
    finding_set(f, items < ITEMS_FEW ? DOCTOR_WARN : DOCTOR_GOOD,
                "-I allows items of %llu KB, of which -m %llu holds %llu",
                (unsigned long long)(h->conf.item_max >> KB_SHIFT),
                MB(h->conf.memory_bytes), (unsigned long long)items);
}

/* ---- waiting -------------------------------------------------------------------------- */

#define THP "/sys/kernel/mm/transparent_hugepage"

static void
look_swap(const struct host *h, struct doctor_finding *f)
{
    uint64_t total, left, own = 0;
    const char *path = host_at("/proc/%s/status", h->process);
    bool is_out = h->conf.process != 0 && host_field(h, &own, path, "VmSwap:") && own > 0;
    if (!read_meminfo(h, "SwapTotal:", &total) || !read_meminfo(h, "SwapFree:", &left)) {
        finding_unread(f, MEMINFO, NULL);
    } else if (is_out) {
        finding_set(f, DOCTOR_BAD, "%llu KB of the server are swapped out",
                    (unsigned long long)own);
    } else if (total == 0 || h->conf.locks_memory) {
        finding_set(f, DOCTOR_GOOD, total == 0 ? "no swap" : "swap, and -k");
    } else {
        finding_set(f, left < total ? DOCTOR_WARN : DOCTOR_NOTE,
                    "%llu of %llu MB of swap are in use", MB(total - left), MB(total));
    }
}

static const char *
has_no_swap(const struct host *h)
{
    uint64_t total;
    return h->conf.locks_memory                     ? "memory is locked (-k)"
           : !read_meminfo(h, "SwapTotal:", &total) ? NULL
           : total == 0                             ? "no swap"
                                                    : NULL;
}

/* ---- nodes ---------------------------------------------------------------------------- */

static const char one_node[] = "one memory node";

/* How many nodes have CPUs of workers, or that workers may use. */
static unsigned
used_nodes(const struct host *h)
{
    bool is_bound = cpumask_count(&h->workers) > 0;
    unsigned used = 0;
    glob_t nodes;
    unsigned count = host_glob(h, "/sys/devices/system/node/node[0-9]*/cpulist", &nodes);
    for (unsigned i = 0; i < count; i++) {
        struct cpumask cpus;
        if (host_cpus(h, &cpus, host_found(h, &nodes, i))) {
            cpus = cpumask_common(&cpus, is_bound ? &h->workers : &h->allowed);
            used += cpumask_count(&cpus) > 0;
        }
    }
    globfree(&nodes);
    return used;
}

static void
look_nodes(const struct host *h, struct doctor_finding *f)
{
    unsigned used = used_nodes(h);
    if (h->nodes < 2) {
        finding_set(f, DOCTOR_GOOD, one_node);
    } else {
        finding_set(f,
                    used < 2              ? DOCTOR_GOOD
                    : h->conf.has_membind ? DOCTOR_NOTE
                                          : DOCTOR_WARN,
                    "workers on %u of %u memory nodes, %s --membind", used, h->nodes,
                    h->conf.has_membind ? "with" : "without");
    }
}

static const char *
has_one_node(const struct host *h)
{
    return h->nodes < 2 ? one_node : NULL;
}

/* clang-format off */
static const struct doctor_check rows[] = {
    {.name = "memory-limit", .look = look_limit, .path = "/proc/self/cgroup",
     .wanted = "{} MB, or a smaller -m",
     .why = "Beside the items there are the hash table, buffers and connections. Near the "
            "limit the kernel reclaims pages in the middle of requests, and at the limit it "
            "kills the server.",
     .mend = "systemctl set-property --runtime {unit} MemoryMax={}M",
     .stay = "systemctl set-property {unit} MemoryMax={}M"},
    {.name = "memory-host", .look = look_host, .path = MEMINFO,
     .wanted = "-m {} or less, or more memory",
     .why = "When the items outgrow what is free, the kernel reclaims, swaps or kills, and "
            "all of them stop workers.",
     .mend = "start with a smaller -m"},
    {.name = "overcommit", .look = look_overcommit, .path = "/proc/sys/vm/overcommit_memory",
     .wanted = "0 or 1, or enough that may be promised",
     .why = "With 2 the kernel refuses memory that is free, because it might be used: the "
            "server then answers \"out of memory\". Kernel: admin-guide/sysctl/vm.",
     .mend = "sysctl -w vm.overcommit_memory=0",
     .stay = "vm.overcommit_memory = 0 in /etc/sysctl.d/"},
    {.name = "memlock", .look = look_memlock,
     .wanted = "{} MB, as -k locks all memory",
     .why = "What is not locked may be swapped out, and a get of it waits for a disk.",
     .mend = "start as root with -u, or after: ulimit -l unlimited",
     .stay = "LimitMEMLOCK=infinity in the unit"},
    {.name = "item-size", .look = look_item,
     .wanted = "room for 64 of the largest items",
     .why = "Storing one item of that size evicts a large part of what is kept, and those "
            "misses come together. Each such get or set also takes the worker for long.",
     .mend = "start with a smaller -I, or a larger -m"},
    {.name = "huge-pages", .look = look_file, .path = THP "/enabled",
     .level = DOCTOR_WARN, .absent = "the kernel has none", .bad = "always",
     .wanted = "madvise or never",
     .why = "With always a worker that touches new memory waits until 2 MB are found and "
            "zeroed, in the middle of a set. -L asks for large pages by itself, before the "
            "first request. Kernel: admin-guide/mm/transhuge.",
     .mend = "echo madvise > " THP "/enabled",
     .stay = "kernel parameter transparent_hugepage=madvise"},
    {.name = "huge-pages-defrag", .look = look_file, .path = THP "/defrag",
     .level = DOCTOR_WARN, .absent = "the kernel has none", .bad = "always",
     .wanted = "madvise, or defer+madvise",
     .why = "With always a fault reclaims and compacts memory itself until there is a large "
            "page: stops of milliseconds. Kernel: admin-guide/mm/transhuge.",
     .mend = "echo madvise > " THP "/defrag",
     .stay = "a line of /etc/tmpfiles.d/:\n"
             "w " THP "/defrag - - - - madvise"},
    {.name = "swap", .look = look_swap, .path = MEMINFO,
     .wanted = "no swap, or -k",
     .why = "A get of a page that was swapped out waits for the disk, and with it all "
            "connections of that worker.",
     .mend = "swapoff -a, or start with -k",
     .stay = "no swap in /etc/fstab; or -k, with LimitMEMLOCK=infinity"},
    {.name = "swappiness", .look = look_file, .path = "/proc/sys/vm/swappiness",
     .level = DOCTOR_NOTE, .spare = has_no_swap, .most = 10,
     .wanted = "10 or less",
     .why = "The higher, the sooner the kernel swaps items out to keep files in memory. "
            "Kernel: admin-guide/sysctl/vm.",
     .mend = "sysctl -w vm.swappiness=1",
     .stay = "vm.swappiness = 1 in /etc/sysctl.d/"},
    {.name = "memory-nodes", .look = look_nodes, .path = "/sys/devices/system/node",
     .wanted = "a server for each node, or --membind=interleave",
     .why = "Every worker reads all items, so half of them are far away, and one node's "
            "memory may be used up first. Measured: remote memory cost 7 MB/s with one "
            "worker, 44 with four (Filling the Pipe, 4.5); a server for each node scaled "
            "where one for both did not (4.2).",
     .mend = "start with --pin and --membind=interleave; or one server\n"
             "for each node: numactl -N 0 -m 0, numactl -N 1 -m 1"},
    {.name = "numa-balancing", .look = look_file, .path = "/proc/sys/kernel/numa_balancing",
     .level = DOCTOR_WARN, .spare = has_one_node, .absent = "the kernel has none", .good = "0",
     .wanted = "0",
     .why = "To find out which node uses a page, the kernel unmaps it: the next get of it "
            "faults, and may wait for the page to move. Items are read by workers of all "
            "nodes, so moving gains nothing. Kernel: admin-guide/sysctl/kernel.",
     .mend = "sysctl -w kernel.numa_balancing=0",
     .stay = "kernel.numa_balancing = 0 in /etc/sysctl.d/"},
    {.name = "zone-reclaim", .look = look_file, .path = "/proc/sys/vm/zone_reclaim_mode",
     .level = DOCTOR_WARN, .spare = has_one_node, .absent = "the kernel has none", .good = "0",
     .wanted = "0",
     .why = "A worker that needs a page reclaims memory of its node, although other nodes "
            "have free pages. Kernel: admin-guide/sysctl/vm.",
     .mend = "sysctl -w vm.zone_reclaim_mode=0",
     .stay = "vm.zone_reclaim_mode = 0 in /etc/sysctl.d/"},
};
/* clang-format on */

const struct doctor_table doctor_memory = DOCTOR_TABLE(rows);
