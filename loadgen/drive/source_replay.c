/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The part of a trace that one thread sends, in place of requests that are drawn: taken from
 * its book when they are due, or as replies come, each sent on the connection that its key (or
 * its client) has, behind those before it. One that cannot be sent yet waits for its connection
 * and holds up none of other connections; of several servers, one that is gone is not waited
 * for.
 */
#include "loadgen/drive/source.h"

#include "base/alloc.h"
#include "loadgen/wire/shard.h"
#include "loadgen/work/trace_buffer.h"

/* How often an empty book is looked at. */
#define DRY_LOOK (200 * NSEC_PER_USEC)
/* So many requests are taken before the sockets are looked at again. */
#define TAKE_MAX 1024
/* It is not known yet when that is. */
#define UNTIL_WINDOW_ENDS 0

/* Pages that wait for a connection, in order; TRACE_BUFFER_NONE: none. */
struct waiting {
    uint32_t first, last;
};

struct replay {
    struct source base;
    struct trace_buffer *trace_buffer;
    struct waiting *waiting; /* one each connection */
    uint32_t waiting_count;  /* all of them */
    /* each server: others are not to wait for it, its requests are given up */
    bool *is_gone;
    nsec_t dry_at; /* when there was last nothing to take, 0: never */
    bool is_dry;
    bool has_more;     /* connections may have room again: not looked at yet */
    bool could_take;   /* at the last look: all that was due and had room */
    nsec_t late_until; /* requests due by then should have been taken when they were */
};

/* ---- connections ----------------------------------------------------------------------- */

/* Always the same for the same route; when servers share the keys, one of the key's server. */
static struct lconn *
conn_of(const struct drive *d, const struct trace_buffer_slot *page)
{
    const struct lset_conf *conf = &d->set->conf;
    unsigned place = page->route / d->conf.threads;
    if (conf->shard == NULL) {
        return &d->set->conns[place % d->set->count];
    }
    unsigned server = shard_of(conf->shard, page->key, page->key_len);
    struct lconn *c =
        &d->set->conns[place % conf->per_target * conf->targets_len + server];
    must(c->server == server);
    return c;
}

static struct waiting *
waiting_for(const struct replay *r, const struct lconn *c)
{
    return &r->waiting[c->index];
}

static nsec_t
intended_of(const struct replay *r, uint32_t page)
{
    const struct drive *d = r->base.d;
    return drive_is_open(d)
               ? d->window.begin + trace_buffer_slot(r->trace_buffer, page)->at_ns
               : 0;
}

static void
send_page(struct replay *r, struct lconn *c, uint32_t page)
{
    uint64_t key = page;
    const struct trace_buffer_slot *p = trace_buffer_slot(r->trace_buffer, page);
    struct request request = {
        .op = {.intended = intended_of(r, page),
               .verb = request_of_trace[p->verb].verb,
               .then = request_of_trace[p->verb].then,
               .keys = 1},
        .keys = &key,
    };
    sender_count_push(r->base.sender, c);
    sender_make_dirty(r->base.sender, c);
    lconn_push(c, r->base.d->w, &request);
    trace_buffer_release(r->trace_buffer, page); /* the connection holds it now */
}

static void
enqueue(struct replay *r, const struct lconn *c, uint32_t page)
{
    struct waiting *q = waiting_for(r, c);
    trace_buffer_slot(r->trace_buffer, page)->next = TRACE_BUFFER_NONE;
    if (q->first == TRACE_BUFFER_NONE) {
        q->first = page;
    } else {
        trace_buffer_slot(r->trace_buffer, q->last)->next = page;
    }
    q->last = page;
    r->waiting_count++;
}

static uint32_t
dequeue(struct replay *r, struct waiting *q)
{
    uint32_t page = q->first;
    q->first = trace_buffer_slot(r->trace_buffer, page)->next;
    r->waiting_count--;
    return page;
}

static void
push(struct source *s, struct lconn *c, nsec_t now)
{
    struct replay *r = (struct replay *)s;
    struct waiting *q = waiting_for(r, c);
    while (q->first != TRACE_BUFFER_NONE && sender_has_room(s->sender, c) &&
           drive_sends(s->d, now)) {
        send_page(r, c, dequeue(r, q));
    }
}

static void
room(struct source *s, struct lconn *c)
{
    struct replay *r = (struct replay *)s;
    r->has_more = r->has_more || (waiting_for(r, c)->first != TRACE_BUFFER_NONE &&
                                  sender_has_room(s->sender, c));
}

/* ---- what is not sent ------------------------------------------------------------------ */

static void
give_up(struct replay *r, uint32_t page, nsec_t until)
{
    struct drive *d = r->base.d;
    if (until == UNTIL_WINDOW_ENDS) {
        drive_pass_over(d, &d->counters->unsent, intended_of(r, page));
    } else {
        drive_give_up(d, &d->counters->unsent, intended_of(r, page), until);
    }
    trace_buffer_release(r->trace_buffer, page);
}

static void
give_up_waiting(struct replay *r, const struct lconn *c, nsec_t until)
{
    struct waiting *q = waiting_for(r, c);
    while (q->first != TRACE_BUFFER_NONE) {
        give_up(r, dequeue(r, q), until);
    }
}

/* Of several servers, one that no connection reaches any more holds up none of the others. */
static void
lost(struct source *s, const struct lconn *c, nsec_t now)
{
    struct replay *r = (struct replay *)s;
    const struct lset *set = s->d->set;
    if (now >= s->d->window.end || set->conf.targets_len == 1 ||
        !drive_is_unreachable(s->d, c->server)) {
        return;
    }
    r->is_gone[c->server] = true;
    for (unsigned i = 0; i < set->count; i++) {
        if (set->conns[i].server == c->server) {
            give_up_waiting(r, &set->conns[i], UNTIL_WINDOW_ENDS);
        }
    }
}

static void
up(struct source *s, const struct lconn *c)
{
    ((struct replay *)s)->is_gone[c->server] = false;
}

/* ---- the book -------------------------------------------------------------------------- */

/* So many places wait for the server that what comes next is not there in time. */
static bool
is_full(const struct replay *r)
{
    return trace_buffer_used(r->trace_buffer) > r->trace_buffer->count / 8 * 7;
}

/* Nothing to take: the reader is behind, unless all places wait for the server. */
static void
note_dry(struct replay *r, nsec_t now)
{
    const struct drive *d = r->base.d;
    if (is_full(r) || trace_buffer_is_done(r->trace_buffer)) {
        return;
    }
    if (!drive_is_open(d) && !r->is_dry) {
        drive_count(d, &d->counters->starved, now);
    }
    r->is_dry = true;
    r->dry_at = now;
}

static bool
may_take(const struct replay *r, uint32_t page, nsec_t now)
{
    const struct drive *d = r->base.d;
    if (!drive_is_open(d)) {
        return drive_sends(d, now) && r->waiting_count < r->trace_buffer->count / 2;
    }
    nsec_t intended = intended_of(r, page);
    return intended <= now && intended < d->window.end;
}

/* Takes the next one and sends it, or has it wait behind others. */
static void
take(struct replay *r)
{
    const struct drive *d = r->base.d;
    uint32_t page = trace_buffer_take(r->trace_buffer);
    struct lconn *c = conn_of(d, trace_buffer_slot(r->trace_buffer, page));
    if (drive_is_open(d)) {
        nsec_t intended = intended_of(r, page);
        drive_count(d, &d->counters->offered, intended);
        if (drive_measures(d, intended)) {
            hist_record(d->counters->late,
                        intended <= r->late_until ? r->late_until - intended : 0);
        }
        if (unlikely(intended <= r->dry_at)) { /* it was due and not there */
            drive_count(d, &d->counters->starved, intended);
        }
    }
    r->is_dry = false;
    if (unlikely(r->is_gone[c->server])) {
        give_up(r, page, UNTIL_WINDOW_ENDS);
    } else if (waiting_for(r, c)->first == TRACE_BUFFER_NONE &&
               sender_has_room(r->base.sender, c)) {
        send_page(r, c, page);
    } else {
        enqueue(r, c, page);
    }
}

static void
send_due(struct source *s, nsec_t now)
{
    struct replay *r = (struct replay *)s;
    uint32_t page;
    unsigned taken = 0;
    if (r->could_take) {
        /* What was due before came too late by this thread's doing, or its reader's. */
        r->late_until = now;
    }
    for (unsigned i = 0; r->has_more && i < s->d->set->count; i++) {
        push(s, &s->d->set->conns[i], now);
    }
    r->has_more = false;
    while ((page = trace_buffer_peek(r->trace_buffer)) != TRACE_BUFFER_NONE &&
           taken < TAKE_MAX && may_take(r, page, now)) {
        take(r);
        taken++;
    }
    r->could_take = taken < TAKE_MAX && (page != TRACE_BUFFER_NONE || !is_full(r));
    if (page == TRACE_BUFFER_NONE) {
        note_dry(r, now);
    }
}

/* The trace has been read and sent and answered; its own end may be later. */
static bool
is_done(const struct replay *r)
{
    const struct sender *sender = r->base.sender;
    return trace_buffer_is_done(r->trace_buffer) && r->waiting_count == 0 &&
           sender->outstanding == 0 && sender->deferred == 0;
}

static nsec_t
next_due(struct source *s)
{
    const struct replay *r = (struct replay *)s;
    uint32_t page = trace_buffer_peek(r->trace_buffer);
    if (r->has_more) {
        return 0;
    }
    if (page == TRACE_BUFFER_NONE && !trace_buffer_is_done(r->trace_buffer)) {
        return drive_now(s->d) + DRY_LOOK;
    }
    if (page == TRACE_BUFFER_NONE) {
        return is_done(r) ? s->d->window.begin + r->trace_buffer->end_ns : ALARMS_NEVER;
    }
    if (drive_is_open(s->d)) {
        return intended_of(r, page);
    }
    return r->waiting_count < r->trace_buffer->count / 2 ? 0 : ALARMS_NEVER;
}

/* ---- the end --------------------------------------------------------------------------- */

static bool
is_over(struct source *s, nsec_t now)
{
    const struct replay *r = (struct replay *)s;
    return is_done(r) && now >= s->d->window.begin + r->trace_buffer->end_ns;
}

/* While the server was behind, pages waited for it and the reader for pages: what it has not read
 * was due all the same. What waits is not sent any more and makes room, as does what is due later:
 * the reader waits for a page of any thread. */
static bool
count_left(struct source *s, nsec_t now)
{
    struct replay *r = (struct replay *)s;
    const struct drive *d = s->d;
    for (unsigned i = 0; i < d->set->count; i++) {
        give_up_waiting(r, &d->set->conns[i], now);
    }
    if (!drive_is_open(d)) {
        return false;
    }
    while (trace_buffer_peek(r->trace_buffer) != TRACE_BUFFER_NONE) {
        uint32_t page = trace_buffer_take(r->trace_buffer);
        if (intended_of(r, page) < d->window.end) {
            drive_count(d, &d->counters->offered, intended_of(r, page));
            give_up(r, page, now);
        } else {
            trace_buffer_release(r->trace_buffer, page);
        }
    }
    return !trace_buffer_is_done(r->trace_buffer) &&
           !atomic_load_explicit(d->conf.stop, memory_order_relaxed);
}

static void
end(struct source *s, nsec_t now)
{
    if (count_left(s, now)) { /* nor was it read in time to be counted */
        drive_count(s->d, &s->d->counters->starved, s->d->window.end - 1);
    }
}

static void
destroy(struct source *s)
{
    struct replay *r = (struct replay *)s;
    free(r->waiting);
    free(r->is_gone);
    free(r);
}

static const struct source_ops ops = {
    .next_due = next_due,
    .send_due = send_due,
    .push = push,
    .room = room,
    .up = up,
    .lost = lost,
    .is_over = is_over,
    .count_left = count_left,
    .end = end,
    .destroy = destroy,
};

struct source *
source_replay_create(struct drive *d, struct sender *sender)
{
    unsigned n = d->set->count;
    struct replay *r = alloc_zeroed(1, sizeof *r);
    r->base = (struct source){.ops = &ops, .d = d, .sender = sender};
    r->trace_buffer = d->w->trace_buffer;
    r->waiting = alloc_zeroed(n, sizeof *r->waiting);
    r->is_gone = alloc_zeroed(d->set->conf.targets_len, sizeof *r->is_gone);
    for (unsigned i = 0; i < n; i++) {
        r->waiting[i].first = TRACE_BUFFER_NONE;
    }
    return &r->base;
}
