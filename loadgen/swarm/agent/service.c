/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/agent/service.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/part.h"
#include "loadgen/swarm/agent/job.h"
#include "loadgen/swarm/chan.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/greet.h"
#include "loadgen/swarm/message.h"

#define LOOK (100 * NSEC_PER_MSEC)       /* at the lease, at the latest */
#define GOODBYE NSEC_PER_SEC             /* for a last word to get on its way */
#define UNTIL_CONFIG (30 * NSEC_PER_SEC) /* a leader has others to connect to */
/* A leader that has ended may come again before the process that served it is gone. */
#define HANDOVER (2 * NSEC_PER_SEC)
#define HANDOVER_LOOK (10 * NSEC_PER_MSEC)
#define BEGIN_MAX (1000000 * NSEC_PER_SEC) /* --wait counts */
#define RATE_MAX 1e9

struct service {
    const struct service_conf *conf;
    struct chan chan;
    struct lease lease;
    nsec_t taken_at, opened_at;
    int signal_fd;
    struct job job;
    /* What of the run has been sent, one a class. */
    struct counters *sent;
    uint64_t interval_sent, samples_sent;
    bool is_awaited;  /* the leader waits for READY */
    nsec_t looked_at; /* when its loop came round last, */
    nsec_t behind;    /* and how late, at most, since the last heartbeat */
    bool is_over;
};

/* ---- words to the leader ------------------------------------------------------------ */

static void
send_frame(struct service *s)
{
    s->is_over = !chan_send(&s->chan) || s->is_over;
}

/* A last word. */
static void
end_with(struct service *s, enum message type, const char *why)
{
    frame_put_text(chan_begin(&s->chan, (uint16_t)type), FIELD_TEXT, why);
    send_frame(s);
    chan_drain(&s->chan, clock_now() + GOODBYE);
    s->is_over = true;
}

static void
send_stamps(struct service *s, uint64_t sent, nsec_t heard)
{
    struct frame_out *o = chan_begin(&s->chan, MESSAGE_STAMPS);
    frame_put_number(o, FIELD_SENT, sent);
    frame_put_number(o, FIELD_HEARD, heard);
    frame_put_number(o, FIELD_BEHIND, s->behind);
    frame_put_number(o, FIELD_ANSWERED, clock_now());
    send_frame(s);
    s->behind = 0;
}

static void
send_delta(struct service *s, unsigned class, uint64_t interval, struct counters *now)
{
    struct frame_out *o = chan_begin(&s->chan, MESSAGE_DELTA);
    frame_put_number(o, FIELD_INTERVAL, interval);
    frame_put_number(o, FIELD_CLASS, class);
    delta_put_next(o, now, &s->sent[class]);
    send_frame(s);
}

static void
send_looks(struct service *s)
{
    struct job *j = &s->job;
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    if (j->state == JOB_RUNNING && j->interval > s->interval_sent) {
        s->interval_sent = j->interval;
        for (unsigned i = 0; i < j->options.classes_len; i++) {
            send_delta(s, i, j->interval, &j->snapshots[i]);
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
}

static void
send_sample(struct service *s, const struct server_sample *sample)
{
    struct frame_out *o = chan_begin(&s->chan, MESSAGE_SAMPLE);
    frame_put_number(o, FIELD_SERVER, sample->server);
    frame_put_number(o, FIELD_AT, (uint64_t)(sample->at_s * 1e9));
    frame_put_number(o, FIELD_TOLD, sample->reported);
    uint64_t values[SERVER_STATS];
    static_assert(sizeof values == sizeof sample->values, "a double's bits each");
    memcpy(values, sample->values, sizeof values);
    frame_put_numbers(o, FIELD_VALUES, values, SERVER_STATS);
    send_frame(s);
}

static void
send_samples(struct service *s)
{
    struct job *j = &s->job;
    PTHREAD_OK(pthread_mutex_lock(&j->mutex));
    while (j->samples != NULL && s->samples_sent < j->samples->len && !s->is_over) {
        send_sample(s, &j->samples->samples[s->samples_sent++]);
    }
    PTHREAD_OK(pthread_mutex_unlock(&j->mutex));
}

static void
put_costs(struct frame_out *o, const struct result *r)
{
    size_t place = frame_open(o, FIELD_COSTS);
    for (unsigned i = 0; i < r->threads; i++) {
        const double values[] = {r->costs[i].elapsed_s, r->costs[i].cpu_s,
                                 r->costs[i].idle_s, r->costs[i].wait_s};
        for (unsigned v = 0; v < sizeof values / sizeof values[0]; v++) {
            frame_add_u64(o, (uint64_t)(values[v] * 1e9));
        }
    }
    frame_close(o, place);
}

/* The run's messages go to the leader, which prints them. */
static void
put_notes(struct frame_out *o, struct job *j)
{
    fflush(j->said);
    const char *p = j->said_text + j->said_before;
    for (unsigned n = 0; n < MESSAGE_NOTES_MAX && p < j->said_text + j->said_len; n++) {
        const char *said = part_after(p, "mcload: ");
        char line[MESSAGE_TEXT_MAX];
        p = said != NULL ? said : p;
        size_t len = strcspn(p, "\n");
        snprintf(line, sizeof line, "%.*s", (int)len, p);
        frame_put_text(o, FIELD_NOTE, line);
        p += len + (p[len] == '\n' ? 1 : 0);
    }
}

static void
send_done(struct service *s)
{
    struct job *j = &s->job;
    struct result *r = &j->result;
    uint64_t last = interval_last((nsec_t)(j->spec.time_s * 1e9), j->spec.tick_length);
    /* It may also end with its trace. */
    bool is_whole = !j->wants_stop && r->elapsed_s + 1e-3 > j->spec.time_s;
    for (unsigned i = 0; i < r->classes_len; i++) {
        send_delta(s, i, is_whole ? last : s->interval_sent + 1, &r->classes[i].total);
    }
    struct frame_out *o = chan_begin(&s->chan, MESSAGE_DONE);
    size_t place = frame_open(o, FIELD_DIGESTS);
    for (unsigned i = 0; i < r->classes_len; i++) {
        frame_add_u64(o, delta_digest(&r->classes[i].total));
    }
    frame_close(o, place);
    put_costs(o, r);
    frame_put_number(o, FIELD_ELAPSED, (uint64_t)(r->elapsed_s * 1e9));
    frame_put_number(o, FIELD_START_ERROR, j->start_error);
    frame_put_number(o, FIELD_IS_LOCAL, r->is_local ? 1 : 0);
    if (r->has_steal) {
        frame_put_number(o, FIELD_STEAL, (uint64_t)(r->steal * 1e9));
    }
    put_notes(o, j);
    send_frame(s);
    job_rest(j);
}

/* ---- what is asked for -------------------------------------------------------------- */

static const char *
configure(struct service *s, const struct frame *f)
{
    struct job *j = &s->job;
    if (j->state != JOB_NEW) {
        return "does not understand the leader";
    }
    const char *wrong = job_config_take(j, s->conf, f);
    if (wrong != NULL) {
        return wrong;
    }
    s->sent = delta_counters_create(j->options.classes_len);
    s->opened_at = clock_now();
    s->is_awaited = true;
    return job_open(j) ? NULL : "has not enough memory";
}

/* The share of each class; *sum is the highest rate that comes of them, 0 without a limit. */
static bool
take_rates(struct job *j, const struct frame *f, double *sum)
{
    uint64_t rates[OPTIONS_CLASSES_MAX];
    unsigned classes = j->options.classes_len;
    bool is_closed = false, has_times = false;
    if (!frame_numbers(f, FIELD_RATES, classes, rates)) {
        return false;
    }
    *sum = 0;
    for (unsigned i = 0; i < classes; i++) {
        j->rates[i] = (double)rates[i];
        if (j->rates[i] > RATE_MAX) {
            return false;
        }
        bool is_timed = j->options.classes[i].traffic.is_timed;
        is_closed = is_closed || (j->rates[i] == 0 && !is_timed);
        has_times = has_times || is_timed;
        /* Not the mean of a schedule: it may ask for all in one moment. */
        *sum += schedule_peak(&j->options.classes[i].traffic.schedule, j->rates[i]);
    }
    /* What a trace asks for is known when it happens: the agent's limit holds then. */
    *sum = is_closed ? 0 : *sum == 0 && has_times ? 1 : *sum;
    return true;
}

/* Of traces; a leader that says nothing of them means all. */
static bool
take_slice(struct reader_slice *slice, const struct frame *f)
{
    uint64_t ends[2] = {0, 0};
    bool is_good =
        !frame_has(f, FIELD_SLICE) || (frame_numbers(f, FIELD_SLICE, 2, ends) &&
                                       ends[0] < ends[1] && ends[1] <= READER_ROUTES);
    *slice = (struct reader_slice){ends[0], ends[1]};
    return is_good;
}

static const char *
start_run(struct service *s, const struct frame *f)
{
    struct job *j = &s->job;
    uint64_t begin, time, warmup, is_fresh, length;
    struct reader_slice slice;
    double qps;
    nsec_t now = clock_now();
    if (job_state(j) != JOB_IDLE ||
        !frame_number(f, FIELD_BEGIN, 0, now + BEGIN_MAX, &begin) ||
        !frame_number(f, FIELD_TIME, 1, UINT64_MAX / 4, &time) ||
        !frame_number(f, FIELD_WARMUP, 0, UINT64_MAX / 4, &warmup) ||
        !frame_number(f, FIELD_IS_FRESH, 0, 1, &is_fresh) ||
        !frame_number(f, FIELD_LENGTH, 1, UINT64_MAX / 4, &length) ||
        !take_rates(j, f, &qps) || !take_slice(&slice, f)) {
        return "does not understand the leader";
    }
    const char *wrong =
        job_config_check(j, s->conf->own, (double)(time + warmup) / 1e9, qps);
    if (wrong == NULL) {
        j->spec = (struct run_spec){
            .rates = j->rates,
            .time_s = (double)time / 1e9,
            .warmup_s = warmup > 0 ? (double)warmup / 1e9 : -1,
            .begin = begin,
            .is_fresh = is_fresh == 1,
            .tick_length = length,
            .slice = slice,
        };
        s->interval_sent = s->samples_sent = 0;
        server_stats_destroy(&j->samples); /* nobody runs */
        for (unsigned i = 0; i < j->options.classes_len; i++) {
            counters_reset(&s->sent[i]);
        }
        job_order(j, JOB_RUNNING);
    }
    return wrong;
}

static const char *
renew(struct service *s, const struct frame *f)
{
    struct job *j = &s->job;
    uint64_t is_fresh;
    if (job_state(j) != JOB_IDLE || j->run == NULL ||
        !frame_number(f, FIELD_IS_FRESH, 0, 1, &is_fresh)) {
        return "does not understand the leader";
    }
    j->spec.is_fresh = is_fresh == 1;
    s->is_awaited = true;
    job_order(j, JOB_RENEWING);
    return NULL;
}

static void
on_frame(struct service *s, const struct frame *f, nsec_t heard)
{
    const char *wrong = NULL;
    uint64_t sent;
    switch ((enum message)f->type) {
    case MESSAGE_STAMP:
        if (frame_number(f, FIELD_SENT, 0, UINT64_MAX, &sent)) {
            lease_renew(&s->lease, heard);
            send_stamps(s, sent, heard);
        }
        break;
    case MESSAGE_CONFIG:
        wrong = configure(s, f);
        s->looked_at = clock_now(); /* finding addresses may have taken long */
        lease_renew(&s->lease, s->looked_at);
        break;
    case MESSAGE_RENEW:
        wrong = renew(s, f);
        break;
    case MESSAGE_START:
        wrong = start_run(s, f);
        break;
    case MESSAGE_STOP:
        job_stop(&s->job);
        break;
    default:
        wrong = "does not understand the leader";
        break;
    }
    if (wrong != NULL) {
        end_with(s, MESSAGE_REFUSED, wrong);
    }
}

/* ---- the loop ----------------------------------------------------------------------- */

static void
on_job(struct service *s)
{
    mbox_clear(&s->job.wake);
    enum job_state state = job_state(&s->job);
    if (state == JOB_IDLE && s->is_awaited) {
        struct frame_out *o = chan_begin(&s->chan, MESSAGE_READY);
        frame_put_number(o, FIELD_LOADED,
                         s->job.run != NULL ? run_loaded(s->job.run) : 0);
        put_notes(o, &s->job);
        send_frame(s);
        s->is_awaited = false;
    }
    send_looks(s);
    send_samples(s);
    if (state == JOB_DONE) {
        /* A signal to this process ends it without a last word: the leader loses it, and with it the
         * interval that it had begun. */
        if (s->job.result.was_interrupted) {
            s->is_over = true;
        } else {
            send_done(s);
        }
    }
    if (state == JOB_FAILED) {
        end_with(s, MESSAGE_FAILED, s->job.err);
    }
}

static void
on_input(struct service *s)
{
    struct frame f;
    bool is_up = chan_flush(&s->chan) && chan_fill(&s->chan);
    nsec_t heard = clock_now(); /* not before what has just been read was sent */
    while (!s->is_over && chan_next(&s->chan, &f) == CHAN_FRAME) {
        on_frame(s, &f, heard);
    }
    s->is_over = s->is_over || !is_up || s->chan.error != NULL;
}

/* Storing the records is load as well. */
static void
limit_loading(struct service *s, nsec_t now)
{
    double most = s->conf->own->agent_max_time;
    if (job_state(&s->job) == JOB_OPENING && most > 0 &&
        (double)(now - s->opened_at) > most * (double)NSEC_PER_SEC) {
        end_with(s, MESSAGE_REFUSED,
                 "refuses: loading takes longer than the agent allows");
    }
}

/* Wherever the process stood still since it looked last: after a long stop there always is a
 * word of the leader, so what ended the wait tells nothing. */
static void
note_lateness(struct service *s, nsec_t now)
{
    nsec_t late = now > s->looked_at + LOOK ? now - s->looked_at - LOOK : 0;
    s->behind = late > s->behind ? late : s->behind;
    s->looked_at = now;
}

static void
look_after(struct service *s)
{
    struct pollfd fds[] = {
        {.fd = s->chan.fd, .events = chan_events(&s->chan)},
        {.fd = s->job.wake.fd, .events = POLLIN},
        {.fd = s->signal_fd, .events = POLLIN},
    };
    int rc = poll(fds, 3, (int)(LOOK / NSEC_PER_MSEC));
    nsec_t now = clock_now();
    must(rc >= 0 || errno == EINTR);
    note_lateness(s, now);
    if (rc > 0 && fds[0].revents != 0) {
        on_input(s);
    }
    if (rc > 0 && fds[1].revents != 0) {
        on_job(s);
    }
    now = clock_now();
    limit_loading(s, now);
    bool is_late = job_state(&s->job) == JOB_NEW ? now >= s->taken_at + UNTIL_CONFIG
                                                 : lease_is_over(&s->lease, now);
    s->is_over = s->is_over || (rc > 0 && fds[2].revents != 0) || is_late;
}

static bool
become_owner(struct service *s)
{
    const struct timespec pause = {0, (long)HANDOVER_LOOK};
    nsec_t until = clock_now() + HANDOVER;
    for (;;) {
        int no_owner = 0;
        if (atomic_compare_exchange_strong(&s->conf->shared->owner, &no_owner,
                                           (int)getpid())) {
            return true;
        }
        if (clock_now() >= until) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
}

/* One leader at a time: the first that has the key. */
static bool
take_charge(struct service *s)
{
    atomic_store(&s->conf->shared->failures, 0);
    if (!become_owner(s)) {
        end_with(s, MESSAGE_BUSY, "is busy with another leader");
        return false;
    }
    frame_put_number(chan_begin(&s->chan, MESSAGE_WELCOME), FIELD_WEIGHT,
                     (uint64_t)s->conf->own->weight);
    send_frame(s);
    return !s->is_over;
}

static int
open_signals(void)
{
    sigset_t signals;
    run_signals(&signals);
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

enum service_end
service_run(const struct service_conf *conf, int fd)
{
    static struct service s;
    char err[MESSAGE_TEXT_MAX];
    struct timespec pause = {(time_t)(conf->pause / NSEC_PER_SEC),
                             (long)(conf->pause % NSEC_PER_SEC)};
    s.conf = conf;
    chan_init(&s.chan, fd, SEAL_AGENT);
    nanosleep(&pause, NULL);
    enum greet greet = greet_agent(&s.chan, conf->key, err, sizeof err);
    if (greet != GREET_GOOD) {
        if (!conf->own->is_quiet) {
            fprintf(stderr, "mcload: a leader %s\n", err);
        }
        return greet == GREET_WRONG ? SERVICE_WRONG_KEY : SERVICE_ENDED;
    }
    s.signal_fd = open_signals();
    job_init(&s.job);
    s.taken_at = clock_now();
    if (s.signal_fd != -1 && take_charge(&s)) {
        s.looked_at = clock_now();
        while (!s.is_over) {
            look_after(&s);
        }
    }
    /* The process ends at once, and with it threads and connections. */
    return SERVICE_ENDED;
}
