/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/greet.h"

#include "base/be.h"
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
    enum greet status;
};

static bool
fail(struct greeting *g, enum greet status, const char *why)
{
    snprintf(g->err, g->err_len, "%s", why);
    g->status = status;
    return false;
}

static bool
keep(struct greeting *g, enum seal_side side, const uint8_t *p, size_t len)
{
    if (len > sizeof g->wire[side]) {
        return fail(g, GREET_FAILED, "too long a hello");
    }
    memcpy(g->wire[side], p, len);
    g->wire_len[side] = len;
    return true;
}

static bool
say_hello(struct greeting *g)
{
    struct chan *c = g->chan;
    struct message_hello *h = &g->hello[c->side];
    *h = (struct message_hello){.features = MESSAGE_FEATURES,
                                .shape = delta_shape(),
                                .is_open = g->key->len == 0};
    if (!seal_random(h->nonce, sizeof h->nonce)) {
        return fail(g, GREET_FAILED, "no random numbers from the kernel");
    }
    message_put_hello(chan_begin(c, MESSAGE_HELLO), h);
    return chan_send(c) ? keep(g, c->side, c->making.p, c->making.len)
                        : fail(g, GREET_FAILED, c->error);
}

static bool
await(struct greeting *g, struct frame *f)
{
    enum chan_next next = chan_await(g->chan, g->until, f);
    return next == CHAN_FRAME ||
           fail(g, GREET_FAILED, next == CHAN_NONE ? "does not answer" : g->chan->error);
}

static bool
hear_hello(struct greeting *g)
{
    struct frame f;
    enum seal_side other = g->chan->side == SEAL_LEADER ? SEAL_AGENT : SEAL_LEADER;
    if (!await(g, &f)) {
        return false;
    }
    const char *wrong = message_get_hello(&f, &g->hello[other]);
    if (wrong == NULL && g->hello[other].shape != delta_shape()) {
        wrong = "is another version of mcload";
    }
    return wrong == NULL ? keep(g, other, f.whole, f.whole_len)
                         : fail(g, GREET_FAILED, wrong);
}

static bool
prove(struct greeting *g, enum seal_side side, uint8_t proof[SEAL_PROOF])
{
    return seal_ops->prove(g->key, side, g->wire[SEAL_LEADER], g->wire_len[SEAL_LEADER],
                           g->wire[SEAL_AGENT], g->wire_len[SEAL_AGENT], proof) ||
           fail(g, GREET_FAILED, "this build has no authentication");
}

static bool
give_proof(struct greeting *g)
{
    uint8_t proof[SEAL_PROOF];
    if (!prove(g, g->chan->side, proof)) {
        return false;
    }
    frame_put_bytes(chan_begin(g->chan, MESSAGE_PROOF), FIELD_PROOF, proof, sizeof proof);
    return chan_send(g->chan) || fail(g, GREET_FAILED, g->chan->error);
}

static bool
take_proof(struct greeting *g, enum seal_side side)
{
    struct frame f;
    struct frame_field field;
    uint8_t proof[SEAL_PROOF];
    if (!await(g, &f)) {
        return false;
    }
    if (f.type == MESSAGE_REFUSED) {
        char why[MESSAGE_TEXT_MAX];
        return fail(g, GREET_FAILED,
                    frame_text(&f, FIELD_TEXT, why, sizeof why) ? why : "refuses");
    }
    if (f.type != MESSAGE_PROOF ||
        !frame_bytes(&f, FIELD_PROOF, SEAL_PROOF, SEAL_PROOF, &field)) {
        return fail(g, GREET_FAILED, "gives no proof of the key");
    }
    return prove(g, side, proof) && (seal_equals(proof, field.p, sizeof proof) ||
                                     fail(g, GREET_WRONG, "has another key"));
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

/* After the proofs, where there is a key. */
static enum greet
end(struct greeting *g)
{
    struct chan *c = g->chan;
    if (g->key->len > 0 && !seal_ops->open(&c->seal, g->key, g->hello[SEAL_LEADER].nonce,
                                           g->hello[SEAL_AGENT].nonce)) {
        fail(g, GREET_FAILED, "this build has no authentication");
        return g->status;
    }
    c->session = be_get(g->hello[SEAL_AGENT].nonce, FRAME_NUMBER_BYTES);
    c->features = c->side == SEAL_LEADER ? g->hello[SEAL_AGENT].features : c->features;
    c->max = FRAME_MAX;
    return GREET_GOOD;
}

enum greet
greet_leader(struct chan *c, const struct seal_key *key, char *err, size_t err_len)
{
    struct greeting g = begin(c, key, err, err_len);
    if (!say_hello(&g) || !hear_hello(&g)) {
        return g.status;
    }
    if (g.hello[SEAL_AGENT].is_open != (key->len == 0)) {
        fail(&g, GREET_FAILED, key->len == 0 ? "wants a key: --key-file" : "has no key");
        return g.status;
    }
    return key->len == 0 || (give_proof(&g) && take_proof(&g, SEAL_AGENT)) ? end(&g)
                                                                           : g.status;
}

enum greet
greet_agent(struct chan *c, const struct seal_key *key, char *err, size_t err_len)
{
    struct greeting g = begin(c, key, err, err_len);
    if (!hear_hello(&g) || !say_hello(&g)) {
        return g.status;
    }
    if (key->len == 0 && !g.hello[SEAL_LEADER].is_open) {
        fail(&g, GREET_FAILED, "the leader has a key, this agent has none");
        return g.status;
    }
    if (key->len == 0 || (take_proof(&g, SEAL_LEADER) && give_proof(&g))) {
        return end(&g);
    }
    if (g.status == GREET_WRONG) {
        frame_put_text(chan_begin(c, MESSAGE_REFUSED), FIELD_TEXT,
                       "refuses: that is not its key");
        (void)!chan_send(c); /* it is given up in any case */
    }
    return g.status;
}
