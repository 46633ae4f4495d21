/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/lset.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/alloc.h"
#include "config.h"

#define STOP_LOOK_MS 100
#define CONNECT_PAUSE_NS 1000000 /* while the listener's queue is full */

static bool
watch(struct lset *s, struct lconn *c, bool for_send)
{
    return s->conf.engine->watch(s, c, for_send);
}

static struct link_conf
link_conf_of(const struct lset *s, const struct lconn *c)
{
    return (struct link_conf){
        .target = c->target,
        .tls = s->conf.tls,
        .with_nodelay = s->conf.with_nodelay,
        .src_port = s->conf.src_port > 0 ? (uint16_t)(s->conf.src_port + c->index) : 0,
    };
}

/* Connected: the first request, when there is one, is sent at once, nothing may overtake it. */
static bool
greet(struct lset *s, struct lconn *c)
{
    size_t sent;
    c->state = LCONN_UP;
    c->full_since = 0;
    if (!watch(s, c, false) ||
        (c->stamps != NULL && !stamps_begin(c->stamps, c->link.fd, s->conf.stamps))) {
        return false;
    }
    lconn_greet(c);
    if (c->count == 0) {
        return true;
    }
    nsec_t now = lset_now(s);
    bool is_up = lset_flush(s, c, now, &sent);
    lconn_stamp(c, now);
    return is_up;
}

static int
ms_until(const struct lset *s, nsec_t when)
{
    nsec_t now = lset_now(s);
    nsec_t ms = now < when ? (when - now) / NSEC_PER_MSEC + 1 : 0;
    return ms < STOP_LOOK_MS ? (int)ms : STOP_LOOK_MS;
}

static bool
is_stopped(const struct lset *s)
{
    return s->conf.stop != NULL &&
           atomic_load_explicit(s->conf.stop, memory_order_relaxed);
}

static bool
connect_and_wait(struct lset *s, struct lconn *c, const char **why)
{
    struct link_conf conf = link_conf_of(s, c);
    const struct engine *e = s->conf.engine;
    nsec_t give_up = e->now() + s->conf.timeout;
    enum link_io io;
    while ((io = e->dial(&c->link, &conf, why)) == LINK_AGAIN && e->now() < give_up &&
           !is_stopped(s)) {
        nanosleep(&(struct timespec){0, CONNECT_PAUSE_NS}, NULL);
    }
    while (io == LINK_OK && (io = e->dial_on(&c->link, &conf, why)) == LINK_AGAIN) {
        struct pollfd p = {c->link.fd, c->link.wants_write ? POLLOUT : POLLIN, 0};
        int rc = poll(&p, 1, ms_until(s, give_up));
        if (rc < 0 && errno != EINTR) {
            *why = strerror(errno);
            return false;
        }
        if (is_stopped(s)) {
            return false;
        }
        if (rc == 0 && e->now() >= give_up) {
            *why = "timed out";
            return false;
        }
        io = LINK_OK;
    }
    if (io == LINK_OK && !greet(s, c)) {
        *why = strerror(errno);
        return false;
    }
    return io == LINK_OK;
}

/* NULL, or the sentence in err: an empty one when it was stopped, as the one that did that has
 * a better one. */
static const char *
connect_or_say(struct lset *s, struct lconn *c, char *err, size_t err_len)
{
    const char *why = "interrupted";
    char place[TARGET_PLACE_MAX];
    if (connect_and_wait(s, c, &why)) {
        return NULL;
    }
    err[0] = '\0';
    if (!is_stopped(s)) {
        snprintf(err, err_len, "cannot connect to %s: %s", target_place(c->target, place),
                 why);
    }
    return err;
}

/* Why requests to a server of datagrams cannot be that; NULL: they can. */
static const char *
wrong_in_datagrams(const struct lconn *c, const struct codec *codec)
{
    if (!codec->has_datagrams || c->auth != NULL) {
        return "datagrams carry ascii, meta and binary only, and no authentication";
    }
    if (c->keys_max > 1 && !codec->lists_keys) {
        return "a get of several keys is one request in ascii only, and a datagram "
               "carries one "
               "(--protocol=ascii, or one key each: --getcount=1, no scan)";
    }
    if (c->request_max > DGRAM_REQUEST_MAX) {
        return c->trace_buffer != NULL
                   ? "a trace is not sent in datagrams, which values may not fit into"
                   : "values do not fit into datagrams: smaller ones (-V), or "
                     "--transport=tcp";
    }
    return NULL;
}

static const char *
open_conn(struct lset *s, const struct target *t, unsigned server, char *err,
          size_t err_len)
{
    struct lconn_conf conf = {s->conf.codec,    t,
                              server,           s->conf.capacity,
                              s->conf.workload, s->get.len > 0 ? &s->get : NULL,
                              s->conf.auth,     s->conf.stamps != STAMPS_USER};
    struct lconn *c = &s->conns[s->count];
    lconn_init(c, &conf);
    c->index = s->count++;
    const char *wrong = c->is_framed ? wrong_in_datagrams(c, conf.codec) : NULL;
    if (wrong != NULL) {
        snprintf(err, err_len, "%s: %s", t->name, wrong);
        return err;
    }
    return connect_or_say(s, c, err, err_len);
}

static const char *
start_engine(struct lset *s, char *err, size_t err_len)
{
    const struct engine *e = s->conf.engine;
    for (unsigned i = 0; e->is_plain && i < s->conf.targets_len; i++) {
        if (s->conf.targets[i].transport == TRANSPORT_TLS ||
            s->conf.targets[i].transport == TRANSPORT_UDP) {
            snprintf(err, err_len, "%s: --engine=%s knows neither TLS nor UDP",
                     s->conf.targets[i].name, e->name);
            return err;
        }
    }
    for (unsigned i = 0; s->conf.stamps != STAMPS_USER && i < s->conf.targets_len; i++) {
        if (s->conf.targets[i].transport != TRANSPORT_TCP || e->is_plain) {
            snprintf(err, err_len,
                     "%s: --timestamps is for TCP, not for TLS, and for --engine=epoll",
                     s->conf.targets[i].name);
            return err;
        }
    }
    const char *why = e->open(s);
    if (why != NULL) {
        snprintf(err, err_len, "cannot set up connections: %s (--engine=%s)", why,
                 e->name);
        return err;
    }
    return NULL;
}

const char *
lset_open(struct lset *s, const struct lset_conf *conf, char *err, size_t err_len)
{
    *s = (struct lset){.conf = *conf, .room = conf->targets_len * conf->per_target};
    s->conns = alloc_zeroed(s->room, sizeof *s->conns);
    if (conf->workload->key_len > 0 && !conf->workload->conf.is_replay) {
        char key[WORKLOAD_KEY_MAX];
        size_t len = workload_put_key(conf->workload, 0, key);
        codec_stencil_init(&s->get, conf->codec, key, len);
    }
    if (start_engine(s, err, err_len) != NULL) {
        return err;
    }
    for (unsigned i = 0; i < conf->per_target; i++) {
        for (unsigned t = 0; t < conf->targets_len; t++) {
            const char *failed = open_conn(s, &conf->targets[t], t, err, err_len);
            if (failed != NULL) {
                return failed;
            }
        }
    }
    return NULL;
}

const char *
lset_renew(struct lset *s, bool all, char *err, size_t err_len)
{
    for (unsigned i = 0; i < s->count; i++) {
        struct lconn *c = &s->conns[i];
        if (!all && c->state == LCONN_UP && c->count == 0 && c->followups.count == 0) {
            continue;
        }
        lset_down(s, c);
        if (connect_or_say(s, c, err, err_len) != NULL) {
            return err;
        }
    }
    return NULL;
}

void
lset_close(struct lset *s)
{
    if (s->conf.engine != NULL) {
        s->conf.engine->close(s);
    }
    for (unsigned i = 0; i < s->count; i++) {
        lconn_fini(&s->conns[i]);
    }
    free(s->conns);
    s->conns = NULL;
    s->count = s->room = 0;
}

/* What a datagram comes to: nothing, unless it is all of a reply, or its last part. */
static enum lset_input
take_datagram(struct lset *s, struct lconn *c, struct lset_bytes *in)
{
    uint16_t id;
    if (!dgram_id(in->p, in->len, &id)) {
        return LSET_STRAY;
    }
    if (!lconn_choose(c, id)) {
        enum dgram_past past = dgram_past(&c->dgram, id);
        s->late += past == DGRAM_WAS_GIVEN_UP;
        s->duplicate += past == DGRAM_UNKNOWN;
        return LSET_STRAY;
    }
    switch (dgram_take(&c->dgram, in->p, in->len, &in->p, &in->len)) {
    case DGRAM_WHOLE:
        break;
    case DGRAM_BAD:
        in->len = 0; /* an empty reply is none: the request is over */
        dgram_remember(&c->dgram, id, DGRAM_WAS_REFUSED);
        break;
    case DGRAM_DUPLICATE:
        s->duplicate++;
        return LSET_STRAY;
    default:
        return LSET_STRAY;
    }
    c->is_answering = true;
    return LSET_DATA;
}

enum lset_input
lset_receive(struct lset *s, struct lconn *c, struct lset_bytes *in)
{
    enum lset_input input = s->conf.engine->receive(s, c, in);
    return likely(input != LSET_DATA || !c->is_framed) ? input : take_datagram(s, c, in);
}

bool
lset_flush(struct lset *s, struct lconn *c, nsec_t now, size_t *sent)
{
    const char *bytes;
    size_t n, len = lconn_output(c, &bytes);
    enum link_io io = LINK_OK;
    *sent = 0;
    lconn_begin_flush(c);
    while (io == LINK_OK && len > 0) {
        io = s->conf.engine->send(&c->link, bytes, len, &n);
        *sent += n;
        len = lconn_sent(c, n) ? lconn_output(c, &bytes) : 0;
    }
    lconn_end_flush(c, io == LINK_AGAIN ? now : 0);
    bool is_blocked = io == LINK_AGAIN && c->link.wants_write;
    return io != LINK_LOST &&
           (likely(is_blocked == c->is_watched_for_send) || watch(s, c, is_blocked));
}

void
lset_down(struct lset *s, struct lconn *c)
{
    if (c->link.fd != -1) {
        s->conf.engine->forget(s, c);
    }
    lconn_down(c);
}

void
lset_lose(struct lset *s, struct lconn *c, nsec_t now)
{
    lset_down(s, c);
    c->backoff = c->backoff == 0 ? LSET_BACKOFF_FIRST : c->backoff * 2;
    c->backoff = c->backoff > LSET_BACKOFF_LAST ? LSET_BACKOFF_LAST : c->backoff;
    c->retry_at = now + c->backoff;
}

/* A UNIX socket says at once that its listener's queue is full: one of TCP would wait. */
static bool
waits_for_listener(const struct lset *s, struct lconn *c, enum link_io io, nsec_t now)
{
    nsec_t since = c->full_since != 0 ? c->full_since : now;
    bool waits = io == LINK_AGAIN && now < since + s->conf.timeout;
    c->full_since = waits ? since : 0;
    return waits;
}

enum link_io
lset_reconnect(struct lset *s, struct lconn *c, nsec_t now)
{
    const char *why;
    struct link_conf conf = link_conf_of(s, c);
    enum link_io io = LINK_OK;
    if (c->state == LCONN_DOWN) {
        io = s->conf.engine->dial(&c->link, &conf, &why);
        if (waits_for_listener(s, c, io, now)) {
            c->retry_at = now + CONNECT_PAUSE_NS;
            return LINK_AGAIN;
        }
        c->state = LCONN_CONNECTING;
        c->retry_at = now + s->conf.timeout;
    }
    io = io == LINK_OK ? s->conf.engine->dial_on(&c->link, &conf, &why) : LINK_LOST;
    bool is_good = io == LINK_OK ? greet(s, c)
                                 : io == LINK_AGAIN && watch(s, c, c->link.wants_write);
    if (!is_good) {
        lset_lose(s, c, now);
    }
    return is_good ? LINK_OK : LINK_LOST;
}

/* ---- engine ------------------------------------------------------------------------ */

const struct engine *const engine_all[] = {
    &engine_epoll,
#if HAVE_URING
    &engine_uring,
#endif
    NULL,
};

const struct engine *
engine_find(const char *name)
{
    const struct engine *const *e = engine_all;
    while (*e != NULL && strcmp((*e)->name, name) != 0) {
        e++;
    }
    return *e;
}
