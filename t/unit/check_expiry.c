/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Expiry times as clients write them.
 */
#include "store/expiry.h"
#include "check_main.h"

#include <stdlib.h>

#define STARTED INT64_C(1700000000)
#define THIRTY_DAYS INT64_C(2592000)

static const struct {
    int64_t exptime;
    uint32_t now;
    uint32_t expected;
} cases[] = {
    {0, 100, STORE_NEVER},
    {1, 100, 101},
    {THIRTY_DAYS, 100, 2592100},
    {-1, 100, STORE_EXPIRED},
    {INT32_MIN, 100, STORE_EXPIRED},
    {INT64_MIN, 100, STORE_EXPIRED},
    /* Wall times: before the start, at it, around the first representable second. */
    {THIRTY_DAYS + 1, 100, STORE_EXPIRED},
    {2678400, 100, STORE_EXPIRED},
    {STARTED - 1, 100, STORE_EXPIRED},
    {STARTED, 100, STORE_EXPIRED},
    {STARTED + 1, 100, STORE_EXPIRED},
    {STARTED + 2, 100, 2},
    {STARTED + 100, 100, 100},
    {STARTED + 5000, 100, 5000},
    {STARTED + UINT32_MAX, 100, UINT32_MAX},
    {STARTED + UINT32_MAX + 1, 100, UINT32_MAX},
    {INT64_MAX, 100, UINT32_MAX},
};

TEST_ROWS(exptime_becomes_relative, cases, NULL)
{
    ck_assert_uint_eq(expiry_from_wire(row->exptime, row->now, STARTED), row->expected);
}
