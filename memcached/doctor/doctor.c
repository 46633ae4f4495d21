/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/num.h"
#include "base/part.h"
#include "doctor/rows.h"

#define DEBUGFS "/sys/kernel/debug"

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
finding_unit(struct doctor_finding *f, const char *group)
{
    const char *kind = strrchr(group, '.');
    if (kind != NULL && (strcmp(kind, ".slice") == 0 || strcmp(kind, ".service") == 0 ||
                         strcmp(kind, ".scope") == 0)) {
        snprintf(f->unit, sizeof f->unit, "%s", group);
    }
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
    const char *remedy = "";
    if (errno == EACCES || errno == EPERM) {
        remedy = geteuid() != 0 ? "; run as root" : ", not even by root here";
    } else if (is_absent && strncmp(path, DEBUGFS, strlen(DEBUGFS)) == 0) {
        remedy = "; mount -t debugfs debugfs " DEBUGFS;
    }
    if (is_absent && absent != NULL) {
        finding_set(f, DOCTOR_GOOD, "%s", absent);
    } else {
        finding_set(f, DOCTOR_UNKNOWN, "%s could not be read: %s%s", path,
                    strerror(errno), remedy);
    }
}

void
look_file(const struct host *h, struct doctor_finding *f)
{
    const struct doctor_check *c = f->check;
    const char *spared = c->spare != NULL ? c->spare(h) : NULL;
    char word[HOST_LINE];
    if (spared != NULL) {
        finding_set(f, DOCTOR_GOOD, "%s", spared);
    } else if (!host_choice(h, word, c->path)) {
        finding_unread(f, c->path, c->absent);
    } else {
        uint64_t number = 0;
        bool is_good = c->good != NULL ? part_has(c->good, ' ', word)
                       : c->bad != NULL
                           ? strstr(word, c->bad) == NULL
                           : num_u64(word, strlen(word), &number) && number <= c->most;
        finding_set(f, is_good ? DOCTOR_GOOD : c->level, "%s is %.64s",
                    strrchr(c->path, '/') + 1, word);
    }
}

/* What is not mounted has no files, which would look as if all were well. */
static void
look(const struct host *h, struct doctor_finding *f)
{
    const char *path = f->check->path;
    bool is_proc = path != NULL && strncmp(path, "/proc/", strlen("/proc/")) == 0;
    if (path != NULL && !(is_proc ? h->has_proc : h->has_sys)) {
        finding_set(f, DOCTOR_UNKNOWN, "%s is not mounted here",
                    is_proc ? "/proc" : "/sys");
    } else {
        f->check->look(h, f);
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
    snprintf(r->unit, sizeof r->unit, "%s", host.unit);
    for (unsigned t = 0; t < TABLES; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            must(count < DOCTOR_CHECKS_MAX);
            all[count] = (struct doctor_finding){.check = &tables[t]->rows[i]};
            look(&host, &all[count++]);
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
