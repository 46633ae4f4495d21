/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/worker.h"

#include <errno.h>
#include <event2/thread.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#include "base/log.h"
#include "base/probe.h"
#include "net/accept.h"
#include "net/conn.h"
#include "place/pinner.h"
#include "serve/watch.h"
#include "sock/incoming.h"

#define READS_PER_RX_CHECK 64

/* A poll that takes longer has slept: nothing was ready when it began. */
#define POLL_MOST_NS (20 * NSEC_PER_USEC)

/* How often the clock is looked at while small requests are served where they are read. */
#define INLINE_TURNS_TIMED 8

/* A pass of fewer small requests, and nothing else, takes less than POLL_MOST_NS. */
#define SHORT_PASS 4

/* ---- time ----------------------------------------------------------------------------- */

nsec_t
worker_read_clock(struct worker *w)
{
    w->now = clock_now();
    w->env.now = clock_rel(w->now);
    w->env.looks_closer = w->env.conf->auth != NULL || log_level() >= LOG_DEBUG;
    w->is_now_fresh = true;
    return w->now;
}

void
worker_refresh_now(struct worker *w)
{
    if (!w->is_now_fresh) {
        nsec_t before = w->woke_at;
        w->woke_at = worker_read_clock(w);
        bool has_slept = w->polled_at == 0 || w->woke_at - w->polled_at > POLL_MOST_NS;
        w->heard_at = has_slept ? w->woke_at : before;
    }
}

/* Does the SLO want to know when this pass ends? What comes meanwhile has waited since before then,
 * which matters once a queue stands, and does not behind a pass that is over at once. */
static bool
wants_end(struct worker *w)
{
    uint64_t asked = w->slo.asked[CLASS_SMALL] - w->asked_before;
    w->asked_before += asked;
    return asked >= SHORT_PASS || w->sched.length > 0 || !w->slo.is_neutral;
}

/* After the callbacks of a pass: one that had none begins here. */
static bool
begin_timing(struct worker *w)
{
    bool is_timed = (unlikely(slo_is_on(&w->shared->slo)) && wants_end(w)) ||
                    atomic_load_explicit(&w->shared->times_passes, memory_order_relaxed);
    if (is_timed) {
        worker_refresh_now(w);
    }
    return is_timed;
}

static void
end_timing(struct worker *w, bool is_timed)
{
    nsec_t end = is_timed ? worker_read_clock(w) : 0;
    if (is_timed) {
        ctr_add(&w->time.busy_ns, end - w->woke_at);
    }
    w->polled_at = end;
}

void
worker_check_rx(struct worker *w, int fd)
{
    w->reads_to_check = READS_PER_RX_CHECK;
    int cpu = w->shared->checks_rx ? incoming_cpu(fd) : -1;
    if (cpu >= 0) {
        ctr_add(&w->qos.rx_checked, 1);
        ctr_add(&w->qos.rx_local, cpu == sched_getcpu());
    }
}

/* ---- deferred work -------------------------------------------------------------------- */

void
worker_defer(struct worker *w, struct task *t, enum req_class lane)
{
    ctr_add(&w->qos.deferred, 1);
    ctr_add(&w->classes[lane].queued, 1);
    PROBE(qos__defer, t, lane);
    sched_push(&w->sched, &t->node, lane, w->now);
}

void
worker_unqueue(struct worker *w, struct task *t)
{
    if (sched_is_queued(&t->node)) {
        ctr_add(&w->classes[t->node.class].left, 1);
        sched_remove(&w->sched, &t->node);
    }
    limiter_leave(&w->limited.desk, &t->wait);
}

void
worker_look_behind(struct worker *w)
{
    if (++w->inline_turns % INLINE_TURNS_TIMED == 0 &&
        worker_read_clock(w) - w->woke_at >= w->inline_ns) {
        event_base_loopbreak(w->base);
    }
}

bool
worker_is_turn_over(struct worker *w, const struct turn *turn)
{
    if (turn->is_inline || turn->deadline == TURN_ENDLESS) {
        return false;
    }
    nsec_t before = w->now;
    nsec_t now = worker_read_clock(w);
    return now + (now - before) >= turn->deadline;
}

static struct task *
task_of_node(struct sched_node *node)
{
    return (struct task *)(void *)((char *)node - offsetof(struct task, node));
}

/* What has been served in this pass where it was read; reads the clock. A pass in which nothing was
 * begins here. */
static nsec_t
inline_used(struct worker *w)
{
    worker_refresh_now(w);
    return worker_read_clock(w) - w->woke_at;
}

/* The turn of whoever is next, and how long it took. One that has waited too long is not at the
 * cost of the others: the pass's deadline moves. */
static nsec_t
serve_next(struct worker *w, nsec_t *deadline)
{
    bool is_overdue;
    nsec_t begin = w->now;
    struct sched_node *node = sched_next(&w->sched, begin, &is_overdue);
    struct worker_class *k = &w->classes[node->class];
    struct turn turn = {.lane = class_is_inline(node->class) ? CLASS_SMALL : node->class,
                        .ready_at = node->queued_at,
                        .requests = is_overdue ? 1 : w->shared->requests_per_event,
                        .deadline = w->shared->classes.is_on ? *deadline : TURN_ENDLESS};
    ctr_add(&w->qos.turns, 1);
    ctr_add(&k->turns, 1);
    ctr_add(&k->overdue, is_overdue);
    nsec_t wait = begin > node->queued_at ? begin - node->queued_at : 0;
    hist_record(k->wait, wait);
    if (unlikely(slo_is_on(&w->shared->slo))) {
        slo_observe(&w->slo, node->class, wait, begin);
    }
    enum req_class class = node->class; /* the task may be queued anew, as another */
    task_take_turn(task_of_node(node), &turn);
    nsec_t end = worker_read_clock(w);
    sched_charge(&w->sched, class, end - begin);
    hist_record(k->service, end - begin);
    *deadline += is_overdue ? end - begin : 0;
    return end - begin;
}

/* One budget's worth of deferred turns, at least one, and none that would overdraw it if it
 * took as long as the last; then the sockets are polled again.
 * Without classes each gets one turn, in the order in which they came. */
static void
serve_deferred(struct worker *w)
{
    unsigned turns = w->shared->classes.is_on ? UINT_MAX : w->sched.length;
    if (w->sched.length == 0) {
        return;
    }
    nsec_t used = inline_used(w);
    nsec_t begin = w->now;
    nsec_t turn_ns = pace_turn_ns(&w->pace, begin);
    nsec_t deadline = begin + sched_deferred_ns(&w->sched, turn_ns, used);
    sched_charge(&w->sched, CLASS_SMALL, used);
    nsec_t took;
    do {
        took = serve_next(w, &deadline);
    } while (w->now + took < deadline && --turns > 0 && w->sched.length > 0);
}

/* ---- mailbox -------------------------------------------------------------------------- */

static void
stop_accepting(struct worker *w)
{
    if (w->acceptor != NULL) {
        acceptor_close(w->acceptor);
    }
}

static void
start_draining(struct worker *w)
{
    w->is_draining = true;
    stop_accepting(w);
    udp_stop(w);
    for (struct conn *c = w->conns; c != NULL; c = c->next) {
        conn_drain(c);
    }
}

static struct mail *
mail_of_letter(struct mbox_letter *letter)
{
    return (struct mail *)(void *)((char *)letter - offsetof(struct mail, letter));
}

static struct handoff *
handoff_of_mail(struct mail *mail)
{
    return (struct handoff *)(void *)((char *)mail - offsetof(struct handoff, mail));
}

static struct conn *
conn_of_mail(struct mail *mail)
{
    return (struct conn *)(void *)((char *)mail - offsetof(struct conn, mail));
}

static void
open_mail(struct worker *w, struct mail *mail)
{
    if (mail->kind == MAIL_MOVED) {
        migrate_take(w, conn_of_mail(mail));
        return;
    }
    struct handoff *handoff = handoff_of_mail(mail);
    conn_create(w, handoff);
    free(handoff);
}

/* In this order: the wake-up, so that nothing set from here on is missed; the orders; the
 * letters, so that a connection handed over before an order falls under it. */
static void
on_mail(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct worker *w = arg;
    worker_refresh_now(w);
    mbox_clear(&w->mbox);
    unsigned orders = atomic_exchange(&w->orders, 0);
    struct mbox_letter *letter = mbox_take(&w->mbox);
    while (letter != NULL) {
        struct mail *mail = mail_of_letter(letter);
        letter = letter->next;
        open_mail(w, mail);
    }
    if (orders & ORDER_RELIMIT) {
        limited_look_again(&w->limited);
    }
    if ((orders & ORDER_ACCEPT) && !acceptor_start(w->acceptor, w->base, w)) {
        log_write(LOG_WARNING, "no memory for the listeners of a worker");
        acceptor_close(w->acceptor); /* the others get its connections */
    }
    if (orders & ORDER_GIVE) {
        migrate_obey(w);
    } else if (orders & ORDER_WATCH) {
        migrate_look(w);
    } else if (orders & ORDER_HOME) {
        migrate_home(w);
    }
    if (orders & ORDER_DRAIN) {
        start_draining(w);
    }
    w->is_done |= (orders & ORDER_STOP) != 0;
}

void
worker_order(struct worker *w, enum worker_order order)
{
    atomic_fetch_or(&w->orders, order);
    mbox_wake(&w->mbox);
}

void
worker_accept(struct worker *w, struct acceptor *acceptor)
{
    w->acceptor = acceptor;
    worker_order(w, ORDER_ACCEPT);
}

void
worker_expect(struct worker *w)
{
    atomic_fetch_add_explicit(&w->shared->loads[w->index], 1, memory_order_relaxed);
}

void
worker_forget(struct worker *w)
{
    atomic_fetch_sub_explicit(&w->shared->loads[w->index], 1, memory_order_relaxed);
}

void
worker_give(struct worker *w, struct handoff *handoff)
{
    PROBE(conn__dispatch, handoff->fd, w->index);
    mbox_push(&w->mbox, &handoff->mail.letter);
}

void
worker_relimit(struct worker *w)
{
    worker_order(w, ORDER_RELIMIT);
}

void
worker_drain(struct worker *w)
{
    worker_order(w, ORDER_DRAIN);
}

void
worker_stop(struct worker *w)
{
    worker_order(w, ORDER_STOP);
}

/* ---- the thread ----------------------------------------------------------------------- */

static void
bury_doomed(struct worker *w)
{
    while (w->doomed != NULL) {
        struct conn *c = w->doomed;
        w->doomed = c->next_doomed;
        conn_destroy(c);
    }
}

static bool
has_work(const struct worker *w)
{
    return w->sched.length > 0 || w->hold.first != NULL || limited_is_due(w);
}

static void
run_loop(struct worker *w)
{
    while (!w->is_done) {
        w->is_now_fresh = false;
        if (!has_work(w)) {
            limiter_rest(&w->limited.desk, w->now);
        }
        int flags = EVLOOP_ONCE | (has_work(w) ? EVLOOP_NONBLOCK : 0);
        must(event_base_loop(w->base, flags) == 0);
        bool is_idle = !w->is_now_fresh;
        bool is_timed = begin_timing(w);
        limited_serve(w);
        serve_deferred(w);
        hold_serve(w, is_idle);
        bury_doomed(w);
        end_timing(w, is_timed);
        w->is_done |=
            w->is_draining && w->conns == NULL && atomic_load(&w->migrate.arriving) == 0;
    }
}

static void
close_all(struct worker *w)
{
    stop_accepting(w);
    udp_stop(w);
    for (struct conn *c = w->conns; c != NULL; c = c->next) {
        if (c->closing == CLOSE_NONE) {
            conn_close(c, CLOSE_SHUTDOWN);
        }
    }
    bury_doomed(w);
}

static void
pin_self(struct worker *w)
{
    (void)!pinner_join(w->shared->pinner, w->index); /* told when all have tried */
}

/* What befalls one worker befalls them all: the first one says it. */
static void
poll_busily(struct worker *w)
{
    const struct busypoll *b = &w->shared->busy_poll;
    int error = busypoll_apply(b, w->mbox.fd);
    atomic_store(&w->busy_poll_error, error);
    if (error != 0 && w->index == 0) {
        log_write(LOG_WARNING, "memcached: warning: %s is not set: %s",
                  b->prefers ? "--irq-suspend" : "--busy-poll",
                  error == ENOTTY ? "it needs Linux 6.9 or later" : strerror(error));
    }
}

static void
release_item(void *ctx, void *owner)
{
    store_release(ctx, owner);
}

static bool
create_base(struct worker *w)
{
    struct event_config *config = event_config_new();
    if (config == NULL) {
        return false;
    }
    /* One thread uses this base; and it has no timers, so the time need not be read. */
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME |
                                      EVENT_BASE_FLAG_IGNORE_ENV);
    event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE);
    w->base = event_base_new_with_config(config);
    event_config_free(config);
    if (w->base == NULL) {
        return false;
    }
    return event_assign(&w->mbox_event, w->base, w->mbox.fd, EV_READ | EV_PERSIST,
                        on_mail, w) == 0 &&
           event_add(&w->mbox_event, NULL) == 0 && limited_start(w);
}

static void
await(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
        must(errno == EINTR);
    }
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    char name[16];
    snprintf(name, sizeof name, "mc-worker %u", w->index % 1000);
    PTHREAD_OK(pthread_setname_np(pthread_self(), name));
    /* Before anything is allocated: first touch then gives local memory. */
    pin_self(w);
    atomic_store(&w->tid, gettid());
    pool_init(&w->pool);
    w->env.log = watch_ring(w->shared->watch);
    worker_read_clock(w);
    bool has_base = create_base(w);
    if (has_base) {
        poll_busily(w);
    }
    bool is_able = has_base && idle_start(w) && udp_start(w);
    atomic_store(&w->has_failed, !is_able);
    must(sem_post(&w->shared->crew.ready) == 0);
    await(&w->shared->crew.go); /* a datagram may ask for statistics of all workers */
    if (is_able) {
        run_loop(w);
        close_all(w);
        limited_stop(w);
        event_del(&w->mbox_event);
    }
    idle_stop(w);
    udp_stop(w);
    if (w->base != NULL) {
        event_base_free(w->base);
    }
    pool_fini(&w->pool);
    must(sem_post(&w->shared->crew.ended) == 0);
    return NULL;
}

static bool
create_class_hists(struct worker *w)
{
    bool is_good = true;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct worker_class *k = &w->classes[c];
        k->wait = hist_create(WORKER_CLASS_SUB_BITS, WORKER_CLASS_MAX_NS);
        k->service = hist_create(WORKER_CLASS_SUB_BITS, WORKER_CLASS_MAX_NS);
        is_good = is_good && k->wait != NULL && k->service != NULL;
    }
    return is_good;
}

/* What worker_start has made but for the mailbox; all of it, or a part. */
static void
free_parts(struct worker *w)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        hist_destroy(&w->classes[c].wait);
        hist_destroy(&w->classes[c].service);
    }
    limited_fini(w);
    tls_thread_fini(&w->tls);
    latency_fini(&w->latency);
}

bool
worker_start(struct worker *w, unsigned index, struct net_shared *shared)
{
    *w = (struct worker){.index = index, .shared = shared, .idle = {.timer_fd = -1}};
    sched_init(&w->sched);
    pace_init(&w->pace);
    sched_set(&w->sched, &shared->class_shares, shared->class_max_wait);
    w->inline_ns =
        shared->classes.is_on ? sched_inline_ns(&w->sched, PACE_CALM_NS) : UINT64_MAX;
    slo_watch_init(&w->slo, &shared->slo, clock_now());
    w->env = (struct env){
        .store = shared->store,
        .conf = shared->serve,
        .hooks = shared->hooks,
        .ctr = &w->ctr,
        .watch = shared->watch,
        .prefixes = shared->prefixes,
        .chain = {.pool = &w->pool, .release = release_item, .ctx = shared->store}};
    w->reads_to_check = READS_PER_RX_CHECK;
    w->budget.bytes = shared->buffer_bytes / shared->worker_count;
    bool has_all = limited_init(w) && create_class_hists(w) &&
                   latency_init(&w->latency) && tls_thread_init(&w->tls, shared->tls) &&
                   mbox_init(&w->mbox);
    int rc = has_all ? pthread_create(&w->thread, NULL, worker_main, w) : errno;
    if (has_all && rc == 0) {
        return true;
    }
    if (has_all) {
        mbox_fini(&w->mbox);
    }
    free_parts(w);
    errno = rc;
    return false;
}

void
worker_join(struct worker *w)
{
    PTHREAD_OK(pthread_join(w->thread, NULL));
}

/* Connections that were handed over too late to be served. */
static void
drop_mail(struct worker *w)
{
    struct mbox_letter *letter = mbox_take(&w->mbox);
    while (letter != NULL) {
        struct mail *mail = mail_of_letter(letter);
        letter = letter->next;
        if (mail->kind == MAIL_MOVED) {
            conn_drop(conn_of_mail(mail), w);
        } else {
            close(handoff_of_mail(mail)->fd);
            free(handoff_of_mail(mail));
        }
    }
}

void
worker_fini(struct worker *w)
{
    drop_mail(w);
    mbox_fini(&w->mbox);
    free_parts(w);
}
