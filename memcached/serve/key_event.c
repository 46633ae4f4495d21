/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/key_event.h"

#include "serve/prefix.h"

static void
tell_get(const struct env *env, struct key key, enum store_status status,
         const struct item *item)
{
    struct watch_event event = {.kind = WATCH_ITEM_GET,
                                .status = (uint8_t)status,
                                .fd = env->client_fd,
                                .class_id = item != NULL ? item_class(item) : 0,
                                .size = item != NULL ? item_value_len(item) : 0};
    watch_push(env->log, &event, key.p, key.len);
}

void
key_event_get_listened(const struct env *env, struct key key, enum store_status status,
                       const struct item *item)
{
    if (watch_wants(env->log, WATCH_FETCHERS)) {
        tell_get(env, key, status, item);
    }
    if (watch_wants(env->log, WATCH_PREFIXES)) {
        prefixes_count(env->prefixes, (struct slice){key.p, key.len}, PREFIX_GET,
                       item != NULL);
    }
}

/* The store does not report what its operations found on their way, so for a watcher the
 * key is looked up once more. */
void
key_event_lookup_listened(const struct env *env, struct key key)
{
    static const struct store_look no_trace;
    struct store_seen seen;
    struct item *item = NULL;
    enum store_status status =
        store_look(env->store, key, &no_trace, env->now, &seen, &item);
    tell_get(env, key, status, item);
    if (item != NULL) {
        store_release(env->store, item);
    }
}

void
key_event_attempt_listened(const struct env *env, struct key key, bool is_delete)
{
    if (watch_wants(env->log, WATCH_PREFIXES)) {
        prefixes_count(env->prefixes, (struct slice){key.p, key.len},
                       is_delete ? PREFIX_DEL : PREFIX_SET, 0);
    }
}

/* ---- storing -------------------------------------------------------------------------- */

enum watch_cmd
key_event_cmd(enum store_mode mode)
{
    static const enum watch_cmd cmds[] = {
        [STORE_SET] = WATCH_CMD_SET,         [STORE_ADD] = WATCH_CMD_ADD,
        [STORE_REPLACE] = WATCH_CMD_REPLACE, [STORE_APPEND] = WATCH_CMD_APPEND,
        [STORE_PREPEND] = WATCH_CMD_PREPEND,
    };
    return cmds[mode];
}

void
key_event_put_listened(const struct env *env, enum watch_cmd cmd, const struct item *item,
                       struct key_event_put *put)
{
    struct key key = {item_key(item), item_key_len(item)};
    put->cmd = (uint8_t)cmd;
    put->class_id = item_class(item);
    put->size = item_value_len(item);
    put->exptime = item_expires(item);
    put->key_len = (uint8_t)key.len;
    memcpy(put->key, key.p, key.len);
    key_event_lookup(env, key);
}

static void
tell_stored(const struct env *env, struct key key, unsigned cmd, enum store_status status,
            const struct store_result *result)
{
    uint32_t exptime = result->exptime_after;
    struct watch_event event = {.kind = WATCH_ITEM_STORE,
                                .status = (uint8_t)status,
                                .cmd = (uint8_t)cmd,
                                .class_id = result->class_id,
                                .fd = env->client_fd,
                                .size = result->value_len,
                                .ttl = exptime > env->now ? exptime - env->now : 0};
    if (watch_wants(env->log, WATCH_MUTATIONS)) {
        watch_push(env->log, &event, key.p, key.len);
    }
}

void
key_event_outcome_listened(const struct env *env, const struct key_event_put *put,
                           enum store_status status, const struct store_result *result)
{
    struct store_result wanted = {
        .class_id = put->class_id, .value_len = put->size, .exptime_after = put->exptime};
    tell_stored(env, (struct key){put->key, put->key_len}, put->cmd, status,
                status == STORE_OK ? result : &wanted);
}

void
key_event_refused(const struct env *env, struct key key, enum watch_cmd cmd,
                  enum store_status status)
{
    static const struct store_result nothing;
    tell_stored(env, key, cmd, status, &nothing);
}

void
key_event_created(const struct env *env, struct key key,
                  const struct store_result *result)
{
    if (watch_wants(env->log, WATCH_FETCHERS)) {
        tell_get(env, key, STORE_MISS, NULL);
    }
    tell_stored(env, key, WATCH_CMD_ADD, STORE_OK, result);
}

void
key_event_deleted(const struct env *env, struct key key, bool is_meta,
                  const struct store_result *result)
{
    struct watch_event event = {.kind = WATCH_DELETED,
                                .cmd = is_meta ? WATCH_CMD_META_DELETE : WATCH_CMD_DELETE,
                                .class_id = result->class_id,
                                .fd = env->client_fd,
                                .size = result->value_len};
    if (watch_wants(env->log, WATCH_DELETIONS)) {
        watch_push(env->log, &event, key.p, key.len);
    }
}
