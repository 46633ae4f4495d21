/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The line a minute of what quality of service did: when it is told, and of what.
 */
#include "qos/minute.h"

#include "check_main.h"

#define START (1000 * NSEC_PER_SEC)
#define MINUTE (60 * NSEC_PER_SEC)

static struct minute m;
static char line[MINUTE_LINE_MAX];

static void
set_up(void)
{
    minute_init(&m, START);
}

FIXTURE(set_up, NULL);

TEST(test_nothing_happens)
{
    struct minute_counts counts = {.admitted = 5};
    for (unsigned s = 0; s < 600; s++) {
        counts.admitted += 1000;
        ck_assert(!minute_tell(&m, START + s * NSEC_PER_SEC, counts, line));
    }
}

/* Once a minute, of that minute alone; a minute without any is passed over. */
TEST(test_a_minute_each)
{
    struct minute_counts counts = {.admitted = 100, .delayed = 3};
    ck_assert(!minute_tell(&m, START + MINUTE - 1, counts, line));
    ck_assert(minute_tell(&m, START + MINUTE, counts, line));
    ck_assert_str_eq(line,
                     "qos in the last minute: 100 requests admitted, of these 3 delayed; "
                     "refused: 0 by limits, 0 by the slo");
    ck_assert(!minute_tell(&m, START + MINUTE + 1, counts, line));
    counts.admitted = 150;
    ck_assert(!minute_tell(&m, START + 2 * MINUTE, counts, line));
    counts.admitted = 170;
    counts.rejected = 4;
    ck_assert(!minute_tell(&m, START + 3 * MINUTE - 1, counts, line));
    counts.shed = 5;
    ck_assert(minute_tell(&m, START + 3 * MINUTE, counts, line));
    ck_assert_str_eq(line,
                     "qos in the last minute: 20 requests admitted, of these 0 delayed; "
                     "refused: 4 by limits, 5 by the slo");
    counts.would_limit = 1;
    ck_assert(minute_tell(&m, START + 4 * MINUTE, counts, line));
    ck_assert_str_eq(
        line, "qos in the last minute: 0 requests admitted, of these 0 delayed; "
              "refused: 0 by limits, 0 by the slo (dry run: limits would have acted)");
}

TEST(test_each_kind_counts)
{
    struct minute_counts one[] = {
        {.delayed = 1}, {.rejected = 1}, {.shed = 1}, {.would_limit = 1}};
    for (unsigned i = 0; i < ROWS(one); i++) {
        minute_init(&m, START);
        ck_assert(minute_tell(&m, START + MINUTE, one[i], line));
    }
}
