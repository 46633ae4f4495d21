/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What -vv tells of replies, however they are cut into runs and sends.
 */
#include "serve/verbose.h"

#include "base/log.h"
#include "check_main.h"
#include "check_stderr.h"

static void
set_up(void)
{
    capture_stderr();
    log_set_level(2);
}

static void
tear_down(void)
{
    log_set_level(0);
    end_capture();
}

static const struct {
    bool is_binary;
    const char *bytes;
    size_t len;
    const char *reported;
} rows[] = {
#define TEXT(bytes, reported)                                                            \
    {                                                                                    \
        false, bytes, sizeof(bytes) - 1, reported                                        \
    }
#define BINARY(bytes, reported)                                                          \
    {                                                                                    \
        true, bytes, sizeof(bytes) - 1, reported                                         \
    }
    TEXT("STORED\r\nEND\r\n", ">7 STORED\n>7 END\n"),
    TEXT("VALUE k 0 3\r\na\nb\r\nVALUE j 5 0 99\r\n\r\nEND\r\n",
         ">7 sending key k\n>7 sending key j\n>7 END\n"),
    TEXT("VA 4 f0 t-1\r\n\r\n\r\n\r\nHD\r\n", ">7 VA 4 f0 t-1\n>7 HD\n"),
    TEXT("VA 0\r\n\r\nMN\r\n", ">7 VA 0\n>7 MN\n"),
    TEXT("STAT a 1\r\nSTAT b 2\r\nEND\r\n", ">7 END\n"),
    TEXT("VALUE k 0\r\nVALUE\r\n", ">7 sending key k\n>7 VALUE\n"),
    TEXT("a\x1b\r\n", ">7 a\\x1b\n"),
    BINARY(
        "\x81\x01\0\0\0\0\0\x85\0\0\0\x05xxxxyyyyyyyybody!"
        "\x81\x0a\0\0\0\0\0\0\0\0\0\0xxxxyyyyyyyy",
        ">7 binary 0x01 status 0x0085, 5 bytes\n>7 binary 0x0a status 0x0000, 0 bytes\n"),
};

FIXTURE(set_up, tear_down);

/* In two runs, cut at each byte; then sent in pieces that end at each byte, and looked at again
 * before each. */
TEST_ROWS(test_replies, rows, row->bytes)
{
    const char *bytes = row->bytes;
    size_t len = row->len;
    static char wanted[65536]; /* a process has one row */
    for (size_t cut = 0; cut <= len; cut++) {
        struct iovec runs[2] = {{(char *)bytes, cut}, {(char *)bytes + cut, len - cut}};
        struct verbose t = {0};
        verbose_replies(&t, 7, row->is_binary, runs, 2);
        ck_assert_uint_eq(t.shown, len);
        strcat(wanted, row->reported);
    }
    for (size_t cut = 0; cut <= len; cut++) {
        struct verbose t = {0};
        for (size_t sent = 0; sent<len; sent += cut> 0 ? cut : len) {
            struct iovec run = {(char *)bytes + sent, len - sent};
            verbose_replies(&t, 7, row->is_binary, &run, 1);
            verbose_sent(&t, cut > 0 ? cut : len);
        }
        strcat(wanted, row->reported);
    }
    ck_assert_str_eq(written(), wanted);
}

/* What comes later is told when it is there; a line that is not whole waits. */
TEST(test_more_comes)
{
    static const char bytes[] = "VALUE k 0 5\r\nabcde\r\nEND\r\nOK\r\n";
    static const char reported[] = ">7 sending key k\n>7 END\n>7 OK\n";
    struct verbose t = {0};
    for (size_t len = 0; len < sizeof bytes; len++) {
        struct iovec run = {(char *)bytes, len};
        verbose_replies(&t, 7, false, &run, 1);
    }
    ck_assert_str_eq(written(), reported);
}
