/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Short runs of bytes of each length, in blocks that begin and end where they do.
 */
#include "base/bytes.h"

#include "check_main.h"

#define LENGTHS 80

static char text[LENGTHS + BYTES_SLACK];

static void
set_up(void)
{
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('!' + i * 37 % 223);
    }
}

static void
tear_down(void)
{
}

FIXTURE(set_up, tear_down);

TEST(test_equal_or_not_at_each_place)
{
    for (size_t n = 0; n < LENGTHS; n++) {
        char *a = exact_copy(text, n), *b = exact_copy(text, n);
        ck_assert(bytes_equal(a, b, n));
        for (size_t i = 0; i < n; i++) {
            b[i] ^= 0x40;
            ck_assert(!bytes_equal(a, b, n));
            ck_assert(!bytes_equal(b, a, n));
            b[i] ^= 0x40;
        }
        free(a);
        free(b);
    }
}

TEST(test_copies_are_whole)
{
    for (size_t n = 0; n < LENGTHS; n++) {
        char *from = exact_copy(text, n), *to = exact_copy(text + 1, n);
        bytes_copy(to, from, n);
        ck_assert(memcmp(to, text, n) == 0);
        free(from);
        free(to);
    }
}

/* Bytes from 0x80 on are not lower; those behind the first one found may be. */
TEST(test_the_first_byte_below)
{
    for (size_t n = 0; n < LENGTHS; n++) {
        for (unsigned found = 0; found <= ' '; found++) {
            char *p = exact_copy(text, n + BYTES_SLACK);
            p[n] = (char)found;
            memset(p + n + 1, (int)(n % 2 * 0xff), BYTES_SLACK - 1);
            ck_assert_ptr_eq(bytes_find_below(p, ' ' + 1), p + n);
            free(p);
        }
    }
}
