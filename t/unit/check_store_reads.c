/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Reads without a lock: what they write (nothing), when they take the lock after all, and what
 * they make of a writer that comes at each point where one can: the look is cut in pieces, and
 * the writer runs between two of them.
 */
#include "fixture_store.h"

#include "store/peek.h"

#define VALUE_MAX 64u
#define FILLERS 7000u /* more than make the table grow, or fit in two megabytes */

/* One read, and what its callback saw last. */
static struct reader {
    void (*write)(void);   /* in the middle of the copy */
    enum store_take wants; /* of a hit that holds */
    enum store_status status;
    unsigned calls, locked;
    uint64_t cas;
    char value[VALUE_MAX];
    struct item *item;
} reader;

static enum store_take
take(void *ctx, unsigned i, enum store_status status, const struct store_hit *hit)
{
    struct reader *rd = ctx;
    ck_assert_uint_eq(i, 0);
    ck_assert_int_eq(status == STORE_OK, hit != NULL);
    rd->calls++;
    rd->status = status;
    if (hit == NULL) {
        return STORE_TAKEN;
    }
    rd->locked += hit->item != NULL;
    rd->item = hit->item;
    rd->cas = hit->cas;
    if (hit->value != NULL && hit->value_len < VALUE_MAX) {
        size_t half = hit->value_len / 2;
        memcpy(rd->value, hit->value, half);
        if (rd->write != NULL && hit->item == NULL) {
            rd->write();
        }
        memcpy(rd->value + half, hit->value + half, hit->value_len - half);
        rd->value[hit->value_len] = '\0';
    }
    return store_hit_holds(hit) ? rd->wants : STORE_TAKE_AGAIN;
}

static unsigned
read_once(const char *key, uint32_t now)
{
    struct store_read read = {.key = key_of(key)};
    reader.calls = reader.locked = 0;
    reader.cas = 0;
    reader.item = NULL;
    return store_read(s, &read, 1, now, take, &reader);
}

/* Reads that leave nothing to be noted for the next one. */
static void
settle(const char *key)
{
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(read_once(key, NOW), 1);
    }
}

static void
set_up(void)
{
    conf = default_conf(64 * MIB);
    conf.can_reassign = true;
    s = open_store(&conf);
    reader = (struct reader){.wants = STORE_TAKEN};
    expect_ok(put(s, STORE_SET, "k", "12345678", STORE_NEVER, NOW));
    settle("k");
}

static void
tear_down(void)
{
    audit_store(s);
    tear_down_store();
}

FIXTURE(set_up, tear_down);

/* ---- what a read writes ---------------------------------------------------------------- */

TEST(a_settled_read_writes_nothing)
{
    uint64_t hash = hash_of(s, key_of("k"));
    struct item *it = hold("k", NOW);
    store_release(s, it);
    const struct stripe *stripe = table_stripe(&s->table, hash);
    char item_before[sizeof(*it)], stripe_before[sizeof *stripe];
    memcpy(item_before, it, sizeof item_before);
    memcpy(stripe_before, stripe, sizeof stripe_before);
    ck_assert_uint_eq(read_once("k", NOW), 1);
    ck_assert_int_eq(reader.status, STORE_OK);
    ck_assert_str_eq(reader.value, "12345678");
    ck_assert_uint_eq(reader.cas, item_cas(it));
    if (SEQ_MAY_READ) {
        ck_assert_uint_eq(reader.locked, 0);
        ck_assert_mem_eq(it, item_before, sizeof item_before);
        ck_assert_mem_eq(stripe, stripe_before, sizeof stripe_before);
    }
    stripe = table_stripe(&s->table, hash_of(s, key_of("absent")));
    memcpy(stripe_before, stripe, sizeof stripe_before);
    ck_assert_uint_eq(read_once("absent", NOW), 1);
    ck_assert_int_eq(reader.status, STORE_MISS);
    if (SEQ_MAY_READ) {
        ck_assert_mem_eq(stripe, stripe_before, sizeof stripe_before);
    }
}

/* What a use changes is written under the lock, once. */
TEST(the_first_reads_are_noted)
{
    expect_ok(put(s, STORE_SET, "new", "1", STORE_NEVER, NOW));
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(read_once("new", NOW), 1);
        ck_assert_uint_eq(reader.calls, 1);
        ck_assert_uint_eq(reader.locked, i == 0 || !SEQ_MAY_READ);
    }
    /* The flat list: to its head after more than a minute. */
    for (uint32_t now = NOW; now <= NOW + POLICY_BUMP_SECONDS + 1;
         now += POLICY_BUMP_SECONDS + 1) {
        ck_assert_uint_eq(read_once("new", now), 1);
        ck_assert_uint_eq(reader.locked, now > NOW || !SEQ_MAY_READ);
    }
    struct store_lru_conf lru = segmented_lru();
    store_set_lru(s, &lru);
    expect_ok(put(s, STORE_SET, "new", "1", STORE_NEVER, NOW));
    for (unsigned i = 0; i < 5; i++) { /* fetched; active; settled; the next second */
        ck_assert_uint_eq(read_once("new", NOW + i / 3), 1);
        ck_assert_uint_eq(reader.locked, i < 2 || i == 3 || !SEQ_MAY_READ);
        ck_assert_uint_eq(reader.calls, 1);
    }
    lru.policy = STORE_LRU_S3FIFO;
    store_set_lru(s, &lru);
    expect_ok(put(s, STORE_SET, "own", "1", STORE_NEVER, NOW));
    for (unsigned i = 0; i < 5; i++) { /* active; keen; settled for a minute */
        uint32_t now = NOW + (i < 4 ? i : POLICY_BUMP_SECONDS + 2);

        ck_assert_uint_eq(read_once("own", now), 1);
        ck_assert_uint_eq(reader.locked, i < 2 || i == 4 || !SEQ_MAY_READ);
        ck_assert_uint_eq(reader.calls, 1);
    }
    struct item *it = hold("new", NOW + 1);
    ck_assert(item_is(it, ITEM_ACTIVE));
    ck_assert_uint_eq(item_accessed(it), NOW + 1);
    store_release(s, it);
}

/* ---- what needs the lock --------------------------------------------------------------- */

TEST(what_is_gone_is_removed)
{
    expect_ok(put(s, STORE_SET, "short", "1", NOW + 5, NOW));
    settle("short");
    ck_assert_uint_eq(read_once("short", NOW + 5), 1);
    ck_assert_int_eq(reader.status, STORE_GONE_EXPIRED);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
    store_flush(s, 0, NOW);
    ck_assert_uint_eq(read_once("k", NOW), 1);
    ck_assert_int_eq(reader.status, STORE_GONE_FLUSHED);
    ck_assert_uint_eq(totals_of(s).curr_items, 0);
}

static uint64_t
turn_of(const char *key)
{
    return table_stripe(&s->table, hash_of(s, key_of(key)))->seq.number;
}

TEST(a_reference_is_taken_with_the_lock)
{
    uint64_t turn = turn_of("k");
    reader.wants = STORE_TAKE_HOLD;
    ck_assert_uint_eq(read_once("k", NOW), 1);
    ck_assert_uint_eq(reader.calls, SEQ_MAY_READ ? 2 : 1);
    ck_assert_uint_eq(reader.locked, 1);
    ck_assert_uint_eq(item_refs(reader.item), 2);
    store_release(s, reader.item);
    reader.wants = STORE_TAKE_STOP;
    ck_assert_uint_eq(read_once("k", NOW), 0);
    ck_assert_uint_eq(reader.calls, 1);
    ck_assert_uint_eq(turn_of("k"), turn); /* no other reader was disturbed */
}

/* One look, with the lock, which leaves the stripe as it is for those without. */
TEST(a_get_of_a_reference_disturbs_no_reader)
{
    struct item *item;
    uint64_t turn = turn_of("k");
    ck_assert_int_eq(store_get(s, key_of("k"), NOW, &item), STORE_OK);
    ck_assert_uint_eq(item_refs(item), 2);
    store_release(s, item);
    ck_assert_int_eq(store_get(s, key_of("absent"), NOW, &item), STORE_MISS);
    ck_assert_ptr_null(item);
    ck_assert_uint_eq(turn_of("k"), turn);
}

TEST(a_value_in_pieces_is_read_with_the_lock)
{
    conf.chunk_max = MIB / 2;
    reopen();
    expect_ok(put_sized(s, "long", MIB / 2, STORE_NEVER, NOW));
    settle("long");
    uint64_t turn = turn_of("long");
    ck_assert_uint_eq(read_once("long", NOW), 1);
    ck_assert_uint_eq(reader.calls, 1);
    ck_assert_uint_eq(reader.locked, 1);
    ck_assert_uint_eq(turn_of("long"), turn);
}

TEST(a_read_that_finds_the_lock_taken_waits_for_it)
{
    pthread_mutexattr_t recursive;
    PTHREAD_OK(pthread_mutexattr_init(&recursive));
    PTHREAD_OK(pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE));
    conf.lock_attr = &recursive;
    reopen();
    expect_ok(put(s, STORE_SET, "k", "12345678", STORE_NEVER, NOW));
    settle("k");
    store_debug_lock(s, key_of("k"), true);
    ck_assert_uint_eq(read_once("k", NOW), 1);
    ck_assert_uint_eq(reader.calls, 1);
    ck_assert_uint_eq(reader.locked, 1);
    store_debug_lock(s, key_of("k"), false);
    ck_assert_uint_eq(read_once("k", NOW), 1);
    ck_assert_uint_eq(reader.locked, !SEQ_MAY_READ);
    conf.lock_attr = NULL;
    PTHREAD_OK(pthread_mutexattr_destroy(&recursive));
}

/* ---- writers in the middle of a read --------------------------------------------------- */

static void
write_set(void)
{
    expect_ok(put(s, STORE_SET, "k", "abcdefgh", STORE_NEVER, NOW));
}

static void
write_longer(void)
{
    expect_ok(put(s, STORE_SET, "k", "a longer one than it was", STORE_NEVER, NOW));
}

/* What lay there is something else by now. */
static void
write_reuse(void)
{
    drop("k", NOW);
    put_range("other", 0, 100, 8, STORE_NEVER, NOW);
}

static void
write_delete(void)
{
    drop("k", NOW);
}

static void
write_incr(void)
{
    expect_ok(count_by("k", true, 11111111));
}

static void
write_append(void)
{
    expect_ok(put(s, STORE_APPEND, "k", "9", STORE_NEVER, NOW));
}

static void
write_touch(void)
{
    expect_ok(store_touch(s, key_of("k"), NOW + 1000, NOW, &r));
}

static void
write_stale(void)
{
    struct store_cut cut = {.marks_stale = true, .new_cas = 77};
    expect_ok(store_delete(s, key_of("k"), &cut, NOW, &r));
}

/* Does not wait for readers, nor have they to know of it: they came before. */
static void
write_flush(void)
{
    store_flush(s, 0, NOW);
}

static void
write_other(void)
{
    uint64_t stripe = hash_of(s, key_of("k")) & s->table.stripe_mask;
    const char *other = "x";
    for (unsigned i = 0; (hash_of(s, key_of(other)) & s->table.stripe_mask) == stripe;
         i++) {
        other = numbered("x", i);
    }
    expect_ok(put(s, STORE_SET, other, "1", STORE_NEVER, NOW));
}

/* What is left of the old array is zeroes. */
static void
write_growth(void)
{
    const struct generation *old = s->table.current;
    put_range("f", 0, FILLERS, 8, STORE_NEVER, NOW);
    while (store_step(s, 1000)) {
    }
    ck_assert_ptr_eq(s->table.current, old + 1);
    for (uint64_t i = 0; i <= old->mask; i++) {
        ck_assert_uint_eq(old->buckets[i], 0);
    }
}

static void
finish_move(void)
{
    for (unsigned i = 0; store_move_step(s, 1000, NOW) != STORE_MOVE_IDLE; i++) {
        ck_assert_uint_lt(i, 10000);
    }
}

static unsigned
class_of_k(void)
{
    struct item *it = hold("k", NOW);
    unsigned class_id = item_class(it);
    store_release(s, it);
    return class_id;
}

/* To another place: the first page of its class goes to the pool. */
static void
write_move(void)
{
    unsigned class_id = class_of_k();
    for (unsigned i = 0; class_of(s, class_id, NOW).total_pages < 2; i++) {
        expect_ok(put_sized(s, numbered("f", i), 8, STORE_NEVER, NOW));
    }
    ck_assert_int_eq(store_move_page(s, (int)class_id, 0), STORE_MOVE_OK);
    finish_move();
}

/* And then to the system. */
static void
write_trim(void)
{
    write_move();
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    ck_assert(store_set_limit(s, MIB));
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    ck_assert(store_set_limit(s, 64 * MIB));
    ck_assert_ptr_nonnull(s->slab.pages.shelf);
}

static void
write_evict(void)
{
    ck_assert(store_set_limit(s, 2 * MIB));
    for (unsigned i = 0; totals_of(s).count.evicted == 0; i++) {
        expect_ok(put_sized(s, numbered("f", i), 8, STORE_NEVER, NOW));
    }
}

static void
write_segments(void)
{
    struct store_lru_conf lru = segmented_lru();
    store_set_lru(s, &lru);
    expect_ok(lookup(s, "k", NOW + 1)); /* to WARM */
}

static const struct writer {
    const char *name;
    void (*write)(void);
    bool is_seen;      /* by the reader that it passes */
    const char *after; /* the value that is read then; NULL: none */
    uint64_t cas;      /* then; 0: any */
} writers[] = {
    {"set", write_set, true, "abcdefgh", 0},
    {"set of another size", write_longer, true, "a longer one than it was", 0},
    {"delete", write_delete, true, NULL, 0},
    {"delete, and the memory is used again", write_reuse, true, NULL, 0},
    {"incr in place", write_incr, true, "23456789", 0},
    {"append", write_append, true, "123456789", 0},
    {"touch", write_touch, true, "12345678", 0},
    {"stale", write_stale, true, "12345678", 77},
    {"move to another list", write_segments, true, "12345678", 0},
    {"growth of the table", write_growth, true, "12345678", 0},
    {"page move", write_move, true, "12345678", 0},
    {"page given back", write_trim, true, "12345678", 0},
    {"eviction", write_evict, true, NULL, 0},
    {"flush", write_flush, false, "12345678", 0},
    {"another key", write_other, false, "12345678", 0},
};

static void
expect_after(const struct writer *w)
{
    ck_assert_int_eq(reader.status, w->after != NULL ? STORE_OK : STORE_MISS);
    if (w->after != NULL) {
        ck_assert_str_eq(reader.value, w->after);
    }
    ck_assert(w->cas == 0 || reader.cas == w->cas);
}

TEST_ROWS(writer_while_the_value_is_copied, writers, row->name)
{
    if (!SEQ_MAY_READ) {
        return; /* it has the lock: the writer would wait for it */
    }
    reader.write = row->write;
    ck_assert_uint_eq(read_once("k", NOW), 1);
    ck_assert_uint_eq(reader.calls, row->is_seen ? 2 : 1);
    expect_after(row);
}

TEST_ROWS(writer_while_the_bucket_is_searched, writers, row->name)
{
    struct peek p;
    struct item head;
    if (!SEQ_MAY_READ) {
        return;
    }
    peek_open(&p, &s->table, hash_of(s, key_of("k")));
    row->write();
    ck_assert_int_eq(peek_find(&p, &s->table, key_of("k"), &head), !row->is_seen);
}

TEST_ROWS(writer_behind_the_look, writers, row->name)
{
    struct peek p;
    struct item head;
    if (!SEQ_MAY_READ) {
        return;
    }
    peek_open(&p, &s->table, hash_of(s, key_of("k")));
    ck_assert(peek_find(&p, &s->table, key_of("k"), &head));
    ck_assert_ptr_nonnull(p.it);
    ck_assert(peek_holds(&p));
    row->write();
    ck_assert_int_eq(peek_holds(&p), !row->is_seen);
}

/* A miss may not be one because of what the growing table does. */
TEST(a_stripe_moves_while_a_miss_is_looked_for)
{
    struct peek p;
    struct item head;
    if (!SEQ_MAY_READ) {
        return;
    }
    peek_open(&p, &s->table, hash_of(s, key_of("absent")));
    write_growth();
    ck_assert(!peek_find(&p, &s->table, key_of("absent"), &head));
}
