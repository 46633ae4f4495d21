/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which CPUs the process may use, as its cpuset and the main thread's mask change: who has
 * changed them, the kernel or an operator, and what stays of what the operator wanted.
 */
#include "place/allowed.h"

#include "check_main.h"

/* Masks are written as bits: CPU 0 is the lowest. */
static struct cpumask
mask_of(unsigned bits)
{
    struct cpumask m = {0};
    for (unsigned i = 0; i < 8; i++) {
        if (bits >> i & 1) {
            cpumask_add(&m, i);
        }
    }
    return m;
}

static unsigned
bits_of(const struct allowed *a)
{
    struct cpumask m = allowed_cpus(a);
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; i++) {
        bits |= (unsigned)cpumask_has(&m, i) << i;
    }
    return bits;
}

#define STEPS 4

/* At the start, and at later looks: cpuset and mask of the main thread, which the server binds to
 * `bound` before the next one (0: it does not); what is allowed then. */
static const struct {
    const char *name;
    struct {
        unsigned cpuset, mask, allowed, bound;
    } steps[STEPS];
} cases[] = {
    {"nothing changes", {{0xf, 0xf, 0xf, 0xc}, {0xf, 0xc, 0xf, 0}, {0xf, 0xc, 0xf, 0}}},
    {"a mask at the start stays when the cpuset grows",
     {{0xf, 0x3, 0x3, 0x2}, {0xff, 0x2, 0x3, 0}}},
    {"without one the process grows with the cpuset",
     {{0x3, 0x3, 0x3, 0x2}, {0xf, 0x2, 0xf, 0xc}, {0xf, 0xc, 0xf, 0}}},
    {"the cpuset shrinks and cuts the mask, and grows again",
     {{0xf, 0xf, 0xf, 0xc}, {0x7, 0x4, 0x7, 0x4}, {0xf, 0x4, 0xf, 0}}},
    {"the cpuset shrinks, nothing is left of the mask",
     {{0xf, 0xf, 0xf, 0xc}, {0x3, 0x3, 0x3, 0x2}, {0xf, 0x2, 0xf, 0}}},
    {"an older kernel widens the mask to the cpuset, which is not an order",
     {{0xf, 0x7, 0x7, 0x4}, {0xff, 0xff, 0x7, 0}, {0xff, 0xff, 0x7, 0}}},
    {"taskset confines",
     {{0xf, 0xf, 0xf, 0xc}, {0xf, 0x3, 0x3, 0x2}, {0xf, 0x2, 0x3, 0}}},
    {"taskset gives all back, and then the cpuset grows",
     {{0xf, 0x3, 0x3, 0x2}, {0xf, 0xf, 0xf, 0xc}, {0xff, 0xc, 0xff, 0}}},
    {"taskset while the cpuset changes",
     {{0xf, 0xf, 0xf, 0xc}, {0x7, 0x1, 0x1, 0x1}, {0x7, 0x1, 0x1, 0}}},
    {"nothing is left of what was given: the cpuset counts",
     {{0xf, 0x3, 0x3, 0x2}, {0xc, 0xc, 0xc, 0x8}, {0xf, 0x8, 0x3, 0}}},
};

TEST_LOOP(the_allowed_cpus_follow, ROWS(cases))
{
    struct allowed a = {0};
    for (unsigned i = 0; i < STEPS && cases[_i].steps[i].cpuset != 0; i++) {
        struct cpumask cpuset = mask_of(cases[_i].steps[i].cpuset);
        struct cpumask mask = mask_of(cases[_i].steps[i].mask);
        if (i == 0) {
            allowed_init(&a, &cpuset, &mask);
        } else {
            allowed_look(&a, &cpuset, &mask);
        }
        ck_assert_msg(bits_of(&a) == cases[_i].steps[i].allowed, "%s, look %u: %x",
                      cases[_i].name, i, bits_of(&a));
        if (cases[_i].steps[i].bound != 0) {
            a.bound = mask_of(cases[_i].steps[i].bound);
        }
    }
}
