/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include <arpa/inet.h>

#include "base/fail.h"
#include "base/must.h"
#include "base/num.h"
#include "mcqos/layout.h"
#include "place/topo.h"

#define DEFAULT_MB 64 /* of each process, as the server's */
#define SHARES_MAX 64
#define SHARE_MOST 1000
#define LAST_PORT 65535
#define ADDRESS_MAX 256

struct shares {
    unsigned each[SHARES_MAX], count;
};

static bool
parse_shares(const char *text, struct shares *s)
{
    for (s->count = 0; s->count < SHARES_MAX; text++) {
        size_t len = strcspn(text, ",");
        uint32_t share;
        if (!num_u32(text, len, &share) || share < 1 || share > SHARE_MOST) {
            return false;
        }
        s->each[s->count++] = share;
        text += len;
        if (*text == '\0') {
            return true;
        }
    }
    return false;
}

/* ---- CPUs ----------------------------------------------------------------------------- */

/* What may be used: of another machine everything. */
static bool
find_cpus(const struct options *o, struct topo *all, struct cpumask *mask, char *why)
{
    if (!topo_discover(all, o->layout.machine, why, LAYOUT_WHY_MAX)) {
        return false;
    }
    if (o->layout.machine == NULL) {
        int error = cpumask_read(0, mask);
        return error == 0 ||
               fail_because(why, LAYOUT_WHY_MAX, "cannot read the CPU affinity: %s",
                            strerror(error));
    }
    for (unsigned i = 0; i < all->count; i++) {
        cpumask_add(mask, (unsigned)all->cpus[i].place.cpu);
    }
    return true;
}

/* All CPUs of the shape. */
static bool
plan_shape(const struct options *o, const char *shape, struct pin_plan *plan, char *why)
{
    struct topo all = {0};
    struct cpumask mask = {0};
    struct pin_spec spec = {0};
    const char *wrong = pin_spec_parse(&spec, shape);
    bool is_planned = false, is_shape = *shape >= '0' && *shape <= '9';
    if (wrong != NULL || !is_shape) {
        fail_because(why, LAYOUT_WHY_MAX, "\"%s\": %s", shape,
                     is_shape ? wrong : "a layout is a shape such as 2s3c2t or 2s3,6c2t");
    } else if (find_cpus(o, &all, &mask, why) &&
               pin_plan_on(&spec, 1, &all, &mask, plan, why, LAYOUT_WHY_MAX)) {
        unsigned capacity = plan->capacity;
        pin_plan_fini(plan);
        is_planned = pin_plan_on(&spec, capacity, &all, &mask, plan, why, LAYOUT_WHY_MAX);
    }
    topo_fini(&all);
    if (wrong == NULL) {
        pin_spec_fini(&spec);
    }
    return is_planned;
}

static int
tree_order(const void *a_, const void *b_)
{
    const struct cpu_place *a = a_, *b = b_;
    return a->package != b->package ? a->package - b->package
           : a->core != b->core     ? a->core - b->core
                                    : a->cpu - b->cpu;
}

static bool
is_together(const struct cpu_place *a, const struct cpu_place *b, enum layout_per per)
{
    return per != PER_THREAD && a->package == b->package &&
           (per == PER_SOCKET || a->core == b->core);
}

/* ---- instances ------------------------------------------------------------------------ */

static void
group(struct layout *l, const struct pin_plan *plan, enum layout_per per)
{
    const struct cpu_place *p = plan->places;
    l->instances = calloc(plan->count, sizeof *l->instances);
    must(l->instances != NULL);
    for (unsigned at = 0; at < plan->count;) {
        struct layout_instance *i = &l->instances[l->count++];
        i->socket = p[at].package;
        i->core = p[at].core;
        i->node = p[at].numa;
        for (unsigned first = at;
             at < plan->count && (at == first || is_together(&p[first], &p[at], per));
             at++) {
            cpumask_add(&i->cpus, (unsigned)p[at].cpu);
            i->threads++;
        }
        cpumask_describe(&i->cpus, i->list, sizeof i->list);
    }
}

static bool
divide(struct layout *l, const struct shares *shares, char *why)
{
    const struct layout_options *o = &l->options->layout;
    uint64_t sum = 0, all = (uint64_t)o->memory_mb;
    for (unsigned n = 0; n < l->count; n++) {
        l->instances[n].share = shares->each[n % shares->count];
        sum += l->instances[n].share;
        l->has_shares |= l->instances[n].share != l->instances[0].share;
    }
    for (unsigned n = 0; n < l->count; n++) {
        struct layout_instance *i = &l->instances[n];
        i->port = (unsigned)o->port + n;
        i->memory_mb = all == 0 ? (uint64_t)DEFAULT_MB * l->count * i->share / sum
                                : all * i->share / sum;
        l->memory_mb += i->memory_mb;
        if (i->memory_mb == 0) {
            return fail_because(
                why, LAYOUT_WHY_MAX,
                "--memory=%llu is less than 1 MB for each of %u processes",
                (unsigned long long)all, l->count);
        }
        if (i->port > LAST_PORT) {
            return fail_because(why, LAYOUT_WHY_MAX,
                                "%u ports from --port=%llu on go beyond %d", l->count,
                                (unsigned long long)o->port, LAST_PORT);
        }
        if (strstr(i->list, "...") != NULL) {
            return fail_because(why, LAYOUT_WHY_MAX,
                                "too many CPUs for one process; see --per");
        }
    }
    return true;
}

/* With the tags behind it. */
static bool
is_one_address(const char *listen)
{
    char host[ADDRESS_MAX];
    size_t len = strcspn(listen, ";");
    bool is_bracketed = listen[0] == '[' && len > 1 && listen[len - 1] == ']';
    if (is_bracketed) {
        listen++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host) {
        return false;
    }
    memcpy(host, listen, len);
    host[len] = '\0';
    if (strchr(host, ':') == NULL) {
        return !is_bracketed && strchr(host, ',') == NULL;
    }
    struct in6_addr address;
    host[strcspn(host, "%")] = '\0'; /* a scope */
    return inet_pton(AF_INET6, host, &address) == 1;
}

bool
layout_plan(struct layout *layout, const struct options *o, bool is_run,
            char why[LAYOUT_WHY_MAX])
{
    struct pin_plan plan = {0};
    struct shares shares;
    *layout = (struct layout){.options = o, .shape = o->words[1], .more = 2 + is_run};
    if (!parse_shares(o->layout.share, &shares)) {
        return fail_because(
            why, LAYOUT_WHY_MAX,
            "--share=%s: shares are 1 to %d numbers from 1 to %d, with commas",
            o->layout.share, SHARES_MAX, SHARE_MOST);
    }
    if (!is_one_address(o->layout.listen)) {
        return fail_because(why, LAYOUT_WHY_MAX,
                            "--listen=%s: it is one address without a port, such as "
                            "192.0.2.1 or [::1], as clients call it",
                            o->layout.listen);
    }
    bool is_planned = plan_shape(o, layout->shape, &plan, why);
    if (is_planned) {
        qsort(plan.places, plan.count, sizeof plan.places[0], tree_order);
        group(layout, &plan, o->layout.per);
        is_planned = divide(layout, &shares, why);
    }
    pin_plan_fini(&plan);
    return is_planned;
}

void
layout_fini(struct layout *layout)
{
    free(layout->instances);
    *layout = (struct layout){0};
}

/* Workers take five descriptors each of the 1024 that there are by default (-c): so many leave too few
 * to clients. */
#define MANY_THREADS 100
#define CONNECTIONS 1024
#define OF_WORKER 5

void
layout_own_args(const struct layout_instance *i, char dst[LAYOUT_OWN_MAX])
{
    int len = snprintf(dst, LAYOUT_OWN_MAX, "-m %llu -t %u --pin=list:%s --membind=local",
                       (unsigned long long)i->memory_mb, i->threads, i->list);
    must(len > 0 && len < LAYOUT_OWN_MAX);
    if (i->threads > MANY_THREADS) {
        snprintf(dst + len, LAYOUT_OWN_MAX - (size_t)len, " -c %u",
                 CONNECTIONS + OF_WORKER * i->threads);
    }
}
