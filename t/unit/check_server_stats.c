/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Replies to stats and to stats settings, and what they say together.
 */
#include "loadgen/measure/server_stats.h"

#include <string.h>

#include "check_main.h"

#define REPLY                                                                            \
    "STAT version 1.6.18\r\nSTAT cmd_get 12\r\nSTAT cmd_getx 7\r\nSTAT evictions 3\r\n"  \
    "STAT rusage_user 1.500000\r\nSTAT rusage_system 0.25\r\nSTAT bytes x\r\nEND\r\n"

TEST(test_parse)
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
    ck_assert_uint_eq(s.reported, 1U << STAT_GETS | 1U << STAT_EVICTIONS |
                                      1U << STAT_CPU_USER | 1U << STAT_CPU_SYSTEM);
    static const char odd[] = "\n\nSTAT\nSTAT \r\nSTAT bytes\r\nSTAT bytes \r\nEND\r\n";
    ck_assert(server_sample_parse(&s, odd, strlen(odd)));
    ck_assert_double_eq(s.values[STAT_BYTES], 0);
    ck_assert(server_sample_parse(&s, "END\r\n", 5));
    ck_assert(!server_sample_parse(&s, "STAT bytes END\r\n", 16));
}

static void
add(struct server_stats *s, unsigned server, double at_s, double gets, double cpu_s)
{
    struct server_sample sample = {
        server, at_s, {[STAT_GETS] = gets}, SERVER_STATS_ALL & ~(1U << server)};
    sample.values[STAT_CPU_USER] = cpu_s / 2;
    sample.values[STAT_CPU_SYSTEM] = cpu_s / 2;
    server_stats_add(s, &sample);
}

TEST(test_change)
{
    SCOPED(server_stats_destroy) struct server_stats *s = server_stats_create(3);
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
    ck_assert_uint_eq(c.reported, SERVER_STATS_ALL & ~3U); /* by both */
    server_stats_destroy(&s);
    ck_assert_ptr_null(s);
}

/* What was counted before a server began anew is no part of a difference. */
TEST(test_restart)
{
    SCOPED(server_stats_destroy) struct server_stats *s = server_stats_create(2);
    add(s, 0, 0, 1000, 9);
    add(s, 1, 0, 100, 1);
    add(s, 0, 1, 5, 0.5); /* and then it has done more than before */
    add(s, 0, 2, 2000, 12);
    add(s, 1, 2, 300, 2);
    struct server_change c = server_stats_change(s);
    ck_assert_uint_eq(c.servers, 1);
    ck_assert_uint_eq(c.restarted, 1);
    ck_assert_double_eq(c.before[STAT_GETS], 100);
    ck_assert_double_eq(c.after[STAT_GETS], 300);
    ck_assert_double_eq_tol(c.cpu, .5, 1e-9);
    add(s, 1, 3, 301, 1.5); /* only its CPU time is less */
    c = server_stats_change(s);
    ck_assert_uint_eq(c.servers, 0);
    ck_assert_uint_eq(c.restarted, 2);
}

/* Items and connections come and go. */
TEST(test_no_restart)
{
    SCOPED(server_stats_destroy) struct server_stats *s = server_stats_create(1);
    struct server_sample sample = {.reported = SERVER_STATS_ALL};
    for (unsigned i = 0; i < 2; i++) {
        sample.at_s = i;
        sample.values[STAT_ITEMS] = sample.values[STAT_BYTES] = 9 - i;
        sample.values[STAT_CONNECTIONS] = 9 - i;
        server_stats_add(s, &sample);
    }
    ck_assert_uint_eq(server_stats_change(s).servers, 1);
    ck_assert_uint_eq(server_stats_change(s).restarted, 0);
}

TEST(test_evictions)
{
    SCOPED(server_stats_destroy) struct server_stats *s = server_stats_create(2);
    struct server_sample sample = {0, 1, {[STAT_EVICTIONS] = 3}, 1U << STAT_EVICTIONS};
    ck_assert_ptr_nonnull(s);
    server_stats_add(s, &sample);
    ck_assert(!server_stats_evictions(s).is_known); /* one has not answered */
    sample.server = 1;
    server_stats_add(s, &sample);
    sample.values[STAT_EVICTIONS] = 10;
    sample.at_s = 2;
    server_stats_add(s, &sample);
    s->evictions = (struct server_evictions){.knows_loading = true, .loading = 2};
    struct server_evictions e = server_stats_evictions(s);
    ck_assert(e.is_known && e.knows_loading);
    ck_assert_double_eq(e.total, 13);
    ck_assert_double_eq(e.loading, 2);
    s->end_s = 1;
    ck_assert(server_stats_evictions(s).is_known);
    s->end_s = 1.5; /* the first was not asked any more */
    ck_assert(!server_stats_evictions(s).is_known);
    s->end_s = 0;
    sample.reported = 0;
    server_stats_add(s, &sample);
    ck_assert(!server_stats_evictions(s).is_known); /* the second does not tell */
}

#define SETTINGS                                                                         \
    "VERSION 1.6.18\r\nSTAT maxbytes 67108864\r\nSTAT inter \r\nSTAT odd\r\n"            \
    "STAT socket a b\r\nEND\r\n"

static void
refuse(const char *text, const char *version)
{
    SCOPED(server_settings_release) struct server_settings *s = server_settings_create(1);
    ck_assert_ptr_nonnull(s);
    ck_assert(server_settings_take(s, 0, text, strlen(text)));
    ck_assert_uint_eq(s->reported[0].len, 0);
    if (version != NULL) {
        ck_assert_str_eq(s->reported[0].version, version);
    } else {
        ck_assert_ptr_null(s->reported[0].version);
    }
    ck_assert_int_eq(server_settings_are_known(s), version != NULL);
}

TEST(test_settings)
{
    struct server_settings *s = server_settings_create(2);
    ck_assert_ptr_nonnull(s);
    ck_assert(!server_settings_are_known(s));
    for (size_t len = 0; len < strlen(SETTINGS); len++) {
        ck_assert(!server_settings_take(s, 1, SETTINGS, len));
    }
    ck_assert(server_settings_take(s, 1, SETTINGS, strlen(SETTINGS)));
    ck_assert(server_settings_are_known(s));
    const struct server_report *t = &s->reported[1];
    ck_assert_str_eq(t->version, "1.6.18");
    ck_assert_uint_eq(t->len, 3);
    ck_assert_str_eq(t->settings[0].name, "maxbytes");
    ck_assert_str_eq(t->settings[0].value, "67108864");
    ck_assert_str_eq(t->settings[1].value, "");
    ck_assert_str_eq(t->settings[2].value, "a b");
    ck_assert_uint_eq(s->reported[0].len, 0);

    struct server_settings *other = server_settings_get(s);
    server_settings_release(&s);
    ck_assert_ptr_null(s);
    ck_assert_str_eq(other->reported[1].version, "1.6.18");
    server_settings_release(&other);
    server_settings_release(&other);
    ck_assert(!server_settings_are_known(server_settings_get(NULL)));

    refuse("ERROR\r\nERROR\r\n", NULL);
    refuse("VERSION 7\nERROR\r\n", "7");
    refuse("VERSION 7\r\nEND\r\n", "7");
    refuse("-ERR x\r\n-ERR y\r\n", NULL);
    refuse("\n\n", NULL);
    refuse("STAT a b\nSTAT c\nEND\n", NULL);
}
