/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/slo.h"

#include "base/changes.h"
#include "base/must.h"
#include "base/num.h"
#include "qos/limit_text.h"

#define ONE 65536u /* a share of 100 % */
#define LEVEL_FLOOR (ONE / 10)
#define RISE_PARTS 40      /* of a level, by one of which it rises; */
#define RISE_SLOWLY 4      /* after more quiet intervals than these by double as much */
#define RISE_DOUBLINGS 5   /* each time, at most this often */
#define SAMPLES_LEAST 8    /* an interval of fewer goes on, */
#define INTERVAL_MOST 10   /* but not for longer than so many intervals */
#define INTERVAL_TARGETS 2 /* a long target is looked at less often */
#define STALE                                                                            \
    (2 * INTERVAL_MOST) /* so many without a request: what was no longer counts */
#define STANDING 2
#define DRAIN_PARTS 50 /* a queue that shrinks by less than a 50th of the time stands */
#define LATE_LEAST (ONE / 100) /* of an interval's requests: fewer late ones are none */
#define QUIET_END 20           /* so many intervals without late ones end the overload */
#define WAIT_BUDGET_PARTS 2    /* what one address may wait less than another */
#define CREDIT_MOST (64 * ONE)
#define LEARN_PARTS 16     /* by such a part what was learned changes, */
#define LEARN_LEAST_NS 500 /* and so much */
#define BANDS_MOST 8       /* with that many addresses one in eight is served in part */
#define OFFERED_FADE 8
/* Of classes whose waiting is known only when it is over: */
#define LEVEL_FALL_LEAST (ONE - ONE / 20) /* what is left of a level that falls */
#define UTILISATION 0.95                  /* aimed at when a queue has stood */
#define DRAIN_LEAST_NS 50e6 /* and so much less that it drains in this time, */
#define DRAIN_TARGETS 100   /* or in so many times the target */
#define UTILISATION_LEAST 0.5

/* ---- shared --------------------------------------------------------------------------- */

void
slo_init(struct slo *s)
{
    atomic_init(&s->is_on, false);
    for (unsigned i = 0; i < SLO_RULES; i++) {
        atomic_init(&s->ns[i], 0);
        atomic_init(&s->percentile[i], 0);
    }
}

void
slo_set(struct slo *s, unsigned rule, struct slo_target target)
{
    must(rule < SLO_RULES);
    atomic_store_explicit(&s->percentile[rule], target.percentile, memory_order_relaxed);
    atomic_store_explicit(&s->ns[rule], target.ns, memory_order_relaxed);
    bool is_on = false;
    for (unsigned i = 0; i < SLO_RULES; i++) {
        is_on |= atomic_load_explicit(&s->ns[i], memory_order_relaxed) != 0;
    }
    atomic_store_explicit(&s->is_on, is_on, memory_order_relaxed);
    changes_note();
}

struct slo_target
slo_get(const struct slo *s, unsigned rule)
{
    must(rule < SLO_RULES);
    return (struct slo_target){
        .ns = atomic_load_explicit(&s->ns[rule], memory_order_relaxed),
        .percentile = atomic_load_explicit(&s->percentile[rule], memory_order_relaxed)};
}

const char *
slo_parse_target(const char *p, size_t len, struct slo_target *target)
{
    static const char wrong[] = "a target is pNN:TIME such as p95:500us, from p50 to "
                                "p99.9 and of an hour at most, or off";
    const char *colon = len > 0 ? memchr(p, ':', len) : NULL;
    *target = (struct slo_target){0};
    if (len == 3 && memcmp(p, "off", 3) == 0) {
        return NULL;
    }
    if (colon == NULL || *p != 'p') {
        return wrong;
    }
    size_t digits = (size_t)(colon - p) - 1;
    bool has_tenth = digits > 2 && p[digits - 1] == '.';
    uint32_t whole, tenth = 0;
    nsec_t ns;
    if (!num_u32(p + 1, has_tenth ? digits - 2 : digits, &whole) ||
        (has_tenth && !num_u32(p + digits, 1, &tenth)) || whole < 50 || whole > 99 ||
        !limit_text_time(colon + 1, len - digits - 2, &ns)) {
        return wrong;
    }
    *target = (struct slo_target){.ns = ns, .percentile = whole * 10 + tenth};
    return NULL;
}

const char *
slo_parse(const char *p, size_t len, struct slo_target targets[SLO_RULES])
{
    bool is_given[SLO_RULES] = {false};
    for (bool more = true; more;) {
        const char *item, *name;
        size_t item_len, name_len;
        enum req_class rule = SLO_TOTAL;
        more = limit_text_cut(&p, &len, ',', &item, &item_len);
        if (limit_text_cut(&item, &item_len, '=', &name, &name_len) &&
            !limit_text_class(name, name_len, &rule) &&
            (name_len != 5 || memcmp(name, "total", 5) != 0)) {
            return "a target is named by a class, as in bulk=p99:20ms";
        }
        const char *error = slo_parse_target(item, item_len, &targets[rule]);
        if (error != NULL) {
            return error;
        }
        if (is_given[rule]) {
            return "one target is given twice";
        }
        is_given[rule] = true;
    }
    return NULL;
}

const char *
slo_describe(struct slo_target target, char dst[SLO_TEXT_MAX])
{
    char tenth[4] = "", time[LIMIT_TEXT_TIME_MAX];
    if (target.ns == 0) {
        return strcpy(dst, "off");
    }
    if (target.percentile % 10 != 0) {
        snprintf(tenth, sizeof tenth, ".%u", target.percentile % 10);
    }
    snprintf(dst, SLO_TEXT_MAX, "p%u%s:%s", target.percentile / 10, tenth,
             limit_text_tell_time(target.ns, NSEC_PER_USEC, time));
    return dst;
}

/* ---- a worker ------------------------------------------------------------------------- */

/* Of a class: its own; else that without a name, which does not mean what may wait. */
static struct slo_target
target_of(const struct slo *s, unsigned class)
{
    struct slo_target own = slo_get(s, class);
    return own.ns == 0 && class < CLASS_BULK ? slo_get(s, SLO_TOTAL) : own;
}

static nsec_t
interval_of(nsec_t target)
{
    nsec_t interval = INTERVAL_TARGETS * target;
    return interval > SLO_INTERVAL ? interval : SLO_INTERVAL;
}

static void
rule_begin(struct slo_watch *w, unsigned rule, nsec_t now)
{
    struct slo_rule *r = &w->rules[rule];
    r->begun = now;
    r->samples = r->above = r->late = 0;
    r->asked_before = w->asked[rule];
    r->least = UINT64_MAX;
}

/* Nothing is known of the queue: the rule has another target than before, or no request
 * came. */
static void
rule_reset(struct slo_watch *w, unsigned rule, nsec_t target, nsec_t now)
{
    if (w->rules[rule].target_ns != target) {
        atomic_store_explicit(&w->serving[rule], 0, memory_order_relaxed);
    }
    w->rules[rule] = (struct slo_rule){.target_ns = target, .level = ONE};
    rule_begin(w, rule, now);
}

/* When it will be so if no request comes. */
static nsec_t
stale_at(const struct slo_rule *r)
{
    nsec_t most = STALE * interval_of(r->target_ns);
    return r->begun < UINT64_MAX - most ? r->begun + most : UINT64_MAX;
}

void
slo_watch_init(struct slo_watch *w, struct slo *s, nsec_t now)
{
    *w = (struct slo_watch){
        .shared = s, .band = ONE, .shared_at = now, .is_neutral = true};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        w->keep[c] = ONE;
        rule_reset(w, c, 0, now);
    }
    atomic_init(&w->level, SLO_PARTS);
}

/* Of a class that is deferred the delay is known only when it is over, so a share is admitted. In a
 * queue that never empties the delay grows by what comes beyond what is served (fluid limit): d' =
 * load - 1. To admit aim / load of it leaves a load of `aim`: 0.95, less what drains the delay in
 * 50 ms or 100 targets. */
static void
lower(struct slo_rule *r, nsec_t target, nsec_t elapsed)
{
    double drain = (double)target * DRAIN_TARGETS;
    drain = drain > DRAIN_LEAST_NS ? drain : DRAIN_LEAST_NS;
    double growth = ((double)r->least - (double)r->least_before) / (double)elapsed;
    double load = 1 + (growth > -0.9 ? growth : -0.9);
    double aim = UTILISATION - (double)r->least / drain;
    aim = aim > UTILISATION_LEAST ? aim : UTILISATION_LEAST;
    if (load <= aim) {
        return; /* it drains already */
    }
    uint32_t level = (uint32_t)((double)r->level * aim / load);
    uint32_t most = (uint32_t)((uint64_t)r->level * LEVEL_FALL_LEAST / ONE);
    level = level < most ? level : most;
    r->level = level > LEVEL_FLOOR ? level : LEVEL_FLOOR;
}

/* What a level comes to after an interval that was quiet: up slowly, since a level that is too
 * high costs late requests and one that is too low a few refusals; by doubling when that has
 * caused none, as a sender looks for capacity that has become free (slow start, Jacobson 1988). */
static uint32_t
raised(struct slo_rule *r, nsec_t elapsed)
{
    unsigned doublings = r->quiet > RISE_SLOWLY ? r->quiet - RISE_SLOWLY : 0;
    doublings = doublings < RISE_DOUBLINGS ? doublings : RISE_DOUBLINGS;
    uint64_t intervals = elapsed / SLO_INTERVAL;
    uint64_t from = r->level > LEVEL_FLOOR ? r->level : LEVEL_FLOOR;
    uint64_t rise = (from << doublings) / RISE_PARTS;
    uint64_t to = from + rise * (intervals > 0 ? intervals : 1);
    r->quiet++;
    return to < ONE ? (uint32_t)to : ONE;
}

/* The queue of a class that runs where it is read. */
static void
end_timed(struct slo_watch *w, unsigned rule)
{
    struct slo_rule *r = &w->rules[rule];
    uint64_t asked = w->asked[rule] - r->asked_before;
    uint64_t share = r->late < asked ? r->late * ONE / asked : ONE;
    share = r->late > 0 ? share : 0;
    /* Nothing can be served in time, as on a CPU that another process holds: one in ten is served
     * late rather than none. */
    r->is_hopeless = share > ONE - LEVEL_FLOOR;
    r->level = r->is_hopeless ? LEVEL_FLOOR : ONE - (uint32_t)share;
    if (!r->is_overloaded) {
        r->is_overloaded = r->standing >= STANDING;
        r->quiet = 0;
    } else {
        r->quiet = share > LATE_LEAST ? 0 : r->quiet + 1;
        r->is_overloaded = r->quiet < QUIET_END;
    }
}

/* That of another class. */
static void
end_untimed(struct slo_rule *r, const struct slo_target *target, nsec_t elapsed)
{
    uint64_t may_be_above = r->samples * (SLO_PARTS - target->percentile);
    if (r->standing >= STANDING) {
        r->quiet = 0;
        lower(r, target->ns, elapsed);
    } else if (r->above * SLO_PARTS <= may_be_above) {
        r->level = raised(r, elapsed);
    }
}

static void
rule_end(struct slo_watch *w, unsigned rule, const struct slo_target *target, nsec_t now)
{
    struct slo_rule *r = &w->rules[rule];
    nsec_t elapsed = now - r->begun;
    bool stands = r->samples > 0 && r->least > target->ns / 2;
    if (class_is_inline((enum req_class)rule)) {
        stands = stands && r->least + elapsed / DRAIN_PARTS >= r->least_before;
    }
    r->standing = stands ? r->standing + 1 : 0;
    if (class_is_inline((enum req_class)rule)) {
        end_timed(w, rule);
    } else {
        end_untimed(r, target, elapsed);
    }
    r->least_before = r->samples > 0 ? r->least : 0;
    w->is_neutral &= r->standing == 0 && !r->is_overloaded && r->level == ONE;
    rule_begin(w, rule, now);
}

/* Cuts what the rule of a deferred class refuses from the lowest class upwards, but not above its
 * own. Of a class that runs where it is read it is known which requests are late. */
static void
cut_classes(struct slo_watch *w, unsigned rule)
{
    uint64_t all = 0;
    uint32_t level = w->rules[rule].level;
    if (level >= ONE || class_is_inline((enum req_class)rule)) {
        return;
    }
    for (unsigned c = rule; c < CLASS_COUNT; c++) {
        all += w->offered[c];
    }
    uint64_t left = all * (ONE - level) / ONE;
    for (unsigned c = CLASS_COUNT; c-- > rule;) {
        uint64_t cut = left < w->offered[c] ? left : w->offered[c];
        uint32_t keep = 0;
        if (w->offered[c] > 0) {
            keep = (uint32_t)(ONE - cut * ONE / w->offered[c]);
        } else if (left == 0) {
            keep = ONE;
        }
        w->keep[c] = keep < w->keep[c] ? keep : w->keep[c];
        left -= cut;
    }
}

/* What the rules come to for each class. A rule that none of its own asks any more would refuse the
 * classes below it for ever. */
static void
share_out(struct slo_watch *w, nsec_t now)
{
    uint32_t lowest = ONE;
    nsec_t until = now;
    bool is_neutral = true;
    unsigned groups = (unsigned)__builtin_popcountll(w->peers_seen);
    w->band = ONE / (groups < 1 ? 1 : groups < BANDS_MOST ? groups : BANDS_MOST);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        w->keep[c] = ONE;
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct slo_rule *r = &w->rules[c];
        nsec_t target = target_of(w->shared, c).ns;
        if (target == 0 || now >= stale_at(r)) {
            rule_reset(w, c, target, now);
        }
        cut_classes(w, c);
        is_neutral &= r->standing == 0 && !r->is_overloaded;
        lowest = r->level < lowest ? r->level : lowest;
        if (r->level < ONE && stale_at(r) > until) {
            until = stale_at(r);
        }
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        w->offered[c] -= w->offered[c] / OFFERED_FADE;
    }
    w->peers_seen = 0;
    w->shared_at = now;
    w->is_neutral = is_neutral && lowest == ONE;
    atomic_store_explicit(&w->level, (uint64_t)lowest * SLO_PARTS / ONE,
                          memory_order_relaxed);
    atomic_store_explicit(&w->level_until, until, memory_order_relaxed);
}

unsigned
slo_level(const struct slo_watch *w, nsec_t now)
{
    return now < ctr_get(&w->level_until) ? (unsigned)ctr_get(&w->level) : SLO_PARTS;
}

static void
rule_sample(struct slo_watch *w, unsigned rule, nsec_t delay, nsec_t now)
{
    struct slo_rule *r = &w->rules[rule];
    struct slo_target target = target_of(w->shared, rule);
    if (target.ns == 0) {
        return;
    }
    if (unlikely(r->target_ns != target.ns)) {
        rule_reset(w, rule, target.ns, now);
    }
    nsec_t elapsed = now > r->begun ? now - r->begun : 0;
    nsec_t interval = interval_of(target.ns);
    if (now < r->begun) {
        rule_begin(w, rule, now); /* the clock went back */
    } else if ((elapsed >= INTERVAL_MOST * interval && delay <= target.ns / 2) ||
               elapsed >= STALE * interval) {
        /* few requests came and none waits, or none came at all: the machine slept */
        rule_reset(w, rule, target.ns, now);
    } else if (elapsed >= interval &&
               (r->samples >= SAMPLES_LEAST || elapsed >= INTERVAL_MOST * interval)) {
        rule_end(w, rule, &target, now);
    }
    r->samples++;
    r->above += delay > target.ns - target.ns / 5;
    r->least = delay < r->least ? delay : r->least;
}

void
slo_observe(struct slo_watch *w, enum req_class class, nsec_t delay, nsec_t now)
{
    if (!class_is_inline(class)) {
        rule_sample(w, class, delay, now);
    }
}

/* Admits `share` of those that ask, evenly. */
static bool
is_served(uint32_t *credit, uint32_t share)
{
    *credit += share;
    if (*credit >= ONE) {
        *credit -= ONE;
        return true;
    }
    return false;
}

/* Bands of peers (DAGOR's order of users, by a hash). When a share p is refused at random, a
 * task of n requests succeeds with probability (1 - p)^n; when the same addresses are, with 1 - p.
 * So addresses below the level are served in whole, those above not at all, and in the band between
 * them, as wide as one has of the load, in part. */
static uint32_t
share_of(const struct slo_watch *w, uint32_t keep, uint64_t peer)
{
    int64_t place = (int64_t)((peer >> 16) % ONE) * (ONE - w->band) / ONE;
    int64_t share = ((int64_t)keep - place) * ONE / w->band;
    return share <= 0 ? 0 : share < ONE ? (uint32_t)share : ONE;
}

/* The wait budget is the target less what follows the wait: being served, learned here, and the
 * client's part. A quantile without a histogram (Robbins and Monro 1951): up by a step when it was
 * exceeded, down else, in the ratio in which the two should happen. One that was very long counts
 * as one. */
void
slo_learn(struct slo_watch *w, enum req_class class, nsec_t took)
{
    const struct slo_rule *r = &w->rules[class];
    unsigned percentile = target_of(w->shared, class).percentile;
    nsec_t known = ctr_get(&w->serving[class]);
    nsec_t step = known / LEARN_PARTS + LEARN_LEAST_NS;
    nsec_t down = step * (SLO_PARTS - percentile) / SLO_PARTS;
    nsec_t to = known + step * percentile / SLO_PARTS;
    if (took <= known) {
        to = down < known ? known - down : 0;
    }
    atomic_store_explicit(&w->serving[class], to < r->target_ns ? to : r->target_ns,
                          memory_order_relaxed);
}

nsec_t
slo_wait_budget(const struct slo_watch *w, enum req_class class)
{
    nsec_t part = target_of(w->shared, class).ns / 100;
    nsec_t served = ctr_get(&w->serving[class]) + part * SLO_CLIENT_PCT;
    nsec_t most = part * SLO_WAIT_PCT, least = part * SLO_WAIT_LEAST_PCT;
    nsec_t left = 100 * part > served ? 100 * part - served : 0;
    return left > most ? most : left > least ? left : least;
}

/* Is it too late for a request that has waited so long? Of several addresses the same are
 * late before the others. */
static bool
is_late(const struct slo_watch *w, enum req_class class, uint64_t peer, nsec_t delay)
{
    nsec_t most = slo_wait_budget(w, class);
    if (w->band < ONE) {
        most -= most * ((peer >> 16) % ONE) / ONE / WAIT_BUDGET_PARTS;
    }
    return w->rules[class].is_overloaded && delay > most;
}

bool
slo_judge(struct slo_watch *w, enum req_class class, uint64_t peer, nsec_t delay,
          nsec_t now)
{
    /* The delays of the others are not known before their turn comes. */
    bool is_timed = delay != SLO_UNTIMED && class_is_inline(class) &&
                    target_of(w->shared, class).ns != 0;
    slo_note(w, class, 1);
    w->peers_seen |= UINT64_C(1) << (peer >> 58);
    if (is_timed) {
        rule_sample(w, class, delay, now);
    }
    if (now < w->shared_at || now - w->shared_at >= SLO_INTERVAL) {
        share_out(w, now);
    }
    uint32_t share = ONE;
    if (unlikely(w->keep[class] < ONE)) {
        share = share_of(w, w->keep[class], peer);
    }
    w->share = share;
    w->was_late = false;
    bool is_chosen = likely(share == ONE) || is_served(&w->credit[class], share);
    if (is_chosen && is_timed && unlikely(is_late(w, class, peer, delay))) {
        w->was_late = true;
        w->rules[class].late++;
        is_chosen = w->rules[class].is_hopeless &&
                    is_served(&w->late_credit, LEVEL_FLOOR); /* some are served */
    }
    if (likely(is_chosen)) {
        return true;
    }
    ctr_add(&w->shed[class], 1);
    ctr_add(&w->late, w->was_late);
    return false;
}

void
slo_refuse(struct slo_watch *w, enum req_class class, unsigned n)
{
    uint64_t chosen = (uint64_t)w->share * n;
    slo_note(w, class, n);
    ctr_add(&w->shed[class], n);
    if (w->was_late) {
        w->rules[class].late += chosen / ONE;
        ctr_add(&w->late, chosen / ONE);
        return;
    }
    uint64_t credit = w->credit[class] + chosen;
    w->credit[class] = credit < CREDIT_MOST ? (uint32_t)credit : CREDIT_MOST;
}
