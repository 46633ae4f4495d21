/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Streams through memory: a[i] = b[i] + s * c[i] over three arrays of BYTES in all. `triad BYTES
 * SECONDS`; work: laps. Prints wrong=, results that are not what they should be.
 */
#include "antagonist.h"

int
main(int argc, char **argv)
{
    size_t count = argc == 3 ? strtoull(argv[1], NULL, 10) / (3 * sizeof(double)) : 0;
    if (count == 0) {
        usage("triad BYTES SECONDS");
    }
    double *memory = malloc(3 * count * sizeof *memory);
    if (memory == NULL) {
        fail("triad");
    }
    double *a = memory;
    double *b = a + count;
    double *c = b + count;
    for (size_t i = 0; i < count; i++) {
        a[i] = 0;
        b[i] = (double)i;
        c[i] = 2;
    }
    begin(argv[2]);
    uint64_t work = 0;
    do {
        double s = (double)++work;
        for (size_t i = 0; i < count; i++) {
            a[i] = b[i] + s * c[i];
        }
        __asm__ volatile("" : : "r"(a) : "memory");
    } while (goes_on());
    stop();
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += a[i] != (double)i + (double)work * 2;
    }
    finish(work, "wrong=%zu", wrong);
    free(memory);
    return 0;
}
