/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Computes with numbers that never leave the registers: no cache matters. `float TERMS SECONDS`; work:
 * laps, of so many terms of a series. Prints wrong=, laps with another sum than the first one.
 */
#include <math.h>

#include "antagonist.h"

static double
lap_of(uint64_t terms)
{
    double sum = 0, sign = 1;
    for (uint64_t i = 0; i < terms; i++) {
        sum += sign / (double)(2 * i + 1);
        sign = -sign;
    }
    return 4 * sum;
}

int
main(int argc, char **argv)
{
    uint64_t terms = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    if (terms == 0) {
        usage("float TERMS SECONDS");
    }
    double first = lap_of(terms);
    uint64_t work = 0, wrong = 0;
    begin(argv[2]);
    do {
        __asm__ volatile("" : "+r"(terms)); /* each lap is computed */
        wrong += fabs(lap_of(terms) - first) > 0;
        work++;
    } while (goes_on());
    finish(work, "wrong=%llu pi=%.3f", (unsigned long long)wrong, first);
    return 0;
}
