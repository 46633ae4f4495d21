/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Shares of the memory: whose items are passed over when room is made, what is lent and how soon it is
 * back, ceilings, whose an item is, and what is counted of each owner.
 */
#include "fixture_s3fifo.h"

#include "base/rng.h"
#include "store/shares.h"

enum { WEB, LOG, BATCH, NOBODY }; /* owners */

static void
share(unsigned owner, unsigned per_mille, bool is_ceiling)
{
    struct store_shares shares = store_shares(s);

    shares.is_on = true;
    shares.of[owner] =
        (struct store_share){.per_mille = per_mille, .is_ceiling = is_ceiling};
    store_set_shares(s, &shares);
}

/* exptime: STORE_NEVER, or when it expires. */
static void
store_until(unsigned owner, const char *key, size_t len, uint32_t exptime, uint32_t now)
{
    FREED char *text = malloc(len + 1);
    struct store_value value = {
        .p = text, .len = (uint32_t)len, .exptime = exptime, .owner = (uint8_t)owner};
    uint8_t class_id;

    memset(text, 'x', len);
    expect_ok(store_set(s, key_of(key), &value, now, &class_id));
}

static void
store_at(unsigned owner, const char *key, size_t len, uint32_t now)
{
    store_until(owner, key, len, STORE_NEVER, now);
}

static void
store_as(unsigned owner, const char *key, size_t len)
{
    store_at(owner, key, len, NOW);
}

static void
store_range(unsigned owner, const char *prefix, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        store_as(owner, numbered(prefix, i), VALUE);
    }
}

/* So that what is stored gets into the main queue, too. */
static void
store_and_read(unsigned owner, const char *prefix, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        store_as(owner, numbered(prefix, i), VALUE);
        ck_assert(is_there(s, numbered(prefix, i), NOW));
        (void)juggle(s, CLASS, 10, NOW);
    }
}

static unsigned
owner_of(const char *key)
{
    struct item *it = look(key);

    ck_assert_ptr_nonnull(it);
    unsigned owner = item_slot(it) / STORE_CLASSES;
    ck_assert_uint_eq(item_slot(it) % STORE_CLASSES, item_class(it));
    store_release(s, it);
    return owner;
}

static struct store_owner_stats
stats_of(unsigned owner)
{
    struct store_owner_stats stats;

    store_owner_stats(s, owner, &stats);
    return stats;
}

static void
read_range(const char *prefix, unsigned from, unsigned to)
{
    ck_assert_uint_eq(count_range(prefix, from, to, NOW), to - from);
}

/* ---- what is reserved ------------------------------------------------------------------- */

FIXTURE(set_up_s3fifo, tear_down_store);

static const enum store_lru_policy policies[] = {STORE_LRU_S3FIFO, STORE_LRU_SEGMENTED,
                                                 STORE_LRU_FLAT};

static void
use_policy(enum store_lru_policy policy)
{
    conf.lru.policy = policy;
    reopen();
}

TEST_ROWS(what_is_reserved_outlives_a_scan, policies, store_lru_name(*row))
{
    use_policy(*row);
    share(WEB, 400, false);
    store_range(WEB, "web", 0, 40);
    store_and_read(BATCH, "scan", 0, 30 * PLACES);
    ck_assert_uint_eq(count_kept("web", 0, 40), 40);
    ck_assert_uint_eq(stats_of(WEB).evicted, 0);
    ck_assert_uint_eq(stats_of(BATCH).items, PLACES - 40);
}

TEST_ROWS(nothing_is_reserved_without_shares, policies, store_lru_name(*row))
{
    use_policy(*row);
    store_range(WEB, "web", 0, 40);
    store_and_read(BATCH, "scan", 0, 30 * PLACES);
    ck_assert_uint_eq(count_kept("web", 0, 40), 0);
    ck_assert_uint_eq(stats_of(WEB).evicted, 40);
}

TEST(what_was_read_of_the_others_goes_first)
{
    share(WEB, 300, false);
    store_range(WEB, "web", 0, 30);
    store_range(LOG, "log", 0, 70);
    read_range("log", 0, 70);
    read_range("log", 0, 70);
    store_range(BATCH, "scan", 0, PLACES);
    ck_assert_uint_eq(count_kept("web", 0, 30), 30);
}

TEST_ROWS(what_is_not_used_is_lent_and_comes_back, policies, store_lru_name(*row))
{
    use_policy(*row);
    share(WEB, 500, false);
    store_range(BATCH, "scan", 0, PLACES);
    ck_assert_uint_eq(stats_of(BATCH).items, PLACES);
    for (unsigned i = 0; i < PLACES / 2; i++) {
        store_as(WEB, numbered("web", i), VALUE);
        ck_assert_uint_eq(stats_of(WEB).items, i + 1);
    }
    ck_assert_uint_eq(count_kept("web", 0, PLACES / 2), PLACES / 2);
    ck_assert_uint_eq(stats_of(BATCH).items, PLACES / 2);
}

/* Beyond its share an owner is as any other, and gets no more than what it would anyway. */
TEST(above_its_share_an_owner_lets_go)
{
    share(WEB, 300, false);
    store_range(WEB, "web", 0, PLACES);
    store_and_read(BATCH, "scan", 0, 30 * PLACES);
    ck_assert_uint_ge(stats_of(WEB).items, 29);
    ck_assert_uint_le(stats_of(WEB).items, 31);
}

TEST(shares_of_all_add_up)
{
    share(WEB, 500, false);
    share(LOG, 300, false);
    share(BATCH, 200, false);
    for (unsigned i = 0; i < 10 * PLACES; i++) {
        store_as(WEB, numbered("web", i), VALUE);
        store_as(LOG, numbered("log", i), VALUE);
        store_as(BATCH, numbered("bat", i), VALUE);
    }
    ck_assert_uint_ge(stats_of(WEB).items, 48);
    ck_assert_uint_ge(stats_of(LOG).items, 28);
    ck_assert_uint_ge(stats_of(BATCH).items, 18);
}

/* A run of reserved items that is longer than what one eviction passes over. */
TEST_ROWS(a_long_run_is_passed_over_in_steps, policies, store_lru_name(*row))
{
    static const uint32_t small[] = {104};

    conf.sizes = small;
    use_policy(*row);
    share(WEB, 600, false);
    for (unsigned i = 0; i < 5000; i++) {
        store_as(WEB, numbered("web", i), 8);
    }
    for (unsigned i = 0; i < 200000; i++) {
        store_as(BATCH, numbered("b", i), 8);
        if (i % 100 == 0) {
            (void)juggle(s, CLASS, 500, NOW);
        }
    }
    ck_assert_uint_ge(stats_of(WEB).items, 4950);
    ck_assert_uint_eq(totals_of(s).malloc_fails, 0);
    ck_assert_uint_eq(class_of(s, CLASS, NOW).count.outofmemory, 0);
}

/* Entries that came to the head of a list since that one was there. */
static unsigned
count_ahead(const struct lru_list *list, const struct item *head)
{
    const struct item *it = list->head;
    unsigned ahead = 0;

    for (; it != NULL && it != head; it = link_item(&s->table.range, it->next)) {
        ahead++;
    }
    return ahead;
}

/* Of the largest store: what it moved, at each list. */
static unsigned
count_moved_at_most(unsigned stores)
{
    const struct lru_list *lists = s->lru.classes[CLASS].lists;
    unsigned most = 0;

    for (unsigned i = 0; i < stores; i++) {
        const struct item *hot = lists[STORE_LIST_HOT].head;
        const struct item *cold = lists[STORE_LIST_COLD].head;
        store_as(BATCH, numbered("b", i), 8);
        unsigned moved = count_ahead(&lists[STORE_LIST_HOT], hot) +
                         count_ahead(&lists[STORE_LIST_COLD], cold);
        most = moved > most ? moved : most;
    }
    return most;
}

TEST_ROWS(what_a_store_passes_over_has_a_bound, policies, store_lru_name(*row))
{
    enum { BESIDE = 100 }; /* what it looks at but does not pass over */
    static const uint32_t small[] = {104};

    conf.sizes = small;
    use_policy(*row);
    share(WEB, 700, false);
    for (unsigned i = 0; class_of(s, CLASS, NOW).count.evicted == 0; i++) {
        store_as(i < 6000 ? WEB : BATCH, numbered("web", i), 8);
    }
    (void)juggle(s, CLASS, 100000, NOW);
    unsigned most = count_moved_at_most(3000);
    ck_assert_uint_ge(most, LRU_PASSES);
    ck_assert_uint_le(most, LRU_PASSES + BESIDE);
    ck_assert_uint_eq(totals_of(s).malloc_fails, 0);
    audit_store(s);
}

TEST(where_all_is_reserved_the_order_decides)
{
    static const uint32_t two[] = {5240, 10480};

    conf.sizes = two;
    conf.size_count = 2;
    reopen_with(2);
    share(WEB, 900, false);
    store_range(BATCH, "big", 0, PLACES);
    for (unsigned i = 0; i < 20 * PLACES; i++) {
        store_as(WEB, numbered("web", i), VALUE / 2);
    }
    ck_assert_uint_eq(stats_of(BATCH).items, PLACES);
    ck_assert_uint_eq(stats_of(WEB).items, 2 * PLACES);
    ck_assert(!shares_keep_most(s, 2) && shares_keep_most(s, 1));
}

TEST(shares_change_while_the_store_runs)
{
    struct store_shares none = {.is_on = false};

    share(WEB, 500, false);
    store_range(WEB, "web", 0, 50);
    store_range(BATCH, "scan", 0, 3 * PLACES);
    ck_assert_uint_eq(stats_of(WEB).items, 50);
    store_set_shares(s, &none);
    ck_assert(!store_shares(s).is_on);
    store_and_read(BATCH, "more", 0, 30 * PLACES);
    ck_assert_uint_eq(stats_of(WEB).items, 0);
}

/* ---- ceilings --------------------------------------------------------------------------- */

TEST_ROWS(a_ceiling_holds_in_an_empty_store, policies, store_lru_name(*row))
{
    uint64_t ceiling = MIB / 10;

    use_policy(*row);
    share(BATCH, 100, true);
    for (unsigned i = 0; i < 3 * PLACES; i++) {
        store_as(BATCH, numbered("b", i), VALUE);
        ck_assert_uint_le(stats_of(BATCH).bytes, ceiling + 2 * VALUE);
    }
    store_range(WEB, "web", 0, 80);
    ck_assert_uint_eq(count_kept("web", 0, 80), 80);
}

static const enum store_lru_policy with_temp[] = {STORE_LRU_S3FIFO, STORE_LRU_SEGMENTED};

/* Items that are about to expire have a list of their own, from which nothing else evicts. */
TEST_ROWS(a_ceiling_holds_for_what_expires_soon, with_temp, store_lru_name(*row))
{
    conf.lru.temp_ttl = 60;
    use_policy(*row);
    share(BATCH, 100, true);
    store_range(WEB, "web", 0, PLACES / 2);
    for (unsigned i = 0; i < 3 * PLACES; i++) {
        store_until(BATCH, numbered("b", i), VALUE, NOW + 30, NOW);
        ck_assert_uint_le(stats_of(BATCH).bytes, MIB / 10 + 2 * VALUE);
    }
    ck_assert(is_there(s, numbered("b", 3 * PLACES - 1), NOW));
    ck_assert_uint_eq(count_kept("web", 0, PLACES / 2), PLACES / 2);
}

/* Nor is it passed by items that become larger where they are. */
TEST(a_ceiling_holds_for_what_grows_in_place)
{
    share(BATCH, 200, true);
    for (unsigned i = 0; i < 40; i++) {
        store_as(BATCH, numbered("b", i), VALUE / 2 + 200);
    }
    ck_assert_uint_eq(stats_of(BATCH).items, 40);
    for (unsigned i = 0; i < 40; i++) {
        store_as(BATCH, numbered("b", i), VALUE);
        ck_assert_uint_le(stats_of(BATCH).bytes, MIB / 5 + 2 * VALUE);
    }
}

TEST(a_lower_ceiling_is_reached_soon)
{
    store_range(BATCH, "b", 0, 80);
    share(BATCH, 200, true);
    store_range(BATCH, "n", 0, 70);
    ck_assert_uint_le(stats_of(BATCH).bytes, MIB / 5 + 2 * VALUE);
}

/* Else nothing of the new size would stay. */
TEST(a_ceiling_moves_with_the_sizes)
{
    static const uint32_t two[] = {5240, 10480};

    conf.sizes = two;
    conf.size_count = 2;
    reopen_with(2);
    share(BATCH, 200, true);
    store_range(BATCH, "large", 0, 40);
    for (unsigned i = 0; i < 120; i++) {
        store_at(BATCH, numbered("half", i), VALUE / 2, NOW + 5 + i);
        ck_assert_uint_le(stats_of(BATCH).bytes, 2 * MIB / 5 + 2 * VALUE);
    }
    ck_assert_uint_ge(count_kept("half", 0, 120), 60);
    ck_assert_uint_le(count_kept("large", 0, 40), 10);
}

/* A page more would not help. */
TEST(a_ceiling_is_no_want_of_memory)
{
    share(BATCH, 100, true);
    store_range(BATCH, "b", 0, PLACES / 2);
    ck_assert_uint_gt(stats_of(BATCH).evicted, 0);
    ck_assert(!s->lru.classes[CLASS].has_evicted);
    store_range(WEB, "web", 0, 2 * PLACES);
    ck_assert(s->lru.classes[CLASS].has_evicted);
}

TEST(a_ceiling_is_a_reserve_too)
{
    share(BATCH, 200, true);
    store_range(BATCH, "b", 0, 18);
    store_range(WEB, "web", 0, 20 * PLACES);
    ck_assert_uint_eq(count_kept("b", 0, 18), 18);
}

TEST(without_evictions_there_is_no_ceiling)
{
    conf.can_evict = false;
    conf.shares.is_on = false;
    reopen();
    store_range(BATCH, "b", 0, PLACES);
    ck_assert_uint_eq(stats_of(BATCH).items, PLACES);
}

/* ---- whose an item is ------------------------------------------------------------------- */

FIXTURE(set_up_store, tear_down_store);

TEST(who_overwrites_it_owns_it)
{
    store_as(WEB, "a", 100);
    uint64_t bytes = stats_of(WEB).bytes;
    store_as(WEB, "a", 101); /* where it is */
    ck_assert_uint_eq(stats_of(WEB).bytes, bytes + 1);
    store_as(BATCH, "a", 100);
    ck_assert_uint_eq(owner_of("a"), BATCH);
    ck_assert_uint_eq(stats_of(WEB).bytes + stats_of(WEB).items, 0);
    ck_assert_uint_eq(stats_of(BATCH).bytes, bytes);
    store_as(LOG, "a", 1000); /* in another class */
    ck_assert_uint_eq(owner_of("a"), LOG);
    ck_assert_uint_eq(stats_of(BATCH).items, 0);
    ck_assert_uint_eq(stats_of(LOG).items, 1);
    audit_store(s);
    drop("a", NOW);
    ck_assert_uint_eq(stats_of(LOG).bytes + stats_of(LOG).items, 0);
}

TEST(what_is_changed_stays_its_owners)
{
    static const struct store_cut empties = {.empties = true};

    store_as(LOG, "n", 1);
    expect_ok(put(s, STORE_SET, "n", "9", 0, NOW)); /* nobody's: 0 */
    ck_assert_uint_eq(owner_of("n"), WEB);
    store_as(LOG, "long", 70000);
    expect_ok(put(s, STORE_APPEND, "long", "more", 0, NOW));
    ck_assert_uint_eq(owner_of("long"), LOG);
    store_as(LOG, "a", 10);
    expect_ok(put(s, STORE_PREPEND, "a", "more", 0, NOW));
    ck_assert_uint_eq(owner_of("a"), LOG);
    expect_ok(store_touch(s, key_of("a"), NOW + 5, NOW, &r));
    ck_assert_uint_eq(owner_of("a"), LOG);
    expect_ok(store_delete(s, key_of("a"), &empties, NOW, &r));
    ck_assert_uint_eq(owner_of("a"), LOG);
    audit_store(s);
}

TEST(what_is_counted_stays_its_owners)
{
    struct store_value nine = {.p = "9", .len = 1, .owner = BATCH};
    uint8_t class_id;

    expect_ok(store_set(s, key_of("n"), &nine, NOW, &class_id));
    expect_ok(count_by("n", true, 1));
    ck_assert_uint_eq(owner_of("n"), BATCH);
    expect_ok(count_by("n", false, 5)); /* where it is */
    ck_assert_uint_eq(owner_of("n"), BATCH);
    audit_store(s);
}

TEST(what_is_created_is_the_creators)
{
    struct store_sum sum = {.increments = true, .creates = true, .owner = LOG};
    struct store_look ask = {.creates = true, .owner = BATCH};
    struct store_seen seen;
    struct item *it;

    expect_ok(store_arith(s, key_of("n"), &sum, NOW, number, &digits, &r));
    ck_assert_uint_eq(owner_of("n"), LOG);
    expect_ok(store_look(s, key_of("l"), &ask, NOW, &seen, &it));
    store_release(s, it);
    ck_assert_uint_eq(owner_of("l"), BATCH);
    expect_ok(store_reserve(s, key_of("r"), 0, 0, 1, NOW, &it));
    fill_item(it, "1", 1);
    item_set_owner(it, NOBODY);
    expect_ok(store_commit(s, it, &(struct store_put){.mode = STORE_ADD}, NOW, &r));
    ck_assert_uint_eq(owner_of("r"), NOBODY);
    audit_store(s);
}

/* ---- what is counted -------------------------------------------------------------------- */

FIXTURE(set_up_s3fifo, tear_down_store);

TEST(evictions_are_counted_by_owner)
{
    store_range(WEB, "web", 0, 60);
    store_range(BATCH, "b", 0, 4 * PLACES);
    ck_assert_uint_eq(stats_of(WEB).evicted + stats_of(BATCH).evicted,
                      totals_of(s).count.evicted);
    ck_assert_uint_eq(stats_of(WEB).evicted, 60 - stats_of(WEB).items);
    store_reset_stats(s);
    ck_assert_uint_ne(stats_of(WEB).evicted, 0);
}

/* Those of [from, to) that are gone are stored once more. */
static unsigned
store_gone(unsigned owner, unsigned from, unsigned to)
{
    unsigned gone = 0;

    for (unsigned i = from; i < to; i++) {
        if (count_kept("web", i, i + 1) == 0) {
            store_as(owner, numbered("web", i), 8);
            gone++;
        }
    }
    return gone;
}

TEST(what_a_tenth_more_memory_would_have_kept_is_counted)
{
    static const uint32_t small[] = {104}; /* 10082 places */

    conf.sizes = small;
    reopen();
    share(WEB, 100, false);
    for (unsigned i = 0; i < 20000; i++) {
        store_as(WEB, numbered("web", i), 8);
    }
    ck_assert_uint_le(stats_of(WEB).would_hit, 5); /* other keys with the same 16 bits */
    ck_assert_uint_gt(store_gone(WEB, 14000, 14200), 150);
    ck_assert_uint_le(stats_of(WEB).would_hit, 10); /* 5000 evictions ago */
    ck_assert_uint_gt(store_gone(BATCH, 18900, 19000), 50);
    ck_assert_uint_le(stats_of(BATCH).would_hit, 5); /* they were another's */
    uint64_t before = stats_of(WEB).would_hit;
    unsigned gone = store_gone(WEB, 19340, 19440);
    ck_assert_uint_gt(gone, 80);
    ck_assert_uint_ge(stats_of(WEB).would_hit - before, gone * 3 / 4);
}

/* ---- all of it at random ---------------------------------------------------------------- */

static void
do_something(struct rng *rng)
{
    const char *key = numbered("key", rng_below(rng, 3000));
    unsigned owner = (unsigned)rng_below(rng, STORE_OWNERS);
    enum store_status ignored;

    switch (rng_below(rng, 8)) {
    case 0:
        ignored = store_delete(s, key_of(key), NULL, NOW, &r);
        break;
    case 1:
        ignored = put(s, STORE_APPEND, key, "and more of it", 0, NOW);
        break;
    case 2:
        ignored = count_by(key, true, rng_below(rng, 1000));
        break;
    case 3:
        ignored = lookup(s, key, NOW);
        break;
    default:
        store_as(owner, key, rng_below(rng, 50) == 0 ? 60000 : rng_below(rng, 900));
        ignored = STORE_OK;
        break;
    }
    (void)ignored;
}

TEST_ROWS(all_sums_are_those_of_the_items, policies, store_lru_name(*row))
{
    struct rng rng;

    rng_init(&rng, 7, 0);
    conf = default_conf(4 * MIB);
    conf.lru = segmented_lru();
    conf.lru.policy = *row;
    conf.item_max = 2 * MIB;
    conf.chunk_max = MIB / 2;
    conf.can_reassign = true;
    conf.whole_pages = true;
    reopen();
    for (unsigned i = 0; i < 60000; i++) {
        if (i % 10000 == 0) {
            share((unsigned)rng_below(&rng, STORE_OWNERS),
                  (unsigned)rng_below(&rng, 250) + 1, rng_below(&rng, 2) == 0);
            audit_store(s);
        }
        do_something(&rng);
    }
    audit_store(s);
}
