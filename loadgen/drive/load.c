/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/load.h"

#include "base/alloc.h"
#include "loadgen/wire/shard.h"

#define LOAD_WAIT_MS 100
#define DRY_WAIT_MS 1 /* until an empty book is looked at again */
/* Datagrams without room are lost. A server's socket holds some 200 KB of them by
 * default, and counts more for each than it is long. */
#define DGRAMS_BYTES 65536 /* on the way to a server, each thread */
#define DGRAM_COST 1024
#define DRAIN_MAX 4096 /* taken from one connection before the next one's turn */
/* Without an answer for this long it is sent again. */
#define RESEND (200 * NSEC_PER_MSEC)
#define RESEND_TRIES 4 /* at least this many times before the time is up */
#define RESEND_LOOKS 4 /* while the first is waited for */

struct load {
    struct lset *set;
    const struct workload *w;
    /* of a trace: what was taken from the book so far, counted */
    struct load_slice slice;
    uint64_t *next;  /* of the slice, to send next: each server */
    uint32_t *taken; /* pages of a trace, as many as are still held, by count */
    bool is_dry;     /* a connection has room for what the book does not have yet */
    struct counters *counters;
    struct cap *cap; /* NULL: none */
    uint64_t moved_requests, moved_bytes;
    unsigned *on_way;              /* datagrams, to each server */
    struct lconn_timeout patience; /* with datagrams */
    nsec_t look_at;                /* when they are looked for that got lost */
    int wait_ms;
    bool has_resent;
    nsec_t held;   /* time in which nothing was done: nothing gets late in it */
    uint64_t left; /* answers to come */
    nsec_t last_answer;
    char *err;
    size_t err_len;
};

struct load_slice
load_slice_of(uint64_t records, unsigned index, unsigned threads)
{
    must(index < threads);
    uint64_t share = records / threads;
    uint64_t extra = records % threads; /* one more for each of the first threads */
    uint64_t first = index * share + (index < extra ? index : extra);
    return (struct load_slice){first, first + share + (index < extra ? 1 : 0)};
}

/* By a clock that stands still while nothing is done. */
static nsec_t
load_now(const struct load *l)
{
    return lset_now(l->set) - l->held;
}

static const char *
lost(struct load *l, const struct lconn *c)
{
    bool is_udp = c->target->transport == TRANSPORT_UDP;
    if (c->read_at != 0) { /* it is the right protocol */
        snprintf(
            l->err, l->err_len,
            "loading: %s %s while records were stored (%ju so far, by a thread): see its "
            "log",
            c->target->name, is_udp ? "listens no more" : "closed the connection",
            (uintmax_t)ctr_get(&l->counters->loaded));
        return l->err;
    }
    snprintf(l->err, l->err_len, "loading: %s %s: does it speak %s over %s?",
             c->target->name, is_udp ? "does not listen" : "closed the connection",
             l->set->conf.codec->name, transport_names[c->target->transport]);
    return l->err;
}

/* One more of what a trace asks for, held by each server. False when there is none yet. */
static bool
take_page(struct load *l)
{
    struct trace_buffer *trace_buffer = l->w->trace_buffer;
    uint32_t page =
        trace_buffer != NULL ? trace_buffer_take(trace_buffer) : TRACE_BUFFER_NONE;
    if (page == TRACE_BUFFER_NONE) {
        l->is_dry =
            l->is_dry || (trace_buffer != NULL && !trace_buffer_is_done(trace_buffer));
        return false;
    }
    for (unsigned i = 1; i < l->set->conf.targets_len; i++) {
        trace_buffer_get(trace_buffer, page);
    }
    l->taken[l->slice.end++ & trace_buffer->mask] = page;
    return true;
}

/* What the server is to store next. */
static uint64_t
next_key(const struct load *l, unsigned server)
{
    uint64_t next = l->next[server];
    return l->w->trace_buffer != NULL ? l->taken[next & l->w->trace_buffer->mask] : next;
}

/* The server has it, or does not want it. */
static void
pass(struct load *l, unsigned server)
{
    if (l->w->trace_buffer != NULL) {
        trace_buffer_release(l->w->trace_buffer, next_key(l, server));
    }
    l->next[server]++;
}

static bool
is_its(const struct load *l, unsigned server)
{
    char key[WORKLOAD_KEY_MAX];
    const struct shard *shard = l->set->conf.shard;
    return shard == NULL ||
           shard_of(shard, key, workload_put_key(l->w, next_key(l, server), key)) ==
               server;
}

/* Keys of other servers are theirs to store; false when no more is left for this one. */
static bool
find_next(struct load *l, unsigned server)
{
    while (l->next[server] < l->slice.end || take_page(l)) {
        if (is_its(l, server)) {
            return true;
        }
        pass(l, server);
    }
    return false;
}

static void
push(struct load *l, struct lconn *c, uint64_t key)
{
    lconn_push(c, l->w,
               &(struct request){.op = {.verb = CODEC_SET, .keys = 1}, .keys = &key});
    l->moved_requests++;
}

static const char *
flush(struct load *l, struct lconn *c)
{
    size_t sent;
    nsec_t now = load_now(l);
    bool is_up = lset_flush(l->set, c, now, &sent);
    lconn_stamp(c, now);
    l->moved_bytes += sent;
    return is_up ? NULL : lost(l, c);
}

static bool
has_room(const struct load *l, const struct lconn *c)
{
    size_t most = c->is_framed ? DGRAMS_BYTES / (c->request_max + DGRAM_COST) : SIZE_MAX;
    return lconn_has_room(c, LOAD_DEPTH) && l->on_way[c->server] < (most > 0 ? most : 1);
}

static const char *
send_more(struct load *l, struct lconn *c)
{
    while (has_room(l, c) && find_next(l, c->server)) {
        push(l, c, next_key(l, c->server));
        pass(l, c->server);
        l->on_way[c->server] += c->is_framed ? 1 : 0;
        l->left += l->w->trace_buffer != NULL ? 1 : 0;
    }
    return flush(l, c);
}

/* Late answers to what was sent twice are nothing to the run: they are counted apart and
 * dropped. */
static void
leave_strays(struct load *l)
{
    for (unsigned i = 0; l->has_resent && i < l->set->count; i++) {
        if (l->set->conns[i].is_framed) {
            lset_down(l->set, &l->set->conns[i]);
        }
    }
    l->set->late = l->set->duplicate = 0;
}

static const char *
refused(struct load *l, const struct lconn *c, const struct reply_done *done,
        const char *reply, size_t reply_len)
{
    bool is_reply = done->outcome != REPLY_BROKEN && done->outcome != REPLY_GARBLED;
    const char *spoken = is_reply ? NULL : codec_guess(reply, reply_len);
    if (spoken != NULL && strstr(spoken, l->set->conf.codec->name) == NULL) {
        snprintf(l->err, l->err_len, "loading: %s speaks another protocol: try %s",
                 c->target->name, spoken);
        return l->err;
    }
    char line[REPLY_QUOTE];
    reply_quote(line, sizeof line, reply, reply_len,
                is_reply ? client_kind_name(done->kind) : "something that is no reply");
    snprintf(l->err, l->err_len, "loading: %s answered %s instead of STORED",
             c->target->name, line);
    return l->err;
}

static const char *
take_answers(struct load *l, struct lconn *c, const struct lset_bytes *in)
{
    struct reply_done done;
    l->moved_bytes += in->len;
    c->read_at = lset_now(l->set);
    for (size_t at = 0;; at += done.taken) {
        lconn_parse(c, l->w, in->p + at, in->len - at, &done);
        if (done.outcome == REPLY_MORE) {
            return NULL;
        }
        if (done.outcome != REPLY_GOOD) {
            return refused(l, c, &done, in->p + at, in->len - at);
        }
        ctr_add(&l->counters->loaded, 1);
        l->on_way[c->server] -= c->is_framed ? 1 : 0;
        l->left--;
        l->last_answer = load_now(l);
    }
}

static const char *
receive(struct load *l, struct lconn *c, enum lset_input *input)
{
    struct lset_bytes in;
    *input = lset_receive(l->set, c, &in);
    if (*input == LSET_DATA) {
        return take_answers(l, c, &in);
    }
    return *input == LSET_LOST ? lost(l, c) : NULL;
}

/* Nothing is lost that has come and was not looked at yet. */
static const char *
drain(struct load *l, struct lconn *c)
{
    const char *failed = NULL;
    enum lset_input input = LSET_DATA;
    for (unsigned i = 0; failed == NULL && input != LSET_NOTHING && i < DRAIN_MAX; i++) {
        failed = receive(l, c, &input);
    }
    return failed;
}

/* To store the same once more changes nothing. */
static const char *
send_again(struct load *l)
{
    const char *failed = NULL;
    nsec_t now = load_now(l);
    if (now < l->look_at) {
        return NULL;
    }
    l->look_at = now + l->patience.first / RESEND_LOOKS;
    for (unsigned i = 0; failed == NULL && i < l->set->count; i++) {
        struct lconn *c = &l->set->conns[i];
        if (!c->is_framed) {
            continue;
        }
        failed = drain(l, c);
        while (failed == NULL && c->out_len == 0 &&
               lconn_retransmit(c, l->w, &l->patience, now)) {
            l->has_resent = true;
            l->moved_requests++;
            failed = flush(l, c);
        }
        failed = failed != NULL ? failed : send_more(l, c);
    }
    return failed;
}

/* While it does nothing, nothing is late. */
static void
hold(struct load *l, nsec_t end)
{
    if (l->cap != NULL) {
        nsec_t before = lset_now(l->set);
        l->held +=
            cap_throttle(l->cap, l->moved_requests, l->moved_bytes, end, NULL) - before;
        l->look_at = 0; /* what has come meanwhile is taken */
        l->moved_requests = l->moved_bytes = 0;
    }
}

static const char *
send_all_more(struct load *l)
{
    const char *failed = NULL;
    l->is_dry = false;
    for (unsigned i = 0; failed == NULL && i < l->set->count; i++) {
        failed = send_more(l, &l->set->conns[i]);
    }
    return failed;
}

static const char *
wait_and_serve(struct load *l)
{
    const char *failed = NULL;
    unsigned n = lset_wait(l->set, l->is_dry ? DRY_WAIT_MS : l->wait_ms);
    for (unsigned i = 0; failed == NULL && i < n; i++) {
        unsigned can;
        struct lconn *c = lset_event(l->set, i, &can);
        if (c != NULL && (can & LSET_CAN_RECEIVE) != 0) {
            enum lset_input input;
            failed = receive(l, c, &input);
        }
        if (c != NULL && failed == NULL) {
            failed = send_more(l, c);
        }
    }
    return failed == NULL && l->is_dry ? send_all_more(l) : failed;
}

/* Nothing is on the way, and nothing will be. */
static bool
is_complete(const struct load *l)
{
    bool is = l->left == 0;
    if (l->w->trace_buffer != NULL) {
        is = is && trace_buffer_is_done(l->w->trace_buffer);
        for (unsigned i = 0; is && i < l->set->conf.targets_len; i++) {
            is = l->next[i] == l->slice.end;
        }
    }
    return is;
}

/* On how many connections that is, when others were answered; else from which server. */
static const char *
timed_out(struct load *l)
{
    unsigned silent = 0;
    for (unsigned i = 0; i < l->set->count; i++) {
        const struct lconn *c = &l->set->conns[i];
        silent += c->count > 0 && c->read_at == 0 ? 1 : 0;
    }
    int n = snprintf(l->err, l->err_len, "loading: no answer in time, %ju records left",
                     (uintmax_t)l->left);
    if (silent > 0 && silent < l->set->count) {
        snprintf(l->err + n, l->err_len - (size_t)n,
                 ": none at all on %u of %u connections", silent, l->set->count);
    } else if (silent > 0) {
        char place[TARGET_PLACE_MAX];
        snprintf(l->err + n, l->err_len - (size_t)n, ": none at all from %s",
                 target_place(l->set->conns[0].target, place));
    }
    return l->err;
}

static const char *
load_loop(struct load *l)
{
    const char *failed = send_all_more(l);
    while (failed == NULL && !is_complete(l)) {
        hold(l, UINT64_MAX);
        failed = wait_and_serve(l);
        failed = failed != NULL ? failed : send_again(l);
        if (l->left == 0) {
            l->last_answer = load_now(l); /* the trace is waited for, no server */
        }
        if (failed == NULL && l->set->conf.stop != NULL &&
            atomic_load_explicit(l->set->conf.stop, memory_order_relaxed)) {
            failed = "interrupted";
        }
        if (failed == NULL && load_now(l) > l->last_answer + l->set->conf.timeout) {
            failed = timed_out(l);
        }
    }
    hold(l, 0); /* books the rest */
    return failed;
}

/* Each is sent several times before the time is up, however short that is. */
static void
set_timeout(struct load *l, nsec_t timeout)
{
    nsec_t most = timeout / RESEND_TRIES;
    l->patience = (struct lconn_timeout){RESEND < most ? RESEND : most, most};
    nsec_t look_ms = l->patience.first / RESEND_LOOKS / NSEC_PER_MSEC;
    l->wait_ms = look_ms < LOAD_WAIT_MS ? (int)look_ms + 1 : LOAD_WAIT_MS;
}

static void
make_places(struct load *l)
{
    const struct trace_buffer *trace_buffer = l->w->trace_buffer;
    unsigned servers = l->set->conf.targets_len;
    l->next = alloc_zeroed(servers, sizeof *l->next);
    l->on_way = alloc_zeroed(servers, sizeof *l->on_way);
    l->taken = trace_buffer != NULL
                   ? alloc_zeroed((size_t)trace_buffer->mask + 1, sizeof *l->taken)
                   : NULL;
    for (unsigned i = 0; i < servers; i++) {
        l->next[i] = l->slice.first;
    }
}

const char *
load_run(struct lset *s, struct load_slice slice, struct cap *cap,
         struct counters *counters, char *err, size_t err_len)
{
    const struct workload *w = s->conf.workload;
    slice = w->trace_buffer != NULL ? (struct load_slice){0, 0} : slice;
    struct load l = {
        .set = s,
        .w = w,
        .slice = slice,
        .counters = counters,
        .cap = cap,
        .left =
            (slice.end - slice.first) * (s->conf.shard != NULL ? 1 : s->conf.targets_len),
        .last_answer = lset_now(s),
        .err = err,
        .err_len = err_len,
    };
    must(s->conf.capacity >= LOAD_DEPTH);
    set_timeout(&l, s->conf.timeout);
    make_places(&l);
    const char *failed = load_loop(&l);
    leave_strays(&l);
    free(l.next);
    free(l.on_way);
    free(l.taken);
    return failed;
}
