/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/receiver.h"

static void
count_good(struct drive *d, const struct lconn *c, const struct reply_done *done,
           nsec_t now)
{
    bool reads = codec_is_get(done->op.verb);
    enum counters_verb verb = reads ? COUNTERS_READ : COUNTERS_UPDATE;
    if (drive_measures(d, now)) {
        ctr_add(&d->counters->done[verb], 1);
        ctr_add(&d->counters->ops[done->op.verb], 1);
        ctr_add(&d->counters->no_effect[done->op.verb], done->has_effect ? 0 : 1);
        if (verb == COUNTERS_READ) {
            ctr_add(&d->counters->keys, done->op.keys);
            ctr_add(&d->counters->hits, done->hits);
        } else {
            ctr_add(&d->counters->filled, done->op.is_fill && done->has_effect ? 1 : 0);
        }
    }
    if (drive_measures(d, done->op.intended)) {
        counters_good(d->counters, verb, now - done->op.intended, now - done->op.issued);
        if (unlikely(d->conf.by_size) && reads) {
            counters_sized(d->counters, done->value_bytes, now - done->op.intended);
        }
        if (unlikely(c->stamps != NULL)) {
            nsec_t between;
            if (stamps_between(c->stamps, done->op.begin, &between)) {
                hist_record(d->counters->wire, between);
            }
        }
        samples_add(
            d->samples, done->op.intended - d->window.start,
            now - (d->conf.from == FROM_ISSUE ? done->op.issued : done->op.intended));
        evenness_log_record(d->evenness, drive_index(d, c), now - done->op.issued);
    }
}

static enum counters_error
error_of(const struct reply_done *done)
{
    if (done->outcome == REPLY_UNEXPECTED) {
        return COUNTERS_UNEXPECTED;
    }
    if (done->outcome == REPLY_GARBLED) {
        return COUNTERS_DESYNC;
    }
    if (done->outcome == REPLY_WRONG) {
        return COUNTERS_WRONG;
    }
    return done->kind == CLIENT_ERROR          ? COUNTERS_ERROR
           : done->kind == CLIENT_CLIENT_ERROR ? COUNTERS_CLIENT_ERROR
                                               : COUNTERS_SERVER_ERROR;
}

static inline void
tell(const struct receiver *r, struct lconn *c, const struct request_op *op, nsec_t now)
{
    sender_answered(r->sender, op, now);
    for (struct source *s = r->sources; s != NULL; s = s->next) {
        if (s->ops->answered != NULL) {
            s->ops->answered(s, c, op, now);
        }
    }
}

static void
take_answer(const struct receiver *r, struct lconn *c, struct reply_done *done,
            nsec_t now)
{
    struct drive *d = r->d;
    if (unlikely(done->op.issued == 0) && done->op.verb != CODEC_AUTH) {
        sender_issued(r->sender, &done->op, c->count + 1, now); /* before all was sent */
    }
    tell(r, c, &done->op, now);
    if (done->outcome == REPLY_GOOD) {
        ctr_add(&d->counters->answered, 1);
        count_good(d, c, done, now);
    } else {
        ctr_add(&d->counters->errors[error_of(done)], 1);
    }
}

enum receiver_end
receiver_receive(struct receiver *r, struct lconn *c, nsec_t *at)
{
    struct drive *d = r->d;
    struct lset_bytes in;
    struct reply_done done;
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
    size_t taken = 0;
    do { /* once also with nothing: a datagram without a reply ends its request */
        lconn_parse(c, d->w, in.p + taken, in.len - taken, &done);
        if (done.outcome == REPLY_MORE) {
            break;
        }
        if (done.outcome == REPLY_BROKEN) {
            return RECEIVER_DESYNC;
        }
        take_answer(r, c, &done, now);
        if (unlikely(done.is_last)) {
            return RECEIVER_CLOSED;
        }
        taken += done.taken;
    } while (taken < in.len);
    return RECEIVER_GOES_ON;
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
        ctr_add(&d->counters->errors[COUNTERS_TIMEOUT], 1);
        drive_give_up(d, &d->counters->lost, op.intended, now);
        tell(r, c, &op, now); /* its user goes on */
    }
    return has_lost;
}
