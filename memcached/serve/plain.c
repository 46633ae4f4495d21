/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/plain.h"

#include "serve/exec.h"

#define LINE_END "\r\n"

struct set_served {
    size_t consumed; /* 0: it is the session's */
    size_t made, value_len;
};

/* The set in front of in[0..len). Knows nothing of what else was served, so that with gets alone that
 * can be in registers. */
static __attribute__((noinline)) struct set_served
serve_set(const struct env *env, const char *in, size_t len, char *to, size_t value_most)
{
    struct set_served none = {.consumed = 0};
    struct ascii_set set;
    size_t line = ascii_cut_set(in, in + len, &set);
    if (line == 0 || set.value_len > value_most) {
        return none;
    }
    size_t value = (size_t)set.value_len + LINE_END_BYTES;
    if (len - line < value ||
        memcmp(in + line + set.value_len, LINE_END, LINE_END_BYTES) != 0) {
        return none;
    }
    struct slice reply =
        ascii_reply(exec_set(env, &set, in + line, env->conf->plain_owner));
    size_t made = set.is_noreply ? 0 : reply.len;
    memcpy(to, reply.p, made);
    return (struct set_served){
        .consumed = line + value, .made = made, .value_len = set.value_len};
}

struct plain_served
plain_serve(const struct env *env, char *in, size_t len, char *to, size_t room,
            const struct plain_limits *limits)
{
    struct plain_served served = {.consumed = 0};
    struct gets_limits left = limits->gets;
    size_t part;
    in[len] = '\n';
    do {
        const char *p = in + served.consumed;
        size_t n = len - served.consumed;
        if (*p != 's') {
            struct gets_served gets =
                gets_serve(env, p, n, to + served.made, room - served.made, &left);
            part = gets.consumed;
            left.requests -= gets.requests;
            served.made += gets.made;
            served.gets.requests += gets.requests;
            served.gets.bytes += gets.made;
            served.ends_with_set &= part == 0;
        } else if (left.requests > 0 && room - served.made >= ASCII_REPLY_MAX &&
                   limits->may_set(limits->ctx)) {
            struct set_served set =
                serve_set(env, p, n, to + served.made, left.value_bytes);
            part = set.consumed;
            left.requests -= part > 0;
            served.made += set.made;
            served.sets.requests += part > 0;
            served.sets.bytes += set.made + set.value_len;
            served.ends_with_set |= part > 0;
        } else {
            break;
        }
        served.consumed += part;
    } while (part > 0 && served.consumed < len);
    return served;
}
