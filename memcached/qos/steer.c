/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/steer.h"

#include "base/part.h"

#define VOTES_MAX                                                                        \
    64 /* so that a queue that moves is learned anew in so many connections */

static const char *const mode_names[STEER_MODES] = {
    [STEER_RR] = "rr",     [STEER_CPU] = "cpu", [STEER_REUSEPORT] = "reuseport",
    [STEER_NAPI] = "napi", [STEER_P2C] = "p2c",
};

bool
steer_mode_parse(const char *text, enum steer_mode *mode)
{
    *mode = (enum steer_mode)part_find(mode_names, STEER_MODES, text, strlen(text));
    return *mode < STEER_MODES;
}

const char *
steer_mode_name(enum steer_mode mode)
{
    must(mode < STEER_MODES);
    return mode_names[mode];
}

/* ---- the map -------------------------------------------------------------------------- */

bool
steer_map_init(struct steer_map *m, const struct cpu_place *places, unsigned count,
               const struct cpu_place *known, unsigned known_count)
{
    int last = -1;
    for (unsigned i = 0; i < known_count; i++) {
        must(known[i].cpu >= 0 && known[i].cpu < CPUMASK_CPUS);
        last = known[i].cpu > last ? known[i].cpu : last;
    }
    *m = (struct steer_map){.count = count, .known_count = (unsigned)(last + 1)};
    m->cpus = calloc(count, sizeof *m->cpus);
    m->excluded = calloc(count, sizeof *m->excluded);
    m->known = calloc(m->known_count + 1, sizeof *m->known);
    if (m->cpus == NULL || m->excluded == NULL || m->known == NULL) {
        steer_map_fini(m);
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        atomic_init(&m->cpus[i], places[i].cpu);
    }
    for (unsigned i = 0; i < m->known_count; i++) {
        m->known[i].cpu = -1;
    }
    for (unsigned i = 0; i < known_count; i++) {
        m->known[known[i].cpu] = known[i];
    }
    return true;
}

void
steer_map_fini(struct steer_map *m)
{
    free(m->cpus);
    free(m->excluded);
    free(m->known);
    *m = (struct steer_map){.count = 0};
}

void
steer_map_move(struct steer_map *m, unsigned worker, int cpu)
{
    must(worker < m->count);
    atomic_store_explicit(&m->cpus[worker], cpu, memory_order_relaxed);
}

void
steer_map_exclude(struct steer_map *m, unsigned worker, bool is_excluded)
{
    must(worker < m->count);
    atomic_store_explicit(&m->excluded[worker], is_excluded, memory_order_relaxed);
}

bool
steer_map_is_excluded(const struct steer_map *m, unsigned worker)
{
    return atomic_load_explicit(&m->excluded[worker], memory_order_relaxed);
}

bool
steer_map_is_pinned(const struct steer_map *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (steer_map_cpu(m, i) >= 0) {
            return true;
        }
    }
    return false;
}

/* ---- the choice ----------------------------------------------------------------------- */

enum distance { SAME_CPU, SAME_CACHE, SAME_NODE, FAR };

static const struct cpu_place *
place_of(const struct steer_map *m, int cpu)
{
    bool is_known = cpu >= 0 && (unsigned)cpu < m->known_count && m->known[cpu].cpu >= 0;
    return is_known ? &m->known[cpu] : NULL;
}

static enum distance
distance_of(const struct steer_map *m, int from, int to)
{
    if (from == to) {
        return SAME_CPU;
    }
    const struct cpu_place *a = place_of(m, from);
    const struct cpu_place *b = place_of(m, to);
    if (a == NULL || b == NULL) {
        return FAR;
    }
    if (a->llc >= 0 && a->llc == b->llc) {
        return SAME_CACHE;
    }
    return a->numa >= 0 && a->numa == b->numa ? SAME_NODE : FAR;
}

static unsigned
load_of(const _Atomic unsigned *loads, unsigned worker)
{
    return atomic_load_explicit(&loads[worker], memory_order_relaxed);
}

/* With one connection more the worker would have more than its share of those that are not on
 * shunned workers. */
static bool
is_full(const struct steer_map *m, unsigned worker, const _Atomic unsigned *loads)
{
    uint64_t sum = 1;
    uint64_t load = (uint64_t)load_of(loads, worker) + 1;
    uint64_t count = 0;
    for (unsigned i = 0; i < m->count; i++) {
        bool counts = !steer_map_is_excluded(m, i);
        sum += counts ? load_of(loads, i) : 0;
        count += counts;
    }
    return steer_map_is_excluded(m, worker) ||
           load * count * STEER_EXCESS_DEN >
               sum * STEER_EXCESS_NUM + STEER_SPARE * count * STEER_EXCESS_DEN;
}

/* Of the workers that are nearest to the CPU the one with the fewest connections; of those that
 * have room, when only_room. One always has. */
static unsigned
nearest(const struct steer_map *m, int cpu, const _Atomic unsigned *loads, bool only_room,
        enum distance *distance)
{
    unsigned best = m->count;
    *distance = FAR;
    for (unsigned i = 0; i < m->count; i++) {
        int own = steer_map_cpu(m, i);
        enum distance d = own >= 0 && cpu >= 0 ? distance_of(m, cpu, own) : FAR;
        bool is_better = best == m->count || d < *distance ||
                         (d == *distance && load_of(loads, i) < load_of(loads, best));
        if (is_better && !(only_room && is_full(m, i, loads))) {
            best = i;
            *distance = d;
        }
    }
    return best < m->count ? best : 0; /* others take connections at the same time */
}

static unsigned
pick_in_turn(struct steer *s)
{
    unsigned count = s->map->count;
    unsigned worker = s->turn % count;
    for (unsigned i = 1; i < count && steer_map_is_excluded(s->map, worker); i++) {
        worker = (worker + 1) % count;
    }
    s->turn = (worker + 1) % count;
    return worker;
}

static unsigned
pick_of_two(struct steer *s, const _Atomic unsigned *loads)
{
    unsigned count = s->map->count;
    if (count == 1) {
        return 0;
    }
    unsigned a = (unsigned)rng_below(&s->rng, count);
    unsigned b = (a + 1 + (unsigned)rng_below(&s->rng, count - 1)) % count;
    if (steer_map_is_excluded(s->map, a) || steer_map_is_excluded(s->map, b)) {
        return pick_in_turn(s);
    }
    return load_of(loads, b) < load_of(loads, a) ? b : a;
}

/* The receive queue, with this connection's voice. One too many takes the place of the one that
 * was not used for longest. */
static struct steer_queue *
learn(struct steer *s, unsigned id, int cpu)
{
    struct steer_queue *queue = &s->queues[0], *oldest = queue;
    struct steer_queue *end = queue + s->queue_count;
    while (queue < end && queue->id != id) {
        oldest = queue->used < oldest->used ? queue : oldest;
        queue++;
    }
    if (queue == end) {
        bool is_known = s->queue_count < s->queues_max;
        queue = is_known ? end : oldest;
        s->queue_count += is_known;
        ctr_add(&s->unexpected, !is_known);
        *queue = (struct steer_queue){.id = id, .cpu = cpu};
    }
    queue->used = s->picks;
    if (cpu >= 0 && queue->votes == 0) {
        queue->cpu = cpu;
    }
    if (cpu >= 0 && queue->cpu == cpu) {
        queue->votes += queue->votes < VOTES_MAX;
    } else if (queue->votes > 0) {
        queue->votes--;
    }
    return queue;
}

/* Too many are on the worker: the nearest other one that has room gets this one. */
static unsigned
overflow(struct steer *s, int cpu, const _Atomic unsigned *loads)
{
    enum distance distance;
    ctr_add(&s->overflow, 1);
    return nearest(s->map, cpu, loads, true, &distance);
}

static unsigned
pick_by_cpu(struct steer *s, int cpu, const _Atomic unsigned *loads)
{
    enum distance distance;
    unsigned worker = nearest(s->map, cpu, loads, false, &distance);
    if (distance == FAR) {
        ctr_add(&s->fallback, 1);
        return pick_of_two(s, loads);
    }
    if (is_full(s->map, worker, loads)) {
        return overflow(s, cpu, loads);
    }
    ctr_add(distance == SAME_CPU ? &s->local : &s->near, 1);
    return worker;
}

/* By the CPU of the receive queue. Without pinned workers the queues are dealt out to them in
 * turn, so that at least each queue's connections stay together. */
static unsigned
pick_by_queue(struct steer *s, const struct steer_hint *hint,
              const _Atomic unsigned *loads)
{
    if (hint->napi == 0) {
        ctr_add(&s->fallback, 1);
        return pick_of_two(s, loads);
    }
    const struct steer_queue *queue = learn(s, hint->napi, hint->cpu);
    if (steer_map_is_pinned(s->map)) {
        return pick_by_cpu(s, queue->cpu, loads);
    }
    unsigned worker = (unsigned)(queue - s->queues) % s->map->count;
    if (is_full(s->map, worker, loads)) {
        return overflow(s, -1, loads);
    }
    ctr_add(&s->near, 1);
    return worker;
}

/* The kernel has chosen: it stays so unless the worker has too many. */
static unsigned
confirm(struct steer *s, const struct steer_hint *hint, const _Atomic unsigned *loads)
{
    unsigned worker = (unsigned)hint->given;
    if (is_full(s->map, worker, loads)) {
        return overflow(s, hint->cpu, loads);
    }
    int own = steer_map_cpu(s->map, worker);
    switch (own >= 0 && hint->cpu >= 0 ? distance_of(s->map, hint->cpu, own) : FAR) {
    case SAME_CPU:
        ctr_add(&s->local, 1);
        break;
    case SAME_CACHE:
    case SAME_NODE:
        ctr_add(&s->near, 1);
        break;
    case FAR:
        ctr_add(&s->fallback, 1);
        break;
    }
    return worker;
}

void
steer_init(struct steer *s, enum steer_mode mode, const struct steer_map *map,
           unsigned queues_max, uint64_t seed)
{
    bool is_bounded = queues_max > 0 && queues_max < STEER_QUEUES_MAX;
    *s = (struct steer){.mode = mode,
                        .map = map,
                        .queues_max = is_bounded ? queues_max : STEER_QUEUES_MAX};
    rng_init(&s->rng, seed, 0);
}

unsigned
steer_pick(struct steer *s, const struct steer_hint *hint, const _Atomic unsigned *loads)
{
    s->picks++;
    if (hint->given >= 0) {
        return confirm(s, hint, loads);
    }
    switch (s->mode) {
    case STEER_RR:
        return pick_in_turn(s);
    case STEER_P2C:
        return pick_of_two(s, loads);
    case STEER_NAPI:
        return pick_by_queue(s, hint, loads);
    case STEER_CPU:
    case STEER_REUSEPORT: /* of a socket without a listener for each worker */
        return pick_by_cpu(s, hint->cpu, loads);
    case STEER_MODES:
        break;
    }
    unreachable();
}

int
steer_home(const struct steer_map *m, unsigned worker, int cpu,
           const _Atomic unsigned *loads)
{
    enum distance distance;
    int own = steer_map_cpu(m, worker);
    if (own < 0 || cpu < 0 || own == cpu) {
        return -1;
    }
    unsigned home = nearest(m, cpu, loads, true, &distance);
    return home != worker && distance < distance_of(m, cpu, own) ? (int)home : -1;
}
