/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run.h"

#include <errno.h>
#include <math.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "loadgen/run/cpu_list.h"
#include "loadgen/run/run_state.h"

#define LOAD_LOOK (200 * NSEC_PER_MSEC)
#define FEED_LOOK_MS 2
/* Between looks for threads that are still waiting for replies. */
#define DRAIN_LOOK (100 * NSEC_PER_MSEC)
#define BEGIN_DELAY (5 * NSEC_PER_MSEC) /* so that all threads see the gate open before */
#define CPU_LIST_MAX 8192
#define SPARE_FDS 64

enum exit_status
run_fail(const struct run *r, const char *what)
{
    return options_fail(r->conf.err, EXIT_UNREACHABLE, "%s", what);
}

void
run_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    /* Of a terminal that is gone, unless that is ignored (nohup). */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
        sigaddset(signals, SIGHUP);
    }
}

double
run_spec_rate(const struct options *o, const struct run_spec *spec, unsigned class)
{
    return spec->rates != NULL ? spec->rates[class] : (double)o->classes[class].qps;
}

double
run_spec_time(const struct options *o, const struct run_spec *spec)
{
    return spec->time_s > 0 ? spec->time_s : o->time_s;
}

double
run_spec_warmup(const struct options *o, const struct run_spec *spec)
{
    return spec->warmup_s == 0 ? o->warmup_s : fmax(0, spec->warmup_s);
}

/* ---- what classes share ------------------------------------------------------------- */

static enum exit_status
make_workload(struct run *r, struct run_class *c)
{
    const char *wrong = workload_init(&c->workload, &c->conf->workload);
    if (wrong != NULL) {
        return options_fail(r->conf.err, EXIT_USAGE, "%s", wrong);
    }
    workload_open(&c->workload);
    return EXIT_VALID;
}

static bool
has_same_keys(const struct run_class *a, const struct run_class *b)
{
    return a->feed.reader != NULL || b->feed.reader != NULL
               ? trace_feed_has_same_keys(a->conf, b->conf)
               : workload_has_same_records(&a->workload, &b->workload);
}

/* The first class that uses some records stores them for all. */
static bool
has_to_load(const struct run *r, unsigned index)
{
    const struct run_class *c = &r->classes[index];
    for (unsigned i = 0; i < index; i++) {
        const struct run_class *before = &r->classes[i];
        if (before->loads && has_same_keys(before, c)) {
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
    r->classes = alloc_zeroed(r->o->classes_len, sizeof *r->classes);
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
            trace_feed_open(&c->feed, c->conf, &c->workload, c->threads, err) != NULL) {
            status = run_fail(r, err);
        }
        r->has_feeds = r->has_feeds || c->feed.reader != NULL;
        c->loads = status == EXIT_VALID && has_to_load(r, i);
        c->stocks = c->loads && c->feed.reader != NULL;
        r->has_stock = r->has_stock || c->stocks;
    }
    return status;
}

/* ---- CPUs and limits ---------------------------------------------------------------- */

/* Connections need a file descriptor each, and the soft limit is often 1024. */
static void
raise_file_limit(const struct run *r)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)r->threads_len * 2 + SPARE_FDS;
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        const struct lclass *c = &r->o->classes[i];
        needed += (rlim_t)(c->threads * c->connections) * r->o->servers_len;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            fprintf(r->conf.err, "mcload: cannot open %ju files: %s\n", (uintmax_t)needed,
                    strerror(errno));
        }
    }
}

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
    const char *wrong = cpu_list_wanted(r->o, text, sizeof text);
    if (wrong == NULL && text[0] == '\0') {
        return EXIT_VALID;
    }
    wrong = wrong != NULL ? wrong : pin_spec_parse(&spec, text);
    if (wrong != NULL) {
        return options_fail(r->conf.err, EXIT_USAGE, "%s (%s)", wrong,
                            r->o->has_numa ? "--numa" : "--cpus");
    }
    r->has_plan = pin_plan(&spec, r->threads_len, &r->plan, err, sizeof err);
    pin_spec_fini(&spec);
    if (!r->has_plan) {
        return run_fail(r, err);
    }
    bool is_one = r->o->has_numa && r->o->numa >= 0;
    return !is_one || follow(&r->plan) ? EXIT_VALID
                                       : run_fail(r, "cannot pin the main thread");
}

/* ---- threads ------------------------------------------------------------------------ */

static void
start_threads(struct run *r)
{
    r->threads = alloc_zeroed(r->threads_len, sizeof *r->threads);
    progress_init(&r->progress);
    sampler_init(&r->sampler, r->o->classes_len, r->threads_len);
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        for (unsigned t = 0; t < c->threads; t++) {
            struct lthread_conf conf = assignment_thread(r, c, t);
            if (r->started < c->first + t ||
                !lthread_start(&r->threads[r->started], &conf, &r->orders)) {
                return; /* await_ready sees that one is missing */
            }
            sampler_add(&r->sampler, i, &r->threads[r->started].counters);
            r->started++;
        }
        if (c->loads && c->feed.reader == NULL) {
            struct load_slice first = assignment_slice(r, c, 0);
            struct load_slice last = assignment_slice(r, c, c->threads - 1);
            r->records += (last.end - first.first) *
                          (r->conf.shard != NULL ? 1 : r->o->servers_len);
        }
    }
}

static enum exit_status
first_failure(const struct run *r)
{
    for (unsigned i = 0; i < r->started; i++) {
        if (r->threads[i].err[0] != '\0') {
            return run_fail(r, r->threads[i].err);
        }
    }
    return run_fail(r, r->started < r->threads_len ? "a thread could not start"
                                                   : "interrupted before the run");
}

static enum exit_status
interrupted(const struct run *r)
{
    char all[32] = "";
    if (!r->has_stock) {
        snprintf(all, sizeof all, " of %ju", (uintmax_t)r->records);
    }
    return options_fail(r->conf.err, EXIT_UNREACHABLE,
                        "interrupted before the run: %ju%s records stored",
                        (uintmax_t)run_loaded(r), all);
}

/* Of classes that store what their traces ask for. */
static enum exit_status
start_stocks(struct run *r)
{
    char err[TRACE_ERR_MAX];
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        struct reader_run stock = assignment_stock(r, c);
        if (c->stocks && reader_start(c->feed.reader, &stock, err) != NULL) {
            return run_fail(r, err);
        }
    }
    return EXIT_VALID;
}

/* What a thread that has failed or never began was to store is not taken: others must not
 * wait for what comes behind that. */
static void
halt_stocks(struct run *r)
{
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        if (r->classes[i].stocks) {
            reader_halt(r->classes[i].feed.reader);
        }
    }
}

static enum exit_status
end_stocks(struct run *r)
{
    enum exit_status status = EXIT_VALID;
    for (unsigned i = 0; status == EXIT_VALID && i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        const char *wrong = c->stocks ? trace_feed_end_load(&c->feed, c->conf,
                                                            !r->o->load_only, r->conf.err)
                                      : NULL;
        status = wrong != NULL ? run_fail(r, wrong) : status;
    }
    return status;
}

/* Waits until all threads are connected and loaded, or one has failed: then the others are told
 * to stop, whatever they have yet to store. */
static enum exit_status
await_ready(struct run *r)
{
    bool has_failed, was_interrupted = false;
    while (!rendezvous_await(&r->orders, r->started, LOAD_LOOK, &has_failed)) {
        if (!was_interrupted && r->is_masked && await_signal(r, 0)) {
            was_interrupted = true;
            atomic_store_explicit(&r->stop, true, memory_order_relaxed);
        }
        if (has_failed || r->started < r->threads_len) {
            atomic_store_explicit(&r->stop, true, memory_order_relaxed);
            if (r->count == 0) {
                halt_stocks(r);
            }
        }
        if (r->conf.has_progress && (r->records > 0 || r->has_stock) && r->count == 0) {
            progress_load(r->sampler.counters, r->sampler.counters_len,
                          r->has_stock ? 0 : r->records, r->conf.err);
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
    enum exit_status status = start_stocks(r);
    if (status == EXIT_VALID) {
        start_threads(r);
        status = await_ready(r);
    }
    status = status != EXIT_VALID ? status : end_stocks(r);
    r->ready_at = clock_now();
    return status;
}

static enum exit_status
prepare_card(const struct run *r)
{
    const char *why = r->o->stamps == STAMPS_CARD ? stamps_card(r->o->interface) : NULL;
    return why == NULL ? EXIT_VALID
                       : options_fail(r->conf.err, EXIT_UNREACHABLE,
                                      "%s puts no time stamps on packets: %s",
                                      r->o->interface, why);
}

enum exit_status
run_open(struct run **run, const struct run_conf *conf)
{
    struct run *r = alloc_zeroed(1, sizeof *r);
    *run = NULL;
    r->conf = *conf;
    r->o = conf->options;
    r->src_ports = (unsigned)r->o->src_port;
    rendezvous_init(&r->orders);
    run_signals(&r->signals);
    enum exit_status status = make_classes(r);
    if (status == EXIT_VALID) {
        raise_file_limit(r);
        status = make_plan(r);
    }
    status = status != EXIT_VALID ? status : prepare_card(r);
    status = status != EXIT_VALID
                 ? status
                 : stats_poll_open(&r->poll, r->o, r->conf.targets, r->conf.err);
    bool is_alone = conf->agents == 0; /* others store records as well */
    if (status == EXIT_VALID && is_alone) {
        stats_poll_load_begins(&r->poll);
    }
    status = status != EXIT_VALID ? status : start(r);
    if (status == EXIT_VALID && is_alone) {
        stats_poll_load_ends(&r->poll);
    }
    if (status == EXIT_VALID) {
        stats_poll_learn(&r->poll, r->o);
    } else {
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
    rendezvous_give(&r->orders, ORDER_END, NULL);
    for (unsigned i = 0; i < r->started; i++) {
        lthread_join(&r->threads[i]);
    }
    for (unsigned i = 0; r->classes != NULL && i < r->o->classes_len; i++) {
        trace_feed_close(&r->classes[i].feed);
        workload_close(&r->classes[i].workload);
        schedule_fini(&r->classes[i].traffic.schedule);
    }
    if (r->has_plan) {
        pin_plan_fini(&r->plan);
    }
    progress_fini(&r->progress);
    sampler_fini(&r->sampler);
    stats_poll_fini(&r->poll);
    free(r->classes);
    free(r->threads);
    rendezvous_fini(&r->orders);
    if (r->is_masked) {
        PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &r->mask_before, NULL));
    }
    free(r);
    *run = NULL;
}

void
run_stop(struct run *r)
{
    atomic_store_explicit(&r->is_asked, true, memory_order_relaxed);
    atomic_store_explicit(&r->stop, true, memory_order_relaxed);
}

void
run_rearm(struct run *r)
{
    atomic_store_explicit(&r->is_asked, false, memory_order_relaxed);
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
run_sum(const struct run *r, unsigned c, struct counters *sum)
{
    must(c < r->o->classes_len);
    const struct run_class *class = &r->classes[c];
    for (unsigned i = 0; i < class->threads; i++) {
        counters_merge(sum, &r->threads[class->first + i].counters);
    }
}

/* ---- one run ------------------------------------------------------------------------ */

static enum exit_status
settle_traffic(struct run *r, const struct run_spec *spec, unsigned class)
{
    struct run_class *c = &r->classes[class];
    double warmup_s = run_spec_warmup(r->o, spec);
    struct schedule_run times = {
        run_spec_rate(r->o, spec, class), warmup_s, fmin(r->o->warmup_drain_s, warmup_s),
        run_spec_time(r->o, spec), warmup_s > 0 ? r->o->warmup_qps : 0};
    bool is_peak = spec->rates != NULL && times.rate == 0;
    schedule_fini(&c->traffic.schedule);
    const char *wrong = traffic_settle(&c->traffic, &c->conf->traffic, &times, is_peak);
    return wrong == NULL ? EXIT_VALID
                         : options_fail(r->conf.err, EXIT_USAGE, "%s", wrong);
}

enum exit_status
run_renew(struct run *r, bool all)
{
    atomic_store_explicit(&r->stop, false, memory_order_relaxed);
    rendezvous_give(&r->orders, all ? ORDER_RENEW_ALL : ORDER_RENEW, NULL);
    return await_ready(r);
}

/* Has all threads prepare. The first run is that of the seed, others are like it. */
static enum exit_status
get_ready(struct run *r, const struct run_spec *spec)
{
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        const struct run_class *c = &r->classes[i];
        enum exit_status status = settle_traffic(r, spec, i);
        if (status != EXIT_VALID) {
            return status;
        }
        for (unsigned t = 0; t < c->threads; t++) {
            struct drive_conf *d = &r->threads[c->first + t].conf.drive;
            *d = assignment_drive(r, c, t);
            d->seed = r->count == 0 ? r->o->seed : rng_mix(r->o->seed, r->count, 0);
        }
    }
    r->count++;
    atomic_store_explicit(&r->over, 0, memory_order_relaxed);
    rendezvous_give(&r->orders, ORDER_READY, NULL);
    enum exit_status status = await_ready(r);
    if (atomic_load_explicit(&r->is_asked, memory_order_relaxed)) {
        /* Perhaps before the run before was forgotten above. */
        atomic_store_explicit(&r->stop, true, memory_order_relaxed);
    }
    return status;
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
start_feeds(struct run *r, const struct run_spec *spec)
{
    char err[TRACE_ERR_MAX];
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        struct reader_run replay = assignment_replay(r, c, spec);
        if (c->feed.reader != NULL &&
            reader_start(c->feed.reader, &replay, err) != NULL) {
            return run_fail(r, err);
        }
        while (!trace_feed_is_primed(&c->feed) && !atomic_load(&r->stop)) {
            if (await_signal(r, FEED_LOOK_MS)) {
                return interrupted(r);
            }
        }
    }
    return EXIT_VALID;
}

static enum exit_status
stop_feeds(struct run *r)
{
    enum exit_status status = EXIT_VALID;
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct run_class *c = &r->classes[i];
        const char *wrong = trace_feed_stop(&c->feed, c->conf, r->conf.err);
        status = wrong != NULL ? run_fail(r, wrong) : status;
    }
    return status;
}

/* Whether the class's trace had nothing left for the window when the warm-up was over. */
static bool
has_missed_window(const struct run *r, const struct run_class *c)
{
    bool has = c->feed.reader != NULL && r->window.start > r->window.begin;
    for (unsigned i = c->first; i < c->first + c->threads; i++) {
        const struct lthread *t = &r->threads[i];
        has = has && t->is_short && ctr_get(&t->counters.offered) == 0;
    }
    return has;
}

/* A line of each; the verdict would be that no answer came. That there is nothing else to be
 * told is another matter in a swarm: other processes may have something left. */
static enum exit_status
tell_missed_windows(const struct run *r)
{
    unsigned count = 0;
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        const struct run_class *c = &r->classes[i];
        if (has_missed_window(r, c)) {
            count++;
            options_fail(r->conf.err, EXIT_INVALID,
                         "%s: the trace ended within the warm-up, nothing of it is "
                         "measured: shorten --warmup",
                         c->conf->trace.file.path);
        }
    }
    return count == r->o->classes_len && r->conf.agents == 0 ? EXIT_INVALID : EXIT_VALID;
}

/* What the numbers of errors do not say; once. */
static void
tell_refusal(struct run *r)
{
    if (r->refusal.server != NULL && !r->has_told_refusal) {
        r->has_told_refusal = true;
        fprintf(r->conf.err, "mcload: first error: %s answered %s\n", r->refusal.server,
                r->refusal.reply);
    }
}

static void
go(struct run *r, const struct run_spec *spec)
{
    double warmup_s = run_spec_warmup(r->o, spec);
    sampler_prepare(&r->sampler, clock_seconds(r->o->interval_s), r->o->hlog != NULL);
    nsec_t soonest = clock_now() + BEGIN_DELAY;
    soonest += r->count == 1 ? clock_seconds(r->o->wait_s) : 0;
    r->window.begin = spec->begin > soonest ? spec->begin : soonest;
    r->window.start = r->window.begin + clock_seconds(warmup_s);
    r->window.quiet =
        r->window.start - clock_seconds(fmin(r->o->warmup_drain_s, warmup_s));
    r->window.end = r->window.start + clock_seconds(run_spec_time(r->o, spec));
    progress_reset(&r->progress, r->window.begin);
    sampler_start(&r->sampler, &r->window,
                  spec->stops_early && until_is_given(&r->o->until) ? STOPPING_LOOK
                                                                    : SAMPLER_LENGTH_MAX);
    stats_poll_start(&r->poll, r->window.start, r->window.end);
    start_steal(r);
    r->stopping = (struct stopping){0};
    rendezvous_give(&r->orders, ORDER_RUN, &r->window);
}

enum exit_status
run_once(struct run *r, const struct run_spec *spec, struct result *result)
{
    bool has_failed;
    enum exit_status status = run_renew(r, spec->is_fresh);
    status = status != EXIT_VALID ? status : get_ready(r, spec);
    status = status != EXIT_VALID ? status : start_feeds(r, spec);
    if (status != EXIT_VALID) {
        return status;
    }
    go(r, spec);
    enum run_end how = await_end(r, spec, spec->tick_length);
    steal_end(&r->steal);
    stats_poll_end(&r->poll);
    while (!rendezvous_await(&r->orders, r->started, DRAIN_LOOK, &has_failed)) {
        /* a thread waits for its last replies, at most DRIVE_DRAIN */
    }
    if (r->conf.has_progress) {
        progress_end(r->conf.err);
    }
    r->drained_at = clock_now();
    nsec_t end = run_ended_at(r, 0, r->started);
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        const struct run_class *c = &r->classes[i];
        sampler_end(&r->sampler, i, run_ended_at(r, c->first, c->threads));
    }
    sampler_end(&r->sampler, r->o->classes_len, end);
    tell_refusal(r);
    status = stop_feeds(r);
    status = has_failed ? first_failure(r) : status;
    if (status == EXIT_VALID && (how == RUN_DONE || how == RUN_OVER)) {
        status = tell_missed_windows(r);
    }
    if (status == EXIT_VALID) {
        collect_result(r, spec, how, result);
        collect_phases(r, end, result);
    }
    return status;
}
