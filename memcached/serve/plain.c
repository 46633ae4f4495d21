/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/plain.h"

#include "serve/exec.h"

#define LINE_END "\r\n"
#define LINE_END_BYTES (sizeof LINE_END - 1)

/* The set in front of in[0..len). Returns its length, 0: the session's. */
static __attribute__((noinline)) size_t
serve_set(const struct env *env, const char *in, size_t len, char *to, size_t room,
          struct plain_limits *limits, struct plain_served *served)
{
    struct ascii_set set;
    if (!limits->may_set || limits->gets.requests == 0) {
        return 0;
    }
    size_t line = ascii_cut_set(in, in + len, &set);
    if (line == 0 || set.value_len > limits->gets.value_bytes || room < ASCII_REPLY_MAX) {
        return 0;
    }
    size_t value = (size_t)set.value_len + LINE_END_BYTES;
    if (len - line < value ||
        memcmp(in + line + set.value_len, LINE_END, LINE_END_BYTES) != 0) {
        return 0;
    }
    struct slice reply =
        ascii_reply(exec_set(env, &set, in + line, env->conf->plain_owner));
    size_t made = set.is_noreply ? 0 : reply.len;
    memcpy(to, reply.p, made);
    limits->gets.requests--;
    served->made += made;
    served->sets.requests++;
    served->sets.bytes += made + set.value_len;
    served->ends_with_set = true;
    return line + value;
}

static size_t
serve_gets(const struct env *env, const char *in, size_t len, char *to, size_t room,
           struct gets_limits *limits, struct plain_served *served)
{
    struct gets_served gets = gets_serve(env, in, len, to, room, limits);
    limits->requests -= gets.requests;
    served->made += gets.made;
    served->gets.requests += gets.requests;
    served->gets.bytes += gets.made;
    served->ends_with_set &= gets.requests == 0;
    return gets.consumed;
}

struct plain_served
plain_serve(const struct env *env, char *in, size_t len, char *to, size_t room,
            struct plain_limits *limits)
{
    struct plain_served served = {.consumed = 0};
    size_t part;
    in[len] = '\n';
    do {
        const char *p = in + served.consumed;
        size_t n = len - served.consumed, left = room - served.made;
        part = *p == 's' ? serve_set(env, p, n, to + served.made, left, limits, &served)
                         : serve_gets(env, p, n, to + served.made, left, &limits->gets,
                                      &served);
        served.consumed += part;
    } while (part > 0 && served.consumed < len);
    return served;
}
