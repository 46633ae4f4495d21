/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/pace.h"

#include "base/must.h"

#define PS_PER_NS 1000
#define LEARN_PARTS 16     /* weight of what was before, of a write more */
#define SURPRISE_MOST 4    /* times what was expected that a write counts at most */
#define BYTE_PS_LEAST 10   /* 100 GB/s */
#define BYTE_PS_MOST 20000 /* 50 MB/s */

void
pace_init(struct pace *p)
{
    *p = (struct pace){.byte_ps = {[PACE_PLAIN] = 150, [PACE_TLS] = 500}};
}

static uint64_t
clamp(uint64_t n, uint64_t least, uint64_t most)
{
    return n < least ? least : n > most ? most : n;
}

nsec_t
pace_turn_ns(const struct pace *p, nsec_t now)
{
    if (p->guest_at == 0) {
        return PACE_TURN_MAX_NS;
    }
    nsec_t gone = now > p->guest_at ? now - p->guest_at : 0;
    return clamp(gone / PACE_GUEST_PARTS, PACE_TURN_MIN_NS, PACE_TURN_MAX_NS);
}

void
pace_learn(struct pace *p, enum pace_way way, size_t bytes, nsec_t took)
{
    must((unsigned)way < PACE_WAYS);
    if (bytes < PACE_PIECE_MIN) {
        return; /* that was the call rather than its bytes */
    }
    uint64_t known = p->byte_ps[way];
    uint64_t most = known * SURPRISE_MOST;
    uint64_t ps = took < most * bytes / PS_PER_NS ? took * PS_PER_NS / bytes : most;
    uint64_t mixed = (known * (LEARN_PARTS - 1) + ps + LEARN_PARTS / 2) / LEARN_PARTS;
    p->byte_ps[way] = (uint32_t)clamp(mixed, BYTE_PS_LEAST, BYTE_PS_MOST);
}

nsec_t
pace_write_ns(const struct pace *p, enum pace_way way, size_t bytes)
{
    must((unsigned)way < PACE_WAYS);
    return (uint64_t)bytes * p->byte_ps[way] / PS_PER_NS;
}

size_t
pace_piece(const struct pace *p, enum pace_way way, nsec_t turn)
{
    must((unsigned)way < PACE_WAYS);
    size_t step = way == PACE_TLS ? PACE_PIECE_MIN : PACE_PIECE_STEP;
    size_t fits = turn * PS_PER_NS / p->byte_ps[way];
    return clamp(fits - fits % step, PACE_PIECE_MIN, PACE_PIECE_MAX);
}
