/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The text of FILE.meta.
 */
#include "check_main.h"

#include "store/snapshot.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PAGES 1000u

static struct snapshot
some(void)
{
    struct snapshot snap;

    snapshot_init(&snap);
    strcpy(snap.slab_config, "1.25");
    snap.maxbytes = 1 << 20;
    snap.chunk_size = 48;
    snap.use_cas = 1;
    snap.current_cas = UINT64_MAX;
    snap.current_time = 99;
    snap.stamp = 5;
    snap.classes[7].cut_count = 2;
    snap.classes[7].fresh_count = 10;
    for (uint32_t i = 0; i < PAGES; i++) {
        ck_assert(snapshot_add_page(&snap, i < 10 ? 0 : 7, PAGES - i));
    }
    return snap;
}

static char *
format_some(size_t *len)
{
    SCOPED(snapshot_fini) struct snapshot snap = some();
    return snapshot_format(&snap, len);
}

static void
add_checksum(struct text *t)
{
    char line[64];
    int n = snprintf(line, sizeof line, "Kchecksum %016llx\n",
                     (unsigned long long)XXH3_64bits(t->p, t->len));
    text_add(t, line, (size_t)n);
}

static enum snapshot_status
parse(const char *p, size_t len)
{
    char *copy = exact_copy(p, len);
    struct snapshot snap;
    snapshot_init(&snap);
    enum snapshot_status status = snapshot_parse(&snap, copy, len);
    snapshot_fini(&snap);
    free(copy);
    return status;
}

TEST(reads_what_it_writes)
{
    SCOPED(snapshot_fini) struct snapshot was = some(), is;
    size_t len, len_again;
    FREED char *text = snapshot_format(&was, &len);
    snapshot_init(&is);
    ck_assert_int_eq(snapshot_parse(&is, text, len), SNAPSHOT_OK);
    ck_assert_str_eq(is.slab_config, "1.25");
    ck_assert_uint_eq(is.current_cas, UINT64_MAX);
    ck_assert_uint_eq(is.page_count, PAGES);
    ck_assert_uint_eq(is.classes[7].page_count, PAGES - 10);
    ck_assert_uint_eq(is.classes[7].cut_count, 2);
    ck_assert_uint_eq(is.classes[7].fresh_count, 10);
    ck_assert_uint_eq(is.pages[is.classes[7].first_page], PAGES - 10);
    FREED char *again = snapshot_format(&is, &len_again);
    ck_assert_uint_eq(len, len_again);
    ck_assert_str_eq(text, again);
}

TEST(begins_as_upstream_does)
{
    size_t len;
    FREED char *text = format_some(&len);
    ck_assert_int_eq(strncmp(text, "Tmain\n", 6), 0);
    static const char *const lines[] = {
        "\nKslab_config 1.25\n",    "\nKmaxbytes 1048576\n", "\nKuse_cas true\n",
        "\nKslab_reassign false\n", "\nKcurrent_time 99\n",  "\nKoldest_live 0\n",
        "\nKpages_7 2 10 990 "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        ck_assert_msg(strstr(text, lines[i]) != NULL, "%s", lines[i]);
    }
}

/* Without its n-th line and with a right checksum. */
TEST(no_line_may_be_missing)
{
    size_t len;
    FREED char *text = format_some(&len);
    unsigned lines = 0;
    for (char *p = text; *p != '\0'; p = strchr(p, '\n') + 1) {
        size_t n = (size_t)(strchr(p, '\n') + 1 - p);
        struct text t = {.p = NULL};
        text_add(&t, text, (size_t)(p - text));
        text_add(&t, p + n, len - n - (size_t)(p - text));
        if (strncmp(p, "Kchecksum", 9) != 0) {
            t.len -= strlen("Kchecksum 0123456789abcdef\n");
            add_checksum(&t);
        }
        enum snapshot_status status = parse(t.p, t.len);
        if (strncmp(p, "Tmain", 5) == 0) {
            ck_assert_int_eq(status, SNAPSHOT_CORRUPT);
        } else if (strncmp(p, "Kpages_", 7) == 0) {
            ck_assert_int_eq(status, SNAPSHOT_OK); /* a class without pages */
        } else {
            ck_assert_int_eq(status, SNAPSHOT_INCOMPLETE);
        }
        text_free(&t);
        lines++;
    }
    ck_assert_uint_gt(lines, 20);
}

static const struct {
    const char *from, *to;
} wrongs[] = {
    {"Kmaxbytes 1048576\n", "Kmaxbytes -1\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes 18446744073709551616\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes 1 2\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes 1048576\nKmaxbytes 1048576\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes 1048576\nKfoo 1\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes \n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes\n"},
    {"Kmaxbytes 1048576\n", "\n"},
    {"Kmaxbytes 1048576\n", "maxbytes 1048576\n"},
    {"Kmaxbytes 1048576\n", "K 1048576\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes\t1048576\n"},
    {"Kmaxbytes 1048576\n", "Kmaxbytes 1048576\r\n"},
    {"Kuse_cas true\n", "Kuse_cas yes\n"},
    {"Kstamp 0000000000000005\n", "Kstamp 5\n"},
    {"Kstamp 0000000000000005\n", "Kstamp 000000000000000G\n"},
    {"Kpages_7 2 10 990 ", "Kpages_64 2 10 990 "},
    {"Kpages_7 2 10 990 ", "Kpages_-7 2 10 990 "},
    {"Kpages_7 2 10 990 ", "Kpages_0 2 10 990 "},
    {"Kpages_7 2 10 990 ", "Kpages_ 2 10 990 "},
    {"Kpages_7 2 10 990 ", "Kpages_7 2 10 990  "},
    {"Kpages_7 2 10 990 ", "Kpages_7 2 - 990 "},
    {"Kpages_7 2 10 990 ", "Kpages_7 2 10 4294967296 "},
    {"Kpages_7 2 10 990 ", "Kpages_7 2 \nKpages_8 1 2 "},
};

TEST_ROWS(nothing_else_is_read, wrongs, row->to)
{
    size_t len;
    FREED char *text = format_some(&len);
    char *at = strstr(text, row->from);
    ck_assert_ptr_nonnull(at);
    SCOPED(text_free) struct text t = {.p = NULL};
    text_add(&t, text, (size_t)(at - text));
    text_add(&t, row->to, strlen(row->to));
    at += strlen(row->from);
    text_add(&t, at, strlen(at) - strlen("Kchecksum 0123456789abcdef\n"));
    add_checksum(&t);
    ck_assert_int_eq(parse(t.p, t.len), SNAPSHOT_CORRUPT);
}

TEST(tells_another_server_from_damage)
{
    static const struct {
        const char *text;
        enum snapshot_status status;
    } rows[] = {
        {"", SNAPSHOT_CORRUPT},
        {"\n", SNAPSHOT_CORRUPT},
        {"hello\n", SNAPSHOT_CORRUPT},
        {"Tmain", SNAPSHOT_CORRUPT},
        {"Tother\nKa b\n", SNAPSHOT_CORRUPT},
        {"Tmain\n", SNAPSHOT_INCOMPLETE},
        {"Tmain\nKslab_config 1.25\nKfoo bar baz\n", SNAPSHOT_INCOMPLETE},
        {"Tmain\nKslab_config 1.25\nhello\n", SNAPSHOT_CORRUPT},
        {"Tmain\nKformat memcached-qos-3\n", SNAPSHOT_INCOMPLETE},
        {"Tmain\nKformat memcached-qos-3\nKchecksum 0\n", SNAPSHOT_CORRUPT},
        {"Tmain\nKformat memcached-qos-3\nKchecksum 0\nKfoo 1\n", SNAPSHOT_CORRUPT},
        {"Tmain\nKformat memcached-qos-3\nKslab_config 1.25\n", SNAPSHOT_INCOMPLETE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(parse(rows[i].text, strlen(rows[i].text)) == rows[i].status, "%zu",
                      i);
    }
}
