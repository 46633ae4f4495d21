/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "loadgen/drive/lthread.h"
#include "loadgen/inquiry.h"
#include "loadgen/limits.h"
#include "loadgen/measure/steal.h"
#include "loadgen/observe.h"
#include "loadgen/places.h"
#include "loadgen/progress.h"
#include "loadgen/sure.h"
#include "loadgen/tape.h"
#include "loadgen/work/streams.h"
#include "loadgen/work/workload.h"
#include "qos/pin.h"

#define LOAD_LOOK (200 * NSEC_PER_MSEC)
#define RUN_LOOK_MS 1000
#define TAPE_LOOK_MS 2
#define STOP_LOOK_MS 100 /* in a swarm, where others may end it */
/* Between looks for threads that are still waiting for replies. */
#define DRAIN_LOOK (100 * NSEC_PER_MSEC)
#define BEGIN_DELAY (5 * NSEC_PER_MSEC) /* so that all threads see the gate open before */
#define CPU_LIST_MAX 8192

/* One class at work. Threads read it. */
struct run_class {
    const struct lclass *conf;
    struct workload workload;
    struct lconn_auth auth;
    struct traffic traffic;  /* of the last run; threads share its laws */
    unsigned first, threads; /* of all threads of the run */
    struct tape tape;
    bool loads; /* stores its records: no class before has done it */
};

struct run {
    struct run_conf conf;
    const struct options *o;
    struct gate gate;
    struct run_class *classes;
    struct lthread *threads;
    unsigned threads_len, started;
    uint64_t records;   /* to be stored, on all servers */
    unsigned src_ports; /* local port of the next connection; 0: any */
    struct pin_plan plan;
    bool has_plan, has_tapes;
    atomic_bool stop;
    struct progress progress;
    struct observe observe;
    struct inquiry inquiry;
    uint64_t count; /* runs so far */
    nsec_t opened_at, ready_at, drained_at;
    struct drive_window window;
    struct steal_watch steal;
    struct sure sure;
    sigset_t signals, mask_before;
    bool is_masked;
};

static enum exit_status
fail(const struct run *r, const char *what)
{
    fprintf(r->conf.err, "mcload: %s\n", what);
    return EXIT_UNREACHABLE;
}

/* ---- what classes share ------------------------------------------------------------- */

static enum exit_status
make_workload(struct run *r, struct run_class *c)
{
    struct workload_conf conf = workload_conf_of(c->conf);
    const char *wrong = workload_init(&c->workload, &conf);
    if (wrong != NULL) {
        fprintf(r->conf.err, "mcload: %s\n", wrong);
        return EXIT_USAGE;
    }
    return workload_open(&c->workload) ? EXIT_VALID : fail(r, "out of memory for values");
}

/* The first class that uses some records stores them for all. */
static bool
has_to_load(const struct run *r, unsigned index)
{
    const struct run_class *c = &r->classes[index];
    for (unsigned i = 0; i < index; i++) {
        const struct run_class *before = &r->classes[i];
        if (before->loads && workload_has_same_records(&before->workload, &c->workload)) {
            return false;
        }
    }
    return !c->conf->no_load;
}

static enum exit_status
make_classes(struct run *r)
{
    enum exit_status status = EXIT_VALID;
    char err[TRACE_ERR_MAX];
    r->classes = calloc(r->o->classes_len, sizeof *r->classes);
    if (r->classes == NULL) {
        return fail(r, "out of memory");
    }
    for (unsigned i = 0; status == EXIT_VALID && i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        c->conf = &r->o->classes[i];
        c->first = r->threads_len;
        c->threads = (unsigned)c->conf->threads;
        r->threads_len += c->threads;
        if (c->conf->password != NULL) {
            c->auth.len = c->conf->codec->put_auth(c->auth.bytes, c->conf->username,
                                                   c->conf->password);
        }
        status = make_workload(r, c);
        if (status == EXIT_VALID &&
            tape_open(&c->tape, c->conf, &c->workload, c->threads, err) != NULL) {
            status = fail(r, err);
        }
        r->has_tapes = r->has_tapes || c->tape.reader != NULL;
        c->loads = status == EXIT_VALID && has_to_load(r, i);
    }
    return status;
}

/* ---- places and limits -------------------------------------------------------------- */

/* The main thread goes where the others will be: what it makes for them is in the same
 * memory. */
static bool
follow(const struct pin_plan *plan)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < plan->count; i++) {
        CPU_SET((size_t)plan->places[i].cpu, &set);
    }
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static enum exit_status
make_plan(struct run *r)
{
    char text[CPU_LIST_MAX], err[LTHREAD_ERR_MAX];
    struct pin_spec spec;
    const char *wrong = places_wanted(r->o, text, sizeof text);
    if (wrong == NULL && text[0] == '\0') {
        return EXIT_VALID;
    }
    wrong = wrong != NULL ? wrong : pin_spec_parse(&spec, text);
    if (wrong != NULL) {
        fprintf(r->conf.err, "mcload: %s (%s)\n", wrong,
                r->o->has_numa ? "--numa" : "--cpus");
        return EXIT_USAGE;
    }
    r->has_plan = pin_plan(&spec, r->threads_len, &r->plan, err, sizeof err);
    pin_spec_fini(&spec);
    if (!r->has_plan) {
        return fail(r, err);
    }
    bool is_one = r->o->has_numa && r->o->numa >= 0;
    return !is_one || follow(&r->plan) ? EXIT_VALID
                                       : fail(r, "cannot pin the main thread");
}

/* ---- threads ------------------------------------------------------------------------ */

/* The servers of a thread, and which of so many threads with the same servers it is. */
struct lane {
    unsigned first, count; /* servers */
    unsigned index, threads;
};

/* All of them, or, dealt out in turn, a part of them: of one server when there are at least
 * as many threads, else some for each thread. */
static struct lane
lane_of(const struct run *r, const struct run_class *c, unsigned thread)
{
    unsigned servers = r->o->servers_len;
    if (!c->conf->is_roundrobin) {
        return (struct lane){0, servers, thread, c->threads};
    }
    if (c->threads < servers) {
        struct load_slice part = load_slice_of(servers, thread, c->threads);
        return (struct lane){(unsigned)part.first, (unsigned)(part.end - part.first), 0,
                             1};
    }
    unsigned first = thread % servers;
    unsigned threads = (c->threads - first + servers - 1) / servers;
    return (struct lane){first, 1, thread / servers, threads};
}

/* Of what all processes together store, the part of one thread. */
static struct load_slice
slice_of(const struct run *r, const struct run_class *c, unsigned thread)
{
    unsigned agents = r->conf.agents > 0 ? r->conf.agents : 1;
    struct load_slice all =
        load_slice_of((uint64_t)c->conf->records, r->conf.agent, agents);
    struct lane lane = lane_of(r, c, thread);
    struct load_slice part = load_slice_of(all.end - all.first, lane.index, lane.threads);
    return (struct load_slice){all.first + part.first, all.first + part.end};
}

static struct drive_conf
drive_conf(struct run *r, const struct run_class *c, unsigned thread)
{
    const struct lclass *l = c->conf;
    unsigned agents = r->conf.agents > 0 ? r->conf.agents : 1;
    bool has_times = traffic_is_open(&c->traffic) || traffic_thinks(&c->traffic);
    return (struct drive_conf){
        .traffic = c->traffic,
        .depth = (unsigned)l->depth,
        .spin = l->is_blocking || !has_times
                    ? 0
                    : (nsec_t)(l->spin_us * (double)NSEC_PER_USEC),
        .busy_poll = r->o->busy_poll_us == BUSY_POLL_ALWAYS
                         ? ALARMS_NEVER
                         : (nsec_t)r->o->busy_poll_us * NSEC_PER_USEC,
        .gives_way = r->o->fifo_priority > 0,
        .timeout = (nsec_t)(r->o->timeout_s * (double)NSEC_PER_SEC),
        .seed = r->o->seed,
        .thread = thread,
        .threads = c->threads,
        .agent = r->conf.agent,
        .first_thread = c->first,
        .part = r->conf.agent * c->threads + thread,
        .parts = agents * c->threads,
        .from = r->o->from_issue ? FROM_ISSUE : FROM_INTENDED,
        .stop = &r->stop,
        .cap = r->conf.cap,
    };
}

/* The first of so many local ports, one a connection; 0: any. */
static unsigned
take_ports(struct run *r, unsigned count)
{
    unsigned first = r->src_ports;
    r->src_ports += first > 0 ? count : 0;
    return first;
}

static struct lthread_conf
thread_conf(struct run *r, const struct run_class *c, unsigned thread)
{
    const struct lclass *l = c->conf;
    unsigned depth = (unsigned)l->depth;
    struct lane lane = lane_of(r, c, thread);
    return (struct lthread_conf){
        .index = c->first + thread,
        .set =
            {
                .codec = l->codec,
                .targets = r->conf.targets + lane.first,
                .targets_len = lane.count,
                .per_target = (unsigned)l->connections,
                .capacity = depth > LOAD_DEPTH ? depth : LOAD_DEPTH,
                .workload =
                    c->tape.reader != NULL ? &c->tape.workloads[thread] : &c->workload,
                .auth = l->password != NULL ? &c->auth : NULL,
                .tls = r->conf.tls,
                .shard = r->conf.shard,
                .engine = r->o->engine,
                .stamps = r->o->stamps,
                .with_nodelay = !l->no_nodelay,
                .timeout = (nsec_t)(r->o->timeout_s * (double)NSEC_PER_SEC),
                .src_port = take_ports(r, lane.count * (unsigned)l->connections),
                .stop = &r->stop,
            },
        .drive = drive_conf(r, c, thread),
        .loads = c->loads,
        .keeps_samples = r->o->save != NULL,
        .slice = slice_of(r, c, thread),
        .pin = r->has_plan ? &r->plan : NULL,
        .fifo_priority = r->o->fifo_priority,
    };
}

static enum exit_status
start_threads(struct run *r)
{
    r->threads = calloc(r->threads_len, sizeof *r->threads);
    if (r->threads == NULL || !progress_init(&r->progress) ||
        !observe_init(&r->observe, r->o->classes_len, r->threads_len)) {
        return fail(r, "out of memory");
    }
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        for (unsigned t = 0; t < c->threads; t++) {
            struct lthread_conf conf = thread_conf(r, c, t);
            if (r->started < c->first + t ||
                !lthread_start(&r->threads[r->started], &conf, &r->gate)) {
                return EXIT_VALID; /* await_ready sees that one is missing */
            }
            observe_add(&r->observe, i, &r->threads[r->started].tally);
            r->started++;
        }
        if (c->loads) {
            struct load_slice first = slice_of(r, c, 0);
            struct load_slice last = slice_of(r, c, c->threads - 1);
            r->records += (last.end - first.first) *
                          (r->conf.shard != NULL ? 1 : r->o->servers_len);
        }
    }
    return EXIT_VALID;
}

static enum exit_status
first_failure(const struct run *r)
{
    for (unsigned i = 0; i < r->started; i++) {
        if (r->threads[i].err[0] != '\0') {
            return fail(r, r->threads[i].err);
        }
    }
    return fail(r, "a thread could not start");
}

/* Waits for SIGINT or SIGTERM. True when one came; the next one ends the process, whatever it
 * does. */
static bool
take_signal(const struct run *r, int timeout_ms)
{
    struct timespec ts = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    if (sigtimedwait(&r->signals, NULL, &ts) <= 0) {
        return false;
    }
    PTHREAD_OK(pthread_sigmask(SIG_UNBLOCK, &r->signals, NULL));
    return true;
}

static enum exit_status
interrupted(const struct run *r)
{
    fprintf(r->conf.err,
            "mcload: interrupted before the run: %ju of %ju records stored\n",
            (uintmax_t)run_loaded(r), (uintmax_t)r->records);
    return EXIT_UNREACHABLE;
}

/* Waits until all threads are connected and loaded, or one has failed. */
static enum exit_status
await_ready(struct run *r)
{
    bool has_failed, was_interrupted = false;
    while (!gate_await(&r->gate, r->started, LOAD_LOOK, &has_failed)) {
        if (!was_interrupted && r->is_masked && take_signal(r, 0)) {
            was_interrupted = true;
            atomic_store_explicit(&r->stop, true, memory_order_relaxed);
        }
        if (r->conf.has_progress && r->records > 0 && r->count == 0) {
            progress_load(r->threads, r->started, r->records, r->conf.err);
        }
    }
    if (r->conf.has_progress) {
        progress_end(r->conf.err);
    }
    if (was_interrupted) {
        return interrupted(r);
    }
    return has_failed || r->started < r->threads_len ? first_failure(r) : EXIT_VALID;
}

/* ---- opening and closing ------------------------------------------------------------ */

/* Threads inherit the mask: signals come to this thread only, which turns them into an early
 * end of what goes on. */
static enum exit_status
start(struct run *r)
{
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &r->signals, &r->mask_before));
    r->is_masked = true;
    r->opened_at = clock_now();
    enum exit_status status = start_threads(r);
    status = status != EXIT_VALID ? status : await_ready(r);
    r->ready_at = clock_now();
    return status;
}

static enum exit_status
prepare_card(const struct run *r)
{
    const char *why = r->o->stamps == STAMPS_CARD ? stamps_card(r->o->interface) : NULL;
    if (why != NULL) {
        fprintf(r->conf.err, "mcload: %s puts no time stamps on packets: %s\n",
                r->o->interface, why);
        return EXIT_UNREACHABLE;
    }
    return EXIT_VALID;
}

enum exit_status
run_open(struct run **run, const struct run_conf *conf)
{
    struct run *r = calloc(1, sizeof *r);
    *run = NULL;
    must(r != NULL);
    r->conf = *conf;
    r->o = conf->options;
    r->src_ports = (unsigned)r->o->src_port;
    gate_init(&r->gate);
    sigemptyset(&r->signals);
    sigaddset(&r->signals, SIGINT);
    sigaddset(&r->signals, SIGTERM);
    enum exit_status status = make_classes(r);
    if (status == EXIT_VALID) {
        limits_raise_files(r->o, r->threads_len, r->conf.err);
        status = make_plan(r);
    }
    status = status != EXIT_VALID ? status : prepare_card(r);
    status = status != EXIT_VALID ? status : start(r);
    status = status != EXIT_VALID
                 ? status
                 : inquiry_open(&r->inquiry, r->o, r->conf.targets, r->conf.err);
    if (status != EXIT_VALID) {
        run_close(&r);
    }
    *run = r;
    return status;
}

void
run_close(struct run **run)
{
    struct run *r = *run;
    if (r == NULL) {
        return;
    }
    gate_give(&r->gate, GATE_END, NULL);
    for (unsigned i = 0; i < r->started; i++) {
        lthread_join(&r->threads[i]);
    }
    for (unsigned i = 0; r->classes != NULL && i < r->o->classes_len; i++) {
        tape_close(&r->classes[i].tape);
        workload_close(&r->classes[i].workload);
        traffic_release(&r->classes[i].traffic);
    }
    if (r->has_plan) {
        pin_plan_fini(&r->plan);
    }
    progress_fini(&r->progress);
    observe_fini(&r->observe);
    inquiry_fini(&r->inquiry);
    free(r->classes);
    free(r->threads);
    gate_fini(&r->gate);
    if (r->is_masked) {
        PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &r->mask_before, NULL));
    }
    free(r);
    *run = NULL;
}

void
run_stop(struct run *r)
{
    atomic_store_explicit(&r->stop, true, memory_order_relaxed);
}

uint64_t
run_loaded(const struct run *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < r->started; i++) {
        sum += ctr_get(&r->threads[i].loaded);
    }
    return sum;
}

const struct drive_window *
run_window(const struct run *r)
{
    return &r->window;
}

void
run_sum(const struct run *r, unsigned c, struct tally *sum)
{
    must(c < r->o->classes_len);
    const struct run_class *class = &r->classes[c];
    for (unsigned i = 0; i < class->threads; i++) {
        tally_merge(sum, &r->threads[class->first + i].tally);
    }
}

/* ---- one run ------------------------------------------------------------------------ */

static double
rate_of(const struct run *r, const struct run_shot *shot, unsigned c)
{
    return shot->rates != NULL ? shot->rates[c] : (double)r->classes[c].conf->qps;
}

static double
time_of(const struct run *r, const struct run_shot *shot)
{
    return shot->time_s > 0 ? shot->time_s : r->o->time_s;
}

static double
warmup_of(const struct run *r, const struct run_shot *shot)
{
    return shot->warmup_s == 0 ? r->o->warmup_s : fmax(0, shot->warmup_s);
}

static enum exit_status
settle_traffic(struct run *r, const struct run_shot *shot, unsigned class)
{
    struct run_class *c = &r->classes[class];
    double warmup_s = warmup_of(r, shot);
    struct schedule_run times = {rate_of(r, shot, class), warmup_s,
                                 fmin(r->o->warmup_drain_s, warmup_s), time_of(r, shot),
                                 warmup_s > 0 ? r->o->warmup_qps : 0};
    bool is_peak = shot->rates != NULL && times.rate == 0;
    traffic_release(&c->traffic);
    const char *wrong = traffic_settle(&c->traffic, &c->conf->traffic, &times, is_peak);
    if (wrong != NULL) {
        fprintf(r->conf.err, "mcload: %s\n", wrong);
        return EXIT_USAGE;
    }
    return EXIT_VALID;
}

/* Has all threads prepare. The first run is that of the seed, others are like it. */
static enum exit_status
get_ready(struct run *r, const struct run_shot *shot)
{
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        const struct run_class *c = &r->classes[i];
        enum exit_status status = settle_traffic(r, shot, i);
        if (status != EXIT_VALID) {
            return status;
        }
        for (unsigned t = 0; t < c->threads; t++) {
            struct drive_conf *d = &r->threads[c->first + t].conf.drive;
            *d = drive_conf(r, c, t);
            d->seed = r->count == 0 ? r->o->seed : rng_mix(r->o->seed, r->count, 0);
        }
    }
    r->count++;
    atomic_store_explicit(&r->stop, false, memory_order_relaxed);
    gate_give(&r->gate, shot->is_fresh ? GATE_READY_FRESH : GATE_READY, NULL);
    return await_ready(r);
}

/* Those that threads may run on: where time that was stolen is theirs. */
static void
start_steal(struct run *r)
{
    CPU_ZERO(&r->steal.cpus);
    for (unsigned i = 0; i < r->started; i++) {
        cpu_set_t set;
        if (pthread_getaffinity_np(r->threads[i].id, sizeof set, &set) == 0) {
            CPU_OR(&r->steal.cpus, &r->steal.cpus, &set);
        }
    }
    steal_begin(&r->steal);
}

static enum exit_status
start_tapes(struct run *r)
{
    char err[TRACE_ERR_MAX];
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        uint64_t seed = r->threads[c->first].conf.drive.seed;
        uint64_t stream = stream_of(r->conf.agent, c->first, STREAM_ARRIVALS);
        if (tape_start(&c->tape, &c->traffic, seed, stream, err) != NULL) {
            return fail(r, err);
        }
        while (!tape_is_primed(&c->tape) && !atomic_load(&r->stop)) {
            if (take_signal(r, TAPE_LOOK_MS)) {
                return interrupted(r);
            }
        }
    }
    return EXIT_VALID;
}

static enum exit_status
stop_tapes(struct run *r)
{
    enum exit_status status = EXIT_VALID;
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        const char *wrong = tape_stop(&c->tape, c->conf, r->conf.err);
        status = wrong != NULL ? fail(r, wrong) : status;
    }
    return status;
}

static bool
go(struct run *r, const struct run_shot *shot)
{
    double warmup_s = warmup_of(r, shot);
    progress_reset(&r->progress);
    if (!observe_prepare(&r->observe,
                         (nsec_t)(r->o->interval_s * (double)NSEC_PER_SEC))) {
        return false;
    }
    nsec_t soonest = clock_now() + BEGIN_DELAY;
    soonest += r->count == 1 ? (nsec_t)(r->o->wait_s * (double)NSEC_PER_SEC) : 0;
    r->window.begin = shot->begin > soonest ? shot->begin : soonest;
    r->window.start = r->window.begin + (nsec_t)(warmup_s * (double)NSEC_PER_SEC);
    r->window.quiet = r->window.start - (nsec_t)(fmin(r->o->warmup_drain_s, warmup_s) *
                                                 (double)NSEC_PER_SEC);
    r->window.end = r->window.start + (nsec_t)(time_of(r, shot) * (double)NSEC_PER_SEC);
    observe_start(&r->observe, &r->window,
                  shot->until_sure && r->o->until.count > 0 ? SURE_LOOK
                                                            : OBSERVE_LENGTH_MAX);
    if (!inquiry_start(&r->inquiry, r->window.start, r->window.end)) {
        return false;
    }
    start_steal(r);
    r->sure = (struct sure){0};
    gate_give(&r->gate, GATE_RUN, &r->window);
    return true;
}

enum watch_end {
    WATCH_DONE,
    WATCH_OVER,   /* all threads have come to the end of their traces */
    WATCH_ENOUGH, /* the caller wants no more */
    WATCH_SIGNAL,
};

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

static enum watch_end
ring(struct run *r, struct bells *b, nsec_t now)
{
    if (now >= b->progress) {
        b->progress = pass(b->progress, RUN_LOOK_MS * NSEC_PER_MSEC, now);
        if (r->conf.has_progress) {
            progress_run(&r->progress, r->threads, r->started, &r->window, now,
                         r->conf.err);
        }
    }
    if (now < b->tick) {
        return WATCH_DONE;
    }
    b->tick = pass(b->tick, b->tick_length, now);
    return r->conf.tick == NULL || r->conf.tick(r->conf.tick_arg, r, now) ? WATCH_DONE
                                                                          : WATCH_ENOUGH;
}

/* When something is to be done next, at the latest where it may end meanwhile: in a swarm by
 * others, and with a trace. */
static int
wait_ms(struct run *r, const struct bells *b, nsec_t now)
{
    nsec_t until = observe_next(&r->observe);
    until = until < b->progress ? until : b->progress;
    until = until < b->tick ? until : b->tick;
    until = until < inquiry_next(&r->inquiry) ? until : inquiry_next(&r->inquiry);
    until = until < r->window.end ? until : r->window.end;
    int ms = until > now ? (int)((until - now) / NSEC_PER_MSEC) + 1 : 0;
    bool may_end = r->conf.agents > 0 || r->has_tapes;
    return may_end && ms > STOP_LOOK_MS ? STOP_LOOK_MS : ms;
}

/* Until the end of the window, or sooner. */
static enum watch_end
watch(struct run *r, const struct run_shot *shot, nsec_t tick_length)
{
    enum watch_end how = WATCH_DONE;
    bool has_failed; /* told once more, where all are waited for */
    nsec_t now = clock_now();
    nsec_t end = r->window.end;
    struct bells bells = first_bells(r, tick_length);
    while (now < end && how == WATCH_DONE) {
        how = take_signal(r, wait_ms(r, &bells, now)) ? WATCH_SIGNAL : WATCH_DONE;
        if (how == WATCH_DONE && r->has_tapes &&
            gate_await(&r->gate, r->started, 0, &has_failed)) {
            how = WATCH_OVER;
        }
        if (atomic_load_explicit(&r->stop, memory_order_relaxed)) {
            how = WATCH_ENOUGH;
        }
        now = clock_now();
        observe_look(&r->observe, now);
        inquiry_look(&r->inquiry, now);
        if (now < end && how == WATCH_DONE) {
            how = ring(r, &bells, now);
        }
        if (how == WATCH_DONE && shot->until_sure &&
            sure_is_enough(&r->sure, r->o, &r->observe)) {
            how = WATCH_ENOUGH;
        }
    }
    if (how != WATCH_DONE) {
        atomic_store_explicit(&r->stop, true, memory_order_relaxed);
    }
    return how;
}

bool
run_keeps_records(const struct lclass *c)
{
    return !c->no_load && dist_size_max(&c->expiry, 0, UINT64_MAX) == 0 &&
           mix_share(&c->mix, MIX_DELETE) == 0 &&
           /* the latest are asked for while their sets are on the way */
           mix_share(&c->mix, MIX_INSERT) == 0;
}

static bool
is_local(const struct run *r)
{
    bool found = false;
    for (unsigned i = 0; i < r->o->servers_len; i++) {
        found = found || r->conf.targets[i].is_local;
    }
    return found;
}

/* Fills in what class number `index` came to. False when memory is short. */
static bool
collect_class(struct run *r, const struct run_shot *shot, unsigned index,
              enum watch_end how, struct result *result)
{
    const struct run_class *c = &r->classes[index];
    if (!result_init(result, c->threads)) {
        return false;
    }
    result->evenness = evenness_create(r->o->servers_len);
    bool is_good = result->evenness != NULL;
    run_sum(r, index, &result->total);
    double longest = 0;
    bool is_short = true; /* all of its threads have ended early */
    for (unsigned i = 0; i < c->threads; i++) {
        const struct lthread *t = &r->threads[c->first + i];
        ctr_add(&result->total.loaded, ctr_get(&t->loaded));
        result->costs[i] = t->cost;
        longest = fmax(longest, t->cost.elapsed_s);
        is_short = is_short && t->is_short;
        is_good = is_good && evenness_add(result->evenness, &t->evenness);
    }
    result->name = c->conf->name;
    result->is_open = traffic_is_open(&c->traffic);
    result->mode = traffic_mode_name(c->traffic.mode);
    result->qps = result->is_open ? c->traffic.rate : 0;
    result->was_loaded = run_keeps_records(c->conf);
    result->is_uneven =
        schedule_varies(&c->conf->traffic.schedule) || c->traffic.is_timed;
    result->was_interrupted = how == WATCH_SIGNAL;
    result->is_replay = c->tape.reader != NULL;
    bool is_whole = (how == WATCH_DONE || how == WATCH_OVER) && !is_short;
    result->elapsed_s = is_whole ? time_of(r, shot) : longest;
    if (c->traffic.is_timed) {
        result->qps =
            result_ratio((double)ctr_get(&result->total.offered), result->elapsed_s);
    }
    result->is_local = is_local(r);
    result->limits = &r->o->limits;
    result->gap_each = c->traffic.mode == TRAFFIC_OPEN && c->tape.reader == NULL
                           ? gaps_each(c->traffic.rate / c->threads)
                           : 0;
    result->has_steal = r->steal.is_known;
    result->steal = r->steal.share;
    result->series = observe_take(&r->observe, index);
    result->from = r->o->from_issue ? FROM_ISSUE : FROM_INTENDED;
    result->slo = c->conf->slo;
    result->is_antagonist = c->conf->antagonist != NULL;
    return is_good;
}

static struct result_span
span_of(const struct run *r, nsec_t start, nsec_t stop)
{
    return (struct result_span){
        (double)(start - r->opened_at) / (double)NSEC_PER_SEC,
        (double)((stop > start ? stop : start) - r->opened_at) / (double)NSEC_PER_SEC,
    };
}

static void
tell_phases(const struct run *r, nsec_t end, struct result *result)
{
    struct result_span *p = result->phases;
    p[PHASE_LOAD] = span_of(r, r->opened_at, r->count == 1 ? r->ready_at : r->opened_at);
    p[PHASE_WARMUP] =
        span_of(r, r->window.begin, end < r->window.start ? end : r->window.start);
    p[PHASE_MEASURE] = span_of(r, r->window.start, end);
    p[PHASE_DRAIN] = span_of(r, end, r->drained_at);
}

static enum exit_status
collect(struct run *r, const struct run_shot *shot, enum watch_end how,
        struct result *result)
{
    if (!result_init_classes(result, r->threads_len, r->o->classes_len)) {
        return fail(r, "out of memory");
    }
    result->evenness = evenness_create(r->o->servers_len);
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct result *c = &result->classes[i];
        if (result->evenness == NULL || !collect_class(r, shot, i, how, c) ||
            !result_add_class(result, c, r->classes[i].first)) {
            result_fini(result);
            return fail(r, "out of memory");
        }
        if (r->classes[i].conf->is_measuring) {
            result->shown = i;
            result->has_shown = true;
        }
    }
    result->series = observe_take(&r->observe, r->o->classes_len);
    result->server_stats = inquiry_take(&r->inquiry);
    if (shot->until_sure && r->o->until.count > 0) {
        result->until = &r->o->until;
        result->is_until_met = sure_of_result(result);
    }
    if (r->o->save != NULL && !lthread_samples(r->threads, r->threads_len, result)) {
        result_fini(result);
        return fail(r, "out of memory");
    }
    result->from = r->o->from_issue ? FROM_ISSUE : FROM_INTENDED;
    result->mode = r->o->classes_len == 1 ? result->classes[0].mode : NULL;
    result->gap_each = r->o->classes_len == 1 ? result->classes[0].gap_each : 0;
    result->limits = &r->o->limits;
    result->has_steal = r->steal.is_known;
    result->steal = r->steal.share;
    result_judge(result);
    return EXIT_VALID;
}

enum exit_status
run_once(struct run *r, const struct run_shot *shot, struct result *result)
{
    bool has_failed;
    enum exit_status status = get_ready(r, shot);
    if (status != EXIT_VALID) {
        return status;
    }
    status = start_tapes(r);
    if (status != EXIT_VALID) {
        return status;
    }
    if (!go(r, shot)) {
        return fail(r, "out of memory");
    }
    enum watch_end how = watch(r, shot, shot->tick_length);
    nsec_t end = how == WATCH_DONE ? r->window.end : clock_now();
    steal_end(&r->steal);
    inquiry_end(&r->inquiry);
    while (!gate_await(&r->gate, r->started, DRAIN_LOOK, &has_failed)) {
        /* a thread waits for its last replies, at most DRIVE_DRAIN */
    }
    if (r->conf.has_progress) {
        progress_end(r->conf.err);
    }
    r->drained_at = clock_now();
    observe_end(&r->observe, end);
    status = stop_tapes(r);
    status = has_failed             ? first_failure(r)
             : status != EXIT_VALID ? status
                                    : collect(r, shot, how, result);
    if (status == EXIT_VALID) {
        tell_phases(r, end, result);
    }
    return status;
}
