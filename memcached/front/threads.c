/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How many workers there are, and how they take turns. The policy: qos/pace.h, qos/sched.h.
 */
#include <inttypes.h>

#include "base/num.h"
#include "front/front.h"
#include "place/cgroup.h"
#include "qos/pace.h"

#define THREADS_MAX 1024
#define THREADS_DEFAULT 4
#define THREADS_UNSET (-1) /* while the options are read */
#define THREADS_AUTO 0     /* likewise: as many as there are CPUs */

/* The CPUs are counted when --pin is known too. */
static const char *
set_threads(void *conf, const char *text)
{
    struct settings *s = conf;
    size_t len = strcspn(text, " ");
    bool is_word = text[len + strspn(text + len, " ")] == '\0';
    if (len == strlen("auto") && strncmp(text, "auto", len) == 0) {
        s->threads = THREADS_AUTO;
        return NULL;
    }
    return is_word && num_i64(text, len, &s->threads) && s->threads >= 1 &&
                   s->threads <= THREADS_MAX
               ? NULL
               : "Number of threads must be greater than 0 and at most 1024, or auto";
}

/* clang-format off */
static const struct opt options[] = {
    {.letter = 't', .name = "threads", SET(set_threads), .arg = "N|auto", .section = THREADS,
     .common = 8, .preset_help = "4", .help = "worker threads; auto: by CPUs and quota"},
    {.letter = 'R', .name = "max-reqs-per-event", .kind = OPT_INT, OF(requests_per_event),
     .min = 1, .max = 1e9, .arg = "N", .section = THREADS, .preset = "20",
     .error = "Number of requests per event must be greater than 0 and at most 1000000000",
     .help = "requests of one connection in a row before others are served"},
};
/* clang-format on */

static void
init(struct settings *s)
{
    s->threads = THREADS_UNSET;
}

/* As upstream there are 4, but pinned ones do not share CPUs that they need not share. */
void
threads_count(struct settings *s)
{
    bool is_default = s->threads == THREADS_UNSET;
    bool is_pinned = s->is_pinned && s->pin.policy != PIN_NONE;
    int64_t most = is_default ? THREADS_DEFAULT : THREADS_MAX;
    if (s->threads == THREADS_AUTO || (is_default && is_pinned)) {
        unsigned workers =
            pin_workers(&s->pin, cgroup_quota_milli("", CGROUP_SELF, NULL));
        s->threads = workers < most ? workers : most;
    } else if (is_default) {
        s->threads = most;
    }
}

static void
wire(const struct settings *s, struct net_shared *shared)
{
    shared->worker_count = (unsigned)s->threads;
    shared->core.requests_per_event = s->requests_per_event;
}

static const struct stats_counter counters[] = {
    {"trickled_reads", COUNTER_OF(core.ctr.trickled)},
    {"trickle_waits", COUNTER_OF(core.ctr.trickle_waits)},
};

static void
show(struct stats *st, struct sink *sink)
{
    uint64_t queued = 0, turns = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        queued += front_sum(st, COUNTER_OF(core.classes[c].queued));
        turns += front_sum(st, COUNTER_OF(core.classes[c].turns));
    }
    sink_statf(sink, "turn_us", "%" PRIu64, PACE_TURN_MAX_NS / NSEC_PER_USEC);
    sink_statf(sink, "deferred", "%" PRIu64, queued);
    sink_statf(sink, "deferred_turns", "%" PRIu64, turns);
    front_put_counters(st, sink, ROWS_OF(counters));
}

const struct front front_threads = {OPTIONS(options), .init = init, .wire = wire,
                                    .show = show};
