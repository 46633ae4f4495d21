/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/sender.h"

#include "base/alloc.h"

void
sender_init(struct sender *s, struct drive *d)
{
    const struct traffic *t = &d->conf.traffic;
    *s = (struct sender){.d = d};
    /* Of sessions it is their begins that follow a law, and these cannot be told apart. */
    s->issued.each = t->mode == TRAFFIC_OPEN ? gaps_each(t->rate / d->conf.threads) : 0;
    s->dirty = alloc_zeroed(d->set->count, sizeof(struct lconn *));
}

void
sender_fini(struct sender *s)
{
    free(s->dirty);
    s->dirty = NULL;
}

bool
sender_push_followups(struct sender *s, struct lconn *c, nsec_t now)
{
    struct drive *d = s->d;
    unsigned before = c->count;
    while (c->followups.count > 0 && lconn_has_room(c, d->conf.depth) &&
           drive_sends(d, now)) {
        const struct request_op *op = lconn_push_followup(c, d->w);
        s->outstanding++;
        drive_count(d, &d->counters->offered, op->intended);
    }
    return c->count != before;
}

/* All of it was sent. Whether it is measured; how many are outstanding is for the caller to count. In a
 * closed loop it had no other intention than to send it now, which many have in common. */
static bool
issue(struct sender *s, struct request_op *op, nsec_t now)
{
    struct drive *d = s->d;
    bool is_prompt = op->intended == 0, is_users = op->verb != CODEC_AUTH;
    op->issued = now;
    op->intended = is_prompt ? now : op->intended;
    s->little.count += is_users ? 1 : 0;
    if (!drive_measures(d, op->intended)) {
        return false;
    }
    if (op->tag != TAG_NONE) {
        gaps_note(&s->issued, d->counters->gaps_issued, now);
    }
    if (is_prompt) {
        s->prompt += is_users ? 1 : 0;
    } else {
        counters_sent(d->counters, now - op->intended, 1);
    }
    return true;
}

void
sender_count_alike(struct sender *s)
{
    hist_record_n(s->d->counters->outstanding, 1, s->alone);
    s->alone = 0;
    if (s->prompt > 0) {
        ctr_add(&s->d->counters->offered, s->prompt);
        counters_sent(s->d->counters, 0, s->prompt);
        s->prompt = 0;
    }
}

void
sender_issued(struct sender *s, struct request_op *op, unsigned outstanding, nsec_t now)
{
    sender_pass_time(s, now);
    hist_record_row(s->d->counters->outstanding, outstanding, issue(s, op, now) ? 1 : 0);
}

/* The socket takes no more. A closed loop meant to send what it keeps now, not when there is room. */
static void
note_blocked(const struct drive *d, struct lconn *c, nsec_t now)
{
    for (unsigned i = 0; i < c->fresh; i++) {
        struct request_op *op = lconn_fresh_op(c, i);
        if (op->intended == 0 && op->verb != CODEC_AUTH) {
            op->intended = now;
            drive_count(d, &d->counters->offered, now);
        }
    }
}

/* Stamps and counts what a flush issued. */
static void
count_issued(struct sender *s, struct lconn *c, nsec_t now)
{
    const bool is_measured_now = drive_measures(s->d, now);
    struct hist *h = s->d->counters->outstanding;
    struct request_op *op = lconn_issued_op(c, 0);
    unsigned outstanding = c->count - c->fresh - c->issued + 1;
    unsigned prompt = 0, row = 0; /* of those before this one all were measured */
    for (unsigned i = c->issued; i > 0; i--, op = lconn_next_op(c, op)) {
        row++;
        if (likely(op->intended == 0 && is_measured_now && op->verb != CODEC_AUTH)) {
            op->issued = op->intended = now;
            prompt++;
        } else if (!issue(s, op, now)) {
            hist_record_row(h, outstanding, row - 1);
            outstanding += row;
            row = 0;
        }
    }
    s->prompt += prompt;
    s->little.count += prompt;
    if (outstanding == 1 && row == 1) {
        s->alone++;
    } else {
        hist_record_row(h, outstanding, row);
    }
}

bool
sender_flush(struct sender *s, struct lconn *c)
{
    struct drive *d = s->d;
    size_t sent;
    nsec_t now = drive_now(d);
    bool is_up = lset_flush(d->set, c, now, &sent);
    sender_pass_time(s, now);
    if (likely(c->issued > 0)) {
        count_issued(s, c, now);
    }
    if (unlikely(c->fresh > 0)) {
        note_blocked(d, c, now);
    }
    if (drive_measures(d, now)) {
        ctr_add(&d->counters->tx_bytes, sent);
    }
    s->moved_requests += c->issued;
    s->moved_bytes += sent;
    return is_up;
}

bool
sender_forget(struct sender *s, struct lconn *c, bool is_over, nsec_t now,
              struct request_op *op)
{
    const struct drive_window *w = &s->d->window;
    struct counters *k = s->d->counters;
    if (!lconn_take_op(c, op)) {
        return false;
    }
    bool is_issued = op->issued != 0;
    if (op->verb != CODEC_AUTH) {
        s->outstanding--;
        sender_pass_time(s, now);
        s->little.count -= is_issued ? 1 : 0;
    }
    nsec_t since = is_issued ? op->issued : drive_is_open(s->d) ? 0 : op->intended;
    if (since != 0 && is_over && op->verb != CODEC_AUTH) {
        struct little alone = {1, since};
        ctr_add(&k->in_vain, little_pass(&alone, w->start, w->end, now));
    }
    drive_give_up(s->d,
                  !is_issued ? &k->unsent
                  : is_over  ? &k->unanswered[counters_verb_of(op->verb)]
                             : &k->lost[counters_verb_of(op->verb)],
                  op->intended, now);
    return true;
}
