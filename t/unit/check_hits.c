/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The simulated caches of scripts/bench-hits, against examples worked out by hand, and
 * the recordings that they are given.
 */
#include "check_main.h"
#include "scripts/bench/hits/cache.h"
#include "scripts/bench/hits/recording.h"

enum { LETTERS = 26, MANY_ITEMS = 1000 };

/* Keys are letters, items one byte. Lower case: a get, and a set if it misses; upper
 * case: a set; ~ before it: a delete. Of each get: h is a hit. */
static const struct {
    const char *policy;
    uint64_t capacity;
    const char *requests, *hits;
} examples[] = {
    {"lru", 3, "abcadbac", "...h..h."},
    {"lru", 3, "abcAda", "....h"},
    {"lru", 3, "abc~addb", "....hh"},
    {"slru:0.5", 4, "ababcdcedbca", "..hh..h..hh."},
    {"sieve", 3, "abcadefabfae", "...h...h.hh."},
    {"sieve", 3, "abcad~cefad", "...h...h."},
    {"s3fifo:0.25,3,1,1", 4, "abcdebfacghdbacdb", ".....h.......hhhh"},
    {"s3fifo:0.25,3,1,1", 4, "abcdebfb", ".....h.h"},
    {"s3fifo:0.25,3,2,1", 4, "abcdebfb", ".....h.."},
    {"s3fifo:0.25,3,1,1", 4, "abcdeafghia", "..........h"},
    {"s3fifo:0.25,3,1,0", 4, "abcdeafghia", "..........."},
    {"s3fifo:0.25,3,1,1", 4, "abbc~bb~aadefgba", "..h.......h."},
    {"tinylfu:0.25,0.8", 4, "aaabbccdeddfdgadb", ".hh.h.h...h....hh"},
    {"arc", 2, "abacbcacab", "..h..h.hh."},
    {"belady", 2, "abcabdab", "...hh.hh"},
    {"belady", 2, "abcbacbc", "...hh.hh"},
};

struct play {
    uint32_t keys[64];
    char verbs[64]; /* g, s or d */
    uint32_t next[64];
    uint32_t count;
};

static struct play
play_of(const char *requests)
{
    struct play p = {.count = 0};
    for (; *requests != '\0'; requests++) {
        bool is_delete = *requests == '~';
        requests += is_delete;
        bool is_get = *requests >= 'a';
        p.keys[p.count] = (uint32_t)(*requests - (is_get ? 'a' : 'A'));
        p.verbs[p.count++] = is_delete ? 'd' : is_get ? 'g' : 's';
    }
    for (uint32_t i = 0; i < p.count; i++) {
        uint32_t next = i + 1;
        while (next < p.count && p.keys[next] != p.keys[i]) {
            next++;
        }
        p.next[i] = next < p.count ? next : CACHE_NEVER;
    }
    return p;
}

TEST_ROWS(test_examples, examples, row->policy)
{
    struct play p = play_of(row->requests);
    SCOPED(cache_close) struct cache c;
    char hits[64];
    size_t gets = 0;
    expect(cache_open(&c, row->policy, LETTERS, row->capacity, MANY_ITEMS, p.next));
    for (c.now = 0; c.now < p.count; c.now++) {
        uint32_t key = p.keys[c.now];
        if (p.verbs[c.now] == 'g') {
            hits[gets++] = cache_get(&c, key, 1) ? 'h' : '.';
        } else if (p.verbs[c.now] == 's') {
            cache_set(&c, key, 1);
        } else {
            cache_delete(&c, key);
        }
    }
    hits[gets] = '\0';
    ck_assert_str_eq(hits, row->hits);
}

/* What the caches hold is never more than their capacity, and what the lists say. */
static const struct {
    const char *policy;
} names[] = {{"lru"}, {"slru"}, {"sieve"}, {"s3fifo"}, {"tinylfu"}, {"arc"}, {"belady"}};

TEST_ROWS(test_sizes, names, row->policy)
{
    enum { KEYS = 100, REQUESTS = 3000, CAPACITY = 500, LARGEST = 60 };
    struct rng rng;
    static uint32_t keys[REQUESTS], next[REQUESTS];
    rng_init(&rng, 1, 0);
    for (int i = 0; i < REQUESTS; i++) {
        keys[i] = (uint32_t)rng_below(&rng, KEYS);
        next[i] = CACHE_NEVER;
        for (int before = i; before-- > 0;) {
            if (keys[before] == keys[i]) {
                next[before] = (uint32_t)i;
                break;
            }
        }
    }
    SCOPED(cache_close) struct cache c;
    expect(cache_open(&c, row->policy, KEYS, CAPACITY, KEYS, next));
    for (c.now = 0; c.now < REQUESTS; c.now++) {
        uint32_t key = keys[c.now], bytes = (uint32_t)rng_below(&rng, LARGEST) + 1;
        uint64_t used = 0;
        bool was_there = cache_has(&c, key);
        if (rng_below(&rng, 10) == 0) {
            cache_delete(&c, key);
            expect(!cache_has(&c, key));
        } else if (rng_below(&rng, 10) == 0) {
            cache_set(&c, key, bytes);
        } else {
            ck_assert_int_eq(cache_get(&c, key, bytes), was_there);
        }
        for (uint32_t i = 0; i < KEYS; i++) {
            used += cache_has(&c, i) ? c.nodes[i].bytes : 0;
        }
        ck_assert_uint_eq(used, c.used);
        ck_assert_uint_le(used, CAPACITY);
    }
}

TEST(test_item_larger_than_all)
{
    SCOPED(cache_close) struct cache c;
    expect(cache_open(&c, "lru", LETTERS, 10, MANY_ITEMS, NULL));
    cache_set(&c, 0, 5);
    cache_set(&c, 1, 5);
    cache_set(&c, 0, 11);
    expect(!cache_has(&c, 0)); /* its old value is out of date */
    expect(cache_has(&c, 1));
}

TEST(test_policy_names)
{
    static const char *const wrong[] = {
        "", "fifo", "lrux", "s3fifo:", "s3fifo:x", "s3fifo:1,", "s3fifo:1,2,3,4,5"};
    struct cache c;
    expect_each(word, wrong, !cache_open(&c, word, LETTERS, 10, MANY_ITEMS, NULL));
}

/* ---- recordings -------------------------------------------------------------------- */

static struct recording
recording_of(const char *name, double scale, uint64_t seed)
{
    char err[RECORDING_ERR_MAX];
    struct recording r;
    ck_assert_ptr_null(recording_open(&r, name, scale, seed, err));
    return r;
}

TEST(test_recording_is_determined)
{
    SCOPED(recording_close) struct recording a = recording_of("twitter:23", 0.01, 7);
    SCOPED(recording_close) struct recording b = recording_of("twitter:23", 0.01, 7);
    SCOPED(recording_close) struct recording other = recording_of("twitter:23", 0.01, 8);
    ck_assert_uint_eq(a.count, b.count);
    ck_assert_mem_eq(a.requests, b.requests, a.count * sizeof *a.requests);
    ck_assert_mem_eq(a.key_lens, b.key_lens, a.keys);
    ck_assert_mem_ne(a.requests, other.requests, a.count * sizeof *a.requests);
}

/* Of the counted requests: those of keys that come once in all, those that are aside,
 * and those of keys of the first half. */
static void
count_special(const struct recording *r, double *once, double *aside, double *old)
{
    FREED uint32_t *times = calloc(r->keys, sizeof *times);
    FREED bool *is_old = calloc(r->keys, sizeof *is_old);
    double counted = r->count - r->counted_from;
    *once = *aside = *old = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        times[r->requests[i].key]++;
        is_old[r->requests[i].key] |= i < r->counted_from;
    }
    for (uint32_t i = r->counted_from; i < r->count; i++) {
        const struct request *q = &r->requests[i];
        *once += (q->key >= r->records && !q->is_aside && times[q->key] == 1) / counted;
        *aside += q->is_aside / counted;
        *old += is_old[q->key] / counted;
    }
}

static const struct {
    const char *name;
    double once, aside; /* shares of the counted half */
    bool is_new;        /* its keys are others than before */
} specials[] = {
    {"zipf-1.0", 0, 0, false}, {"one-hit", 0.5, 0, false}, {"scan", 0, 0.25, false},
    {"loop", 0, 0, false},     {"shift", 0, 0, true},      {"tenants", 0, 0.8, false},
};

TEST_ROWS(test_special, specials, row->name)
{
    double once, aside, old;
    SCOPED(recording_close) struct recording r = recording_of(row->name, 0.02, 1);
    count_special(&r, &once, &aside, &old);
    ck_assert_double_eq_tol(aside, row->aside, 0.01);
    ck_assert_double_eq_tol(row->is_new ? 0 : once, row->once, 0.01);
    expect(row->is_new ? old == 0 : old > 0.3 * (1 - aside));
}

TEST(test_next_gets)
{
    struct request requests[] = {
        {.key = 0}, {.key = 1}, {.key = 0, .verb = RECORDING_SET}, {.key = 1}, {.key = 0},
    };
    static const uint32_t want[] = {UINT32_MAX, 3, 4, UINT32_MAX, UINT32_MAX};
    const struct recording r = {.requests = requests, .count = 5, .keys = 2};
    FREED uint32_t *next = recording_next_gets(&r);
    ck_assert_mem_eq(next, want, sizeof want);
}

TEST(test_key_texts)
{
    char text[RECORDING_KEY_MAX], other[RECORDING_KEY_MAX];
    uint8_t lens[] = {[10] = 12, [42] = 12};
    const struct recording r = {.key_lens = lens, .keys = 43};
    ck_assert_uint_eq(recording_put_key(&r, &(struct request){.key = 42}, text), 12);
    ck_assert_mem_eq(text, "k00000000042", 12);
    ck_assert_uint_eq(
        recording_put_key(&r, &(struct request){.key = 10, .is_aside = true}, other), 12);
    ck_assert_mem_eq(other, "b00000000010", 12);
}

TEST(test_recording_from_file)
{
    char path[] = "/tmp/check_hits-XXXXXX", name[64], err[RECORDING_ERR_MAX];
    static const char lines[] = "0,first-long-key,14,100,1,get,0\n"
                                "0,second,6,7,1,set,0\n"
                                "1,first-long-key,14,0,1,get,0\n"
                                "1,second,6,0,1,delete,0\n";
    int fd = mkstemp(path);
    struct recording r;
    ck_assert_int_eq(write(fd, lines, sizeof lines - 1), sizeof lines - 1);
    close(fd);
    snprintf(name, sizeof name, "file:twitter:%s", path);
    const char *wrong = recording_open(&r, name, 1, 1, err);
    unlink(path);
    ck_assert_ptr_null(wrong);
    ck_assert_uint_eq(r.count, 4);
    ck_assert_uint_eq(r.keys, 2);
    ck_assert_uint_eq(r.counted_from, 2);
    ck_assert_uint_eq(r.requests[2].key, r.requests[0].key);
    ck_assert_uint_eq(r.requests[2].value_len, 100);
    ck_assert_uint_eq(r.requests[1].verb, RECORDING_SET);
    ck_assert_uint_eq(r.requests[3].verb, RECORDING_DELETE);
    ck_assert_uint_eq(r.footprint, 2 * RECORDING_ITEM_OVERHEAD + 14 + 10 + 100 + 7);
    recording_close(&r);
    expect_part(recording_open(&r, "file:x", 1, 1, err), "file:FORMAT:PATH");
    expect_part(recording_open(&r, "file:twitter:/no/such", 1, 1, err), "/no/such");
    expect_part(recording_open(&r, "nothing", 1, 1, err), "no recording 'nothing'");
}
