/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/reply.h"

#include <assert.h>

/* ---- what follows ------------------------------------------------------------------- */

static void
fill(const struct reply_to *to, uint64_t key)
{
    if (unlikely(to->w->conf.defers)) {
        followups_miss(to->followups, to->w, (struct missed){key, 0, NEED_SET, 0});
        return;
    }
    followups_add(to->followups, to->w,
                  (struct followup){to->read_at, key, 0, CODEC_SET, true, 0});
}

/* Key i of the request is answered: what follows from it? */
static void
finish_key(const struct reply_to *to, unsigned i, const struct client_reply *value)
{
    uint64_t key = to->keys[i];
    if (value == NULL && to->w->conf.fills && workload_can_fill(to->w, key)) {
        fill(to, key);
    } else if (to->op->then == THEN_SET) {
        followups_add(to->followups, to->w,
                      (struct followup){to->read_at, key, 0, CODEC_SET, false, 0});
    } else if (to->op->then == THEN_CAS && value != NULL) {
        followups_add(
            to->followups, to->w,
            (struct followup){to->read_at, key, value->cas, CODEC_CAS, false, 0});
    }
}

/* The same of a value that came with a lease of some client; false when there was none,
 * only the empty one that stands for the lease. A request that stores the key in any case
 * needs no lease. */
static bool
finish_leased(const struct reply_to *to, unsigned i, const struct client_reply *value)
{
    const struct request_op *op = to->op;
    uint64_t key = to->keys[i];
    bool is_won = (value->marks & CLIENT_MARK_WON) != 0;
    bool is_stale = (value->marks & CLIENT_MARK_STALE) != 0;
    bool is_empty = value->value_len == 0 && !is_stale &&
                    (is_won || workload_value_len(to->w, key) > 0);
    to->followups->stale += is_stale ? 1 : 0;
    if (op->then != THEN_NOTHING) {
        finish_key(to, i, value);
    } else if (is_won) {
        followups_miss(to->followups, to->w,
                       (struct missed){key, value->cas, NEED_CAS, op->tries});
    } else if (is_empty) {
        followups_miss(to->followups, to->w,
                       (struct missed){key, 0, NEED_GET, op->tries});
    }
    return !is_empty;
}

/* ---- values ------------------------------------------------------------------------- */

/* Some protocols tell a value's key, others its place. */
static bool
is_value_of(const struct workload *w, uint64_t key, unsigned i,
            const struct client_reply *value)
{
    return value->key != NULL ? workload_is_key(w, key, value->key, value->key_len)
                              : value->index == i;
}

/* A value must belong to a key that was asked for; servers answer in the order of the
 * request and leave misses out. */
static bool
match_value(struct reply *r, const struct reply_to *to, const struct client_reply *value)
{
    const struct request_op *op = to->op;
    const struct workload *w = to->w;
    if (!codec_is_get(op->verb)) {
        return false;
    }
    while (r->next_key < op->keys) {
        unsigned i = r->next_key++;
        if (!is_value_of(w, to->keys[i], i, value)) {
            finish_key(to, i, NULL);
            continue;
        }
        r->value_at = 0;
        if (unlikely(value->marks != 0) && w->conf.leases) {
            if (!finish_leased(to, i, value)) {
                r->value_at = workload_value_len(w, to->keys[i]); /* is_whole */
                return true;
            }
        } else {
            finish_key(to, i, value);
        }
        uint64_t len = value->value_len != CODEC_LEN_UNKNOWN
                           ? value->value_len
                           : workload_value_len(w, to->keys[i]);
        r->value_bytes = (r->hits > 0 ? r->value_bytes : 0) + len;
        r->hits++;
        if (op->is_verified && len != workload_value_len(w, to->keys[i])) {
            r->is_wrong = true;
        }
        return true;
    }
    return false;
}

static void
check_data(struct reply *r, const struct reply_to *to, const struct client_reply *data)
{
    if (!to->op->is_verified || r->is_wrong) {
        return;
    }
    uint64_t key = to->keys[r->next_key - 1];
    r->is_wrong = !workload_is_value(to->w, key, r->value_at, data->text, data->text_len);
    r->value_at += data->text_len;
}

/* The last value was as long as its key has it: not every protocol says so before. */
static bool
is_whole(const struct reply *r, const struct reply_to *to)
{
    return r->value_at == workload_value_len(to->w, to->keys[r->next_key - 1]);
}

/* ---- outcomes ----------------------------------------------------------------------- */

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

static enum reply_outcome
judge(struct reply *r, const struct reply_to *to, enum client_kind kind)
{
    const struct request_op *op = to->op;
    if (kind == CLIENT_ERROR || kind == CLIENT_CLIENT_ERROR ||
        kind == CLIENT_SERVER_ERROR) {
        return REPLY_BAD;
    }
    if (((answers[op->verb].effect | answers[op->verb].none) & KIND(kind)) == 0) {
        return REPLY_UNEXPECTED;
    }
    if (op->is_verified && r->hits > 0 && !is_whole(r, to)) {
        r->is_wrong = true;
    }
    while (codec_is_get(op->verb) && r->next_key < op->keys) {
        finish_key(to, r->next_key++, NULL);
    }
    return r->is_wrong ? REPLY_WRONG : REPLY_GOOD;
}

/* What most replies are: a hit for the one key asked for, all of it in the input. It is taken at
 * once. False when it is not that, or the value is to be looked at: nothing is done then. */
static bool
take_hit(struct reply *r, const struct reply_to *to, const char *buf, size_t len,
         struct reply_done *done)
{
    const struct request_op *op = to->op;
    struct client_reply value;
    if (to->codec->hit == NULL || op->verb != CODEC_GET || op->keys != 1 ||
        op->is_verified || !client_parser_is_idle(&r->parser.text)) {
        return false;
    }
    done->taken = r->next_key == 0 ? to->codec->hit(buf, len, &r->last, &value) : 0;
    if (done->taken == 0 ||
        !workload_is_key(to->w, to->keys[0], value.key, value.key_len)) {
        return false;
    }
    if (unlikely(op->then != THEN_NOTHING)) { /* all that may follow from a hit */
        finish_key(to, 0, &value);
    }
    done->outcome = REPLY_GOOD;
    done->kind = CLIENT_END;
    done->has_effect = true;
    done->hits = 1;
    done->value_bytes = value.value_len;
    done->is_last = false;
    done->op = *op;
    return true;
}

void
reply_read(struct reply *r, const struct reply_to *to, const char *buf, size_t len,
           struct reply_done *done)
{
    const struct codec_expect expect = {to->op->verb, to->op->keys};
    struct client_reply part;
    if (take_hit(r, to, buf, len, done)) {
        return;
    }
    done->taken = 0;
    do {
        done->taken += codec_parse(to->codec, &r->parser, &expect, buf + done->taken,
                                   len - done->taken, &part);
        if (part.kind == CLIENT_DATA) {
            check_data(r, to, &part);
        }
    } while (part.kind == CLIENT_DATA ||
             (part.kind == CLIENT_VALUE && match_value(r, to, &part)));
    done->kind = part.kind;
    if (part.kind == CLIENT_MORE) {
        done->outcome = REPLY_MORE;
        return;
    }
    if (part.kind == CLIENT_DESYNC || part.kind == CLIENT_VALUE) {
        done->outcome = REPLY_BROKEN;
        return;
    }
    done->outcome = judge(r, to, part.kind);
    done->has_effect = (answers[expect.verb].effect & KIND(part.kind)) != 0;
    done->hits = r->hits;
    done->value_bytes = r->hits > 0 ? r->value_bytes : 0;
    done->is_last = part.is_last;
    done->op = *to->op;
}
