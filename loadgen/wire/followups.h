/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What follows from the answers of a connection: a ring of requests that go before anything
 * else, and, of workloads that defer, a list of what the last answer left to the caller. Its
 * connection's thread; no allocation after followups_init.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "loadgen/wire/codec.h"
#include "loadgen/work/workload.h"

/* A request of one key that follows from an answer. */
struct followup {
    nsec_t intended; /* when the answer came */
    uint64_t key;
    uint64_t cas;
    enum codec_verb verb; /* SET, CAS or GET */
    bool is_fill;
    uint8_t tries; /* as struct request has it */
};

/* What is to be done about a key, though not at once. */
enum missed_need {
    NEED_SET, /* it was missed */
    NEED_CAS, /* the same, and the lease on it was won */
    NEED_GET, /* it was missed, and another client has the lease */
};

struct missed {
    uint64_t key, cas;
    enum missed_need need;
    uint8_t tries;
};

struct followups {
    /* whose pages the keys are, held while needed; NULL: numbers */
    struct trace_buffer *trace_buffer;

    /* Sent before anything else, so that it never holds more than the keys of all gets on
     * their way: `room`; and as many that were deferred. */
    struct followup *ring;
    unsigned room, cap, head, count;

    /* What the caller empties: of each entry it has the key (trace_buffer_release). */
    struct missed *missed;
    unsigned missed_room, missed_count;
    unsigned stale; /* values that were out of date */
};

/* Of at most this many outstanding requests. */
void followups_init(struct followups *q, const struct workload *w, unsigned requests);
void followups_fini(struct followups *q);
/* Forgets all of them. */
void followups_reset(struct followups *q);

void followups_add(struct followups *q, const struct workload *w, struct followup next);
/* The oldest, of which there is one, is done: its key is released. */
void followups_pop(struct followups *q);
/* It is left to the caller. */
void followups_miss(struct followups *q, const struct workload *w, struct missed missed);

/* Of a workload that defers: what follows from answers has room beside one more. */
static inline bool
followups_have_room(const struct followups *q)
{
    return q->count < q->room;
}
