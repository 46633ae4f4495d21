/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What reaches stderr: levels, one line a message, the rate of repeated ones.
 */
#include "base/log.h"

#include <fcntl.h>

#include "check_main.h"
#include "check_stderr.h"

#define START (1000 * NSEC_PER_SEC)

FIXTURE(capture_stderr, end_capture);

TEST(test_levels)
{
    ck_assert_uint_eq(log_level(), 0);
    log_write(LOG_WARNING, "bind: %s", "address in use");
    log_write(LOG_INFO, "not shown");
    log_write(LOG_DEBUG, "not shown");
    ck_assert_str_eq(written(), "bind: address in use\n");
    log_set_level(1);
    log_write(LOG_INFO, "%d workers", 4);
    log_write(LOG_DEBUG, "not shown");
    ck_assert_str_eq(written(), "4 workers\n");
    log_set_level(2);
    ck_assert_uint_eq(log_level(), 2);
    log_write(LOG_DEBUG, "x");
    log_write(LOG_WARNING, "y");
    ck_assert_str_eq(written(), "x\ny\n");
    log_set_level(0);
    log_write(LOG_DEBUG, "not shown");
    ck_assert_str_eq(written(), "");
}

TEST(test_a_message_is_data_and_one_line)
{
    log_write(LOG_WARNING, "%s", "100% %n %s");
    ck_assert_str_eq(written(), "100% %n %s\n");
    FREED char *big = malloc(5001);
    ck_assert_ptr_nonnull(big);
    memset(big, 'm', 5000);
    big[5000] = '\0';
    log_write(LOG_WARNING, "%s", big);
    const char *line = written();
    ck_assert_uint_le(strlen(line), 5001);
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}

TEST(test_one_line_a_second)
{
    struct log_rate rate = {0};
    for (int i = 0; i < 5; i++) {
        log_write_limited(LOG_WARNING, &rate, START + (nsec_t)i, "lost %d", i);
    }
    ck_assert_str_eq(written(), "lost 0\n");
    log_write_limited(LOG_WARNING, &rate, START + NSEC_PER_SEC - 1, "early");
    ck_assert_str_eq(written(), "");
    log_write_limited(LOG_WARNING, &rate, START + NSEC_PER_SEC, "due");
    ck_assert_str_eq(written(), "due (5 more left out)\n");
    log_write_limited(LOG_WARNING, &rate, START + 5 * NSEC_PER_SEC, "later");
    ck_assert_str_eq(written(), "later\n");
}

TEST(test_rates_are_apart)
{
    struct log_rate one = {0}, other = {0};
    log_write_limited(LOG_WARNING, &one, START, "one");
    log_write_limited(LOG_WARNING, &other, START, "other");
    ck_assert_str_eq(written(), "one\nother\n");
}

/* A level that is not shown neither uses the second up nor counts as left out. */
TEST(test_hidden_messages_do_not_count)
{
    struct log_rate rate = {0};
    log_write_limited(LOG_DEBUG, &rate, START, "hidden");
    log_write_limited(LOG_DEBUG, &rate, START, "hidden");
    log_write_limited(LOG_WARNING, &rate, START, "shown");
    ck_assert_str_eq(written(), "shown\n");
    log_write_limited(LOG_WARNING, &rate, START + NSEC_PER_SEC, "again");
    ck_assert_str_eq(written(), "again\n");
}

TEST(test_stamps)
{
    int year, month, day, hour, minute, second, end = 0;
    log_set_stamps(true);
    log_write(LOG_WARNING, "one");
    const char *line = written();
    ck_assert_int_eq(sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2dZ one\n%n", &year, &month, &day,
                            &hour, &minute, &second, &end),
                     6);
    ck_assert_int_eq(end, (int)strlen(line));
    log_set_level(2);
    log_client('<', 28, "get k", 5); /* as upstream's */
    ck_assert_str_eq(written(), "<28 get k\n");
    log_set_level(0);
    log_set_stamps(false);
    log_write(LOG_WARNING, "two");
    ck_assert_str_eq(written(), "two\n");
}

/* Nobody reads the pipe that standard error is, and nothing more fits into it. */
TEST(test_a_reader_that_does_not_read_is_not_waited_for)
{
    int ends[2], kept = dup(STDERR_FILENO);
    char bytes[4096] = "";
    size_t filled = 0;
    ssize_t n;
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    while ((n = write(ends[1], bytes, sizeof bytes)) > 0) {
        filled += (size_t)n;
    }
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    log_write(LOG_WARNING, "one");
    log_set_level(2);
    log_client('<', 28, "get k", 5);
    log_set_level(0);
    while (filled > 0 && (n = read(ends[0], bytes, sizeof bytes)) > 0) {
        filled -= (size_t)n;
    }
    log_write(LOG_WARNING, "three");
    log_write(LOG_WARNING, "four");
    n = read(ends[0], bytes, sizeof bytes - 1);
    ck_assert_int_ge(dup2(kept, STDERR_FILENO), 0);
    ck_assert_int_gt(n, 0);
    bytes[n] = '\0';
    ck_assert_str_eq(bytes,
                     "memcached: warning: 2 lines are lost, as the log was not read\n"
                     "three\nfour\n");
    close(ends[0]);
    close(ends[1]);
    close(kept);
}

/* A client cannot make lines of its own, nor move the terminal's cursor. */
TEST(test_clients_bytes_are_escaped)
{
    static const char bytes[] = "get a\r\nfake\x1b[2J\\\x7f\xff\0 end";
    char big[4000];
    log_client('<', 28, "get k", 5);
    ck_assert_str_eq(written(), ""); /* not before -vv */
    log_set_level(2);
    log_client('<', 28, "get k", 5);
    log_client('>', 29, bytes, sizeof bytes - 1);
    ck_assert_str_eq(written(),
                     "<28 get k\n>29 get a\\x0d\\x0afake\\x1b[2J\\x5c\\x7f\\xff"
                     "\\x00 end\n");
    memset(big, 1, sizeof big);
    log_client('<', 1, big, sizeof big);
    const char *line = written();
    ck_assert_uint_eq(strlen(line), strlen("<1 ") + 4 * 512 + strlen("...\n"));
    log_set_level(0);
}
