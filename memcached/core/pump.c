/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/pump.h"

#include "base/probe.h"
#include "core/classify.h"
#include "core/core.h"
#include "proto/ascii.h"
#include "serve/key_event.h"

#define KEYS_PER_RUN GETS_KEYS /* looked up between two looks at the clock */
#define REQUESTS_TIMED 8       /* small ones, likewise */

void
pump_init(struct pump *p, struct core *core, const struct work_type *type, uint64_t peer)
{
    p->work.type = type;
    p->work.peer = peer;
    p->out_most = PACE_OUT_MAX;
    p->way = PACE_PLAIN;
    session_init(&p->session);
    history_begin(&p->history, &core->peers, peer, core->now);
    pump_join(p, core);
}

void
pump_join(struct pump *p, struct core *core)
{
    p->core = core;
    p->has_budget = core->budget.bytes != 0;
}

void
pump_drop(struct pump *p)
{
    chain_clear(&p->out, &p->core->env.chain);
    budget_release(&p->core->budget, &p->share);
    buf_fini(&p->in, &p->core->pool);
}

static void
end_turn(struct pump *p, unsigned served, bool waits)
{
    p->served += served;
    history_end_turn(&p->history, served, waits);
}

void
pump_end_turn(struct pump *p, unsigned allowed, bool waits)
{
    end_turn(p, allowed - p->requests, waits);
}

/* ---- class ----------------------------------------------------------------------------- */

static bool
reads_keys(const struct core *k)
{
    return atomic_load_explicit(&k->shared->reads_keys, memory_order_relaxed);
}

/* The class of the request at the head, when it is new. What is said of most requests is known
 * without a look at them. */
static enum req_class
classify(struct pump *p)
{
    const struct core_shared *shared = p->core->shared;
    enum req_class class = CLASS_SMALL;
    if (likely(session_is_get(&p->session, shared->classes.bulk_keys) &&
               p->session.declared == 0 && !reads_keys(p->core))) {
        p->is_class_declared = false;
    } else {
        class = classify_request(shared, &p->session, &p->is_class_declared);
        if (unlikely(p->core->tenants.by == FAIR_PREFIX)) {
            tenants_note_key(p->core, &p->work, &p->session);
        }
    }
    p->history.class = (uint8_t) class;
    return class;
}

/* The request at the head has made so many bytes of output, and may be finished. What it turned out
 * to be tells what the next one will be like; while nothing else is ready, that does not matter. */
static void
account(struct pump *p, struct turn *turn, enum session_ran ran, size_t bytes)
{
    struct core *k = p->core;
    enum req_class class = (enum req_class)p->history.class;
    bool is_done = ran == RAN_DONE && !p->session.is_open;
    if (likely(is_done && class == CLASS_SMALL &&
               bytes <= k->shared->classes.bulk_bytes &&
               p->session.req->family != FAMILY_STORE)) {
        core_account(k, CLASS_SMALL, bytes, true);
    } else {
        class = classify_account(k, &p->session, class, p->is_class_declared, ran, bytes);
        p->history.class = (uint8_t) class;
    }
    turn->has_guest |= class_is_inline(class);
    latency_note(&k->latency, p, class, is_done);
    if (is_done) {
        history_note(&p->history, turn->is_alone ? CLASS_SMALL : class);
    }
}

/* ---- one request ----------------------------------------------------------------------- */

static enum pump_end
end_part(struct pump *p, struct turn *turn, enum session_ran ran)
{
    switch (ran) {
    case RAN_AGAIN:
        return queue_ends_piece(p->core, turn) ? PUMP_DEFER : PUMP_ON;
    case RAN_LONG:
        return queue_admits_long(turn) ? PUMP_ON : PUMP_DEFER;
    case RAN_LATE:
        p->history.class = CLASS_BULK;
        return PUMP_DEFER;
    case RAN_PARKED:
        latency_forget(&p->core->latency, p); /* what it takes is none of the worker's */
        coalesce_forget(p); /* no turn until it goes on: the owner sends what is held */
        return PUMP_PARKED;
    case RAN_BODY:
        return PUMP_ON;
    case RAN_WATCH:
        return PUMP_WATCH;
    case RAN_QUIT:
        return PUMP_QUIT;
    case RAN_CLOSE:
        return PUMP_CLOSE;
    case RAN_NO_MEMORY:
        return PUMP_ABORT;
    default:
        unreachable();
    }
}

static enum pump_end
end_run(struct pump *p, struct turn *turn, enum session_ran ran)
{
    if (unlikely(ran != RAN_DONE)) {
        return end_part(p, turn, ran);
    }
    bool goes_on = p->session.is_open; /* the line does: still one request */
    p->work.ticket.is_admitted = goes_on;
    p->requests -= !goes_on;
    return goes_on ? PUMP_ON : PUMP_DONE;
}

static struct facts
facts_of(const struct pump *p, enum req_class class)
{
    bool has_keys = p->session.req->family == FAMILY_RETRIEVE;
    return (struct facts){.ask = {.class = class,
                                  .keys = has_keys ? p->session.req->keys : 1,
                                  .peer = p->work.peer,
                                  .tenant = unlikely(p->core->tenants.is_on)
                                                ? tenants_of(p->core, &p->work, class)
                                                : 0},
                          .since = p->arrival.since};
}

/* Refusal of the rest of a read. What is to be dropped is dropped before work is put into it (Mogul
 * and Ramakrishnan 1997). Plain gets that came in one read have waited equally long, so the verdict
 * on the first holds for them, and they are skipped instead of parsed: the less refusing takes, the
 * more is served (core/coalesce.h has the formula). */
static void
refuse_rest(struct pump *p, enum req_class class)
{
    struct core *k = p->core;
    const struct core_shared *shared = k->shared;
    bool is_alike = class == CLASS_SMALL && !reads_keys(k) && !p->has_budget;
    if (!is_alike) {
        return;
    }
    uint32_t keys = p->session.declared == 0 ? shared->classes.bulk_keys : UINT32_MAX;
    unsigned n = session_refuse_gets(&p->session, &k->env, &p->in, &p->out, keys,
                                     admission_refuses_as_miss(k));
    slo_refuse(&k->admission.slo, class, n);
    while (n-- > 0) {
        PROBE(qos__shed, k->env.client_fd, class);
    }
}

/* Answers the request at the head without running it. */
static enum pump_end
refuse(struct pump *p, struct turn *turn, enum req_class class)
{
    struct core *k = p->core;
    size_t before = p->out.bytes;
    PROBE(qos__shed, k->env.client_fd, class);
    turn->has_run = true;
    turn->has_guest |= class_is_inline(class);
    latency_refuse(&k->latency, p, class);
    enum session_ran ran = session_refuse(&p->session, &k->env, &p->in, &p->out,
                                          admission_refuses_as_miss(k));
    enum pump_end end = end_run(p, turn, ran);
    if (end != PUMP_DONE) {
        return end;
    }
    if (k->admission.refuses_rest && p->answers_together) {
        refuse_rest(p, class);
        coalesce_note(p, before, class);
    }
    return PUMP_REFUSED;
}

static enum pump_end
ask(struct pump *p, struct turn *turn, enum req_class class)
{
    struct facts facts = facts_of(p, class);
    switch (admission_ask(p->core, &p->work.ticket, &facts, turn)) {
    case VERDICT_ADMIT:
        return PUMP_ON;
    case VERDICT_WAIT:
        PROBE(limiter__wait, p->core->env.client_fd, class);
        if (unlikely(p->core->tenants.is_on)) {
            tenants_name(p->core, &p->work, &p->work.ticket.wait.node);
        }
        return PUMP_WAIT;
    case VERDICT_REFUSE:
        return refuse(p, turn, class);
    }
    unreachable();
}

/* A new request is at the head: is it its turn, and is it admitted? */
static enum pump_end
admit(struct pump *p, struct turn *turn, enum req_class class)
{
    struct core *k = p->core;
    if (p->requests == 0) {
        return PUMP_DEFER;
    }
    /* Under a budget of replies -R alone tells how many a client may stack up, as upstream
     * has it: a turn that ends by time would send some and make room for more. */
    bool is_timed =
        turn->has_run && p->requests % REQUESTS_TIMED == 0 && likely(!p->has_budget);
    if (is_timed && (queue_is_turn_over(k, turn) || !pump_fits_piece(p, turn))) {
        return PUMP_DEFER; /* the worker's time is up, not this client's number */
    }
    if (likely(core_admits_most(k) && !p->work.ticket.is_refused)) {
        ctr_add(&k->admission.limits.ctr[class].admitted, class_is_limited(class));
    } else if (class_is_limited(class)) {
        enum pump_end end = ask(p, turn, class);
        if (end != PUMP_ON) {
            return end;
        }
    }
    turn->requests -= turn->requests > 0;
    p->work.ticket.is_admitted = true;
    return PUMP_ON;
}

/* As `execute`, under a budget. */
static enum pump_end
execute_in_budget(struct pump *p, struct turn *turn, const struct session_limits *limits)
{
    struct core *k = p->core;
    struct session *s = &p->session;
    uint32_t keys = s->req->keys;
    size_t bytes = p->out.bytes;
    bool is_retrieval = s->req->family == FAMILY_RETRIEVE && s->error == REPLY_NONE;
    enum session_ran ran = session_run(s, &k->env, &p->in, &p->out, limits);
    bytes = p->out.bytes - bytes;
    /* What is over and has said nothing (noreply, a quiet miss) leaves no reply that would be sent. */
    uint32_t replies = ran == RAN_DONE && bytes == 0 ? 0
                       : is_retrieval                ? keys - s->req->keys
                                                     : ran == RAN_DONE;
    account(p, turn, ran, bytes);
    bool is_good = budget_charge(&k->budget, &p->share, &k->pool, replies, bytes);
    if (!is_good && (ran == RAN_DONE || ran == RAN_AGAIN || ran == RAN_LATE)) {
        return PUMP_OVER;
    }
    return end_run(p, turn, ran);
}

static enum pump_end
execute(struct pump *p, struct turn *turn, const struct session_limits *limits)
{
    struct core *k = p->core;
    if (unlikely(p->has_budget)) {
        return execute_in_budget(p, turn, limits);
    }
    size_t bytes = p->out.bytes;
    PROBE(process__command__start, k->env.client_fd, buf_unread(&p->in),
          p->session.line_len);
    enum session_ran ran = session_run(&p->session, &k->env, &p->in, &p->out, limits);
    PROBE(process__command__end, k->env.client_fd, 0, p->out.bytes);
    account(p, turn, ran, p->out.bytes - bytes);
    return end_run(p, turn, ran);
}

/* The line is longer than the buffer: it was admitted with the keys that were seen then. */
static enum pump_end
execute_more_keys(struct pump *p, struct turn *turn, const struct session_limits *limits,
                  enum req_class class)
{
    struct limiter_request more = facts_of(p, class).ask;
    enum pump_end end = execute(p, turn, limits);
    if (end != PUMP_ABORT && more.keys > p->session.req->keys) {
        more.keys -= p->session.req->keys;
        limiter_owe(&p->core->admission.limits, &more, p->core->now);
    }
    return end;
}

/* A request that would be the next to run if it was deferred: nothing else waits, neither in a queue
 * nor at a socket, and its wait is not measured. So it may run where it was read. */
static bool
is_next_anyway(const struct core *k, const struct turn *turn)
{
    return turn->is_alone && !turn->has_run && k->queue.sched.length == 0 &&
           core_admits_most(k) && k->budget.bytes == 0 && k->latency.followed == NULL;
}

/* Of a text get: its reply is to be alone in the output, should it have to be taken back. */
static bool
is_at_start(const struct pump *p)
{
    const struct session *s = &p->session;
    return s->req->family == FAMILY_RETRIEVE && s->error == REPLY_NONE && !s->is_open &&
           s->item == NULL && p->share.produced == 0;
}

enum pump_end
pump_run(struct pump *p, struct turn *turn)
{
    enum req_class class;
    bool is_bulk = p->history.class == CLASS_BULK;
    if (unlikely(p->work.ticket.is_admitted)) {
        class = (enum req_class)p->history.class;
        turn->has_long |= p->session.is_long;
    } else {
        class = classify(p);
        enum pump_end end = admit(p, turn, class);
        if (unlikely(end != PUMP_ON)) {
            latency_note(&p->core->latency, p, class, false);
            return end;
        }
        p->share.produced = 0;
    }
    if (unlikely(p->has_budget) && is_at_start(p) && p->out.bytes > 0) {
        return PUMP_FLUSH;
    }
    bool is_next =
        class <= CLASS_WRITE && !p->is_class_declared && is_next_anyway(p->core, turn);
    if (unlikely(class > turn->lane) && pump_lane(p) > turn->lane && !is_next) {
        latency_note(&p->core->latency, p, class, false);
        return PUMP_DEFER;
    }
    /* What a get costs is known when its value is found. A large one goes on as bulk (multi-level
     * feedback, Corbato et al. 1962: what outruns the quantum of its level goes one level down): of
     * n that are ready at once a small request waits for n look-ups, not for n writes of 64 KiB. A
     * history foretells it only of clients that ask for nothing else. */
    bool may_be_late = class_is_inline(turn->lane) && !p->is_class_declared && !is_next;
    turn->has_run = true;
    p->core->env.owner = class_owner(class);
    struct session_limits limits = {
        .keys = KEYS_PER_RUN,
        .out_bytes = p->out_most,
        .late_bytes = may_be_late ? p->core->shared->classes.bulk_bytes : 0,
        .is_bulk = is_bulk};
    if (unlikely(p->session.is_open)) {
        return execute_more_keys(p, turn, &limits, class);
    }
    return execute(p, turn, &limits);
}

/* ---- plain requests -------------------------------------------------------------------- */

/* As admission_unasked. */
static unsigned
unasked(struct core *k, const struct turn *turn, unsigned most)
{
    return likely(turn->is_unbound) ? most : admission_unasked(k, most);
}

bool
pump_is_at_rest(const struct pump *p)
{
    return session_is_plain(&p->session) && p->in.mem == NULL && p->out.block == NULL &&
           !p->work.ticket.is_refused;
}

bool
pump_is_plain(const struct pump *p, struct turn *turn)
{
    struct core *k = p->core;
    turn->is_unbound = k->view.admits_most;
    bool is_of_lane =
        turn->lane == CLASS_BULK ? turn->is_unbound : p->history.class != CLASS_BULK;
    /* No policy delays, refuses or measures a small request, and no watcher wants to see it. */
    return is_of_lane && !k->view.sees_each && k->latency.followed == NULL &&
           unasked(k, turn, 1) > 0;
}

/* What may_set knows of a plain turn; not the turn itself, which so can be in registers. */
struct set_terms {
    const struct core *core;
    enum req_class lane;
    bool is_alone; /* and not bound */
};

/* What is_next_anyway asks more is known. */
static bool
may_set(const void *ctx)
{
    const struct set_terms *t = ctx;
    const struct core *k = t->core;
    bool is_next = t->is_alone && k->queue.sched.length == 0;
    return (is_next || t->lane >= CLASS_WRITE || !k->shared->classes.is_on) &&
           !watch_wants(k->env.log, KEY_EVENTS_OF_SET);
}

static void
account_plain(struct core *k, const struct turn *turn, enum req_class class,
              const struct plain_count *count)
{
    core_account(k, class, count->bytes, count->requests);
    if (likely(turn->is_unbound)) {
        ctr_add(&k->admission.limits.ctr[class].admitted, count->requests);
    } else {
        admission_pass(k, class, count->requests);
    }
}

/* Those of a turn have been served. */
static void
note_plain(struct pump *p, const struct turn *turn, const struct plain_served *served)
{
    struct core *k = p->core;
    p->history.class = CLASS_SMALL;
    if (likely(served->gets.requests > 0)) {
        account_plain(k, turn, CLASS_SMALL, &served->gets);
        history_note_many(&p->history, CLASS_SMALL, served->gets.requests);
    }
    if (served->sets.requests > 0) {
        enum req_class class = k->shared->classes.is_on ? CLASS_WRITE : CLASS_SMALL;
        account_plain(k, turn, class, &served->sets);
        history_note_many(&p->history, turn->lane, served->sets.requests);
        p->history.class = (uint8_t)(served->ends_with_set ? class : CLASS_SMALL);
    }
}

static void
end_plain(struct pump *p, struct turn *turn, const struct plain_served *served,
          size_t len)
{
    unsigned n = served->gets.requests + served->sets.requests;
    turn->has_run = n > 0 || served->is_open;
    turn->requests -= n + served->is_open;
    end_turn(p, n, served->consumed == len);
}

struct plain_served
pump_serve_plain(struct pump *p, struct pump_space *space, size_t len, struct turn *turn)
{
    struct core *k = p->core;
    const struct class_conf *classes = &k->shared->classes;
    size_t late = classes->bulk_bytes;
    struct set_terms terms = {k, turn->lane, turn->is_alone && turn->is_unbound};
    struct plain_limits limits = {
        .gets = {.requests = unasked(k, turn, turn->requests),
                 .keys = classes->bulk_keys,
                 .value_bytes = late < GETS_COPY_MAX ? late : GETS_COPY_MAX,
                 .line_bytes = classes->bulk_bytes},
        .may_set = may_set,
        .ctx = &terms};
    struct plain_served served =
        plain_serve(&k->env, space->in, len, space->out, sizeof space->out, &limits);
    turn->has_guest = served.gets.requests > 0;
    if (served.gets.requests + served.sets.requests > 0) {
        note_plain(p, turn, &served);
    }
    end_plain(p, turn, &served, len);
    return served;
}

/* A get of more keys than small ones have, as far as the turn's time goes. False: no other one is
 * begun. */
static bool
serve_line(struct core *k, struct turn *turn, const char *in, size_t len, char *to,
           size_t room, struct plain_served *served)
{
    struct gets_line line;
    enum gets_line_step step;
    if (!gets_line_begin(&line, &k->env, in, len, k->shared->classes.bulk_keys, to,
                         room)) {
        return false;
    }
    do {
        step = gets_line_step(&line);
        served->is_late = step != GETS_LINE_STUCK && queue_is_turn_over(k, turn);
    } while (step == GETS_LINE_MORE && !served->is_late);
    served->is_open = step != GETS_LINE_DONE && line.at > 0;
    served->consumed += (size_t)((step == GETS_LINE_DONE ? line.next : line.rest) - in);
    served->made += (size_t)(line.gets.to - to);
    served->gets.requests += step == GETS_LINE_DONE;
    return step == GETS_LINE_DONE && !served->is_late;
}

struct plain_served
pump_serve_lines(struct pump *p, struct pump_space *space, size_t len, struct turn *turn)
{
    struct core *k = p->core;
    struct plain_served served = {.consumed = 0};
    space->in[len] = '\n';
    while (served.consumed < len && served.gets.requests < turn->requests &&
           serve_line(k, turn, space->in + served.consumed, len - served.consumed,
                      space->out + served.made, sizeof space->out - served.made,
                      &served)) {
    }
    core_account(k, CLASS_BULK, served.made, served.gets.requests);
    admission_pass(k, CLASS_BULK, served.gets.requests + served.is_open);
    history_note_many(&p->history, CLASS_BULK, served.gets.requests);
    p->history.class = CLASS_BULK;
    p->work.ticket.is_admitted = served.is_open;
    p->is_class_declared = false;
    end_plain(p, turn, &served, len);
    return served;
}

bool
pump_take_back(struct pump *p)
{
    struct session *s = &p->session;
    struct env *env = &p->core->env;
    if (s->req->family != FAMILY_RETRIEVE || s->req->protocol == PROTOCOL_BINARY ||
        s->error != REPLY_NONE || p->out.bytes != p->share.produced) {
        return false;
    }
    chain_clear(&p->out, &env->chain);
    budget_release(&p->core->budget, &p->share);
    session_abandon(s, env, &p->in);
    p->work.ticket.is_admitted = false;
    return ascii_put_reply(&p->out, &env->chain, REPLY_NO_MEMORY_WRITING);
}

/* ---- reading --------------------------------------------------------------------------- */

/* In the queue of its lane, or of small requests for others' sake. */
static __attribute__((noinline)) bool
defer_read(struct pump *p, enum req_class lane)
{
    struct core *k = p->core;
    if (!k->shared->classes.is_on) {
        return false;
    }
    if (lane == CLASS_NONE) {
        if (!tenants_defer(k, &p->work)) {
            return false;
        }
        lane = CLASS_SMALL;
    }
    ctr_add(&k->ctr.trickle_waits, history_trickles(&p->history));
    queue_put(k, &p->work, lane);
    return true;
}

bool
pump_defers_read(struct pump *p)
{
    enum req_class lane = history_lane(&p->history, p->served);
    if (likely(lane == CLASS_NONE && !p->core->tenants.is_on)) {
        return false;
    }
    return defer_read(p, lane);
}

void
pump_charge_read(struct pump *p)
{
    struct core *k = p->core;
    uint64_t came = session_progress(&p->session, &p->in);
    ctr_add(&k->ctr.trickled, history_charge(&p->history, &k->peers, p->work.peer, came,
                                             p->served, k->now));
}

/* ---- writing --------------------------------------------------------------------------- */

size_t
pump_piece(const struct pump *p)
{
    const struct pace *pace = &p->core->queue.pace;
    return pace_piece(pace, p->way, pace_turn_ns(pace, p->core->now));
}

bool
pump_fits_another(const struct pump *p, const struct turn *turn)
{
    const struct core *k = p->core;
    if (turn->deadline == TURN_ENDLESS) {
        return true;
    }
    size_t piece = pump_piece(p);
    size_t bytes = p->out.bytes < piece ? p->out.bytes : piece;
    return k->now + pace_write_ns(&k->queue.pace, p->way, bytes) < turn->deadline;
}

bool
pump_ends_here(const struct pump *p, const struct turn *turn)
{
    const struct core *k = p->core;
    bool is_last = p->out.bytes <= PACE_PIECE_MIN || p->out.bytes <= pump_piece(p);
    return turn->is_alone && k->queue.sched.length == 0 && is_last;
}

bool
pump_fits_piece(struct pump *p, const struct turn *turn)
{
    if (turn->deadline != TURN_ENDLESS) {
        core_read_clock(p->core);
    }
    return pump_fits_another(p, turn);
}

bool
pump_leaves_output(struct pump *p, const struct turn *turn)
{
    return pace_leaves(turn->lane, p->out.bytes) && !pump_fits_piece(p, turn);
}

void
pump_sent(struct pump *p, size_t bytes)
{
    chain_consume(&p->out, &p->core->env.chain, bytes);
    p->coalesced.bytes = 0;
    coalesce_forget(p);
    if (unlikely(p->share.replies != 0) && p->out.bytes == 0) {
        budget_release(&p->core->budget, &p->share);
    }
}
