/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/agent/job.h"

#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "base/part.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

#define OBSERVE_LOOK (20 * NSEC_PER_MSEC)

static void
change(struct job *j, enum job_state state)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    j->state = state;
    PTHREAD_OK(pthread_cond_broadcast(&j->changed));
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    mbox_wake(&j->wake);
}

static bool
is_stopped(struct job *j)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    bool is = j->wants_stop;
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    return is;
}

/* At the end of each interval but the last, by the run, and before the first. A look that nobody took is replaced:
 * it is a sum. */
static bool
look(void *arg, const struct run *run, nsec_t now)
{
    struct job *j = arg;
    const struct drive_window *window = run_window(run);
    if (now < window->start) {
        return !is_stopped(j);
    }
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    for (unsigned i = 0; i < j->options.classes_len; i++) {
        counters_reset(&j->snapshots[i]);
        run_sum(run, i, &j->snapshots[i]);
    }
    j->interval = interval_number(now - window->start, window->end - window->start,
                                  j->spec.tick_length);
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    mbox_wake(&j->wake);
    return !is_stopped(j);
}

/* The run says on a stream what went wrong: its last line, without the program's name. */
static void
take_error(struct job *j)
{
    fflush(j->said);
    size_t len = j->said_len;
    while (len > 0 && j->said_text[len - 1] == '\n') {
        j->said_text[--len] = '\0';
    }
    const char *line = strrchr(j->said_text, '\n');
    line = line != NULL ? line + 1 : j->said_text;
    const char *said = part_after(line, "mcload: ");
    snprintf(j->err, sizeof j->err, "%s", said != NULL ? said : line);
}

/* ---- observing ------------------------------------------------------------------------- */

/* What came since the last time goes where the service finds it. */
static void
tell_samples(struct job *j)
{
    bool has_new = false;
    const struct server_stats *from = j->poll.stats;
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    while (j->samples->len < from->len) {
        server_stats_add(j->samples, &from->samples[j->samples->len]);
        has_new = true;
    }
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    if (has_new) {
        mbox_wake(&j->wake);
    }
}

/* Looks at the servers until the window ends. */
static void
watch_servers(struct job *j, nsec_t end)
{
    nsec_t now;
    while ((now = clock_now()) < end && !is_stopped(j)) {
        stats_poll_look(&j->poll, now);
        tell_samples(j);
        nsec_t next = stats_poll_next(&j->poll), rest = OBSERVE_LOOK;
        rest = next > now && next - now < rest ? next - now : rest;
        rest = end - now < rest ? end - now : rest;
        nanosleep(&(struct timespec){0, (long)rest}, NULL);
    }
    stats_poll_end(&j->poll);
    tell_samples(j);
}

static enum exit_status
observe(struct job *j)
{
    nsec_t begin = clock_now();
    begin = begin > j->spec.begin ? begin : j->spec.begin;
    j->start_error = begin - j->spec.begin;
    nsec_t start = begin + clock_seconds(fmax(0, j->spec.warmup_s));
    nsec_t end = start + clock_seconds(j->spec.time_s);
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    server_stats_destroy(&j->samples);
    j->samples = server_stats_create(j->options.servers_len);
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    stats_poll_start(&j->poll, start, end);
    watch_servers(j, end);
    nsec_t now = clock_now();
    now = now < end ? now : end;
    j->result = (struct result){
        .elapsed_s = now > start ? (double)(now - start) / (double)NSEC_PER_SEC : 0,
    };
    return EXIT_VALID;
}

/* ---- orders ---------------------------------------------------------------------------- */

static enum exit_status
do_order(struct job *j, enum job_state order)
{
    if (j->role == ROLE_OBSERVE) {
        return order == JOB_OPENING
                   ? stats_poll_open(&j->poll, &j->options, j->servers.all, j->said)
                   : observe(j);
    }
    if (order == JOB_OPENING) {
        struct run_conf conf = {
            .options = &j->options,
            .targets = j->servers.all,
            .tls = j->servers.tls,
            .shard = servers_shard(&j->servers),
            .agent = j->agent,
            .agents = j->agents,
            .sender = j->sender,
            .senders = j->senders,
            .cap = j->cap,
            .err = j->said,
            .tick = look,
            .tick_arg = j,
        };
        return run_open(&j->run, &conf);
    }
    if (order == JOB_RENEWING) {
        return run_renew(j->run, j->spec.is_fresh);
    }
    enum exit_status status = run_once(j->run, &j->spec, &j->result);
    j->start_error = run_window(j->run)->begin - j->spec.begin;
    return status;
}

static enum job_state
await_order(struct job *j)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    while (j->state != JOB_OPENING && j->state != JOB_RENEWING &&
           j->state != JOB_RUNNING) {
        PTHREAD_OK(pthread_cond_wait(&j->changed, &j->mutex));
    }
    enum job_state order = j->state;
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    return order;
}

/* Ends with the process, or with a failure. */
static void *
job_main(void *arg)
{
    struct job *j = arg;
    for (;;) {
        enum job_state order = await_order(j);
        if (do_order(j, order) != EXIT_VALID) {
            take_error(j);
            change(j, JOB_FAILED);
            return NULL;
        }
        change(j, order == JOB_RUNNING ? JOB_DONE : JOB_IDLE);
    }
}

void
job_init(struct job *j)
{
    *j = (struct job){.state = JOB_NEW};
    PTHREAD_OK(pthread_mutex_init(&j->mutex, NULL));
    PTHREAD_OK(pthread_cond_init(&j->changed, NULL));
    must(mbox_init(&j->wake));
    j->said = open_memstream(&j->said_text, &j->said_len);
    must(j->said != NULL);
}

bool
job_open(struct job *j)
{
    pthread_t thread;
    unsigned classes = j->options.classes_len;
    j->snapshots = delta_counters_create(classes);
    j->rates = alloc_zeroed(classes, sizeof *j->rates);
    fflush(j->said);
    j->said_before = j->said_len;
    j->state = JOB_OPENING;
    return pthread_create(&thread, NULL, job_main, j) == 0 && pthread_detach(thread) == 0;
}

void
job_order(struct job *j, enum job_state order)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    must(j->state == JOB_IDLE);
    j->wants_stop = false;
    if (j->run != NULL) {
        run_rearm(j->run);
    }
    j->interval = 0;
    j->said_before = j->said_len;
    j->state = order;
    PTHREAD_OK(pthread_cond_broadcast(&j->changed));
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
}

void
job_stop(struct job *j)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    j->wants_stop = true;
    if (j->state == JOB_RUNNING && j->run != NULL) {
        run_stop(j->run);
    }
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
}

enum job_state
job_state(struct job *j)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    enum job_state state = j->state;
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
    return state;
}

void
job_rest(struct job *j)
{
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    must(j->state == JOB_DONE);
    result_fini(&j->result);
    j->state = JOB_IDLE;
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
}
