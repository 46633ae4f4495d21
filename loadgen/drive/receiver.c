/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/receiver.h"

#include "loadgen/drive/sender.h"
#include "loadgen/drive/reconnect.h"

static void
count_good(struct drive *d, const struct lconn *c, const struct reply_done *done,
           nsec_t now)
{
    bool reads = codec_is_get(done->op.verb);
    enum tally_verb verb = reads ? TALLY_READ : TALLY_UPDATE;
    if (drive_measures(d, now)) {
        ctr_add(&d->tally->done[verb], 1);
        ctr_add(&d->tally->ops[done->op.verb], 1);
        ctr_add(&d->tally->no_effect[done->op.verb], done->has_effect ? 0 : 1);
        if (verb == TALLY_READ) {
            ctr_add(&d->tally->keys, done->op.keys);
            ctr_add(&d->tally->hits, done->hits);
        } else {
            ctr_add(&d->tally->filled, done->op.is_fill && done->has_effect ? 1 : 0);
        }
    }
    if (drive_measures(d, done->op.intended)) {
        tally_good(d->tally, verb, now - done->op.intended, now - done->op.issued);
        if (unlikely(d->conf.by_size) && reads) {
            tally_sized(d->tally, done->value_bytes, now - done->op.intended);
        }
        if (unlikely(c->stamps != NULL)) {
            nsec_t between;
            if (stamps_between(c->stamps, done->op.begin, &between)) {
                hist_record(d->tally->wire, between);
            }
        }
        samples_add(
            d->samples, done->op.intended - d->window.start,
            now - (d->conf.from == FROM_ISSUE ? done->op.issued : done->op.intended));
        evenness_log_record(d->evenness, drive_index(d, c), now - done->op.issued);
    }
}

static enum tally_error
error_of(const struct reply_done *done)
{
    if (done->outcome == REPLY_UNEXPECTED) {
        return TALLY_UNEXPECTED;
    }
    if (done->outcome == REPLY_GARBLED) {
        return TALLY_DESYNC;
    }
    if (done->outcome == REPLY_WRONG) {
        return TALLY_WRONG;
    }
    return done->kind == CLIENT_ERROR          ? TALLY_ERROR
           : done->kind == CLIENT_CLIENT_ERROR ? TALLY_CLIENT_ERROR
                                               : TALLY_SERVER_ERROR;
}

/* False when the connection is gone. */
static bool
take_answers(struct drive *d, struct lconn *c, struct lset_bytes in, nsec_t now)
{
    struct reply_done done;
    size_t at = 0;
    do {
        lconn_parse(c, d->w, in.p + at, in.len - at, &done);
        if (done.outcome == REPLY_MORE) {
            return true;
        }
        if (done.outcome == REPLY_BROKEN) {
            life_lose(d, c, TALLY_DESYNC, now);
            return false;
        }
        if (unlikely(done.op.issued == 0) && done.op.verb != CODEC_AUTH) {
            flow_issued(d, &done.op, c->count + 1, now); /* before all of it was sent */
        }
        flow_answered(d, c, &done.op, now);
        if (unlikely(d->w->conf.defers)) {
            fetch_take(d, c, now);
        }
        if (done.outcome == REPLY_GOOD) {
            ctr_add(&d->tally->answered, 1);
            count_good(d, c, &done, now);
        } else {
            ctr_add(&d->tally->errors[error_of(&done)], 1);
        }
        if (unlikely(done.is_last)) {
            life_replace(d, c, now);
            return false;
        }
        at += done.taken;
    } while (at < in.len);
    return true;
}

bool
answer_receive(struct drive *d, struct lconn *c, nsec_t *at)
{
    struct lset_bytes in;
    enum lset_input input = lset_receive(d->set, c, &in);
    nsec_t now = clock_now();
    *at = now;
    if (input != LSET_DATA) {
        if (input == LSET_LOST) {
            life_lose(d, c, TALLY_DISCONNECT, now);
        }
        return input != LSET_LOST;
    }
    if (drive_measures(d, now)) {
        ctr_add(&d->tally->rx_bytes, in.len);
    }
    d->moved_bytes += in.len;
    c->backoff = 0; /* it serves again */
    c->read_at = now;
    return take_answers(d, c, in, now);
}
