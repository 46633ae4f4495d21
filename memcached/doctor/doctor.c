/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>

#include "doctor/check.h"

static const struct doctor_table *const tables[] = {&doctor_cpu, &doctor_sched,
                                                    &doctor_memory, &doctor_network};
#define TABLES (sizeof tables / sizeof tables[0])

void
finding_set(struct doctor_finding *f, enum doctor_level level, const char *found, ...)
{
    va_list args;
    va_start(args, found);
    vsnprintf(f->found, sizeof f->found, found, args);
    va_end(args);
    f->level = level;
}

void
finding_value(struct doctor_finding *f, const char *value, ...)
{
    va_list args;
    va_start(args, value);
    vsnprintf(f->value, sizeof f->value, value, args);
    va_end(args);
}

void
finding_unread(struct doctor_finding *f, const char *path, const char *absent)
{
    bool is_absent = errno == ENOENT;
    bool needs_root = errno == EACCES || errno == EPERM;
    if (is_absent && absent != NULL) {
        finding_set(f, DOCTOR_GOOD, "%s", absent);
    } else {
        finding_set(f, DOCTOR_UNKNOWN, "%s could not be read: %s%s", path,
                    strerror(errno), needs_root ? "; run as root" : "");
    }
}

void
doctor_examine(const struct doctor_conf *conf, struct doctor_report *r)
{
    static struct doctor_finding all[DOCTOR_CHECKS_MAX];
    static struct host host;
    unsigned count = 0;
    *r = (struct doctor_report){.count = 0};
    host_init(&host, conf);
    for (unsigned t = 0; t < TABLES; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            must(count < DOCTOR_CHECKS_MAX);
            all[count] = (struct doctor_finding){.check = &tables[t]->rows[i]};
            all[count].check->look(&host, &all[count]);
            count++;
        }
    }
    for (unsigned level = 0; level < DOCTOR_LEVELS; level++) {
        for (unsigned i = 0; i < count; i++) {
            if (all[i].level == (enum doctor_level)level) {
                r->list[r->count++] = all[i];
                r->of_level[level]++;
            }
        }
    }
}

bool
doctor_has_complaints(const struct doctor_report *r)
{
    return r->of_level[DOCTOR_BAD] + r->of_level[DOCTOR_WARN] > 0;
}
