/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/lconn.h"

#include "base/alloc.h"

#define OUT_SLACK 65536 /* room for pipelining beside one request of the largest size */

void
lconn_init(struct lconn *c, const struct lconn_conf *conf)
{
    const struct workload *w = conf->workload;
    *c = (struct lconn){
        .link = {.fd = -1},
        .style = {conf->codec, w->conf.leases ? NULL : conf->get},
        .auth = conf->auth,
        .target = conf->target,
        .server = conf->server,
        .trace_buffer = w->trace_buffer,
        .capacity = conf->capacity,
        .keys_max = w->keys_max,
        .request_max = request_len_max(w) + DGRAM_HEADER,
        .is_framed = conf->target->transport == TRANSPORT_UDP,
    };
    c->takes_hits = conf->codec->has_hits && !c->is_framed &&
                    (c->style.get != NULL || w->stem_len == 0);
    c->out_cap = c->request_max + OUT_SLACK;
    c->ops = alloc_zeroed(c->capacity, sizeof *c->ops);
    c->keys = alloc_zeroed((size_t)c->capacity * c->keys_max, sizeof *c->keys);
    c->out = alloc_bytes(c->out_cap);
    c->stamps = conf->is_stamped ? alloc_zeroed(1, sizeof *c->stamps) : NULL;
    followups_init(&c->followups, w, c->capacity);
    if (c->is_framed) {
        dgram_init(&c->dgram, w->keys_max * request_value_max(w), c->capacity);
    }
    reply_reset(&c->reply);
}

void
lconn_fini(struct lconn *c)
{
    lconn_down(c);
    dgram_fini(&c->dgram);
    followups_fini(&c->followups);
    free(c->ops);
    free(c->keys);
    free(c->out);
    free(c->stamps);
    c->stamps = NULL;
    c->ops = NULL;
    c->keys = NULL;
    c->out = NULL;
}

void
lconn_down(struct lconn *c)
{
    struct request_op op;
    link_close(&c->link);
    c->state = LCONN_DOWN;
    while (unlikely(c->trace_buffer != NULL) && lconn_take_op(c, &op)) {
        /* its key is released */
    }
    c->head = c->count = c->fresh = c->issued = 0;
    c->out_len = c->out_sent = 0;
    c->put = c->blocked_at = c->read_at = 0;
    c->is_watched = c->is_watched_for_send = false;
    c->is_answering = false;
    dgram_reset(&c->dgram);
    followups_reset(&c->followups);
    reply_reset(&c->reply);
}

/* ---- requests ---------------------------------------------------------------------- */

static unsigned
slot(const struct lconn *c, unsigned i)
{
    unsigned at = c->head + i;
    return at >= c->capacity ? at - c->capacity : at;
}

static uint64_t *
keys_at(const struct lconn *c, unsigned slot_index)
{
    return c->keys + (size_t)slot_index * c->keys_max;
}

/* After 65536 requests ids come again: not those of requests which are still without a reply. How
 * many from the next one on are free is known until so many have been given out. */
static __attribute__((noinline)) void
find_free_ids(struct lconn *c)
{
    while (c->ids_free == 0) {
        c->ids_free = UINT16_MAX;
        for (unsigned i = 0; i < c->count; i++) {
            uint16_t ahead = (uint16_t)(c->ops[slot(c, i)].id - c->next_id);
            c->ids_free = ahead < c->ids_free ? ahead : c->ids_free;
        }
        c->next_id += c->ids_free == 0 ? 1 : 0;
    }
}

static void
push(struct lconn *c, const struct workload *w, const struct request *r)
{
    if (c->is_framed) {
        find_free_ids(c);
        c->ids_free--;
    }
    must(c->count < c->capacity && c->out_cap - c->out_len >= c->request_max);
    must(r->op.keys >= 1 && r->op.keys <= c->keys_max);
    unsigned at = slot(c, c->count);
    struct request_op *op = &c->ops[at];
    *op = r->op;
    op->begin = c->put;
    op->id = c->next_id;
    uint64_t *keys = keys_at(c, at);
    keys[0] = r->keys[0];
    for (unsigned i = 1; i < r->op.keys; i++) {
        keys[i] = r->keys[i];
    }
    workload_get_key(w, r->keys[0]);
    char *begin = c->out + c->out_len, *p = begin;
    if (c->is_framed) {
        p += dgram_put_header(&c->dgram, p, c->next_id++);
    }
    p = request_put(r, w, &c->style, c->put, &op->digits, p);
    c->out_len = (size_t)(p - c->out);
    c->put += (size_t)(p - begin);
    c->count++;
    c->fresh++;
}

void
lconn_greet(struct lconn *c)
{
    must(c->state == LCONN_UP && c->count == 0 && c->out_len == 0);
    if (c->auth != NULL) {
        c->ops[c->head] = (struct request_op){.verb = CODEC_AUTH};
        c->count = c->fresh = 1;
        memcpy(c->out, c->auth->bytes, c->auth->len);
        c->out_len = c->put = c->auth->len;
    }
}

void
lconn_push(struct lconn *c, const struct workload *w, const struct request *r)
{
    must(c->followups.count == 0);
    push(c, w, r);
}

const struct request_op *
lconn_push_followup(struct lconn *c, const struct workload *w)
{
    if (c->followups.count == 0) {
        return NULL;
    }
    const struct followup *next = &c->followups.ring[c->followups.head];
    struct request request = {
        .op = {.intended = next->intended,
               .verb = next->verb,
               .keys = 1,
               .is_fill = next->is_fill,
               .tries = next->tries},
        .keys = &next->key,
        .cas = next->cas,
    };
    push(c, w, &request);
    followups_pop(&c->followups);
    return &c->ops[slot(c, c->count - 1)];
}

struct request_op *
lconn_issued_op(struct lconn *c, unsigned i)
{
    must(i < c->issued);
    return &c->ops[slot(c, c->count - c->fresh - c->issued + i)];
}

struct request_op *
lconn_fresh_op(struct lconn *c, unsigned i)
{
    must(i < c->fresh);
    return &c->ops[slot(c, c->count - c->fresh + i)];
}

const struct request_op *
lconn_oldest(const struct lconn *c)
{
    return c->count > 0 ? &c->ops[c->head] : NULL;
}

/* The n oldest are over. */
static inline void
drop(struct lconn *c, unsigned n)
{
    for (unsigned i = 0; unlikely(c->trace_buffer != NULL) && i < n; i++) {
        unsigned at = slot(c, i);
        if (c->ops[at].keys > 0) {
            trace_buffer_release(c->trace_buffer, keys_at(c, at)[0]);
        }
    }
    c->head = slot(c, n);
    c->count -= n;
    if (unlikely(c->fresh > c->count)) {
        c->fresh = c->count;
    }
    c->issued = 0; /* it was one of them, or they are not asked for any more */
    reply_forget(&c->reply);
}

bool
lconn_take_op(struct lconn *c, struct request_op *op)
{
    if (c->count == 0) {
        return false;
    }
    *op = c->ops[c->head];
    drop(c, 1);
    return true;
}

static uint64_t
bytes_sent(const struct lconn *c)
{
    return c->put - (c->out_len - c->out_sent);
}

/* Requests of which the last byte has gone are issued. */
static void
find_issued(struct lconn *c)
{
    uint64_t sent = bytes_sent(c);
    if (likely(sent == c->put)) {
        c->issued += c->fresh;
        c->fresh = 0;
    }
    while (c->fresh > 0) {
        unsigned i = c->count - c->fresh;
        uint64_t end = c->fresh > 1 ? c->ops[slot(c, i + 1)].begin : c->put;
        if (end > sent) {
            return;
        }
        c->fresh--;
        c->issued++;
    }
}

void
lconn_stamp(struct lconn *c, nsec_t now)
{
    struct request_op *op = c->issued > 0 ? lconn_issued_op(c, 0) : NULL;
    for (unsigned i = c->issued; i > 0; i--, op = lconn_next_op(c, op)) {
        op->issued = now;
    }
}

void
lconn_begin_flush(struct lconn *c)
{
    c->issued = 0;
}

size_t
lconn_next_datagram(const struct lconn *c)
{
    unsigned i = c->count - c->fresh;
    return c->fresh > 1
               ? (size_t)(c->ops[slot(c, i + 1)].begin - c->ops[slot(c, i)].begin)
               : c->out_len - c->out_sent;
}

bool
lconn_sent(struct lconn *c, size_t bytes)
{
    must(bytes <= c->out_len - c->out_sent);
    c->out_sent += bytes;
    find_issued(c);
    return c->out_sent < c->out_len;
}

void
lconn_end_flush(struct lconn *c, nsec_t blocked_at)
{
    if (likely(c->out_sent == c->out_len)) {
        c->blocked_at = c->out_len = c->out_sent = 0;
        return;
    }
    /* Blocked from the first time that nothing went. */
    if (blocked_at == 0 || c->blocked_at == 0 || c->out_sent > 0) {
        c->blocked_at = blocked_at;
    }
    c->out_len -= c->out_sent;
    if (c->out_sent > 0) {
        memmove(c->out, c->out + c->out_sent, c->out_len);
    }
    c->out_sent = 0;
}

/* ---- datagrams --------------------------------------------------------------------- */

/* Makes the i-th request the oldest: all are issued, and their order does not count. */
static void
bring_forward(struct lconn *c, unsigned i)
{
    unsigned at = slot(c, i), head = c->head;
    uint64_t *a = keys_at(c, at), *b = keys_at(c, head);
    struct request_op op = c->ops[at];
    c->ops[at] = c->ops[head];
    c->ops[head] = op;
    for (unsigned k = 0; k < c->keys_max && at != head; k++) {
        uint64_t key = a[k];
        a[k] = b[k];
        b[k] = key;
    }
}

bool
lconn_choose(struct lconn *c, uint16_t id)
{
    for (unsigned i = 0; i < c->count - c->fresh; i++) {
        if (c->ops[slot(c, i)].id == id) {
            bring_forward(c, i);
            return true;
        }
    }
    return false;
}

bool
lconn_give_up(struct lconn *c, nsec_t limit, struct request_op *op, uint64_t *key)
{
    for (unsigned i = 0; i < c->count - c->fresh; i++) {
        if (c->ops[slot(c, i)].issued < limit) {
            bring_forward(c, i);
            uint16_t id = c->ops[c->head].id;
            *key = keys_at(c, c->head)[0];
            dgram_forget(&c->dgram, id);
            dgram_remember(&c->dgram, id, DGRAM_WAS_GIVEN_UP);
            return lconn_take_op(c, op);
        }
    }
    return false;
}

bool
lconn_retransmit(struct lconn *c, const struct workload *w, const struct lconn_timeout *p,
                 nsec_t now)
{
    for (unsigned i = 0; i < c->count - c->fresh; i++) {
        const struct request_op *op = &c->ops[slot(c, i)];
        if (op->issued + clock_doubled(p->first, op->tries, p->most) >= now) {
            continue;
        }
        must(op->keys == 1);
        bring_forward(c, i);
        uint64_t key = keys_at(c, c->head)[0];
        struct request_op old = c->ops[c->head];
        drop(c, 1);
        uint16_t next_id = c->next_id, ids_free = c->ids_free;
        c->next_id = old.id;
        c->ids_free = 1;
        push(c, w,
             &(struct request){
                 .op = {.intended = old.intended,
                        .verb = old.verb,
                        .keys = 1,
                        .tries = old.tries < UINT8_MAX ? old.tries + 1 : old.tries},
                 .keys = &key,
             });
        c->next_id = next_id;
        c->ids_free = ids_free;
        return true;
    }
    return false;
}

/* ---- replies ----------------------------------------------------------------------- */

/* What a connection begins with is no request of a user: its right answer is no
 * outcome. */
static void
parse_bytes(struct lconn *c, const struct workload *w, const char *buf, size_t len,
            struct reply_done *done)
{
    size_t taken = 0;
    do {
        /* Nothing was asked. An error may come before all of the request has gone. */
        if (c->count == 0 || c->ops[c->head].begin >= bytes_sent(c)) {
            done->outcome = taken < len ? REPLY_BROKEN : REPLY_MORE;
            break;
        }
        struct reply_to to = {
            .codec = c->style.codec,
            .w = w,
            .op = &c->ops[c->head],
            .keys = keys_at(c, c->head),
            .followups = &c->followups,
            .read_at = c->read_at,
        };
        reply_read(&c->reply, &to, buf + taken, len - taken, done);
        taken += done->taken;
        if (done->outcome == REPLY_MORE || done->outcome == REPLY_BROKEN) {
            break;
        }
        drop(c, 1);
    } while (unlikely(done->op.verb == CODEC_AUTH) && done->outcome == REPLY_GOOD);
    done->taken = taken;
}

void
lconn_parse(struct lconn *c, const struct workload *w, const char *buf, size_t len,
            struct reply_done *done)
{
    if (likely(!c->is_framed)) {
        parse_bytes(c, w, buf, len, done);
        return;
    }
    *done = (struct reply_done){.outcome = REPLY_MORE, .taken = len};
    if (!c->is_answering) {
        return; /* what stands behind a reply in its datagram is dropped */
    }
    c->is_answering = false;
    codec_parser_init(&c->reply.parser);
    parse_bytes(c, w, buf, len, done);
    if (done->outcome == REPLY_MORE || done->outcome == REPLY_BROKEN) {
        done->outcome = lconn_take_op(c, &done->op) ? REPLY_GARBLED : REPLY_MORE;
    }
    done->taken = len;
}

/* Whether the value is that of the one key of this request. */
static inline bool
is_asked_for(const struct lconn *c, const struct workload *w, const struct request_op *op,
             const struct client_reply *value)
{
    return likely(w->stem_len > 0)
               ? workload_is_completed(w, &op->digits, value->key, value->key_len)
               : workload_is_key(w, keys_at(c, (unsigned)(op - c->ops))[0], value->key,
                                 value->key_len);
}

unsigned
lconn_take_hits(struct lconn *c, const struct workload *w, const char *buf, size_t len,
                size_t *taken, unsigned most, struct reply_done *done)
{
    struct request_op *op = &c->ops[c->head];
    const struct request_op *first = op;
    const nsec_t issued = op->issued, intended = op->intended;
    struct client_reply value;
    uint64_t value_bytes = 0;
    size_t at = *taken, bytes;
    unsigned n = 0;
    most = c->count < most ? c->count : most;
    if (!c->takes_hits || !reply_is_new(&c->reply) || issued == 0) {
        return 0;
    }
    while (n < most && request_is_plain_get(op) && op->issued == issued &&
           op->intended == intended) {
        bytes = reply_find_hit(&c->reply, buf + at, len - at, &value);
        if (bytes == 0 || (value.value_len != value_bytes && n > 0) ||
            !is_asked_for(c, w, op, &value)) {
            break;
        }
        value_bytes = value.value_len;
        at += bytes;
        n++;
        op = lconn_next_op(c, op);
    }
    if (n > 0) {
        done->outcome = REPLY_GOOD;
        done->op = *first;
        done->kind = CLIENT_END;
        done->has_effect = true;
        done->hits = 1;
        done->value_bytes = value_bytes;
        done->is_last = false;
        *taken = at;
        drop(c, n);
    }
    return n;
}
