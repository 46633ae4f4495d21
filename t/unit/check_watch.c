/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The live log: lines byte for byte, rings that drop and wrap, the order of events of many
 * threads, outboxes that skip.
 */
#include "serve/watch.h"

#include <pthread.h>

#include "check_main.h"

#define RING_BYTES 1024
#define THREADS 4
#define EVENTS 20000 /* of each thread */

static struct watch watch;
static unsigned wakes;

/* What was collected. */
static struct heard {
    struct text text;
    unsigned lines;
    nsec_t last;
    bool is_disordered;
} heard;

static void
count_wake(void *ctx)
{
    ++*(unsigned *)ctx;
}

static void
open_watch(bool is_long, size_t ring_bytes)
{
    struct watch_conf conf = {.threads = THREADS + 1,
                              .ring_bytes = ring_bytes,
                              .outbox_bytes = 1024,
                              .is_long = is_long,
                              .wake = count_wake,
                              .wake_ctx = &wakes};
    wakes = 0;
    ck_assert(watch_init(&watch, &conf));
}

static void
set_up(void)
{
    open_watch(true, RING_BYTES);
}

static void
tear_down(void)
{
    watch_fini(&watch);
    text_free(&heard.text);
}

/* ---- lines ---------------------------------------------------------------------------- */

static const char *
line_of(const struct watch_event *event, const char *text, bool is_long)
{
    static char line[WATCH_LINE_MAX + 1];
    struct watch_event e = *event;
    char *key = exact_copy(text, strlen(text));
    e.at = 2 * NSEC_PER_SEC + 1234567;
    e.text_len = (uint8_t)strlen(text);
    size_t len = watch_describe(&e, key, 7, 1000 * (int64_t)NSEC_PER_SEC, is_long, line);
    ck_assert_uint_lt(len, sizeof line);
    line[len] = '\0';
    free(key);
    return line;
}

static const struct {
    struct watch_event event;
    const char *text;
    const char *line;
    const char *more; /* that 1.6 says; NULL: the line is of 1.6 alone */
} lines[] = {
#define LINE(text, line, more, ...)                                                      \
    {                                                                                    \
        {__VA_ARGS__}, text, line, more                                                  \
    }
    LINE("foo", "item_get key=foo status=not_found clsid=0", " cfd=9 size=0",
         .kind = WATCH_ITEM_GET, .status = STORE_MISS, .fd = 9),
    LINE("a-b._~Z9", "item_get key=a-b._~Z9 status=found clsid=63", " cfd=9 size=5",
         .kind = WATCH_ITEM_GET, .status = STORE_OK, .class_id = 63, .fd = 9, .size = 5),
    LINE("%/\x80\xff", "item_get key=%25%2F%80%FF status=expired clsid=0",
         " cfd=0 size=0", .kind = WATCH_ITEM_GET, .status = STORE_GONE_EXPIRED),
    LINE("k", "item_get key=k status=flushed clsid=0", " cfd=0 size=0",
         .kind = WATCH_ITEM_GET, .status = STORE_GONE_FLUSHED),
    LINE("k", "item_store key=k status=stored cmd=set ttl=100 clsid=2", " cfd=30 size=99",
         .kind = WATCH_ITEM_STORE, .status = STORE_OK, .cmd = WATCH_CMD_SET, .ttl = 100,
         .class_id = 2, .fd = 30, .size = 99),
    LINE("k", "item_store key=k status=not_stored cmd=add ttl=0 clsid=0", " cfd=0 size=0",
         .kind = WATCH_ITEM_STORE, .status = STORE_NOT_STORED, .cmd = WATCH_CMD_ADD),
    LINE("k", "item_store key=k status=exists cmd=cas ttl=0 clsid=0", " cfd=0 size=0",
         .kind = WATCH_ITEM_STORE, .status = STORE_EXISTS, .cmd = WATCH_CMD_CAS),
    LINE("k", "item_store key=k status=not_found cmd=null ttl=0 clsid=0", " cfd=0 size=0",
         .kind = WATCH_ITEM_STORE, .status = STORE_MISS, .cmd = WATCH_CMD_NULL),
    LINE("k", "item_store key=k status=too_large cmd=append ttl=0 clsid=0",
         " cfd=0 size=0", .kind = WATCH_ITEM_STORE, .status = STORE_TOO_LARGE,
         .cmd = WATCH_CMD_APPEND),
    LINE("k", "item_store key=k status=no_memory cmd=prepend ttl=0 clsid=0",
         " cfd=0 size=0", .kind = WATCH_ITEM_STORE, .status = STORE_NO_MEMORY,
         .cmd = WATCH_CMD_PREPEND),
    LINE("k", "deleted key=k cmd=md clsid=1 size=3", NULL, .kind = WATCH_DELETED,
         .cmd = WATCH_CMD_META_DELETE, .class_id = 1, .size = 3),
    LINE("k", "deleted key=k cmd=delete clsid=1 size=3", NULL, .kind = WATCH_DELETED,
         .cmd = WATCH_CMD_DELETE, .class_id = 1, .size = 3),
    LINE("k", "eviction key=k fetch=no ttl=-1 la=3 clsid=5", " size=96",
         .kind = WATCH_EVICTION, .ttl = -1, .idle = 3, .class_id = 5, .size = 96),
    LINE("k", "eviction key=k fetch=yes ttl=9 la=0 clsid=5", " size=96",
         .kind = WATCH_EVICTION, .was_fetched = true, .ttl = 9, .class_id = 5,
         .size = 96),
    LINE("",
         "lru_crawler crawler=1 lru=cold low_mark=7 next_reclaims=8 since_run=65 "
         "next_run=5 elapsed=2 examined=90 reclaimed=30",
         "", .kind = WATCH_CRAWL, .class_id = 1, .list = STORE_LIST_COLD,
         .crawl = {90, 30, 7, 8, 2, 65, 5}),
    LINE("", "slab_move src=31 dst=0", " state=ok", .kind = WATCH_PAGE_MOVE,
         .class_id = 31, .to_class = 0),
    LINE("", "slab_move src=31 dst=5", " state=fail", .kind = WATCH_PAGE_MOVE,
         .class_id = 31, .to_class = 5, .has_failed = true),
    LINE("tcp:127.0.0.1:50000", "conn_new rip=127.0.0.1 rport=50000 transport=tcp cfd=12",
         NULL, .kind = WATCH_CONN_NEW, .fd = 12),
    LINE("tcp6:[fe80::1]:50000", "conn_new rip=fe80::1 rport=50000 transport=tcp cfd=12",
         NULL, .kind = WATCH_CONN_NEW, .fd = 12),
    LINE("udp:0.0.0.0:11211", "conn_new rip=0.0.0.0 rport=11211 transport=udp cfd=12",
         NULL, .kind = WATCH_CONN_NEW, .fd = 12),
    LINE("unix:/tmp/a:b",
         "conn_close rip=unix rport=0 transport=local reason=normal cfd=12", NULL,
         .kind = WATCH_CONN_CLOSE, .fd = 12, .status = WATCH_REASON_NORMAL),
    LINE("unknown",
         "conn_close rip=unix rport=0 transport=local reason=idle_timeout cfd=12", NULL,
         .kind = WATCH_CONN_CLOSE, .fd = 12, .status = WATCH_REASON_IDLE_TIMEOUT),
    LINE("tcp:1.2.3.4:5",
         "conn_close rip=1.2.3.4 rport=5 transport=tcp reason=error cfd=12", NULL,
         .kind = WATCH_CONN_CLOSE, .fd = 12, .status = WATCH_REASON_ERROR),
    LINE("tcp:1.2.3.4:5",
         "conn_close rip=1.2.3.4 rport=5 transport=tcp reason=shutdown cfd=12", NULL,
         .kind = WATCH_CONN_CLOSE, .fd = 12, .status = WATCH_REASON_SHUTDOWN),
};

FIXTURE(set_up, tear_down);

TEST_ROWS(test_line, lines, row->line)
{
    for (unsigned is_long = row->more == NULL; is_long < 2; is_long++) {
        char full[WATCH_LINE_MAX];
        /* microseconds are not padded */
        snprintf(full, sizeof full, "ts=1002.1234 gid=7 type=%s%s\n", row->line,
                 is_long && row->more != NULL ? row->more : "");
        ck_assert_str_eq(line_of(&row->event, row->text, is_long), full);
    }
}

/* All that can be wide is, and it fits. */
TEST(test_widest_lines)
{
    char key[STORE_KEY_MAX + 1];
    memset(key, '#', STORE_KEY_MAX);
    key[STORE_KEY_MAX] = '\0';
    for (int kind = WATCH_ITEM_GET; kind <= WATCH_PAGE_MOVE; kind++) {
        struct watch_event e = {.kind = (uint8_t)kind,
                                .status = STORE_GONE_EXPIRED,
                                .cmd = WATCH_CMD_REPLACE,
                                .class_id = UINT8_MAX,
                                .to_class = UINT8_MAX,
                                .fd = INT32_MIN,
                                .size = UINT32_MAX,
                                .idle = UINT32_MAX,
                                .ttl = INT64_MIN,
                                .has_failed = true,
                                .crawl = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                          UINT32_MAX, UINT32_MAX, UINT32_MAX}};
        const char *line = line_of(&e, key, true);
        const char *word = strstr(line, "key=");
        if (kind <= WATCH_EVICTION) {
            ck_assert_ptr_nonnull(word);
            ck_assert_uint_eq(strcspn(word, " "), 4 + 3 * STORE_KEY_MAX);
        }
    }
}

TEST(test_types)
{
    struct {
        const char *word;
        uint32_t in_14, in_16;
    } rows[] = {
        {"fetchers", WATCH_FETCHERS, WATCH_FETCHERS},
        {"mutations", WATCH_MUTATIONS, WATCH_MUTATIONS},
        {"evictions", WATCH_EVICTIONS, WATCH_EVICTIONS},
        {"sysevents", WATCH_SYSEVENTS, WATCH_SYSEVENTS},
        {"rawcmds", WATCH_RAWCMDS, WATCH_RAWCMDS},
        {"connevents", 0, WATCH_CONNEVENTS},
        {"deletions", 0, WATCH_DELETIONS},
        {"proxyreqs", 0, WATCH_PROXYREQS},
        {"fetcher", 0, 0},
        {"Fetchers", 0, 0},
        {"", 0, 0},
    };
    for (int i = 0; i < ROWS(rows); i++) {
        struct slice word = {rows[i].word, strlen(rows[i].word)};
        ck_assert_uint_eq(watch_type_of(word, false), rows[i].in_14);
        ck_assert_uint_eq(watch_type_of(word, true), rows[i].in_16);
    }
}

/* ---- rings ---------------------------------------------------------------------------- */

static void
hear(void *ctx, uint32_t type, nsec_t at, const char *line, size_t len)
{
    (void)ctx;
    expect(type == WATCH_FETCHERS && line[len - 1] == '\n');
    text_add(&heard.text, line, len);
    heard.is_disordered |= at < heard.last;
    heard.last = at;
    heard.lines++;
}

static void
push_get(struct watch_ring *ring, const char *key, size_t len)
{
    struct watch_event event = {.kind = WATCH_ITEM_GET, .status = STORE_MISS};
    watch_push(ring, &event, key, len);
}

TEST(test_a_ring_belongs_to_its_thread)
{
    struct watch_ring *ring = watch_ring(&watch);
    ck_assert_ptr_nonnull(ring);
    ck_assert_ptr_eq(watch_ring(&watch), ring);
}

TEST(test_masks)
{
    struct watch_ring *ring = watch_ring(&watch);
    ck_assert(!watch_wants(NULL, ~0u));
    ck_assert(!watch_wants(ring, ~0u));
    watch_set_types(&watch, WATCH_FETCHERS | WATCH_EVICTIONS);
    ck_assert(watch_wants(ring, WATCH_FETCHERS));
    ck_assert(!watch_wants(ring, WATCH_MUTATIONS | WATCH_PREFIXES));
    watch_set_prefixes(&watch, true);
    watch_set_types(&watch, 0);
    ck_assert(watch_wants(ring, WATCH_PREFIXES));
    ck_assert(!watch_wants(ring, WATCH_FETCHERS));
    watch_set_prefixes(&watch, false);
    ck_assert(!watch_wants(ring, ~0u));
}

/* Many rounds, so that events of all lengths lie across the end of the ring. */
TEST(test_a_ring_wraps)
{
    struct watch_ring *ring = watch_ring(&watch);
    char key[STORE_KEY_MAX];
    char want[WATCH_LINE_MAX];
    for (unsigned i = 1; i <= 2000; i++) {
        size_t len = 1 + i * 37 % STORE_KEY_MAX;
        heard.lines = 0;
        memset(key, 'a' + (int)(i % 26), sizeof key);
        push_get(ring, key, len);
        watch_collect(&watch, clock_now(), 0, hear, NULL);
        expect(heard.lines == 1);
        snprintf(want, sizeof want, " gid=%u type=item_get key=%.*s status=", i, (int)len,
                 key);
        expect(memmem(heard.text.p, heard.text.len, want, strlen(want)) != NULL);
        text_free(&heard.text);
    }
}

TEST(test_a_full_ring_drops)
{
    struct watch_ring *ring = watch_ring(&watch);
    struct watch_totals totals;
    for (unsigned i = 0; i < 100; i++) {
        push_get(ring, "k", 1);
    }
    ck_assert_uint_eq(wakes, 1); /* when it was half full, once */
    watch_totals(&watch, &totals);
    ck_assert_uint_eq(totals.written + totals.dropped, 100);
    ck_assert_uint_eq(totals.written, RING_BYTES / (sizeof(struct watch_event) + 8));
    watch_collect(&watch, clock_now(), 0, hear, NULL);
    ck_assert_uint_eq(heard.lines, totals.written);
    push_get(ring, "k", 1);
    watch_collect(&watch, clock_now(), 0, hear, NULL);
    ck_assert_uint_eq(heard.lines, totals.written + 1);
}

/* What came after `now` waits for the next time. */
TEST(test_collects_up_to_now)
{
    struct watch_ring *ring = watch_ring(&watch);
    nsec_t before = clock_now() - 1;
    push_get(ring, "k", 1);
    watch_collect(&watch, before, 0, hear, NULL);
    ck_assert_uint_eq(heard.lines, 0);
    watch_collect(&watch, clock_now(), 0, hear, NULL);
    ck_assert_uint_eq(heard.lines, 1);
}

TEST(test_store_events)
{
    struct store_event event = {.kind = STORE_EVENT_EVICTION, .key = {"k", 1}, .ttl = -1};
    watch_on_store_event(&watch, &event); /* nobody listens */
    watch_set_types(&watch, WATCH_SYSEVENTS);
    watch_on_store_event(&watch, &event); /* nor to this */
    watch_collect(&watch, clock_now(), 0, hear, NULL);
    ck_assert_uint_eq(heard.lines, 0);
    ck_assert_uint_eq(watch_type_of_kind(WATCH_EVICTION), WATCH_EVICTIONS);
    watch_set_types(&watch, WATCH_EVICTIONS);
    watch_on_store_event(&watch, &event);
    struct watch_totals totals;
    watch_totals(&watch, &totals);
    ck_assert_uint_eq(totals.written, 1);
}

static void *
tell_much(void *arg)
{
    struct watch_ring *ring = watch_ring(&watch);
    (void)arg;
    expect(ring != NULL);
    for (unsigned i = 0; i < EVENTS; i++) {
        char key[16];
        int len = snprintf(key, sizeof key, "%u", i);
        push_get(ring, key, (size_t)len);
    }
    return NULL;
}

/* Nothing is lost but what is counted, numbers ascend, and so do the times when nobody pushes
 * any more. */
TEST(test_many_threads)
{
    pthread_t threads[THREADS];
    struct watch_totals totals;
    tear_down();
    open_watch(true, 65536);
    watch.conf.wake = NULL;
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_create(&threads[i], NULL, tell_much, NULL));
    }
    do {
        watch_collect(&watch, clock_now(), 0, hear, NULL);
        watch_totals(&watch, &totals);
    } while (totals.written + totals.dropped < THREADS * EVENTS);
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_join(threads[i], NULL));
    }
    heard.last = 0;
    heard.is_disordered = false;
    watch_collect(&watch, clock_now(), 0, hear, NULL);
    ck_assert(!heard.is_disordered);
    watch_totals(&watch, &totals);
    ck_assert_uint_eq(heard.lines, totals.written);
    ck_assert_uint_eq(totals.written + totals.dropped, THREADS * EVENTS);
    unsigned long gid = 0;
    for (char *p = heard.text.p; heard.lines > 0; heard.lines--) {
        p = memmem(p, heard.text.len - (size_t)(p - heard.text.p), "gid=", 4);
        expect(p != NULL && strtoul(p + 4, NULL, 10) == ++gid);
        p += 4;
    }
}

TEST(test_places)
{
    for (unsigned i = 0; i < WATCH_WATCHERS_MAX; i++) {
        ck_assert(watch_enter(&watch));
    }
    ck_assert(!watch_enter(&watch));
    watch_leave(&watch);
    ck_assert(watch_enter(&watch));
}

/* ---- outboxes ------------------------------------------------------------------------- */

TEST(test_outbox_skips_and_says_so)
{
    SCOPED(watch_outbox_fini) struct watch_outbox o;
    ck_assert(watch_outbox_init(&o, 32));
    ck_assert(watch_outbox_put(&o, "0123456789abcdefghi\n", 20));
    ck_assert(!watch_outbox_put(&o, "0123456789abc\n", 14));
    ck_assert(!watch_outbox_put(&o, "0123456789abc\n", 14));
    ck_assert_uint_eq(o.skipped, 2);
    watch_outbox_consume(&o, 11);
    /* the line alone would fit, but not behind its notice */
    ck_assert(!watch_outbox_put(&o, "0123456789abc\n", 14));
    watch_outbox_consume(&o, 9);
    ck_assert(watch_outbox_put(&o, "0123456789abc\n", 14));
    ck_assert_uint_eq(o.skipped, 0);
    ck_assert_mem_eq(o.bytes + o.start, "skipped=3\n0123456789abc\n", o.len);
}

TEST(test_outbox_moves_to_the_front)
{
    SCOPED(watch_outbox_fini) struct watch_outbox o;
    ck_assert(watch_outbox_init(&o, 16));
    ck_assert(watch_outbox_put(&o, "abcdefg\n", 8));
    ck_assert(watch_outbox_put(&o, "hijk\n", 5));
    watch_outbox_consume(&o, 8);
    ck_assert(watch_outbox_put(&o, "lmnopqrst\n", 10));
    ck_assert_mem_eq(o.bytes + o.start, "hijk\nlmnopqrst\n", o.len);
    watch_outbox_consume(&o, o.len);
    ck_assert_uint_eq(o.start, 0);
}
