/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Files that are not as they should be: no start serves what was not saved.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "check_restart.h"
#include "store/snapshot.h"

#define LARGE 40000u

/* A store with one small and one chained item, saved. */
static void
leave_items(void)
{
    begin_life(NOW);

    expect_ok(put(l.s, STORE_SET, "k", "v", 0, NOW));
    expect_ok(put_sized(l.s, "large", LARGE, 0, NOW));
    save_life(NOW);
    end_life();
}

static void
assert_starts_empty(const char *why)
{
    begin_life(NOW);

    ck_assert_msg(l.opened == RESTART_DISCARDED || l.loaded == RESTART_DISCARDED, "%d %d",
                  l.opened, l.loaded);
    expect_part(l.err, why);
    assert_empty(l.s);
    expect_ok(put_sized(l.s, "large", LARGE, 0, NOW));
    end_life();
}

static void
assert_fails(const char *why)
{
    begin_life(NOW);

    ck_assert_int_eq(l.opened, RESTART_FAILED);
    expect_part(l.err, why);
}

static const char *const setting_names[] = {
    "slab_config",         "slab_config", "maxbytes",      "chunk_size", "item_size_max",
    "slab_chunk_size_max", "use_cas",     "counts_suffix", "lean_items"};

static void
change_setting(unsigned which)
{
    static const uint32_t sizes[] = {96, 248, 1000, 4096};

    if (which < 2) {
        conf.sizes = which == 0 ? sizes : NULL;
        conf.growth_factor = 2;
    }
    conf.limit_bytes += which == 2 ? MIB : 0;
    conf.min_space += which == 3 ? 8 : 0;
    conf.item_max /= which == 4 ? 2 : 1;
    conf.chunk_max /= which == 5 ? 2 : 1;
    conf.use_cas ^= which == 6;
    conf.inline_suffix ^= which == 7;
    conf.is_lean ^= which == 8;
}

FIXTURE(set_up_life, tear_down_life);

TEST_ROWS(other_settings_lose_the_items, setting_names, *row)
{
    char why[64];

    leave_items();
    change_setting((unsigned)(row - setting_names));
    snprintf(why, sizeof(why), ": %s was another one", *row);
    assert_starts_empty(why);
}

TEST(settings_that_may_change)
{
    leave_items();
    conf.can_reassign = false;
    conf.can_evict = false;
    conf.can_grow_hash = false;
    conf.threads = 7;
    conf.hash_seed++;
    conf.lru.temp_ttl = -1;
    begin_next_life(NOW);
    ck_assert(has(l.s, "k", "v", NOW));
}

/* Every length, every byte: it fails or begins empty. */
TEST(no_damaged_meta_is_believed)
{
    size_t len;

    leave_items();
    FREED char *text = slurp(meta, &len);
    for (size_t i = 0; i < 2 * len; i++) {
        size_t n = i < len ? i : len;
        char saved = text[i % len];
        struct restart *r;
        struct store_conf used = conf;
        char err[ERR_BYTES];

        if (i >= len) {
            text[i % len] ^= (char)(1 << i % 8);
        }
        spew(meta, text, n);
        enum restart_status status = restart_open(&r, file, &used, err, sizeof(err));
        ck_assert_msg(status == RESTART_FAILED || status == RESTART_DISCARDED, "%zu", i);
        ck_assert(exists(meta) == (status == RESTART_FAILED));
        ck_assert(i != 0 || status == RESTART_FAILED); /* an empty one */
        restart_close(&r);
        text[i % len] = saved;
    }
}

TEST(a_failed_start_leaves_both_files)
{
    size_t len;

    leave_items();
    char *text = slurp(meta, &len);
    spew(meta, "Tmain", 5);
    assert_fails("is corrupt");
    spew(meta, text, len);
    free(text);
    begin_next_life(NOW);
    ck_assert(has(l.s, "k", "v", NOW));
}

TEST(meta_of_another_server_is_left_out)
{
    static const char other[] = "Tmain\nKslab_config 1.25\nKmaxbytes 8388608\n"
                                "Kmmap_oldbase 0x7f76cd200000\n";

    leave_items();
    spew(meta, other, sizeof(other) - 1);
    assert_starts_empty("lacks lines");
}

TEST(meta_must_be_a_small_file)
{
    ck_assert_int_eq(mkdir(meta, 0700), 0);
    assert_fails(".meta");
    ck_assert_int_eq(rmdir(meta), 0);
    ck_assert_int_eq(mkfifo(meta, 0600), 0);
    assert_fails(".meta");
    ck_assert_int_eq(unlink(meta), 0);
    ck_assert_int_eq(symlink("/etc/passwd", meta), 0);
    assert_fails(".meta");
    ck_assert_int_eq(unlink(meta), 0);
    spew(meta, "", 0);
    ck_assert_int_eq(truncate(meta, INT64_C(1) << 32), 0);
    assert_fails("of this size");
}

/* One byte of an item has changed: a link, its CAS number, its last byte, its long value. */
TEST_LOOP(changed_memory_is_not_served, 4)
{
    off_t at[] = {0, 32, 43, 4 * (off_t)MIB + 1000};
    char byte;

    leave_items();
    int fd = open(file, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, at[_i]), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at[_i]), 1);
    close(fd);
    assert_starts_empty("it has changed since it was saved");
}

TEST_LOOP(a_shorter_file_is_not_served, 2)
{
    leave_items();
    ck_assert_int_eq(truncate(file, _i == 0 ? 0 : LIMIT), 0);
    assert_starts_empty("it is not as");
    leave_items();
    ck_assert_int_eq(unlink(file), 0);
    assert_starts_empty("it is not as");
}

TEST(a_flush_of_the_future_is_not_believed)
{
    begin_new_life();
    expect_ok(put(l.s, STORE_SET, "a", "v", 0, NOW));
    atomic_store(&l.s->flush.time_below, NOW + 2);
    save_life(NOW);
    end_life();
    assert_starts_empty("it is not as");
}

/* A copy of FILE.meta from before: what it is about has been flushed meanwhile. */
TEST_LOOP(a_stale_meta_is_not_served, 2)
{
    size_t len;

    leave_items();
    char *text = slurp(meta, &len);
    begin_next_life(NOW);
    store_flush(l.s, 0, NOW);
    if (_i == 1) {
        save_life(NOW + 1);
    }
    end_life();
    spew(meta, text, len);
    free(text);
    assert_starts_empty("is about others");
}

TEST(one_server_at_a_time)
{
    struct restart *other;
    struct store_conf used = conf;
    char err[ERR_BYTES];

    begin_life(NOW);
    ck_assert_int_eq(restart_open(&other, file, &used, err, sizeof err), RESTART_FAILED);
    ck_assert_ptr_null(other);
    expect_part(err, "in use by another server");
    begin_new_life();
}

TEST(says_why_it_can_not_use_the_file)
{
    char saved[sizeof(file)];

    strcpy(saved, file);
    strcat(file, "/f");
    assert_fails("No such file");
    strcpy(file, folder);
    assert_fails("directory");
    strcpy(file, "/dev/null");
    assert_fails("not a regular file");
    strcat(strcpy(file, folder), "/");
    assert_fails("directory");
    strcpy(file, saved);
    if (geteuid() != 0) {
        spew(file, "", 0);
        ck_assert_int_eq(chmod(file, 0400), 0);
        assert_fails("Permission denied");
        ck_assert_int_eq(chmod(file, 0600), 0);
    }
    ck_assert_int_eq(symlink("/dev/full", meta), 0);
    assert_fails(".meta");
}

/* The name of the temporary file is taken by something that can not go. */
TEST(a_save_that_fails_leaves_no_meta)
{
    begin_life(NOW);
    char temporary[sizeof(meta) + 8];

    snprintf(temporary, sizeof(temporary), "%s.tmp", meta);
    ck_assert_int_eq(mkdir(temporary, 0700), 0);
    expect_ok(put(l.s, STORE_SET, "k", "v", 0, NOW));
    ck_assert(!try_save(NOW));
    expect_part(l.err, "can't write");
    ck_assert(!exists(meta));
    ck_assert_int_eq(rmdir(temporary), 0);
    ck_assert(try_save(NOW));
    ck_assert(exists(meta));
}

/* As full as a disk may be: files do not grow beyond this. RLIM_INFINITY: any more. */
static void
limit_files(rlim_t bytes)
{
    struct rlimit limit;

    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(without_room_for_more_items_stay)
{
    struct store_conf larger = conf;
    char err[ERR_BYTES];
    struct restart *r;

    leave_items();
    larger.limit_bytes += MIB;
    limit_files(LIMIT + MIB / 2);
    enum restart_status status = restart_open(&r, file, &larger, err, sizeof(err));
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(status, RESTART_FAILED);
    expect_part(err, "can't reserve 9 megabytes (-m)");
    expect_part(err, file);
    begin_next_life(NOW);
    ck_assert(has(l.s, "k", "v", NOW));
}

TEST(without_room_for_meta_none_is_left)
{
    begin_life(NOW);
    char temporary[sizeof(meta) + 8];

    snprintf(temporary, sizeof(temporary), "%s.tmp", meta);
    expect_ok(put(l.s, STORE_SET, "k", "v", 0, NOW));
    limit_files(100);
    bool is_saved = try_save(NOW);
    limit_files(RLIM_INFINITY);
    ck_assert(!is_saved);
    expect_part(l.err, "are lost: can't write");
    ck_assert(!exists(meta));
    ck_assert(!exists(temporary));
    begin_new_life();
}

/* However much of it there is: a later start has the items. */
TEST(without_memory_for_the_store_items_stay)
{
    enum restart_status status = RESTART_FAILED;
    unsigned refused = 0;

    leave_items();
    for (long n = 1; status == RESTART_FAILED; n++) {
        struct store_conf used = conf;
        char err[ERR_BYTES] = "";
        struct restart *r;

        ck_assert_int_eq(restart_open(&r, file, &used, err, sizeof err), RESTART_FOUND);
        struct store *s = store_create_failing(&used, n, err, sizeof err);
        if (s != NULL) {
            status = restart_load(r, s, &used, NOW, err, sizeof err);
            refused += status == RESTART_FAILED;
            ck_assert(exists(meta) == (status == RESTART_FAILED));
            expect_part(err, status == RESTART_FAILED ? "no memory to put" : "");
        }
        if (status == RESTART_FOUND) {
            ck_assert(has(s, "k", "v", NOW));
        }
        store_destroy(&s);
        restart_close(&r);
    }
    ck_assert_int_eq(status, RESTART_FOUND);
    ck_assert_uint_gt(refused, 0);
}

/* ---- what a store never is, with the right checksum -------------------------------------- */

static struct item *
stored(const char *key)
{
    struct item *it;

    expect_ok(put(l.s, STORE_SET, key, "v", 0, NOW));
    expect_ok(store_get(l.s, key_of(key), NOW, &it));
    store_release(l.s, it);
    return it;
}

static void
assert_is_refused(void)
{
    ck_assert_msg(try_save(NOW), "%s", l.err);
    store_destroy(&l.s);
    restart_close(&l.r);
    assert_starts_empty("it has changed since it was saved");
}

TEST(two_items_with_one_key_are_refused)
{
    begin_life(NOW);
    (void)stored("k1");
    struct item *it = stored("k2");

    item_key_slot(it)[1] = '1';
    assert_is_refused();
}

static void
join(struct item *a, struct item *b)
{
    a->next = link_to(&l.s->table.range, b);
    b->prev = link_to(&l.s->table.range, a);
}

/* Each item is between two that say so, too. */
TEST(a_ring_of_items_beside_the_list_is_refused)
{
    begin_life(NOW);
    struct item *first = stored("k1"), *second = stored("k2");
    struct item *third = stored("k3"), *fourth = stored("k4");

    join(fourth, first);
    join(second, third);
    join(third, second);
    assert_is_refused();
}

TEST(a_second_list_is_refused)
{
    begin_life(NOW);
    struct item *first = stored("k1"), *second = stored("k2");

    second->next = 0;
    first->prev = 0;
    assert_is_refused();
}
