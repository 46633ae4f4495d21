/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The live log, without its sockets. Every thread that reports events owns a ring and
 * drops what does not fit: no thread waits for a watcher. One collector thread takes the
 * events out of all rings in the order of their times, numbers them and makes lines of
 * them; each watcher has a bounded buffer of lines and skips what does not fit.
 *
 *   worker -- push --> ring --.
 *   worker -- push --> ring ---+-- collect --> line --> outbox of each watcher --> socket
 *   background -- push --> ring -'
 *
 * While no client watches a type, an event of it costs one relaxed load: watch_wants.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"
#include "proto/req.h"
#include "store/store.h"

#define WATCH_WATCHERS_MAX 20
#define WATCH_TEXT_MAX 255 /* of a key or a peer's address in an event */
#define WATCH_LINE_MAX                                                                   \
    1280 /* such a text, each byte as %XX, and all fields at their widest */

enum watch_index {
#define WATCH(id, word, in_16_only) WATCH_INDEX_##id,
#include "serve/watch.def"
#undef WATCH
    WATCH_TYPES
};

/* Bits of the types, and one for statistics by prefix, so that a request looks only once. */
enum watch_type {
#define WATCH(id, word, in_16_only) WATCH_##id = 1 << WATCH_INDEX_##id,
#include "serve/watch.def"
#undef WATCH
    WATCH_PREFIXES = 1 << WATCH_TYPES,
};

enum watch_kind {
    WATCH_ITEM_GET,
    WATCH_ITEM_STORE,
    WATCH_DELETED,
    WATCH_EVICTION,
    WATCH_CRAWL,
    WATCH_PAGE_MOVE,
    WATCH_CONN_NEW,
    WATCH_CONN_CLOSE,
};

/* What a storage command is called. */
enum watch_cmd {
    WATCH_CMD_NULL,
    WATCH_CMD_ADD,
    WATCH_CMD_SET,
    WATCH_CMD_REPLACE,
    WATCH_CMD_APPEND,
    WATCH_CMD_PREPEND,
    WATCH_CMD_CAS,
    WATCH_CMD_DELETE, /* of WATCH_DELETED, as the next */
    WATCH_CMD_META_DELETE,
};

enum watch_reason {
    WATCH_REASON_ERROR,
    WATCH_REASON_NORMAL,
    WATCH_REASON_IDLE_TIMEOUT,
    WATCH_REASON_SHUTDOWN,
};

/* One event as it lies in a ring; its text (a key, or the peer of a connection as "stats
 * conns" shows it) follows. */
struct watch_event {
    nsec_t at;    /* set by watch_push */
    uint32_t len; /* of the event and its text, set by watch_push */
    uint8_t kind; /* enum watch_kind */
    uint8_t text_len;
    uint8_t
        status;  /* ITEM_GET, ITEM_STORE: enum store_status; CONN_CLOSE: watch_reason */
    uint8_t cmd; /* enum watch_cmd */
    uint8_t class_id;
    uint8_t to_class; /* PAGE_MOVE */
    uint8_t list;     /* CRAWL: enum store_list */
    bool was_fetched; /* EVICTION */
    bool has_failed;  /* PAGE_MOVE */
    int32_t fd;
    uint32_t size; /* of the value */
    uint32_t idle;
    int64_t ttl;              /* seconds left */
    struct store_crawl crawl; /* CRAWL */
};

struct watch;

/* Owned by one thread, which pushes; the collector takes. Many threads may set the mask. */
struct watch_ring {
    _Atomic uint32_t mask; /* types that are watched */
    struct watch *watch;
    char *bytes; /* NULL: no memory, everything is dropped */
    size_t capacity;
    ctr_t written, dropped;
    _Alignas(64) _Atomic uint64_t head; /* bytes ever pushed; release: publishes them */
    _Atomic bool has_woken;             /* the collector knows that the ring fills */
    _Alignas(64) _Atomic uint64_t tail; /* bytes ever taken; release: gives them back */
};

struct watch_conf {
    unsigned threads;        /* that own a ring */
    size_t ring_bytes;       /* worker_logbuf_size */
    size_t outbox_bytes;     /* watcher_logbuf_size */
    bool is_long;            /* rules->log_is_long */
    uint64_t last_gid;       /* events are numbered from the next one on */
    void (*wake)(void *ctx); /* any thread: a ring is half full. NULL */
    void *wake_ctx;
    const pthread_mutexattr_t *lock_attr; /* NULL: default */
};

struct watch {
    struct watch_conf conf;
    struct watch_ring *rings;  /* conf.threads of them */
    _Atomic unsigned opened;   /* rings that have an owner */
    pthread_mutex_t mask_lock; /* one change of the masks at a time */
    _Atomic uint32_t mask;     /* what each ring's mask is, too */
    _Atomic unsigned watchers; /* at most WATCH_WATCHERS_MAX */
    _Atomic uint64_t homeless; /* dropped by threads without a ring */
    ctr_t skipped, sent;       /* lines; the collector counts */
    uint64_t gid;              /* of the last event; the collector's */
};

/* False: no memory. */
must_check bool watch_init(struct watch *w, const struct watch_conf *conf);
/* No other thread may be inside. */
void watch_fini(struct watch *w);

/* The bit of a type's word, 0 when there is none such. */
uint32_t watch_type_of(struct slice word, bool is_long);

/* ---- threads that report events ---------------------------------------------------------- */

/* The calling thread's ring, made its own at the first call. NULL: all are taken. */
struct watch_ring *watch_ring(struct watch *w);

/* One relaxed load. ring may be NULL: no watcher. */
static inline bool
watch_wants(const struct watch_ring *ring, uint32_t types)
{
    return ring != NULL &&
           (atomic_load_explicit(&ring->mask, memory_order_relaxed) & types) != 0;
}

/* Appends an event to the calling thread's ring, or drops and counts it. */
void watch_push(struct watch_ring *ring, const struct watch_event *event,
                const char *text, size_t text_len);
/* One of a connection, if these are watched. */
void watch_push_conn(struct watch_ring *ring, enum watch_kind kind,
                     enum watch_reason reason, int fd, const char *addr);

/* store_conf.on_event; ctx is the struct watch. Any thread. */
void watch_on_store_event(void *ctx, const struct store_event *event);

/* Whether requests count in the statistics by prefix. Any thread. */
void watch_set_prefixes(struct watch *w, bool is_on);

/* Takes one of the places for watchers. False: all are taken. */
must_check bool watch_enter(struct watch *w);
void watch_leave(struct watch *w);

/* ---- the collector --------------------------------------------------------------------- */

/* What the watchers together want to hear of. */
void watch_set_types(struct watch *w, uint32_t types);

/* A line of the given type, for watchers that were there at its time. */
typedef void watch_deliver(void *ctx, uint32_t type, nsec_t at, const char *line,
                           size_t len);

/* Takes the events up to `now` out of the rings; wall_offset_ns makes times of day of their
 * times. Takes no more than the rings hold. */
void watch_collect(struct watch *w, nsec_t now, int64_t wall_offset_ns,
                   watch_deliver *deliver, void *ctx);

/* "ts=... gid=... type=... ...\n" into WATCH_LINE_MAX bytes; returns the length. */
size_t watch_describe(const struct watch_event *event, const char *text, uint64_t gid,
                      int64_t wall_offset_ns, bool is_long, char *line);
/* The type that an event belongs to. */
uint32_t watch_type_of_kind(enum watch_kind kind);

/* ---- a watcher's lines ----------------------------------------------------------------- */

struct watch_outbox {
    char *bytes;
    size_t capacity, start, len; /* what waits is bytes[start .. start + len) */
    uint64_t skipped;            /* lines since the last one that fitted */
};

/* False: no memory. */
must_check bool watch_outbox_init(struct watch_outbox *o, size_t capacity);
void watch_outbox_fini(struct watch_outbox *o);
/* Appends a line, preceded by a line that counts what was skipped before it. False: it does
 * not fit and is skipped. */
bool watch_outbox_put(struct watch_outbox *o, const char *line, size_t len);
/* n bytes from the front have been sent. */
void watch_outbox_consume(struct watch_outbox *o, size_t n);

/* ---- statistics ------------------------------------------------------------------------ */

struct watch_totals {
    uint64_t dropped, written, skipped, sent;
    unsigned watchers;
};

void watch_totals(const struct watch *w, struct watch_totals *out);
