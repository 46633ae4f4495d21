/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Clients that misbehave, by name: those that J. Leverich and C. Kozyrakis, "Reconciling
 * High Server Utilization and Sub-millisecond Quality-of-Service" (EuroSys 2014, 3.4),
 * set beside the clients that they measured. They send as fast as they are answered, and
 * how well they are served says nothing of whether a run is valid.
 */
#include "loadgen/options/group.h"

#include "base/part.h"

struct antagonist {
    const char *name;
    int64_t connections, depth, getcount;
    int64_t records, value_len; /* 0: as otherwise */
    double update;              /* share of sets */
};

static const struct antagonist antagonists[] = {
    {"flood", 16, 32, 1, 0, 0, 0},
    {"multiget", 4, 4, 100, 0, 0, 0},
    {"large", 4, 1, 1, 20, 500000, 0},
    {"sets", 4, 8, 1, 0, 0, 1},
};

static const char *
call_antagonist(void *conf, const char *text)
{
    struct lclass *c = conf;
    c->antagonist = part_row(PART_ROWS(antagonists), text, strlen(text));
    return c->antagonist != NULL ? NULL
                                 : "the antagonists are flood, multiget, large and sets";
}

void
antagonist_apply(struct lclass *c)
{
    const struct antagonist *a = c->antagonist;
    struct workload_conf *w = &c->workload;
    c->qps = 0;
    c->qps_share = 0;
    c->connections = a->connections;
    c->depth = a->depth;
    dist_fini(&w->getcount);
    w->getcount = dist_fixed((double)a->getcount);
    w->records = a->records != 0 ? (uint64_t)a->records : w->records;
    if (a->value_len != 0) {
        dist_fini(&w->value_size);
        w->value_size = dist_fixed((double)a->value_len);
    }
    mix_of_update(&w->mix, a->update);
}

/* clang-format off */
static const struct opt rows[] = {
    {.name = "antagonist", SCOPE(SHARED), CALL(call_antagonist),
     .arg = "flood|multiget|large|sets",
     .help = "a misbehaving client at full speed; other options override"},
};
/* clang-format on */

const struct class_group group_antagonist = {ROWS(rows)};
