/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Queues of deferred work: order, membership, and random use against a plain array.
 */
#include "qos/sched.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define NODES 24
#define STEPS 50000

START_TEST(empty_gives_nothing)
{
    struct sched s;
    sched_init(&s);
    ck_assert_ptr_null(sched_pop(&s));
    ck_assert_uint_eq(s.length, 0);
}
END_TEST

START_TEST(oldest_comes_first)
{
    struct sched s;
    struct sched_node nodes[3] = {0};
    sched_init(&s);
    for (unsigned i = 0; i < 3; i++) {
        sched_push(&s, &nodes[i], CLASS_BULK, 100 + i);
        ck_assert(sched_is_queued(&nodes[i]));
        ck_assert_uint_eq(nodes[i].queued_at, 100 + i);
        ck_assert_uint_eq(nodes[i].class, CLASS_BULK);
    }
    ck_assert_uint_eq(s.queues[CLASS_BULK].length, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_eq(sched_pop(&s), &nodes[i]);
        ck_assert(!sched_is_queued(&nodes[i]));
    }
    ck_assert_ptr_null(sched_pop(&s));
}
END_TEST

START_TEST(remove_is_harmless_outside)
{
    struct sched s;
    struct sched_node n = {0};
    sched_init(&s);
    sched_remove(&s, &n);
    sched_push(&s, &n, CLASS_BULK, 1);
    sched_remove(&s, &n);
    sched_remove(&s, &n);
    ck_assert(!sched_is_queued(&n));
    ck_assert_uint_eq(s.length, 0);
    ck_assert_ptr_null(sched_pop(&s));
}
END_TEST

START_TEST(pushing_twice_is_a_bug)
{
    struct sched s;
    struct sched_node n = {0};
    sched_init(&s);
    sched_push(&s, &n, CLASS_BULK, 1);
    sched_push(&s, &n, CLASS_BULK, 2);
}
END_TEST

START_TEST(queueing_an_inline_class_is_a_bug)
{
    struct sched s;
    struct sched_node n = {0};
    sched_init(&s);
    sched_push(&s, &n, CLASS_SMALL, 1);
}
END_TEST

/* The model: queued nodes' numbers, oldest first, of the one class that queues. */
struct model {
    unsigned order[NODES];
    unsigned length;
};

static void
model_drop(struct model *m, unsigned at)
{
    memmove(&m->order[at], &m->order[at + 1], (m->length - at - 1) * sizeof m->order[0]);
    m->length--;
}

static void
check_same(const struct sched *s, const struct sched_node *nodes, const struct model *m)
{
    const struct sched_queue *q = &s->queues[CLASS_BULK];
    ck_assert_uint_eq(s->length, m->length);
    ck_assert_uint_eq(q->length, m->length);
    const struct sched_node *n = &q->head;
    for (unsigned i = 0; i < m->length; i++) {
        ck_assert_ptr_eq(n->next, &nodes[m->order[i]]);
        ck_assert_ptr_eq(n->next->prev, n);
        n = n->next;
    }
    ck_assert_ptr_eq(n->next, &q->head);
    ck_assert_ptr_eq(q->head.prev, n);
    unsigned queued = 0;
    for (unsigned i = 0; i < NODES; i++) {
        queued += sched_is_queued(&nodes[i]);
    }
    ck_assert_uint_eq(queued, m->length);
}

START_TEST(random_use_matches_the_model)
{
    struct sched s;
    struct sched_node nodes[NODES] = {0};
    struct model m = {0};
    struct rng rng;
    rng_init(&rng, 1, (uint64_t)_i);
    sched_init(&s);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rng_below(&rng, NODES);
        uint64_t what = rng_below(&rng, 3);
        if (what == 0 && !sched_is_queued(&nodes[i])) {
            sched_push(&s, &nodes[i], CLASS_BULK, step);
            m.order[m.length++] = i;
        } else if (what == 1) {
            struct sched_node *n = sched_pop(&s);
            ck_assert_ptr_eq(n, m.length > 0 ? &nodes[m.order[0]] : NULL);
            if (n != NULL) {
                model_drop(&m, 0);
            }
        } else if (what == 2) {
            sched_remove(&s, &nodes[i]);
            for (unsigned at = 0; at < m.length; at++) {
                if (m.order[at] == i) {
                    model_drop(&m, at);
                }
            }
        }
        if (step % 16 == 0) {
            check_same(&s, nodes, &m);
        }
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sched");
    TCase *tc = tcase_create("sched");
    tcase_add_test(tc, empty_gives_nothing);
    tcase_add_test(tc, oldest_comes_first);
    tcase_add_test(tc, remove_is_harmless_outside);
    tcase_add_test_raise_signal(tc, pushing_twice_is_a_bug, SIGABRT);
    tcase_add_test_raise_signal(tc, queueing_an_inline_class_is_a_bug, SIGABRT);
    tcase_add_loop_test(tc, random_use_matches_the_model, 0, 4);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);

    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
