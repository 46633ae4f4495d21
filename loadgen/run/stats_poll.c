/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/stats_poll.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <unistd.h>

#include "base/alloc.h"

#define REPLY_MAX 65536
/* A server that takes longer is lost. An observer has said what it heard before a leader gives it up. */
#define CONNECT_MS 1000
#define ANSWER_MS 5000
#define LOOK_MS 100

struct stats_poll_conn {
    int fd; /* below 0: lost */
    bool is_asked;
    nsec_t asked;
    size_t len;
    char reply[REPLY_MAX];
};

static void
shut(struct stats_poll_conn *c)
{
    if (c->fd >= 0) {
        close(c->fd);
    }
    c->fd = -1;
    c->is_asked = false;
}

/* Of settings a server may be silent. */
static void
lose(struct stats_poll *q, unsigned i, const char *why)
{
    if (q->err != NULL && !q->asks_settings) {
        fprintf(q->err, "mcload: no more stats of %s: %s\n", q->targets[i].name, why);
    }
    shut(&q->conns[i]);
}

/* Else errno says why. */
static bool
connect_one(const struct stats_poll *q, unsigned i)
{
    struct stats_poll_conn *c = &q->conns[i];
    c->fd = target_connect(&q->targets[i], clock_now() + CONNECT_MS * NSEC_PER_MSEC);
    return c->fd >= 0;
}

static bool
can_be_asked(const struct target *t)
{
    return t->transport == TRANSPORT_TCP || t->transport == TRANSPORT_UNIX;
}

static enum exit_status
connect_all(struct stats_poll *q, unsigned len)
{
    q->conns = alloc_zeroed(len, sizeof *q->conns);
    for (; q->len < len; q->len++) {
        if (!connect_one(q, q->len)) {
            char place[TARGET_PLACE_MAX];
            return options_fail(
                q->err, EXIT_UNREACHABLE, "cannot connect to %s for its stats: %s",
                target_place(&q->targets[q->len], place), strerror(errno));
        }
    }
    return EXIT_VALID;
}

enum exit_status
stats_poll_open(struct stats_poll *q, const struct options *o,
                const struct target *targets, FILE *err)
{
    *q = (struct stats_poll){
        .targets = targets, .length = clock_seconds(o->server_stats_s), .err = err};
    for (unsigned i = 0; q->length > 0 && i < o->servers_len; i++) {
        if (!can_be_asked(&targets[i])) {
            return options_fail(err, EXIT_USAGE,
                                "--server-stats asks over TCP and UNIX sockets only");
        }
    }
    return q->length > 0 ? connect_all(q, o->servers_len) : EXIT_VALID;
}

static void
disconnect_all(struct stats_poll *q)
{
    for (unsigned i = 0; i < q->len; i++) {
        shut(&q->conns[i]);
    }
    free(q->conns);
    q->conns = NULL;
    q->len = 0;
}

void
stats_poll_fini(struct stats_poll *q)
{
    disconnect_all(q);
    server_stats_destroy(&q->stats);
    server_settings_release(&q->settings);
    *q = (struct stats_poll){.conns = NULL};
}

static void
ask(struct stats_poll *q, nsec_t now)
{
    const char *request = q->asks_settings ? SERVER_SETTINGS_REQUEST : "stats\r\n";
    ssize_t len = (ssize_t)strlen(request);
    for (unsigned i = 0; i < q->len; i++) {
        struct stats_poll_conn *c = &q->conns[i];
        if (c->fd < 0 || c->is_asked) {
            continue;
        }
        c->is_asked = send(c->fd, request, (size_t)len, MSG_NOSIGNAL) == len;
        c->asked = now;
        c->len = 0;
        if (!c->is_asked) {
            lose(q, i, "the connection is lost");
        }
    }
}

/* Whether the reply is whole. It is kept then. */
static bool
keep(struct stats_poll *q, unsigned i)
{
    struct stats_poll_conn *c = &q->conns[i];
    struct server_sample sample = {
        .server = i,
        .at_s = c->asked > q->start ? (double)(c->asked - q->start) / 1e9 : 0,
    };
    if (q->asks_settings) {
        return server_settings_take(q->settings, i, c->reply, c->len);
    }
    if (!server_sample_parse(&sample, c->reply, c->len)) {
        return false;
    }
    server_stats_add(q->stats, &sample);
    return true;
}

/* Takes what has come. Whether replies are still on the way; what a server that is lost may still
 * say would be taken for another reply: its connection is closed. */
static bool
take(struct stats_poll *q, nsec_t now)
{
    bool is_waiting = false;
    for (unsigned i = 0; i < q->len; i++) {
        struct stats_poll_conn *c = &q->conns[i];
        ssize_t n = 1;
        while (c->is_asked && n > 0) {
            n = recv(c->fd, c->reply + c->len, sizeof c->reply - c->len, 0);
            c->len += n > 0 ? (size_t)n : 0;
            c->is_asked = n <= 0 || !keep(q, i);
        }
        if (c->is_asked && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
            lose(q, i,
                 c->len == sizeof c->reply ? "the reply is too long"
                                           : "the connection is lost");
        } else if (c->is_asked && now > c->asked + ANSWER_MS * NSEC_PER_MSEC) {
            lose(q, i, "no answer");
        }
        is_waiting = is_waiting || c->is_asked;
    }
    return is_waiting;
}

void
stats_poll_start(struct stats_poll *q, nsec_t start, nsec_t end)
{
    if (q->conns == NULL) {
        return;
    }
    server_stats_destroy(&q->stats);
    q->stats = server_stats_create(q->len);
    q->stats->evictions = q->evictions;
    q->stats->end_s = (double)(end - start) / 1e9;
    q->start = q->next = start;
    q->end = end;
}

nsec_t
stats_poll_next(const struct stats_poll *q)
{
    return q->conns != NULL ? q->next : STATS_POLL_NEVER;
}

void
stats_poll_look(struct stats_poll *q, nsec_t now)
{
    if (q->conns == NULL) {
        return;
    }
    take(q, now);
    if (now >= q->next && now < q->end) {
        ask(q, now);
        while (q->next <= now) {
            q->next += q->length;
        }
    }
}

/* Waits for all replies. */
static void
await(struct stats_poll *q)
{
    while (take(q, clock_now())) {
        struct pollfd p = {.fd = -1, .events = POLLIN};
        for (unsigned i = 0; i < q->len; i++) {
            p.fd = q->conns[i].is_asked ? q->conns[i].fd : p.fd;
        }
        int rc = poll(&p, 1, LOOK_MS);
        must(rc >= 0 || errno == EINTR || errno == ENOMEM);
    }
}

static void
ask_once(struct stats_poll *q)
{
    ask(q, clock_now());
    await(q);
}

void
stats_poll_end(struct stats_poll *q)
{
    nsec_t now = clock_now();
    if (q->stats != NULL && now < q->end) { /* it was ended early */
        q->stats->end_s = now > q->start ? (double)(now - q->start) / 1e9 : 0;
    }
    take(q, now);
    ask_once(q); /* but those that were asked just before, and have not answered yet */
}

/* ---- evictions ------------------------------------------------------------------------- */

void
stats_poll_load_begins(struct stats_poll *q)
{
    nsec_t now = clock_now();
    stats_poll_start(q, now, now);
    ask_once(q);
}

void
stats_poll_load_ends(struct stats_poll *q)
{
    if (q->conns == NULL) {
        return;
    }
    ask_once(q);
    struct server_change change = server_stats_change(q->stats);
    q->evictions.knows_loading =
        change.servers == q->len && server_stats_has(change.reported, STAT_EVICTIONS);
    q->evictions.loading =
        fmax(0, change.after[STAT_EVICTIONS] - change.before[STAT_EVICTIONS]);
}

/* Connects to those that can be asked and are there. Whether all are. */
static bool
connect_some(struct stats_poll *q, unsigned len)
{
    bool are_all = true;
    for (; q->len < len; q->len++) {
        q->conns[q->len].fd = -1;
        are_all = can_be_asked(&q->targets[q->len]) && connect_one(q, q->len) && are_all;
    }
    return are_all;
}

struct server_evictions
stats_poll_evictions(const struct options *o, const struct target *targets)
{
    struct server_evictions e = {.is_known = false};
    struct stats_poll q = {.targets = targets};
    q.conns = alloc_zeroed(o->servers_len, sizeof *q.conns);
    if (options_have_stats(o) && connect_some(&q, o->servers_len)) {
        stats_poll_load_begins(&q);
        e = server_stats_evictions(q.stats);
    }
    stats_poll_fini(&q);
    return e;
}

struct server_stats *
stats_poll_take(struct stats_poll *q)
{
    struct server_stats *stats = q->stats;
    q->stats = NULL;
    return stats;
}

/* ---- version and settings -------------------------------------------------------------- */

void
stats_poll_learn(struct stats_poll *q, const struct options *o)
{
    bool samples = q->conns != NULL;
    if ((!samples && !o->shows_env) || !options_have_stats(o)) {
        return;
    }
    q->settings = server_settings_create(o->servers_len);
    q->conns = samples ? q->conns : alloc_zeroed(o->servers_len, sizeof *q->conns);
    (void)connect_some(q, o->servers_len);
    q->asks_settings = true;
    ask_once(q);
    q->asks_settings = false;
    if (!samples) {
        disconnect_all(q);
    }
    for (unsigned i = 0; i < q->len; i++) {
        if (q->conns[i].fd < 0 && !connect_one(q, i)) {
            lose(q, i, strerror(errno));
        }
    }
}

struct server_settings *
stats_poll_settings(const struct stats_poll *q)
{
    return server_settings_get(q->settings);
}
