/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/classify.h"

#include "core/core.h"

uint8_t
classify_place(const struct class_rules *rules, const uint8_t *ip,
               enum req_class listener)
{
    enum req_class class = CLASS_NONE;
    if (rules->peer_count > 0 && ip != NULL) {
        class = class_rules_peer(rules, ip);
    }
    if (class == CLASS_NONE) {
        class = listener;
    }
    return class == CLASS_NONE ? 0 : (uint8_t)(1 + class);
}

/* For the session or for its key; CLASS_NONE: neither. */
static enum req_class
declared_class(const struct class_rules *rules, const struct session *s)
{
    if (s->declared != 0) {
        return (enum req_class)(s->declared - 1);
    }
    if (likely(rules->key_count == 0)) {
        return CLASS_NONE;
    }
    char decoded[REQ_KEY_MAX];
    struct slice key = session_key(s, decoded);
    return class_rules_key(rules, key.p, key.len);
}

enum req_class
classify_request(const struct core_shared *shared, const struct session *s,
                 bool *is_declared)
{
    const struct class_conf *conf = &shared->classes;
    struct session_facts facts = session_facts(s);
    enum req_class class = facts.is_control || !conf->is_on
                               ? CLASS_NONE
                               : declared_class(&shared->class_rules, s);
    *is_declared = class != CLASS_NONE;
    if (!*is_declared) {
        struct class_traits traits = {.is_control = facts.is_control,
                                      .is_write = facts.is_write,
                                      .keys = facts.keys,
                                      .value_bytes = facts.value_bytes,
                                      .is_incomplete = facts.is_incomplete};
        class = class_of(conf, &traits);
    }
    return class;
}

enum req_class
classify_account(struct core *k, const struct session *s, enum req_class class,
                 bool is_declared, enum session_ran ran, size_t bytes)
{
    bool is_done = ran == RAN_DONE && !s->is_open;
    if (class == CLASS_SMALL && !is_declared && bytes > k->shared->classes.bulk_bytes) {
        class = CLASS_BULK;
    }
    if (is_done) {
        bytes += s->req->family == FAMILY_STORE ? s->req->value_len : 0;
    }
    core_account(k, class, bytes, is_done);
    return class;
}
