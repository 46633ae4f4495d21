/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/receiver.h"

#include <limits.h>

void
receiver_count_alike(struct receiver *r)
{
    struct counters *k = r->d->counters;
    const struct reply_done *done = &r->alike;
    enum codec_verb verb = done->op.verb;
    unsigned n = r->alike_count;
    ctr_add(&k->answered, n);
    ctr_add(&k->done[counters_verb_of(verb)], n);
    ctr_add(&k->ops[verb], n);
    ctr_add(&k->no_effect[verb], done->has_effect ? 0 : n);
    if (codec_is_get(verb)) {
        ctr_add(&k->keys, (uint64_t)done->op.keys * n);
        ctr_add(&k->hits, (uint64_t)done->hits * n);
    } else {
        ctr_add(&k->filled, done->op.is_fill && done->has_effect ? n : 0);
    }
    r->alike_count = 0;
}

/* But for their times, and the bytes of their values. */
static inline bool
are_alike(const struct reply_done *a, const struct reply_done *b)
{
    return a->op.verb == b->op.verb && a->op.keys == b->op.keys && a->hits == b->hits &&
           a->has_effect == b->has_effect && a->op.is_fill == b->op.is_fill;
}

/* n good replies that count alike, the last of which is this one. */
static void
count_good(struct receiver *r, const struct lconn *c, const struct reply_done *done,
           unsigned n, nsec_t now)
{
    struct drive *d = r->d;
    const struct request_op *op = &done->op;
    if (n == 0) {
        return;
    }
    sender_answered(r->sender, n, now);
    if (drive_measures(d, now)) {
        if (unlikely(!are_alike(done, &r->alike))) {
            receiver_count_alike(r);
            r->alike = *done;
        }
        r->alike_count += n;
    } else {
        ctr_add(&d->counters->answered, n);
    }
    if (drive_measures(d, op->intended)) {
        bool reads = codec_is_get(op->verb);
        counters_good(d->counters, counters_verb_of(op->verb), now - op->intended,
                      now - op->issued, n);
        if (unlikely(d->conf.by_size) && reads) {
            counters_sized(d->counters, done->value_bytes, now - op->intended, n);
        }
        evenness_log_record(d->evenness, c->index, now - op->issued, n);
    } else {
        struct little alike = {n, op->issued};
        ctr_add(&d->counters->unmeasured,
                little_pass(&alike, d->window.start, d->window.end, now));
    }
}

/* Requests of one time, as those of one system call are, with like replies. */
static inline bool
counts_alike(const struct reply_done *a, const struct reply_done *b)
{
    return a->op.issued == b->op.issued && a->op.intended == b->op.intended &&
           a->value_bytes == b->value_bytes && are_alike(a, b);
}

/* What is kept of each request, where that is wanted. */
static void
keep(const struct drive *d, const struct lconn *c, const struct reply_done *done,
     nsec_t now)
{
    const struct request_op *op = &done->op;
    nsec_t between;
    if (!drive_measures(d, op->intended)) {
        return;
    }
    if (c->stamps != NULL && stamps_between(c->stamps, op->begin, &between)) {
        hist_record(d->counters->wire, between);
    }
    samples_add(d->samples, op->intended - d->window.start,
                now - (d->conf.from == FROM_ISSUE ? op->issued : op->intended));
}

static enum counters_error
error_of(const struct reply_done *done)
{
    return done->outcome == REPLY_UNEXPECTED   ? COUNTERS_UNEXPECTED
           : done->outcome == REPLY_GARBLED    ? COUNTERS_DESYNC
           : done->outcome == REPLY_WRONG      ? COUNTERS_WRONG
           : done->kind == CLIENT_ERROR        ? COUNTERS_ERROR
           : done->kind == CLIENT_CLIENT_ERROR ? COUNTERS_CLIENT_ERROR
                                               : COUNTERS_SERVER_ERROR;
}

static void
tell(const struct receiver *r, struct lconn *c, const struct request_op *op, nsec_t now)
{
    for (struct source *s = r->sources; s != NULL; s = s->next) {
        if (s->ops->answered != NULL) {
            s->ops->answered(s, c, op, now);
        }
    }
}

static inline bool
is_each_kept(const struct receiver *r, const struct lconn *c)
{
    return r->tells || c->stamps != NULL || r->d->samples->all != NULL;
}

static __attribute__((noinline)) void
count_bad(const struct receiver *r, const struct lconn *c, const struct reply_done *done,
          const char *reply, size_t len, nsec_t now)
{
    struct drive_refusal *first = r->d->conf.refusal;
    drive_error(r->d, error_of(done), 1, now);
    if (first != NULL && done->outcome != REPLY_WRONG && done->outcome != REPLY_GARBLED &&
        !atomic_exchange_explicit(&first->is_taken, true, memory_order_relaxed)) {
        first->server = c->target->name;
        reply_quote(first->reply, sizeof first->reply, reply, len,
                    client_kind_name(done->kind));
    }
}

/* All but counting good ones. reply[0..len): what came, from its beginning on. */
static inline void
take_answer(const struct receiver *r, struct lconn *c, struct reply_done *done,
            const char *reply, size_t len, nsec_t now)
{
    struct drive *d = r->d;
    if (unlikely(done->op.issued == 0) && done->op.verb != CODEC_AUTH) {
        sender_issued(r->sender, &done->op, c->count + 1, now); /* before all was sent */
    }
    if (unlikely(r->tells)) {
        tell(r, c, &done->op, now);
    }
    if (unlikely(done->outcome != REPLY_GOOD)) {
        sender_answered(r->sender, done->op.verb != CODEC_AUTH ? 1 : 0, now);
        count_bad(r, c, done, reply, len, now);
    } else if (unlikely(c->stamps != NULL || d->samples->all != NULL)) {
        keep(d, c, done, now);
    }
}

/* Takes the answers in what came. */
static enum receiver_end
take_answers(struct receiver *r, struct lconn *c, const struct lset_bytes *in, nsec_t now)
{
    struct reply_done two[2], *done = &two[0], *last = &two[1];
    enum receiver_end end = RECEIVER_GOES_ON;
    const unsigned most = is_each_kept(r, c) ? 1 : UINT_MAX;
    unsigned n = 0; /* good ones like the last that are not counted yet */
    size_t taken = 0;
    do { /* once also with nothing: a datagram without a reply ends its request */
        size_t from = taken;
        unsigned more = lconn_take_hits(c, r->d->w, in->p, in->len, &taken, most, done);
        bool is_one = most == 1 || more == 0;
        if (more == 0) {
            lconn_parse(c, r->d->w, in->p + taken, in->len - taken, done);
            if (done->outcome == REPLY_MORE) {
                break;
            }
            if (done->outcome == REPLY_BROKEN) {
                end = RECEIVER_DESYNC;
                break;
            }
            taken += done->taken;
            more = likely(done->outcome == REPLY_GOOD) ? 1 : 0;
        }
        if (unlikely(is_one)) {
            take_answer(r, c, done, in->p + from, in->len - from, now);
            end = unlikely(done->is_last) ? RECEIVER_CLOSED : end;
        }
        if (likely(more > 0)) {
            if (n > 0 && !counts_alike(done, last)) {
                count_good(r, c, last, n, now);
                n = 0;
            }
            struct reply_done *free_one = last;
            last = done;
            done = free_one;
            n += more;
        }
    } while (taken < in->len && end == RECEIVER_GOES_ON);
    count_good(r, c, last, n, now);
    return end;
}

void
receiver_init(struct receiver *r, struct drive *d, struct sender *sender,
              struct source *sources)
{
    *r = (struct receiver){.d = d, .sender = sender, .sources = sources};
    for (const struct source *s = sources; s != NULL; s = s->next) {
        r->tells |= s->ops->answered != NULL && !s->is_deaf;
    }
}

enum receiver_end
receiver_receive(struct receiver *r, struct lconn *c, nsec_t *at)
{
    struct drive *d = r->d;
    struct lset_bytes in;
    enum lset_input input = lset_receive(d->set, c, &in);
    nsec_t now = drive_now(d);
    *at = now;
    if (input != LSET_DATA) {
        return input == LSET_LOST ? RECEIVER_LOST : RECEIVER_GOES_ON;
    }
    if (drive_measures(d, now)) {
        ctr_add(&d->counters->rx_bytes, in.len);
    }
    r->sender->moved_bytes += in.len;
    c->backoff = 0; /* it serves again */
    c->read_at = now;
    return take_answers(r, c, &in, now);
}

bool
receiver_give_up(struct receiver *r, struct lconn *c, nsec_t now)
{
    struct drive *d = r->d;
    struct request_op op;
    uint64_t key;
    bool has_lost = false;
    nsec_t limit = now > d->conf.timeout ? now - d->conf.timeout : 0;
    while (lconn_give_up(c, limit, &op, &key)) {
        has_lost = true;
        drive_error(d, COUNTERS_TIMEOUT, 1, now);
        drive_give_up(d, &d->counters->lost[counters_verb_of(op.verb)], op.intended, now);
        sender_answered(r->sender, 1, now);
        tell(r, c, &op, now); /* its user goes on */
    }
    return has_lost;
}
