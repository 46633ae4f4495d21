/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The words of --membind, and what the kernel makes of them on the machine at hand. Where it
 * refuses the calls, that they are counted.
 */
#include "place/membind.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check_main.h"

#define AREA_BYTES (1 << 20)

static struct membind m;

static const char *
open_as(const char *text, bool is_pinned)
{
    struct membind_spec spec = {.policy = MEMBIND_DEFAULT};
    ck_assert(text == NULL || membind_parse(&spec, text) == NULL);
    membind_open(&m, &spec, is_pinned);
    return membind_name(&m.spec);
}

/* The policy of a new area, as the kernel tells it; -1: it does not. */
static int
policy_of_area(void)
{
    int mode = -1;
    char *area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(area != MAP_FAILED);
    membind_area(&m, area + 64, AREA_BYTES - 64); /* bound from the page's beginning */
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, area, MPOL_F_ADDR) != 0) {
        mode = -1;
    }
    area[0] = 1;
    munmap(area, AREA_BYTES);
    return mode;
}

static const struct {
    const char *text;
    int modes[3]; /* one of these; older kernels say MPOL_PREFERRED of MPOL_LOCAL */
} policies[] = {
    {"interleave", {MPOL_INTERLEAVE, MPOL_INTERLEAVE, MPOL_INTERLEAVE}},
    {"local", {MPOL_LOCAL, MPOL_PREFERRED, MPOL_DEFAULT}},
    {"node:0", {MPOL_PREFERRED, MPOL_PREFERRED, MPOL_PREFERRED}},
};

TEST_LOOP(areas_are_bound, ROWS(policies))
{
    const char *name = open_as(policies[_i].text, false);
    if (m.why[0] != '\0') {
        printf("# not here: %s: %s\n", policies[_i].text,
               m.why); /* a cpuset without node 0 */
        return;
    }
    ck_assert_str_eq(name, policies[_i].text);
    int mode = policy_of_area();
    ck_assert_uint_eq(m.areas + m.errors, 1);
    const int *modes = policies[_i].modes;
    ck_assert(mode == -1 || m.errors == 1 || mode == modes[0] || mode == modes[1] ||
              mode == modes[2]);
}

TEST(nothing_asked_nothing_done)
{
    ck_assert_str_eq(open_as("none", true), "none");
    (void)policy_of_area();
    ck_assert_str_eq(open_as(NULL, false), "none");
    (void)policy_of_area();
    ck_assert_uint_eq(m.areas + m.errors, 0);
    /* pinned on more than one node, or on one */
    const char *name = open_as(NULL, true);
    ck_assert(strcmp(name, "interleave") == 0 || strcmp(name, "none") == 0);
    ck_assert_str_eq(m.why, "");
}

TEST(missing_nodes_are_told)
{
    static const char *const rows[] = {"node:1023", "node:1024", "node:4294967295"};
    for (int i = 0; i < ROWS(rows); i++) {
        ck_assert_str_eq(open_as(rows[i], true), "none");
        ck_assert_ptr_nonnull(strstr(m.why, "there is no memory node "));
        (void)policy_of_area();
        ck_assert_uint_eq(m.areas + m.errors, 0);
    }
}

TEST(bad_words_are_refused)
{
    static const char *const rows[] = {"",       "node",    "node:", "node:-1",
                                       "node:x", "default", "all"};
    struct membind_spec spec;
    expect_each(word, rows, membind_parse(&spec, word) != NULL);
}
