/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/limit_text.h"

#include <inttypes.h>

#include "base/num.h"
#include "base/part.h"

#define PERCENT_MAX 1000000 /* ten thousand CPUs */

bool
limit_text_cut(const char **p, size_t *len, char mark, const char **head,
               size_t *head_len)
{
    const char *at = *len > 0 ? memchr(*p, mark, *len) : NULL;
    *head = *p;
    *head_len = at != NULL ? (size_t)(at - *p) : *len;
    if (at == NULL) {
        return false;
    }
    *len -= *head_len + 1;
    *p = at + 1;
    return true;
}

const char *
limit_text_rate(const char *p, size_t len, uint64_t max, uint64_t *rate)
{
    *rate = 0;
    if (part_is(p, len, "off")) {
        return NULL;
    }
    if (!num_scaled(p, len, 1000, rate) || *rate == 0 || *rate > max) {
        *rate = 0;
        return max == LIMIT_RATE_MAX ? "a limit is a number from 1 to 1000m, or off"
                                     : "a limit is a number from 1 to 10m, or off";
    }
    return NULL;
}

const char *
limit_text_burst(const char *p, size_t len, uint64_t *burst)
{
    if (!num_scaled(p, len, 1000, burst) || *burst == 0 || *burst > LIMIT_BURST_MAX) {
        *burst = 0;
        return "a burst is a number from 1 to 1m";
    }
    return NULL;
}

bool
limit_text_class(const char *p, size_t len, enum req_class *class)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (class_is_limited((enum req_class)c) &&
            part_is(p, len, class_name((enum req_class)c))) {
            *class = (enum req_class)c;
            return true;
        }
    }
    return false;
}

static struct limiter_rule *
rule_named(struct limiter_conf *conf, const char *p, size_t len)
{
    enum req_class class;
    if (part_is(p, len, "total")) {
        return &conf->total;
    }
    return limit_text_class(p, len, &class) ? &conf->by_class[class] : NULL;
}

const char *
limit_text_rules(const char *p, size_t len, struct limiter_conf *conf)
{
    struct limiter_rule *rule = NULL;
    struct limiter_conf named = {0}; /* what this text has named, as limits of 1 */
    bool more = true;
    while (more) {
        const char *item, *name;
        size_t item_len, name_len;
        more = limit_text_cut(&p, &len, ',', &item, &item_len);
        const char *value = item;
        size_t value_len = item_len;
        bool has_name = limit_text_cut(&value, &value_len, '=', &name, &name_len);
        const char *error = NULL;
        if (has_name && part_is(name, name_len, "burst")) {
            if (rule == NULL) {
                return "burst= stands behind the limit that it belongs to";
            }
            error = limit_text_burst(value, value_len, &rule->burst);
        } else {
            rule = has_name ? rule_named(conf, name, name_len) : &conf->total;
            if (rule == NULL) {
                return "a limit is N, total=N or CLASS=N, and burst=B behind it";
            }
            struct limiter_rule *seen =
                has_name ? rule_named(&named, name, name_len) : &named.total;
            rule->burst = 0;
            error = limit_text_rate(value, value_len, LIMIT_RATE_MAX, &rule->rate);
            if (error == NULL && seen->rate++ > 0) {
                error = "one limit is given twice";
            }
        }
        if (error != NULL) {
            return error;
        }
    }
    return NULL;
}

const char *
limit_text_peer(const char *p, size_t len, struct limiter_rule *rule)
{
    const char *rate;
    size_t rate_len;
    bool has_burst = limit_text_cut(&p, &len, ',', &rate, &rate_len);
    rule->burst = 0;
    const char *error = limit_text_rate(rate, rate_len, PEERS_RATE_MAX, &rule->rate);
    if (error != NULL || !has_burst) {
        return error;
    }
    const char *name;
    size_t name_len;
    if (!limit_text_cut(&p, &len, '=', &name, &name_len) ||
        !part_is(name, name_len, "burst")) {
        return "what stands behind the comma must be burst=B";
    }
    return limit_text_burst(p, len, &rule->burst);
}

static const struct {
    const char *name;
    nsec_t ns;
} units[] = {
    {"ns", 1}, {"us", NSEC_PER_USEC}, {"ms", NSEC_PER_MSEC}, {"s", NSEC_PER_SEC}};
#define UNITS (sizeof units / sizeof units[0])

bool
limit_text_time(const char *p, size_t len, nsec_t *ns)
{
    size_t digits = 0;
    uint64_t number;
    while (digits < len && p[digits] >= '0' && p[digits] <= '9') {
        digits++;
    }
    for (size_t i = 0; i < UNITS; i++) {
        if (part_is(p + digits, len - digits, units[i].name)) {
            return num_u64(p, digits, &number) && number > 0 &&
                   !__builtin_mul_overflow(number, units[i].ns, ns) &&
                   *ns <= 3600 * NSEC_PER_SEC;
        }
    }
    return false;
}

const char *
limit_text_action(const char *p, size_t len, enum limiter_action *action,
                  nsec_t *max_delay)
{
    static const char wrong[] = "the action is delay, error, miss, or delay:TIME+error "
                                "with a TIME such as 50ms";
    const char *head;
    size_t head_len;
    *max_delay = 0;
    *action = ACTION_DELAY;
    if (!limit_text_cut(&p, &len, ':', &head, &head_len)) {
        if (part_is(head, head_len, "error")) {
            *action = ACTION_ERROR;
        } else if (part_is(head, head_len, "miss")) {
            *action = ACTION_MISS;
        } else if (!part_is(head, head_len, "delay")) {
            return wrong;
        }
        return NULL;
    }
    const char *time;
    size_t time_len;
    bool has_rest = limit_text_cut(&p, &len, '+', &time, &time_len);
    return part_is(head, head_len, "delay") && has_rest && part_is(p, len, "error") &&
                   limit_text_time(time, time_len, max_delay)
               ? NULL
               : wrong;
}

const char *
limit_text_unit(const char *p, size_t len, bool *counts_keys)
{
    *counts_keys = part_is(p, len, "key");
    return *counts_keys || part_is(p, len, "cmd") ? NULL : "the unit is cmd or key";
}

const char *
limit_text_percent(const char *p, size_t len, unsigned *percent)
{
    uint32_t number;
    *percent = 0;
    if (part_is(p, len, "off")) {
        return NULL;
    }
    size_t digits = len > 0 && p[len - 1] == '%' ? len - 1 : len;
    if (!num_u32(p, digits, &number) || number == 0 || number > PERCENT_MAX) {
        return "a share of the CPU is a percentage such as 40% (of one CPU), or off";
    }
    *percent = number;
    return NULL;
}

const char *
limit_text_tell_time(nsec_t ns, nsec_t most, char to[LIMIT_TEXT_TIME_MAX])
{
    size_t i = 0;
    while (i + 1 < UNITS && units[i + 1].ns <= most && ns % units[i + 1].ns == 0) {
        i++;
    }
    snprintf(to, LIMIT_TEXT_TIME_MAX, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
    return to;
}

void
limit_text_describe(enum limiter_action action, nsec_t max_delay,
                    char to[LIMIT_TEXT_ACTION_MAX])
{
    static const char *const names[] = {
        [ACTION_DELAY] = "delay", [ACTION_ERROR] = "error", [ACTION_MISS] = "miss"};
    char text[LIMIT_TEXT_TIME_MAX];
    if (action != ACTION_DELAY || max_delay == 0) {
        snprintf(to, LIMIT_TEXT_ACTION_MAX, "%s", names[action]);
    } else {
        snprintf(to, LIMIT_TEXT_ACTION_MAX, "delay:%s+error",
                 limit_text_tell_time(max_delay, NSEC_PER_MSEC, text));
    }
}
