/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The network: cards and their interrupts, sockets, and what may connect.
 */

#include "doctor/rows.h"

#define NIC_NAME 32
#define FLUSH_WARN_NS 20000 /* a good part of a request's time */
#define NET "/sys/class/net/"

/* ---- network cards -------------------------------------------------------------------- */

struct nic {
    char name[NIC_NAME];
    unsigned rx, tx, irqs;  /* queues and interrupts */
    unsigned rps, rfs, xps; /* queues where it is on */
    struct cpumask irq_cpus;
    uint64_t flush_ns;
};

/* How many of the queues' files have a digit that is not 0. */
static unsigned
count_set(const struct host *h, const char *nic, const char *file, unsigned *queues)
{
    char pattern[128], line[HOST_LINE];
    unsigned set = 0;
    glob_t found;
    snprintf(pattern, sizeof pattern, NET "%s/queues/%s", nic, file);
    *queues = host_glob(h, pattern, &found);
    for (unsigned i = 0; i < *queues; i++) {
        set += host_line(h, line, host_found(h, &found, i)) &&
               line[strspn(line, "0,")] != '\0';
    }
    globfree(&found);
    return set;
}

/* A card's interrupts are those of its device, or of the one that it is a part of (virtio). */
static void
read_irqs(const struct host *h, struct nic *nic)
{
    static const char *const places[] = {"device", "device/.."};
    for (unsigned i = 0; nic->irqs == 0 && i < 2; i++) {
        char pattern[128];
        glob_t found;
        snprintf(pattern, sizeof pattern, NET "%s/%s/msi_irqs/[0-9]*", nic->name,
                 places[i]);
        unsigned count = host_glob(h, pattern, &found);
        for (unsigned at = 0; at < count; at++) {
            const char *irq = strrchr(found.gl_pathv[at], '/') + 1;
            struct cpumask cpus;
            if (host_cpus(h, &cpus,
                          host_at("/proc/irq/%s/effective_affinity_list", irq)) ||
                host_cpus(h, &cpus, host_at("/proc/irq/%s/smp_affinity_list", irq))) {
                nic->irqs++;
                CPU_OR_S(sizeof cpus.sets, nic->irq_cpus.sets, nic->irq_cpus.sets,
                         cpus.sets);
            }
        }
        globfree(&found);
    }
}

static void
read_nic(const struct host *h, struct nic *nic)
{
    unsigned files;
    nic->rps = count_set(h, nic->name, "rx-*/rps_cpus", &nic->rx);
    nic->rfs = count_set(h, nic->name, "rx-*/rps_flow_cnt", &files);
    nic->xps = count_set(h, nic->name, "tx-*/xps_cpus", &nic->tx);
    if (!host_number(h, &nic->flush_ns, host_at(NET "%s/gro_flush_timeout", nic->name))) {
        nic->flush_ns = 0;
    }
    read_irqs(h, nic);
}

/* The worst of what the row's judge finds of the cards. */
static void
look_nics(const struct host *h, struct doctor_finding *f)
{
    glob_t found;
    unsigned count = host_glob(h, NET "*/device", &found);
    bool is_local = h->conf.reach == DOCTOR_REACH_HOST;
    finding_set(f, DOCTOR_GOOD,
                is_local ? "clients on this host only" : "no network card");
    for (unsigned i = 0; i < count && !is_local; i++) {
        struct doctor_finding one = {.check = f->check};
        struct nic nic = {.rx = 0};
        char state[HOST_LINE];
        const char *name = host_found(h, &found, i) + strlen(NET);
        snprintf(nic.name, sizeof nic.name, "%.*s", (int)strcspn(name, "/"), name);
        if (host_line(h, state, host_at(NET "%s/operstate", nic.name)) &&
            strcmp(state, "down") == 0) {
            continue;
        }
        read_nic(h, &nic);
        finding_value(&one, "%s", nic.name);
        f->check->judge(h, &nic, &one);
        if (one.level < f->level || f->value[0] == '\0') {
            *f = one;
        }
    }
    globfree(&found);
}

static void
judge_irqs(const struct host *h, const struct nic *nic, struct doctor_finding *f)
{
    char list[DOCTOR_VALUE_LEN];
    struct cpumask common = cpumask_common(&nic->irq_cpus, &h->workers);
    unsigned shared = cpumask_count(&common), workers = cpumask_count(&h->workers);
    cpumask_describe(&nic->irq_cpus, list, sizeof list);
    if (nic->irqs == 0) {
        finding_set(f, DOCTOR_GOOD, "%s: has no interrupts of its own", nic->name);
    } else if (nic->rx > 1 && cpumask_count(&nic->irq_cpus) == 1 &&
               cpumask_count(&h->online) != 1) {
        finding_set(f, DOCTOR_WARN, "%s: the interrupts of %u queues are all on CPU %s",
                    nic->name, nic->rx, list);
    } else if (shared > 0 && shared < workers) {
        finding_set(f, DOCTOR_NOTE,
                    "%s: interrupts on CPUs %s, those of %u of %u workers", nic->name,
                    list, shared, workers);
    } else {
        finding_set(f, DOCTOR_GOOD, "%s: %u interrupts on CPUs %s", nic->name, nic->irqs,
                    list);
    }
}

static void
judge_queues(const struct host *h, const struct nic *nic, struct doctor_finding *f)
{
    unsigned cpus = cpumask_count(&h->allowed);
    unsigned wanted = h->conf.threads < cpus ? h->conf.threads : cpus;
    finding_set(f, nic->rx < wanted && nic->rps == 0 ? DOCTOR_WARN : DOCTOR_GOOD,
                "%s: %u workers, receive queues: %u, those with RPS: %u", nic->name,
                h->conf.threads, nic->rx, nic->rps);
}

static void
judge_flows(const struct host *h, const struct nic *nic, struct doctor_finding *f)
{
    uint64_t entries;
    if (!host_number(h, &entries, "/proc/sys/net/core/rps_sock_flow_entries")) {
        entries = 0;
    }
    bool is_half = (entries > 0) != (nic->rfs > 0) || (nic->rps > 0 && nic->rfs == 0);
    finding_set(f, is_half ? DOCTOR_NOTE : DOCTOR_GOOD,
                "%s: RPS on %u of %u queues, RFS on %u, rps_sock_flow_entries %llu",
                nic->name, nic->rps, nic->rx, nic->rfs, (unsigned long long)entries);
}

static void
judge_sending(const struct host *h, const struct nic *nic, struct doctor_finding *f)
{
    (void)h;
    finding_set(f, nic->tx > 1 && nic->xps == 0 ? DOCTOR_NOTE : DOCTOR_GOOD,
                "%s: XPS on %u of %u sending queues", nic->name, nic->xps, nic->tx);
}

static void
judge_flush(const struct host *h, const struct nic *nic, struct doctor_finding *f)
{
    bool is_slow = nic->flush_ns >= FLUSH_WARN_NS && !h->conf.suspends_irqs;
    finding_set(f, is_slow ? DOCTOR_WARN : DOCTOR_GOOD,
                "%s: gro_flush_timeout is %llu us", nic->name,
                (unsigned long long)nic->flush_ns / 1000);
}

static void
look_irqbalance(const struct host *h, struct doctor_finding *f)
{
    char name[HOST_LINE];
    glob_t found;
    unsigned count = host_glob(h, "/proc/[0-9]*/comm", &found);
    finding_set(f, DOCTOR_GOOD, "does not run");
    for (unsigned i = 0; i < count && f->level == DOCTOR_GOOD; i++) {
        if (host_line(h, name, host_found(h, &found, i)) &&
            strcmp(name, "irqbalance") == 0) {
            finding_set(f, DOCTOR_WARN, "runs (%s)", host_found(h, &found, i));
        }
    }
    globfree(&found);
}

static void
look_polling(const struct host *h, struct doctor_finding *f)
{
    uint64_t poll, read;
    if (!host_number(h, &poll, f->check->path) ||
        !host_number(h, &read, "/proc/sys/net/core/busy_read")) {
        finding_unread(f, f->check->path, "the kernel does not poll");
    } else {
        finding_set(f, poll + read > 0 ? DOCTOR_NOTE : DOCTOR_GOOD,
                    "busy_poll is %llu, busy_read %llu", (unsigned long long)poll,
                    (unsigned long long)read);
    }
}

/* ---- sockets -------------------------------------------------------------------------- */

/* A queue of connections that is to hold what -b says. */
static void
look_backlog(const struct host *h, struct doctor_finding *f)
{
    const char *path = f->check->path;
    uint64_t room;
    finding_value(f, "%u", h->conf.backlog);
    if (!host_number(h, &room, path)) {
        finding_unread(f, path, NULL);
    } else {
        finding_set(f, room < h->conf.backlog ? f->check->level : DOCTOR_GOOD,
                    "%llu, and -b asks for %u", (unsigned long long)room,
                    h->conf.backlog);
    }
}

static void
look_files(const struct host *h, struct doctor_finding *f)
{
    uint64_t limit;
    finding_value(f, "%u", h->conf.files);
    if (!host_limit(h, &limit, "Max open files")) {
        finding_unread(f, host_at("/proc/%s/limits", h->process), NULL);
    } else if (h->conf.may_raise) {
        finding_set(f, DOCTOR_GOOD, "the server raises its limit at the start");
    } else {
        finding_set(f,
                    limit < h->conf.files_least ? DOCTOR_BAD
                    : limit < h->conf.files     ? DOCTOR_WARN
                                                : DOCTOR_GOOD,
                    "%llu files may be open; -c %u takes up to %u",
                    (unsigned long long)limit, h->conf.max_conns, h->conf.files);
    }
}

static void
look_listeners(const struct host *h, struct doctor_finding *f)
{
    static const char *const reaches[] = {
        [DOCTOR_REACH_HOST] = "this host",
        [DOCTOR_REACH_SOME] = "addresses of a network",
        [DOCTOR_REACH_WORLD] = "all addresses",
    };
    static const char *const guards[] = {
        [DOCTOR_GUARD_NONE] = "no authentication",
        [DOCTOR_GUARD_TLS] = "TLS without certificates of clients",
        [DOCTOR_GUARD_CLIENT] = "authentication",
    };
    enum doctor_level level = DOCTOR_GOOD;
    if (h->conf.reach != DOCTOR_REACH_HOST && h->conf.guard != DOCTOR_GUARD_CLIENT) {
        bool is_open =
            h->conf.reach == DOCTOR_REACH_WORLD && h->conf.guard == DOCTOR_GUARD_NONE;
        level = !is_open ? DOCTOR_NOTE : h->conf.has_udp ? DOCTOR_BAD : DOCTOR_WARN;
    }
    finding_set(f, level, "listens on %s%s, with %s", reaches[h->conf.reach],
                h->conf.has_udp ? ", also for UDP" : "", guards[h->conf.guard]);
}

/* clang-format off */
static const struct doctor_check rows[] = {
    {.name = "irqbalance", .look = look_irqbalance, .path = "/proc/self/comm",
     .wanted = "not running, and interrupts where they were put",
     .why = "It moves interrupts while connections stay, so that they arrive on other CPUs "
            "than those of their workers. All papers stopped it: \"grave imbalance\" of "
            "soft interrupts otherwise (Reconciling, 3.2.1; Filling the Pipe, 3.2).",
     .mend = "systemctl stop irqbalance",
     .stay = "systemctl disable irqbalance; or in its configuration\n"
             "IRQBALANCE_BANNED_CPULIST= with the workers' CPUs"},
    {.name = "nic-interrupts", .look = look_nics, .path = NET, .judge = judge_irqs,
     .wanted = "a CPU for each queue: all workers', or none of them",
     .why = "One CPU takes all interrupts until it is full; and where some workers have "
            "interrupts and others do not, the former set the tail (Managing Interference, "
            "4.4). On the workers' CPUs neighbours are safe (2.4); on CPUs of their own the "
            "peak is higher: 138 MB/s instead of 70 with one worker (Filling the Pipe, "
            "4.4.3). On the wrong memory node they cost 31 % (4.4.2).",
     .mend = "for each queue of {} in /proc/interrupts, another CPU:\n"
             "echo CPU > /proc/irq/NUMBER/smp_affinity_list",
     .stay = "a unit that does this when the network is up; no irqbalance"},
    {.name = "nic-queues", .look = look_nics, .path = NET, .judge = judge_queues,
     .wanted = "a receive queue for each worker, or RPS",
     .why = "One CPU receives for several workers. Measured: at most 500,000 packets a "
            "second without receive-side scaling (Managing Interference, 2.4). Kernel: "
            "networking/scaling.",
     .mend = "ethtool -L {} combined WORKERS; where the card has fewer, RPS:\n"
             "echo MASK > " NET "{}/queues/rx-0/rps_cpus",
     .stay = "CombinedChannels= in a .link file of systemd-networkd; RPS:\n"
             "a rule of udev for the queues of {}"},
    {.name = "flow-steering", .look = look_nics, .path = NET, .judge = judge_flows,
     .wanted = "RFS on all queues with rps_sock_flow_entries, or neither",
     .why = "RPS alone spreads connections by a hash, to CPUs other than their worker's; "
            "RFS and flow affinity of the card bring them to it, which protects the server "
            "and its neighbours (Managing Interference, 4.4). With --steer=cpu the "
            "connections go to the packets instead. Kernel: networking/scaling.",
     .mend = "sysctl -w net.core.rps_sock_flow_entries=32768\n"
             "echo 4096 > " NET "{}/queues/rx-0/rps_flow_cnt, each queue",
     .stay = "net.core.rps_sock_flow_entries = 32768 in /etc/sysctl.d/, and\n"
             "a rule of udev for the queues of {}"},
    {.name = "transmit-steering", .look = look_nics, .path = NET, .judge = judge_sending,
     .wanted = "XPS: a sending queue for each CPU",
     .why = "Workers that share a sending queue wait for its lock, and its completions "
            "interrupt another's CPU. Kernel: networking/scaling.",
     .mend = "echo MASK > " NET "{}/queues/tx-0/xps_cpus, each queue",
     .stay = "a rule of udev for the queues of {}"},
    {.name = "gro-flush", .look = look_nics, .path = NET, .judge = judge_flush,
     .wanted = "0, unless --irq-suspend is used",
     .why = "Packets are held back for this time to be handed over together. Published: "
            "deferring interrupts without suspending them had a p95 of 633 us at 800,000 "
            "requests a second, 298 us without (netdev, IRQ suspension, v6). Also turn off "
            "coalescing of the card: ethtool -C {} adaptive-rx off rx-usecs 0 (Filling the "
            "Pipe, 3.2).",
     .mend = "echo 0 > " NET "{}/gro_flush_timeout",
     .stay = "a rule of udev for {}"},
    {.name = "busy-poll", .look = look_polling, .path = "/proc/sys/net/core/busy_poll",
     .wanted = "0; --busy-poll polls for the server alone",
     .why = "All programs poll their sockets before they sleep and take CPU time from the "
            "workers. Kernel: networking/napi.",
     .mend = "sysctl -w net.core.busy_poll=0 net.core.busy_read=0",
     .stay = "both in /etc/sysctl.d/"},
    {.name = "somaxconn", .look = look_backlog,
     .path = "/proc/sys/net/core/somaxconn", .level = DOCTOR_WARN,
     .wanted = "{} or more",
     .why = "The kernel cuts the backlog of the listeners to it. When many clients connect "
            "at once, as after a restart, the rest is dropped and tries again a second "
            "later. Kernel: networking/ip-sysctl.",
     .mend = "sysctl -w net.core.somaxconn={}; restart the server",
     .stay = "net.core.somaxconn = {} in /etc/sysctl.d/"},
    {.name = "syn-backlog", .look = look_backlog,
     .path = "/proc/sys/net/ipv4/tcp_max_syn_backlog", .level = DOCTOR_NOTE,
     .wanted = "{} or more",
     .why = "As somaxconn, for connections whose handshake is not complete; above it there "
            "are SYN cookies at best. Kernel: networking/ip-sysctl.",
     .mend = "sysctl -w net.ipv4.tcp_max_syn_backlog={}",
     .stay = "net.ipv4.tcp_max_syn_backlog = {} in /etc/sysctl.d/"},
    {.name = "congestion", .look = look_file,
     .path = "/proc/sys/net/ipv4/tcp_congestion_control", .level = DOCTOR_NOTE, .bad = "bbr",
     .wanted = "cubic or reno within a data center and on loopback",
     .why = "BBR paces what is sent with timers, which cost CPU time on the worker's CPU. "
            "Measured: p99 beside 32 connections that send 1 MB values 143 to 196 us with "
            "bbr, 107 to 115 us with cubic (doc/benchmarks.md).",
     .mend = "sysctl -w net.ipv4.tcp_congestion_control=cubic",
     .stay = "net.ipv4.tcp_congestion_control = cubic in /etc/sysctl.d/"},
    {.name = "open-files", .look = look_files, .path = "/proc/self/limits",
     .wanted = "{} or more, or a smaller -c",
     .why = "Below -c the server does not start; a little above it statistics of the kernel "
            "and listeners take descriptors from clients.",
     .mend = "ulimit -n {} before the start, or start as root with -u",
     .stay = "LimitNOFILE={} in the unit"},
    {.name = "listeners", .look = look_listeners,
     .wanted = "addresses that clients need, and authentication",
     .why = "Whatever reaches the port may read, change and flush all items and fill the "
            "queues; with UDP and forged addresses the server can be made to attack "
            "others.",
     .mend = "start with -l ADDRESS; -Y FILE, -S, or -Z with ssl_verify_mode=2",
     .stay = "also a firewall; or IPAddressDeny=any and IPAddressAllow= in the\n"
             "unit"},
};
/* clang-format on */

const struct doctor_table doctor_network = DOCTOR_TABLE(rows);
