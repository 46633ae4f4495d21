/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/class_rules.h"

#include "base/part.h"

/* What is wrong with a rule, or NULL. */
static const char *
add_peer(struct class_rules *r, const char *what, size_t len, enum req_class class)
{
    struct ipnet net;
    if (!ipnet_parse(&net, what, len)) {
        return "class-rule: not a network like 10.0.0.0/8 or fd00::/8";
    }
    unsigned at = 0;
    while (at < r->peer_count && r->peers[at].net.bits >= net.bits) {
        if (ipnet_equals(&r->peers[at].net, &net)) {
            return "class-rule: there is another rule for this network";
        }
        at++;
    }
    if (r->peer_count == CLASS_RULES_MAX) {
        return "class-rule: more than 64 rules for peers";
    }
    memmove(&r->peers[at + 1], &r->peers[at], (r->peer_count - at) * sizeof r->peers[0]);
    r->peers[at] = (struct class_peer_rule){net, class};
    r->peer_count++;
    return NULL;
}

static const char *
add_key(struct class_rules *r, const char *what, size_t len, enum req_class class)
{
    if (len == 0 || len > CLASS_PREFIX_MAX) {
        return "class-rule: a key's prefix has 1 to 250 bytes";
    }
    unsigned at = 0;
    while (at < r->key_count && r->keys[at].len >= len) {
        if (r->keys[at].len == len && memcmp(r->keys[at].prefix, what, len) == 0) {
            return "class-rule: there is another rule for this prefix";
        }
        at++;
    }
    if (r->key_count == CLASS_RULES_MAX) {
        return "class-rule: more than 64 rules for keys";
    }
    memmove(&r->keys[at + 1], &r->keys[at], (r->key_count - at) * sizeof r->keys[0]);
    struct class_key_rule *rule = &r->keys[at];
    memcpy(rule->prefix, what, len);
    rule->len = (uint8_t)len;
    rule->class = class;
    r->key_count++;
    return NULL;
}

const char *
class_rules_add(void *to, const char *text)
{
    struct class_rules *r = to;
    const char *equals = strrchr(text, '=');
    if (equals == NULL) {
        return "class-rule must be peer:NETWORK=CLASS or key:PREFIX=CLASS";
    }
    enum req_class class = class_by_declared_name(equals + 1, strlen(equals + 1));
    if (class == CLASS_NONE) {
        return "class-rule: the class must be small, write, bulk or background";
    }
    const char *peer = part_after(text, "peer:"), *key = part_after(text, "key:");
    if (peer != NULL) {
        return add_peer(r, peer, (size_t)(equals - peer), class);
    }
    if (key != NULL) {
        return add_key(r, key, (size_t)(equals - key), class);
    }
    return "class-rule must be peer:NETWORK=CLASS or key:PREFIX=CLASS";
}

enum req_class
class_rules_peer(const struct class_rules *r, const uint8_t ip[IPNET_BYTES])
{
    for (unsigned i = 0; i < r->peer_count; i++) {
        if (ipnet_has(&r->peers[i].net, ip)) {
            return r->peers[i].class;
        }
    }
    return CLASS_NONE;
}

enum req_class
class_rules_key(const struct class_rules *r, const char *key, size_t len)
{
    for (unsigned i = 0; i < r->key_count; i++) {
        const struct class_key_rule *rule = &r->keys[i];
        if (rule->len <= len && memcmp(rule->prefix, key, rule->len) == 0) {
            return rule->class;
        }
    }
    return CLASS_NONE;
}
