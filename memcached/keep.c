/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "keep.h"

#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "store/restart.h"
#include "store/store.h"

#define SENTENCE 512

static bool
fail(const char *why)
{
    fprintf(stderr, "memcached: %s\n", why);
    return false;
}

bool
keep_open(struct keep *k, const char *path, struct store_conf *conf)
{
    char err[SENTENCE];
    if (path == NULL) {
        return true;
    }
    /* A limit on the size of files is an error to report, not the end. */
    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    switch (restart_open(&k->file, path, conf, err, sizeof err)) {
    case RESTART_FAILED:
        return fail(err);
    case RESTART_NEW:
        log_write(LOG_INFO, "memcached: there are no items in %s", path);
        break;
    case RESTART_DISCARDED:
        log_write(LOG_WARNING, "memcached: warning: %s", err);
        break;
    case RESTART_FOUND:
        k->has_items = true;
        break;
    }
    return true;
}

enum keep_status
keep_load(struct keep *k, struct store *store, struct store_conf *conf)
{
    char err[SENTENCE];
    if (!k->has_items) {
        return KEEP_DONE;
    }
    struct restart_times times = restart_times(k->file);
    /* Time goes on by what passed since the stop. The wall clock of the start may have been set
     * since then: that moves no expiry time while a process runs, nor does it now. */
    clock_continue(times.stopped - times.now, times.now);
    k->last_gid = times.last_gid;
    uint32_t now = clock_rel(clock_now());
    switch (restart_load(k->file, store, conf, now, err, sizeof err)) {
    case RESTART_FOUND:
        break;
    case RESTART_DISCARDED:
        k->has_items = false;
        log_write(LOG_WARNING, "memcached: warning: %s", err);
        return KEEP_LOST;
    default:
        (void)fail(err);
        return KEEP_FAILED;
    }
    struct store_totals totals;
    store_totals(store, &totals);
    log_write(LOG_INFO, "memcached: %" PRIu64 " items are back", totals.curr_items);
    return KEEP_DONE;
}

bool
keep_save(struct keep *k, struct store *store, uint64_t last_gid)
{
    char err[SENTENCE];
    if (k->file == NULL) {
        return true;
    }
    struct restart_times times = {.started = clock_started(),
                                  .stopped = clock_wall(),
                                  .now = clock_rel(clock_now()),
                                  .last_gid = last_gid};
    uint64_t stamp = rng_seed();
    return restart_save(k->file, store, &times, stamp != 0 ? stamp : 1, err,
                        sizeof err) ||
           fail(err);
}

void
keep_close(struct keep *k)
{
    restart_close(&k->file);
}
