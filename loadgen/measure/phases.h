/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The moments that part a run, of one process or of a swarm, as the spans that its result
 * tells. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "loadgen/measure/result.h"

/* All by the clock of the process that tells. */
struct phase_times {
    nsec_t opened, ready; /* connecting began; all are connected and have loaded */
    bool is_first;        /* no run was before this one: loading is a part of it */
    nsec_t begin, start;  /* of the warm-up, of the window */
    nsec_t end,
        drained; /* of the window; the last reply has come, or none does any more */
};

void phases_tell(const struct phase_times *t, struct result_span phases[PHASES]);
const char *phase_name(enum result_phase phase);
