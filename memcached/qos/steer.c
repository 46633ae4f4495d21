/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/steer.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "qos/topo.h"

#define VOTES_MAX                                                                        \
    64 /* so that a queue that moves is learned anew in so many connections */
#define PROGRAM_MAX 4096
#define LINES_PER_WORKER 2

static const char *const mode_names[STEER_MODES] = {
    [STEER_RR] = "rr",     [STEER_CPU] = "cpu", [STEER_REUSEPORT] = "reuseport",
    [STEER_NAPI] = "napi", [STEER_P2C] = "p2c",
};

bool
steer_mode_parse(const char *text, enum steer_mode *mode)
{
    for (unsigned i = 0; i < STEER_MODES; i++) {
        if (strcmp(text, mode_names[i]) == 0) {
            *mode = (enum steer_mode)i;
            return true;
        }
    }
    return false;
}

const char *
steer_mode_name(enum steer_mode mode)
{
    must(mode < STEER_MODES);
    return mode_names[mode];
}

/* ---- the map -------------------------------------------------------------------------- */

bool
steer_map_init(struct steer_map *m, const struct pin_place *places, unsigned count,
               const struct pin_place *known, unsigned known_count)
{
    int last = -1;
    for (unsigned i = 0; i < known_count; i++) {
        must(known[i].cpu >= 0 && known[i].cpu < PIN_CPUS_MAX);
        last = known[i].cpu > last ? known[i].cpu : last;
    }
    *m = (struct steer_map){.count = count, .known_count = (unsigned)(last + 1)};
    m->cpus = calloc(count, sizeof *m->cpus);
    m->known = calloc(m->known_count + 1, sizeof *m->known);
    if (m->cpus == NULL || m->known == NULL) {
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

bool
steer_map_discover(struct steer_map *m, const struct pin_place *places, unsigned count)
{
    char err[256];
    struct topo topo;
    bool is_known = topo_discover(&topo, NULL, err, sizeof err);
    unsigned known_count = is_known ? topo.count : 0;
    struct pin_place *known = calloc(known_count + 1, sizeof *known);
    for (unsigned i = 0; known != NULL && i < known_count; i++) {
        known[i] = topo.cpus[i].place;
    }
    topo_fini(&topo);
    bool is_made = known != NULL && steer_map_init(m, places, count, known, known_count);
    free(known);
    return is_made;
}

void
steer_map_fini(struct steer_map *m)
{
    free(m->cpus);
    free(m->known);
    *m = (struct steer_map){.count = 0};
}

void
steer_map_move(struct steer_map *m, unsigned worker, int cpu)
{
    must(worker < m->count);
    atomic_store_explicit(&m->cpus[worker], cpu, memory_order_relaxed);
}

static int
cpu_of(const struct steer_map *m, unsigned worker)
{
    return atomic_load_explicit(&m->cpus[worker], memory_order_relaxed);
}

bool
steer_map_is_pinned(const struct steer_map *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (cpu_of(m, i) >= 0) {
            return true;
        }
    }
    return false;
}

/* ---- the choice ----------------------------------------------------------------------- */

enum distance { SAME_CPU, SAME_CACHE, SAME_NODE, FAR };

static const struct pin_place *
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
    const struct pin_place *a = place_of(m, from);
    const struct pin_place *b = place_of(m, to);
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

/* Of the workers that are nearest to the CPU the one with the fewest connections. */
static unsigned
nearest(const struct steer_map *m, int cpu, const _Atomic unsigned *loads,
        enum distance *distance)
{
    unsigned best = 0;
    *distance = FAR;
    for (unsigned i = 0; i < m->count; i++) {
        int own = cpu_of(m, i);
        enum distance d = own >= 0 ? distance_of(m, cpu, own) : FAR;
        if (d < *distance ||
            (d == *distance && load_of(loads, i) < load_of(loads, best))) {
            best = i;
            *distance = d;
        }
    }
    return best;
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
    return load_of(loads, b) < load_of(loads, a) ? b : a;
}

static bool
has_too_many(const struct steer_map *m, unsigned worker, const _Atomic unsigned *loads)
{
    uint64_t sum = 0;
    uint64_t load = load_of(loads, worker);
    for (unsigned i = 0; i < m->count; i++) {
        sum += load_of(loads, i);
    }
    return load * m->count > sum + (uint64_t)STEER_SPARE * m->count &&
           load * m->count * STEER_EXCESS_DEN > sum * STEER_EXCESS_NUM;
}

/* The CPU of the queue, with this connection's voice. */
static int
learn(struct steer *s, unsigned id, int cpu)
{
    struct steer_queue *set = s->queues[rng_mix(0, id, 0) % STEER_NAPI_SETS];
    struct steer_queue *queue = &set[0];
    for (unsigned i = 0; i < STEER_NAPI_WAYS; i++) {
        if (set[i].id == id) {
            queue = &set[i];
            break;
        }
        if (set[i].used < queue->used) {
            queue = &set[i];
        }
    }
    if (queue->id != id) {
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
    return queue->cpu;
}

static unsigned
pick_by_cpu(struct steer *s, int cpu, const _Atomic unsigned *loads)
{
    enum distance distance = FAR;
    unsigned worker = cpu >= 0 ? nearest(s->map, cpu, loads, &distance) : 0;
    if (distance == FAR) {
        ctr_add(&s->fallback, 1);
        return pick_of_two(s, loads);
    }
    if (has_too_many(s->map, worker, loads)) {
        ctr_add(&s->overflow, 1);
        return pick_of_two(s, loads);
    }
    ctr_add(distance == SAME_CPU ? &s->local : &s->near, 1);
    return worker;
}

/* The kernel has chosen: it stays so unless the worker has too many. */
static unsigned
confirm(struct steer *s, const struct steer_hint *hint, const _Atomic unsigned *loads)
{
    unsigned worker = (unsigned)hint->given;
    if (has_too_many(s->map, worker, loads)) {
        ctr_add(&s->overflow, 1);
        return pick_of_two(s, loads);
    }
    int own = cpu_of(s->map, worker);
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
           uint64_t seed, uint64_t stream)
{
    *s = (struct steer){.mode = mode, .map = map};
    rng_init(&s->rng, seed, stream);
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
        s->turn = (s->turn + 1) % s->map->count;
        return (s->turn + s->map->count - 1) % s->map->count;
    case STEER_P2C:
        return pick_of_two(s, loads);
    case STEER_NAPI:
        return pick_by_cpu(s, hint->napi != 0 ? learn(s, hint->napi, hint->cpu) : -1,
                           loads);
    case STEER_CPU:
    case STEER_REUSEPORT: /* of a socket without a listener for each worker */
        return pick_by_cpu(s, hint->cpu, loads);
    case STEER_MODES:
        break;
    }
    unreachable();
}

/* ---- socket options ------------------------------------------------------------------- */

static int
option_of(int fd, int option)
{
    int value;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

int
steer_cpu_of(int fd)
{
    return option_of(fd, SO_INCOMING_CPU);
}

unsigned
steer_napi_of(int fd)
{
    int id = option_of(fd, SO_INCOMING_NAPI_ID);
    return id > 0 ? (unsigned)id : 0;
}

bool
steer_listener(int fd, int cpu)
{
    return setsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof cpu) == 0;
}

/* For each CPU with workers: jump on if it is another; a random number below the number of
 * its workers; the worker of that number. At the end the CPU's number modulo all. */
static unsigned
write_program(const struct steer_map *m, struct sock_filter *program)
{
    unsigned n = 0;
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                (uint32_t)(SKF_AD_OFF + SKF_AD_CPU));
    for (unsigned first = 0; first < m->count; first++) {
        int cpu = cpu_of(m, first);
        unsigned same[UINT8_MAX / LINES_PER_WORKER - 1], count = 0;
        bool is_done = cpu < 0;
        for (unsigned i = 0; i < m->count && count < sizeof same / sizeof same[0]; i++) {
            if (cpu_of(m, i) == cpu) {
                same[count++] = i;
            }
            is_done |= i < first && cpu_of(m, i) == cpu;
        }
        if (is_done || n + (count + 2) * LINES_PER_WORKER > PROGRAM_MAX) {
            continue;
        }
        program[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)cpu, 0,
                                         (uint8_t)(LINES_PER_WORKER * (count + 1) - 1));
        program[n++] = (struct sock_filter)BPF_STMT(
            BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM));
        program[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count);
        for (unsigned i = 0; i + 1 < count; i++) {
            program[n++] =
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, i, 0, 1);
            program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, same[i]);
        }
        program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, same[count - 1]);
    }
    program[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, m->count);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
    return n;
}

bool
steer_attach(int fd, const struct steer_map *map)
{
    struct sock_filter *program = calloc(PROGRAM_MAX, sizeof *program);
    if (program == NULL) {
        errno = ENOMEM;
        return false;
    }
    struct sock_fprog all = {.len = (uint16_t)write_program(map, program),
                             .filter = program};
    int rc = setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &all, sizeof all);
    int error = errno;
    free(program);
    errno = error;
    return rc == 0;
}
