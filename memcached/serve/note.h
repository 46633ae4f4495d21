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
 * known, so the note keeps it. */
struct note_put {
    bool is_on;
    uint8_t cmd; /* enum watch_cmd */
    uint8_t class_id, key_len;
    uint32_t size;
    uint32_t exptime;
    char key[STORE_KEY_MAX];
};

/* ---- private -------------------------------------------------------------------------- */

void note_get_listened(const struct env *env, struct key key, enum store_status status,
                       const struct item *item);
void note_lookup_listened(const struct env *env, struct key key);
void note_attempt_listened(const struct env *env, struct key key, bool is_delete);
void note_put_listened(const struct env *env, enum watch_cmd cmd, const struct item *item,
                       struct note_put *note);
void note_outcome_listened(const struct env *env, const struct note_put *note,
                           enum store_status status, const struct store_result *result);
void note_refused_listened(const struct env *env, struct key key, enum watch_cmd cmd,
                           enum store_status status);
void note_created_listened(const struct env *env, struct key key,
                           const struct store_result *result);
void note_deleted_listened(const struct env *env, struct key key, bool is_meta,
                           const struct store_result *result);

/* What storing in this mode is called. */
enum watch_cmd note_cmd(enum store_mode mode);

/* ---- for commands --------------------------------------------------------------------- */

/* A client wanted to read the key: get, gets, gat, gats, a meta get, a binary GET or GAT.
 * item is NULL on a miss. Once a key, after the store has answered. */
static inline void
note_get(const struct env *env, struct key key, enum store_status status,
         const struct item *item)
{
    if (watch_wants(env->log, WATCH_FETCHERS | WATCH_PREFIXES)) {
        note_get_listened(env, key, status, item);
    }
}

/* Any other operation looks the key up: arithmetic, touch, delete, a meta debug. Call it
 * before the operation. */
static inline void
note_lookup(const struct env *env, struct key key)
{
    if (watch_wants(env->log, WATCH_FETCHERS)) {
        note_lookup_listened(env, key);
    }
}

/* A storage command has come; once, when its key is known. */
static inline void
note_set(const struct env *env, struct key key)
{
    if (watch_wants(env->log, WATCH_PREFIXES)) {
        note_attempt_listened(env, key, false);
    }
}

/* A storage command was refused before its value came: TOO_LARGE or NO_MEMORY. */
static inline void
note_refused(const struct env *env, struct key key, enum watch_cmd cmd,
             enum store_status status)
{
    if (watch_wants(env->log, WATCH_MUTATIONS)) {
        note_refused_listened(env, key, cmd, status);
    }
}

/* Before store_commit of the reserved item ... */
static inline void
note_put(const struct env *env, enum watch_cmd cmd, const struct item *item,
         struct note_put *note)
{
    note->is_on = watch_wants(env->log, WATCH_FETCHERS | WATCH_MUTATIONS);
    if (note->is_on) {
        note_put_listened(env, cmd, item, note);
    }
}

/* ... and after it. */
static inline void
note_outcome(const struct env *env, const struct note_put *note, enum store_status status,
             const struct store_result *result)
{
    if (note->is_on) {
        note_outcome_listened(env, note, status, result);
    }
}

/* Arithmetic on a missing key has made an item. */
static inline void
note_created(const struct env *env, struct key key, const struct store_result *result)
{
    if (watch_wants(env->log, WATCH_MUTATIONS)) {
        note_created_listened(env, key, result);
    }
}

/* A delete command has come; before the store is asked. */
static inline void
note_delete(const struct env *env, struct key key)
{
    if (watch_wants(env->log, WATCH_FETCHERS | WATCH_PREFIXES)) {
        note_lookup(env, key);
        note_attempt_listened(env, key, true);
    }
}

/* An item was really deleted (not made stale, not emptied). */
static inline void
note_deleted(const struct env *env, struct key key, bool is_meta,
             const struct store_result *result)
{
    if (watch_wants(env->log, WATCH_DELETIONS)) {
        note_deleted_listened(env, key, is_meta, result);
    }
}
