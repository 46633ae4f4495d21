/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * "stats latency": how long each stage of requests takes. Measured by core/latency.h.
 */
#include <inttypes.h>

#include "base/hist.h"
#include "front/front.h"

/* Of classes from first to last; of requests that were served, or refused. */
static void
show_stages(struct stats *st, struct sink *sink, const char *name, unsigned first,
            unsigned last, bool is_refused, struct hist *sum)
{
    char full[FRONT_NAME_MAX], of_all[FRONT_NAME_MAX];
    for (unsigned s = 0; s < LATENCY_STAGES; s++) {
        hist_reset(sum);
        for (unsigned i = 0; i < st->worker_count; i++) {
            const struct latency *l = &st->workers[i].core.latency;
            for (unsigned c = first; c <= last; c++) {
                hist_merge(sum, is_refused ? l->refused[c][s] : l->stages[c][s]);
            }
        }
        front_name(name, latency_stage_name((enum latency_stage)s), full);
        sink_statf(sink, front_name(full, "count", of_all), "%" PRIu64, hist_count(sum));
        front_put_quantiles(sink, full, sum);
    }
}

/* All that was served, each class of it, all that was refused, and each class of that, in this
 * order; one a call. */
static enum reply
show_latency(struct stats *st, const struct stats_query *ask)
{
    unsigned part = ask->place->at++;
    bool is_refused = part > CLASS_COUNT;
    unsigned nth = is_refused ? part - CLASS_COUNT - 1 : part; /* 0: all classes */
    /* Control commands, the first class, are never refused. */
    unsigned first = is_refused || nth == 0 ? nth : nth - 1;
    unsigned last = nth > 0 ? first : CLASS_COUNT - 1;
    const char *class = nth > 0 ? class_name((enum req_class)first) : "";
    char name[FRONT_NAME_MAX];
    struct hist *sum = hist_create(LATENCY_SUB_BITS, LATENCY_MAX_NS);
    if (sum == NULL) {
        ask->sink->has_failed = true;
        return REPLY_END;
    }
    front_name(is_refused ? "latency_refused" : "latency",
               is_refused || nth > 0 ? class : "all", name);
    show_stages(st, ask->sink, name, first, last, is_refused, sum);
    hist_destroy(&sum);
    return part == 2 * CLASS_COUNT ? REPLY_END : REPLY_NONE;
}

static const struct stats_group groups[] = {{"latency", show_latency}};

const struct front front_latency = {GROUPS(groups)};
