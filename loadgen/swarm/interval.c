/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/interval.h"

#include "base/must.h"
#include "loadgen/measure/series.h"

#define LENGTH_MIN (10 * NSEC_PER_MSEC)
#define LENGTH_SHORT (100 * NSEC_PER_MSEC)
#define LENGTH_MAX NSEC_PER_SEC
#define LOOKS (SERIES_PIECES / 2) /* enough for its confidence */

nsec_t
interval_length(nsec_t time, nsec_t row_length)
{
    nsec_t length = time / LOOKS;
    length = length < LENGTH_SHORT ? LENGTH_SHORT
             : length > LENGTH_MAX ? LENGTH_MAX
                                   : length;
    if (row_length > length) {
        return row_length / ((row_length + length - 1) / length);
    }
    row_length = row_length < LENGTH_MIN ? LENGTH_MIN : row_length;
    return row_length < length ? row_length : length;
}

uint64_t
interval_last(nsec_t time, nsec_t length)
{
    must(length > 0);
    return time == 0 ? 1 : (time + length - 1) / length;
}

uint64_t
interval_number(nsec_t since, nsec_t time, nsec_t length)
{
    uint64_t last = interval_last(time, length), n = (since + length / 2) / length;
    return n < last ? n : last - 1;
}
