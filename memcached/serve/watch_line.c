/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The lines of the live log.
 */
#include <inttypes.h>

#include "base/phrase.h"
#include "base/uri.h"
#include "serve/watch.h"

static const struct {
    const char *name;
    uint32_t type;
} kinds[] = {
    [WATCH_ITEM_GET] = {"item_get", WATCH_FETCHERS},
    [WATCH_ITEM_STORE] = {"item_store", WATCH_MUTATIONS},
    [WATCH_DELETED] = {"deleted", WATCH_DELETIONS},
    [WATCH_EVICTION] = {"eviction", WATCH_EVICTIONS},
    [WATCH_CRAWL] = {"lru_crawler", WATCH_SYSEVENTS},
    [WATCH_PAGE_MOVE] = {"slab_move", WATCH_SYSEVENTS},
    [WATCH_CONN_NEW] = {"conn_new", WATCH_CONNEVENTS},
    [WATCH_CONN_CLOSE] = {"conn_close", WATCH_CONNEVENTS},
};

static const char *const cmds[] = {
    [WATCH_CMD_NULL] = "null",      [WATCH_CMD_ADD] = "add",
    [WATCH_CMD_SET] = "set",        [WATCH_CMD_REPLACE] = "replace",
    [WATCH_CMD_APPEND] = "append",  [WATCH_CMD_PREPEND] = "prepend",
    [WATCH_CMD_CAS] = "cas",        [WATCH_CMD_DELETE] = "delete",
    [WATCH_CMD_META_DELETE] = "md",
};

/* Of gets, else not_found, and of stores, else not_stored; by enum store_status. */
static const char *const gets[] = {
    [STORE_OK] = "found",
    [STORE_GONE_EXPIRED] = "expired",
    [STORE_GONE_FLUSHED] = "flushed",
    [STORE_BUSY] = NULL,
};

static const char *const stores[] = {
    [STORE_OK] = "stored",           [STORE_EXISTS] = "exists",
    [STORE_MISS] = "not_found",      [STORE_TOO_LARGE] = "too_large",
    [STORE_NO_MEMORY] = "no_memory", [STORE_BUSY] = NULL,
};

static const char *const reasons[] = {
    [WATCH_REASON_ERROR] = "error",
    [WATCH_REASON_NORMAL] = "normal",
    [WATCH_REASON_IDLE_TIMEOUT] = "idle_timeout",
    [WATCH_REASON_SHUTDOWN] = "shutdown",
};

static const char *const lists[STORE_LISTS] = {
    [STORE_LIST_HOT] = "hot",
    [STORE_LIST_WARM] = "warm",
    [STORE_LIST_COLD] = "cold",
    [STORE_LIST_TEMP] = "temp",
};

uint32_t
watch_type_of_kind(enum watch_kind kind)
{
    return kinds[kind].type;
}

/* ---- pieces --------------------------------------------------------------------------- */

/* "tcp:1.2.3.4:5", "tcp6:[::1]:5", "udp:...", "unix:..." as "rip= rport= transport=". */
static void
put_peer(struct phrase *l, const char *text, int len)
{
    const char *colon = memchr(text, ':', (size_t)len);
    const char *port = memrchr(text, ':', (size_t)len);
    if (colon == NULL || port == colon || strncmp(text, "unix:", 5) == 0) {
        phrase_add(l, " rip=unix rport=0 transport=local");
        return;
    }
    const char *ip = colon + 1;
    const char *ip_end = port;
    if (*ip == '[' && ip_end[-1] == ']') {
        ip++;
        ip_end--;
    }
    phrase_add(l, " rip=%.*s rport=%.*s transport=%.3s", (int)(ip_end - ip), ip,
               (int)(text + len - port - 1), port + 1, text);
}

/* ---- kinds ---------------------------------------------------------------------------- */

static void
put_get(struct phrase *l, const struct watch_event *e, bool is_long)
{
    const char *status = gets[e->status] != NULL ? gets[e->status] : "not_found";
    phrase_add(l, " status=%s clsid=%u", status, e->class_id);
    if (is_long) {
        phrase_add(l, " cfd=%d size=%u", e->fd, e->size);
    }
}

static void
put_store(struct phrase *l, const struct watch_event *e, bool is_long)
{
    const char *status = stores[e->status] != NULL ? stores[e->status] : "not_stored";
    phrase_add(l, " status=%s cmd=%s ttl=%" PRIi64 " clsid=%u", status, cmds[e->cmd],
               e->ttl, e->class_id);
    if (is_long) {
        phrase_add(l, " cfd=%d size=%u", e->fd, e->size);
    }
}

static void
put_eviction(struct phrase *l, const struct watch_event *e, bool is_long)
{
    phrase_add(l, " fetch=%s ttl=%" PRIi64 " la=%u clsid=%u",
               e->was_fetched ? "yes" : "no", e->ttl, e->idle, e->class_id);
    if (is_long) {
        phrase_add(l, " size=%u", e->size);
    }
}

static void
put_crawl(struct phrase *l, const struct watch_event *e)
{
    const struct store_crawl *c = &e->crawl;
    phrase_add(l,
               " crawler=%u lru=%s low_mark=%" PRIu64 " next_reclaims=%" PRIu64
               " since_run=%u next_run=%u elapsed=%u examined=%" PRIu64
               " reclaimed=%" PRIu64,
               e->class_id, lists[e->list], c->low_mark, c->next_reclaims, c->since_run,
               c->next_run, c->elapsed, c->examined, c->reclaimed);
}

static void
put_move(struct phrase *l, const struct watch_event *e, bool is_long)
{
    phrase_add(l, " src=%u dst=%u", e->class_id, e->to_class);
    if (is_long) {
        phrase_add(l, " state=%s", e->has_failed ? "fail" : "ok");
    }
}

static void
put_fields(struct phrase *l, const struct watch_event *e, const char *text, bool is_long)
{
    switch ((enum watch_kind)e->kind) {
    case WATCH_ITEM_GET:
        put_get(l, e, is_long);
        break;
    case WATCH_ITEM_STORE:
        put_store(l, e, is_long);
        break;
    case WATCH_DELETED:
        phrase_add(l, " cmd=%s clsid=%u size=%u", cmds[e->cmd], e->class_id, e->size);
        break;
    case WATCH_EVICTION:
        put_eviction(l, e, is_long);
        break;
    case WATCH_CRAWL:
        put_crawl(l, e);
        break;
    case WATCH_PAGE_MOVE:
        put_move(l, e, is_long);
        break;
    case WATCH_CONN_NEW:
        put_peer(l, text, e->text_len);
        phrase_add(l, " cfd=%d", e->fd);
        break;
    case WATCH_CONN_CLOSE:
        put_peer(l, text, e->text_len);
        phrase_add(l, " reason=%s cfd=%d", reasons[e->status], e->fd);
        break;
    }
}

size_t
watch_describe(const struct watch_event *event, const char *text, uint64_t gid,
               int64_t wall_offset_ns, bool is_long, char *line)
{
    struct phrase l = {line, WATCH_LINE_MAX, 0};
    uint64_t us = ((uint64_t)((int64_t)event->at + wall_offset_ns)) / NSEC_PER_USEC;
    phrase_add(&l, "ts=%" PRIu64 ".%" PRIu64 " gid=%" PRIu64 " type=%s",
               us / (NSEC_PER_SEC / NSEC_PER_USEC), us % (NSEC_PER_SEC / NSEC_PER_USEC),
               gid, kinds[event->kind].name);
    if (event->kind <= WATCH_EVICTION) {
        phrase_add(&l, " key=");
        must(URI_ENCODED_MAX((size_t)event->text_len) < l.size - l.len);
        l.len += uri_encode(l.to + l.len, text, event->text_len);
    }
    put_fields(&l, event, text, is_long);
    phrase_add(&l, "\n");
    return l.len;
}
