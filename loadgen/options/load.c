/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much: threads, connections and the rate of a class.
 */
#include "loadgen/options/group.h"

#include "base/num.h"

#define SPIN_DEFAULT_US 50
#define DEPTH_MAX 4096
#define CONNECTIONS_MAX 65536
#define QPS_MAX 100000000
#define SHARE_MAX 10.0

static const char *
call_qps(void *conf, const char *text)
{
    struct lclass *c = conf;
    size_t len = strlen(text);
    uint64_t qps = 0;
    c->qps = 0;
    c->qps_share = 0;
    if (len > 0 && text[len - 1] == '%') {
        if (!num_double(text, len - 1, &c->qps_share) || !(c->qps_share > 0)) {
            return "a share of the peak is above 0%";
        }
        c->qps_share /= 100;
        return c->qps_share <= SHARE_MAX ? NULL : "at most ten times the peak";
    }
    if (strcmp(text, "peak") == 0) {
        return NULL;
    }
    if (!num_scaled(text, len, 1000, &qps) || qps > QPS_MAX) {
        return "not a number between 0 and 100000000, a percentage or peak";
    }
    c->qps = (int64_t)qps;
    return NULL;
}

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 'T', .name = "threads", SCOPE(SHARED), KIND(INT), OF_CLASS(threads),
     .min = 1, .max = OPTIONS_THREADS_MAX, .arg = "N", .common = 2,
     .help = "threads (1)"},
    {.letter = 'c', .name = "connections", SCOPE(SHARED), KIND(INT),
     OF_CLASS(connections), .min = 1, .max = CONNECTIONS_MAX, .arg = "N", .common = 3,
     .help = "connections to each server, each thread (1)"},
    {.letter = 'd', .name = "depth", SCOPE(SHARED), KIND(INT), OF_CLASS(depth), .min = 1,
     .max = DEPTH_MAX, .arg = "N", .common = 4,
     .error = "the depth is a number between 1 and 4096; a duration is -t SECONDS",
     .help = "pipeline depth: outstanding requests on each connection (1)"},
    {.letter = 'q', .name = "qps", SCOPE(SHARED), CALL(call_qps), .common = 5,
     .arg = "N[k|m]|P%|peak",
     .help = "requests a second, open loop; P% of the peak; 0: closed loop, peak (0)"},
    {.letter = 'B', .name = "blocking", SCOPE(SHARED), KIND(FLAG), OF_CLASS(is_blocking),
     .help = "always sleep until the next request, never poll"},
    {.name = "spin", SCOPE(SHARED), KIND(DOUBLE), OF_CLASS(spin_us), .min = 0, .max = 1e9,
     .arg = "USECS", .help = "open loop: poll when the next request is so near (50)"},
    {.letter = 'R', .name = "roundrobin", SCOPE(SHARED), KIND(FLAG),
     OF_CLASS(is_roundrobin),
     .help = "deal the servers out to the threads: not each connects to all"},
    {.name = "no-nodelay", SCOPE(SHARED), KIND(FLAG), OF_CLASS(no_nodelay),
     .help = "leave TCP_NODELAY off"},
};
/* clang-format on */

static void
init(struct lclass *c)
{
    c->threads = c->connections = c->depth = 1;
    c->spin_us = SPIN_DEFAULT_US;
}

const struct class_group group_load = {ROWS(rows), .init = init};
