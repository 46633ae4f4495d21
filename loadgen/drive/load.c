/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/load.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/wire/shard.h"

#define LOAD_WAIT_MS 100

struct load {
    struct lset *set;
    const struct workload *w;
    struct load_slice slice;
    uint64_t *next; /* key to send next, each server */
    struct tally *tally;
    struct cap *cap; /* NULL: none */
    uint64_t moved_requests, moved_bytes;
    uint64_t left; /* answers to come */
    nsec_t last_answer;
    char *err;
    size_t err_len;
};

struct load_slice
load_slice_of(uint64_t records, unsigned index, unsigned threads)
{
    must(index < threads);
    uint64_t share = records / threads;
    uint64_t extra = records % threads; /* one more for each of the first threads */
    uint64_t first = index * share + (index < extra ? index : extra);
    return (struct load_slice){first, first + share + (index < extra ? 1 : 0)};
}

static const char *
lost(struct load *l, const struct lconn *c)
{
    snprintf(l->err, l->err_len, "loading: %s closed the connection", c->target->name);
    return l->err;
}

/* Keys of other servers are theirs to store; false when no more is left for this one. */
static bool
skip_others(struct load *l, const struct lconn *c)
{
    char key[WORKLOAD_KEY_MAX];
    const struct shard *shard = l->set->conf.shard;
    uint64_t *next = &l->next[c->server];
    while (shard != NULL && *next < l->slice.end &&
           shard_of(shard, key, workload_put_key(l->w, *next, key)) != c->server) {
        ++*next;
    }
    return *next < l->slice.end;
}

static const char *
send_more(struct load *l, struct lconn *c)
{
    size_t sent;
    uint64_t *next = &l->next[c->server];
    while (skip_others(l, c) && lconn_has_room(c, LOAD_DEPTH)) {
        lconn_push(c, l->w,
                   &(struct lconn_request){.verb = CODEC_SET, .keys = next, .count = 1});
        ++*next;
        l->moved_requests++;
    }
    bool is_up = lset_flush(l->set, c, clock_now(), &sent);
    l->moved_bytes += sent;
    return is_up ? NULL : lost(l, c);
}

/* With what else the server's line says, where it is one. */
static const char *
refused(struct load *l, const struct lconn *c, const struct lconn_done *done,
        const char *reply)
{
    bool is_reply = done->outcome != LCONN_BROKEN && done->outcome != LCONN_GARBLED;
    const char *kind =
        is_reply ? client_kind_name(done->kind) : "something that is no reply";
    size_t len = strlen(kind), more = 0;
    if (is_reply && done->taken > len && memcmp(reply, kind, len) == 0) {
        while (len + more < done->taken && isprint((unsigned char)reply[len + more])) {
            more++;
        }
    }
    snprintf(l->err, l->err_len, "loading: %s answered %s%.*s instead of STORED",
             c->target->name, kind, (int)more, reply + len);
    return l->err;
}

static const char *
receive(struct load *l, struct lconn *c)
{
    struct lset_bytes in;
    enum lset_input input = lset_receive(l->set, c, &in);
    if (input != LSET_DATA) {
        return input == LSET_LOST ? lost(l, c) : NULL;
    }
    struct lconn_done done;
    l->moved_bytes += in.len;
    for (size_t at = 0;; at += done.taken) {
        lconn_parse(c, l->w, in.p + at, in.len - at, &done);
        if (done.outcome == LCONN_MORE) {
            return NULL;
        }
        if (done.outcome != LCONN_GOOD) {
            return refused(l, c, &done, in.p + at);
        }
        ctr_add(&l->tally->loaded, 1);
        l->left--;
        l->last_answer = clock_now();
    }
}

/* While it does nothing, nothing is late. */
static void
hold(struct load *l, nsec_t end)
{
    if (l->cap != NULL) {
        nsec_t before = clock_now();
        l->last_answer +=
            cap_hold(l->cap, l->moved_requests, l->moved_bytes, end, NULL) - before;
        l->moved_requests = l->moved_bytes = 0;
    }
}

static const char *
load_loop(struct load *l)
{
    const char *failed = NULL;
    for (unsigned i = 0; failed == NULL && i < l->set->count; i++) {
        failed = send_more(l, &l->set->conns[i]);
    }
    while (failed == NULL && l->left > 0) {
        hold(l, UINT64_MAX);
        unsigned n = lset_wait(l->set, LOAD_WAIT_MS);
        for (unsigned i = 0; failed == NULL && i < n; i++) {
            unsigned can;
            struct lconn *c = lset_event(l->set, i, &can);
            if (c != NULL && (can & LSET_CAN_RECEIVE) != 0) {
                failed = receive(l, c);
            }
            if (c != NULL && failed == NULL) {
                failed = send_more(l, c);
            }
        }
        if (failed == NULL && l->set->conf.stop != NULL &&
            atomic_load_explicit(l->set->conf.stop, memory_order_relaxed)) {
            failed = "interrupted";
        }
        if (failed == NULL && clock_now() > l->last_answer + l->set->conf.timeout) {
            snprintf(l->err, l->err_len, "loading: no answer in time, %ju records left",
                     (uintmax_t)l->left);
            failed = l->err;
        }
    }
    hold(l, 0); /* books the rest */
    return failed;
}

const char *
load_run(struct lset *s, struct load_slice slice, struct cap *cap, struct tally *tally,
         char *err, size_t err_len)
{
    struct load l = {
        .set = s,
        .w = s->conf.workload,
        .slice = slice,
        .tally = tally,
        .cap = cap,
        .left =
            (slice.end - slice.first) * (s->conf.shard != NULL ? 1 : s->conf.targets_len),
        .last_answer = clock_now(),
        .err = err,
        .err_len = err_len,
    };
    must(s->conf.capacity >= LOAD_DEPTH);
    l.next = calloc(s->conf.targets_len, sizeof *l.next);
    if (l.next == NULL) {
        snprintf(err, err_len, "out of memory");
        return err;
    }
    for (unsigned i = 0; i < s->conf.targets_len; i++) {
        l.next[i] = slice.first;
    }
    const char *failed = load_loop(&l);
    free(l.next);
    return failed;
}
