/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Groups of listeners on this kernel: the table of CPUs decides, also where workers share a
 * CPU, and the thread that tries it out is back on its CPUs afterwards.
 */
#include "net/reuseport.h"

#include <sched.h>

#include "check_unit.h"

#define CPUS_MAX 4

/* The first CPUs that this process may use. */
static unsigned
own_cpus(int cpus[CPUS_MAX], cpu_set_t *set)
{
    unsigned count = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof *set, set), 0);
    for (int i = 0; i < CPU_SETSIZE && count < CPUS_MAX; i++) {
        if (CPU_ISSET(i, set)) {
            cpus[count++] = i;
        }
    }
    return count;
}

static void
make_map(struct steer_map *map, const int *cpus, unsigned count, unsigned workers)
{
    struct pin_place places[4 * CPUS_MAX];
    for (unsigned i = 0; i < workers; i++) {
        places[i] = (struct pin_place){.cpu = cpus[i % count]};
    }
    ck_assert(steer_map_init(map, places, workers, NULL, 0));
}

START_TEST(the_kernel_chooses_by_cpu)
{
    int cpus[CPUS_MAX];
    cpu_set_t before, after;
    struct steer_map map;
    unsigned count = own_cpus(cpus, &before);
    for (unsigned each = 1; each <= 3; each++) {
        make_map(&map, cpus, count, each * count);
        enum reuseport_kind kind = reuseport_choose(&map);
        ck_assert_uint_ne(kind, REUSEPORT_HASH);
        if (kind != REUSEPORT_NONE) {
            ck_assert(reuseport_works(&map, kind));
        }
        /* Receives elsewhere (RPS on loopback), or knows one way at least. */
        ck_assert(kind == REUSEPORT_NONE || kind == REUSEPORT_TABLE ||
                  reuseport_works(&map, REUSEPORT_TABLE));
        steer_map_fini(&map);
    }
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

START_TEST(unpinned_is_by_hash)
{
    struct steer_map map;
    int none[] = {-1};
    make_map(&map, none, 1, 3);
    ck_assert_uint_eq(reuseport_choose(&map), REUSEPORT_HASH);
    steer_map_fini(&map);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("reuseport");
    TCase *tc = tcase_create("reuseport");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_test(tc, the_kernel_chooses_by_cpu);
    tcase_add_test(tc, unpinned_is_by_hash);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
