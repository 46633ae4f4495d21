/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What `mcload compare` says of many pairs of runs: of the same thing next to never that they
 * differ, and of different things that they do.
 */
#include "loadgen/tools/compare.h"

#include "check_main.h"
#include "check_queue.h"

#define PAIRS 1000
/* In percent, of pairs that are of the same thing: as mcload(1) states. */
#define FALSE_MAX 1
#define FOUND_MIN 99
#define EACH 3 /* runs a side, of a group */

static struct saved_point
point_of(const struct sample *s, double q)
{
    struct ci ci = interval(s, q);
    return (struct saved_point){
        .is_measured = true,
        .has_interval = ci.is_known,
        .value = (double)hist_quantile(s->all, q),
        .low = (double)hist_quantile(s->all, ci.low),
        .high = ci.high < 1 ? (double)hist_quantile(s->all, ci.high) : INFINITY,
    };
}

/* A side of a comparison: so many runs of a queue, `slower` times as slow. */
static void
make_side(struct saved_run *runs, unsigned count, struct sample *s, uint64_t seed,
          double load, double n, double slower)
{
    for (unsigned i = 0; i < count; i++) {
        struct rng rng = rng_of(seed, i);
        sample_reset(s);
        draw_slower_queue(s, &rng, load, n, slower);
        for (unsigned at = 0; at < SAVED_AT; at++) {
            runs[i].at[at] = point_of(s, saved_shares[at]);
        }
    }
}

/* Of so many pairs, how often each verdict fell. */
static void
judge_pairs(unsigned pairs, unsigned each, double load, double n, double slower,
            unsigned verdicts[SAVED_AT][COMPARE_HIGHER + 1])
{
    SCOPED(sample_fini) struct sample s;
    sample_init(&s);
    for (unsigned pair = 0; pair < pairs; pair++) {
        struct saved_run a[EACH] = {0}, b[EACH] = {0};
        struct saved left = {.runs = a, .count = each},
                     right = {.runs = b, .count = each};
        make_side(a, each, &s, 2 * pair + 1, load, n, 1);
        make_side(b, each, &s, 2 * pair + 2, load, n, slower);
        for (unsigned at = 0; at < SAVED_AT; at++) {
            verdicts[at][compare_two(compare_estimate(&left, at),
                                     compare_estimate(&right, at))]++;
        }
    }
}

static const struct {
    unsigned pairs, each;
    double load, n;
} same[] = {{PAIRS, 1, 0, 3000}, {PAIRS, 1, .7, 5000}, {PAIRS / 2, EACH, .5, 3000}};

TEST_ROWS(test_same, same, NULL)
{
    unsigned v[SAVED_AT][COMPARE_HIGHER + 1] = {0};
    judge_pairs(row->pairs, row->each, row->load, row->n, 1, v);
    for (unsigned at = 0; at < SAVED_AT; at++) {
        unsigned differ = v[at][COMPARE_LOWER] + v[at][COMPARE_HIGHER];
        ck_assert_msg(differ * 100 <= FALSE_MAX * row->pairs,
                      "%u of %u pairs of the same differ at %s", differ, row->pairs,
                      saved_names[at]);
        ck_assert(at == SAVED_P999 || v[at][COMPARE_UNKNOWN] == 0);
    }
}

/* Half as slow again. */
TEST(test_different)
{
    unsigned v[SAVED_AT][COMPARE_HIGHER + 1] = {0};
    judge_pairs(PAIRS / 10, 1, 0, 10000, 1.5, v);
    for (unsigned at = 0; at < SAVED_P999; at++) {
        ck_assert_msg(v[at][COMPARE_HIGHER] >= FOUND_MIN, "only %u of 100 found at %s",
                      v[at][COMPARE_HIGHER], saved_names[at]);
        ck_assert_uint_eq(v[at][COMPARE_LOWER], 0);
    }
}
