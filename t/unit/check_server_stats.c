/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Replies to stats, and what they say together.
 */
#include "loadgen/measure/server_stats.h"

#include <string.h>

#include "check_unit.h"

#define REPLY                                                                            \
    "STAT version 1.6.18\r\nSTAT cmd_get 12\r\nSTAT cmd_getx 7\r\nSTAT evictions 3\r\n"  \
    "STAT rusage_user 1.500000\r\nSTAT rusage_system 0.25\r\nSTAT bytes x\r\nEND\r\n"

START_TEST(test_parse)
{
    struct server_sample s = {.values = {[STAT_SETS] = 5}};
    for (size_t len = 0; len < strlen(REPLY); len++) {
        ck_assert(!server_sample_parse(&s, REPLY, len));
    }
    ck_assert(server_sample_parse(&s, REPLY, strlen(REPLY)));
    ck_assert_double_eq(s.values[STAT_GETS], 12);
    ck_assert_double_eq(s.values[STAT_EVICTIONS], 3);
    ck_assert_double_eq(s.values[STAT_CPU_USER], 1.5);
    ck_assert_double_eq(s.values[STAT_CPU_SYSTEM], .25);
    ck_assert_double_eq(s.values[STAT_BYTES], 0); /* no number */
    ck_assert_double_eq(s.values[STAT_SETS], 0);  /* not told */
    static const char odd[] = "\n\nSTAT\nSTAT \r\nSTAT bytes\r\nSTAT bytes \r\nEND\r\n";
    ck_assert(server_sample_parse(&s, odd, strlen(odd)));
    ck_assert_double_eq(s.values[STAT_BYTES], 0);
    ck_assert(server_sample_parse(&s, "END\r\n", 5));
    ck_assert(!server_sample_parse(&s, "STAT bytes END\r\n", 16));
}
END_TEST

static void
add(struct server_stats *s, unsigned server, double at_s, double gets, double cpu_s)
{
    struct server_sample sample = {server, at_s, {[STAT_GETS] = gets}};
    sample.values[STAT_CPU_USER] = cpu_s / 2;
    sample.values[STAT_CPU_SYSTEM] = cpu_s / 2;
    ck_assert(server_stats_add(s, &sample));
}

START_TEST(test_change)
{
    struct server_stats *s = server_stats_create(3);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(server_stats_change(s).servers, 0);
    for (unsigned i = 0; i <= 100; i++) {
        add(s, 0, i, 10 * i, i / 2.0);
        add(s, 1, i, 1, i / 4.0);
    }
    add(s, 2, 1, 77, 7); /* one only says nothing */
    struct server_change c = server_stats_change(s);
    ck_assert_uint_eq(c.servers, 2);
    ck_assert_double_eq(c.before[STAT_GETS], 1);
    ck_assert_double_eq(c.after[STAT_GETS], 1001);
    ck_assert_double_eq_tol(c.cpu, .75, 1e-9);
    server_stats_destroy(&s);
    ck_assert_ptr_null(s);
    server_stats_destroy(&s);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("server_stats");
    TCase *tc = tcase_create("server_stats");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_test(tc, test_parse);
    tcase_add_test(tc, test_change);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
