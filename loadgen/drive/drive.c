/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/drive.h"

#include <math.h>

#include "base/alloc.h"

#define TIME_MAX 1e18 /* longer than any run */

void
drive_init(struct drive *d, const struct drive_conf *conf, struct lset *set,
           const struct drive_into *into)
{
    *d = (struct drive){
        .conf = *conf,
        .set = set,
        .w = set->conf.workload,
        .counters = into->counters,
        .evenness = into->evenness,
        .samples = into->samples,
        .inserted = into->inserted,
        .conns = alloc_zeroed(set->count, sizeof *d->conns),
    };
    rng_init(&d->rng, conf->seed, drive_stream(conf, STREAM_MANNERS));
    for (unsigned i = 0; i < set->count; i++) {
        set->conns[i].in_room = set->conns[i].is_dirty = false;
    }
}

void
drive_fini(struct drive *d)
{
    free(d->conns);
    d->conns = NULL;
}

uint64_t
drive_stream(const struct drive_conf *conf, enum stream purpose)
{
    return stream_of(conf->agent, conf->first_thread + conf->thread, purpose);
}

void
drive_generator_init(const struct drive *d, struct generator *g)
{
    struct generator_conf conf = {
        .workload = d->w,
        .seed = d->conf.seed,
        .stream = drive_stream(&d->conf, STREAM_REQUESTS),
        .thread = d->conf.part,
        .threads = d->conf.parts,
        .number = d->conf.number,
        .numbers = d->conf.numbers,
        .above = d->conf.above,
        .inserted = d->inserted,
        .shard = d->set->conf.shard,
    };
    generator_init(g, &conf);
}

nsec_t
drive_draw_time(struct drive *d, const struct dist *law)
{
    double u = law->kind == DIST_FIXED ? 0.5 : rng_unit(&d->rng);
    return (nsec_t)fmin(dist_value(law, u) * (double)NSEC_PER_SEC, TIME_MAX);
}

bool
drive_is_unreachable(const struct drive *d, unsigned server)
{
    for (unsigned i = 0; i < d->set->count; i++) {
        const struct lconn *c = &d->set->conns[i];
        if (c->server == server && c->state == LCONN_UP) {
            return false;
        }
    }
    return true;
}
