/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/followers.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/greet.h"
#include "loadgen/swarm/lease.h"
#include "loadgen/swarm_start.h"

#define CONNECT_TIME (5 * NSEC_PER_SEC)
#define STAMPS_FIRST 8 /* exchanges at once, before the first start */
#define LOOK_MS 100
#define WAIT_MS 100
#define COST_BYTES 32
#define LOADED_MAX (UINT64_C(1) << 56) /* records; sums of them are far from wrapping */
#define BEHIND_MAX (60 * NSEC_PER_SEC) /* it would be lost long before */
/* An agent's time may run ahead of ours by so much, and by a part of what has gone by. */
#define AHEAD_MAX NSEC_PER_SEC
#define AHEAD_PART 1000
#define AHEAD_INTERVALS 2
#define SAMPLES_BESIDES 4 /* of a server, beside those for which it is time */

/* ---- opening ------------------------------------------------------------------------ */

static enum exit_status
fail(const struct follower *k, const char *why)
{
    fprintf(stderr, "mcload: agent %s: %s\n", k->at.name, why);
    return EXIT_UNREACHABLE;
}

/* The agent's answer to the proofs. */
static enum exit_status
await_welcome(struct follower *k)
{
    struct frame f;
    char why[MESSAGE_TEXT_MAX];
    enum chan_next next = chan_await(&k->chan, clock_now() + CONNECT_TIME, &f);
    if (next != CHAN_FRAME) {
        return fail(k, next == CHAN_NONE ? "does not answer" : k->chan.error);
    }
    if (f.type == MESSAGE_WELCOME &&
        frame_number(&f, FIELD_WEIGHT, 1, MESSAGE_WEIGHT_MAX, &k->weight)) {
        return EXIT_VALID;
    }
    return fail(k, frame_text(&f, FIELD_TEXT, why, sizeof why) ? why : "refuses");
}

static enum exit_status
open_follower(struct follower *k, const struct options *o, const char *text,
              const struct seal_key *key)
{
    char err[MESSAGE_TEXT_MAX];
    if (!endpoint_resolve(&k->at, text, (unsigned)o->agent_port, err, sizeof err)) {
        fprintf(stderr, "mcload: agent: %s\n", err);
        return EXIT_UNREACHABLE;
    }
    int fd = endpoint_connect(&k->at, clock_now() + CONNECT_TIME, err, sizeof err);
    if (fd == -1) {
        return fail(k, err);
    }
    chan_init(&k->chan, fd, SEAL_LEADER);
    if (greet_leader(&k->chan, key, err, sizeof err) != GREET_GOOD) {
        return fail(k, err);
    }
    k->heard_at = clock_now();
    if (k->role != ROLE_LOAD && (k->chan.features & MESSAGE_KNOWS_ROLES) == 0) {
        return fail(k, "is a version that does nothing but load");
    }
    return await_welcome(k);
}

/* Who observes has no class, but the memory of one. */
static bool
init_follower(struct followers *l, struct follower *k, const struct options *o,
              unsigned load_classes)
{
    k->chan.fd = -1;
    k->role = o->agents[k - l->all].role;
    if (k->role == ROLE_LOAD) {
        k->classes = load_classes;
    } else if (k->role == ROLE_MEASURE) {
        k->first_class = load_classes;
        k->classes = o->classes_len - load_classes;
    } else {
        k->observer = l->observers++;
    }
    k->rates = calloc(o->classes_len, sizeof *k->rates);
    k->digests = calloc(o->classes_len, sizeof *k->digests);
    return k->rates != NULL && k->digests != NULL;
}

/* Of all servers, as swarm_words deals them out. */
static void
deal_out_servers(struct followers *l, unsigned servers)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct follower *k = &l->all[i];
        for (unsigned s = 0; k->role == ROLE_OBSERVE && s < servers; s++) {
            k->servers += s % l->observers == k->observer ? 1 : 0;
        }
    }
}

enum exit_status
followers_open(struct followers *l, const struct options *o, unsigned load_classes)
{
    struct seal_key key;
    *l = (struct followers){
        .stats_length = (nsec_t)(o->server_stats_s * (double)NSEC_PER_SEC),
    };
    PTHREAD_OK(pthread_mutex_init(&l->mutex, NULL));
    pthread_condattr_t attr;
    PTHREAD_OK(pthread_condattr_init(&attr));
    PTHREAD_OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    PTHREAD_OK(pthread_cond_init(&l->changed, &attr));
    PTHREAD_OK(pthread_condattr_destroy(&attr));
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->all = calloc(o->agents_len, sizeof *l->all);
    l->ledger = ledger_create(o->agents_len + 1, o->classes_len);
    must(l->wake_fd != -1 && l->all != NULL && l->ledger != NULL);
    enum exit_status status = swarm_read_key(&key, o->key_file);
    for (unsigned i = 0; status == EXIT_VALID && i < o->agents_len; i++) {
        l->count++;
        if (!init_follower(l, &l->all[i], o, load_classes)) {
            fputs("mcload: out of memory for agents\n", stderr);
            status = EXIT_UNREACHABLE;
        } else {
            status = open_follower(&l->all[i], o, o->agents[i].at, &key);
        }
    }
    deal_out_servers(l, o->servers_len);
    seal_forget(&key, sizeof key);
    return status;
}

enum exit_status
follower_configure(struct follower *k, const struct follower_conf *conf)
{
    struct frame_out *o = chan_begin(&k->chan, MESSAGE_CONFIG);
    frame_put_number(o, FIELD_ROLE, k->role);
    frame_put_number(o, FIELD_AGENT, conf->agent);
    frame_put_number(o, FIELD_AGENTS, conf->agents);
    frame_put_number(o, FIELD_SENDER, conf->sender);
    frame_put_number(o, FIELD_SENDERS, conf->senders);
    if (conf->wants_secret) {
        frame_put_number(o, FIELD_WANTS_SECRET, 1);
    }
    for (unsigned w = 0; w < conf->words_len; w++) {
        frame_put_text(o, FIELD_WORD, conf->words[w]);
    }
    return chan_send(&k->chan) ? EXIT_VALID : fail(k, k->chan.error);
}

/* ---- the thread --------------------------------------------------------------------- */

static unsigned
part_of(const struct followers *l, const struct follower *k)
{
    return (unsigned)(k - l->all) + 1;
}

void
follower_lose(struct followers *l, struct follower *k, const char *why)
{
    if (k->state != FOLLOWER_LOST) {
        ledger_lose(l->ledger, part_of(l, k));
        k->state = FOLLOWER_LOST;
        snprintf(k->why, sizeof k->why, "%s", why);
        PTHREAD_OK(pthread_cond_broadcast(&l->changed));
    }
}

static void
set_state(struct followers *l, struct follower *k, enum follower_state state)
{
    k->state = state;
    PTHREAD_OK(pthread_cond_broadcast(&l->changed));
}

static void
send_stamp(struct followers *l, struct follower *k)
{
    frame_put_number(chan_begin(&k->chan, MESSAGE_STAMP), FIELD_SENT, clock_now());
    if (!chan_send(&k->chan)) {
        follower_lose(l, k, k->chan.error);
    }
}

/* How much time can have gone by for an agent since a moment of ours. */
static nsec_t
longest_since(nsec_t then, nsec_t now)
{
    nsec_t gone = now > then ? now - then : 0;
    return gone + gone / AHEAD_PART + AHEAD_MAX;
}

static void
on_stamps(struct followers *l, struct follower *k, const struct frame *f, nsec_t now)
{
    struct align_stamps s = {.received = now};
    uint64_t busy, behind;
    if (!frame_number(f, FIELD_SENT, 0, UINT64_MAX, &s.sent) ||
        !frame_number(f, FIELD_HEARD, 0, UINT64_MAX, &s.heard) ||
        !frame_number(f, FIELD_ANSWERED, 0, UINT64_MAX, &s.answered) ||
        !frame_number(f, FIELD_BUSY, 0, UINT32_MAX, &busy) ||
        !frame_number(f, FIELD_BEHIND, 0, BEHIND_MAX, &behind) || s.sent > now) {
        follower_lose(l, k, "sent stamps that make no sense");
        return;
    }
    if (now - s.sent > FOLLOWER_SILENCE) {
        follower_lose(l, k, "sent stamps that are too old");
        return;
    }
    if (!align_add(&k->align, &s)) {
        follower_lose(l, k, "sent stamps that contradict each other");
        return;
    }
    k->busy = (unsigned)busy;
    k->behind_max = behind > k->behind_max ? behind : k->behind_max;
    if (k->align.count < STAMPS_FIRST) {
        send_stamp(l, k);
    }
    PTHREAD_OK(pthread_cond_broadcast(&l->changed));
}

/* What people should know of its run. */
static void
tell_notes(const struct follower *k, const struct frame *f)
{
    struct frame_field field;
    size_t cursor = 0;
    for (unsigned n = 0; n < MESSAGE_NOTES_MAX && frame_next(f, &cursor, &field);) {
        if (field.tag == FIELD_NOTE && frame_is_text(&field) &&
            field.len < MESSAGE_TEXT_MAX) {
            fprintf(stderr, "mcload: agent %s: %.*s\n", k->at.name, (int)field.len,
                    (const char *)field.p);
            n++;
        }
    }
}

/* One that said it otherwise would be waited for without an end. */
static void
on_ready(struct followers *l, struct follower *k, const struct frame *f)
{
    if (k->state == FOLLOWER_OPENING &&
        frame_number(f, FIELD_LOADED, 0, LOADED_MAX, &k->loaded)) {
        tell_notes(k, f);
        set_state(l, k, FOLLOWER_READY);
    } else {
        follower_lose(l, k, "says that it is ready in a way that makes no sense");
    }
}

static void
on_delta(struct followers *l, struct follower *k, const struct frame *f, nsec_t now)
{
    uint64_t interval, class;
    if (k->state != FOLLOWER_RUNNING || k->classes == 0 ||
        !frame_number(f, FIELD_CLASS, 0, k->classes - 1, &class) ||
        !frame_number(f, FIELD_INTERVAL, 1, UINT64_MAX, &interval)) {
        follower_lose(l, k, "sent a report that makes no sense");
    } else if (interval >
               longest_since(l->begin + l->warmup, now) / l->length + AHEAD_INTERVALS) {
        follower_lose(l, k, "sent a report of an interval to come");
    } else if (!ledger_add(l->ledger, part_of(l, k), k->first_class + (unsigned)class,
                           interval, f)) {
        follower_lose(l, k, "sent a report that does not follow from those before");
    }
}

/* What a server said of itself: no more than there is time for, and numbers that it can be. */
static void
on_sample(struct followers *l, struct follower *k, const struct frame *f, nsec_t now)
{
    uint64_t server, at;
    struct frame_field values;
    struct server_sample sample = {0};
    if (k->state != FOLLOWER_RUNNING || k->servers == 0 ||
        !frame_number(f, FIELD_SERVER, 0, k->servers - 1, &server) ||
        !frame_number(f, FIELD_AT, 0, longest_since(l->begin + l->warmup, now), &at) ||
        !frame_bytes(f, FIELD_VALUES, 8 * SERVER_STATS, 8 * SERVER_STATS, &values) ||
        k->samples >= k->servers * (l->time / l->stats_length + SAMPLES_BESIDES)) {
        follower_lose(l, k, "sent stats that make no sense");
        return;
    }
    bool is_good = true;
    for (unsigned i = 0; i < SERVER_STATS; i++) {
        uint64_t bits = frame_get_u64(values.p + 8 * i);
        memcpy(&sample.values[i], &bits, sizeof bits);
        is_good = is_good && isfinite(sample.values[i]) && sample.values[i] >= 0;
    }
    sample.server = k->observer + (unsigned)server * l->observers;
    sample.at_s = (double)at / 1e9;
    if (!is_good || !server_stats_add(l->stats, &sample)) {
        follower_lose(l, k, "sent stats that make no sense");
        return;
    }
    k->samples++;
}

/* Times of each thread, none longer than what has gone by. */
static bool
take_costs(struct follower *k, const struct frame *f, nsec_t longest)
{
    struct frame_field field;
    size_t least = k->classes > 0 ? COST_BYTES : 0;
    if (!frame_bytes(f, FIELD_COSTS, least, COST_BYTES * MESSAGE_COSTS_MAX, &field) ||
        field.len % COST_BYTES != 0) {
        return false;
    }
    k->threads = (unsigned)(field.len / COST_BYTES);
    free(k->costs);
    k->costs = calloc(k->threads + 1, sizeof *k->costs); /* who observes has none */
    must(k->costs != NULL);
    bool is_good = true;
    for (size_t at = 0; at < field.len; at += 8) {
        is_good = is_good && frame_get_u64(field.p + at) <= longest;
    }
    for (unsigned i = 0; i < k->threads; i++) {
        const uint8_t *p = field.p + (size_t)i * COST_BYTES;
        k->costs[i] = (struct cost){
            (double)frame_get_u64(p) / 1e9, (double)frame_get_u64(p + 8) / 1e9,
            (double)frame_get_u64(p + 16) / 1e9, (double)frame_get_u64(p + 24) / 1e9};
    }
    return is_good;
}

static void
on_done(struct followers *l, struct follower *k, const struct frame *f, nsec_t now)
{
    struct frame_field digests;
    nsec_t longest = longest_since(l->begin, now);
    uint64_t elapsed, is_stopped, is_local;
    if (k->state != FOLLOWER_RUNNING ||
        !frame_bytes(f, FIELD_DIGESTS, 8 * k->classes, 8 * k->classes, &digests) ||
        !frame_number(f, FIELD_ELAPSED, 0, UINT64_MAX, &elapsed) ||
        !frame_number(f, FIELD_START_ERROR, 0, longest, &k->start_error) ||
        !frame_number(f, FIELD_IS_STOPPED, 0, 1, &is_stopped) ||
        !frame_number(f, FIELD_IS_LOCAL, 0, 1, &is_local) || !take_costs(k, f, longest)) {
        follower_lose(l, k, "sent a result that makes no sense");
        return;
    }
    if (elapsed > longest) {
        follower_lose(l, k, "sent a result of more time than there was");
        return;
    }
    for (unsigned i = 0; i < k->classes; i++) {
        k->digests[i] = frame_get_u64(digests.p + 8 * i);
    }
    k->elapsed_s = (double)elapsed / 1e9;
    k->was_stopped = is_stopped == 1;
    k->is_local = is_local == 1;
    tell_notes(k, f);
    ledger_done(l->ledger, part_of(l, k));
    set_state(l, k, FOLLOWER_DONE);
}

static void
on_frame(struct followers *l, struct follower *k, const struct frame *f, nsec_t now)
{
    char why[MESSAGE_TEXT_MAX];
    k->heard_at = now;
    switch ((enum message)f->type) {
    case MESSAGE_STAMPS:
        on_stamps(l, k, f, now);
        break;
    case MESSAGE_READY:
        on_ready(l, k, f);
        break;
    case MESSAGE_DELTA:
        on_delta(l, k, f, now);
        break;
    case MESSAGE_SAMPLE:
        on_sample(l, k, f, now);
        break;
    case MESSAGE_DONE:
        on_done(l, k, f, now);
        break;
    case MESSAGE_REFUSED:
        k->has_refused = true;
        /* fall through */
    case MESSAGE_FAILED:
        follower_lose(l, k, frame_text(f, FIELD_TEXT, why, sizeof why) ? why : "refuses");
        break;
    default:
        follower_lose(l, k, "sent something else than was asked for");
        break;
    }
}

static void
serve(struct followers *l, struct follower *k, short events)
{
    struct frame f;
    enum chan_next next;
    if (events != 0) {
        /* Failures show below, behind what came before them. */
        (void)(chan_flush(&k->chan) && chan_fill(&k->chan));
    }
    nsec_t now = clock_now(); /* not before what has just been read was sent */
    while (k->state != FOLLOWER_LOST && (next = chan_next(&k->chan, &f)) != CHAN_NONE) {
        if (next == CHAN_LOST) {
            follower_lose(l, k, k->chan.error);
        } else {
            on_frame(l, k, &f, now);
        }
    }
    if (k->state != FOLLOWER_LOST && now > k->heard_at + FOLLOWER_SILENCE) {
        follower_lose(l, k, "has said nothing for 5 s");
    }
    if (k->state == FOLLOWER_LOST && k->chan.fd != -1) {
        chan_fini(&k->chan); /* an agent without a leader stops */
    }
}

static void
send_start(struct followers *l, struct follower *k)
{
    struct align_estimate e;
    if (!align_estimate(&k->align, &e)) {
        follower_lose(l, k, "has not told its time");
        return;
    }
    k->begin = align_convert(&e, l->begin);
    k->start_error = k->behind_max = 0;
    k->elapsed_s = 0;
    k->threads = 0;
    k->samples = 0;
    struct frame_out *o = chan_begin(&k->chan, MESSAGE_START);
    frame_put_number(o, FIELD_BEGIN, k->begin);
    frame_put_number(o, FIELD_TIME, l->time);
    frame_put_number(o, FIELD_WARMUP, l->warmup);
    frame_put_number(o, FIELD_IS_FRESH, l->is_fresh ? 1 : 0);
    frame_put_number(o, FIELD_LENGTH, l->length);
    size_t place = frame_open(o, FIELD_RATES);
    for (unsigned i = 0; i < k->classes; i++) {
        uint8_t bytes[8];
        frame_put_u64(bytes, k->rates[i]);
        frame_add(o, bytes, sizeof bytes);
    }
    frame_close(o, place);
    uint8_t slice[16];
    frame_put_u64(slice, k->slice.first);
    frame_put_u64(slice + 8, k->slice.end);
    frame_put_bytes(o, FIELD_SLICE, slice, sizeof slice);
    if (!chan_send(&k->chan)) {
        follower_lose(l, k, k->chan.error);
        return;
    }
    set_state(l, k, FOLLOWER_RUNNING);
}

static void
send_stop(struct followers *l, struct follower *k)
{
    chan_begin(&k->chan, MESSAGE_STOP);
    if (!chan_send(&k->chan)) {
        follower_lose(l, k, k->chan.error);
    }
}

/* What the main thread asked for, and leases. */
static void
do_orders(struct followers *l)
{
    nsec_t now = clock_now();
    bool renews = now >= l->stamped_at + LEASE_RENEW;
    l->stamped_at = renews ? now : l->stamped_at;
    for (unsigned i = 0; i < l->count; i++) {
        struct follower *k = &l->all[i];
        if (k->state != FOLLOWER_LOST && renews) {
            send_stamp(l, k);
        }
        if (l->wants_start && (k->state == FOLLOWER_READY || k->state == FOLLOWER_DONE)) {
            send_start(l, k);
        }
        if (l->wants_stop && k->state == FOLLOWER_RUNNING) {
            send_stop(l, k);
        }
    }
    l->wants_start = l->wants_stop = false;
}

static void *
followers_main(void *arg)
{
    struct followers *l = arg;
    struct pollfd fds[MESSAGE_AGENTS_MAX + 1];
    bool is_over = false;
    while (!is_over) {
        uint64_t woken;
        PTHREAD_OK(pthread_mutex_lock(&l->mutex));
        do_orders(l);
        for (unsigned i = 0; i < l->count; i++) {
            struct chan *c = &l->all[i].chan;
            fds[i] = (struct pollfd){.fd = c->fd, .events = chan_events(c)};
        }
        PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
        fds[l->count] = (struct pollfd){.fd = l->wake_fd, .events = POLLIN};
        int rc = poll(fds, l->count + 1, LOOK_MS);
        must(rc >= 0 || errno == EINTR);
        while (read(l->wake_fd, &woken, sizeof woken) > 0) {
        }
        PTHREAD_OK(pthread_mutex_lock(&l->mutex));
        for (unsigned i = 0; i < l->count; i++) {
            serve(l, &l->all[i], rc > 0 && fds[i].fd != -1 ? fds[i].revents : 0);
        }
        is_over = l->wants_end;
        PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
    }
    return NULL;
}

/* ---- for the main thread ------------------------------------------------------------ */

enum exit_status
followers_start(struct followers *l)
{
    if (pthread_create(&l->thread, NULL, followers_main, l) != 0) {
        fputs("mcload: cannot start a thread\n", stderr);
        return EXIT_UNREACHABLE;
    }
    l->is_started = true;
    return EXIT_VALID;
}

void
followers_wake(struct followers *l)
{
    uint64_t one = 1;
    ssize_t n = write(l->wake_fd, &one, sizeof one);
    must(n == sizeof one);
}

void
followers_wait(struct followers *l)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int rc = pthread_cond_timedwait(&l->changed, &l->mutex, &until);
    must(rc == 0 || rc == ETIMEDOUT);
}

void
followers_verify(struct followers *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct follower *k = &l->all[i];
        for (unsigned c = 0; k->state == FOLLOWER_DONE && c < k->classes; c++) {
            struct tally *sum = ledger_sum(l->ledger, i + 1, k->first_class + c);
            if (k->digests[c] != delta_digest(sum)) {
                k->is_wrong = true;
                follower_lose(l, k, "sent intervals that do not add up to its totals");
            }
        }
    }
}

unsigned
followers_in(const struct followers *l, enum follower_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->count; i++) {
        n += l->all[i].state == state ? 1 : 0;
    }
    return n;
}

bool
followers_are_ready(const struct followers *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        /* The word that it is ready may overtake its time. */
        if (l->all[i].state != FOLLOWER_READY || l->all[i].align.count < STAMPS_FIRST) {
            return false;
        }
    }
    return true;
}

void
followers_close(struct followers *l)
{
    if (l->is_started) {
        PTHREAD_OK(pthread_mutex_lock(&l->mutex));
        l->wants_end = true;
        PTHREAD_OK(pthread_mutex_unlock(&l->mutex));
        followers_wake(l);
        PTHREAD_OK(pthread_join(l->thread, NULL));
    }
    for (unsigned i = 0; i < l->count; i++) {
        struct follower *k = &l->all[i];
        chan_fini(&k->chan);
        free(k->rates);
        free(k->digests);
        free(k->costs);
    }
    free(l->all);
    ledger_destroy(&l->ledger);
    server_stats_destroy(&l->stats);
    close(l->wake_fd);
    PTHREAD_OK(pthread_cond_destroy(&l->changed));
    PTHREAD_OK(pthread_mutex_destroy(&l->mutex));
}
