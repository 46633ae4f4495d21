/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/restart.h"

#include "base/fail.h"
#include "store/census.h"
#include "store/memfile.h"
#include "store/relink.h"
#include "store/snapshot.h"

#define WALL_TIME_MAX (UINT64_C(1) << 40)

struct restart {
    struct memfile file;
    struct snapshot conf; /* as this process is configured */
    struct snapshot snap; /* what the last one left */
};

/* ---- opening ---------------------------------------------------------------------------- */

static bool
are_numbers_sane(const struct snapshot *snap)
{
    return snap->current_time <= UINT32_MAX / 2 &&
           snap->process_started <= WALL_TIME_MAX && snap->stop_time <= WALL_TIME_MAX &&
           snap->flush_epoch <= UINT16_MAX && snap->oldest_live <= UINT32_MAX &&
           snap->flush_below <= snap->current_time + 1 && snap->flush_at <= UINT32_MAX &&
           snap->hashpower >= TABLE_POWER_MIN && snap->hashpower <= TABLE_POWER_MAX;
}

/* Not larger than the memory could ever have made it. */
static void
restore_hash_power(const struct snapshot *snap, struct store_conf *conf)
{
    uint64_t items = conf->limit_bytes / STORE_ITEM_HEADER;

    if (snap->hashpower > conf->hash_power &&
        UINT64_C(1) << snap->hashpower <= 2 * items) {
        conf->hash_power = (unsigned)snap->hashpower;
    }
}

/* Whether the snapshot is about this file and this configuration; it is mapped if so. */
static enum restart_status
compare(struct restart *r, const struct store_conf *conf, char *err, size_t err_len)
{
    const char *name = r->file.path;
    const char *setting = snapshot_difference(&r->snap, &r->conf);

    if (setting != NULL) {
        snprintf(err, err_len, "the items of %s are lost: %s was another one", name,
                 setting);
        return RESTART_DISCARDED;
    }
    if (!are_numbers_sane(&r->snap) || !memfile_had_size(&r->file, conf->limit_bytes)) {
        snprintf(err, err_len, "the items of %s are lost: it is not as %s.meta says",
                 name, name);
        return RESTART_DISCARDED;
    }
    if (!memfile_map(&r->file, conf->limit_bytes, err, err_len)) {
        return RESTART_FAILED;
    }
    return RESTART_FOUND;
}

static enum restart_status
judge(struct restart *r, const struct store_conf *conf, const char *text, size_t len,
      char *err, size_t err_len)
{
    const char *name = r->file.path;

    switch (snapshot_parse(&r->snap, text, len)) {
    case SNAPSHOT_OK:
        return compare(r, conf, err, err_len);
    case SNAPSHOT_INCOMPLETE:
        snprintf(err, err_len, "the items of %s are lost: %s.meta lacks lines", name,
                 name);
        return RESTART_DISCARDED;
    case SNAPSHOT_CORRUPT:
        snprintf(err, err_len, "%s.meta is corrupt; without it the cache begins empty",
                 name);
        return RESTART_FAILED;
    case SNAPSHOT_NO_MEMORY:
        snprintf(err, err_len, "no memory to read %s.meta", name);
        return RESTART_FAILED;
    }
    unreachable();
}

static enum restart_status
look(struct restart *r, const struct store_conf *conf, char *err, size_t err_len)
{
    uint64_t bytes =
        conf->limit_bytes > r->file.file_bytes ? conf->limit_bytes : r->file.file_bytes;
    size_t most = SNAPSHOT_BYTES_FIXED + /* of items under another -m, too */
                  bytes / STORE_PAGE_BYTES * SNAPSHOT_BYTES_PER_PAGE;
    enum restart_status status = RESTART_NEW;
    char *text;
    size_t len;

    if (!memfile_read_meta(&r->file, most, &text, &len, err, err_len)) {
        return RESTART_FAILED;
    }
    if (text != NULL) {
        status = judge(r, conf, text, len, err, err_len);
        free(text);
    }
    if (status == RESTART_FOUND && memfile_stamp(&r->file) != r->snap.stamp) {
        snprintf(err, err_len, "the items of %s are lost: %s.meta is about others",
                 r->file.path, r->file.path);
        status = RESTART_DISCARDED;
    }
    return status;
}

/* From here on the two do not fit any more: the items are the store's. */
static bool
use_up(struct restart *r, char *err, size_t err_len)
{
    return memfile_remove_meta(&r->file, err, err_len) &&
           memfile_clear_stamp(&r->file, err, err_len);
}

/* What is in the memory is of no interest: no chunk is read before it has been taken and
 * written. False: err says why. Without room for the memory FILE.meta stays; with another size
 * FILE is none that it is about. */
static bool
begin_empty(struct restart *r, struct store_conf *conf, char *err, size_t err_len)
{
    conf->restores = false;
    return (r->file.base != NULL ||
            memfile_map(&r->file, conf->limit_bytes, err, err_len)) &&
           use_up(r, err, err_len);
}

enum restart_status
restart_open(struct restart **rp, const char *path, struct store_conf *conf, char *err,
             size_t err_len)
{
    struct restart *r = calloc(1, sizeof(*r));
    enum restart_status status = RESTART_FAILED;
    char why[512];

    must(conf->limit_bytes % STORE_PAGE_BYTES == 0);
    *rp = r;
    if (r == NULL) {
        snprintf(err, err_len, "no memory for the memory file");
        return status;
    }
    snapshot_init(&r->conf);
    snapshot_init(&r->snap);
    relink_describe_conf(conf, &r->conf);
    if (memfile_open(&r->file, path, err, err_len)) {
        status = look(r, conf, err, err_len);
    }
    if (status == RESTART_FOUND) {
        conf->restores = true;
        restore_hash_power(&r->snap, conf);
    } else if (status != RESTART_FAILED && (!store_check(conf, true, why, sizeof(why)) ||
                                            !begin_empty(r, conf, why, sizeof(why)))) {
        snprintf(err, err_len, "%s", why);
        status = RESTART_FAILED;
    }
    conf->memory = r->file.base;
    if (status == RESTART_FAILED) {
        restart_close(rp);
    }
    return status;
}

void
restart_close(struct restart **rp)
{
    struct restart *r = *rp;

    if (r == NULL) {
        return;
    }
    *rp = NULL;
    memfile_close(&r->file);
    snapshot_fini(&r->snap);
    free(r);
}

struct restart_times
restart_times(const struct restart *r)
{
    return (struct restart_times){
        .started = (int64_t)r->snap.process_started,
        .stopped = (int64_t)r->snap.stop_time,
        .now = (uint32_t)r->snap.current_time,
        .last_gid = r->snap.logger_gid,
    };
}

/* ---- loading ---------------------------------------------------------------------------- */

enum restart_status
restart_load(struct restart *r, struct store *s, struct store_conf *conf, uint32_t now,
             char *err, size_t err_len)
{
    enum restart_status status = RESTART_FAILED;
    struct census *census;
    const char *wrong;

    must(conf->restores && now >= r->snap.current_time);
    if (!relink_items(s, &r->snap, now, &census, &wrong)) {
        snprintf(err, err_len, "no memory to put the items of %s back", r->file.path);
    } else if (wrong == NULL && use_up(r, err, err_len)) {
        relink_settle(s, census);
        status = RESTART_FOUND;
    } else if (wrong != NULL && begin_empty(r, conf, err, err_len)) {
        snprintf(err, err_len, "the items of %s are lost: %s", r->file.path, wrong);
        status = RESTART_DISCARDED;
    }
    census_close(&census);
    return status;
}

/* ---- saving ----------------------------------------------------------------------------- */

bool
restart_save(struct restart *r, struct store *s, const struct restart_times *times,
             uint64_t stamp, char *err, size_t err_len)
{
    struct snapshot snap = r->conf;
    bool is_saved = false;
    char *text = NULL;
    size_t len;

    must(stamp != 0);
    snap.current_time = times->now;
    snap.process_started = (uint64_t)times->started;
    snap.stop_time = (uint64_t)times->stopped;
    snap.logger_gid = times->last_gid;
    snap.stamp = stamp;
    if (relink_describe(s, &snap)) {
        text = snapshot_format(&snap, &len);
    }
    snapshot_fini(&snap);
    if (text == NULL) {
        return fail_because(err, err_len, "no memory to save the items of %s",
                            r->file.path);
    }
    is_saved = memfile_set_stamp(&r->file, stamp, err, err_len) &&
               memfile_write_meta(&r->file, text, len, err, err_len);
    free(text);
    return is_saved;
}
