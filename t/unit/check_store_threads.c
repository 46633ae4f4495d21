/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Operations of several threads on the same keys add up exactly, also while the hash table
 * grows under them.
 */
#include "fixture_store.h"

#include <pthread.h>

#define THREADS 4u
#define ROUNDS 5000u
#define RECORD 9u /* digits of one record of the log */

struct party {
    pthread_t thread;
    struct store *store;
    unsigned id;
    unsigned added;   /* how many add commands this one won */
    unsigned swapped; /* cas commands that went through */
};

static atomic_bool stop;

static void
run_parties(struct party *parties, void *(*run)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        parties[i] = (struct party){.store = s, .id = i};
        PTHREAD_OK(pthread_create(&parties[i].thread, NULL, run, &parties[i]));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_join(parties[i].thread, NULL));
    }
}

/* Check is not made for threads: these say with must() what is wrong. */
static enum store_status
put_quick(struct store *st, enum store_mode mode, const char *key, const char *value,
          uint64_t cas)
{
    size_t len = strlen(value);
    struct store_result result;
    struct item *it;

    if (mode == STORE_SET && cas == 0) {
        struct store_value whole = {.p = value, .len = (uint32_t)len};
        uint8_t class_id;

        return store_set(st, key_of(key), &whole, NOW, &class_id);
    }
    must(store_reserve(st, key_of(key), 0, 0, (uint32_t)len, NOW, &it) == STORE_OK);
    fill_value(it, value, len);
    return store_commit(
        st, it,
        &(struct store_put){.mode = mode, .has_compare = cas != 0, .compare = cas}, NOW,
        &result);
}

static void
swap_once(struct party *party)
{
    struct item *it;
    const char *p;
    char next[32];

    must(store_get(party->store, key_of("swap"), NOW, &it) == STORE_OK);
    (void)item_bytes(it, 0, &p);
    snprintf(next, sizeof(next), "%lu", strtoul(p, NULL, 10) + 1);
    uint64_t cas = item_cas(it);
    store_release(party->store, it);
    party->swapped += put_quick(party->store, STORE_SET, "swap", next, cas) == STORE_OK;
}

static void *
party_main(void *arg)
{
    struct party *party = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        char sum[STORE_NUMBER_DIGITS], own[32], common[32], record[32];
        struct store_result result;
        struct item *it;
        size_t len;

        must(arith(party->store, "count", true, 1, NOW, sum, &len, &result) == STORE_OK);
        swap_once(party);
        snprintf(own, sizeof(own), "own-%u-%u", party->id, i);
        must(put_quick(party->store, STORE_SET, own, own, 0) == STORE_OK);
        snprintf(common, sizeof(common), "common-%u", i);
        party->added += put_quick(party->store, STORE_ADD, common, common, 0) == STORE_OK;
        if (i % 10 == 0) {
            snprintf(record, sizeof(record), "%u-%06u;", party->id, i);
            must(put_quick(party->store, STORE_APPEND, "log", record, 0) == STORE_OK);
        }
        must(store_get(party->store, key_of(own), NOW, &it) == STORE_OK);
        store_release(party->store, it);
    }
    return NULL;
}

/* All write one key, most of the time where its item is. Of a value its flags are the length and tell
 * the bytes: what is read is of one set. */
static void *
setter_main(void *arg)
{
    struct party *party = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        char text[64];
        struct store_value value = {.p = text, .len = 1 + (i * 7 + party->id) % 60};
        uint8_t class_id;
        struct item *it;
        const char *p;

        value.flags = value.len;
        memset(text, 'A' + (int)value.len, value.len);
        must(store_set(party->store, key_of("k"), &value, NOW, &class_id) == STORE_OK);
        must(store_get(party->store, key_of("k"), NOW, &it) == STORE_OK);
        uint32_t len = item_value_len(it);
        must(item_flags(it) == len && item_bytes(it, 0, &p) == len + 2);
        for (uint32_t n = 0; n < len; n++) {
            must(p[n] == (char)('A' + len));
        }
        store_release(party->store, it);
    }
    return NULL;
}

static void *
grower_main(void *arg)
{
    while (!atomic_load(&stop)) {
        (void)store_step(arg, 8);
    }
    return NULL;
}

/* Each thread's records are all there and in its order. */
static void
check_log(const char *log)
{
    unsigned next[THREADS] = {0};

    ck_assert_uint_eq(strlen(log), (size_t)THREADS * (ROUNDS / 10) * RECORD);
    for (; *log != '\0'; log += RECORD) {
        unsigned id, i;

        ck_assert_int_eq(sscanf(log, "%u-%u;", &id, &i), 2);
        ck_assert_uint_lt(id, THREADS);
        ck_assert_uint_eq(i, next[id]);
        next[id] += 10;
    }
}

FIXTURE(set_up_store, tear_down_store);

TEST(a_value_is_of_one_set)
{
    struct party parties[THREADS];

    conf.threads = THREADS;
    reopen();
    run_parties(parties, setter_main);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
    ck_assert_uint_eq(totals_of(s).count.total_items, THREADS * ROUNDS);
    audit_store(s);
}

TEST(threads_add_up)
{
    struct party parties[THREADS];
    unsigned added = 0, swapped = 0;
    pthread_t grower;
    char text[32], *log;

    conf.threads = THREADS;
    reopen();
    put(s, STORE_SET, "count", "0", 0, NOW);
    put(s, STORE_SET, "swap", "0", 0, NOW);
    put(s, STORE_SET, "log", "", 0, NOW);
    PTHREAD_OK(pthread_create(&grower, NULL, grower_main, s));
    run_parties(parties, party_main);
    for (unsigned i = 0; i < THREADS; i++) {
        added += parties[i].added;
        swapped += parties[i].swapped;
    }
    atomic_store(&stop, true);
    PTHREAD_OK(pthread_join(grower, NULL));
    while (store_step(s, 1000)) {
        /* on a busy machine the grower may hardly have run */
    }
    snprintf(text, sizeof(text), "%u", THREADS * ROUNDS);
    ck_assert(has(s, "count", text, NOW));
    snprintf(text, sizeof(text), "%u", swapped);
    ck_assert(has(s, "swap", text, NOW));
    ck_assert_uint_eq(added, ROUNDS);
    struct item *it = hold("log", NOW);
    log = read_item(it);
    check_log(log);
    free(log);
    store_release(s, it);
    ck_assert_uint_eq(totals_of(s).curr_items, 3 + (THREADS + 1) * ROUNDS);
    ck_assert_uint_ge(totals_of(s).hash_power, 14);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
}

#define PIECES 8u
#define PIECE_RECORDS 10000u
#define PIECE (PIECE_RECORDS * RECORD)

static void *
appender_main(void *arg)
{
    struct party *party = arg;
    struct store_result result;
    char *piece = malloc(PIECE + 1);

    must(piece != NULL);
    for (unsigned i = 0; i < PIECES; i++) {
        for (unsigned at = 0; at < PIECE_RECORDS; at++) {
            snprintf(piece + (size_t)at * RECORD, RECORD + 1, "%u-%06u;", party->id, i);
        }
        must(put_quick(party->store, i % 2 == 0 ? STORE_APPEND : STORE_PREPEND,
                       i % 2 == 0 ? "tail" : "head", piece, 0) == STORE_OK);
        /* changes what does not change the value */
        must(store_touch(party->store, key_of("tail"), NOW + 100, NOW, &result) ==
             STORE_OK);
    }
    free(piece);
    return NULL;
}

/* Each piece is whole, each thread's are in its order, and none is missing. */
static void
check_pieces(const char *key, unsigned first, bool is_reversed)
{
    unsigned next[THREADS];

    struct item *it = hold(key, NOW);
    char *log = read_item(it);
    ck_assert_uint_eq(strlen(log), (size_t)THREADS * PIECES / 2 * PIECE);
    for (unsigned i = 0; i < THREADS; i++) {
        next[i] = is_reversed ? PIECES - 2 + first : first;
    }
    for (const char *p = log; *p != '\0'; p += PIECE) {
        unsigned id, i;

        ck_assert_int_eq(sscanf(p, "%u-%u;", &id, &i), 2);
        ck_assert_uint_lt(id, THREADS);
        ck_assert_uint_eq(i, next[id]);
        next[id] += is_reversed ? -2u : 2u;
        ck_assert(memcmp(p, p + RECORD, PIECE - RECORD) == 0); /* all records alike */
    }
    free(log);
    store_release(s, it);
}

/* Long values are joined outside the lock of their key. */
TEST(long_pieces_add_up)
{
    struct party parties[THREADS];

    conf.threads = THREADS;
    conf.item_max = 16 * MIB;
    conf.chunk_max = 16384;
    reopen();
    put(s, STORE_SET, "head", "", 0, NOW);
    put(s, STORE_SET, "tail", "", 0, NOW);
    run_parties(parties, appender_main);
    check_pieces("tail", 0, false);
    check_pieces("head", 1, true);
    struct item *it = hold("tail", NOW);
    ck_assert_uint_eq(item_expires(it), NOW + 100);
    store_release(s, it);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
    audit_store(s);
}
