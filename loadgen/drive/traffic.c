/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/traffic.h"

const char *const traffic_mode_names[TRAFFIC_MODES] = {
    [TRAFFIC_CLOSED] = "closed",
    [TRAFFIC_OPEN] = "open",
    [TRAFFIC_PARTLY] = "partly",
};

const char *
traffic_settle(struct traffic *out, const struct traffic *from,
               const struct schedule_run *run, bool is_peak)
{
    struct schedule_point steady = {.rate = 1, .is_share = true};
    struct schedule always = {.points = &steady, .count = 1};
    const struct schedule *schedule = &from->schedule;
    const char *wrong = NULL;
    bool has_rate = run->rate > 0 || (schedule_varies(schedule) && !is_peak &&
                                      !schedule_has_shares(schedule));
    *out = *from;
    out->schedule = (struct schedule){.count = 0};
    out->rate = run->rate;
    if (from->is_timed) {
        out->mode = TRAFFIC_OPEN;
        return NULL;
    }
    if (!has_rate) {
        out->mode = TRAFFIC_CLOSED;
    } else if (from->mode == TRAFFIC_CLOSED) {
        out->mode = TRAFFIC_OPEN;
    }
    if (has_rate && !schedule_varies(schedule) &&
        (run->quiet_s > 0 || run->lead_rate > 0)) {
        schedule = &always;
    }
    if (has_rate && schedule_varies(schedule)) {
        wrong = schedule_settle(&out->schedule, schedule, run);
        out->rate = out->schedule.mean;
    }
    return wrong;
}

double
traffic_session_mean(const struct traffic *t)
{
    return t->mode == TRAFFIC_PARTLY ? dist_size_mean(&t->session, 1, TRAFFIC_SESSION_MAX)
                                     : 1;
}
