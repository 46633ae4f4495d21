/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/alarms.h"

#include "base/alloc.h"

void
alarms_init(struct alarms *a, unsigned capacity)
{
    *a = (struct alarms){.capacity = capacity};
    a->heap = alloc_zeroed(capacity, sizeof *a->heap);
}

void
alarms_fini(struct alarms *a)
{
    free(a->heap);
    *a = (struct alarms){.capacity = 0};
}

void
alarms_push(struct alarms *a, struct alarm_entry entry)
{
    must(a->count < a->capacity);
    unsigned i = a->count++;
    while (i > 0 && a->heap[(i - 1) / 2].when > entry.when) {
        a->heap[i] = a->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    a->heap[i] = entry;
}

struct alarm_entry
alarms_pop(struct alarms *a)
{
    must(a->count > 0);
    struct alarm_entry first = a->heap[0], moved = a->heap[--a->count];
    unsigned i = 0;
    for (unsigned child = 1; child < a->count; child = 2 * i + 1) {
        if (child + 1 < a->count && a->heap[child + 1].when < a->heap[child].when) {
            child++;
        }
        if (moved.when <= a->heap[child].when) {
            break;
        }
        a->heap[i] = a->heap[child];
        i = child;
    }
    a->heap[i] = moved;
    return first;
}
