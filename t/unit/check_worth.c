/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a page is worth to each class: what is decided on figures that are made up.
 */
#include "store/worth.h"

#include "fixture_store.h"

#define PER_PAGE 1000u
#define REMEMBERED 100000u

static struct worth w;
static struct automove_sample sample;
static struct automove_move move;

static void
set_up(void)
{
    w = (struct worth){.losses = 0};
    sample =
        (struct automove_sample){.class_count = 3, .remembered = REMEMBERED, .now = NOW};
    for (unsigned id = 1; id <= sample.class_count; id++) {
        sample.class[id] =
            (struct automove_class){.pages = 10, .chunks_per_page = PER_PAGE, .best = id};
    }
    worth_add(&w, &sample);
}

/* A second in which so many left the class, and so many returned. */
static void
add_losses(unsigned id, uint64_t made, uint64_t met)
{
    sample.class[id].losses += made;
    sample.class[id].returns += met;
    sample.now++;
    worth_add(&w, &sample);
}

static bool
decides(void)
{
    return worth_decide(&w, &sample, &move);
}

static bool
decides_on(unsigned from, unsigned to)
{
    return decides() && move.from == from && move.to == to;
}

FIXTURE(set_up, NULL);

TEST(knows_nothing_at_first)
{
    ck_assert(!decides());
    add_losses(1, 0, 0);
    ck_assert(!decides());
}

TEST(goes_where_items_return)
{
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 50);
    add_losses(3, 1000, 100);
    ck_assert(decides_on(2, 1));
}

/* Half as many more are no reason, nor are a few of few. */
TEST(needs_more_than_chance)
{
    add_losses(1, 10000, 3000);
    add_losses(2, 10000, 2000);
    ck_assert(!decides());
    set_up();
    add_losses(1, 10, 3);
    add_losses(2, 10, 1);
    ck_assert(!decides());
    add_losses(1, 990, 297);
    add_losses(2, 990, 49);
    ck_assert(decides_on(2, 1));
}

/* Half as many return, but a page is ten times as many chunks. */
TEST(counts_the_chunks_of_a_page)
{
    sample.class[2].chunks_per_page = 10 * PER_PAGE;
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 150);
    ck_assert(decides_on(1, 2));
}

TEST(has_to_learn_after_a_move)
{
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 50);
    ck_assert(decides_on(2, 1));
    add_losses(2, 5000, 0); /* what the move has made leave */
    ck_assert(!decides());
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 50);
    ck_assert(decides_on(2, 1));
}

/* It is not used up yet. */
TEST(gives_none_to_a_class_with_free_chunks)
{
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 50);
    sample.class[1].free_chunks = PER_PAGE / 4;
    ck_assert(!decides());
}

TEST(classes_keep_their_last_page)
{
    sample.class[2].pages = 1;
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 50);
    ck_assert(!decides());
    sample.class[2].host = 3; /* unless another one can serve */
    ck_assert(decides_on(2, 1));
    sample.class[2].pages = 0;
    ck_assert(!decides());
}

/* Where nothing leaves, a page goes when its items have not been read for longer than it is remembered
 * what left: here 1000 a second, so for 100 seconds. */
TEST(takes_what_is_not_read)
{
    sample.class[3].age = 160;
    for (unsigned i = 0; i < 20; i++) {
        add_losses(1, 1000, 300);
    }
    ck_assert(!decides());
    sample.class[3].age = 2000;
    ck_assert(decides_on(3, 1));
}

TEST(forgets)
{
    for (unsigned i = 0; i < 200; i++) {
        add_losses(1, 1000, 300);
        add_losses(2, 1000, 50);
    }
    for (unsigned i = 0; i < 400; i++) {
        add_losses(1, 1000, 50);
        add_losses(2, 1000, 300);
    }
    ck_assert(decides_on(1, 2));
}

TEST(counters_may_be_reset)
{
    add_losses(1, 1000, 300);
    add_losses(2, 1000, 50);
    sample.class[1].returns = 0;
    sample.class[2].returns = 0;
    worth_add(&w, &sample);
    ck_assert(decides_on(2, 1));
}

TEST(serves_first_what_has_no_page)
{
    sample.class[2].pages = 0;
    sample.class[2].is_wanted = true;
    add_losses(1, 1000, 300);
    add_losses(3, 1000, 50);
    ck_assert(decides_on(3, 2));
}

/* Items in chunks of another class get one of their own when that saves a page, and at most half of
 * the pages. */
TEST(parts_a_class)
{
    sample.class[2].chunks_per_page = 1250;
    sample.class[2].pages = 0;
    sample.class[3].best = 2;
    sample.class[3].pages = 4;
    ck_assert(!decides());
    sample.class[3].pages = 5;
    ck_assert(decides_on(3, 2));
    sample.class[2].pages = 5;
    ck_assert(!decides());
}

/* Of those that left a class the more return the more pages it wants beyond those that it has. */
static unsigned
run(const unsigned *wants, unsigned seconds)
{
    unsigned moves = 0;

    for (unsigned second = 0; second < seconds; second++) {
        for (unsigned id = 1; id <= sample.class_count; id++) {
            unsigned pages = sample.class[id].pages;

            add_losses(id, 2000, 1000 * wants[id] / (wants[id] + 2 * pages));
        }
        for (unsigned i = 0; i < 8 && decides(); i++) {
            worth_add(&w, &sample);
            sample.class[move.from].pages--;
            sample.class[move.to].pages++;
            moves++;
        }
    }
    return moves;
}

/* Pages go to where they are wanted, and stay there. */
TEST(follows_a_shift_and_rests)
{
    static const unsigned before[] = {0, 80, 5, 5}, after[] = {0, 5, 5, 80};

    (void)run(before, 100);
    ck_assert_uint_ge(sample.class[1].pages, 14);
    ck_assert_uint_eq(run(before, 100), 0);
    ck_assert_uint_gt(run(after, 200), 0);
    ck_assert_uint_ge(sample.class[3].pages, 14);
    ck_assert_uint_le(sample.class[1].pages, 9);
    ck_assert_uint_eq(run(after, 200), 0);
}
