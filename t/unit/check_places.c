/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * CPUs by memory node, from a directory made up here.
 */
#include "loadgen/run/cpu_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_main.h"

#define PATH (SCRATCH_PATH + 64)

static char nodes[SCRATCH_PATH];

static void
set_up(void)
{
    scratch_name(nodes, "check_places");
    ck_assert_ptr_nonnull(mkdtemp(nodes));
}

static void
path_of(int node, const char *file, char path[PATH])
{
    snprintf(path, PATH, "%s/node%d%s", nodes, node, file);
}

static void
make_node(int node, const char *cpus)
{
    char path[PATH];
    path_of(node, "", path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    path_of(node, "/cpulist", path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\n", cpus);
    fclose(f);
}

static void
tear_down(void)
{
    char path[PATH];
    for (int node = 0; node < 8; node++) {
        path_of(node, "/cpulist", path);
        unlink(path);
        path_of(node, "", path);
        rmdir(path);
    }
    ck_assert_int_eq(rmdir(nodes), 0);
}

static cpu_set_t
first_cpus(int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < count; cpu++) {
        CPU_SET(cpu, &set);
    }
    return set;
}

FIXTURE(set_up, tear_down);

TEST(test_nodes)
{
    char text[256];
    cpu_set_t allowed = first_cpus(12);
    CPU_CLR(1, &allowed);
    make_node(0, "0-3,8-9");
    make_node(2, "4-7,10");
    make_node(3, "");
    make_node(5, "12-15"); /* none of these may be used */
    ck_assert_ptr_null(
        cpu_list_of_nodes(nodes, CPU_LIST_ANY, &allowed, text, sizeof text));
    ck_assert_str_eq(text, "list:0,2,3,4,5,6,7,8,9,10,11");
    ck_assert_ptr_null(cpu_list_of_nodes(nodes, 0, &allowed, text, sizeof text));
    ck_assert_str_eq(text, "list:0,2,3,8,9");
    ck_assert_ptr_null(cpu_list_of_nodes(nodes, 2, &allowed, text, sizeof text));
    ck_assert_str_eq(text, "list:4,5,6,7,10");
    ck_assert_ptr_null(
        cpu_list_of_nodes(nodes, CPU_LIST_AUTO, &allowed, text, sizeof text));
    ck_assert_str_eq(text, "list:0,4,2,5,3,6,8,7,9,10");
    for (int node = 1; node <= 5; node += 2) {
        ck_assert_ptr_nonnull(
            cpu_list_of_nodes(nodes, node, &allowed, text, sizeof text));
    }
    ck_assert_ptr_nonnull(cpu_list_of_nodes(nodes, CPU_LIST_ANY, &allowed, text, 8));
}

TEST(test_no_nodes)
{
    char text[256];
    cpu_set_t allowed = first_cpus(3);
    ck_assert_ptr_null(
        cpu_list_of_nodes(nodes, CPU_LIST_AUTO, &allowed, text, sizeof text));
    ck_assert_str_eq(text, "list:0,1,2");
    ck_assert_ptr_nonnull(cpu_list_of_nodes(nodes, 0, &allowed, text, sizeof text));
}
