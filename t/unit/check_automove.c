/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which class gives a page away: windows of samples, and what is decided after the last.
 */
#include "check_store.h"
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

static struct automove_sample
quiet_sample(unsigned classes)
{
    struct automove_sample sample = {.class_count = classes};

    for (unsigned id = 1; id <= classes; id++) {
        sample.class[id] =
            (struct automove_class){.pages = 10, .chunks_per_page = PER_PAGE, .age = 100};
    }
    return sample;
}

static void
add_times(struct automove *a, const struct automove_conf *conf,
          struct automove_sample *sample, unsigned times, unsigned evicting)
{
    for (unsigned i = 0; i < times; i++) {
        if (evicting != 0) {
            sample->class[evicting].evicted++;
        }
        ck_assert(automove_add(a, conf, sample));
    }
}

START_TEST(spare_pages_go_to_the_pool)
{
    struct automove a = {.window = 0};
    struct automove_sample sample = quiet_sample(3);
    struct automove_move move;

    sample.class[2].free_chunks = PER_PAGE * 5 / 2 + 1;
    ck_assert(!automove_decide(&a, &plain, &sample, &move));
    add_times(&a, &plain, &sample, WINDOW - 1, 0);
    ck_assert(!automove_decide(&a, &plain, &sample, &move)); /* not a whole window yet */
    add_times(&a, &plain, &sample, 1, 0);
    ck_assert(automove_decide(&a, &plain, &sample, &move));
    ck_assert_uint_eq(move.from, 2);
    ck_assert_uint_eq(move.to, 0);
    sample.class[2].free_chunks--; /* two and a half may stay */
    ck_assert(!automove_decide(&a, &plain, &sample, &move));
    automove_fini(&a);
}
END_TEST

START_TEST(pages_stay_while_memory_is_left)
{
    struct automove a = {.window = 0};
    struct automove_sample sample = quiet_sample(3);
    struct automove_move move;

    sample.class[2].free_chunks = PER_PAGE * 3;
    add_times(&a, &careful, &sample, WINDOW, 0);
    ck_assert(!automove_decide(&a, &careful, &sample, &move));
    sample.is_full = true;
    ck_assert(automove_decide(&a, &careful, &sample, &move));
    automove_fini(&a);
}
END_TEST

static bool
gives_after(struct automove_class change)
{
    struct automove a = {.window = 0};
    struct automove_sample sample = quiet_sample(1);
    struct automove_move move;
    bool gives;

    sample.class[1].free_chunks = PER_PAGE * 4;
    add_times(&a, &plain, &sample, WINDOW, 0);
    sample.class[1].evicted += change.evicted;
    sample.class[1].outofmemory += change.outofmemory;
    sample.class[1].pages += change.pages;
    add_times(&a, &plain, &sample, 1, 0);
    gives = automove_decide(&a, &plain, &sample, &move);
    add_times(&a, &plain, &sample, WINDOW, 0); /* it is forgotten after a window */
    ck_assert(automove_decide(&a, &plain, &sample, &move));
    automove_fini(&a);
    return gives;
}

START_TEST(dirty_classes_keep_their_pages)
{
    ck_assert(gives_after((struct automove_class){.age = 1}));
    ck_assert(!gives_after((struct automove_class){.evicted = 1}));
    ck_assert(!gives_after((struct automove_class){.outofmemory = 1}));
    ck_assert(!gives_after((struct automove_class){.pages = 1}));
}
END_TEST

START_TEST(old_classes_give_to_young_ones)
{
    struct automove a = {.window = 0};
    struct automove_sample sample = quiet_sample(4);
    struct automove_move move;

    sample.class[1].age = 300;
    sample.class[2].age = 500;
    sample.class[2].pages = 2; /* too few */
    sample.class[3].age = 239;
    sample.class[4].age = 10; /* young, but evicts nothing */
    add_times(&a, &plain, &sample, 3, 0);
    add_times(&a, &plain, &sample, 2, 3);
    ck_assert(!automove_decide(&a, &plain, &sample, &move)); /* two of five seconds */
    add_times(&a, &plain, &sample, 1, 3);
    ck_assert(automove_decide(&a, &plain, &sample, &move));
    ck_assert_uint_eq(move.from, 1);
    ck_assert_uint_eq(move.to, 3);
    add_times(&a, &plain, &sample, 1, 0);
    ck_assert(!automove_decide(&a, &plain, &sample, &move)); /* it has stopped */
    sample.class[3].age = 241;
    add_times(&a, &plain, &sample, WINDOW, 3);
    ck_assert(!automove_decide(&a, &plain, &sample, &move)); /* more than 0.8 of 300 */
    automove_fini(&a);
}
END_TEST

START_TEST(a_quarter_of_all_evictions_is_enough)
{
    struct automove a = {.window = 0};
    struct automove_sample sample = quiet_sample(2);
    struct automove_move move;

    sample.class[1].age = 10;
    add_times(&a, &careful, &sample, WINDOW, 0);
    add_times(&a, &careful, &sample, 1, 1);
    ck_assert(automove_decide(&a, &careful, &sample, &move));
    ck_assert_uint_eq(move.from, 2);
    ck_assert_uint_eq(move.to, 1);
    ck_assert(!automove_decide(&a, &plain, &sample, &move));
    automove_fini(&a);
}
END_TEST

START_TEST(a_new_window_starts_from_nothing)
{
    struct automove a = {.window = 0};
    struct automove_conf longer = plain;
    struct automove_sample sample = quiet_sample(1);
    struct automove_move move;

    longer.window = 2 * WINDOW;
    sample.class[1].free_chunks = PER_PAGE * 4;
    add_times(&a, &plain, &sample, WINDOW, 0);
    ck_assert(automove_decide(&a, &plain, &sample, &move));
    add_times(&a, &longer, &sample, 1, 0);
    ck_assert(!automove_decide(&a, &longer, &sample, &move));
    add_times(&a, &longer, &sample, 2 * WINDOW - 1, 0);
    ck_assert(automove_decide(&a, &longer, &sample, &move));
    automove_fini(&a);
}
END_TEST

START_TEST(counters_may_be_reset)
{
    struct automove a = {.window = 0};
    struct automove_sample sample = quiet_sample(1);
    struct automove_move move;

    sample.class[1].evicted = 1000;
    sample.class[1].free_chunks = PER_PAGE * 4;
    add_times(&a, &plain, &sample, 1, 0);
    sample.class[1].evicted = 0;
    add_times(&a, &plain, &sample, WINDOW, 0);
    ck_assert(automove_decide(&a, &plain, &sample, &move));
    automove_fini(&a);
}
END_TEST

/* In a store: what is free in one class ends in the pool, page by page. */
START_TEST(empties_a_class_that_is_free)
{
    struct store_conf conf = default_conf(12 * MIB);
    struct store_automove automove = {.level = 1, .ratio = 0.8, .window = 3};
    struct store *s;

    conf.can_reassign = true;
    s = open_store(&conf);
    store_set_automove(s, &automove);
    for (unsigned i = 0; i < 120; i++) {
        char key[16];

        snprintf(key, sizeof(key), "big%u", i);
        ck_assert_int_eq(put_sized(s, key, 70000, NOW + 2, NOW), STORE_OK);
    }
    store_flush(s, NOW, NOW);
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
    store_destroy(&s);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("automove");
    TCase *tc = tcase_create("automove");

    tcase_add_test(tc, spare_pages_go_to_the_pool);
    tcase_add_test(tc, pages_stay_while_memory_is_left);
    tcase_add_test(tc, dirty_classes_keep_their_pages);
    tcase_add_test(tc, old_classes_give_to_young_ones);
    tcase_add_test(tc, a_quarter_of_all_evictions_is_enough);
    tcase_add_test(tc, a_new_window_starts_from_nothing);
    tcase_add_test(tc, counters_may_be_reset);
    tcase_add_test(tc, empties_a_class_that_is_free);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
