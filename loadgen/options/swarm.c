/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Several machines in one run: agents and their leader.
 */
#include "loadgen/options/group.h"

#include "base/part.h"
#include "loadgen/swarm/message.h"

#define WEIGHT_DEFAULT 1
#define AGENT_WAIT_S 10
#define OBSERVE_S 1 /* between questions of agents that observe */
#define QPS_MAX 1e8
#define BYTES_MAX 1e15
/* Limits of an agent without a key (--insecure-agent). */
#define INSECURE_QPS 10000
#define INSECURE_CONNS 64
#define INSECURE_SECONDS 60
#define INSECURE_BYTES (16 << 20)

static const char *
call_agent_mode(void *conf, const char *text)
{
    struct options *o = conf;
    o->is_agent = true;
    o->agent_address = text;
    return NULL;
}

static const char *
keep_agent(void *conf, const char *text)
{
    struct options *o = conf;
    if (o->agents_len == MESSAGE_AGENTS_MAX) {
        return "too many agents";
    }
    struct options_agent *a = &o->agents[o->agents_len];
    size_t len = strcspn(text, ";");
    const char *role = part_after(text + len, ";role=");
    a->role = role == NULL ? ROLE_LOAD
                           : (enum message_role)part_find(message_role_names, ROLES, role,
                                                          strlen(role));
    if (len == 0 || len >= sizeof a->at || (text[len] == ';' && role == NULL) ||
        a->role == ROLES) {
        return "an agent is HOST[:PORT], then perhaps ;role=load, measure or observe";
    }
    snprintf(a->at, sizeof a->at, "%.*s", (int)len, text);
    o->agents_len++;
    if (a->role == ROLE_OBSERVE && o->server_stats_s == 0) {
        o->server_stats_s = OBSERVE_S;
    }
    return NULL;
}

unsigned
options_agents_in(const struct options *o, enum message_role role)
{
    unsigned n = 0;
    for (unsigned i = 0; i < o->agents_len; i++) {
        n += o->agents[i].role == role ? 1 : 0;
    }
    return n;
}

static const char *
call_agent(void *conf, const char *text)
{
    return value_addresses(conf, text, keep_agent);
}

static const char *
call_traces(void *conf, const char *text)
{
    struct options *o = conf;
    if (o->agent_traces_len == OPTIONS_TRACES_MAX) {
        return "too many directories of traces";
    }
    o->agent_traces[o->agent_traces_len++] = text;
    return text[0] != '\0' ? NULL : "traces are in a directory";
}

static const char *const splits[] = {
    [SPLIT_WEIGHT] = "weight",
    [SPLIT_CAPACITY] = "capacity",
};

static const char *const losses[] = {
    [LOSS_ABORT] = "abort",
    [LOSS_CONTINUE] = "continue",
    [LOSS_ACCEPT] = "accept",
    [LOSS_REPEAT] = "repeat",
};

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 'A', .name = "agent-mode", SCOPE(AGENT), CALL(call_agent_mode),
     .arg = "ADDR?",
     .help = "be an agent: wait for leaders on this address and do as they say"},
    {.name = "agentmode", SCOPE(AGENT), CALL(call_agent_mode), .arg = "ADDR?"},
    {.letter = 'a', .name = "agent", SCOPE(LEADER), CALL(call_agent),
     .arg = "HOST[:PORT][;role=load|measure|observe]",
     .help = "lead this agent, also unix:PATH and [v6]:PORT; repeat for several"},
    {.letter = 'p', .name = "agent-port", SCOPE(EACH), KIND(INT), OF_RUN(agent_port),
     .min = 1, .max = UINT16_MAX, .error = "a port is between 1 and 65535", .arg = "PORT",
     .help = "port of agents (5556)"},
    {.letter = 'l', .name = "lambda-mul", SCOPE(EACH), KIND(INT), OF_RUN(weight),
     .min = 0, .max = MESSAGE_WEIGHT_MAX, .arg = "N",
     .help = "this process's weight in the split of the rate; 0: no load of its own (1)"},
    {.name = "split", SCOPE(LEADER), KIND(CHOICE), OF_RUN(split), OPT_CHOICES(splits),
     .arg = "weight|capacity", .error = "a rate is shared out by weight or by capacity",
     .help = "the rate is shared out by weights, or by what each is seen to send at most"},
    {.name = "key-file", SCOPE(EACH), KIND(TEXT), OF_RUN(key_file), .arg = "FILE",
     .help = "shared key of leader and agents"},
    {.name = "insecure-agent", SCOPE(AGENT), KIND(FLAG), OF_RUN(is_insecure_agent),
     .help = "agent: serve anyone who can reach it, within small limits"},
    {.name = "agent-allow", SCOPE(AGENT), PARSE(allow_add), OF_RUN(agent_allow),
     .arg = ALLOW_TEXT,
     .help = "agent: servers that it may load; repeat for several (loopback)"},
    {.name = "agent-allow-udp", SCOPE(AGENT), KIND(FLAG), OF_RUN(allows_udp),
     .help = "agent: servers may be loaded over UDP, too"},
    {.name = "agent-traces", SCOPE(AGENT), CALL(call_traces), .arg = "DIR",
     .help = "agent: traces below DIR may be replayed; repeat for several (none)"},
    {.name = "agent-max-qps", SCOPE(AGENT), KIND(RATE), OF_RUN(agent_max_qps), .min = 1,
     .max = QPS_MAX, .arg = "N[k|m]", .help = "agent: most requests a second (any)"},
    {.name = "agent-max-conns", SCOPE(AGENT), KIND(INT), OF_RUN(agent_max_conns),
     .min = 1, .max = 1e9, .arg = "N", .help = "agent: most connections (any)"},
    {.name = "agent-max-bandwidth", SCOPE(AGENT), KIND(BYTES), OF_RUN(agent_max_bytes),
     .min = 1, .max = BYTES_MAX, .arg = "BYTES",
     .help = "agent: most bytes a second, sent and received (any)"},
    {.name = "agent-max-time", SCOPE(AGENT), PARSE(value_span), OF_RUN(agent_max_time),
     .error = "the longest run is a time, a millisecond or more", .arg = "SECONDS",
     .help = "agent: longest run (any)"},
    {.name = "on-agent-loss", SCOPE(LEADER), KIND(CHOICE), OF_RUN(on_agent_loss),
     OPT_CHOICES(losses), .arg = "abort|continue|accept|repeat",
     .error = "when an agent is lost: abort, continue, accept or repeat",
     .help = "what becomes of a run that loses an agent (continue)"},
    {.name = "poll-max", SCOPE(LEADER), PARSE(value_span), OF_RUN(agent_wait_s),
     .error = "agents are waited for a time, a millisecond or more", .arg = "SECONDS",
     .help = "wait for agents after a run (10)"},
    {.name = "poll-freq", SCOPE(LEADER), KIND(IGNORE), .arg = "SECONDS"},
};
/* clang-format on */

static void
init(struct options *o)
{
    o->agent_port = MESSAGE_PORT;
    o->weight = WEIGHT_DEFAULT;
    o->agent_wait_s = AGENT_WAIT_S;
}

static double
lower(double limit, double most)
{
    return limit > 0 && limit < most ? limit : most;
}

static const char *
settle_agent(struct options *o)
{
    if (o->agents_len > 0) {
        return "--agent-mode and --agent are mutually exclusive";
    }
    if (o->weight == 0) {
        return "an agent's --lambda-mul must be above 0";
    }
    if (o->agent_allow.count == 0) {
        allow_loopback(&o->agent_allow);
    }
    if (o->is_insecure_agent && o->key_file == NULL) {
        o->agent_max_qps = (int64_t)lower((double)o->agent_max_qps, INSECURE_QPS);
        o->agent_max_conns = (int64_t)lower((double)o->agent_max_conns, INSECURE_CONNS);
        o->agent_max_bytes = (int64_t)lower((double)o->agent_max_bytes, INSECURE_BYTES);
        o->agent_max_time = lower(o->agent_max_time, INSECURE_SECONDS);
    }
    return NULL;
}

/* Shares of a rate can be split. */
static bool
has_rates_of_its_own(const struct schedule *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (!s->points[i].is_share && s->points[i].rate > 0) {
            return true;
        }
    }
    return false;
}

/* Roles: when agents measure, the leader does not, and sends load. */
static const char *
settle_roles(const struct options *o)
{
    bool measures = o->classes[o->classes_len - 1].is_measuring &&
                    options_agents_in(o, ROLE_MEASURE) == 0;
    if (o->weight == 0 && measures) {
        return "--lambda-mul=0 and --measure-... are mutually exclusive";
    }
    if (options_agents_in(o, ROLE_LOAD) == 0 && (o->weight == 0 || measures)) {
        return "no process sends load: no agent has that role";
    }
    if (o->classes[o->classes_len - 1].is_measuring && o->classes[0].traffic.is_timed) {
        return "a trace with its own times is one load: a measuring client would send it "
               "once more (--trace-time=rate)";
    }
    if (options_agents_in(o, ROLE_OBSERVE) > o->servers_len) {
        return "there are more agents that observe than servers";
    }
    return NULL;
}

/* What only a leader can do. */
static const char *
check_leaders(const struct options *o)
{
    return o->on_agent_loss != LOSS_DEFAULT  ? "--on-agent-loss needs --agent"
           : o->split != SPLIT_WEIGHT        ? "--split needs --agent"
           : o->agent_wait_s != AGENT_WAIT_S ? "--poll-max needs --agent"
           : o->key_file != NULL             ? "--key-file needs --agent, or --agent-mode"
                                             : NULL;
}

static const char *
settle(struct options *o)
{
    if (o->is_agent) {
        return settle_agent(o);
    }
    for (unsigned i = 0; o->agents_len > 0 && i < o->classes_len; i++) {
        if (has_rates_of_its_own(&o->classes[i].traffic.schedule)) {
            return "with --agent the rates of a schedule are percentages of --qps";
        }
    }
    if (o->is_insecure_agent || o->allows_udp || o->agent_allow.count > 0 ||
        o->agent_traces_len > 0 || o->agent_max_qps > 0 || o->agent_max_conns > 0 ||
        o->agent_max_bytes > 0 || o->agent_max_time > 0) {
        return "what an agent allows is said to the agent (--agent-mode)";
    }
    if (o->weight == 0 && o->agents_len == 0) {
        return "without a load of its own a leader needs agents (--agent)";
    }
    return o->agents_len > 0 ? settle_roles(o) : check_leaders(o);
}

const struct run_group group_swarm = {ROWS(rows), .init = init, .settle = settle};
