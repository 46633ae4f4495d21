/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the tests of restarts share: a folder of its own for each test, and the life of one process
 * after another on the memory file in it.
 */
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include "check_main.h"
#include "check_store.h"
#include "store/restart.h"

#define WALL INT64_C(1700000000) /* at which the relative clock showed 0 */
#define STAMP UINT64_C(0x1234567890abcdef)
#define LIMIT (8 * MIB)
#define ERR_BYTES 512

static char folder[SCRATCH_PATH];
static char file[sizeof(folder) + 8];
static char meta[sizeof(folder) + 16];

static inline void
make_folder(void)
{
    const char *quick = getenv("TMPDIR_MEMORY"); /* where nobody waits for a disk */
    snprintf(folder, sizeof folder, "%s/check_restart.XXXXXX",
             quick ? quick : "/dev/shm");
    if (mkdtemp(folder) == NULL) {
        scratch_name(folder, "check_restart");
        ck_assert_ptr_nonnull(mkdtemp(folder));
    }
    snprintf(file, sizeof(file), "%s/f", folder);
    snprintf(meta, sizeof(meta), "%s/f.meta", folder);
}

static inline void
remove_folder(void)
{
    (void)unlink(file);
    (void)unlink(meta);
    ck_assert_int_eq(rmdir(folder), 0);
}

static inline bool
exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Few classes, so that little memory will do. */
static inline struct store_conf
kept_conf(void)
{
    static const uint32_t sizes[] = {96, 240, 1000, 4096};
    struct store_conf conf = default_conf(LIMIT);

    conf.sizes = sizes;
    conf.size_count = sizeof(sizes) / sizeof(*sizes);
    conf.chunk_max = 16384;
    conf.can_reassign = true;
    conf.lru = segmented_lru();
    conf.lru.temp_ttl = 20;
    return conf;
}

/* How the processes of a test are configured. */
static struct store_conf conf;

/* The process of now: the store is NULL when there is none. */
static struct life {
    struct restart *r;
    struct store *s;
    struct store_conf conf;
    enum restart_status opened, loaded; /* FAILED: not tried */
    char err[ERR_BYTES];
} l;

static inline void
end_life(void)
{
    store_destroy(&l.s);
    restart_close(&l.r);
}

/* What the program does at its start. */
static inline void
begin_life(uint32_t now)
{
    end_life();
    l = (struct life){.conf = conf, .loaded = RESTART_FAILED};
    l.opened = restart_open(&l.r, file, &l.conf, l.err, sizeof(l.err));
    if (l.opened == RESTART_FAILED) {
        ck_assert_ptr_null(l.r);
        ck_assert_uint_gt(strlen(l.err), 0);
        return;
    }
    l.s = open_store(&l.conf);
    if (l.opened == RESTART_FOUND) {
        l.loaded = restart_load(l.r, l.s, &l.conf, now, l.err, sizeof(l.err));
        ck_assert(!exists(meta));
        if (l.loaded == RESTART_DISCARDED) {
            store_destroy(&l.s);
            l.s = open_store(&l.conf);
        }
    }
    ck_assert(!exists(meta));
    audit_store(l.s);
}

static inline void
begin_new_life(void)
{
    begin_life(NOW);
    ck_assert_int_eq(l.opened, RESTART_NEW);
}

/* What was saved is found. */
static inline void
begin_next_life(uint32_t now)
{
    begin_life(now);
    ck_assert_msg(l.opened == RESTART_FOUND && l.loaded == RESTART_FOUND, "%s", l.err);
}

static inline bool
try_save(uint32_t now)
{
    struct restart_times times = {
        .started = WALL, .stopped = WALL + now, .now = now, .last_gid = 77};
    return restart_save(l.r, l.s, &times, STAMP + now, l.err, sizeof(l.err));
}

static inline void
save_life(uint32_t now)
{
    audit_store(l.s);
    ck_assert_msg(try_save(now), "%s", l.err);
}

static inline void
restart_life(uint32_t now)
{
    save_life(now);
    begin_next_life(now);
}

static inline void
set_up_life(void)
{
    make_folder();
    conf = kept_conf();
}

static inline void
tear_down_life(void)
{
    end_life();
    remove_folder();
}

static inline char *
slurp(const char *path, size_t *len)
{
    FILE *in = fopen(path, "rb");
    char *text = NULL;

    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fseek(in, 0, SEEK_END), 0);
    *len = (size_t)ftell(in);
    rewind(in);
    text = malloc(*len + 1);
    ck_assert_uint_eq(fread(text, 1, *len, in), *len);
    fclose(in);
    return text;
}

static inline void
spew(const char *path, const char *text, size_t len)
{
    FILE *out = fopen(path, "wb");

    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, len, out), len);
    ck_assert_int_eq(fclose(out), 0);
}
