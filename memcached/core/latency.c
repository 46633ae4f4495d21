/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/latency.h"

static const char *const names[LATENCY_STAGES] = {
    [LATENCY_KERNEL] = "kernel",   [LATENCY_LOOP] = "loop",
    [LATENCY_DELAY] = "delay",     [LATENCY_READ] = "read",
    [LATENCY_EXECUTE] = "execute", [LATENCY_WRITE] = "write"};

const char *
latency_stage_name(enum latency_stage stage)
{
    must((unsigned)stage < LATENCY_STAGES);
    return names[stage];
}

static bool
create(struct hist *hists[LATENCY_STAGES])
{
    bool is_good = true;
    for (unsigned s = 0; s < LATENCY_STAGES; s++) {
        hists[s] = hist_create(LATENCY_SUB_BITS, LATENCY_MAX_NS);
        is_good = is_good && hists[s] != NULL;
    }
    return is_good;
}

bool
latency_init(struct latency *l)
{
    bool is_good = true;
    *l = (struct latency){.followed = NULL};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        is_good = create(l->stages[c]) && create(l->refused[c]) && is_good;
    }
    return is_good;
}

void
latency_fini(struct latency *l)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        for (unsigned s = 0; s < LATENCY_STAGES; s++) {
            hist_destroy(&l->stages[c][s]);
            hist_destroy(&l->refused[c][s]);
        }
    }
}

bool
latency_has_room(struct latency *l, nsec_t now)
{
    if (l->followed != NULL && l->is_read && now > l->read_at + LATENCY_PATIENCE_NS) {
        latency_end(l, now, now);
    }
    return l->followed == NULL;
}

void
latency_begin(struct latency *l, const void *followed, nsec_t ready_at)
{
    l->followed = followed;
    l->ready_at = ready_at;
    l->class = CLASS_NONE;
    l->is_read = l->is_over = l->is_refused = false;
}

void
latency_read(struct latency *l, struct sojourn_times *times, nsec_t now)
{
    times->ready_mono = l->ready_at;
    if (l->is_read) {
        return;
    }
    l->sojourn = sojourn_of(times);
    l->read_at = now;
    l->read_ns = l->read_at - times->read_mono;
    l->is_read = true;
    ctr_add(&l->delay_ns, l->sojourn.total);
    ctr_add(&l->delays, 1);
}

void
latency_end(struct latency *l, nsec_t begin, nsec_t now)
{
    l->followed = NULL;
    if (!l->is_read || l->class == CLASS_NONE) {
        return;
    }
    struct hist *const *stages =
        l->is_refused ? l->refused[l->class] : l->stages[l->class];
    if (l->sojourn.has_kernel) {
        hist_record(stages[LATENCY_KERNEL], l->sojourn.kernel);
    }
    hist_record(stages[LATENCY_LOOP], l->sojourn.loop);
    hist_record(stages[LATENCY_DELAY], l->sojourn.total);
    hist_record(stages[LATENCY_READ], l->read_ns);
    hist_record(stages[LATENCY_EXECUTE], begin > l->read_at ? begin - l->read_at : 0);
    hist_record(stages[LATENCY_WRITE], now > begin ? now - begin : 0);
}
