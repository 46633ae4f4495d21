/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Makes each point of a grid the mean of its four neighbours, from one grid into the other, BYTES in
 * all. `stencil BYTES SECONDS`; work: rows. Prints wrong=, points that have changed: those of a plane do not.
 */
#include <math.h>

#include "antagonist.h"

static void
fill(double *grid, size_t side)
{
    for (size_t i = 0; i < side * side; i++) {
        grid[i] = (double)(i / side + i % side);
    }
}

static void
step_row(double *to, const double *from, size_t side)
{
    for (size_t x = 1; x + 1 < side; x++) {
        to[x] = 0.25 * (from[x - 1] + from[x + 1] + from[x - side] + from[x + side]);
    }
}

int
main(int argc, char **argv)
{
    size_t points = argc == 3 ? strtoull(argv[1], NULL, 10) / (2 * sizeof(double)) : 0;
    size_t side = (size_t)sqrt((double)points);
    if (side < 3) {
        usage("stencil BYTES SECONDS");
    }
    double *grids = malloc(2 * side * side * sizeof *grids);
    if (grids == NULL) {
        fail("stencil");
    }
    double *from = grids, *to = grids + side * side;
    fill(from, side);
    fill(to, side);
    uint64_t work = 0, wrong = 0;
    begin(argv[2]);
    do {
        for (size_t y = 1; y + 1 < side && goes_on(); y++) {
            step_row(to + y * side, from + y * side, side);
            work++;
        }
        double *swap = from;
        from = to;
        to = swap;
    } while (goes_on());
    stop();
    for (size_t i = 0; i < side * side; i++) {
        wrong += fabs(from[i] - (double)(i / side + i % side)) > 1e-6;
    }
    finish(work, "wrong=%llu", (unsigned long long)wrong);
    free(grids);
    return 0;
}
