/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/agent/job.h"

#include <math.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/swarm/ledger.h"

#define OBSERVE_LOOK (20 * NSEC_PER_MSEC)

static void
wake(struct work *w)
{
    uint64_t one = 1;
    ssize_t n = write(w->wake_fd, &one, sizeof one);
    must(n == sizeof one);
}

static void
change(struct work *w, enum work_state state)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    w->state = state;
    PTHREAD_OK(pthread_cond_broadcast(&w->changed));
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    wake(w);
}

static bool
is_stopped(struct work *w)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    bool is = w->wants_stop;
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    return is;
}

/* At the end of each interval but the last, by the run. A look that nobody took is replaced:
 * it is a sum. */
static bool
look(void *arg, const struct run *run, nsec_t now)
{
    struct work *w = arg;
    const struct drive_window *window = run_window(run);
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    for (unsigned i = 0; i < w->options.classes_len; i++) {
        tally_reset(&w->snapshots[i]);
        run_sum(run, i, &w->snapshots[i]);
    }
    w->looks++;
    w->interval = ledger_number(now - window->start, window->end - window->start,
                                w->shot.tick_length);
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    wake(w);
    return !is_stopped(w);
}

/* The run says on a stream what went wrong: its last line, without the program's name. */
static void
take_error(struct work *w)
{
    static const char program[] = "mcload: ";
    fflush(w->said);
    size_t len = w->said_len;
    while (len > 0 && w->said_text[len - 1] == '\n') {
        w->said_text[--len] = '\0';
    }
    const char *line = strrchr(w->said_text, '\n');
    line = line != NULL ? line + 1 : w->said_text;
    if (strncmp(line, program, sizeof program - 1) == 0) {
        line += sizeof program - 1;
    }
    snprintf(w->err, sizeof w->err, "%s", line);
}

/* ---- observing ------------------------------------------------------------------------- */

/* What came since the last time goes where the session finds it. False: no memory. */
static bool
tell_samples(struct work *w)
{
    bool is_good = true, has_new = false;
    const struct server_stats *from = w->inquiry.stats;
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    while (is_good && w->samples->len < from->len) {
        is_good = server_stats_add(w->samples, &from->samples[w->samples->len]);
        has_new = true;
    }
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    if (has_new) {
        wake(w);
    }
    return is_good;
}

/* Looks at the servers until the window ends. */
static bool
watch_servers(struct work *w, nsec_t end)
{
    bool is_good = true;
    nsec_t now;
    while (is_good && (now = clock_now()) < end && !is_stopped(w)) {
        inquiry_look(&w->inquiry, now);
        is_good = tell_samples(w);
        nsec_t next = inquiry_next(&w->inquiry), rest = OBSERVE_LOOK;
        rest = next > now && next - now < rest ? next - now : rest;
        rest = end - now < rest ? end - now : rest;
        nanosleep(&(struct timespec){0, (long)rest}, NULL);
    }
    inquiry_end(&w->inquiry);
    return is_good && tell_samples(w);
}

static enum exit_status
observe(struct work *w)
{
    nsec_t begin = clock_now();
    begin = begin > w->shot.begin ? begin : w->shot.begin;
    w->start_error = begin - w->shot.begin;
    nsec_t start = begin + (nsec_t)(fmax(0, w->shot.warmup_s) * (double)NSEC_PER_SEC);
    nsec_t end = start + (nsec_t)(w->shot.time_s * (double)NSEC_PER_SEC);
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    server_stats_destroy(&w->samples);
    w->samples = server_stats_create(w->options.servers_len);
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    if (w->samples == NULL || !inquiry_start(&w->inquiry, start, end) ||
        !watch_servers(w, end)) {
        fputs("out of memory\n", w->said);
        return EXIT_UNREACHABLE;
    }
    nsec_t now = clock_now();
    now = now < end ? now : end;
    w->result = (struct result){
        .elapsed_s = now > start ? (double)(now - start) / (double)NSEC_PER_SEC : 0,
    };
    return EXIT_VALID;
}

/* ---- orders ---------------------------------------------------------------------------- */

static enum exit_status
do_order(struct work *w, enum work_state order)
{
    if (w->role == ROLE_OBSERVE) {
        return order == WORK_OPENING
                   ? inquiry_open(&w->inquiry, &w->options, w->targets, w->said)
                   : observe(w);
    }
    if (order == WORK_OPENING) {
        struct run_conf conf = {
            .options = &w->options,
            .targets = w->targets,
            .tls = w->tls,
            .shard = w->has_shard ? &w->shard : NULL,
            .agent = w->agent,
            .agents = w->agents,
            .sender = w->sender,
            .senders = w->senders,
            .cap = w->cap,
            .err = w->said,
            .tick = look,
            .tick_arg = w,
        };
        return run_open(&w->run, &conf);
    }
    enum exit_status status = run_once(w->run, &w->shot, &w->result);
    w->start_error = run_window(w->run)->begin - w->shot.begin;
    return status;
}

static enum work_state
await_order(struct work *w)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    while (w->state != WORK_OPENING && w->state != WORK_RUNNING) {
        PTHREAD_OK(pthread_cond_wait(&w->changed, &w->mutex));
    }
    enum work_state order = w->state;
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    return order;
}

/* Ends with the process, or with a failure. */
static void *
work_main(void *arg)
{
    struct work *w = arg;
    for (;;) {
        enum work_state order = await_order(w);
        if (do_order(w, order) != EXIT_VALID) {
            take_error(w);
            change(w, WORK_FAILED);
            return NULL;
        }
        change(w, order == WORK_OPENING ? WORK_IDLE : WORK_DONE);
    }
}

void
work_init(struct work *w)
{
    *w = (struct work){.state = WORK_NEW};
    PTHREAD_OK(pthread_mutex_init(&w->mutex, NULL));
    PTHREAD_OK(pthread_cond_init(&w->changed, NULL));
    w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->said = open_memstream(&w->said_text, &w->said_len);
    must(w->wake_fd != -1 && w->said != NULL);
}

bool
work_open(struct work *w)
{
    pthread_t thread;
    unsigned classes = w->options.classes_len;
    w->snapshots = calloc(classes + 1, sizeof *w->snapshots); /* there may be none */
    w->rates = calloc(classes + 1, sizeof *w->rates);
    if (w->snapshots == NULL || w->rates == NULL) {
        return false;
    }
    for (unsigned i = 0; i < classes; i++) {
        if (!tally_init(&w->snapshots[i])) {
            return false;
        }
    }
    fflush(w->said);
    w->said_before = w->said_len;
    w->state = WORK_OPENING;
    return pthread_create(&thread, NULL, work_main, w) == 0 &&
           pthread_detach(thread) == 0;
}

void
work_shoot(struct work *w)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    must(w->state == WORK_IDLE);
    w->wants_stop = false;
    if (w->run != NULL) {
        run_rearm(w->run);
    }
    w->said_before = w->said_len;
    w->looks = 0;
    w->state = WORK_RUNNING;
    PTHREAD_OK(pthread_cond_broadcast(&w->changed));
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
}

void
work_stop(struct work *w)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    w->wants_stop = true;
    if (w->state == WORK_RUNNING && w->run != NULL) {
        run_stop(w->run);
    }
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
}

enum work_state
work_state(struct work *w)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    enum work_state state = w->state;
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
    return state;
}

void
work_rest(struct work *w)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mutex));
    must(w->state == WORK_DONE);
    result_fini(&w->result);
    w->state = WORK_IDLE;
    PTHREAD_OK(pthread_mutex_unlock(&w->mutex));
}
