/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which class gives a page away: windows of samples, and what is decided after the last.
 */
#include "fixture_store.h"
#include "store/automove.h"

#define PER_PAGE 100u
#define WINDOW 5u

static const struct automove_conf plain = {
    .ratio = 0.8, .window = WINDOW, .spare_half_pages = 5};
static const struct automove_conf careful = {.ratio = 0.8,
                                             .window = WINDOW,
                                             .spare_half_pages = 3,
                                             .waits_until_full = true,
                                             .counts_shares = true};

static struct automove a;
static struct automove_sample sample;
static struct automove_move move;

static void
tear_down(void)
{
    automove_fini(&a);
}

/* So many classes in which nothing happens. */
static void
sample_quiet(unsigned classes)
{
    sample = (struct automove_sample){.class_count = classes};
    for (unsigned id = 1; id <= classes; id++) {
        sample.class[id] =
            (struct automove_class){.pages = 10, .chunks_per_page = PER_PAGE, .age = 100};
    }
}

static void
add_times(const struct automove_conf *how, unsigned times, unsigned evicting)
{
    for (unsigned i = 0; i < times; i++) {
        if (evicting != 0) {
            sample.class[evicting].evicted++;
        }
        ck_assert(automove_add(&a, how, &sample));
    }
}

static bool
decides(const struct automove_conf *how)
{
    return automove_decide(&a, how, &sample, &move);
}

FIXTURE(NULL, tear_down);

TEST(spare_pages_go_to_the_pool)
{
    sample_quiet(3);

    sample.class[2].free_chunks = PER_PAGE * 5 / 2 + 1;
    ck_assert(!decides(&plain));
    add_times(&plain, WINDOW - 1, 0);
    ck_assert(!decides(&plain)); /* not a whole window yet */
    add_times(&plain, 1, 0);
    ck_assert(decides(&plain));
    ck_assert(move.from == 2 && move.to == 0);
    sample.class[2].free_chunks--; /* two and a half may stay */
    ck_assert(!decides(&plain));
}

TEST(pages_stay_while_memory_is_left)
{
    sample_quiet(3);

    sample.class[2].free_chunks = PER_PAGE * 3;
    add_times(&careful, WINDOW, 0);
    ck_assert(!decides(&careful));
    sample.is_full = true;
    ck_assert(decides(&careful));
}

static bool
gives_after(struct automove_class change)
{
    sample_quiet(1);

    sample.class[1].free_chunks = PER_PAGE * 4;
    add_times(&plain, WINDOW, 0);
    sample.class[1].evicted += change.evicted;
    sample.class[1].outofmemory += change.outofmemory;
    sample.class[1].pages += change.pages;
    add_times(&plain, 1, 0);
    bool gives = decides(&plain);
    add_times(&plain, WINDOW, 0); /* it is forgotten after a window */
    ck_assert(decides(&plain));
    automove_fini(&a);
    return gives;
}

TEST(dirty_classes_keep_their_pages)
{
    ck_assert(gives_after((struct automove_class){.age = 1}));
    ck_assert(!gives_after((struct automove_class){.evicted = 1}));
    ck_assert(!gives_after((struct automove_class){.outofmemory = 1}));
    ck_assert(!gives_after((struct automove_class){.pages = 1}));
}

TEST(old_classes_give_to_young_ones)
{
    sample_quiet(4);

    sample.class[1].age = 300;
    sample.class[2].age = 500;
    sample.class[2].pages = 2; /* too few */
    sample.class[3].age = 239;
    sample.class[4].age = 10; /* young, but evicts nothing */
    add_times(&plain, 3, 0);
    add_times(&plain, 2, 3);
    ck_assert(!decides(&plain)); /* two of five seconds */
    add_times(&plain, 1, 3);
    ck_assert(decides(&plain));
    ck_assert(move.from == 1 && move.to == 3);
    add_times(&plain, 1, 0);
    ck_assert(!decides(&plain)); /* it has stopped */
    sample.class[3].age = 241;
    add_times(&plain, WINDOW, 3);
    ck_assert(!decides(&plain)); /* more than 0.8 of 300 */
}

TEST(what_is_mostly_reserved_stays)
{
    sample_quiet(3);

    sample.class[1].age = 300;
    sample.class[1].keeps_most = true;
    sample.class[2].age = 200;
    sample.class[3].age = 10;
    add_times(&plain, WINDOW, 3);
    ck_assert(decides(&plain));
    ck_assert(move.from == 2 && move.to == 3);
    sample.class[2].keeps_most = true;
    ck_assert(!decides(&plain));
}

TEST(a_quarter_of_all_evictions_is_enough)
{
    sample_quiet(2);

    sample.class[1].age = 10;
    add_times(&careful, WINDOW, 0);
    add_times(&careful, 1, 1);
    ck_assert(decides(&careful));
    ck_assert(move.from == 2 && move.to == 1);
    ck_assert(!decides(&plain));
}

TEST(a_new_window_starts_from_nothing)
{
    struct automove_conf longer = plain;
    sample_quiet(1);

    longer.window = 2 * WINDOW;
    sample.class[1].free_chunks = PER_PAGE * 4;
    add_times(&plain, WINDOW, 0);
    ck_assert(decides(&plain));
    add_times(&longer, 1, 0);
    ck_assert(!decides(&longer));
    add_times(&longer, 2 * WINDOW - 1, 0);
    ck_assert(decides(&longer));
}

TEST(counters_may_be_reset)
{
    sample_quiet(1);

    sample.class[1].evicted = 1000;
    sample.class[1].free_chunks = PER_PAGE * 4;
    add_times(&plain, 1, 0);
    sample.class[1].evicted = 0;
    add_times(&plain, WINDOW, 0);
    ck_assert(decides(&plain));
}

FIXTURE(set_up_store, tear_down_store);

/* In a store: what is free in one class ends in the pool, page by page. */
TEST(empties_a_class_that_is_free)
{
    struct store_automove automove = {.level = 1, .ratio = 0.8, .window = 3};
    conf.can_reassign = true;
    reopen_with(12);
    store_set_automove(s, &automove);
    put_range("big", 0, 120, 70000, NOW + 2, NOW);
    store_flush(s, 0, NOW);
    for (unsigned i = 0; i < 10; i++) {
        (void)juggle(s, 31, 500, NOW);
    }
    ck_assert_uint_eq(totals_of(s).curr_items, 0);
    for (uint32_t now = NOW; now < NOW + 6; now++) {
        while (store_automove_step(s, now)) {
            while (store_move_step(s, 100, now) != STORE_MOVE_IDLE) {
            }
        }
    }
    ck_assert_uint_eq(totals_of(s).pool_pages, 8); /* two and a half stay */
}
