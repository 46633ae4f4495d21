/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run_state.h"

#include <time.h>

#define RUN_LOOK_MS 1000
#define STOP_LOOK_MS 100 /* in a swarm, where others may end it */

bool
await_signal(const struct run *r, int timeout_ms)
{
    struct timespec ts = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    if (sigtimedwait(&r->signals, NULL, &ts) <= 0) {
        return false;
    }
    PTHREAD_OK(pthread_sigmask(SIG_UNBLOCK, &r->signals, NULL));
    return true;
}

/* When progress is to be told and the caller to be called next. */
struct bells {
    nsec_t progress, tick, tick_length;
};

static struct bells
first_bells(const struct run *r, nsec_t tick_length)
{
    nsec_t second = r->window.begin + RUN_LOOK_MS * NSEC_PER_MSEC;
    return tick_length > 0
               ? (struct bells){second, r->window.start + tick_length, tick_length}
               : (struct bells){second, second, RUN_LOOK_MS * NSEC_PER_MSEC};
}

static nsec_t
pass(nsec_t bell, nsec_t length, nsec_t now)
{
    return bell > now ? bell : bell + ((now - bell) / length + 1) * length;
}

static enum run_end
ring(struct run *r, struct bells *b, nsec_t now)
{
    if (now >= b->progress) {
        b->progress = pass(b->progress, RUN_LOOK_MS * NSEC_PER_MSEC, now);
        if (r->conf.has_progress &&
            r->conf.agents == 0) { /* else the leader tells of all */
            struct progress_span span = {r->window.begin, r->window.start, r->window.end};
            progress_run(&r->progress, r->sampler.counters, r->sampler.counters_len,
                         &span, 0, now, r->conf.err);
        }
    }
    bool is_early = r->conf.agents > 0 && now < r->window.start; /* others may end it */
    if (now < b->tick && !is_early) {
        return RUN_DONE;
    }
    b->tick = pass(b->tick, b->tick_length, now);
    return r->conf.tick == NULL || r->conf.tick(r->conf.tick_arg, r, now) ? RUN_DONE
                                                                          : RUN_ENOUGH;
}

/* When something is to be done next, at the latest where it may end meanwhile: in a swarm by
 * others, and with a trace. */
static int
wait_ms(struct run *r, const struct bells *b, nsec_t now)
{
    nsec_t until = r->sampler.next;
    until = until < b->progress ? until : b->progress;
    until = until < b->tick ? until : b->tick;
    until = until < stats_poll_next(&r->poll) ? until : stats_poll_next(&r->poll);
    until = until < r->window.end ? until : r->window.end;
    int ms = until > now ? (int)((until - now) / NSEC_PER_MSEC) + 1 : 0;
    bool may_end = r->conf.agents > 0 || r->has_feeds;
    return may_end && ms > STOP_LOOK_MS ? STOP_LOOK_MS : ms;
}

enum run_end
await_end(struct run *r, const struct run_spec *spec, nsec_t tick_length)
{
    enum run_end how = RUN_DONE;
    nsec_t now = clock_now();
    nsec_t end = r->window.end;
    struct bells bells = first_bells(r, tick_length);
    while (now < end && how == RUN_DONE) {
        how = await_signal(r, wait_ms(r, &bells, now)) ? RUN_SIGNAL : RUN_DONE;
        if (how == RUN_DONE && r->has_feeds &&
            atomic_load_explicit(&r->over, memory_order_relaxed) == r->started) {
            how = RUN_OVER;
        }
        if (atomic_load_explicit(&r->stop, memory_order_relaxed)) {
            how = RUN_ENOUGH;
        }
        now = clock_now();
        if (how != RUN_OVER) { /* else there is nothing more in the window */
            sampler_look(&r->sampler, now);
        }
        stats_poll_look(&r->poll, now);
        if (now < end && how == RUN_DONE) {
            how = ring(r, &bells, now);
        }
        if (how == RUN_DONE && spec->stops_early &&
            stopping_is_reached(&r->stopping, r->o, &r->sampler)) {
            how = RUN_ENOUGH;
        }
    }
    if (how != RUN_DONE) {
        atomic_store_explicit(&r->stop, true, memory_order_relaxed);
    }
    return how;
}
