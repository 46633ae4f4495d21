/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/reply.h"

#include <ctype.h>
#include <limits.h>

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
        r->is_counted = value->value_len == CODEC_LEN_UNKNOWN;
        r->value_bytes =
            (r->hits > 0 ? r->value_bytes : 0) + (r->is_counted ? 0 : value->value_len);
        r->hits++;
        if (op->is_verified && !r->is_counted &&
            !workload_is_value_len(w, to->keys[i], value->value_len)) {
            r->is_wrong = true;
        }
        return true;
    }
    return false;
}

static void
take_data(struct reply *r, const struct reply_to *to, const struct client_reply *data)
{
    r->value_bytes += r->is_counted ? data->text_len : 0;
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
    return workload_is_value_len(to->w, to->keys[r->next_key - 1], r->value_at);
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

/* Whether the next value can be taken at once: what most replies are made of is hits, whole in the
 * input, whose values nothing compares. */
static inline bool
may_take_hits(const struct reply *r, const struct reply_to *to)
{
    return to->codec->has_hits && to->op->verb == CODEC_GET && !to->op->is_verified &&
           client_parser_is_idle(&r->parser.text);
}

/* Hits for some of the keys; returns the bytes taken. What comes then is for the parser. */
static size_t
take_hits(struct reply *r, const struct reply_to *to, const char *buf, size_t len,
          bool *is_end)
{
    const unsigned keys = to->op->keys;
    unsigned i = r->next_key;
    struct client_reply value = {.kind = CLIENT_VALUE};
    size_t taken = 0, n;
    r->value_bytes = r->hits > 0 ? r->value_bytes : 0;
    while (value.kind == CLIENT_VALUE &&
           (n = client_parse_hit(buf + taken, len - taken, &r->last, &value)) > 0) {
        unsigned hit = i;
        while (hit < keys &&
               !workload_is_key(to->w, to->keys[hit], value.key, value.key_len)) {
            hit++;
        }
        /* No key that was asked for, or (client_parse_hit) none at all. */
        if (hit == keys) {
            value.kind = CLIENT_MORE;
            break;
        }
        while (unlikely(i < hit)) {
            finish_key(to, i++, NULL);
        }
        if (unlikely(to->op->then != THEN_NOTHING)) {
            finish_key(to, i, &value);
        }
        i++;
        taken += n;
        r->hits++;
        r->value_bytes += value.value_len;
    }
    r->next_key = i;
    *is_end = value.kind == CLIENT_END;
    return taken;
}

/* What the parser finds in the rest: the reply, or as much of it as there is. */
static void
read_parts(struct reply *r, const struct reply_to *to, const char *buf, size_t len,
           size_t *taken, struct client_reply *part)
{
    const struct codec_expect expect = {to->op->verb, to->op->keys};
    do {
        *taken +=
            codec_parse(to->codec, &r->parser, &expect, buf + *taken, len - *taken, part);
        if (part->kind == CLIENT_DATA) {
            take_data(r, to, part);
        }
    } while (part->kind == CLIENT_DATA ||
             (part->kind == CLIENT_VALUE && match_value(r, to, part)));
}

void
reply_read(struct reply *r, const struct reply_to *to, const char *buf, size_t len,
           struct reply_done *done)
{
    struct client_reply part = {.kind = CLIENT_END};
    bool is_end = false;
    done->taken = may_take_hits(r, to) ? take_hits(r, to, buf, len, &is_end) : 0;
    if (!is_end) {
        read_parts(r, to, buf, len, &done->taken, &part);
    }
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
    done->has_effect = (answers[to->op->verb].effect & KIND(part.kind)) != 0;
    done->hits = r->hits;
    done->value_bytes = r->hits > 0 ? r->value_bytes : 0;
    done->is_last = part.is_last;
    done->op = *to->op;
}

void
reply_quote(char *dst, size_t size, const char *buf, size_t len, const char *otherwise)
{
    size_t n = 0;
    while (n < len && isprint((unsigned char)buf[n])) {
        n++;
    }
    bool is_line = n > 0 && n < len && (buf[n] == '\r' || buf[n] == '\n');
    snprintf(dst, size, "%.*s", is_line ? (int)n : INT_MAX, is_line ? buf : otherwise);
}
