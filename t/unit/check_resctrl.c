/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * resctrl, on a directory that looks like it.
 */
#include "place/resctrl.h"

#include "check_main.h"
#include "check_tree.h"

static void
make_dir(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static const char *
get_file(const char *name)
{
    static char text[512];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void
open_group(struct resctrl *r, const char *group, const char *schemata)
{
    struct resctrl_conf conf = {.root = root, .group = group, .schemata = schemata};
    resctrl_open(r, &conf);
}

TEST(names_are_checked)
{
    static const char *const good[] = {"a", "cache", "a/mon_groups/b", "...", "-"};
    static const char *const bad[] = {"",  "/",  "/a",     "a/", "a//b",
                                      ".", "..", "a/../b", "./a"};
    expect_each(word, good, resctrl_check_group(word) == NULL);
    expect_each(word, bad, resctrl_check_group(word) != NULL);
    char name[600];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_ptr_nonnull(resctrl_check_group(name));
}

TEST(limits_are_checked)
{
    static const char *const good[] = {"L3:0=ff0;MB:0=70", "L3:0=f",
                                       "L3CODE:0=f;1=f;L2:0=3"};
    static const char *const bad[] = {"",     "L3",      "L3:",      "0=ff0",
                                      "L3:0", ";L3:0=f", "L3:0=f\n", "L3:0=f MB:0=1"};
    expect_each(word, good, resctrl_check_schemata(word) == NULL);
    expect_each(word, bad, resctrl_check_schemata(word) != NULL);
}

TEST(threads_join_an_existing_group)
{
    struct resctrl r;
    make_root();
    make_dir("cache");
    put_file("cache/tasks", "7\n");
    put_file("cache/schemata", "    L3:0=fff;1=fff\n    MB:0=100\n");
    open_group(&r, "cache", NULL);
    resctrl_join(&r, 12);
    resctrl_join(&r, 345);
    resctrl_close(&r);
    resctrl_join(&r, 6); /* too late */
    ck_assert_uint_eq(r.errors, 0);
    ck_assert_uint_eq(r.joined, 2);
    ck_assert_str_eq(get_file("cache/tasks"), "7\n12\n345\n");
    char text[RESCTRL_TEXT_MAX];
    resctrl_schemata(&r, text, sizeof text);
    ck_assert_str_eq(text, "L3:0=fff;1=fff;MB:0=100");
    resctrl_schemata(&r, text, 20);
    ck_assert_uint_lt(strlen(text), 20);
    remove_root();
}

TEST(group_is_made_for_its_limits)
{
    struct resctrl r;
    make_root();
    open_group(&r, "cache", "L3:0=ff0;1=ff;MB:0=70");
    resctrl_join(&r, 1);
    resctrl_close(&r);
    ck_assert_msg(r.errors == 0, "%s", r.why);
    ck_assert_str_eq(get_file("cache/schemata"), "L3:0=ff0;1=ff\nMB:0=70\n");
    ck_assert_str_eq(get_file("cache/tasks"), "1\n");
    open_group(&r, "cache", "MB:0=50"); /* it is there already */
    resctrl_close(&r);
    ck_assert_uint_eq(r.errors, 0);
    ck_assert_str_eq(get_file("cache/schemata"), "MB:0=50\n");
    remove_root();
}

TEST(failures_are_counted)
{
    struct resctrl r;
    char text[RESCTRL_TEXT_MAX];
    make_root();
    open_group(&r, "cache", NULL); /* nobody has made it */
    ck_assert_uint_eq(r.errors, 1);
    ck_assert_ptr_nonnull(strstr(r.why, "is resctrl mounted"));
    resctrl_join(&r, 1);
    ck_assert_uint_eq(r.joined, 0);
    resctrl_close(&r);
    open_group(&r, "no/such/parent", "MB:0=50");
    ck_assert_uint_eq(r.errors, 1);
    ck_assert_ptr_nonnull(strstr(r.why, "cannot make"));
    make_dir("cache");
    make_dir("cache/tasks"); /* no file */
    make_dir("cache/schemata");
    open_group(&r, "cache", "MB:0=50");
    ck_assert_uint_eq(r.errors, 2);
    ck_assert_ptr_nonnull(strstr(r.why, "cache/schemata"));
    resctrl_schemata(&r, text, sizeof text);
    ck_assert_str_eq(text, "");
    remove_root();
}

/* A write that the kernel refuses: /dev/full stands for it. */
TEST(refusals_have_the_reason_of_the_kernel)
{
    struct resctrl r;
    char path[256];
    make_root();
    make_dir("cache");
    make_dir("info");
    put_file("info/last_cmd_status", "Mask ff0 is not contiguous\nmore\n");
    snprintf(path, sizeof path, "%s/cache/schemata", root);
    ck_assert_int_eq(symlink("/dev/full", path), 0);
    snprintf(path, sizeof path, "%s/cache/tasks", root);
    ck_assert_int_eq(symlink("/dev/full", path), 0);
    open_group(&r, "cache", "L3:0=f0f;MB:0=70");
    ck_assert_uint_eq(r.errors, 2);
    ck_assert_ptr_nonnull(strstr(r.why, "L3:0=f0f"));
    ck_assert_ptr_nonnull(strstr(r.why, "Mask ff0 is not contiguous"));
    resctrl_join(&r, 1);
    ck_assert_uint_eq(r.errors, 3);
    ck_assert_uint_eq(r.joined, 0);
    resctrl_close(&r);
    remove_root();
}

TEST(off_does_nothing)
{
    struct resctrl r;
    char text[RESCTRL_TEXT_MAX];
    strcpy(root, "/no/such/root");
    open_group(&r, NULL, "L3:0=f");
    resctrl_join(&r, 1);
    resctrl_schemata(&r, text, sizeof text);
    resctrl_measure(&r, NULL, NULL);
    resctrl_close(&r);
    ck_assert_uint_eq(r.errors + r.joined, 0);
    ck_assert_str_eq(text, "");
}

static void
note(void *ctx, const char *domain, const char *event, const char *value)
{
    char line[256];
    int n = snprintf(line, sizeof line, "%s %s %s\n", domain, event, value);
    text_add(ctx, line, (size_t)n);
}

TEST(measures_are_told_in_order)
{
    struct resctrl r;
    struct text seen = {0};
    make_root();
    make_dir("cache");
    make_dir("cache/mon_data");
    make_dir("cache/mon_data/mon_L3_01");
    make_dir("cache/mon_data/mon_L3_00");
    put_file("cache/mon_data/mon_L3_01/llc_occupancy", "Unavailable\n");
    put_file("cache/mon_data/mon_L3_00/mbm_total_bytes", "70000\n");
    put_file("cache/mon_data/mon_L3_00/llc_occupancy", "4096\n");
    put_file("cache/mon_data/mon_L3_00/empty", "");
    open_group(&r, "cache", NULL);
    resctrl_measure(&r, note, &seen);
    resctrl_close(&r);
    text_add(&seen, "", 1);
    ck_assert_str_eq(seen.p, "mon_L3_00 llc_occupancy 4096\n"
                             "mon_L3_00 mbm_total_bytes 70000\n"
                             "mon_L3_01 llc_occupancy Unavailable\n");
    text_free(&seen);
    remove_root();
}
