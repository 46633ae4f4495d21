/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The main() of a unit test. Tests register themselves where they are defined and run in the
 * order of their lines; every row of a table is a test whose name says which row it is.
 *
 *     FIXTURE(set_up, tear_down);         run around each test below, until the next FIXTURE
 *     TEST(name) { ... }
 *     TEST_ABORTS(name) { ... }           must call abort()
 *     TEST_LOOP(name, count) { ... }      once with each _i below the count
 *     TEST_ROWS(name, table, label) { ... }   with each row; label: text from row, or NULL
 */
#pragma once

#include <ctype.h>

#include "check_unit.h"

#define ROUND_NAME_BYTES 96
#define ROUND_NAME_MORE 2 /* "]" */

/* What Check knows of one call of a test. */
struct test_round {
    TTest check;
    char name[ROUND_NAME_BYTES + ROUND_NAME_MORE];
};

/* A test with all its rounds, or a fixture. */
struct test_entry {
    int line;
    const char *name;
    TFun run; /* NULL: a fixture */
    int count, signal;
    const char *(*label)(int round);
    SFun set_up, tear_down;
    struct test_round *rounds;
    struct test_entry *next;
};

static struct test_entry *test_entries;

/* By line, as constructors of one file run in any order. */
static void
test_add(struct test_entry *entry)
{
    struct test_entry **at = &test_entries;
    while (*at != NULL && (*at)->line < entry->line) {
        at = &(*at)->next;
    }
    entry->next = *at;
    *at = entry;
}

#define TEST_ENTRY_(id, ...)                                                             \
    static __attribute__((constructor)) void id##_add(void)                              \
    {                                                                                    \
        static struct test_entry entry = {.line = __LINE__, __VA_ARGS__};                \
        test_add(&entry);                                                                \
    }
#define TEST_(id, rounds_, signal_)                                                      \
    static void id(int);                                                                 \
    TEST_ENTRY_(id, .name = #id, .run = id, .count = (rounds_), .signal = (signal_))     \
    static void id(__attribute__((unused)) int _i)

#define TEST(id) TEST_(id, 1, 0)
#define TEST_ABORTS(id) TEST_(id, 1, SIGABRT)
#define TEST_LOOP(id, rounds) TEST_(id, rounds, 0)

#define TEST_ROWS(id, table, label_)                                                     \
    static void id##_row(__typeof__(&(table)[0]) row);                                   \
    static const char *id##_label(int i)                                                 \
    {                                                                                    \
        __attribute__((unused)) __typeof__(&(table)[0]) row = &(table)[i];               \
        return (label_);                                                                 \
    }                                                                                    \
    static void id(int i)                                                                \
    {                                                                                    \
        id##_row(&(table)[i]);                                                           \
    }                                                                                    \
    TEST_ENTRY_(id, .name = #id, .run = id, .count = ROWS(table), .label = id##_label)   \
    static void id##_row(__typeof__(&(table)[0]) row)

#define FIXTURE_AT_(line, ...) TEST_ENTRY_(fixture_##line, __VA_ARGS__)
#define FIXTURE_(line, ...) FIXTURE_AT_(line, __VA_ARGS__)
#define FIXTURE(set_up_, tear_down_)                                                     \
    FIXTURE_(__LINE__, .set_up = (set_up_), .tear_down = (tear_down_))                   \
    struct test_entry

/* "test", "test[3]" or "test[3 label]". */
static void
test_name_round(const struct test_entry *entry, int i, char *name)
{
    const char *label = entry->label != NULL ? entry->label(i) : NULL;
    if (entry->count == 1 && label == NULL) {
        snprintf(name, ROUND_NAME_BYTES, "%s", entry->name);
        return;
    }
    snprintf(name, ROUND_NAME_BYTES, "%s[%d%s%s", entry->name, i, label ? " " : "",
             label ? label : "");
    for (char *p = name; *p != '\0'; p++) {
        if (!isprint((unsigned char)*p) || *p == '#') { /* TAP has a use for it */
            *p = '?';
        }
    }
    strcat(name, "]");
}

static void
test_add_rounds(struct test_entry *entry, TCase *tc)
{
    entry->rounds = calloc((size_t)entry->count, sizeof *entry->rounds);
    ck_assert_ptr_nonnull(entry->rounds);
    for (int i = 0; i < entry->count; i++) {
        struct test_round *round = &entry->rounds[i];
        test_name_round(entry, i, round->name);
        round->check = (TTest){round->name, entry->run, __BASE_FILE__, entry->line};
        tcase_add_loop_test_raise_signal(tc, &round->check, entry->signal, i, i + 1);
    }
}

int
main(void)
{
    Suite *suite = suite_create("unit");
    TCase *tc = NULL;
    for (struct test_entry *entry = test_entries; entry != NULL; entry = entry->next) {
        if (tc == NULL || entry->run == NULL) {
            tc = tcase_create("unit");
            tcase_set_timeout(tc, SUITE_TIMEOUT_S);
            tcase_add_checked_fixture(tc, entry->set_up, entry->tear_down);
            suite_add_tcase(suite, tc);
        }
        if (entry->run != NULL) {
            test_add_rounds(entry, tc);
        }
    }
    int status = run_suite(suite);
    for (struct test_entry *entry = test_entries; entry != NULL; entry = entry->next) {
        free(entry->rounds);
    }
    return status;
}
