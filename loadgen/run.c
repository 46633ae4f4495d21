/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "loadgen/drive/load.h"
#include "loadgen/drive/lthread.h"
#include "loadgen/progress.h"
#include "qos/pin.h"

#define LOAD_LOOK_MS 200
#define RUN_LOOK_MS 1000
#define BEGIN_DELAY (5 * NSEC_PER_MSEC) /* so that all threads see the gate open before */
#define SPARE_FDS 64
#define CPU_LIST_MAX 8192

struct run {
    const struct run_conf *conf;
    const struct options *o;
    struct gate gate;
    struct lthread *threads;
    unsigned started;
    struct pin_plan plan;
    bool has_plan;
    struct lconn_auth auth; /* constant while threads run */
    atomic_bool stop;
    struct progress progress;
};

static enum exit_status
fail(const struct run *r, const char *what)
{
    fprintf(r->conf->err, "mcload: %s\n", what);
    return EXIT_UNREACHABLE;
}

/* "list:" and the CPUs that this process may use. */
static bool
allowed_list(char *text, size_t len)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return false;
    }
    size_t n = (size_t)snprintf(text, len, "list:");
    const char *comma = "";
    for (int cpu = 0; cpu < CPU_SETSIZE && n < len; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            n += (size_t)snprintf(text + n, len - n, "%s%d", comma, cpu);
            comma = ",";
        }
    }
    return n < len;
}

static enum exit_status
make_plan(struct run *r)
{
    char text[CPU_LIST_MAX], err[LTHREAD_ERR_MAX];
    struct pin_spec spec;
    if (!r->o->has_affinity && r->o->cpus == NULL) {
        return EXIT_VALID;
    }
    if (r->o->cpus != NULL) {
        snprintf(text, sizeof text, "list:%s", r->o->cpus);
    } else if (!allowed_list(text, sizeof text)) {
        return fail(r, "cannot tell which CPUs may be used");
    }
    const char *wrong = pin_spec_parse(&spec, text);
    if (wrong != NULL) {
        fprintf(r->conf->err, "mcload: %s (--cpus)\n", wrong);
        return EXIT_USAGE;
    }
    r->has_plan =
        pin_plan(&spec, (unsigned)r->o->classes[0].threads, &r->plan, err, sizeof err);
    pin_spec_fini(&spec);
    return r->has_plan ? EXIT_VALID : fail(r, err);
}

/* Connections need a file descriptor each; the soft limit is often 1024. */
static void
raise_fd_limit(const struct run *r)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)(r->o->classes[0].threads * r->o->classes[0].connections) *
                        r->o->servers_len +
                    (rlim_t)r->o->classes[0].threads * 2 + SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            fprintf(r->conf->err, "mcload: cannot open %ju files: %s\n",
                    (uintmax_t)needed, strerror(errno));
        }
    }
}

static struct lthread_conf
thread_conf(struct run *r, unsigned index)
{
    const struct options *o = r->o;
    unsigned depth = (unsigned)o->classes[0].depth;
    return (struct lthread_conf){
        .index = index,
        .threads = (unsigned)o->classes[0].threads,
        .set =
            {
                .codec = o->classes[0].codec,
                .targets = r->conf->targets,
                .targets_len = o->servers_len,
                .per_target = (unsigned)o->classes[0].connections,
                .capacity = depth > LOAD_DEPTH ? depth : LOAD_DEPTH,
                .workload = r->conf->workload,
                .auth = o->classes[0].password != NULL ? &r->auth : NULL,
                .with_nodelay = !o->classes[0].no_nodelay,
                .timeout = (nsec_t)(o->timeout_s * (double)NSEC_PER_SEC),
            },
        .drive =
            {
                .is_open = o->classes[0].qps > 0,
                .rate = (double)o->classes[0].qps,
                .arrivals = &o->classes[0].arrivals,
                .scope = o->classes[0].scope,
                .depth = depth,
                .drops_late = o->classes[0].drops_late,
                .spin = o->classes[0].is_blocking || o->classes[0].qps == 0
                            ? 0
                            : (nsec_t)(o->classes[0].spin_us * (double)NSEC_PER_USEC),
                .timeout = (nsec_t)(o->timeout_s * (double)NSEC_PER_SEC),
                .seed = o->seed,
                .thread = index,
                .threads = (unsigned)o->classes[0].threads,
                .stop = &r->stop,
            },
        .loads = !o->classes[0].no_load,
        .pin = r->has_plan ? &r->plan : NULL,
        .fifo_priority = o->fifo_priority,
    };
}

/* Waits for SIGINT or SIGTERM. True when one came. */
static bool
take_signal(const sigset_t *signals, int timeout_ms)
{
    struct timespec ts = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    return sigtimedwait(signals, NULL, &ts) > 0;
}

static void
open_gate(struct run *r, bool is_cancelled)
{
    struct gate *g = &r->gate;
    PTHREAD_OK(pthread_mutex_lock(&g->mutex));
    g->window.begin = clock_now() + BEGIN_DELAY;
    g->window.start = g->window.begin + (nsec_t)(r->o->warmup_s * (double)NSEC_PER_SEC);
    g->window.end = g->window.start + (nsec_t)(r->o->time_s * (double)NSEC_PER_SEC);
    g->is_cancelled = is_cancelled;
    g->is_open = true;
    PTHREAD_OK(pthread_cond_broadcast(&g->changed));
    PTHREAD_OK(pthread_mutex_unlock(&g->mutex));
}

static enum exit_status
first_failure(struct run *r)
{
    for (unsigned i = 0; i < r->started; i++) {
        if (r->threads[i].err[0] != '\0') {
            return fail(r, r->threads[i].err);
        }
    }
    return fail(r, "a thread could not start");
}

/* Waits until all threads are connected and loaded, or one has failed. */
static enum exit_status
await_ready(struct run *r)
{
    struct gate *g = &r->gate;
    enum exit_status status = EXIT_VALID;
    struct timespec until;
    PTHREAD_OK(pthread_mutex_lock(&g->mutex));
    while (g->ready + g->failed < r->started) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOAD_LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        int rc = pthread_cond_timedwait(&g->changed, &g->mutex, &until);
        must(rc == 0 || rc == ETIMEDOUT);
        if (rc == ETIMEDOUT && r->conf->has_progress && !r->o->classes[0].no_load) {
            progress_load(r->threads, r->started,
                          (uint64_t)r->o->classes[0].records * r->o->servers_len,
                          r->conf->err);
        }
    }
    bool has_failed = g->failed > 0;
    PTHREAD_OK(pthread_mutex_unlock(&g->mutex));
    if (r->conf->has_progress) {
        progress_end(r->conf->err);
    }
    if (has_failed || r->started < (unsigned)r->o->classes[0].threads) {
        status = first_failure(r);
    }
    return status;
}

static bool
watch(struct run *r, const sigset_t *signals)
{
    bool was_interrupted = false;
    nsec_t now = clock_now();
    nsec_t next = r->gate.window.begin + RUN_LOOK_MS * NSEC_PER_MSEC;
    nsec_t end = r->gate.window.end;
    while (now < end) {
        nsec_t until = next < end ? next : end;
        int ms = (int)((until - now) / NSEC_PER_MSEC) + 1;
        if (take_signal(signals, ms)) {
            was_interrupted = true;
            atomic_store_explicit(&r->stop, true, memory_order_relaxed);
            break;
        }
        now = clock_now();
        if (now >= next) {
            next += RUN_LOOK_MS * NSEC_PER_MSEC;
            if (r->conf->has_progress) {
                progress_run(&r->progress, r->threads, r->started, &r->gate.window, now,
                             r->conf->err);
            }
        }
    }
    return was_interrupted;
}

/* Whether all records should be there throughout: then a miss is the server's doing. */
static bool
keeps_records(const struct options *o)
{
    return !o->classes[0].no_load &&
           dist_size_max(&o->classes[0].expiry, 0, UINT64_MAX) == 0 &&
           mix_share(&o->classes[0].mix, MIX_DELETE) == 0 &&
           /* the latest are asked for while their sets are on the way */
           mix_share(&o->classes[0].mix, MIX_INSERT) == 0;
}

static void
collect(struct run *r, struct result *result)
{
    for (unsigned i = 0; i < r->started; i++) {
        struct lthread *t = &r->threads[i];
        PTHREAD_OK(pthread_join(t->id, NULL));
        t->is_started = false;
        tally_merge(&result->total, &t->tally);
        tally_fini(&t->tally);
        result->costs[i] = t->cost;
    }
    result->is_open = r->o->classes[0].qps > 0;
    result->qps = (double)r->o->classes[0].qps;
    result->was_loaded = keeps_records(r->o);
    result->elapsed_s = r->o->time_s;
    if (result->was_interrupted) {
        result->elapsed_s = 0;
        for (unsigned i = 0; i < r->started; i++) {
            result->elapsed_s = result->costs[i].elapsed_s > result->elapsed_s
                                    ? result->costs[i].elapsed_s
                                    : result->elapsed_s;
        }
    }
    for (unsigned i = 0; i < r->o->servers_len; i++) {
        result->is_local = result->is_local || r->conf->targets[i].is_local;
    }
    result_judge(result);
}

static enum exit_status
start_threads(struct run *r)
{
    r->threads = calloc((size_t)r->o->classes[0].threads, sizeof *r->threads);
    if (r->threads == NULL || !progress_init(&r->progress)) {
        return fail(r, "out of memory");
    }
    if (r->o->classes[0].password != NULL) {
        r->auth.len = r->o->classes[0].codec->put_auth(
            r->auth.bytes, r->o->classes[0].username, r->o->classes[0].password);
    }
    for (unsigned i = 0; i < (unsigned)r->o->classes[0].threads; i++) {
        struct lthread_conf conf = thread_conf(r, i);
        if (!lthread_start(&r->threads[i], &conf, &r->gate)) {
            break; /* await_ready sees that one is missing */
        }
        r->started++;
    }
    return EXIT_VALID;
}

static void
tear_down(struct run *r)
{
    for (unsigned i = 0; i < r->started; i++) {
        lthread_join(&r->threads[i]);
    }
    if (r->has_plan) {
        pin_plan_fini(&r->plan);
    }
    progress_fini(&r->progress);
    free(r->threads);
    gate_fini(&r->gate);
}

static enum exit_status
run_threads(struct run *r, struct result *result)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    raise_fd_limit(r);
    enum exit_status status = make_plan(r);
    /* Threads inherit the mask: signals come to this thread only, which lets them end the
     * program while loading and turns them into an early end of the run later. */
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &signals, NULL));
    status = status != EXIT_VALID ? status : start_threads(r);
    if (status != EXIT_VALID) {
        return status;
    }
    PTHREAD_OK(pthread_sigmask(SIG_UNBLOCK, &signals, NULL));
    status = await_ready(r);
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &signals, NULL));
    bool runs = status == EXIT_VALID && !r->o->load_only;
    open_gate(r, !runs);
    if (runs) {
        result->was_interrupted = watch(r, &signals);
        if (r->conf->has_progress) {
            progress_end(r->conf->err);
        }
    }
    if (status == EXIT_VALID) {
        collect(r, result);
    }
    return status;
}

enum exit_status
run_all(const struct run_conf *conf, struct result *result)
{
    struct run r = {.conf = conf, .o = conf->options};
    gate_init(&r.gate);
    if (!result_init(result, (unsigned)r.o->classes[0].threads)) {
        gate_fini(&r.gate);
        return fail(&r, "out of memory");
    }
    enum exit_status status = run_threads(&r, result);
    tear_down(&r);
    if (status != EXIT_VALID) {
        result_fini(result);
    }
    return status;
}
