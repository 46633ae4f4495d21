/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When: what the requests of a class come from, and what its connections do.
 */
#include "loadgen/options/group.h"

#include "base/num.h"
#include "base/part.h"

#define MODERATE_S 250e-6
#define CAP_MAX 1000
#define OUTSTANDING_MAX 1e9
#define CONNECT_RATE_MAX 1e6

static const char *
parse_arrivals(void *field, const char *text)
{
    arrivals_law_fini(field);
    return arrivals_parse(field, text);
}

static const char *const scopes[] = {
    [TRAFFIC_TOTAL] = "total",
    [TRAFFIC_AGENT] = "agent",
    [TRAFFIC_THREAD] = "thread",
    [TRAFFIC_CONN] = "connection",
};

static const char *
parse_schedule(void *field, const char *text)
{
    schedule_fini(field);
    return schedule_parse(field, text);
}

static const char *
call_mode(void *conf, const char *text)
{
    struct lclass *c = conf;
    c->has_mode = true;
    c->traffic.mode = (enum traffic_mode)part_find(traffic_mode_names, TRAFFIC_MODES,
                                                   text, strlen(text));
    return c->traffic.mode < TRAFFIC_MODES ? NULL : "the mode is open, closed or partly";
}

static const char *
call_late(void *conf, const char *text)
{
    struct traffic *t = &((struct lclass *)conf)->traffic;
    const char *cap = part_after(text, "cap:");
    if (cap != NULL) {
        t->late = LATE_CAP;
        return num_double(cap, strlen(cap), &t->cap) && t->cap >= 1 && t->cap <= CAP_MAX
                   ? NULL
                   : "late requests are sent at cap:F times the rate, F between 1 and "
                     "1000";
    }
    t->late = strcmp(text, "drop") == 0 ? LATE_DROP : LATE_SEND;
    return t->late == LATE_DROP || strcmp(text, "send") == 0
               ? NULL
               : "late requests can be sent (send, cap:F) or dropped (drop)";
}

static const char *const reconnects[] = {
    [RECONNECT_BACKOFF] = "backoff",
    [RECONNECT_NOW] = "now",
    [RECONNECT_NONE] = "none",
};

#define ARRIVALS_ROW(c, long_name, text)                                                 \
    {                                                                                    \
        .letter = c, .name = long_name, SCOPE(LAW), PARSE(parse_arrivals),               \
        OF_CLASS(traffic.arrivals), .arg = "LAW", .help = text                           \
    }
#define SCHEDULE_ROW(long_name, text)                                                    \
    {                                                                                    \
        .name = long_name, SCOPE(LAW), PARSE(parse_schedule),                            \
        OF_CLASS(traffic.schedule), .arg = "SHAPE:...", .help = text                     \
    }
#define LIFETIME_ROW(long_name, text)                                                    \
    {                                                                                    \
        .name = long_name, SCOPE(LAW), PARSE(value_dist), OF_CLASS(traffic.lifetime),    \
        .arg = "DIST", .help = text                                                      \
    }

/* clang-format off */
static const struct opt rows[] = {
    ARRIVALS_ROW('i', "iadist",
              "gaps: exponential fixed uniform normal pareto fb_ia ... (exponential)"),
    ARRIVALS_ROW(0, "arrivals", "the same as --iadist"),
    {.name = "arrival-scope", SCOPE(SHARED), KIND(CHOICE), OF_CLASS(traffic.scope),
     OPT_CHOICES(scopes), .arg = "SCOPE",
     .error = "the scope of arrivals is total, agent, thread or connection",
     .help = "what the law of gaps holds for: total, agent, thread, connection (total)"},
    SCHEDULE_ROW("schedule",
              "rate over time: const ramp steps square triangle sine etc-day file (const)"),
    SCHEDULE_ROW("qps-function", "the same as --schedule"),
    {.name = "mode", SCOPE(SHARED), CALL(call_mode), .arg = "open|closed|partly",
     .help = "what starts a request: schedule, reply, both (open when there is a rate)"},
    {.name = "think", SCOPE(LAW), PARSE(value_seconds), OF_CLASS(traffic.think),
     .arg = "TIME|DIST",
     .help = "seconds from a reply to the next request of that user (0)"},
    {.name = "moderate", SCOPE(SHARED), KIND(FLAG), OF_CLASS(is_moderate),
     .help = "the same as --think=250us"},
    {.name = "session", SCOPE(LAW), PARSE(value_dist), OF_CLASS(traffic.session),
     .arg = "DIST",
     .help = "requests of a session, which comes by the schedule: --mode=partly"},
    {.name = "late", SCOPE(SHARED), CALL(call_late), .arg = "send|cap:F|drop",
     .help = "requests more than 5 ms late: all at once, at F times the rate, never (send)"},
    {.letter = 'S', .name = "skip", SCOPE(SHARED), KIND(FLAG), OF_CLASS(skips),
     .help = "the same as --late=drop where there is a rate"},
    {.name = "max-outstanding", SCOPE(SHARED), KIND(RATE),
     OF_CLASS(traffic.max_outstanding), .min = 1, .max = OUTSTANDING_MAX, .arg = "N[k|m]",
     .error = "the number of outstanding requests is between 1 and 1000000000",
     .help = "open loop: outstanding requests of all threads at most (any number)"},
    LIFETIME_ROW("requests-per-connection",
              "close a connection and open another one after N requests (0: never)"),
    LIFETIME_ROW("numreqperconn", "the same as --requests-per-connection"),
    {.name = "connect-rate", SCOPE(SHARED), KIND(DOUBLE), OF_CLASS(traffic.connect_rate),
     .min = 0, .max = CONNECT_RATE_MAX, .arg = "N",
     .help = "connections opened a second during the run, at most (0: any number)"},
    {.name = "reconnect", SCOPE(SHARED), KIND(CHOICE), OF_CLASS(traffic.reconnect),
     OPT_CHOICES(reconnects), .arg = "backoff|now|none",
     .error = "connections are made again backoff, now or none",
     .help = "what happens to a lost connection (backoff)"},
};
/* clang-format on */

static void
init(struct lclass *c)
{
    const char *wrong = arrivals_parse(&c->traffic.arrivals, "exponential");
    must(wrong == NULL);
}

const char *
traffic_check(const struct lclass *c, bool is_varied, bool is_target, bool is_told)
{
    const struct traffic *t = &c->traffic;
    bool has_own = schedule_varies(&t->schedule) && !schedule_has_shares(&t->schedule);
    bool has_rate = c->qps > 0 || c->qps_share > 0 || is_varied || has_own;
    if (t->is_timed) {
        return has_rate ? "the trace says when: a rate needs --trace-time=rate" : NULL;
    }
    bool is_closed = c->has_mode && t->mode == TRAFFIC_CLOSED;
    if (is_closed && has_rate) {
        return "--mode=closed has no rate: --qps, --schedule and searches contradict it";
    }
    has_rate = has_rate || is_told;
    if (!has_rate && c->has_mode && !is_closed) {
        return "an open loop needs a rate (--qps)";
    }
    if (!has_rate && schedule_varies(&t->schedule)) {
        return "a schedule needs a rate (--qps), or rates that are no percentages";
    }
    if (has_own && (c->qps > 0 || c->qps_share > 0 || is_target || c->is_measuring)) {
        return "the schedule has rates of its own: beside --qps, --scan, --search and a "
               "measuring client give it percentages (50%)";
    }
    if (c->has_sessions && (!has_rate || t->mode != TRAFFIC_PARTLY)) {
        return "--session is for --mode=partly, which needs a rate (--qps)";
    }
    if (!has_rate && t->late != LATE_SEND) {
        return "--late needs a rate (--qps)";
    }
    if (!has_rate && t->max_outstanding > 0) {
        return "--max-outstanding needs a rate (--qps)";
    }
    if (t->max_outstanding > 0 && t->max_outstanding < (uint64_t)c->threads) {
        return "--max-outstanding must be at least 1 for each thread";
    }
    return NULL;
}

static const char *
settle(struct lclass *c)
{
    struct traffic *t = &c->traffic;
    c->has_sessions = dist_size_max(&t->session, 1, TRAFFIC_SESSION_MAX) > 1;
    if (c->is_moderate) {
        dist_fini(&t->think);
        t->think = dist_fixed(MODERATE_S);
    }
    if (!c->has_mode) {
        t->mode = c->has_sessions ? TRAFFIC_PARTLY : TRAFFIC_OPEN; /* if it has a rate */
    }
    return NULL;
}

static void
fini(struct lclass *c)
{
    struct traffic *t = &c->traffic;
    arrivals_law_fini(&t->arrivals);
    schedule_fini(&t->schedule);
    dist_fini(&t->think);
    dist_fini(&t->session);
    dist_fini(&t->lifetime);
}

const struct class_group group_traffic = {
    ROWS(rows),
    .init = init,
    .settle = settle,
    .fini = fini,
};
