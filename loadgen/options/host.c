/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the client's threads run, and how urgently.
 */
#include "loadgen/options/group.h"

#include <sched.h>

#include "base/num.h"
#include "base/part.h"

#define BUSY_POLL_MAX_US 1000000

static const char *
call_realtime(void *conf, const char *text)
{
    const char *number = part_after(text, "fifo:");
    int32_t priority;
    if (number == NULL || !num_i32(number, strlen(number), &priority) ||
        priority < sched_get_priority_min(SCHED_FIFO) ||
        priority > sched_get_priority_max(SCHED_FIFO)) {
        return "real time is fifo:PRIORITY with a priority between 1 and 99";
    }
    ((struct options *)conf)->fifo_priority = priority;
    return NULL;
}

static const char *
call_numa(void *conf, const char *text)
{
    struct options *o = conf;
    int32_t node = -1;
    bool is_auto = strcmp(text, "auto") == 0;
    o->has_numa = true;
    if (!is_auto && (!num_i32(text, strlen(text), &node) || node < 0)) {
        return "it is the number of a memory node, or auto";
    }
    o->numa = is_auto ? -1 : node;
    return NULL;
}

static const char *
call_busy_poll(void *conf, const char *text)
{
    struct options *o = conf;
    uint64_t us;
    o->busy_poll_us = BUSY_POLL_ALWAYS;
    if (text == NULL) {
        return NULL;
    }
    if (!num_u64(text, strlen(text), &us) || us > BUSY_POLL_MAX_US) {
        return "busy polling lasts between 0 and 1000000 microseconds";
    }
    o->busy_poll_us = (int64_t)us;
    return NULL;
}

static const char *
call_timestamps(void *conf, const char *text)
{
    struct options *o = conf;
    const char *nic = part_after(text, "nic:");
    o->interface = nic != NULL && nic[0] != '\0' ? nic : NULL;
    o->stamps = o->interface != NULL          ? STAMPS_CARD
                : strcmp(text, "kernel") == 0 ? STAMPS_KERNEL
                                              : STAMPS_USER;
    return o->stamps != STAMPS_USER || strcmp(text, "user") == 0
               ? NULL
               : "time stamps are of user, kernel or nic:INTERFACE";
}

static const char *
call_engine(void *conf, const char *text)
{
    struct options *o = conf;
    o->wants_engines = strcmp(text, "help") == 0;
    o->engine = o->wants_engines ? engine_all[0] : engine_find(text);
    return o->engine != NULL ? NULL : "this build has no such engine: see --engine=help";
}

/* clang-format off */
static const struct opt rows[] = {
    {.name = "affinity", SCOPE(HOST), KIND(FLAG), OF_RUN(has_affinity),
     .help = "pin threads to the CPUs allowed, in turn"},
    {.name = "cpus", SCOPE(HOST), KIND(TEXT), OF_RUN(cpus), .arg = "LIST",
     .help = "pin threads to these CPUs, e.g. 0,2,4-7"},
    {.name = "numa", SCOPE(HOST), CALL(call_numa), .arg = "auto|NODE",
     .help = "pin threads to the CPUs of a memory node, or of all nodes in turn"},
    {.name = "realtime", SCOPE(HOST), CALL(call_realtime), .arg = "fifo:N",
     .help = "run sending threads at real-time priority N"},
    {.name = "busy-poll", SCOPE(HOST), CALL(call_busy_poll), .arg = "USECS?",
     .help = "poll for USECS after a reply before sleeping; without a number always"},
    {.name = "timestamps", SCOPE(HOST), CALL(call_timestamps),
     .arg = "user|kernel|nic:IF",
     .help = "timestamp source beside mcload itself: the kernel or the network card (user)"},
    {.name = "engine", SCOPE(HOST), CALL(call_engine), .arg = "NAME",
     .help = "how connections are waited for: epoll, io_uring; help"},
};
/* clang-format on */

static void
init(struct options *o)
{
    o->engine = engine_all[0];
}

static const char *
settle(struct options *o)
{
    if (o->has_numa && (o->has_affinity || o->cpus != NULL)) {
        return "--numa and --affinity or --cpus are mutually exclusive";
    }
    return o->has_affinity && o->cpus != NULL
               ? "--affinity and --cpus are mutually exclusive"
               : NULL;
}

const struct run_group group_host = {ROWS(rows), .init = init, .settle = settle};
