/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/crowd.h"

#define WEIGHT 0.5 /* of the last window in the average */

bool
crowd_init(struct crowd *c, unsigned count)
{
    *c = (struct crowd){.count = count};
    c->workers = calloc(count, sizeof c->workers[0]);
    return c->workers != NULL;
}

void
crowd_fini(struct crowd *c)
{
    free(c->workers);
    *c = (struct crowd){.count = 0};
}

double
crowd_part_of(uint64_t now, uint64_t before, nsec_t window)
{
    double f = now > before ? (double)(now - before) / (double)window : 0.0;
    return f < 1.0 ? f : 1.0;
}

static bool
is_suspect(const struct crowd_worker *w)
{
    return w->wait >= CROWD_WAIT && w->wait >= CROWD_WAIT_PART * (w->run + w->wait);
}

bool
crowd_wants_used(const struct crowd *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (c->workers[i].is_crowded || is_suspect(&c->workers[i])) {
            return true;
        }
    }
    return false;
}

/* What a CPU did, but for our own workers on it. */
static double
others_on(const struct crowd *c, const struct crowd_sample *samples, unsigned worker,
          nsec_t window)
{
    const struct crowd_sample *now = &samples[worker];
    double others = crowd_part_of(now->used_ns, c->workers[worker].last.used_ns, window);
    for (unsigned i = 0; i < c->count; i++) {
        if (samples[i].cpu == now->cpu) {
            others -= crowd_part_of(samples[i].run_ns, c->workers[i].last.run_ns, window);
        }
    }
    return others > 0.0 ? others : 0.0;
}

static void
take_sample(struct crowd *c, const struct crowd_sample *samples, unsigned i,
            nsec_t window)
{
    struct crowd_worker *w = &c->workers[i];
    const struct crowd_sample *now = &samples[i];
    w->run += WEIGHT * (crowd_part_of(now->run_ns, w->last.run_ns, window) - w->run);
    w->wait += WEIGHT * (crowd_part_of(now->wait_ns, w->last.wait_ns, window) - w->wait);
    if (now->used_ns == 0 || now->cpu < 0 || now->cpu != w->last.cpu) {
        w->others = 0.0;
    } else if (w->last.used_ns != 0) {
        w->others += WEIGHT * (others_on(c, samples, i, window) - w->others);
    }
}

/* The worker on whose CPU others do least, but for i. */
static unsigned
quietest(const struct crowd *c, unsigned i)
{
    unsigned best = i == 0;
    for (unsigned k = best + 1; k < c->count; k++) {
        if (k != i && c->workers[k].others < c->workers[best].others) {
            best = k;
        }
    }
    return best;
}

static bool
has_better(const struct crowd *c, unsigned i)
{
    return c->count > 1 &&
           c->workers[quietest(c, i)].others <= c->workers[i].others - CROWD_BETTER;
}

static void
set(struct crowd_worker *w, bool is_crowded)
{
    w->has_changed = w->has_changed || w->is_crowded != is_crowded;
    w->is_crowded = is_crowded;
    w->windows = 0;
}

static void
judge(struct crowd *c, unsigned i)
{
    struct crowd_worker *w = &c->workers[i];
    bool speaks = w->is_crowded
                      ? w->others < CROWD_ENDS
                      : is_suspect(w) && w->others >= CROWD_BEGINS && has_better(c, i);
    w->windows = speaks ? w->windows + 1 : 0;
    if (w->is_crowded && w->windows >= CROWD_FREE_WINDOWS) {
        set(w, false);
    } else if (!w->is_crowded && w->windows >= CROWD_WINDOWS) {
        set(w, true);
        set(&c->workers[quietest(c, i)], false); /* one has to take them */
    }
}

void
crowd_step(struct crowd *c, const struct crowd_sample *samples, nsec_t window)
{
    for (unsigned i = 0; i < c->count; i++) {
        take_sample(c, samples, i, window);
    }
    for (unsigned i = 0; i < c->count; i++) {
        c->workers[i].has_changed = false;
    }
    for (unsigned i = 0; i < c->count; i++) {
        judge(c, i);
        c->workers[i].last = samples[i];
    }
}
