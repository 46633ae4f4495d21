/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sorts numbers in place, which fill BYTES of a cache, then other ones. `sort BYTES SECONDS`; work: laps.
 * Prints wrong=, pairs that were not in order.
 */
#include "antagonist.h"

/* Down to where it is no smaller than both below. */
static void
sink(uint64_t *heap, size_t count, size_t at)
{
    uint64_t value = heap[at];
    for (size_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        below += below + 1 < count && heap[below + 1] > heap[below];
        if (heap[below] <= value) {
            break;
        }
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = value;
}

static void
sort(uint64_t *numbers, size_t count)
{
    for (size_t i = count / 2; i-- > 0;) {
        sink(numbers, count, i);
    }
    for (size_t left = count; left-- > 1;) {
        uint64_t largest = numbers[0];
        numbers[0] = numbers[left];
        numbers[left] = largest;
        sink(numbers, left, 0);
    }
}

int
main(int argc, char **argv)
{
    size_t count = argc == 3 ? strtoull(argv[1], NULL, 10) / sizeof(uint64_t) : 0;
    if (count < 2) {
        usage("sort BYTES SECONDS");
    }
    uint64_t *numbers = malloc(count * sizeof *numbers);
    if (numbers == NULL) {
        fail("sort");
    }
    uint64_t work = 0, wrong = 0, seed = 1;
    begin(argv[2]);
    do {
        for (size_t i = 0; i < count; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            numbers[i] = seed;
        }
        sort(numbers, count);
        for (size_t i = 1; i < count; i++) {
            wrong += numbers[i - 1] > numbers[i];
        }
        work++;
    } while (goes_on());
    finish(work, "wrong=%llu", (unsigned long long)wrong);
    free(numbers);
    return 0;
}
