/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Since when the input of a connection has waited.
 */
#include "core/arrival.h"

#include "check_unit.h"
#include "core/core.h"

#define US NSEC_PER_USEC
#define NOW (50 * NSEC_PER_SEC)
#define WALL (UINT64_C(1700000000) * NSEC_PER_SEC)

/* A read at NOW: times are microseconds before it. */
static const struct {
    const char *bytes;
    unsigned stamp;   /* of the last packet; 0: none */
    unsigned ready;   /* the socket was reported */
    unsigned woke;    /* the pass began, */
    unsigned heard;   /* whose poll found what arrived since then */
    unsigned emptied; /* the socket was last read empty */
    bool had_rest, was_blocked, has_rest, is_slow;
    int since;    /* what is noted; -1: not known */
    int empty_at; /* likewise */
} rows[] = {
    /* One request: the packet's stamp tells. */
    {"get a\r\n", 70, 20, 20, 20, 900, false, false, false, false, 70, 0},
    /* Without a stamp the report is the earliest that is known. */
    {"get a\r\n", 0, 20, 20, 20, 900, false, false, false, false, 20, 0},
    /* Several: the first may have waited as long as the pass before this one took, */
    {"get a\r\nget b\r\n", 70, 20, 20, 320, 900, false, false, false, false, 300, 0},
    /* but not longer than since the socket was empty, */
    {"get a\r\nget b\r\n", 70, 20, 20, 320, 200, false, false, false, false, 200, 0},
    /* and since then if it was not read empty: what was left is as old. */
    {"get a\r\nget b\r\n", 70, 20, 20, 120, 200, true, false, false, false, 200, 0},
    /* The client took no replies: waiting in the kernel was its own doing. */
    {"get a\r\n", 70, 20, 20, 20, 900, false, true, false, false, 20, 0},
    {"get a\r\nget b\r\n", 70, 20, 20, 320, 900, false, true, false, false, 20, 0},
    /* A client that is slow itself tells nothing. */
    {"g", 70, 20, 20, 20, 900, false, false, false, true, -1, 0},
    /* What is left unread is not older than what was read. */
    {"get a\r\n", 70, 20, 20, 20, 900, false, false, true, false, 70, 70},
    /* A report of an earlier pass: only the stamp counts. */
    {"get a\r\nget b\r\n", 70, 60, 20, 320, 900, false, false, false, false, 70, 0},
};

START_TEST(waited_since)
{
    const char *bytes = rows[_i].bytes;
    struct pass pass = {.woke_at = NOW - rows[_i].woke * US,
                        .heard_at = NOW - rows[_i].heard * US};
    struct arrival a = {.empty_at = NOW - rows[_i].emptied * US,
                        .has_rest = rows[_i].had_rest,
                        .was_blocked = rows[_i].was_blocked};
    struct arrival_read r = {
        .bytes = bytes,
        .len = strlen(bytes),
        .has_rest = rows[_i].has_rest,
        .is_own_delay = rows[_i].is_slow,
        .times = {.rx_wall = rows[_i].stamp > 0 ? WALL - rows[_i].stamp * US : 0,
                  .read_wall = WALL,
                  .read_mono = NOW,
                  .ready_mono = NOW - rows[_i].ready * US}};
    arrival_note(&a, &pass, &r);
    ck_assert_uint_eq(a.since,
                      rows[_i].since < 0 ? 0 : NOW - (unsigned)rows[_i].since * US);
    ck_assert_uint_eq(a.empty_at, NOW - (unsigned)rows[_i].empty_at * US);
    expect(!a.was_blocked && a.has_rest == rows[_i].has_rest);
}
END_TEST

START_TEST(unmeasured_is_not_known)
{
    struct pass pass = {.woke_at = NOW};
    struct arrival a = {.since = 1, .was_blocked = true};
    arrival_note_unmeasured(&a, &pass, true);
    expect(a.since == 0 && a.has_rest && !a.was_blocked && a.empty_at == NOW);
    pass.woke_at += US;
    arrival_note_empty(&a, &pass);
    expect(!a.has_rest && a.empty_at == NOW + US);
}
END_TEST

START_TEST(a_message_has_waited_in_all)
{
    struct sojourn_times times = {.rx_wall = WALL - 90 * US,
                                  .read_wall = WALL,
                                  .read_mono = NOW,
                                  .ready_mono = NOW - 30 * US};
    ck_assert_uint_eq(arrival_of(&times), NOW - 90 * US);
    times.rx_wall = 0;
    ck_assert_uint_eq(arrival_of(&times), NOW - 30 * US);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("arrival");
    TCase *tc = tcase_create("arrival");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_loop_test(tc, waited_since, 0, ROWS(rows));
    tcase_add_test(tc, unmeasured_is_not_known);
    tcase_add_test(tc, a_message_has_waited_in_all);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
