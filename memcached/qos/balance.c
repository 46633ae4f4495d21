/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/balance.h"

#define WEIGHT 0.5      /* of the last window in the average */
#define SLACK 1.1       /* of a single connection's share */
#define HALF 0.5        /* of the requests, at most, unless a CPU is at fault */
#define FUTILE_MAX 5    /* after 2^5 windows it tries again at the latest */
#define BALANCE_REST 10 /* windows */

/* A worker that is free again has its part when no other has more than so much times its load. */
#define RETURN_EXCESS 1.33
#define RETURN_FLOOR 0.01 /* ... and so little */

/* From the first load on the delay begins to count, from the second on it does in full: there
 * busy time no longer tells workers apart. Twice the delay of another worker is a gap of about
 * 0.17, two and a half times of 0.22. */
#define SATURATION_BEGINS 0.8
#define SATURATION_ENDS 1.0
#define BACKLOG_WEIGHT 0.5
#define DELAY_FLOOR_NS (50.0 * NSEC_PER_USEC) /* shorter ones differ by chance */

static const char *const reason_names[] = {
    [BALANCE_NONE] = "none",           [BALANCE_BUSY] = "busy",
    [BALANCE_WAIT] = "wait",           [BALANCE_BACKLOG] = "backlog",
    [BALANCE_ORDER] = "order",         [BALANCE_HOME] = "home",
    [BALANCE_CROWDED_CPU] = "crowded", [BALANCE_FREE_CPU] = "free",
};

const char *
balance_reason_name(enum balance_reason reason)
{
    must((unsigned)reason < sizeof reason_names / sizeof reason_names[0]);
    return reason_names[reason];
}

bool
balance_init(struct balance *b, unsigned count)
{
    *b = (struct balance){.count = count};
    b->workers = calloc(count, sizeof b->workers[0]);
    b->cpus = calloc(count, sizeof b->cpus[0]);
    if (b->workers == NULL || b->cpus == NULL || !crowd_init(&b->crowd, count)) {
        balance_fini(b);
        return false;
    }
    return true;
}

void
balance_fini(struct balance *b)
{
    free(b->workers);
    free(b->cpus);
    crowd_fini(&b->crowd);
    *b = (struct balance){.count = 0};
}

static double
own_load(const struct balance_worker *w)
{
    return w->busy + w->wait + w->backlog;
}

double
balance_load(const struct balance *b, unsigned worker)
{
    double own = own_load(&b->workers[worker]);
    return balance_is_crowded(b, worker) && own < BALANCE_CROWDED ? BALANCE_CROWDED : own;
}

/* As a load that is to become less. */
static double
pressure(const struct balance *b, const struct balance_sample *samples, unsigned worker)
{
    const struct balance_worker *w = &b->workers[worker];
    return samples[worker].conns == 0 || w->resting > 0 ? own_load(w)
                                                        : balance_load(b, worker);
}

/* ---- loads ---------------------------------------------------------------------------- */

/* Orders by which nothing moves become rare. A worker that cannot empty a crowded CPU,
 * because its last connections are never between two requests, does not hold up what else
 * is to move. */
static void
count_futile(struct balance *b, bool has_moved)
{
    struct balance_worker *from = &b->workers[b->order.from];
    if (b->order.reason == BALANCE_CROWDED_CPU) {
        from->resting = has_moved ? 0 : BALANCE_REST;
        return;
    }
    b->futile = has_moved ? 0 : b->futile + (b->futile < FUTILE_MAX);
    b->pause = has_moved ? 0 : 1U << b->futile;
}

/* What has moved at the beginning of this window moved the averages with it; else they would
 * ask for the same again. */
static void
shift_moved(struct balance *b, const struct balance_sample *samples)
{
    const struct balance_sample *now = &samples[b->order.from];
    struct balance_worker *from = &b->workers[b->order.from];
    struct balance_worker *to = &b->workers[b->order.to];
    uint64_t given = now->given - from->last.given;
    double part = given < BALANCE_SHARES ? (double)given / BALANCE_SHARES : 1.0;
    double busy = from->busy * part;
    double delay = from->delay * part;
    if (!b->has_ordered) {
        return;
    }
    b->has_ordered = false;
    count_futile(b, given > 0 || now->conns < from->last.conns);
    from->busy -= busy;
    to->busy += busy;
    from->delay -= delay;
    to->delay += delay;
}

/* A worker without requests has no backlog; of a saturated one a window without a sample
 * says nothing. */
static void
take_delay(struct balance_worker *w, const struct balance_sample *now)
{
    uint64_t count = now->delays > w->last.delays ? now->delays - w->last.delays : 0;
    uint64_t sum =
        now->delay_ns > w->last.delay_ns ? now->delay_ns - w->last.delay_ns : 0;
    if (count > 0) {
        w->delay += WEIGHT * ((double)sum / (double)count - w->delay);
    } else if (w->busy + w->wait < SATURATION_BEGINS) {
        w->delay -= WEIGHT * w->delay;
    }
}

static double
saturation(const struct balance_worker *w)
{
    double s =
        (w->busy + w->wait - SATURATION_BEGINS) / (SATURATION_ENDS - SATURATION_BEGINS);
    return s < 0.0 ? 0.0 : s > 1.0 ? 1.0 : s;
}

/* Delays have no scale of their own: they are compared with their mean. */
static void
weigh_delays(struct balance *b)
{
    double mean = 0.0;
    for (unsigned i = 0; i < b->count; i++) {
        mean += b->workers[i].delay / b->count;
    }
    for (unsigned i = 0; i < b->count; i++) {
        struct balance_worker *w = &b->workers[i];
        w->backlog = BACKLOG_WEIGHT * saturation(w) * (w->delay - mean) /
                     (w->delay + mean + DELAY_FLOOR_NS);
    }
}

static void
take_samples(struct balance *b, const struct balance_sample *samples, nsec_t window)
{
    shift_moved(b, samples);
    for (unsigned i = 0; i < b->count; i++) {
        struct balance_worker *w = &b->workers[i];
        double busy = crowd_part_of(samples[i].busy_ns, w->last.busy_ns, window);
        double wait = crowd_part_of(samples[i].wait_ns, w->last.wait_ns, window);
        w->busy += WEIGHT * (busy - w->busy);
        w->wait += WEIGHT * (wait - w->wait);
        take_delay(w, &samples[i]);
    }
    weigh_delays(b);
}

static void
look_at_cpus(struct balance *b, const struct balance_sample *samples, nsec_t window)
{
    for (unsigned i = 0; i < b->count; i++) {
        b->cpus[i] = (struct crowd_sample){.run_ns = samples[i].run_ns,
                                           .wait_ns = samples[i].wait_ns,
                                           .cpu = samples[i].cpu,
                                           .used_ns = samples[i].used_ns};
    }
    crowd_step(&b->crowd, b->cpus, window);
    for (unsigned i = 0; i < b->count; i++) {
        struct balance_worker *w = &b->workers[i];
        w->resting -= w->resting > 0;
        w->returning -= w->returning > 0;
        if (b->crowd.workers[i].has_changed) {
            w->returning = balance_is_crowded(b, i) ? 0 : BALANCE_RETURN;
            w->resting = 0;
        }
    }
}

/* ---- orders --------------------------------------------------------------------------- */

static unsigned
most_conns(uint64_t all)
{
    uint64_t most = all * BALANCE_CONNS_PCT / 100;
    return most > 0 ? (unsigned)(most < UINT16_MAX ? most : UINT16_MAX) : 1;
}

static void
find_extremes(const struct balance *b, const struct balance_sample *samples,
              struct balance_move *move)
{
    move->from = move->to = 0;
    for (unsigned i = 1; i < b->count; i++) {
        if (pressure(b, samples, i) > pressure(b, samples, move->from)) {
            move->from = i;
        }
        if (balance_load(b, i) < balance_load(b, move->to)) {
            move->to = i;
        }
    }
}

static enum balance_reason
reason_of(const struct balance *b, const struct balance_move *move, double gap)
{
    const struct balance_worker *high = &b->workers[move->from];
    const struct balance_worker *low = &b->workers[move->to];
    return balance_is_crowded(b, move->from)        ? BALANCE_CROWDED_CPU
           : high->wait - low->wait > gap / 2       ? BALANCE_WAIT
           : high->backlog - low->backlog > gap / 2 ? BALANCE_BACKLOG
                                                    : BALANCE_BUSY;
}

/* The part of a worker's requests that would bring half the gap to the other worker. Only the
 * busy part of a load goes with requests: what a neighbour on the CPU makes of them stays
 * behind, so they may all go. */
static double
share_of(const struct balance_worker *from, double gap, enum balance_reason reason)
{
    double most = reason == BALANCE_WAIT ? 1.0 : HALF;
    if (reason == BALANCE_CROWDED_CPU) {
        return 1.0;
    }
    return gap / 2 < most * from->busy ? gap / 2 / from->busy : most;
}

/* From and to are known. */
static void
plan_move(const struct balance *b, const struct balance_sample *samples, double gap,
          enum balance_reason reason, struct balance_move *move)
{
    uint64_t all = 0;
    unsigned part = samples[move->from].conns / BALANCE_CROWDED_PART + 1;
    for (unsigned i = 0; i < b->count; i++) {
        all += samples[i].conns;
    }
    move->conns = most_conns(all);
    if (reason == BALANCE_CROWDED_CPU && part > move->conns) {
        move->conns = part < UINT16_MAX ? part : UINT16_MAX;
    }
    move->share = share_of(&b->workers[move->from], gap, reason);
    move->reason = reason;
}

/* A worker whose CPU is free again gets its part, however little there is to do. */
static enum balance_advice
call_back(const struct balance *b, const struct balance_sample *samples,
          struct balance_move *move)
{
    unsigned left = 0;
    for (unsigned i = 0; i < b->count; i++) {
        if (b->workers[i].returning > left) {
            left = b->workers[i].returning;
            move->to = i;
        }
    }
    if (left == 0) {
        return BALANCE_QUIET;
    }
    move->from = move->to;
    for (unsigned i = 0; i < b->count; i++) {
        move->from =
            own_load(&b->workers[i]) > own_load(&b->workers[move->from]) ? i : move->from;
    }
    double high = own_load(&b->workers[move->from]);
    double low = own_load(&b->workers[move->to]);
    if (high <= low * RETURN_EXCESS + RETURN_FLOOR) {
        return BALANCE_QUIET;
    }
    plan_move(b, samples, high - low, BALANCE_FREE_CPU, move);
    return left > BALANCE_RETURN - BALANCE_WINDOWS ? BALANCE_WATCH : BALANCE_MOVE;
}

/* Whether to go on, to wait, or to look closer. Of a crowded worker all are to go, whatever
 * their rates, and it has been looked at for long enough. */
static enum balance_advice
judge(struct balance *b, double gap, bool is_crowded)
{
    b->windows = gap > BALANCE_START ? b->windows + 1 : 0;
    b->is_acting = b->is_acting ? gap > BALANCE_STOP
                                : b->windows >= (is_crowded ? 1 : BALANCE_WINDOWS);
    if (b->windows == 0 && !b->is_acting) {
        b->futile = b->pause = 0;
        return BALANCE_QUIET;
    }
    if (b->pause > 0 && !is_crowded) {
        b->pause--;
        /* The connections are looked at in the windows before the next attempt. */
        return b->pause < BALANCE_WINDOWS ? BALANCE_WATCH : BALANCE_QUIET;
    }
    return b->is_acting ? BALANCE_MOVE : BALANCE_WATCH;
}

static enum balance_advice
decide(struct balance *b, const struct balance_sample *samples, struct balance_move *move)
{
    find_extremes(b, samples, move);
    double gap = pressure(b, samples, move->from) - balance_load(b, move->to);
    enum balance_reason reason = reason_of(b, move, gap);
    enum balance_advice advice = judge(b, gap, reason == BALANCE_CROWDED_CPU);
    if (advice == BALANCE_QUIET) {
        return call_back(b, samples, move);
    }
    plan_move(b, samples, gap, reason, move);
    return advice;
}

enum balance_advice
balance_step(struct balance *b, const struct balance_sample *samples, nsec_t now,
             struct balance_move *move)
{
    enum balance_advice advice = BALANCE_QUIET;
    *move = (struct balance_move){.reason = BALANCE_NONE};
    if (b->at != 0 && now > b->at) {
        take_samples(b, samples, now - b->at);
        look_at_cpus(b, samples, now - b->at);
        advice = decide(b, samples, move);
    }
    if (advice == BALANCE_MOVE) {
        b->has_ordered = true;
        b->order = *move;
    }
    b->at = now;
    for (unsigned i = 0; i < b->count; i++) {
        b->workers[i].last = samples[i];
    }
    return advice;
}

bool
balance_force(const double *loads, const unsigned *conns, unsigned count,
              struct balance_move *move)
{
    unsigned high = 0, low = 0, many = 0, few = 0;
    uint64_t all = conns[0];
    for (unsigned i = 1; i < count; i++) {
        high = loads[i] > loads[high] ? i : high;
        low = loads[i] < loads[low] ? i : low;
        many = conns[i] > conns[many] ? i : many;
        few = conns[i] <= conns[few] ? i : few;
        all += conns[i];
    }
    *move = (struct balance_move){.reason = BALANCE_ORDER};
    if (loads[high] - loads[low] > BALANCE_STOP && conns[high] > 0) {
        move->from = high;
        move->to = low;
        move->conns = most_conns(all);
        move->share = (loads[high] - loads[low]) / 2 / loads[high];
    } else {
        unsigned half = (conns[many] - conns[few]) / 2;
        move->from = many;
        move->to = few;
        move->conns = half > 1 ? half : 1;
        move->conns = move->conns < UINT16_MAX ? move->conns : UINT16_MAX;
        move->share = 1.0;
    }
    return move->from != move->to && conns[move->from] > 0;
}

/* ---- which ---------------------------------------------------------------------------- */

static int
by_rate_falling(const void *a_, const void *b_)
{
    const struct balance_choice *a = a_, *b = b_;
    return a->rate < b->rate ? 1 : a->rate > b->rate ? -1 : 0;
}

unsigned
balance_choose(struct balance_choice *choices, size_t count, double total, double share,
               unsigned most)
{
    double left = share * total;
    unsigned chosen = 0;
    qsort(choices, count, sizeof choices[0], by_rate_falling);
    for (size_t i = 0; i < count && chosen < most && choices[i].rate > 0; i++) {
        if (choices[i].rate <= (chosen == 0 ? left * SLACK : left)) {
            struct balance_choice taken = choices[i];
            left -= taken.rate;
            choices[i] = choices[chosen];
            choices[chosen++] = taken;
        }
    }
    return chosen;
}
