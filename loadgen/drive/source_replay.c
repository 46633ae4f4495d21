/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/source_replay.h"

#include <assert.h>
#include <stdlib.h>

#include "loadgen/drive/drive.h"
#include "loadgen/drive/sender.h"
#include "loadgen/wire/shard.h"

/* How often an empty book is looked at. */
#define DRY_LOOK (200 * NSEC_PER_USEC)
/* So many requests are taken before the sockets are looked at again. */
#define TAKE_MAX 1024

/* How each verb of a trace begins on the wire, and what follows. */
static const struct {
    enum codec_verb verb;
    enum request_then then;
} wire[] = {
    [TRACE_GET] = {CODEC_GET, THEN_NOTHING},
    [TRACE_GETS] = {CODEC_GETS, THEN_NOTHING},
    [TRACE_SET] = {CODEC_SET, THEN_NOTHING},
    [TRACE_ADD] = {CODEC_ADD, THEN_NOTHING},
    [TRACE_REPLACE] = {CODEC_REPLACE, THEN_NOTHING},
    [TRACE_CAS] = {CODEC_GETS, THEN_CAS},
    [TRACE_APPEND] = {CODEC_APPEND, THEN_NOTHING},
    [TRACE_PREPEND] = {CODEC_PREPEND, THEN_NOTHING},
    [TRACE_DELETE] = {CODEC_DELETE, THEN_NOTHING},
    [TRACE_INCR] = {CODEC_INCR, THEN_NOTHING},
    [TRACE_DECR] = {CODEC_DECR, THEN_NOTHING},
    [TRACE_TOUCH] = {CODEC_TOUCH, THEN_NOTHING},
};
static_assert(sizeof wire / sizeof wire[0] == TRACE_VERBS_END, "each verb has its words");

bool
replay_init(struct drive *d)
{
    struct replay *r = &d->replay;
    unsigned n = d->set->count;
    *r = (struct replay){.book = d->w->book};
    if (r->book == NULL) {
        return true;
    }
    r->first = malloc(n * sizeof *r->first);
    r->last = malloc(n * sizeof *r->last);
    r->is_gone = calloc(d->set->conf.targets_len, sizeof *r->is_gone);
    for (unsigned i = 0; r->first != NULL && r->last != NULL && i < n; i++) {
        r->first[i] = r->last[i] = BOOK_NONE;
    }
    return r->first != NULL && r->last != NULL && r->is_gone != NULL;
}

void
replay_fini(struct drive *d)
{
    free(d->replay.first);
    free(d->replay.last);
    free(d->replay.is_gone);
    d->replay.first = d->replay.last = NULL;
    d->replay.is_gone = NULL;
}

/* ---- connections ----------------------------------------------------------------------- */

/* Always the same for the same route; when servers share the keys, one of the key's server. */
static struct lconn *
conn_of(const struct drive *d, const struct book_page *page)
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

static nsec_t
intended_of(const struct drive *d, const struct book_page *page)
{
    return drive_is_open(d) ? d->window.begin + page->at_ns : 0;
}

static void
send_page(struct drive *d, struct lconn *c, uint32_t page)
{
    struct replay *r = &d->replay;
    uint64_t key = page;
    const struct book_page *p = book_page(r->book, page);
    struct request request = {
        .verb = wire[p->verb].verb,
        .keys = &key,
        .count = 1,
        .intended = intended_of(d, p),
        .then = wire[p->verb].then,
    };
    flow_count_push(d, c);
    lconn_push(c, d->w, &request);
    book_release(r->book, page); /* the connection holds it now */
}

static void
enqueue(struct drive *d, const struct lconn *c, uint32_t page)
{
    struct replay *r = &d->replay;
    unsigned i = drive_index(d, c);
    book_page(r->book, page)->next = BOOK_NONE;
    if (r->first[i] == BOOK_NONE) {
        r->first[i] = page;
    } else {
        book_page(r->book, r->last[i])->next = page;
    }
    r->last[i] = page;
    r->waiting++;
}

static uint32_t
dequeue(struct drive *d, const struct lconn *c)
{
    struct replay *r = &d->replay;
    unsigned i = drive_index(d, c);
    uint32_t page = r->first[i];
    r->first[i] = book_page(r->book, page)->next;
    r->waiting--;
    return page;
}

void
replay_offer(struct drive *d, struct lconn *c)
{
    struct replay *r = &d->replay;
    while (!r->is_over && r->first[drive_index(d, c)] != BOOK_NONE &&
           flow_has_room(d, c)) {
        send_page(d, c, dequeue(d, c));
    }
}

void
replay_note(struct drive *d, const struct lconn *c)
{
    struct replay *r = &d->replay;
    r->has_more =
        r->has_more || (r->first[drive_index(d, c)] != BOOK_NONE && flow_has_room(d, c));
}

/* ---- what is not sent ------------------------------------------------------------------ */

static void
give_up(struct drive *d, uint32_t page, nsec_t until)
{
    nsec_t intended = intended_of(d, book_page(d->replay.book, page));
    if (drive_measures(d, intended)) {
        tally_censored(d->tally, &d->tally->unsent, until - intended);
    }
    book_release(d->replay.book, page);
}

static void
give_up_waiting(struct drive *d, const struct lconn *c, nsec_t until)
{
    while (d->replay.first[drive_index(d, c)] != BOOK_NONE) {
        give_up(d, dequeue(d, c), until);
    }
}

void
replay_lose(struct drive *d, const struct lconn *c)
{
    struct replay *r = &d->replay;
    if (r->is_over || d->set->conf.targets_len == 1 ||
        !flow_is_unreachable(d, c->server)) {
        return;
    }
    r->is_gone[c->server] = true;
    for (unsigned i = 0; i < d->set->count; i++) {
        if (d->set->conns[i].server == c->server) {
            give_up_waiting(d, &d->set->conns[i], d->window.end);
        }
    }
}

void
replay_find(struct drive *d, const struct lconn *c)
{
    d->replay.is_gone[c->server] = false;
}

/* ---- the book -------------------------------------------------------------------------- */

static void
count_starved(struct drive *d, nsec_t when)
{
    ctr_add(&d->tally->starved, drive_measures(d, when) ? 1 : 0);
}

/* Nothing to take: the reader is behind, unless all places wait for the server. */
static void
note_dry(struct drive *d, nsec_t now)
{
    struct replay *r = &d->replay;
    bool is_full = book_held(r->book) > r->book->count / 8 * 7;
    if (is_full || book_is_done(r->book)) {
        return;
    }
    if (!drive_is_open(d) && !r->is_dry) {
        count_starved(d, now);
    }
    r->is_dry = true;
    r->dry_at = now;
}

static bool
may_take(const struct drive *d, uint32_t page, nsec_t now)
{
    const struct replay *r = &d->replay;
    if (!drive_is_open(d)) {
        return drive_sends(d, now) && r->waiting < r->book->count / 2;
    }
    nsec_t intended = intended_of(d, book_page(r->book, page));
    return intended <= now && intended < d->window.end;
}

/* Takes the next one and sends it, or has it wait behind others. */
static void
take(struct drive *d)
{
    struct replay *r = &d->replay;
    uint32_t page = book_take(r->book);
    const struct book_page *p = book_page(r->book, page);
    struct lconn *c = conn_of(d, p);
    if (drive_is_open(d)) {
        nsec_t intended = intended_of(d, p);
        ctr_add(&d->tally->offered, drive_measures(d, intended) ? 1 : 0);
        if (unlikely(intended <= r->dry_at)) {
            count_starved(d, intended); /* it was due and not there */
        }
    }
    r->is_dry = false;
    if (unlikely(r->is_gone[c->server])) {
        give_up(d, page, d->window.end);
    } else if (r->first[drive_index(d, c)] == BOOK_NONE && flow_has_room(d, c)) {
        send_page(d, c, page);
    } else {
        enqueue(d, c, page);
    }
}

static void
offer_all(struct drive *d)
{
    d->replay.has_more = false;
    for (unsigned i = 0; i < d->set->count; i++) {
        replay_offer(d, &d->set->conns[i]);
    }
}

void
replay_send_due(struct drive *d, nsec_t now)
{
    struct replay *r = &d->replay;
    uint32_t page;
    if (r->has_more) {
        offer_all(d);
    }
    for (unsigned i = 0; (page = book_peek(r->book)) != BOOK_NONE && i < TAKE_MAX &&
                         may_take(d, page, now);
         i++) {
        take(d);
    }
    if (page == BOOK_NONE) {
        note_dry(d, now);
    }
}

nsec_t
replay_next_due(struct drive *d)
{
    const struct replay *r = &d->replay;
    uint32_t page = book_peek(r->book);
    if (r->has_more) {
        return 0;
    }
    if (page == BOOK_NONE && !book_is_done(r->book)) {
        return clock_now() + DRY_LOOK;
    }
    if (page == BOOK_NONE) {
        bool is_left =
            r->waiting > 0 || d->outstanding > 0 || fetch_waiting(&d->fetch) > 0;
        return is_left ? ALARMS_NEVER : d->window.begin + r->book->end_ns;
    }
    if (drive_is_open(d)) {
        d->could_send = true;
        return intended_of(d, book_page(r->book, page));
    }
    return r->waiting < r->book->count / 2 ? 0 : ALARMS_NEVER;
}

void
replay_look(struct drive *d, nsec_t now)
{
    struct replay *r = &d->replay;
    if (book_is_done(r->book) && r->waiting == 0 && d->outstanding == 0 &&
        fetch_waiting(&d->fetch) == 0 && now >= d->window.begin + r->book->end_ns &&
        now < d->window.end) {
        d->window.end = now > d->window.start ? now : d->window.start;
        r->has_ended = true;
    }
}

void
replay_stop(struct drive *d)
{
    d->replay.is_over = true;
}

void
replay_end(struct drive *d, nsec_t now)
{
    struct replay *r = &d->replay;
    uint32_t page;
    for (unsigned i = 0; i < d->set->count; i++) {
        give_up_waiting(d, &d->set->conns[i], now);
    }
    while (drive_is_open(d) && (page = book_peek(r->book)) != BOOK_NONE &&
           intended_of(d, book_page(r->book, page)) < d->window.end) {
        nsec_t intended = intended_of(d, book_page(r->book, book_take(r->book)));
        ctr_add(&d->tally->offered, drive_measures(d, intended) ? 1 : 0);
        give_up(d, page, now);
    }
}
