/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/watch.h"

#include "base/changes.h"
#include "base/num.h"

#define EVENT_ALIGN 8

/* The calling thread's ring: events of the store come without their worker. */
static _Thread_local struct watch_ring *own_ring;

/* ---- life ----------------------------------------------------------------------------- */

bool
watch_init(struct watch *w, const struct watch_conf *conf)
{
    *w = (struct watch){.conf = *conf, .gid = conf->last_gid};
    size_t bytes = conf->threads * sizeof *w->rings;
    w->rings = aligned_alloc(_Alignof(struct watch_ring), bytes);
    if (w->rings == NULL) {
        return false;
    }
    memset(w->rings, 0, bytes);
    PTHREAD_OK(pthread_mutex_init(&w->mask_lock, conf->lock_attr));
    for (unsigned i = 0; i < conf->threads; i++) {
        w->rings[i].watch = w;
    }
    return true;
}

void
watch_fini(struct watch *w)
{
    if (own_ring != NULL && own_ring->watch == w) {
        own_ring = NULL;
    }
    for (unsigned i = 0; w->rings != NULL && i < w->conf.threads; i++) {
        free(w->rings[i].bytes);
    }
    if (w->rings != NULL) {
        PTHREAD_OK(pthread_mutex_destroy(&w->mask_lock));
    }
    free(w->rings);
    w->rings = NULL;
}

static unsigned
ring_count(const struct watch *w)
{
    unsigned opened = atomic_load_explicit(&w->opened, memory_order_acquire);
    return opened < w->conf.threads ? opened : w->conf.threads;
}

/* ---- types ---------------------------------------------------------------------------- */

uint32_t
watch_type_of(struct slice word, bool is_long)
{
#define WATCH(id, text, in_16_only)                                                      \
    if (req_word_is(word, text) && (is_long || !(in_16_only))) {                         \
        return WATCH_##id;                                                               \
    }
#include "serve/watch.def"
#undef WATCH
    return 0;
}

/* Replaces the bits of `which` in the mask of all rings, whether they have an owner or not. */
static void
set_mask(struct watch *w, uint32_t which, uint32_t types)
{
    PTHREAD_OK(pthread_mutex_lock(&w->mask_lock));
    uint32_t mask = atomic_load_explicit(&w->mask, memory_order_relaxed);
    mask = (mask & ~which) | (types & which);
    atomic_store_explicit(&w->mask, mask, memory_order_relaxed);
    for (unsigned i = 0; i < w->conf.threads; i++) {
        atomic_store_explicit(&w->rings[i].mask, mask, memory_order_relaxed);
    }
    changes_note();
    PTHREAD_OK(pthread_mutex_unlock(&w->mask_lock));
}

void
watch_set_types(struct watch *w, uint32_t types)
{
    set_mask(w, ~(uint32_t)WATCH_PREFIXES, types);
}

void
watch_set_prefixes(struct watch *w, bool is_on)
{
    set_mask(w, WATCH_PREFIXES, is_on ? WATCH_PREFIXES : 0);
}

bool
watch_enter(struct watch *w)
{
    unsigned watchers = atomic_load_explicit(&w->watchers, memory_order_relaxed);
    do {
        if (watchers == WATCH_WATCHERS_MAX) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&w->watchers, &watchers, watchers + 1,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void
watch_leave(struct watch *w)
{
    atomic_fetch_sub_explicit(&w->watchers, 1, memory_order_relaxed);
}

/* ---- rings ---------------------------------------------------------------------------- */

struct watch_ring *
watch_ring(struct watch *w)
{
    if (own_ring != NULL && own_ring->watch == w) {
        return own_ring;
    }
    if (atomic_load_explicit(&w->opened, memory_order_relaxed) >= w->conf.threads) {
        return NULL;
    }
    unsigned index = atomic_fetch_add_explicit(&w->opened, 1, memory_order_acq_rel);
    if (index >= w->conf.threads) {
        return NULL;
    }
    struct watch_ring *ring = &w->rings[index];
    ring->capacity = w->conf.ring_bytes / EVENT_ALIGN * EVENT_ALIGN;
    ring->bytes = malloc(ring->capacity);
    own_ring = ring;
    return ring;
}

static void
copy_in(struct watch_ring *ring, uint64_t at, const void *p, size_t n)
{
    size_t offset = (size_t)(at % ring->capacity);
    size_t first = n < ring->capacity - offset ? n : ring->capacity - offset;
    memcpy(ring->bytes + offset, p, first);
    memcpy(ring->bytes, (const char *)p + first, n - first);
}

static void
copy_out(const struct watch_ring *ring, uint64_t at, void *p, size_t n)
{
    size_t offset = (size_t)(at % ring->capacity);
    size_t first = n < ring->capacity - offset ? n : ring->capacity - offset;
    memcpy(p, ring->bytes + offset, first);
    memcpy((char *)p + first, ring->bytes, n - first);
}

/* A ring that is half full does not wait for the collector's next look. */
static void
wake_collector(struct watch_ring *ring, uint64_t used)
{
    const struct watch_conf *conf = &ring->watch->conf;
    if (used > ring->capacity / 2 && conf->wake != NULL &&
        !atomic_load_explicit(&ring->has_woken, memory_order_relaxed)) {
        atomic_store_explicit(&ring->has_woken, true, memory_order_relaxed);
        conf->wake(conf->wake_ctx);
    }
}

void
watch_push(struct watch_ring *ring, const struct watch_event *event, const char *text,
           size_t text_len)
{
    must(text_len <= WATCH_TEXT_MAX);
    size_t padded = (sizeof *event + text_len + EVENT_ALIGN - 1) & ~(EVENT_ALIGN - 1ul);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (ring->bytes == NULL || padded > ring->capacity - (head - tail)) {
        ctr_add(&ring->dropped, 1);
        return;
    }
    struct watch_event copy = *event;
    copy.at = clock_now();
    copy.len = (uint32_t)padded;
    copy.text_len = (uint8_t)text_len;
    copy_in(ring, head, &copy, sizeof copy);
    if (text_len > 0) { /* else there may be no text at all */
        copy_in(ring, head + sizeof copy, text, text_len);
    }
    atomic_store_explicit(&ring->head, head + padded, memory_order_release);
    ctr_add(&ring->written, 1);
    wake_collector(ring, head + padded - tail);
}

void
watch_push_conn(struct watch_ring *ring, enum watch_kind kind, enum watch_reason reason,
                int fd, const char *addr)
{
    struct watch_event event = {
        .kind = (uint8_t)kind, .status = (uint8_t)reason, .fd = fd};
    if (watch_wants(ring, WATCH_CONNEVENTS)) {
        watch_push(ring, &event, addr, strlen(addr));
    }
}

void
watch_on_store_event(void *ctx, const struct store_event *event)
{
    struct watch *w = ctx;
    struct watch_event out = {.class_id = event->class_id};
    switch (event->kind) {
    case STORE_EVENT_EVICTION:
        out.kind = WATCH_EVICTION;
        out.was_fetched = event->was_fetched;
        out.ttl = event->ttl;
        out.idle = event->idle;
        out.size = event->value_len;
        break;
    case STORE_EVENT_PAGE_MOVE:
        out.kind = WATCH_PAGE_MOVE;
        out.to_class = event->to_class;
        out.has_failed = event->has_failed;
        break;
    case STORE_EVENT_CRAWL:
        out.kind = WATCH_CRAWL;
        out.list = (uint8_t)event->list;
        out.crawl = event->crawl;
        break;
    }
    uint32_t type = watch_type_of_kind((enum watch_kind)out.kind);
    if ((atomic_load_explicit(&w->mask, memory_order_relaxed) & type) == 0) {
        return;
    }
    struct watch_ring *ring = watch_ring(w);
    if (ring == NULL) {
        atomic_fetch_add_explicit(&w->homeless, 1, memory_order_relaxed);
        return;
    }
    watch_push(ring, &out, event->key.p, event->key.len);
}

/* ---- the collector -------------------------------------------------------------------- */

/* The first event of a ring, when there is one up to `now`. */
static bool
peek_ring(const struct watch_ring *ring, uint64_t end, uint64_t at, nsec_t now,
          struct watch_event *event)
{
    if (at == end) {
        return false;
    }
    copy_out(ring, at, event, sizeof *event);
    return event->at <= now;
}

/* The ring whose first event is the oldest; NULL when nothing is left. An event that came
 * before another one in the eyes of some client has the earlier time, and has been pushed
 * when `now` was read; so the order of times never shows an effect before its cause. */
static struct watch_ring *
oldest_ring(struct watch *w, unsigned rings, nsec_t now, struct watch_event *event)
{
    struct watch_ring *oldest = NULL;
    for (unsigned i = 0; i < rings; i++) {
        struct watch_ring *ring = &w->rings[i];
        struct watch_event first;
        uint64_t end = atomic_load_explicit(&ring->head, memory_order_acquire);
        uint64_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        if (peek_ring(ring, end, at, now, &first) &&
            (oldest == NULL || first.at < event->at)) {
            oldest = ring;
            *event = first;
        }
    }
    return oldest;
}

void
watch_collect(struct watch *w, nsec_t now, int64_t wall_offset_ns, watch_deliver *deliver,
              void *ctx)
{
    unsigned rings = ring_count(w);
    for (unsigned i = 0; i < rings; i++) {
        atomic_store_explicit(&w->rings[i].has_woken, false, memory_order_relaxed);
    }
    struct watch_event event;
    struct watch_ring *ring;
    while ((ring = oldest_ring(w, rings, now, &event)) != NULL) {
        char text[WATCH_TEXT_MAX];
        char line[WATCH_LINE_MAX];
        uint64_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        copy_out(ring, at + sizeof event, text, event.text_len);
        atomic_store_explicit(&ring->tail, at + event.len, memory_order_release);
        size_t len =
            watch_describe(&event, text, ++w->gid, wall_offset_ns, w->conf.is_long, line);
        deliver(ctx, watch_type_of_kind((enum watch_kind)event.kind), event.at, line,
                len);
    }
}

/* ---- a watcher's lines ---------------------------------------------------------------- */

bool
watch_outbox_init(struct watch_outbox *o, size_t capacity)
{
    *o = (struct watch_outbox){.bytes = malloc(capacity), .capacity = capacity};
    return o->bytes != NULL;
}

void
watch_outbox_fini(struct watch_outbox *o)
{
    free(o->bytes);
    o->bytes = NULL;
}

static void
append(struct watch_outbox *o, const char *p, size_t n)
{
    memcpy(o->bytes + o->start + o->len, p, n);
    o->len += n;
}

bool
watch_outbox_put(struct watch_outbox *o, const char *line, size_t len)
{
    static const char label[] = "skipped=";
    char notice[sizeof label + NUM_U64_DIGITS + 1];
    size_t notice_len = 0;
    if (o->skipped > 0) {
        memcpy(notice, label, sizeof label - 1);
        notice_len = sizeof label - 1;
        notice_len += num_put_u64(notice + notice_len, o->skipped);
        notice[notice_len++] = '\n';
    }
    if (notice_len + len > o->capacity - o->len) {
        o->skipped++;
        return false;
    }
    if (notice_len + len > o->capacity - o->len - o->start) {
        memmove(o->bytes, o->bytes + o->start, o->len);
        o->start = 0;
    }
    append(o, notice, notice_len);
    append(o, line, len);
    o->skipped = 0;
    return true;
}

void
watch_outbox_consume(struct watch_outbox *o, size_t n)
{
    must(n <= o->len);
    o->start += n;
    o->len -= n;
    if (o->len == 0) {
        o->start = 0;
    }
}

/* ---- statistics ----------------------------------------------------------------------- */

void
watch_totals(const struct watch *w, struct watch_totals *out)
{
    *out = (struct watch_totals){
        .dropped = ctr_get(&w->homeless),
        .skipped = ctr_get(&w->skipped),
        .sent = ctr_get(&w->sent),
        .watchers = atomic_load_explicit(&w->watchers, memory_order_relaxed)};
    for (unsigned i = 0; i < ring_count(w); i++) {
        out->dropped += ctr_get(&w->rings[i].dropped);
        out->written += ctr_get(&w->rings[i].written);
    }
}
