/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A check: what is looked at, and what is said about it. To add one: a row of a table in
 * doctor/check_*.c, a row of doc/tuning.md
 * (scripts/check-docs asks for it), and rows of t/unit/check_doctor.c.
 */
#pragma once

#include "doctor/host.h"

/* {} in a text stands for the finding's value, {unit} for the server's unit of systemd. A line of `mend` and `stay` is not broken when
 * it is printed: DOCTOR_TEXT_COLUMNS at most. */
#define DOCTOR_TEXT_COLUMNS 68

struct nic;

struct doctor_check {
    const char *name;
    void (*look)(const struct host *h, struct doctor_finding *f);
    /* What is read first. Where its file system is not mounted, nothing is known. */
    const char *path;
    /* For looks that several rows share. */
    enum doctor_level level; /* of what is not good */
    const char *(*spare)(
        const struct host *h); /* why it does not matter here; NULL: it does */
    const char *absent;        /* what it means that there is no such file */
    const char *good,
        *bad;      /* the only words that are good, with blanks; the part that is not */
    uint64_t most; /* or the largest number that is good */
    void (*judge)(const struct host *h, const struct nic *nic, struct doctor_finding *f);
    /* What is said. */
    const char *wanted, *why;
    const char *mend; /* now, and until the next start of what is changed */
    const char *stay; /* for good; NULL: mend is */
};

struct doctor_table {
    const struct doctor_check *rows;
    unsigned count;
};
#define DOCTOR_TABLE(rows)                                                               \
    {                                                                                    \
        (rows), sizeof(rows) / sizeof(rows)[0]                                           \
    }

extern const struct doctor_table doctor_cpu, doctor_sched, doctor_memory, doctor_network;

/* ---- for looks ------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) void
finding_set(struct doctor_finding *f, enum doctor_level level, const char *found, ...);
/* What stands for {unit}, where a control group of this name is one of systemd's. */
void finding_unit(struct doctor_finding *f, const char *group);
__attribute__((format(printf, 2, 3))) void finding_value(struct doctor_finding *f,
                                                         const char *value, ...);
/* The word that the row's file has, or that is chosen among its words ("always [madvise] never"),
 * by the row's own terms. */
void look_file(const struct host *h, struct doctor_finding *f);
/* A file could not be read, as errno says. `absent`: what it means that there is none, which is
 * good; NULL: that is not known. */
void finding_unread(struct doctor_finding *f, const char *path, const char *absent);
