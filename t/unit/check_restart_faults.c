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
leave_items(const struct store_conf *conf)
{
    struct life l = begin_life(conf, NOW);

    ck_assert_int_eq(put(l.s, STORE_SET, "k", "v", 0, NOW), STORE_OK);
    ck_assert_int_eq(put_sized(l.s, "large", LARGE, 0, NOW), STORE_OK);
    save_life(&l, NOW);
    end_life(&l);
}

static void
assert_starts_empty(const struct store_conf *conf, const char *why)
{
    struct life l = begin_life(conf, NOW);

    ck_assert_msg(l.opened == RESTART_DISCARDED || l.loaded == RESTART_DISCARDED, "%d %d",
                  l.opened, l.loaded);
    ck_assert_msg(strstr(l.err, why) != NULL, "%s", l.err);
    assert_empty(l.s);
    ck_assert_int_eq(put_sized(l.s, "large", LARGE, 0, NOW), STORE_OK);
    end_life(&l);
}

static void
assert_fails(const struct store_conf *conf, const char *why)
{
    struct life l = begin_life(conf, NOW);

    ck_assert_int_eq(l.opened, RESTART_FAILED);
    ck_assert_msg(strstr(l.err, why) != NULL, "%s", l.err);
}

static const char *const setting_names[] = {
    "slab_config",   "slab_config",         "maxbytes", "chunk_size",
    "item_size_max", "slab_chunk_size_max", "use_cas",  "counts_suffix"};
#define SETTINGS (sizeof(setting_names) / sizeof(*setting_names))

static void
change_setting(struct store_conf *conf, unsigned which)
{
    static const uint32_t sizes[] = {96, 248, 1000, 4096};

    switch (which) {
    case 0:
        conf->sizes = sizes;
        break;
    case 1:
        conf->sizes = NULL;
        conf->growth_factor = 2;
        break;
    case 2:
        conf->limit_bytes += MIB;
        break;
    case 3:
        conf->min_space += 8;
        break;
    case 4:
        conf->item_max /= 2;
        break;
    case 5:
        conf->chunk_max /= 2;
        break;
    case 6:
        conf->use_cas = !conf->use_cas;
        break;
    default:
        conf->inline_suffix = !conf->inline_suffix;
    }
}

START_TEST(other_settings_lose_the_items)
{
    struct store_conf conf = kept_conf();
    char why[64];

    leave_items(&conf);
    change_setting(&conf, (unsigned)_i);
    snprintf(why, sizeof(why), ": %s was another one", setting_names[_i]);
    assert_starts_empty(&conf, why);
}
END_TEST

START_TEST(settings_that_may_change)
{
    struct store_conf conf = kept_conf();
    struct life l;

    leave_items(&conf);
    conf.can_reassign = false;
    conf.can_evict = false;
    conf.can_grow_hash = false;
    conf.threads = 7;
    conf.hash_seed++;
    conf.lru.temp_ttl = -1;
    l = begin_life(&conf, NOW);
    ck_assert_int_eq(l.loaded, RESTART_FOUND);
    ck_assert(has(l.s, "k", "v", NOW));
    end_life(&l);
}
END_TEST

/* Every length, every byte: it fails or begins empty. */
START_TEST(no_damaged_meta_is_believed)
{
    struct store_conf conf = kept_conf();
    size_t len;
    char *text;

    leave_items(&conf);
    text = slurp(meta, &len);
    for (size_t i = 0; i < 2 * len; i++) {
        size_t n = i < len ? i : len;
        char saved = text[i % len];
        struct restart *r;
        struct store_conf used = conf;
        char err[ERR_BYTES];
        enum restart_status status;

        if (i >= len) {
            text[i % len] ^= (char)(1 << i % 8);
        }
        spew(meta, text, n);
        status = restart_open(&r, file, &used, err, sizeof(err));
        ck_assert_msg(status == RESTART_FAILED || status == RESTART_DISCARDED, "%zu", i);
        ck_assert(exists(meta) == (status == RESTART_FAILED));
        ck_assert(i != 0 || status == RESTART_FAILED); /* an empty one */
        restart_close(&r);
        text[i % len] = saved;
    }
    free(text);
}
END_TEST

START_TEST(a_failed_start_leaves_both_files)
{
    struct store_conf conf = kept_conf();
    struct life l;
    size_t len;
    char *text;

    leave_items(&conf);
    text = slurp(meta, &len);
    spew(meta, "Tmain", 5);
    assert_fails(&conf, "is corrupt");
    spew(meta, text, len);
    free(text);
    l = begin_life(&conf, NOW);
    ck_assert_int_eq(l.loaded, RESTART_FOUND);
    ck_assert(has(l.s, "k", "v", NOW));
    end_life(&l);
}
END_TEST

START_TEST(meta_of_another_server_is_left_out)
{
    static const char other[] = "Tmain\nKslab_config 1.25\nKmaxbytes 8388608\n"
                                "Kmmap_oldbase 0x7f76cd200000\n";
    struct store_conf conf = kept_conf();

    leave_items(&conf);
    spew(meta, other, sizeof(other) - 1);
    assert_starts_empty(&conf, "lacks lines");
}
END_TEST

START_TEST(meta_must_be_a_small_file)
{
    struct store_conf conf = kept_conf();

    ck_assert_int_eq(mkdir(meta, 0700), 0);
    assert_fails(&conf, ".meta");
    ck_assert_int_eq(rmdir(meta), 0);
    ck_assert_int_eq(mkfifo(meta, 0600), 0);
    assert_fails(&conf, ".meta");
    ck_assert_int_eq(unlink(meta), 0);
    ck_assert_int_eq(symlink("/etc/passwd", meta), 0);
    assert_fails(&conf, ".meta");
    ck_assert_int_eq(unlink(meta), 0);
    spew(meta, "", 0);
    ck_assert_int_eq(truncate(meta, INT64_C(1) << 32), 0);
    assert_fails(&conf, "of this size");
}
END_TEST

/* One byte of the pages in use has changed. */
START_TEST(changed_memory_is_not_served)
{
    struct store_conf conf = kept_conf();
    off_t at[] = {0, 48, 95, 4 * (off_t)MIB + 1000};
    char byte;
    int fd;

    leave_items(&conf);
    fd = open(file, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, at[_i]), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at[_i]), 1);
    close(fd);
    assert_starts_empty(&conf, "it has changed since it was saved");
}
END_TEST

START_TEST(a_shorter_file_is_not_served)
{
    struct store_conf conf = kept_conf();

    leave_items(&conf);
    ck_assert_int_eq(truncate(file, _i == 0 ? 0 : LIMIT), 0);
    assert_starts_empty(&conf, "it is not as");
    leave_items(&conf);
    ck_assert_int_eq(unlink(file), 0);
    assert_starts_empty(&conf, "it is not as");
}
END_TEST

/* A copy of FILE.meta from before: what it is about has been flushed meanwhile. */
START_TEST(a_stale_meta_is_not_served)
{
    struct store_conf conf = kept_conf();
    struct life l;
    size_t len;
    char *text;

    leave_items(&conf);
    text = slurp(meta, &len);
    l = begin_life(&conf, NOW);
    ck_assert_int_eq(l.loaded, RESTART_FOUND);
    store_flush(l.s, NOW, NOW);
    if (_i == 1) {
        save_life(&l, NOW + 1);
    }
    end_life(&l);
    spew(meta, text, len);
    free(text);
    assert_starts_empty(&conf, "is about others");
}
END_TEST

START_TEST(one_server_at_a_time)
{
    struct store_conf conf = kept_conf();
    struct life l = begin_life(&conf, NOW);

    assert_fails(&conf, "in use by another server");
    end_life(&l);
    l = begin_life(&conf, NOW);
    ck_assert_int_eq(l.opened, RESTART_NEW);
    end_life(&l);
}
END_TEST

START_TEST(says_why_it_can_not_use_the_file)
{
    struct store_conf conf = kept_conf();
    char saved[sizeof(file)];

    strcpy(saved, file);
    strcat(file, "/f");
    assert_fails(&conf, "No such file");
    strcpy(file, folder);
    assert_fails(&conf, "directory");
    strcpy(file, "/dev/null");
    assert_fails(&conf, "not a regular file");
    strcat(strcpy(file, folder), "/");
    assert_fails(&conf, "directory");
    strcpy(file, saved);
    if (geteuid() != 0) {
        spew(file, "", 0);
        ck_assert_int_eq(chmod(file, 0400), 0);
        assert_fails(&conf, "Permission denied");
        ck_assert_int_eq(chmod(file, 0600), 0);
    }
    ck_assert_int_eq(symlink("/dev/full", meta), 0);
    assert_fails(&conf, ".meta");
}
END_TEST

/* The name of the temporary file is taken by something that can not go. */
START_TEST(a_save_that_fails_leaves_no_meta)
{
    struct store_conf conf = kept_conf();
    struct restart_times times = {.started = WALL, .stopped = WALL + NOW, .now = NOW};
    struct life l = begin_life(&conf, NOW);
    char temporary[sizeof(meta) + 8];

    snprintf(temporary, sizeof(temporary), "%s.tmp", meta);
    ck_assert_int_eq(mkdir(temporary, 0700), 0);
    ck_assert_int_eq(put(l.s, STORE_SET, "k", "v", 0, NOW), STORE_OK);
    ck_assert(!restart_save(l.r, l.s, &times, STAMP, l.err, sizeof(l.err)));
    ck_assert_msg(strstr(l.err, "can't write") != NULL, "%s", l.err);
    ck_assert(!exists(meta));
    ck_assert_int_eq(rmdir(temporary), 0);
    ck_assert(restart_save(l.r, l.s, &times, STAMP, l.err, sizeof(l.err)));
    ck_assert(exists(meta));
    end_life(&l);
}
END_TEST

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

START_TEST(without_room_for_more_items_stay)
{
    struct store_conf conf = kept_conf();
    struct store_conf larger = conf;
    char err[ERR_BYTES];
    struct restart *r;
    struct life l;

    leave_items(&conf);
    larger.limit_bytes += MIB;
    limit_files(LIMIT + MIB / 2);
    enum restart_status status = restart_open(&r, file, &larger, err, sizeof(err));
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(status, RESTART_FAILED);
    ck_assert_msg(strstr(err, "can't reserve 9 megabytes (-m)") != NULL, "%s", err);
    ck_assert_msg(strstr(err, file) != NULL, "%s", err);
    l = begin_life(&conf, NOW);
    ck_assert_int_eq(l.loaded, RESTART_FOUND);
    ck_assert(has(l.s, "k", "v", NOW));
    end_life(&l);
}
END_TEST

START_TEST(without_room_for_meta_none_is_left)
{
    struct store_conf conf = kept_conf();
    struct restart_times times = {.started = WALL, .stopped = WALL + NOW, .now = NOW};
    struct life l = begin_life(&conf, NOW);
    char temporary[sizeof(meta) + 8];

    snprintf(temporary, sizeof(temporary), "%s.tmp", meta);
    ck_assert_int_eq(put(l.s, STORE_SET, "k", "v", 0, NOW), STORE_OK);
    limit_files(100);
    bool is_saved = restart_save(l.r, l.s, &times, STAMP, l.err, sizeof(l.err));
    limit_files(RLIM_INFINITY);
    ck_assert(!is_saved);
    ck_assert_msg(strstr(l.err, "are lost: can't write") != NULL, "%s", l.err);
    ck_assert(!exists(meta));
    ck_assert(!exists(temporary));
    end_life(&l);
    l = begin_life(&conf, NOW);
    ck_assert_int_eq(l.opened, RESTART_NEW);
    end_life(&l);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("restart faults");
    TCase *tc = tcase_create("restart faults");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, make_folder, remove_folder);
    tcase_add_loop_test(tc, other_settings_lose_the_items, 0, SETTINGS);
    tcase_add_test(tc, settings_that_may_change);
    tcase_add_test(tc, no_damaged_meta_is_believed);
    tcase_add_test(tc, a_failed_start_leaves_both_files);
    tcase_add_test(tc, without_room_for_more_items_stay);
    tcase_add_test(tc, without_room_for_meta_none_is_left);
    tcase_add_test(tc, meta_of_another_server_is_left_out);
    tcase_add_test(tc, meta_must_be_a_small_file);
    tcase_add_loop_test(tc, changed_memory_is_not_served, 0, 4);
    tcase_add_loop_test(tc, a_shorter_file_is_not_served, 0, 2);
    tcase_add_loop_test(tc, a_stale_meta_is_not_served, 0, 2);
    tcase_add_test(tc, one_server_at_a_time);
    tcase_add_test(tc, says_why_it_can_not_use_the_file);
    tcase_add_test(tc, a_save_that_fails_leaves_no_meta);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
