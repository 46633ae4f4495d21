/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/greet.h"

#include <stdio.h>
#include <string.h>

#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

/* Both hellos as they were on the wire, for the proofs. */
struct greeting {
    struct chan *chan;
    const struct seal_key *key;
    nsec_t until;
    struct message_hello hello[SEAL_SIDES];
    uint8_t wire[SEAL_SIDES][MESSAGE_HELLO_MAX];
    size_t wire_len[SEAL_SIDES];
    char *err;
    size_t err_len;
};

static enum greet
fail(struct greeting *g, const char *why)
{
    snprintf(g->err, g->err_len, "%s", why);
    return GREET_FAILED;
}

static bool
keep(struct greeting *g, enum seal_side side, const uint8_t *p, size_t len)
{
    if (len > sizeof g->wire[side]) {
        return false;
    }
    memcpy(g->wire[side], p, len);
    g->wire_len[side] = len;
    return true;
}

static enum greet
say_hello(struct greeting *g)
{
    struct chan *c = g->chan;
    struct message_hello *h = &g->hello[c->side];
    *h = (struct message_hello){.features = MESSAGE_FEATURES,
                                .shape = delta_shape(),
                                .is_open = g->key->len == 0};
    if (!seal_random(h->nonce, sizeof h->nonce)) {
        return fail(g, "no random numbers from the kernel");
    }
    message_put_hello(chan_begin(c, MESSAGE_HELLO), h);
    if (!chan_send(c)) {
        return fail(g, c->error);
    }
    return keep(g, c->side, c->making.p, c->making.len) ? GREET_GOOD
                                                        : fail(g, "too long a hello");
}

static enum greet
await(struct greeting *g, struct frame *f)
{
    switch (chan_await(g->chan, g->until, f)) {
    case CHAN_FRAME:
        return GREET_GOOD;
    case CHAN_NONE:
        return fail(g, "does not answer");
    case CHAN_LOST:
        break;
    }
    return fail(g, g->chan->error);
}

static enum greet
hear_hello(struct greeting *g)
{
    struct frame f;
    struct chan *c = g->chan;
    enum seal_side other = c->side == SEAL_LEADER ? SEAL_AGENT : SEAL_LEADER;
    enum greet status = await(g, &f);
    if (status != GREET_GOOD) {
        return status;
    }
    const char *wrong = message_get_hello(&f, &g->hello[other]);
    if (wrong != NULL) {
        return fail(g, wrong);
    }
    if (g->hello[other].shape != delta_shape()) {
        return fail(g, "is another version of mcload");
    }
    return keep(g, other, f.whole, f.whole_len) ? GREET_GOOD
                                                : fail(g, "too long a hello");
}

static bool
prove(struct greeting *g, enum seal_side side, uint8_t proof[SEAL_PROOF])
{
    return seal_prove(g->key, side, g->wire[SEAL_LEADER], g->wire_len[SEAL_LEADER],
                      g->wire[SEAL_AGENT], g->wire_len[SEAL_AGENT], proof);
}

static enum greet
give_proof(struct greeting *g)
{
    uint8_t proof[SEAL_PROOF];
    if (!prove(g, g->chan->side, proof)) {
        return fail(g, "this build has no authentication");
    }
    frame_put_bytes(chan_begin(g->chan, MESSAGE_PROOF), FIELD_PROOF, proof, sizeof proof);
    return chan_send(g->chan) ? GREET_GOOD : fail(g, g->chan->error);
}

static enum greet
take_proof(struct greeting *g, enum seal_side side)
{
    struct frame f;
    struct frame_field field;
    uint8_t proof[SEAL_PROOF];
    enum greet status = await(g, &f);
    if (status != GREET_GOOD) {
        return status;
    }
    if (f.type == MESSAGE_REFUSED) {
        char why[MESSAGE_TEXT_MAX];
        return fail(g, frame_text(&f, FIELD_TEXT, why, sizeof why) ? why : "refuses");
    }
    if (f.type != MESSAGE_PROOF ||
        !frame_bytes(&f, FIELD_PROOF, SEAL_PROOF, SEAL_PROOF, &field)) {
        return fail(g, "gives no proof of the key");
    }
    if (!prove(g, side, proof)) {
        return fail(g, "this build has no authentication");
    }
    if (!seal_equals(proof, field.p, sizeof proof)) {
        fail(g, "has another key");
        return GREET_WRONG;
    }
    return GREET_GOOD;
}

static enum greet
seal_all(struct greeting *g)
{
    return seal_open(&g->chan->seal, g->key, g->hello[SEAL_LEADER].nonce,
                     g->hello[SEAL_AGENT].nonce)
               ? GREET_GOOD
               : fail(g, "this build has no authentication");
}

static void
refuse(struct chan *c, const char *why)
{
    frame_put_text(chan_begin(c, MESSAGE_REFUSED), FIELD_TEXT, why);
    (void)!chan_send(c); /* it is given up in any case */
}

static struct greeting
begin(struct chan *c, const struct seal_key *key, char *err, size_t err_len)
{
    c->max = MESSAGE_HELLO_MAX;
    return (struct greeting){
        .chan = c,
        .key = key,
        .until = clock_now() + GREET_TIME,
        .err = err,
        .err_len = err_len,
    };
}

enum greet
greet_leader(struct chan *c, const struct seal_key *key, char *err, size_t err_len)
{
    struct greeting g = begin(c, key, err, err_len);
    enum greet status = say_hello(&g);
    status = status == GREET_GOOD ? hear_hello(&g) : status;
    if (status != GREET_GOOD) {
        return status;
    }
    if (g.hello[SEAL_AGENT].is_open != (key->len == 0)) {
        return fail(&g, key->len == 0 ? "wants a key: --key-file" : "has no key");
    }
    if (key->len > 0) {
        status = give_proof(&g);
        status = status == GREET_GOOD ? take_proof(&g, SEAL_AGENT) : status;
        status = status == GREET_GOOD ? seal_all(&g) : status;
    }
    if (status == GREET_GOOD) {
        c->session = frame_get_u64(g.hello[SEAL_AGENT].nonce);
        c->features = g.hello[SEAL_AGENT].features;
        c->max = FRAME_MAX;
    }
    return status;
}

enum greet
greet_agent(struct chan *c, const struct seal_key *key, char *err, size_t err_len)
{
    struct greeting g = begin(c, key, err, err_len);
    enum greet status = hear_hello(&g);
    status = status == GREET_GOOD ? say_hello(&g) : status;
    if (status != GREET_GOOD) {
        return status;
    }
    if (key->len > 0) {
        status = take_proof(&g, SEAL_LEADER);
        if (status == GREET_WRONG) {
            refuse(c, "refuses: that is not its key");
        }
        status = status == GREET_GOOD ? give_proof(&g) : status;
        status = status == GREET_GOOD ? seal_all(&g) : status;
    } else if (!g.hello[SEAL_LEADER].is_open) {
        return fail(&g, "the leader has a key, this agent has none");
    }
    if (status == GREET_GOOD) {
        c->session = frame_get_u64(g.hello[SEAL_AGENT].nonce);
        c->max = FRAME_MAX;
    }
    return status;
}
