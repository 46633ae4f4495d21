/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Threads that store, read, count, append, delete and flush the same keys in too little
 * memory, while another one grows the hash table, moves the clock, shifts items between the
 * LRU lists, changes between flat and segmented mode and reads statistics. One of the threads only
 * reads: many keys at once, most of them without a lock.
 * Every value says whose it is and what its bytes must be, so a torn one is noticed. Then
 * everything in memory must be accounted for. This with stores of several kinds in turn.
 *
 * stress_store [seconds [threads [seed]]]; prints TAP.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit_store.h"
#include "base/must.h"
#include "base/rng.h"
#include "store/store.h"

#define KEYS 40000u
#define LOG_RECORD 8u
#define HELD 400u
#define VALUE_MAX 40000u
#define LIMIT_MIB 12u
#define STEP_BUCKETS 16u
#define CLOCK_EVERY 2000u /* steps a second of the store's clock takes */
#define MODE_EVERY 16000u /* steps between changes of the LRU's mode */
#define MOVES 20u         /* of store_juggle */
#define MOVE_EVERY 500u   /* steps between orders to move a page */
#define AUTOMOVE_EVERY 1700u
#define STEP_CHUNKS 50u
#define WALK_EVERY 3000u
#define STEP_ITEMS 20u

/* What the values of a key are, by key number. */
enum family {
    FAMILY_PATTERN, /* key number, length, seed, then bytes that follow from them */
    FAMILY_NUMBER,  /* digits and blanks */
    FAMILY_LOG,     /* records of 8 bytes, each with the key number */
    FAMILIES,
};

struct pattern_head {
    uint32_t key, len, seed;
};

struct shared {
    struct store *store;
    atomic_uint now;
    atomic_bool stop;
    atomic_ulong operations, hits, locked, torn;
    bool may_resize;
    bool is_walking; /* this and the next: the main thread's */
    uint32_t ticket;
};

struct worker {
    pthread_t thread;
    struct shared *shared;
    struct rng rng;
    bool only_reads;
    unsigned held_count;
    struct item *held[HELD];
    uint32_t held_key[HELD];
    char value[VALUE_MAX];
    char copy[VALUE_MAX * 4];
    uint32_t asked[STORE_READS_MAX]; /* of one look at many keys */
    struct item *taken;
    unsigned long hits, locked, torn;
};

static struct key
key_text(uint32_t i, char text[32])
{
    return (struct key){text, (size_t)snprintf(text, 32, "stress-%u", i)};
}

static uint32_t
below(struct worker *w, uint32_t bound)
{
    return (uint32_t)rng_below(&w->rng, bound);
}

static uint32_t
now_of(struct worker *w)
{
    return atomic_load_explicit(&w->shared->now, memory_order_relaxed);
}

static char
pattern_at(const struct pattern_head *head, uint32_t i)
{
    return (char)((i * 13 + head->seed + (i >> 7)) & 0xff);
}

/* ---- checking ------------------------------------------------------------------------ */

static void
check_pattern(const char *p, size_t len, uint32_t key)
{
    struct pattern_head head;

    if (len == 0) {
        return; /* created or emptied */
    }
    must(len >= sizeof(head));
    memcpy(&head, p, sizeof(head));
    must(head.key == key && head.len == len);
    for (uint32_t i = sizeof(head); i < len; i++) {
        must(p[i] == pattern_at(&head, i));
    }
}

static void
check_number(const char *p, size_t len)
{
    must(len >= 1 && len <= STORE_NUMBER_DIGITS && p[0] >= '0' && p[0] <= '9');
    for (size_t i = 1; i < len; i++) {
        must((p[i] >= '0' && p[i] <= '9' && p[i - 1] != ' ') || p[i] == ' ');
    }
}

static void
check_log(const char *p, size_t len, uint32_t key)
{
    must(len % LOG_RECORD == 0);
    for (size_t i = 0; i < len; i += LOG_RECORD) {
        uint32_t record[2];

        memcpy(record, p + i, sizeof(record));
        must(record[0] == key && record[1] == ~key);
    }
}

/* Of the value in w->copy. */
static void
check_value(const struct worker *w, uint32_t flags, size_t len, uint32_t key)
{
    /* What a look or a count creates has no flags. */
    must(flags == key || (flags == 0 && key % FAMILIES != FAMILY_LOG));
    must(memcmp(w->copy + len, "\r\n", 2) == 0);
    switch ((enum family)(key % FAMILIES)) {
    case FAMILY_PATTERN:
        check_pattern(w->copy, len, key);
        break;
    case FAMILY_NUMBER:
        check_number(w->copy, len);
        break;
    case FAMILY_LOG:
        check_log(w->copy, len, key);
        break;
    case FAMILIES:
        unreachable();
    }
}

static void
check_item(struct worker *w, const struct item *it, uint32_t key)
{
    size_t len = item_value_len(it);
    char text[32];
    struct key expected = key_text(key, text);

    must(item_key_len(it) == expected.len);
    must(memcmp(item_key(it), expected.p, expected.len) == 0);
    must(len + 2 <= sizeof(w->copy));
    copy_value(it, w->copy);
    check_value(w, item_flags(it), len, key);
}

static void
release_one(struct worker *w)
{
    unsigned n = below(w, w->held_count);

    check_item(w, w->held[n], w->held_key[n]);
    store_release(w->shared->store, w->held[n]);
    w->held_count--;
    w->held[n] = w->held[w->held_count];
    w->held_key[n] = w->held_key[w->held_count];
}

/* ---- operations ---------------------------------------------------------------------- */

static size_t
make_value(struct worker *w, uint32_t key)
{
    uint32_t record[2] = {key, ~key};
    struct pattern_head head = {.key = key, .seed = below(w, UINT32_MAX)};

    switch ((enum family)(key % FAMILIES)) {
    case FAMILY_NUMBER:
        return (size_t)snprintf(w->value, sizeof(w->value), "%u", below(w, 200));
    case FAMILY_LOG:
        memcpy(w->value, record, sizeof(record));
        return sizeof(record);
    case FAMILY_PATTERN:
        break;
    case FAMILIES:
        unreachable();
    }
    head.len =
        (uint32_t)sizeof(head) + below(w, below(w, 50) == 0 ? VALUE_MAX - 100 : 300);
    memcpy(w->value, &head, sizeof(head));
    for (uint32_t i = sizeof(head); i < head.len; i++) {
        w->value[i] = pattern_at(&head, i);
    }
    return head.len;
}

static void
do_put(struct worker *w, uint32_t key, enum store_mode mode, uint64_t cas)
{
    struct store_put put = {.mode = mode, .has_compare = cas != 0, .compare = cas};
    size_t len = make_value(w, key);
    uint32_t now = now_of(w);
    uint32_t exptime = below(w, 4) == 0 ? now + 1 + below(w, 5) : STORE_NEVER;
    char text[32];
    struct item *it;
    struct store_result r;

    if (mode == STORE_SET && cas == 0 && below(w, 2) == 0) {
        struct store_value value = {.p = w->value,
                                    .len = (uint32_t)len,
                                    .flags = key,
                                    .exptime = exptime,
                                    .owner = (uint8_t)below(w, STORE_OWNERS)};
        uint8_t class_id;
        enum store_status set =
            store_set(w->shared->store, key_text(key, text), &value, now, &class_id);

        must(set == STORE_OK || set == STORE_NO_MEMORY);
        return;
    }
    enum store_status status = store_reserve(w->shared->store, key_text(key, text), key,
                                             exptime, (uint32_t)len, now, &it);

    must(status == STORE_OK || status == STORE_NO_MEMORY);
    if (status != STORE_OK) {
        return;
    }
    fill_value(it, w->value, len);
    if (below(w, 100) == 0) {
        store_release(w->shared->store, it); /* the client went away */
        return;
    }
    status = store_commit(w->shared->store, it, &put, now, &r);
    must(status != STORE_TOO_LARGE && status != STORE_NOT_NUMERIC &&
         status != STORE_BUSY);
    must((status == STORE_OK) == (r.cas != 0));
}

static void
do_get(struct worker *w, uint32_t key)
{
    char text[32];
    struct item *it;

    if (store_get(w->shared->store, key_text(key, text), now_of(w), &it) != STORE_OK) {
        must(it == NULL);
        return;
    }
    check_item(w, it, key);
    if (below(w, 10) == 0 && w->held_count < HELD) {
        w->held[w->held_count] = it;
        w->held_key[w->held_count++] = key;
        return;
    }
    if (key % FAMILIES != FAMILY_LOG && below(w, 10) == 0) {
        do_put(w, key, STORE_SET, item_cas(it));
    }
    store_release(w->shared->store, it);
}

static enum store_take
take_value(void *ctx, unsigned i, enum store_status status, const struct store_hit *hit)
{
    struct worker *w = ctx;
    bool holds = w->held_count < HELD && w->asked[i] % 50 == 0;

    w->taken = NULL;
    if (status != STORE_OK) {
        return STORE_TAKEN;
    }
    must(hit->value_len + 2u <= sizeof(w->copy));
    if (hit->value != NULL) {
        memcpy(w->copy, hit->value, hit->value_len + 2u);
    } else {
        copy_value(hit->item, w->copy);
    }
    if (!store_hit_holds(hit)) {
        w->torn++;
        return STORE_TAKE_AGAIN;
    }
    check_value(w, hit->flags, hit->value_len, w->asked[i]);
    w->hits++;
    w->locked += hit->item != NULL;
    if (holds) {
        w->taken = hit->item; /* none: this is called again */
        return STORE_TAKE_HOLD;
    }
    return STORE_TAKEN;
}

static void
do_read(struct worker *w)
{
    struct store_read reads[STORE_READS_MAX];
    char texts[STORE_READS_MAX][32];
    unsigned n = 1 + below(w, STORE_READS_MAX);

    for (unsigned i = 0; i < n; i++) {
        w->asked[i] = below(w, 2) == 0 ? below(w, 30) : below(w, KEYS);
        reads[i].key = key_text(w->asked[i], texts[i]);
    }
    unsigned done = store_read(w->shared->store, reads, n, now_of(w), take_value, w);
    must(done >= 1 && done <= n);
    if (w->taken != NULL) {
        w->held[w->held_count] = w->taken;
        w->held_key[w->held_count++] = w->asked[done - 1];
    }
}

/* A reader that may create, touch, or be told to refresh. */
static void
do_look(struct worker *w, uint32_t key)
{
    uint32_t now = now_of(w);
    bool may_create = key % FAMILIES == FAMILY_PATTERN;
    struct store_look ask = {
        .is_use = below(w, 4) != 0,
        .touches = below(w, 4) == 0,
        .exptime = now + 2 + below(w, 4),
        .creates = may_create && below(w, 2) == 0,
        .create_exptime = now + 1 + below(w, 4),
        .takes_stale = true,
        .recaches = below(w, 2) == 0,
        .recache_below = 2,
    };
    char text[32];
    struct item *it;
    struct store_seen seen;
    enum store_status status =
        store_look(w->shared->store, key_text(key, text), &ask, now, &seen, &it);

    must((status == STORE_OK) == (it != NULL));
    if (status != STORE_OK) {
        return;
    }
    must(!(seen.is_won && seen.is_won_before));
    must(seen.cas != 0 && (!seen.is_created || item_value_len(it) == 0));
    check_item(w, it, key);
    store_release(w->shared->store, it);
}

static void
do_cut(struct worker *w, uint32_t key)
{
    bool may_empty = key % FAMILIES == FAMILY_PATTERN;
    struct store_cut cut = {
        .marks_stale = below(w, 3) == 0,
        .empties = may_empty && below(w, 3) == 0,
        .touches = below(w, 2) == 0,
        .exptime = now_of(w) + 3,
        .client_flags = key,
    };
    char text[32];
    struct store_result r;
    enum store_status status =
        store_delete(w->shared->store, key_text(key, text), &cut, now_of(w), &r);

    must(status == STORE_OK || status == STORE_MISS || status == STORE_NO_MEMORY);
    must((status == STORE_OK && (cut.marks_stale || cut.empties)) == (r.cas != 0));
}

static void
do_change(struct worker *w, uint32_t key)
{
    struct store *s = w->shared->store;
    char text[32], number[STORE_NUMBER_DIGITS];
    struct key k = key_text(key, text);
    struct store_sum sum = {.increments = false};
    struct store_result r;
    size_t digits;
    enum store_status status = STORE_OK;

    switch ((enum family)(key % FAMILIES)) {
    case FAMILY_NUMBER:
        sum.increments = below(w, 2) == 0;
        sum.delta = below(w, 300);
        sum.creates = below(w, 4) == 0;
        status = store_arith(s, k, &sum, now_of(w), number, &digits, &r);
        must(status == STORE_OK || status == STORE_MISS || status == STORE_NO_MEMORY);
        if (status == STORE_OK) {
            check_number(number, digits);
        }
        return;
    case FAMILY_LOG:
        do_put(w, key, below(w, 2) == 0 ? STORE_APPEND : STORE_PREPEND, 0);
        return;
    case FAMILY_PATTERN:
        status = store_touch(s, k, below(w, 2) == 0 ? 0 : now_of(w) + 3, now_of(w), &r);
        must(status == STORE_OK || status == STORE_MISS);
        return;
    case FAMILIES:
        unreachable();
    }
}

static void
do_anything(struct worker *w)
{
    /* Few keys are hot: threads meet on them. */
    uint32_t key = below(w, 3) == 0 ? below(w, 30) : below(w, KEYS);
    uint32_t what = below(w, 100);

    if (what < 35) {
        static const enum store_mode modes[] = {STORE_SET, STORE_SET, STORE_ADD,
                                                STORE_REPLACE};

        do_put(w, key, modes[below(w, 4)], 0);
    } else if (what < 53) {
        do_get(w, key);
    } else if (what < 58) {
        do_read(w);
    } else if (what < 65) {
        do_look(w, key);
    } else if (what < 85) {
        do_change(w, key);
    } else if (what < 88) {
        do_cut(w, key);
    } else if (w->held_count > 0) {
        release_one(w);
    } else if (below(w, 60000) == 0) {
        store_flush(w->shared->store, below(w, 2) ? 0 : now_of(w) + 2, now_of(w));
    }
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    unsigned long done = 0;

    while (!atomic_load_explicit(&w->shared->stop, memory_order_relaxed)) {
        if (!w->only_reads) {
            do_anything(w);
        } else if (w->held_count < HELD / 2 || below(w, 2) == 0) {
            do_read(w);
        } else {
            release_one(w);
        }
        done++;
    }
    while (w->held_count > 0) {
        release_one(w);
    }
    atomic_fetch_add(&w->shared->operations, done);
    atomic_fetch_add(&w->shared->hits, w->hits);
    atomic_fetch_add(&w->shared->locked, w->locked);
    atomic_fetch_add(&w->shared->torn, w->torn);
    return NULL;
}

/* ---- the other thread ---------------------------------------------------------------- */

static struct store_lru_conf
lru_conf(unsigned n)
{
    return (struct store_lru_conf){
        .policy = (enum store_lru_policy)((n + STORE_LRU_S3FIFO) % STORE_LRU_POLICIES),
        .hot_pct = 20,
        .warm_pct = 40,
        .hot_factor = 0.2,
        .warm_factor = 2.0,
        .temp_ttl = n % 2 == 0 ? 2 : -1,
    };
}

/* None, reserves, ceilings, both. */
static void
set_shares(struct shared *sh, unsigned n)
{
    struct store_shares shares = {.is_on = n % 4 != 0};

    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        shares.of[o] = (struct store_share){.per_mille = o * 100,
                                            .is_ceiling = n % 4 >= 2 && o > n % 4 - 2};
    }
    store_set_shares(sh->store, &shares);
}

/* Looks at what an operator would be shown. */
static bool
see_item(void *ctx, const struct item *it)
{
    unsigned *left = ctx;

    must(item_key_len(it) > 7 && memcmp(item_key(it), "stress-", 7) == 0);
    must(item_list(it) < STORE_LISTS && item_class(it) != 0);
    (void)item_was_fetched(it);
    (void)item_expires(it);
    return --*left > 0;
}

static void
see_size(void *ctx, uint64_t size, uint64_t count)
{
    (void)ctx;
    must(size > 0 && count <= KEYS);
}

static void
list(struct shared *sh, unsigned class_id, unsigned turn)
{
    uint32_t now = atomic_load(&sh->now);
    unsigned left = 100;
    unsigned bucket = 0;
    uint32_t ticket = store_dump_begin(sh->store, class_id, turn % 2 == 0, 50, now);

    while (store_dump_step(sh->store, ticket, 7, now, see_item, &left)) {
    }
    must(store_track_sizes(sh->store, turn % 400 < 200));
    while (store_sizes_step(sh->store, &bucket, 100, see_size, NULL)) {
    }
}

/* Moves pages to and fro, and walks over all items. */
static void
shift(struct shared *sh, unsigned turn)
{
    static const struct store_walk_spec lists = {.classes = STORE_WALK_ALL},
                                        table = {.classes = STORE_WALK_ALL,
                                                 .by_table = true};
    int classes = (int)store_class_count(sh->store);
    unsigned left = UINT32_MAX;
    uint32_t now = atomic_load(&sh->now);

    if (turn % MOVE_EVERY == 0) {
        int to = turn / MOVE_EVERY % 2 == 0 ? 0 : 1 + (int)(turn / MOVE_EVERY) % classes;
        enum store_move_status status = store_move_page(sh->store, -1, to);

        must(status != STORE_MOVE_OFF && status != STORE_MOVE_BAD_CLASS);
    }
    if (turn % AUTOMOVE_EVERY == 0) {
        struct store_automove automove = {
            .level = turn / AUTOMOVE_EVERY % 3, .ratio = 0.8, .window = 3};

        (void)store_automove_step(sh->store, now);
        store_set_automove(sh->store, &automove);
    }
    (void)store_move_step(sh->store, STEP_CHUNKS, now);
    if (turn % WALK_EVERY == 0 && !sh->is_walking) {
        const struct store_walk_spec *ask = turn / WALK_EVERY % 2 == 0 ? &lists : &table;

        sh->is_walking =
            store_walk_open(sh->store, ask, now, &sh->ticket) == STORE_WALK_OK;
    }
    if (sh->is_walking && store_walk_step(sh->store, sh->ticket, STEP_ITEMS, now,
                                          see_item, &left) != STORE_WALK_MORE) {
        store_walk_close(sh->store, sh->ticket);
        sh->is_walking = false;
    }
    store_walk_expire(sh->store, now);
}

static void
upkeep(struct shared *sh, unsigned turn)
{
    struct store_totals t;
    struct store_class_stats c;
    unsigned class_id = 1 + turn % store_class_count(sh->store);

    (void)store_step(sh->store, STEP_BUCKETS);
    (void)store_juggle(sh->store, class_id, MOVES, atomic_load(&sh->now));
    if (turn % MODE_EVERY == 0) {
        struct store_lru_conf conf = lru_conf(turn / MODE_EVERY);

        store_set_lru(sh->store, &conf);
        set_shares(sh, turn / MODE_EVERY);
    }
    shift(sh, turn);
    if (turn % CLOCK_EVERY == 0) {
        atomic_fetch_add(&sh->now, 1 + (turn / CLOCK_EVERY % 8 == 0) * 70);
        must(store_set_limit(sh->store, (LIMIT_MIB + turn / CLOCK_EVERY % 2) << 20) ==
             sh->may_resize);
    }
    if (turn % 50 == 0) {
        store_totals(sh->store, &t);
        must(t.curr_items <= KEYS);
        store_class_stats(sh->store, class_id, atomic_load(&sh->now), &c);
        must(c.used_chunks + c.free_chunks == c.total_chunks);
        list(sh, class_id, turn / 50);
    }
}

static void
run_upkeep(struct shared *sh, long seconds)
{
    struct timespec start, t;

    PTHREAD_OK(clock_gettime(CLOCK_MONOTONIC, &start));
    for (unsigned turn = 1;; turn++) {
        upkeep(sh, turn);
        PTHREAD_OK(clock_gettime(CLOCK_MONOTONIC, &t));
        if (t.tv_sec - start.tv_sec > seconds ||
            (t.tv_sec - start.tv_sec == seconds && t.tv_nsec >= start.tv_nsec)) {
            break;
        }
    }
    atomic_store(&sh->stop, true);
}

static void
check_leaks(struct shared *sh)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        char text[32];
        struct store_result r;
        enum store_status status =
            store_delete(sh->store, key_text(i, text), NULL, atomic_load(&sh->now), &r);

        must(status == STORE_OK || status == STORE_MISS);
    }
    for (unsigned i = 1; i <= store_class_count(sh->store); i++) {
        struct store_class_stats c;

        store_class_stats(sh->store, i, 0, &c);
        must(c.number == 0 && c.used_chunks == 0 && c.requested_bytes == 0);
    }
}

/* ---- kinds of stores ------------------------------------------------------------------ */

#define KINDS 8u

static struct store_conf
conf_of_kind(unsigned kind, unsigned threads)
{
    struct store_conf conf = {
        .limit_bytes = LIMIT_MIB << 20,
        .growth_factor = 2, /* few classes: some have pages to spare */
        .min_space = 48,
        .item_max = 1 << 20,
        .chunk_max = 1 << 14,
        .hash_power = 12,
        .threads = threads,
        .use_cas = true,
        .can_evict = true,
        .can_grow_hash = true,
        .whole_pages = true,
        .can_reassign = true,
        .inline_suffix = true,
        .lru = lru_conf(0),
    };

    switch (kind) {
    case 1:
        conf.keeps_pages_when_full = true;
        conf.inline_suffix = false;
        conf.is_lean = true;
        break;
    case 2: /* many chunks an item, many items a page */
        conf.chunk_max = 512;
        conf.min_space = 1;
        conf.tail_repair_seconds = 10;
        break;
    case 3:
        conf.can_evict = false;
        conf.keeps_pages_when_full = true;
        break;
    case 4:
        conf.preallocates = true;
        conf.limit_bytes += 4u << 20;
        break;
    case 5: /* nothing is chained */
        conf.item_max = conf.chunk_max = 1 << 20;
        conf.growth_factor = 4;
        break;
    case 6: /* classes open and close */
    case 7:
        conf.growth_factor = 1.1;
        conf.lends_chunks = conf.keeps_pages_when_full = true;
        conf.preallocates = kind == 7;
        conf.limit_bytes += conf.preallocates ? 24u << 20 : 0;
        break;
    default:
        break;
    }
    return conf;
}

static void
run_kind(unsigned kind, unsigned threads, long seconds, unsigned seed)
{
    struct store_conf conf = conf_of_kind(kind, threads);
    char err[128] = "";
    struct shared sh = {
        .store = store_create(&conf, err, sizeof(err)),
        .now = 100,
        .may_resize = !conf.preallocates,
    };
    struct worker *workers = calloc(threads, sizeof(*workers));
    struct store_totals t;

    must(sh.store != NULL && workers != NULL);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].shared = &sh;
        workers[i].only_reads = i == 0 && threads > 1;
        rng_init(&workers[i].rng, 1 + seed, i);
        PTHREAD_OK(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]));
    }
    run_upkeep(&sh, seconds);
    for (unsigned i = 0; i < threads; i++) {
        PTHREAD_OK(pthread_join(workers[i].thread, NULL));
    }
    store_totals(sh.store, &t);
    audit_store(sh.store);
    while (store_move_step(sh.store, STEP_CHUNKS, atomic_load(&sh.now)) !=
               STORE_MOVE_IDLE &&
           conf.can_evict) {
    }
    audit_store(sh.store);
    check_leaks(&sh);
    audit_store(sh.store);
    printf("ok %u - %lu operations by %u threads\n", kind + 1,
           atomic_load(&sh.operations), threads);
    printf("# %llu evictions (%llu active), %llu reclaimed, %llu held at the tail, "
           "%llu juggles, %llu pages moved, %llu items walked over, hash power %u\n",
           (unsigned long long)t.count.evicted,
           (unsigned long long)t.count.evicted_active,
           (unsigned long long)t.count.reclaimed, (unsigned long long)t.count.reflocked,
           (unsigned long long)t.juggles, (unsigned long long)t.pages_moved,
           (unsigned long long)t.count.crawler_items_checked, t.hash_power);
    printf(
        "# looks at many: %lu hits, %lu with the lock, %lu copies that a writer tore\n",
        atomic_load(&sh.hits), atomic_load(&sh.locked), atomic_load(&sh.torn));
    store_destroy(&sh.store);
    free(workers);
}

int
main(int argc, char **argv)
{
    long seconds = argc > 1 ? atol(argv[1]) : (long)KINDS;
    unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
    unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 0;

    printf("1..%u\n", KINDS);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        run_kind(kind, threads, (seconds + (long)KINDS - 1) / (long)KINDS, seed);
    }
    return EXIT_SUCCESS;
}
