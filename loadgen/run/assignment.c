/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run_state.h"

#include "loadgen/work/streams.h"

/* The servers of a thread, and which of so many threads with the same servers it is. */
struct lane {
    unsigned first, count; /* servers */
    unsigned index, threads;
};

/* All of them, or, dealt out in turn, a part of them: of one server when there are at least
 * as many threads, else some for each thread. */
static struct lane
lane_of(const struct run *r, const struct run_class *c, unsigned thread)
{
    unsigned servers = r->o->servers_len;
    if (!c->conf->is_roundrobin) {
        return (struct lane){0, servers, thread, c->threads};
    }
    if (c->threads < servers) {
        struct load_slice part = load_slice_of(servers, thread, c->threads);
        return (struct lane){(unsigned)part.first, (unsigned)(part.end - part.first), 0,
                             1};
    }
    unsigned first = thread % servers;
    unsigned threads = (c->threads - first + servers - 1) / servers;
    return (struct lane){first, 1, thread / servers, threads};
}

struct load_slice
assignment_slice(const struct run *r, const struct run_class *c, unsigned thread)
{
    unsigned agents = r->conf.agents > 0 ? r->conf.agents : 1;
    struct load_slice all =
        load_slice_of(c->conf->workload.records, r->conf.agent, agents);
    struct lane lane = lane_of(r, c, thread);
    struct load_slice part = load_slice_of(all.end - all.first, lane.index, lane.threads);
    return (struct load_slice){all.first + part.first, all.first + part.end};
}

struct reader_run
assignment_stock(const struct run *r, const struct run_class *c)
{
    unsigned agents = r->conf.agents > 0 ? r->conf.agents : 1;
    unsigned servers = r->o->servers_len;
    struct load_slice part =
        load_slice_of(c->conf->trace.load_max, r->conf.agent, agents);
    struct load_slice routes = load_slice_of(READER_ROUTES, r->conf.agent, agents);
    /* As lane_of deals them out. */
    unsigned lanes = !c->conf->is_roundrobin ? 1
                     : c->threads < servers  ? c->threads
                                             : servers;
    return (struct reader_run){
        .stocks = true,
        .stock = {.most = part.end - part.first, .lanes = lanes},
        .slice = {routes.first, routes.end},
    };
}

/* Recorded times are spread alike in all processes, each of which sends its slice. */
struct reader_run
assignment_replay(const struct run *r, const struct run_class *c,
                  const struct run_spec *spec)
{
    unsigned agent = c->traffic.is_timed ? 0 : r->conf.agent;
    return (struct reader_run){
        .law = &c->traffic.arrivals,
        .rate = traffic_is_open(&c->traffic) ? c->traffic.rate : 0,
        .seed = r->threads[c->first].conf.drive.seed,
        .stream = stream_of(agent, c->first, STREAM_ARRIVALS),
        .until_ns = traffic_is_open(&c->traffic)
                        ? clock_seconds(run_spec_warmup(r->o, spec)) +
                              clock_seconds(run_spec_time(r->o, spec))
                        : 0,
        .slice = spec->slice,
    };
}

static uint64_t
most_records(const struct run *r)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        uint64_t records = r->o->classes[i].workload.records;
        most = records > most ? records : most;
    }
    return most;
}

struct drive_conf
assignment_drive(struct run *r, const struct run_class *c, unsigned thread)
{
    const struct lclass *l = c->conf;
    unsigned senders = r->conf.senders > 0 ? r->conf.senders : 1;
    unsigned agents = r->conf.agents > 0 ? r->conf.agents : 1;
    bool has_times = traffic_is_open(&c->traffic) || traffic_thinks(&c->traffic);
    return (struct drive_conf){
        .traffic = c->traffic,
        .depth = (unsigned)l->depth,
        .spin = l->is_blocking || !has_times
                    ? 0
                    : (nsec_t)(l->spin_us * (double)NSEC_PER_USEC),
        .busy_poll = r->o->busy_poll_us == BUSY_POLL_ALWAYS
                         ? ALARMS_NEVER
                         : (nsec_t)r->o->busy_poll_us * NSEC_PER_USEC,
        .gives_way = r->o->fifo_priority > 0,
        .timeout = clock_seconds(r->o->timeout_s),
        .seed = r->o->seed,
        .thread = thread,
        .threads = c->threads,
        .agent = r->conf.agent,
        .first_thread = c->first,
        .part = r->conf.sender * c->threads + thread,
        .parts = senders * c->threads,
        /* Unlike those of other processes, however many threads these have. */
        .number = r->conf.agent + (c->first + thread) * agents,
        .numbers = r->threads_len * agents,
        .above = most_records(r),
        .from = r->o->from,
        .by_size = r->o->by_size,
        .stop = &r->stop,
        .over = &r->over,
        .cap = r->conf.cap,
        .refusal = &r->refusal,
    };
}

/* The first of so many local ports, one a connection; 0: any. */
static unsigned
take_ports(struct run *r, unsigned count)
{
    unsigned first = r->src_ports;
    r->src_ports += first > 0 ? count : 0;
    return first;
}

struct lthread_conf
assignment_thread(struct run *r, const struct run_class *c, unsigned thread)
{
    const struct lclass *l = c->conf;
    unsigned depth = (unsigned)l->depth;
    struct lane lane = lane_of(r, c, thread);
    return (struct lthread_conf){
        .index = c->first + thread,
        .set =
            {
                .codec = l->codec,
                .targets = r->conf.targets + lane.first,
                .targets_len = lane.count,
                .per_target = (unsigned)l->connections,
                .capacity = depth > LOAD_DEPTH ? depth : LOAD_DEPTH,
                .workload =
                    c->feed.reader != NULL ? &c->feed.workloads[thread] : &c->workload,
                .auth = l->password != NULL ? &c->auth : NULL,
                .tls = r->conf.tls,
                .shard = r->conf.shard,
                .engine = r->o->engine,
                .stamps = r->o->stamps,
                .with_nodelay = !l->no_nodelay,
                .timeout = clock_seconds(r->o->timeout_s),
                .src_port = take_ports(r, lane.count * (unsigned)l->connections),
                .stop = &r->stop,
            },
        .first_server = lane.first,
        .drive = assignment_drive(r, c, thread),
        .loads = c->loads,
        .sample = r->o->save != NULL ? r->o->sample : 0,
        .slice = assignment_slice(r, c, thread),
        .pin = r->has_plan ? &r->plan : NULL,
        .fifo_priority = r->o->fifo_priority,
    };
}
