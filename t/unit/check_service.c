/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The variables of a service manager: whatever they are, no child inherits them.
 */
#include <stdlib.h>

#include "sock/inherited.h"
#include "sock/notify.h"

#include "check_main.h"

static const char *const variables[] = {"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS",
                                        "LISTEN_FDNAMES"};

static const char *const values[] = {"", "0", "1", "@check", "none"};

TEST_ROWS(variables_are_taken, values, *row)
{
    char err[256];
    struct notify notify;
    struct inherited inherited;
    for (int i = 0; i < ROWS(variables); i++) {
        ck_assert_int_eq(setenv(variables[i], *row, 1), 0);
    }
    notify_open(&notify);
    bool is_good = inherited_open(&inherited, err, sizeof err);
    ck_assert(is_good == (strcmp(*row, "1") == 0)); /* process 1 is another one */
    ck_assert_uint_eq(inherited.count, 0);
    inherited_close(&inherited);
    for (int i = 0; i < ROWS(variables); i++) {
        ck_assert_ptr_null(getenv(variables[i]));
    }
}

TEST(nothing_is_done_without_them)
{
    char err[256];
    struct notify notify;
    struct inherited inherited;
    for (int i = 0; i < ROWS(variables); i++) {
        ck_assert_int_eq(unsetenv(variables[i]), 0);
    }
    notify_open(&notify);
    ck_assert_uint_eq(notify.len, 0);
    ck_assert(inherited_open(&inherited, err, sizeof err));
    ck_assert_uint_eq(inherited.count, 0);
    notify_ready(&notify, "listening"); /* to no socket */
    notify_stopping(&notify);
    inherited_close(&inherited);
}
