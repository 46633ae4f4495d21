/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_class.h"

uint8_t
conn_class_of_place(const struct worker *w, const struct handoff *handoff)
{
    uint8_t ip[ADDR_IP_BYTES];
    const struct class_rules *rules = &w->shared->class_rules;
    enum req_class class = CLASS_NONE;
    if (rules->peer_count > 0 && addr_ip(&handoff->peer, ip)) {
        class = class_rules_peer(rules, ip);
    }
    if (class == CLASS_NONE) {
        class = handoff->declared;
    }
    return class == CLASS_NONE ? 0 : (uint8_t)(1 + class);
}

/* The class that was declared, for the connection or for its key; CLASS_NONE: neither. */
static enum req_class
declared_class(const struct conn *c)
{
    const struct class_rules *rules = &c->worker->shared->class_rules;
    if (c->session.declared != 0) {
        return (enum req_class)(c->session.declared - 1);
    }
    if (likely(rules->key_count == 0)) {
        return CLASS_NONE;
    }
    struct slice key = session_key(&c->session);
    return class_rules_key(rules, key.p, key.len);
}

enum req_class
conn_judge(struct conn *c)
{
    const struct class_conf *conf = &c->worker->shared->classes;
    struct session_facts facts = session_facts(&c->session);
    enum req_class class =
        facts.is_control || !conf->is_on ? CLASS_NONE : declared_class(c);
    c->is_class_told = class != CLASS_NONE;
    if (!c->is_class_told) {
        struct class_traits traits = {.is_control = facts.is_control,
                                      .is_write = facts.is_write,
                                      .keys = facts.keys,
                                      .value_bytes = facts.value_bytes,
                                      .is_incomplete = facts.is_incomplete};
        class = class_of(conf, &traits);
    }
    return class;
}

/* What the request at the head turned out to be tells what the connection's next one will be
 * like. */
void
conn_account_other(struct conn *c, enum session_ran ran, size_t bytes)
{
    const struct session *s = &c->session;
    bool is_done = ran == RAN_DONE && !s->is_open;
    if (c->habit.class == CLASS_SMALL && !c->is_class_told &&
        bytes > c->worker->shared->classes.bulk_bytes) {
        c->habit.class = CLASS_BULK;
    }
    enum req_class class = (enum req_class)c->habit.class;
    if (is_done) {
        habit_note(&c->habit, class);
        bytes += s->req.family == FAMILY_STORE ? s->req.value_len : 0;
    }
    worker_account(c->worker, class, bytes, is_done);
}
