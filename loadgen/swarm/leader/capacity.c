/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/capacity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
capacity_init(struct capacity *c, unsigned parts, unsigned classes)
{
    *c = (struct capacity){
        .parts = parts,
        .classes = classes,
        .qps = calloc((size_t)parts * classes, sizeof(double)),
        .is_known = calloc(classes, sizeof(bool)),
    };
    return c->qps != NULL && c->is_known != NULL;
}

void
capacity_fini(struct capacity *c)
{
    free(c->qps);
    free(c->is_known);
    *c = (struct capacity){.parts = 0};
}

static double *
row(const struct capacity *c, unsigned class_index)
{
    must(class_index < c->classes);
    return c->qps + (size_t)class_index * c->parts;
}

void
capacity_learn(struct capacity *c, unsigned class_index, const double *qps)
{
    memcpy(row(c, class_index), qps, c->parts * sizeof *qps);
    c->is_known[class_index] = true;
}

void
capacity_weigh(const struct capacity *c, unsigned class_index, double *weights)
{
    const double *qps = row(c, class_index);
    double most = 0;
    if (!c->is_known[class_index]) {
        return;
    }
    for (unsigned i = 0; i < c->parts; i++) {
        most = weights[i] > 0 ? fmax(most, qps[i]) : most;
    }
    for (unsigned i = 0; i < c->parts && most > 0; i++) {
        weights[i] = weights[i] > 0 ? qps[i] / most : 0;
    }
}

double
capacity_of(const struct capacity *c, unsigned part)
{
    double sum = 0;
    must(part < c->parts);
    for (unsigned i = 0; i < c->classes; i++) {
        sum += c->is_known[i] ? row(c, i)[part] : 0;
    }
    return sum;
}
