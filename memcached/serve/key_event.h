/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Reports what requests do to keys to the live log and to "stats detail". Every command
 * of every protocol calls these; without a watcher a call is one relaxed load.
 */
#pragma once

#include "serve/env.h"
#include "serve/watch.h"

/* A storage command on its way; the key's text is lost to the caller before the outcome is
 * known, so it is kept here. */
struct key_event_put {
    bool is_on;
    uint8_t cmd; /* enum watch_cmd */
    uint8_t class_id, key_len;
    uint32_t size;
    uint32_t exptime;
    char key[STORE_KEY_MAX];
};

/* ---- private -------------------------------------------------------------------------- */

void key_event_get_listened(const struct env *env, struct key key,
                            enum store_status status, const struct item *item);
void key_event_lookup_listened(const struct env *env, struct key key);
void key_event_attempt_listened(const struct env *env, struct key key, bool is_delete);
void key_event_put_listened(const struct env *env, enum watch_cmd cmd,
                            const struct item *item, struct key_event_put *put);
void key_event_outcome_listened(const struct env *env, const struct key_event_put *put,
                                enum store_status status,
                                const struct store_result *result);

/* What storing in this mode is called. */
enum watch_cmd key_event_cmd(enum store_mode mode);

/* What a set tells of. */
#define KEY_EVENTS_OF_SET (WATCH_FETCHERS | WATCH_MUTATIONS | WATCH_PREFIXES)

/* ---- for commands --------------------------------------------------------------------- */

/* A client wanted to read the key: get, gets, gat, gats, a meta get, a binary GET or GAT.
 * item is NULL on a miss. Once a key, after the store has answered. */
static inline void
key_event_get(const struct env *env, struct key key, enum store_status status,
              const struct item *item)
{
    if (watch_wants(env->log, WATCH_FETCHERS | WATCH_PREFIXES)) {
        key_event_get_listened(env, key, status, item);
    }
}

/* Any other operation looks the key up: arithmetic, touch, delete, a meta debug. Call it
 * before the operation. */
static inline void
key_event_lookup(const struct env *env, struct key key)
{
    if (watch_wants(env->log, WATCH_FETCHERS)) {
        key_event_lookup_listened(env, key);
    }
}

/* A storage command has come; once, when its key is known. */
static inline void
key_event_set(const struct env *env, struct key key)
{
    if (watch_wants(env->log, WATCH_PREFIXES)) {
        key_event_attempt_listened(env, key, false);
    }
}

/* A storage command was refused before its value came: TOO_LARGE or NO_MEMORY. */
void key_event_refused(const struct env *env, struct key key, enum watch_cmd cmd,
                       enum store_status status);

/* Before store_commit of the reserved item ... */
static inline void
key_event_put(const struct env *env, enum watch_cmd cmd, const struct item *item,
              struct key_event_put *put)
{
    put->is_on = watch_wants(env->log, WATCH_FETCHERS | WATCH_MUTATIONS);
    if (put->is_on) {
        key_event_put_listened(env, cmd, item, put);
    }
}

/* ... and after it. */
static inline void
key_event_outcome(const struct env *env, const struct key_event_put *put,
                  enum store_status status, const struct store_result *result)
{
    if (put->is_on) {
        key_event_outcome_listened(env, put, status, result);
    }
}

/* Arithmetic on a missing key has made an item. Upstream adds it by a second look-up. */
void key_event_created(const struct env *env, struct key key,
                       const struct store_result *result);

/* A delete command has come; before the store is asked. */
static inline void
key_event_delete(const struct env *env, struct key key)
{
    if (watch_wants(env->log, WATCH_FETCHERS | WATCH_PREFIXES)) {
        key_event_lookup(env, key);
        key_event_attempt_listened(env, key, true);
    }
}

/* An item was really deleted (not made stale, not emptied). */
void key_event_deleted(const struct env *env, struct key key, bool is_meta,
                       const struct store_result *result);
