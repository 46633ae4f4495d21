/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/members.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "loadgen/swarm/message.h"

#define LOOK_MS 100
#define WAIT_MS 100

/* ---- opening ------------------------------------------------------------------------ */

/* Of all servers, as scope.c deals them out. */
static void
deal_out_servers(struct members *l, unsigned servers)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct member *k = &l->all[i];
        for (unsigned s = 0; k->role == ROLE_OBSERVE && s < servers; s++) {
            k->servers += s % l->run.observers == k->observer ? 1 : 0;
        }
    }
}

static void
end_greeting(int number)
{
    static const char line[] = "mcload: interrupted while agents were greeted\n";
    (void)number;
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(EXIT_UNREACHABLE);
}

/* Swaps what is done at each of the signals for what is in `actions`. */
static void
swap_actions(const sigset_t *signals, struct sigaction actions[NSIG])
{
    for (int i = 1; i < NSIG; i++) {
        struct sigaction before;
        if (sigismember(signals, i) == 1 && sigaction(i, &actions[i], &before) == 0) {
            actions[i] = before;
        }
    }
}

/* A name, a connection and each word of an agent may be waited for, where nobody looks for signals:
 * they end the process at once, there is nothing to tell yet. */
static enum exit_status
greet(struct members *l, const struct options *o, const struct seal_key *key,
      const sigset_t *signals)
{
    struct sigaction actions[NSIG] = {{.sa_flags = 0}};
    enum exit_status status = EXIT_VALID;
    for (int i = 1; i < NSIG; i++) {
        actions[i].sa_handler = end_greeting;
    }
    swap_actions(signals, actions);
    PTHREAD_OK(pthread_sigmask(SIG_UNBLOCK, signals, NULL));
    for (unsigned i = 1; status == EXIT_VALID && i < l->count; i++) {
        status = member_open(&l->all[i], o, o->agents[i - 1].at, key);
    }
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, signals, NULL));
    swap_actions(signals, actions);
    return status;
}

enum exit_status
members_open(struct members *l, const struct options *o, unsigned load_classes,
             const sigset_t *signals)
{
    struct seal_key key;
    char err[MESSAGE_TEXT_MAX];
    *l = (struct members){
        .options = o,
        .run.stats_length = clock_seconds(o->server_stats_s),
    };
    PTHREAD_OK(pthread_mutex_init(&l->mutex, NULL));
    clock_cond_init(&l->changed);
    must(mbox_init(&l->wake));
    l->all = alloc_zeroed(o->agents_len + 1, sizeof *l->all);
    l->run.ledger = ledger_create(o->agents_len + 1, o->classes_len);
    enum exit_status status = seal_read_key(&key, o->key_file, err, sizeof err)
                                  ? EXIT_VALID
                                  : options_fail(stderr, EXIT_USAGE, "%s", err);
    for (unsigned i = 0; i <= o->agents_len; i++) {
        l->count++;
        member_init(&l->all[i], &l->run, i, o, load_classes);
    }
    status = status == EXIT_VALID ? greet(l, o, &key, signals) : status;
    deal_out_servers(l, o->servers_len);
    seal_forget(&key, sizeof key);
    return status;
}

/* ---- the thread --------------------------------------------------------------------- */

/* What the main thread asked for, and leases. */
static void
do_orders(struct members *l)
{
    nsec_t now = clock_now();
    bool renews = now >= l->stamped_at + LEASE_RENEW;
    l->stamped_at = renews ? now : l->stamped_at;
    for (unsigned i = 1; i < l->count; i++) {
        struct member *k = &l->all[i];
        /* One question is enough before the first answer: others would wait as long. */
        if (k->state != MEMBER_LOST && renews && (k->has_answered || !k->is_asked)) {
            member_ask_time(k);
        }
        bool is_free = k->state == MEMBER_READY || k->state == MEMBER_DONE;
        if (l->wants_renew && is_free) {
            member_renew(k);
        }
        if (l->wants_start && is_free) {
            member_start(k);
        }
        if (l->wants_stop && k->state == MEMBER_RUNNING) {
            member_stop(k);
        }
    }
    l->wants_renew = l->wants_start = l->wants_stop = false;
}

static void *
members_main(void *arg)
{
    struct members *l = arg;
    struct pollfd fds[MESSAGE_AGENTS_MAX + 1];
    bool is_over = false;
    while (!is_over) {
        PTHREAD_OK(pthread_mutex_lock(&l->mutex));
        do_orders(l);
        fds[0] = (struct pollfd){.fd = l->wake.fd, .events = POLLIN};
        for (unsigned i = 1; i < l->count; i++) {
            struct chan *c = &l->all[i].chan;
            fds[i] = (struct pollfd){.fd = c->fd, .events = chan_events(c)};
        }
        PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
        int rc = poll(fds, l->count, LOOK_MS);
        must(rc >= 0 || errno == EINTR);
        mbox_clear(&l->wake);
        PTHREAD_OK(pthread_mutex_lock(&l->mutex));
        for (unsigned i = 1; i < l->count; i++) {
            member_serve(&l->all[i], rc > 0 && fds[i].fd != -1 ? fds[i].revents : 0);
        }
        /* Something of what is waited for may have happened. */
        PTHREAD_OK(pthread_cond_broadcast(&l->changed));
        is_over = l->wants_end;
        PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
    }
    return NULL;
}

/* ---- for the main thread ------------------------------------------------------------ */

enum exit_status
members_start(struct members *l)
{
    for (unsigned i = 1; i < l->count; i++) {
        /* Nobody has listened while others were opened. */
        l->all[i].heard_at = clock_now();
    }
    l->is_started = pthread_create(&l->thread, NULL, members_main, l) == 0;
    return l->is_started
               ? EXIT_VALID
               : options_fail(stderr, EXIT_UNREACHABLE, "cannot start a thread");
}

void
members_wait(struct members *l)
{
    (void)clock_cond_wait(&l->changed, &l->mutex, clock_now() + WAIT_MS * NSEC_PER_MSEC);
}

unsigned
members_in(const struct members *l, enum member_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->count; i++) {
        n += l->all[i].state == state ? 1 : 0;
    }
    return n;
}

bool
members_are_ready(const struct members *l)
{
    bool are_ready = true;
    for (unsigned i = 1; i < l->count; i++) {
        const struct member *k = &l->all[i];
        /* The word that it is ready may overtake its time. */
        are_ready = are_ready && k->state == MEMBER_READY &&
                    k->align.count >= MEMBER_STAMPS_FIRST;
    }
    return are_ready;
}

double
members_longest(const struct members *l)
{
    double longest = 0;
    for (unsigned i = 0; i < l->count; i++) {
        longest = l->all[i].is_out ? longest : fmax(longest, l->all[i].elapsed_s);
    }
    return longest;
}

nsec_t
members_ended_at(const struct members *l)
{
    return l->run.begin + l->run.warmup + clock_seconds(members_longest(l));
}

const struct member *
members_refuser(const struct members *l)
{
    const struct member *found = NULL;
    for (unsigned i = l->count; i-- > 0;) {
        found = l->all[i].has_refused ? &l->all[i] : found;
    }
    return found;
}

void
members_tell_losses(struct members *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct member *k = &l->all[i];
        if (k->state == MEMBER_LOST && !k->is_reported) {
            fprintf(stderr, "mcload: agent %s is lost: %s\n", k->at.name, k->why);
            k->is_reported = true;
        }
    }
}

void
members_told(struct members *l)
{
    PTHREAD_OK(pthread_mutex_lock(&l->mutex));
    for (unsigned i = 0; i < l->count; i++) {
        l->all[i].is_told = l->all[i].state == MEMBER_LOST;
    }
    PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
}

void
members_close(struct members *l)
{
    if (l->is_started) {
        PTHREAD_OK(pthread_mutex_lock(&l->mutex));
        l->wants_end = true;
        PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
        mbox_wake(&l->wake);
        PTHREAD_OK(pthread_join(l->thread, NULL));
    }
    for (unsigned i = 0; i < l->count; i++) {
        member_fini(&l->all[i]);
    }
    free(l->all);
    ledger_destroy(&l->run.ledger);
    server_stats_destroy(&l->run.stats);
    mbox_fini(&l->wake);
    PTHREAD_OK(pthread_cond_destroy(&l->changed));
    PTHREAD_OK(pthread_mutex_destroy(&l->mutex));
}
