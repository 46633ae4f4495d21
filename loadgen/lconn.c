/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/lconn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_SLACK 65536 /* room for pipelining beside one request of the largest size */

bool
lconn_init(struct lconn *c, const struct lconn_conf *conf)
{
    const struct workload *w = conf->workload;
    size_t key_max = workload_key_len_max(w) + CODEC_KEY_ROOM;
    size_t get_max = w->conf.getcount * key_max + CLIENT_REQUEST_ROOM;
    size_t set_max = key_max + workload_value_len_max(w) + CLIENT_REQUEST_ROOM;
    *c = (struct lconn){
        .fd = -1,
        .codec = conf->codec,
        .target = conf->target,
        .server = conf->server,
        .capacity = conf->capacity,
        .getcount = w->conf.getcount,
        .request_max = get_max > set_max ? get_max : set_max,
    };
    c->out_cap = c->request_max + OUT_SLACK;
    c->ops = calloc(c->capacity, sizeof *c->ops);
    c->keys = calloc((size_t)c->capacity * c->getcount, sizeof *c->keys);
    c->out = malloc(c->out_cap);
    if (c->ops == NULL || c->keys == NULL || c->out == NULL) {
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
    free(c->ops);
    free(c->keys);
    free(c->out);
    c->ops = NULL;
    c->keys = NULL;
    c->out = NULL;
}

static enum lconn_io
connect_failed(struct lconn *c, const char **why)
{
    /* Only a UNIX socket says so; TCP lets the handshake wait. */
    enum lconn_io io = errno == EAGAIN ? LCONN_IO_AGAIN : LCONN_IO_LOST;
    *why = strerror(errno);
    lconn_down(c);
    return io;
}

enum lconn_io
lconn_connect(struct lconn *c, bool with_nodelay, const char **why)
{
    must(c->state == LCONN_DOWN && c->fd == -1);
    int family = c->target->addr.ss_family;
    c->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd == -1) {
        return connect_failed(c, why);
    }
    int on = 1;
    if (with_nodelay && family != AF_UNIX &&
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        return connect_failed(c, why);
    }
    const struct sockaddr *addr = (const struct sockaddr *)&c->target->addr;
    if (connect(c->fd, addr, c->target->addr_len) == 0) {
        c->state = LCONN_UP;
    } else if (errno == EINPROGRESS) {
        c->state = LCONN_CONNECTING;
    } else {
        return connect_failed(c, why);
    }
    return LCONN_IO_OK;
}

bool
lconn_connected(struct lconn *c, const char **why)
{
    must(c->state == LCONN_CONNECTING);
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        *why = strerror(error);
        lconn_down(c);
        return false;
    }
    c->state = LCONN_UP;
    return true;
}

void
lconn_down(struct lconn *c)
{
    if (c->fd != -1) {
        close(c->fd);
    }
    c->fd = -1;
    c->state = LCONN_DOWN;
    c->head = c->count = c->fresh = 0;
    c->out_len = c->out_sent = 0;
    c->wants_write = false;
    c->next_key = c->hits = 0;
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
    return c->keys + (size_t)slot_index * c->getcount;
}

static unsigned
push_op(struct lconn *c, enum workload_verb verb, unsigned keys, nsec_t intended)
{
    must(c->count < c->capacity && c->out_cap - c->out_len >= c->request_max);
    unsigned at = slot(c, c->count);
    c->ops[at] = (struct lconn_op){intended, 0, verb, keys};
    c->count++;
    c->fresh++;
    return at;
}

void
lconn_push_get(struct lconn *c, const struct workload *w, const uint64_t *keys,
               unsigned count, nsec_t intended)
{
    must(count >= 1 && count <= c->getcount);
    unsigned at = push_op(c, WORKLOAD_GET, count, intended);
    char key[WORKLOAD_KEY_MAX];
    char *p = c->out + c->out_len;
    p += c->codec->put_get(p, CODEC_GET, count);
    for (unsigned i = 0; i < count; i++) {
        keys_at(c, at)[i] = keys[i];
        size_t len = workload_put_key(w, keys[i], key);
        p += c->codec->put_key(p, CODEC_GET, count, key, len);
    }
    p += c->codec->put_get_end(p, count);
    c->out_len = (size_t)(p - c->out);
}

void
lconn_push_set(struct lconn *c, const struct workload *w, uint64_t key,
               const char *filler, nsec_t intended)
{
    unsigned at = push_op(c, WORKLOAD_SET, 1, intended);
    char text[WORKLOAD_KEY_MAX];
    struct codec_store store = {
        .verb = CODEC_SET,
        .key = text,
        .key_len = workload_put_key(w, key, text),
        .value_len = workload_value_len(w, key),
    };
    char *p = c->out + c->out_len;
    keys_at(c, at)[0] = key;
    p += c->codec->put_store(p, &store);
    memcpy(p, filler, store.value_len);
    p += store.value_len;
    p += c->codec->put_store_end(p);
    c->out_len = (size_t)(p - c->out);
}

struct lconn_op *
lconn_fresh_op(struct lconn *c, unsigned i)
{
    must(i < c->fresh);
    return &c->ops[slot(c, c->count - c->fresh + i)];
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
    c->head = slot(c, 1);
    c->count--;
    if (c->fresh > c->count) {
        c->fresh = c->count;
    }
    c->next_key = c->hits = 0;
    return true;
}

enum lconn_io
lconn_flush(struct lconn *c, nsec_t now, size_t *sent)
{
    *sent = 0;
    for (unsigned i = 0; i < c->fresh; i++) {
        lconn_fresh_op(c, i)->issued = now;
    }
    c->fresh = 0;
    while (c->out_sent < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN ? LCONN_IO_AGAIN : LCONN_IO_LOST;
        }
        c->out_sent += (size_t)n;
        *sent += (size_t)n;
        if (c->out_sent < c->out_len) {
            /* A short write means a full socket: make room behind the rest. */
            c->out_len -= c->out_sent;
            memmove(c->out, c->out + c->out_sent, c->out_len);
            c->out_sent = 0;
            return LCONN_IO_AGAIN;
        }
    }
    c->out_len = c->out_sent = 0;
    return LCONN_IO_OK;
}

/* ---- replies ----------------------------------------------------------------------- */

/* A value must belong to a key that was asked for; servers answer in the order of the
 * request and leave misses out. */
static bool
match_value(struct lconn *c, const struct workload *w, const struct client_reply *reply)
{
    if (c->ops[c->head].verb != WORKLOAD_GET) {
        return false;
    }
    const uint64_t *keys = keys_at(c, c->head);
    while (c->next_key < c->ops[c->head].keys) {
        if (workload_is_key(w, keys[c->next_key++], reply->key, reply->key_len)) {
            c->hits++;
            return true;
        }
    }
    return false;
}

static enum lconn_outcome
judge(const struct lconn *c, enum client_kind kind)
{
    switch (kind) {
    case CLIENT_END:
        return c->ops[c->head].verb == WORKLOAD_GET ? LCONN_GOOD : LCONN_UNEXPECTED;
    case CLIENT_STORED:
        return c->ops[c->head].verb == WORKLOAD_SET ? LCONN_GOOD : LCONN_UNEXPECTED;
    case CLIENT_ERROR:
    case CLIENT_CLIENT_ERROR:
    case CLIENT_SERVER_ERROR:
        return LCONN_BAD;
    default:
        return LCONN_UNEXPECTED;
    }
}

/* What the next reply answers; false when nothing was asked. */
static bool
expect_reply(const struct lconn *c, struct codec_expect *expect)
{
    const struct lconn_op *op = &c->ops[c->head];
    if (c->count == c->fresh) {
        return false;
    }
    expect->verb = op->verb == WORKLOAD_GET ? CODEC_GET : CODEC_SET;
    expect->keys = op->keys;
    return true;
}

void
lconn_parse(struct lconn *c, const struct workload *w, const char *buf, size_t len,
            struct lconn_done *done)
{
    struct client_reply reply;
    struct codec_expect expect;
    done->taken = 0;
    if (!expect_reply(c, &expect)) {
        done->outcome = len > 0 ? LCONN_BROKEN : LCONN_MORE;
        return;
    }
    for (;;) {
        done->taken += c->codec->parse(&c->parser, &expect, buf + done->taken,
                                       len - done->taken, &reply);
        done->kind = reply.kind;
        if (reply.kind == CLIENT_DATA) {
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
        done->outcome = judge(c, reply.kind);
        done->hits = c->hits;
        bool taken = lconn_take_op(c, &done->op);
        must(taken);
        return;
    }
}
