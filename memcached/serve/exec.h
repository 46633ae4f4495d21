/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Execution of parsed requests, one function a verb family. Private to serve/.
 */
#pragma once

#include "base/clock.h"
#include "serve/session.h"
#include "store/expiry.h"

static inline enum session_ran
exec_ran(bool has_room)
{
    return has_room ? RAN_DONE : RAN_NO_MEMORY;
}

static inline struct key
exec_key(struct slice word)
{
    return (struct key){word.p, word.len};
}

/* A time to live as the client wrote it. */
static inline uint32_t
exec_exptime(const struct env *env, int64_t wire)
{
    return expiry_from_wire(wire, env->now, clock_started());
}

/* The next stretch of a value and its CR LF, of the first `total` bytes. */
static inline size_t
exec_bytes(const struct item *item, struct item_place *place, size_t offset, size_t total,
           const char **p)
{
    size_t n = item_read(item, place, offset, p);
    return n < total - offset ? n : total - offset;
}

/* The first `total` bytes. */
static inline void
exec_copy(char *to, const struct item *item, size_t total)
{
    struct item_place place = {NULL, 0};
    for (size_t offset = 0; offset < total;) {
        const char *p;
        size_t n = exec_bytes(item, &place, offset, total, &p);
        memcpy(to + offset, p, n);
        offset += n;
    }
}

/* Each executes the session's request, or goes on with it. */
must_check enum session_ran exec_retrieve(struct session *s, const struct env *env,
                                          struct chain *out,
                                          const struct session_limits *limits);
/* First half of a store: takes memory for the value. DONE when it was refused. */
must_check enum session_ran exec_store_begin(struct session *s, const struct env *env,
                                             struct chain *out);
/* Second half: the body is complete. */
must_check enum session_ran exec_store_end(struct session *s, const struct env *env,
                                           struct chain *out);
must_check enum session_ran exec_arith(struct session *s, const struct env *env,
                                       struct chain *out);
must_check enum session_ran exec_touch(struct session *s, const struct env *env,
                                       struct chain *out);
must_check enum session_ran exec_delete(struct session *s, const struct env *env,
                                        struct chain *out);
must_check enum session_ran exec_sasl(struct session *s, const struct env *env,
                                      struct chain *out);
must_check enum session_ran exec_debugitem(struct session *s, const struct env *env,
                                           struct chain *out);
must_check enum session_ran exec_admin(struct session *s, const struct env *env,
                                       struct chain *out,
                                       const struct session_limits *limits);
/* mg, md, ma, me. */
must_check enum session_ran exec_meta(struct session *s, const struct env *env,
                                      struct chain *out,
                                      const struct session_limits *limits);
/* slabs, lru, lru_crawler. */
must_check enum session_ran exec_maint(struct session *s, const struct env *env,
                                       struct chain *out,
                                       const struct session_limits *limits);
/* A dump of the crawler that goes on. */
must_check enum session_ran exec_dump(struct session *s, const struct env *env,
                                      struct chain *out,
                                      const struct session_limits *limits);
/* A set without a watcher, whose value is here as a whole: its CR LF has been looked at. */
must_check enum reply exec_set(const struct env *env, const struct ascii_set *set,
                               const char *value, uint8_t owner);
must_check enum session_ran exec_touch_binary(const struct session *s,
                                              const struct env *env, struct chain *out);
/* Answers a meta command with this status and what needs no item, the flags k and O. */
must_check enum session_ran exec_meta_echo(const struct req *req, const struct env *env,
                                           struct chain *out, const char *status,
                                           struct slice key);
/* What the live log calls an ms. */
enum watch_cmd exec_meta_cmd(const struct req *req);
/* The end of an ms whose body is complete and well-formed; gives up item. */
must_check enum session_ran exec_meta_store(const struct session *s,
                                            const struct env *env, struct chain *out,
                                            struct item *item);
/* Begins a dump of these classes, or of the table. */
must_check enum session_ran exec_dump_begin(struct session *s, const struct env *env,
                                            struct chain *out,
                                            const struct store_walk_spec *ask,
                                            bool is_mg);
void exec_dump_end(struct session *s, const struct env *env);
/* Gives back what the client still holds. */
void exec_debug_end(struct session *s, const struct env *env);

/* Counts an item that a look-up of whatever kind found dead. */
static inline void
exec_count_gone(const struct env *env, enum store_status found)
{
    if (unlikely(found == STORE_GONE_EXPIRED)) {
        ctr_add(&env->ctr->get_expired, 1);
    } else if (unlikely(found == STORE_GONE_FLUSHED)) {
        ctr_add(&env->ctr->get_flushed, 1);
    }
}

/* Counts a request of arithmetic. */
void exec_count_sum(const struct env *env, bool increments, enum store_status status,
                    const struct store_result *result);

/* A binary client's key that a line of text can not hold. */
bool exec_has_binary_key(const struct req *req);

/* The answer to a request that is not executed: busy, or as if nothing were stored. */
must_check enum session_ran exec_refuse(const struct session *s, const struct env *env,
                                        struct chain *out, bool as_miss);

/* Writes a fixed reply in the client's protocol unless the request does not want it;
 * RAN_DONE or RAN_NO_MEMORY. */
must_check enum session_ran exec_reply(const struct session *s, const struct env *env,
                                       struct chain *out, enum reply reply);
/* The same for a mutation, of which the binary protocol returns the new CAS. */
must_check enum session_ran exec_reply_cas(const struct session *s, const struct env *env,
                                           struct chain *out, enum reply reply,
                                           uint64_t cas);
/* A binary reply with a body of its own. */
must_check enum session_ran exec_reply_body(const struct session *s,
                                            const struct env *env, struct chain *out,
                                            enum binary_status status, const char *body,
                                            size_t len);

/* Appends a value and its CR LF, copied or borrowed. Gives up item; false: no memory. */
must_check bool exec_put_value(const struct env *env, struct chain *out,
                               struct item *item);

/* store_commit under the rules of the profile. */
must_check enum store_status exec_commit(const struct env *env, struct item *item,
                                         const struct store_put *put,
                                         struct store_result *result);
/* Counts a store that compared; class_id as the store reported it. */
void exec_count_cas(const struct env *env, enum store_status status, uint8_t class_id);
