/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/members.h"

#include <math.h>

#include "base/alloc.h"
#include "base/be.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/greet.h"

#define CONNECT_TIME (5 * NSEC_PER_SEC)
#define COST_BYTES 32
#define STEAL_ALL 1000000000           /* of FIELD_STEAL: all of the time */
#define LOADED_MAX (UINT64_C(1) << 56) /* records; sums of them are far from wrapping */
#define BEHIND_MAX (60 * NSEC_PER_SEC) /* it would be lost long before */
/* An agent's time may run ahead of ours by so much, and by a part of what has gone by. */
#define AHEAD_MAX NSEC_PER_SEC
#define AHEAD_PART 1000
#define AHEAD_INTERVALS 2
#define STAT_MAX 1e20     /* of a server: no count of 64 bits is more */
#define SAMPLES_BESIDES 4 /* of a server, beside those for which it is time */

/* ---- opening ------------------------------------------------------------------------ */

void
member_init(struct member *k, struct swarm_run *run, unsigned part,
            const struct options *o, unsigned load_classes)
{
    bool has_measurer = options_agents_in(o, ROLE_MEASURE) > 0;
    k->run = run;
    k->part = part;
    k->chan.fd = -1;
    k->role = part > 0                                         ? o->agents[part - 1].role
              : load_classes < o->classes_len && !has_measurer ? ROLE_MEASURE
                                                               : ROLE_LOAD;
    if (k->role == ROLE_LOAD) {
        k->classes = load_classes;
    } else if (k->role == ROLE_MEASURE) {
        k->first_class = load_classes;
        k->classes = o->classes_len - load_classes;
    } else {
        k->observer = run->observers++;
    }
    if (part == 0) {
        snprintf(k->at.name, sizeof k->at.name, "leader");
        k->weight = (uint64_t)o->weight;
        k->classes = o->weight > 0 ? k->classes : 0;
        k->state = MEMBER_READY;
    }
    k->rates = alloc_zeroed(o->classes_len, sizeof *k->rates);
    k->digests = alloc_zeroed(o->classes_len, sizeof *k->digests);
    k->capacities = alloc_zeroed(o->classes_len, sizeof *k->capacities);
}

void
member_fini(struct member *k)
{
    chan_fini(&k->chan);
    free(k->rates);
    free(k->digests);
    free(k->capacities);
    free(k->costs);
}

void
member_set_own(struct member *k, const struct result *own)
{
    free(k->costs);
    k->costs = NULL;
    k->threads = own != NULL ? own->threads : 0;
    k->elapsed_s = own != NULL ? own->elapsed_s : 0;
    k->is_local = own != NULL && own->is_local;
    k->has_steal = own != NULL && own->has_steal;
    k->steal = k->has_steal ? own->steal : 0;
    k->state = own != NULL ? MEMBER_DONE : MEMBER_RUNNING;
    if (k->threads > 0) {
        k->costs = alloc_zeroed(k->threads, sizeof *k->costs);
        memcpy(k->costs, own->costs, k->threads * sizeof *k->costs);
    }
}

static enum exit_status
fail(const struct member *k, const char *why)
{
    return options_fail(stderr, EXIT_UNREACHABLE, "agent %s: %s", k->at.name, why);
}

/* The agent's answer to the proofs. */
static enum exit_status
await_welcome(struct member *k)
{
    struct frame f;
    char why[MESSAGE_TEXT_MAX];
    enum chan_next next = chan_await(&k->chan, clock_now() + CONNECT_TIME, &f);
    if (next != CHAN_FRAME) {
        return fail(k, next == CHAN_NONE ? "does not answer" : k->chan.error);
    }
    if (f.type == MESSAGE_WELCOME &&
        frame_number(&f, FIELD_WEIGHT, 1, MESSAGE_WEIGHT_MAX, &k->weight)) {
        return EXIT_VALID;
    }
    return fail(k, frame_text(&f, FIELD_TEXT, why, sizeof why) ? why : "refuses");
}

enum exit_status
member_open(struct member *k, const struct options *o, const char *text,
            const struct seal_key *key)
{
    char err[MESSAGE_TEXT_MAX];
    if (!endpoint_resolve(&k->at, text, (unsigned)o->agent_port, err, sizeof err)) {
        return options_fail(stderr, EXIT_UNREACHABLE, "agent: %s", err);
    }
    int fd = endpoint_connect(&k->at, clock_now() + CONNECT_TIME, err, sizeof err);
    if (fd == -1) {
        return fail(k, err);
    }
    chan_init(&k->chan, fd, SEAL_LEADER);
    if (greet_leader(&k->chan, key, err, sizeof err) != GREET_GOOD) {
        return fail(k, err);
    }
    k->heard_at = clock_now();
    if (k->role != ROLE_LOAD && (k->chan.features & MESSAGE_KNOWS_ROLES) == 0) {
        return fail(k, "is a version that does nothing but load");
    }
    return await_welcome(k);
}

enum exit_status
member_configure(struct member *k, const struct member_conf *conf)
{
    struct frame_out *o = chan_begin(&k->chan, MESSAGE_CONFIG);
    frame_put_number(o, FIELD_ROLE, k->role);
    frame_put_number(o, FIELD_AGENT, conf->agent);
    frame_put_number(o, FIELD_AGENTS, conf->agents);
    frame_put_number(o, FIELD_SENDER, conf->sender);
    frame_put_number(o, FIELD_SENDERS, conf->senders);
    if (conf->wants_secret) {
        frame_put_number(o, FIELD_WANTS_SECRET, 1);
    }
    for (unsigned w = 0; w < conf->words_len; w++) {
        frame_put_text(o, FIELD_WORD, conf->words[w]);
    }
    return chan_send(&k->chan) ? EXIT_VALID : fail(k, k->chan.error);
}

/* ---- states ------------------------------------------------------------------------- */

void
member_lose(struct member *k, const char *why)
{
    if (k->state != MEMBER_LOST) {
        ledger_lose(k->run->ledger, k->part);
        k->state = MEMBER_LOST;
        snprintf(k->why, sizeof k->why, "%s", why);
    }
}

void
member_verify(struct member *k)
{
    for (unsigned c = 0; k->state == MEMBER_DONE && c < k->classes; c++) {
        struct counters *sum = ledger_sum(k->run->ledger, k->part, k->first_class + c);
        if (k->digests[c] != delta_digest(sum)) {
            k->is_wrong = true;
            member_lose(k, "sent intervals that do not add up to its totals");
        }
    }
}

/* ---- what it is told ------------------------------------------------------------------ */

static void
send_frame(struct member *k)
{
    if (!chan_send(&k->chan)) {
        member_lose(k, k->chan.error);
    }
}

void
member_ask_time(struct member *k)
{
    frame_put_number(chan_begin(&k->chan, MESSAGE_STAMP), FIELD_SENT, clock_now());
    k->is_asked = true;
    send_frame(k);
}

void
member_begin(struct member *k)
{
    k->start_error = k->behind_max = 0;
    k->elapsed_s = k->steal = 0;
    k->has_steal = false;
    k->threads = 0;
    k->samples = 0;
}

void
member_renew(struct member *k)
{
    if (k->classes > 0 && (k->chan.features & MESSAGE_KNOWS_RENEW) != 0) {
        struct frame_out *o = chan_begin(&k->chan, MESSAGE_RENEW);
        frame_put_number(o, FIELD_IS_FRESH, k->run->is_fresh ? 1 : 0);
        k->state = MEMBER_OPENING;
        send_frame(k);
    }
}

void
member_start(struct member *k)
{
    struct align_estimate e;
    if (!align_estimate(&k->align, &e)) {
        member_lose(k, "has not told its time");
        return;
    }
    k->begin = align_convert(&e, k->run->begin);
    struct frame_out *o = chan_begin(&k->chan, MESSAGE_START);
    frame_put_number(o, FIELD_BEGIN, k->begin);
    frame_put_number(o, FIELD_TIME, k->run->time);
    frame_put_number(o, FIELD_WARMUP, k->run->warmup);
    bool has_renewed = (k->chan.features & MESSAGE_KNOWS_RENEW) != 0;
    frame_put_number(o, FIELD_IS_FRESH, k->run->is_fresh && !has_renewed ? 1 : 0);
    frame_put_number(o, FIELD_LENGTH, k->run->length);
    frame_put_numbers(o, FIELD_RATES, k->rates, k->classes);
    frame_put_numbers(o, FIELD_SLICE, (uint64_t[]){k->slice.first, k->slice.end}, 2);
    k->state = MEMBER_RUNNING;
    send_frame(k);
}

void
member_stop(struct member *k)
{
    chan_begin(&k->chan, MESSAGE_STOP);
    send_frame(k);
}

/* ---- what it says ------------------------------------------------------------------- */

/* How much time can have gone by for an agent since a moment of ours. */
static nsec_t
longest_since(nsec_t then, nsec_t now)
{
    nsec_t gone = now > then ? now - then : 0;
    return gone + gone / AHEAD_PART + AHEAD_MAX;
}

static nsec_t
silence_of(const struct member *k)
{
    return k->has_answered ? MEMBER_SILENCE : MEMBER_SILENCE_FIRST;
}

static void
on_stamps(struct member *k, const struct frame *f, nsec_t now)
{
    struct align_stamps s = {.received = now};
    uint64_t behind;
    if (!frame_number(f, FIELD_SENT, 0, UINT64_MAX, &s.sent) ||
        !frame_number(f, FIELD_HEARD, 0, UINT64_MAX, &s.heard) ||
        !frame_number(f, FIELD_ANSWERED, 0, UINT64_MAX, &s.answered) ||
        !frame_number(f, FIELD_BEHIND, 0, BEHIND_MAX, &behind) || s.sent > now) {
        member_lose(k, "sent stamps that make no sense");
        return;
    }
    if (now - s.sent > silence_of(k)) {
        member_lose(k, "sent stamps that are too old");
        return;
    }
    if (!k->has_answered) {
        /* It may have waited for a name server: no measure of the way. */
        k->has_answered = true;
    } else if (!align_add(&k->align, &s)) {
        member_lose(k, "sent inconsistent stamps");
        return;
    }
    k->behind_max = behind > k->behind_max ? behind : k->behind_max;
    if (k->align.count < MEMBER_STAMPS_FIRST) {
        member_ask_time(k);
    }
}

/* What people should know of its run. */
static void
tell_notes(const struct member *k, const struct frame *f)
{
    struct frame_field field;
    size_t cursor = 0;
    for (unsigned n = 0; n < MESSAGE_NOTES_MAX && frame_next(f, &cursor, &field);) {
        if (field.tag == FIELD_NOTE && frame_is_text(&field) &&
            field.len < MESSAGE_TEXT_MAX) {
            fprintf(stderr, "mcload: agent %s: %.*s\n", k->at.name, (int)field.len,
                    (const char *)field.p);
            n++;
        }
    }
}

/* One that said it otherwise would be waited for without an end. */
static void
on_ready(struct member *k, const struct frame *f)
{
    if (k->state == MEMBER_OPENING &&
        frame_number(f, FIELD_LOADED, 0, LOADED_MAX, &k->loaded)) {
        tell_notes(k, f);
        k->state = MEMBER_READY;
    } else {
        member_lose(k, "says that it is ready in a way that makes no sense");
    }
}

static void
on_delta(struct member *k, const struct frame *f, nsec_t now)
{
    uint64_t interval, class;
    if (k->state != MEMBER_RUNNING || k->classes == 0 ||
        !frame_number(f, FIELD_CLASS, 0, k->classes - 1, &class) ||
        !frame_number(f, FIELD_INTERVAL, 1, UINT64_MAX, &interval)) {
        member_lose(k, "sent a report that makes no sense");
    } else if (interval >
               longest_since(k->run->begin + k->run->warmup, now) / k->run->length +
                   AHEAD_INTERVALS) {
        member_lose(k, "sent a report of an interval to come");
    } else if (!ledger_add(k->run->ledger, k->part, k->first_class + (unsigned)class,
                           interval, f)) {
        member_lose(k, "sent a report that does not follow from those before");
    }
}

/* What a server said of itself: no more than there is time for, and numbers that it can be. */
static void
on_sample(struct member *k, const struct frame *f, nsec_t now)
{
    uint64_t server, at, reported, values[SERVER_STATS];
    struct server_sample sample = {0};
    if (k->state != MEMBER_RUNNING || k->servers == 0 ||
        !frame_number(f, FIELD_SERVER, 0, k->servers - 1, &server) ||
        !frame_number(f, FIELD_AT, 0, longest_since(k->run->begin + k->run->warmup, now),
                      &at) ||
        !frame_number(f, FIELD_TOLD, 0, SERVER_STATS_ALL, &reported) ||
        !frame_numbers(f, FIELD_VALUES, SERVER_STATS, values) ||
        k->samples >=
            k->servers * (k->run->time / k->run->stats_length + SAMPLES_BESIDES)) {
        member_lose(k, "sent stats that make no sense");
        return;
    }
    bool is_good = true;
    for (unsigned i = 0; i < SERVER_STATS; i++) {
        memcpy(&sample.values[i], &values[i], sizeof values[i]);
        is_good = is_good && sample.values[i] >= 0 && sample.values[i] <= STAT_MAX;
    }
    sample.server = k->observer + (unsigned)server * k->run->observers;
    sample.at_s = (double)at / 1e9;
    sample.reported = (unsigned)reported;
    if (!is_good) {
        member_lose(k, "sent stats that make no sense");
        return;
    }
    server_stats_add(k->run->stats, &sample);
    k->samples++;
}

/* Times of each thread, none longer than what has gone by. */
static bool
take_costs(struct member *k, const struct frame *f, nsec_t longest)
{
    struct frame_field field;
    size_t least = k->classes > 0 ? COST_BYTES : 0;
    if (!frame_bytes(f, FIELD_COSTS, least, COST_BYTES * MESSAGE_COSTS_MAX, &field) ||
        field.len % COST_BYTES != 0) {
        return false;
    }
    k->threads = (unsigned)(field.len / COST_BYTES);
    free(k->costs);
    k->costs = alloc_zeroed(k->threads, sizeof *k->costs); /* an observer has none */
    bool is_good = true;
    for (size_t at = 0; at < field.len; at += 8) {
        is_good = is_good && be_get(field.p + at, FRAME_NUMBER_BYTES) <= longest;
    }
    for (unsigned i = 0; i < k->threads; i++) {
        const uint8_t *p = field.p + (size_t)i * COST_BYTES;
        k->costs[i] = (struct cost){(double)be_get(p, FRAME_NUMBER_BYTES) / 1e9,
                                    (double)be_get(p + 8, FRAME_NUMBER_BYTES) / 1e9,
                                    (double)be_get(p + 16, FRAME_NUMBER_BYTES) / 1e9,
                                    (double)be_get(p + 24, FRAME_NUMBER_BYTES) / 1e9};
    }
    return is_good;
}

static void
on_done(struct member *k, const struct frame *f, nsec_t now)
{
    nsec_t longest = longest_since(k->run->begin, now);
    uint64_t elapsed, is_local, steal = 0;
    if (k->state != MEMBER_RUNNING ||
        !frame_numbers(f, FIELD_DIGESTS, k->classes, k->digests) ||
        !frame_number(f, FIELD_ELAPSED, 0, UINT64_MAX, &elapsed) ||
        !frame_number(f, FIELD_START_ERROR, 0, longest, &k->start_error) ||
        !frame_number(f, FIELD_IS_LOCAL, 0, 1, &is_local) ||
        (frame_has(f, FIELD_STEAL) &&
         !frame_number(f, FIELD_STEAL, 0, STEAL_ALL, &steal)) ||
        !take_costs(k, f, longest)) {
        member_lose(k, "sent a result that makes no sense");
        return;
    }
    if (elapsed > longest) {
        member_lose(k, "sent a result of more time than there was");
        return;
    }
    k->elapsed_s = (double)elapsed / 1e9;
    k->is_local = is_local == 1;
    k->has_steal = frame_has(f, FIELD_STEAL);
    k->steal = (double)steal / STEAL_ALL;
    tell_notes(k, f);
    ledger_done(k->run->ledger, k->part);
    k->state = MEMBER_DONE;
}

static void
on_frame(struct member *k, const struct frame *f, nsec_t now)
{
    char why[MESSAGE_TEXT_MAX];
    k->heard_at = now;
    switch ((enum message)f->type) {
    case MESSAGE_STAMPS:
        on_stamps(k, f, now);
        break;
    case MESSAGE_READY:
        on_ready(k, f);
        break;
    case MESSAGE_DELTA:
        on_delta(k, f, now);
        break;
    case MESSAGE_SAMPLE:
        on_sample(k, f, now);
        break;
    case MESSAGE_DONE:
        on_done(k, f, now);
        break;
    case MESSAGE_REFUSED:
        k->has_refused = true;
        /* fall through */
    case MESSAGE_FAILED:
        member_lose(k, frame_text(f, FIELD_TEXT, why, sizeof why) ? why : "refuses");
        break;
    default:
        member_lose(k, "sent something else than was asked for");
        break;
    }
}

void
member_serve(struct member *k, short events)
{
    struct frame f;
    enum chan_next next;
    if (events != 0) {
        /* Failures show below, behind what came before them. */
        (void)(chan_flush(&k->chan) && chan_fill(&k->chan));
    }
    nsec_t now = clock_now(); /* not before what has just been read was sent */
    while (k->state != MEMBER_LOST && (next = chan_next(&k->chan, &f)) != CHAN_NONE) {
        if (next == CHAN_LOST) {
            member_lose(k, k->chan.error);
        } else {
            on_frame(k, &f, now);
        }
    }
    nsec_t silence = silence_of(k);
    if (k->state != MEMBER_LOST && now > k->heard_at + silence) {
        char why[MESSAGE_TEXT_MAX];
        snprintf(why, sizeof why, "has said nothing for %ju s",
                 (uintmax_t)(silence / NSEC_PER_SEC));
        member_lose(k, why);
    }
    if (k->state == MEMBER_LOST && k->chan.fd != -1) {
        chan_fini(&k->chan); /* an agent without a leader stops */
    }
}
