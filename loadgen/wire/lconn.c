/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/lconn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OUT_SLACK 65536 /* room for pipelining beside one request of the largest size */

/* The next reply begins anew. */
static void
forget_reply(struct lconn *c)
{
    c->next_key = c->hits = 0;
    c->value_at = 0;
    c->is_wrong = false;
}

/* Whether requests can follow from answers. */
static bool
has_sequels(const struct workload *w)
{
    return w->conf.fills || w->conf.is_replay || mix_share(&w->conf.mix, MIX_CAS) > 0 ||
           mix_share(&w->conf.mix, MIX_RMW) > 0;
}

bool
lconn_init(struct lconn *c, const struct lconn_conf *conf)
{
    const struct workload *w = conf->workload;
    size_t key_max = workload_key_len_max(w) + CODEC_KEY_ROOM;
    size_t get_max = w->keys_max * key_max + CLIENT_REQUEST_ROOM;
    size_t set_max = key_max + workload_value_len_max(w) + CLIENT_REQUEST_ROOM;
    *c = (struct lconn){
        .link = {.fd = -1},
        .codec = conf->codec,
        .get = w->conf.leases ? NULL : conf->get,
        .auth = conf->auth,
        .target = conf->target,
        .server = conf->server,
        .book = w->book,
        .capacity = conf->capacity,
        .keys_max = w->keys_max,
        .request_max = (get_max > set_max ? get_max : set_max) + DGRAM_HEADER,
        .is_framed = conf->target->transport == TRANSPORT_UDP,
    };
    c->out_cap = c->request_max + OUT_SLACK;
    c->ops = calloc(c->capacity, sizeof *c->ops);
    c->keys = calloc((size_t)c->capacity * c->keys_max, sizeof *c->keys);
    c->out = malloc(c->out_cap);
    c->todo_cap = has_sequels(w) ? c->capacity * c->keys_max : 0;
    c->todo_cap *= w->conf.defers ? 2 : 1; /* lconn_follow has as much for itself */
    c->missed = w->conf.defers ? calloc(c->keys_max, sizeof *c->missed) : NULL;
    c->todo = calloc(c->todo_cap + 1, sizeof *c->todo);
    c->stamps = conf->is_stamped ? calloc(1, sizeof *c->stamps) : NULL;
    if (c->ops == NULL || c->keys == NULL || c->out == NULL || c->todo == NULL ||
        (w->conf.defers && c->missed == NULL) ||
        (conf->is_stamped && c->stamps == NULL)) {
        lconn_fini(c);
        return false;
    }
    size_t reply_max =
        w->keys_max * (key_max + workload_value_len_max(w) + CLIENT_REQUEST_ROOM);
    if (c->is_framed && !dgram_init(&c->dgram, reply_max, c->capacity)) {
        lconn_fini(c);
        return false;
    }
    codec_parser_init(&c->parser);
    return true;
}

void
lconn_fini(struct lconn *c)
{
    lconn_down(c);
    dgram_fini(&c->dgram);
    free(c->ops);
    free(c->keys);
    free(c->out);
    free(c->todo);
    free(c->missed);
    free(c->stamps);
    c->missed = NULL;
    c->stamps = NULL;
    c->todo = NULL;
    c->ops = NULL;
    c->keys = NULL;
    c->out = NULL;
}

/* What is on its way, and what follows from answers, needs its keys no more. */
static void
release_keys(struct lconn *c)
{
    struct lconn_op op;
    while (lconn_take_op(c, &op)) {
        /* its key is released */
    }
    for (; c->todo_count > 0; c->todo_count--) {
        book_release(c->book, c->todo[c->todo_head].key);
        c->todo_head = (c->todo_head + 1) % c->todo_cap;
    }
    for (; c->missed_count > 0; c->missed_count--) {
        book_release(c->book, c->missed[c->missed_count - 1].key);
    }
}

void
lconn_down(struct lconn *c)
{
    link_close(&c->link);
    c->state = LCONN_DOWN;
    if (unlikely(c->book != NULL && c->ops != NULL)) {
        release_keys(c);
    }
    c->head = c->count = c->fresh = c->issued = 0;
    c->out_len = c->out_sent = 0;
    c->put = c->blocked_at = c->read_at = 0;
    c->is_watched = c->is_watched_for_send = false;
    c->is_answering = false;
    dgram_reset(&c->dgram);
    c->todo_head = c->todo_count = c->missed_count = c->stale = 0;
    forget_reply(c);
    codec_parser_init(&c->parser);
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

static struct codec_lease
lease_of(const struct workload *w, uint64_t key)
{
    uint32_t expiry = (uint32_t)workload_expiry(w, key);
    return (struct codec_lease){WORKLOAD_LEASE_S, expiry / WORKLOAD_RECACHE_SHARE};
}

/* Of any keys; most gets are put_prepared, and pay nothing for this one. */
static __attribute__((noinline)) char *
put_get(struct lconn *c, const struct workload *w, const struct lconn_request *r, char *p)
{
    char key[WORKLOAD_KEY_MAX];
    p += c->codec->put_get(p, r->verb, r->count);
    for (unsigned i = 0; i < r->count; i++) {
        size_t len = workload_put_key(w, r->keys[i], key);
        if (w->conf.leases && workload_can_fill(w, r->keys[i])) {
            struct codec_lease lease = lease_of(w, r->keys[i]);
            p += c->codec->put_lease(p, r->count, key, len, &lease);
        } else {
            p += c->codec->put_key(p, r->verb, r->count, key, len);
        }
    }
    return p + c->codec->put_get_end(p, r->count);
}

static char *
put_prepared(struct lconn *c, const struct workload *w, uint64_t key, char *p)
{
    size_t len = codec_put_stencil(p, c->get);
    workload_put_key(w, key, p + c->get->key_at);
    return p + len;
}

static char *
put_store(struct lconn *c, const struct workload *w, const struct lconn_request *r,
          char *p)
{
    char key[WORKLOAD_KEY_MAX];
    struct codec_store store = {
        .verb = r->verb,
        .key = key,
        .key_len = workload_put_key(w, r->keys[0], key),
        .flags = w->conf.flags,
        .exptime = workload_expiry(w, r->keys[0]),
        .value_len = workload_set_len(w, r->keys[0], c->put),
        .cas = r->cas,
    };
    p += c->codec->put_store(p, &store);
    memcpy(p, workload_value(w, r->keys[0]), store.value_len);
    p += store.value_len;
    return p + c->codec->put_store_end(p, &store);
}

static char *
put_order(struct lconn *c, const struct workload *w, const struct lconn_request *r,
          char *p)
{
    char key[WORKLOAD_KEY_MAX];
    struct codec_order order = {
        .verb = r->verb,
        .key = key,
        .key_len = workload_put_key(w, r->keys[0], key),
        .number = r->verb == CODEC_TOUCH ? (uint64_t)workload_expiry(w, r->keys[0]) : 1,
    };
    return p + c->codec->put_order(p, &order);
}

static void
push(struct lconn *c, const struct workload *w, const struct lconn_request *r)
{
    must(c->count < c->capacity && c->out_cap - c->out_len >= c->request_max);
    must(r->count >= 1 && r->count <= c->keys_max);
    unsigned at = slot(c, c->count);
    c->ops[at] = (struct lconn_op){
        .intended = r->intended,
        .begin = c->put,
        .verb = r->verb,
        .keys = r->count,
        .then = r->then,
        .is_verified = r->is_verified,
        .tag = r->tag,
        .id = c->next_id,
        .is_fill = r->is_fill,
        .tries = r->tries,
    };
    uint64_t *keys = keys_at(c, at);
    keys[0] = r->keys[0];
    for (unsigned i = 1; i < r->count; i++) {
        keys[i] = r->keys[i];
    }
    workload_hold(w, r->keys[0]);
    c->count++;
    c->fresh++;
    char *begin = c->out + c->out_len, *p = begin;
    if (c->is_framed) {
        p += dgram_put_header(p, c->next_id++);
    }
    switch (r->verb) {
    case CODEC_GET:
    case CODEC_GETS:
        p = likely(c->get != NULL && r->count == 1 && r->verb == CODEC_GET)
                ? put_prepared(c, w, keys[0], p)
                : put_get(c, w, r, p);
        break;
    case CODEC_SET:
    case CODEC_ADD:
    case CODEC_REPLACE:
    case CODEC_CAS:
    case CODEC_APPEND:
    case CODEC_PREPEND:
        p = put_store(c, w, r, p);
        break;
    default:
        p = put_order(c, w, r, p);
        break;
    }
    c->out_len = (size_t)(p - c->out);
    c->put += (size_t)(p - begin);
}

void
lconn_greet(struct lconn *c)
{
    must(c->state == LCONN_UP && c->count == 0 && c->out_len == 0);
    if (c->auth != NULL) {
        c->ops[c->head] = (struct lconn_op){.verb = CODEC_AUTH};
        c->count = c->fresh = 1;
        memcpy(c->out, c->auth->bytes, c->auth->len);
        c->out_len = c->put = c->auth->len;
    }
}

void
lconn_push(struct lconn *c, const struct workload *w, const struct lconn_request *r)
{
    must(c->todo_count == 0);
    push(c, w, r);
}

const struct lconn_op *
lconn_push_todo(struct lconn *c, const struct workload *w)
{
    if (c->todo_count == 0) {
        return NULL;
    }
    const struct lconn_todo *todo = &c->todo[c->todo_head];
    struct lconn_request request = {
        .verb = todo->verb,
        .keys = &todo->key,
        .count = 1,
        .intended = todo->intended,
        .cas = todo->cas,
        .is_fill = todo->is_fill,
        .tries = todo->tries,
    };
    push(c, w, &request);
    if (unlikely(c->book != NULL)) {
        book_release(c->book, request.keys[0]);
    }
    c->todo_head = (c->todo_head + 1) % c->todo_cap;
    c->todo_count--;
    return &c->ops[slot(c, c->count - 1)];
}

static void
add_todo(struct lconn *c, const struct workload *w, struct lconn_todo todo)
{
    must(c->todo_count < c->todo_cap);
    unsigned at = (c->todo_head + c->todo_count++) % c->todo_cap;
    c->todo[at] = todo;
    workload_hold(w, todo.key);
}

void
lconn_follow(struct lconn *c, const struct workload *w, const struct lconn_todo *todo)
{
    must(w->conf.defers && lconn_can_follow(c));
    add_todo(c, w, *todo);
}

struct lconn_op *
lconn_issued_op(struct lconn *c, unsigned i)
{
    must(i < c->issued);
    return &c->ops[slot(c, c->count - c->fresh - c->issued + i)];
}

const struct lconn_op *
lconn_oldest(const struct lconn *c)
{
    return c->count > 0 ? &c->ops[c->head] : NULL;
}

bool
lconn_take_op(struct lconn *c, struct lconn_op *op)
{
    if (c->count == 0) {
        return false;
    }
    *op = c->ops[c->head];
    if (unlikely(c->book != NULL) && op->keys > 0) {
        book_release(c->book, keys_at(c, c->head)[0]);
    }
    c->head = slot(c, 1);
    c->count--;
    if (c->fresh > c->count) {
        c->fresh = c->count;
    }
    if (c->issued > c->count - c->fresh) {
        c->issued = c->count - c->fresh;
    }
    forget_reply(c);
    return true;
}

static uint64_t
bytes_sent(const struct lconn *c)
{
    return c->put - (c->out_len - c->out_sent);
}

/* Requests of which the last byte has gone are issued. */
static void
stamp(struct lconn *c, nsec_t now)
{
    uint64_t sent = bytes_sent(c);
    while (c->fresh > 0) {
        unsigned i = c->count - c->fresh;
        uint64_t end = c->fresh > 1 ? c->ops[slot(c, i + 1)].begin : c->put;
        if (end > sent) {
            return;
        }
        c->ops[slot(c, i)].issued = now;
        c->fresh--;
        c->issued++;
    }
}

void
lconn_begin_flush(struct lconn *c)
{
    c->issued = 0;
}

size_t
lconn_output(const struct lconn *c, const char **bytes)
{
    size_t len = c->out_len - c->out_sent;
    *bytes = c->out + c->out_sent;
    if (c->is_framed && c->fresh > 1) {
        unsigned i = c->count - c->fresh; /* one request, one datagram */
        len = (size_t)(c->ops[slot(c, i + 1)].begin - c->ops[slot(c, i)].begin);
    }
    return len;
}

void
lconn_sent(struct lconn *c, size_t bytes, nsec_t now)
{
    must(bytes <= c->out_len - c->out_sent);
    c->out_sent += bytes;
    stamp(c, now);
}

void
lconn_end_flush(struct lconn *c, nsec_t blocked_at)
{
    /* Blocked from the first time that nothing went. */
    c->blocked_at = blocked_at == 0 || c->blocked_at == 0 || c->out_sent > 0
                        ? blocked_at
                        : c->blocked_at;
    c->out_len -= c->out_sent;
    if (c->out_sent > 0 && c->out_len > 0) {
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
    struct lconn_op op = c->ops[at];
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

static void
remember(struct lconn *c, uint16_t id, enum lconn_past past)
{
    unsigned at = c->past_count++ % LCONN_PAST;
    c->past[at].id = id;
    c->past[at].past = past;
}

bool
lconn_give_up(struct lconn *c, nsec_t limit, struct lconn_op *op, uint64_t *key)
{
    for (unsigned i = 0; i < c->count - c->fresh; i++) {
        if (c->ops[slot(c, i)].issued < limit) {
            bring_forward(c, i);
            uint16_t id = c->ops[c->head].id;
            *key = keys_at(c, c->head)[0];
            dgram_forget(&c->dgram, id);
            remember(c, id, LCONN_WAS_GIVEN_UP);
            return lconn_take_op(c, op);
        }
    }
    return false;
}

void
lconn_refuse(struct lconn *c, uint16_t id)
{
    remember(c, id, LCONN_WAS_REFUSED);
}

enum lconn_past
lconn_past(const struct lconn *c, uint16_t id)
{
    unsigned known = c->past_count < LCONN_PAST ? c->past_count : LCONN_PAST;
    for (unsigned i = 0; i < known; i++) {
        if (c->past[i].id == id) {
            return c->past[i].past;
        }
    }
    return LCONN_UNKNOWN;
}

/* ---- replies ----------------------------------------------------------------------- */

static void
add_missed(struct lconn *c, const struct workload *w, struct lconn_missed missed)
{
    must(c->missed_count < c->keys_max);
    c->missed[c->missed_count++] = missed;
    workload_hold(w, missed.key);
}

static void
fill(struct lconn *c, const struct workload *w, uint64_t key)
{
    if (unlikely(w->conf.defers)) {
        add_missed(c, w, (struct lconn_missed){key, 0, NEED_SET, 0});
        return;
    }
    add_todo(c, w, (struct lconn_todo){c->read_at, key, 0, CODEC_SET, true, 0});
}

/* Key i of the oldest request is answered: what follows from it? */
static void
finish_key(struct lconn *c, const struct workload *w, unsigned i,
           const struct client_reply *value)
{
    const struct lconn_op *op = &c->ops[c->head];
    uint64_t key = keys_at(c, c->head)[i];
    if (value == NULL && w->conf.fills && workload_can_fill(w, key)) {
        fill(c, w, key);
    } else if (op->then == THEN_SET) {
        add_todo(c, w, (struct lconn_todo){c->read_at, key, 0, CODEC_SET, false, 0});
    } else if (op->then == THEN_CAS && value != NULL) {
        add_todo(c, w,
                 (struct lconn_todo){c->read_at, key, value->cas, CODEC_CAS, false, 0});
    }
}

/* The same of a value that came with a lease, somebody's; false when there was none, only the
 * empty one that stands for the lease. A request that stores the key in any case needs no
 * lease. */
static bool
finish_leased(struct lconn *c, const struct workload *w, unsigned i,
              const struct client_reply *value)
{
    const struct lconn_op *op = &c->ops[c->head];
    uint64_t key = keys_at(c, c->head)[i];
    bool is_won = (value->marks & CLIENT_MARK_WON) != 0;
    bool is_stale = (value->marks & CLIENT_MARK_STALE) != 0;
    bool is_empty =
        value->value_len == 0 && !is_stale && (is_won || workload_value_len(w, key) > 0);
    c->stale += is_stale ? 1 : 0;
    if (op->then != THEN_NOTHING) {
        finish_key(c, w, i, value);
    } else if (is_won) {
        add_missed(c, w, (struct lconn_missed){key, value->cas, NEED_CAS, op->tries});
    } else if (is_empty) {
        add_missed(c, w, (struct lconn_missed){key, 0, NEED_GET, op->tries});
    }
    return !is_empty;
}

/* Some protocols tell a value's key, others its place. */
static bool
is_value_of(const struct workload *w, uint64_t key, unsigned i,
            const struct client_reply *reply)
{
    return reply->key != NULL ? workload_is_key(w, key, reply->key, reply->key_len)
                              : reply->index == i;
}

/* A value must belong to a key that was asked for; servers answer in the order of the
 * request and leave misses out. */
static bool
match_value(struct lconn *c, const struct workload *w, const struct client_reply *reply)
{
    const struct lconn_op *op = &c->ops[c->head];
    if (!codec_is_get(op->verb)) {
        return false;
    }
    const uint64_t *keys = keys_at(c, c->head);
    while (c->next_key < op->keys) {
        unsigned i = c->next_key++;
        if (!is_value_of(w, keys[i], i, reply)) {
            finish_key(c, w, i, NULL);
            continue;
        }
        c->value_at = 0;
        if (unlikely(reply->marks != 0) && w->conf.leases) {
            if (!finish_leased(c, w, i, reply)) {
                c->value_at = workload_value_len(w, keys[i]); /* is_whole */
                return true;
            }
        } else {
            finish_key(c, w, i, reply);
        }
        c->value_bytes =
            (c->hits > 0 ? c->value_bytes : 0) + (reply->value_len != CODEC_LEN_UNKNOWN
                                                      ? reply->value_len
                                                      : workload_value_len(w, keys[i]));
        c->hits++;
        if (op->is_verified && reply->value_len != CODEC_LEN_UNKNOWN &&
            reply->value_len != workload_value_len(w, keys[i])) {
            c->is_wrong = true;
        }
        return true;
    }
    return false;
}

static void
check_data(struct lconn *c, const struct workload *w, const struct client_reply *reply)
{
    if (!c->ops[c->head].is_verified || c->is_wrong) {
        return;
    }
    uint64_t key = keys_at(c, c->head)[c->next_key - 1];
    c->is_wrong = !workload_is_value(w, key, c->value_at, reply->text, reply->text_len);
    c->value_at += reply->text_len;
}

/* The answers that belong to each request: those that say that it had its effect, and those
 * that say that the key was not there, or was. */
#define KIND(kind) (UINT64_C(1) << (kind))
static_assert(CLIENT_KINDS <= 64, "a bit each");
static const struct {
    uint64_t effect, none;
} answers[CODEC_VERBS] = {
    [CODEC_GET] = {KIND(CLIENT_END), 0},
    [CODEC_GETS] = {KIND(CLIENT_END), 0},
    [CODEC_SET] = {KIND(CLIENT_STORED), 0},
    [CODEC_ADD] = {KIND(CLIENT_STORED), KIND(CLIENT_NOT_STORED)},
    [CODEC_REPLACE] = {KIND(CLIENT_STORED), KIND(CLIENT_NOT_STORED)},
    [CODEC_APPEND] = {KIND(CLIENT_STORED), KIND(CLIENT_NOT_STORED)},
    [CODEC_PREPEND] = {KIND(CLIENT_STORED), KIND(CLIENT_NOT_STORED)},
    [CODEC_CAS] = {KIND(CLIENT_STORED), KIND(CLIENT_EXISTS) | KIND(CLIENT_NOT_FOUND)},
    [CODEC_DELETE] = {KIND(CLIENT_DELETED), KIND(CLIENT_NOT_FOUND)},
    [CODEC_TOUCH] = {KIND(CLIENT_TOUCHED), KIND(CLIENT_NOT_FOUND)},
    [CODEC_INCR] = {KIND(CLIENT_NUMBER), KIND(CLIENT_NOT_FOUND)},
    [CODEC_DECR] = {KIND(CLIENT_NUMBER), KIND(CLIENT_NOT_FOUND)},
    [CODEC_AUTH] = {KIND(CLIENT_STORED), 0},
};

/* The last value was as long as its key has it: not every protocol says so before. */
static bool
is_whole(const struct lconn *c, const struct workload *w)
{
    uint64_t key = keys_at(c, c->head)[c->next_key - 1];
    return c->value_at == workload_value_len(w, key);
}

static enum lconn_outcome
judge(struct lconn *c, const struct workload *w, enum client_kind kind)
{
    const struct lconn_op *op = &c->ops[c->head];
    if (kind == CLIENT_ERROR || kind == CLIENT_CLIENT_ERROR ||
        kind == CLIENT_SERVER_ERROR) {
        return LCONN_BAD;
    }
    if (((answers[op->verb].effect | answers[op->verb].none) & KIND(kind)) == 0) {
        return LCONN_UNEXPECTED;
    }
    if (op->is_verified && c->hits > 0 && !is_whole(c, w)) {
        c->is_wrong = true;
    }
    while (codec_is_get(op->verb) && c->next_key < op->keys) {
        finish_key(c, w, c->next_key++, NULL);
    }
    return c->is_wrong ? LCONN_WRONG : LCONN_GOOD;
}

/* What the next reply answers; false when nothing was asked. An error may come before all of
 * the request has gone. */
static bool
expect_reply(const struct lconn *c, struct codec_expect *expect)
{
    const struct lconn_op *op = &c->ops[c->head];
    if (c->count == 0 || op->begin >= bytes_sent(c)) {
        return false;
    }
    expect->verb = op->verb;
    expect->keys = op->keys;
    return true;
}

/* What most replies are: a hit for the one key asked for, all of it in the input. It is taken at
 * once. False when it is not that, or the value is to be looked at: nothing is done then. */
static bool
take_hit(struct lconn *c, const struct workload *w, const char *buf, size_t len,
         struct lconn_done *done)
{
    const struct lconn_op *op = &c->ops[c->head];
    struct client_reply value;
    if (c->codec->hit == NULL || op->verb != CODEC_GET || op->keys != 1 ||
        op->is_verified || !client_parser_is_idle(&c->parser.text)) {
        return false;
    }
    done->taken = c->next_key == 0 ? c->codec->hit(buf, len, &value) : 0;
    if (done->taken == 0 ||
        !workload_is_key(w, *keys_at(c, c->head), value.key, value.key_len)) {
        done->taken = 0;
        return false;
    }
    finish_key(c, w, 0, &value);
    done->outcome = LCONN_GOOD;
    done->kind = CLIENT_END;
    done->has_effect = true;
    done->hits = 1;
    done->value_bytes = value.value_len;
    done->is_last = false;
    bool taken = lconn_take_op(c, &done->op);
    must(taken);
    return true;
}

static void
parse_bytes(struct lconn *c, const struct workload *w, const char *buf, size_t len,
            struct lconn_done *done)
{
    struct client_reply reply;
    struct codec_expect expect;
    done->taken = 0;
    if (!expect_reply(c, &expect)) {
        done->outcome = len > 0 ? LCONN_BROKEN : LCONN_MORE;
        return;
    }
    if (take_hit(c, w, buf, len, done)) {
        return;
    }
    for (;;) {
        done->taken += codec_parse(c->codec, &c->parser, &expect, buf + done->taken,
                                   len - done->taken, &reply);
        done->kind = reply.kind;
        if (reply.kind == CLIENT_DATA) {
            check_data(c, w, &reply);
            continue;
        }
        if (reply.kind == CLIENT_MORE) {
            done->outcome = LCONN_MORE;
            return;
        }
        if (reply.kind == CLIENT_VALUE && match_value(c, w, &reply)) {
            continue;
        }
        if (reply.kind == CLIENT_DESYNC || reply.kind == CLIENT_VALUE) {
            done->outcome = LCONN_BROKEN;
            return;
        }
        done->outcome = judge(c, w, reply.kind);
        done->has_effect = (answers[expect.verb].effect & KIND(reply.kind)) != 0;
        done->hits = c->hits;
        done->value_bytes = c->hits > 0 ? c->value_bytes : 0;
        done->is_last = reply.is_last;
        bool taken = lconn_take_op(c, &done->op);
        must(taken);
        if (done->op.verb != CODEC_AUTH || done->outcome != LCONN_GOOD) {
            return;
        }
        if (!expect_reply(c, &expect)) {
            done->outcome = done->taken < len ? LCONN_BROKEN : LCONN_MORE;
            return;
        }
    }
}

void
lconn_parse(struct lconn *c, const struct workload *w, const char *buf, size_t len,
            struct lconn_done *done)
{
    if (likely(!c->is_framed)) {
        parse_bytes(c, w, buf, len, done);
        return;
    }
    *done = (struct lconn_done){.outcome = LCONN_MORE, .taken = len};
    if (!c->is_answering) {
        return; /* what stands behind a reply in its datagram belongs to nobody */
    }
    c->is_answering = false;
    codec_parser_init(&c->parser);
    parse_bytes(c, w, buf, len, done);
    if (done->outcome == LCONN_MORE || done->outcome == LCONN_BROKEN) {
        done->outcome = lconn_take_op(c, &done->op) ? LCONN_GARBLED : LCONN_MORE;
    }
    done->taken = len;
}
