/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which request a followed read is told as, and when another read is followed in its place.
 */
#include "core/latency.h"

#include "check_main.h"

#define READ_AT (10 * NSEC_PER_SEC)

static struct latency l;
static int one, other; /* what is followed, by address */

static void
setup(void)
{
    expect(latency_init(&l));
}

static void
teardown(void)
{
    latency_fini(&l);
}

/* It became ready 5 us before READ_AT, and was read from 3 us before it on. */
static void
follow(const void *followed)
{
    struct sojourn_times times = {.read_mono = READ_AT - 3000};
    latency_begin(&l, followed, READ_AT - 5000);
    latency_read(&l, &times, READ_AT);
}

static uint64_t served(enum req_class class)
{
    return hist_count(l.stages[class][LATENCY_EXECUTE]);
}

FIXTURE(setup, teardown);

TEST(the_first_request_tells_the_class)
{
    follow(&one);
    expect(!latency_is_answered(&l, &one));
    latency_note(&l, &other, CLASS_CONTROL, true);
    expect(!latency_is_answered(&l, &one));
    latency_note(&l, &one, CLASS_SMALL, false); /* a part of it, */
    latency_note(&l, &one, CLASS_BULK, true);   /* and its end */
    latency_note(&l, &one, CLASS_WRITE, true);
    latency_refuse(&l, &one, CLASS_SMALL);
    expect(latency_is_answered(&l, &one) && !latency_is_answered(&l, &other));
    latency_end(&l, READ_AT + 7000, READ_AT + 8000);
    ck_assert_uint_eq(served(CLASS_BULK), 1);
    ck_assert_uint_eq(served(CLASS_SMALL) + served(CLASS_WRITE), 0);
    ck_assert_uint_eq(hist_count(l.refused[CLASS_SMALL][LATENCY_EXECUTE]), 0);
    expect(l.followed == NULL);
}

TEST(the_first_request_is_refused)
{
    follow(&one);
    latency_refuse(&l, &one, CLASS_SMALL);
    latency_note(&l, &one, CLASS_WRITE, true);
    latency_end(&l, READ_AT, READ_AT);
    ck_assert_uint_eq(hist_count(l.refused[CLASS_SMALL][LATENCY_EXECUTE]), 1);
    ck_assert_uint_eq(served(CLASS_SMALL) + served(CLASS_WRITE), 0);
    follow(&one); /* the next one is another */
    latency_note(&l, &one, CLASS_WRITE, true);
    latency_end(&l, READ_AT, READ_AT);
    ck_assert_uint_eq(served(CLASS_WRITE), 1);
}

TEST(one_that_waits_makes_room)
{
    expect(latency_has_room(&l, READ_AT));
    latency_begin(&l, &one, READ_AT);
    expect(!latency_has_room(&l, READ_AT + NSEC_PER_SEC)); /* not read yet */
    follow(&one);
    latency_note(&l, &one, CLASS_BULK, false);
    expect(!latency_has_room(&l, READ_AT + LATENCY_PATIENCE_NS));
    expect(latency_has_room(&l, READ_AT + LATENCY_PATIENCE_NS + 1));
    ck_assert_uint_eq(served(CLASS_BULK), 1);
    ck_assert_uint_ge(hist_max(l.stages[CLASS_BULK][LATENCY_EXECUTE]),
                      LATENCY_PATIENCE_NS);
    follow(&other); /* what becomes of the first one is not told any more */
    latency_refuse(&l, &one, CLASS_BULK);
    expect(!latency_is_answered(&l, &one));
    latency_note(&l, &other, CLASS_SMALL, true);
    latency_end(&l, READ_AT, READ_AT);
    ck_assert_uint_eq(served(CLASS_SMALL), 1);
}

TEST(without_a_request_nothing_is_told)
{
    follow(&one); /* half a line, say */
    expect(latency_has_room(&l, READ_AT + LATENCY_PATIENCE_NS + 1));
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        ck_assert_uint_eq(served((enum req_class)c), 0);
    }
}
