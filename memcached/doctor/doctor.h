/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Looks at this host, and at the settings of a server, for what makes the slowest requests
 * slower, and says how to mend it. Only reads. What is looked at are rows of the tables in
 * doctor/check_*.c; doc/tuning.md explains them. Main thread.
 */
#pragma once

#include <limits.h>

#include "base/cpumask.h"
#include "base/must.h"

/* Worst first. */
enum doctor_level {
    DOCTOR_BAD,     /* the tail suffers for certain, or the server is in danger */
    DOCTOR_WARN,    /* the tail suffers under load */
    DOCTOR_NOTE,    /* worth a trial; depends on the use */
    DOCTOR_UNKNOWN, /* could not be read */
    DOCTOR_GOOD,
    DOCTOR_LEVELS,
};

enum doctor_reach {
    DOCTOR_REACH_HOST,  /* UNIX socket or loopback alone */
    DOCTOR_REACH_SOME,  /* some addresses of the network */
    DOCTOR_REACH_WORLD, /* all addresses */
};

/* What is asked of clients? */
enum doctor_guard {
    DOCTOR_GUARD_NONE,
    DOCTOR_GUARD_TLS,    /* encrypted, and open to all clients */
    DOCTOR_GUARD_CLIENT, /* a password, token or certificate is asked for */
};

/* The server that runs, or is to run. */
struct doctor_conf {
    const char
        *root; /* in front of each path: "" for this host, a made-up tree for tests */
    unsigned process;    /* it runs; 0: this process is to become it */
    void (*pause)(void); /* between two looks at the times of the CPUs */
    bool may_raise;      /* it starts with the right to raise limits */
    unsigned threads, max_conns, backlog;
    unsigned files_least, files; /* without the former it does not start */
    uint64_t memory_bytes, item_max;
    uint64_t locked_bytes; /* what -k wants the right to lock */
    bool is_pinned;
    struct cpumask workers; /* where they are to be; empty: anywhere */
    const char *sched;      /* --sched as it is described; NULL: the default */
    bool is_realtime, has_membind, locks_memory, suspends_irqs;
    enum doctor_reach reach;
    enum doctor_guard guard;
    bool has_udp;
};

struct doctor_check;

#define DOCTOR_FOUND_LEN 256
#define DOCTOR_VALUE_LEN 64
#define DOCTOR_CHECKS_MAX 64

struct doctor_finding {
    const struct doctor_check *check;
    enum doctor_level level;
    char found[DOCTOR_FOUND_LEN];
    char value[DOCTOR_VALUE_LEN]; /* what stands for {} in the texts of the check */
    char unit[NAME_MAX + 1];      /* and for {unit}; empty: the report's */
};

struct doctor_report {
    struct doctor_finding list[DOCTOR_CHECKS_MAX]; /* worst first */
    unsigned count, of_level[DOCTOR_LEVELS];
    char unit[DOCTOR_VALUE_LEN]; /* of systemd, that the server is or would be */
};

void doctor_examine(const struct doctor_conf *conf, struct doctor_report *r);
/* Is there a bad finding or a warning? */
bool doctor_has_complaints(const struct doctor_report *r);
/* 80 columns; the good ones only when asked for. */
void doctor_print(const struct doctor_report *r, bool shows_all, FILE *out);
/* An object with all findings. */
void doctor_print_json(const struct doctor_report *r, FILE *out);
