/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Random operations against a model that is plainly right: an array of entries, one a key.
 * The clock moves, flushes come and go, the hash table grows, items move between the LRU lists,
 * pages between classes and the pool, and a walk goes on at random moments, and references are
 * held over other operations.
 */
#include "check_main.h"
#include "store_model.h"

/* A plain set of a value that is there as a whole. */
static void
do_set(struct model *m, unsigned i, const struct offer *offer)
{
    static const struct store_put set = {.mode = STORE_SET};
    struct store_value value = {.p = offer->value,
                                .len = (uint32_t)offer->len,
                                .flags = offer->flags,
                                .exptime = offer->exptime,
                                .owner = offer->flags % STORE_OWNERS};
    char text[64];
    uint8_t class_id = 0;

    expect_ok(model_store(m, i, &set, offer));
    expect_ok(store_set(m->store, key_text(i, text), &value, m->now, &class_id));
    ck_assert_uint_ne(class_id, 0);
}

static void
do_store(struct model *m, unsigned i)
{
    static const enum store_mode modes[] = {STORE_SET,    STORE_SET,     STORE_ADD,
                                            STORE_APPEND, STORE_PREPEND, STORE_REPLACE};
    struct entry *e = live(m, i);
    uint64_t cas = e != NULL ? e->cas : 1;
    struct store_put put = {.mode = modes[below(m, 6)],
                            .has_compare = below(m, 4) == 0,
                            .accepts_stale = below(m, 3) == 0,
                            .creates = below(m, 4) == 0,
                            .compare = below(m, 3) == 0 ? cas + below(m, 3) - 1 : cas,
                            .new_cas = random_cas(m)};
    struct offer offer = {.flags = below(m, 1000),
                          .exptime = random_exptime(m),
                          .is_binary = below(m, 5) == 0};
    char text[64];
    struct store_result r;
    struct item *it;

    offer.len = random_value(m, offer.value);
    if (below(m, 3) == 0) {
        offer.is_binary = false;
        do_set(m, i, &offer);
        return;
    }
    if (e != NULL && (put.mode == STORE_APPEND || put.mode == STORE_PREPEND) &&
        e->len + offer.len > VALUE_MAX) {
        put.mode = STORE_SET;
    }
    enum store_status expected = model_store(m, i, &put, &offer);
    expect_ok(store_reserve(m->store, key_text(i, text), offer.flags, offer.exptime,
                            (uint32_t)offer.len, m->now, &it));
    fill_item(it, offer.value, offer.len);
    if (offer.is_binary) {
        item_mark_binary_key(it);
    }
    ck_assert_int_eq(store_commit(m->store, it, &put, m->now, &r), expected);
    ck_assert_uint_eq(r.cas, expected == STORE_OK ? m->entries[i].cas : 0);
    e = live(m, i);
    ck_assert_uint_eq(r.class_id != 0, expected == STORE_OK || e != NULL);
    if (e != NULL && expected == STORE_OK) {
        ck_assert_uint_eq(r.value_len, e->len);
        ck_assert_uint_eq(r.exptime_after, e->exptime);
        ck_assert(r.is_binary_key == e->is_binary);
    }
}

static void
check_item(const struct item *it, const char *value, size_t len)
{
    FREED char *found = read_item(it);

    ck_assert_uint_eq(item_value_len(it), len);
    ck_assert(memcmp(found, value, len) == 0);
}

static void
release_held(struct model *m, unsigned n)
{
    struct held *h = &m->held[n];

    check_item(h->item, h->value, h->len);
    store_release(m->store, h->item);
    *h = m->held[--m->held_count];
}

static void
do_get(struct model *m, unsigned i)
{
    struct entry *e = live(m, i);
    bool touch = below(m, 4) == 0;
    uint32_t exptime = touch ? random_exptime(m) : 0;
    char text[64];
    struct key key = key_text(i, text);
    struct item *it;
    enum store_status status =
        touch ? store_get_and_touch(m->store, key, exptime, m->now, &it)
              : store_get(m->store, key, m->now, &it);

    if (e == NULL) {
        ck_assert(status == STORE_MISS || status == STORE_GONE_EXPIRED ||
                  status == STORE_GONE_FLUSHED);
        return;
    }
    expect_ok(status);
    m->hits++;
    e->is_fetched = true;
    ck_assert(item_has_binary_key(it) == e->is_binary);
    ck_assert_uint_eq(item_flags(it), e->flags);
    ck_assert_uint_eq(item_cas(it), e->cas);
    check_item(it, e->value, e->len);
    if (touch) {
        e->exptime = exptime;
    }
    if (below(m, 8) == 0 && m->held_count < HELD_MAX) {
        struct held *h = &m->held[m->held_count++];

        h->item = it;
        h->len = e->len;
        memcpy(h->value, e->value, e->len);
    } else {
        store_release(m->store, it);
    }
}

static void
check_seen(struct model *m, struct entry *e, const struct store_look *ask,
           const struct store_seen *seen)
{
    uint32_t end = e->exptime;

    ck_assert(!seen->is_created);
    ck_assert(seen->is_won_before == e->is_won);
    ck_assert(seen->is_stale == e->is_stale);
    ck_assert(seen->was_fetched == e->is_fetched);
    ck_assert_uint_eq(seen->cas, e->cas);
    ck_assert_uint_eq(seen->exptime_before, e->exptime);
    if (ask->touches) {
        e->exptime = ask->exptime;
        end = ask->recache_sees_touch ? e->exptime : end;
    }
    ck_assert_uint_eq(seen->exptime_after, e->exptime);
    bool is_ending = ask->recaches && end != 0 &&
                     (end <= m->now || (int64_t)end - m->now < ask->recache_below);
    ck_assert(seen->is_won ==
              (!e->is_won && (is_ending || (ask->takes_stale && e->is_stale))));
    e->is_won |= seen->is_won;
    e->is_fetched |= ask->is_use;
}

static void
do_look(struct model *m, unsigned i)
{
    struct entry *e = live(m, i);
    struct store_look ask = {.is_use = below(m, 2) == 0,
                             .touches = below(m, 4) == 0,
                             .exptime = random_exptime(m),
                             .creates = below(m, 4) == 0,
                             .is_binary_key = below(m, 4) == 0,
                             .create_exptime = random_exptime(m),
                             .new_cas = random_cas(m),
                             .takes_stale = below(m, 2) == 0,
                             .recaches = below(m, 2) == 0,
                             .recache_sees_touch = below(m, 2) == 0,
                             .recache_below = below(m, 40)};
    char text[64];
    struct store_seen seen;
    struct item *it;
    enum store_status status =
        store_look(m->store, key_text(i, text), &ask, m->now, &seen, &it);

    if (e == NULL && !ask.creates) {
        ck_assert_ptr_null(it);
        return;
    }
    expect_ok(status);
    if (e != NULL) {
        check_seen(m, e, &ask, &seen);
    } else {
        e = &m->entries[i];
        store_entry(m, e, "", 0, ask.new_cas);
        e->flags = 0;
        e->exptime = ask.create_exptime;
        e->is_won = true;
        e->is_fetched = ask.is_use;
        e->is_binary = ask.is_binary_key;
        ck_assert(seen.is_created && seen.is_won);
        ck_assert_uint_eq(seen.cas, e->cas);
    }
    check_item(it, e->value, e->len);
    store_release(m->store, it);
}

static void
do_cut(struct model *m, unsigned i)
{
    struct entry *e = live(m, i);
    struct store_cut cut = {.has_compare = below(m, 3) == 0,
                            .marks_stale = below(m, 2) == 0,
                            .empties = below(m, 4) == 0,
                            .touches = below(m, 2) == 0,
                            .exptime = random_exptime(m),
                            .client_flags = below(m, 1000),
                            .compare = e != NULL ? e->cas + (below(m, 4) == 0) : 1,
                            .new_cas = random_cas(m)};
    char text[64];
    struct store_result r;
    enum store_status status =
        store_delete(m->store, key_text(i, text), &cut, m->now, &r);

    if (e == NULL) {
        ck_assert_int_eq(status, STORE_MISS);
        return;
    }
    if (cut.has_compare && cut.compare != (m->use_cas ? e->cas : 0)) {
        ck_assert_int_eq(status, STORE_EXISTS);
        return;
    }
    expect_ok(status);
    if (!cut.marks_stale && !cut.empties) {
        e->is_present = false;
        return;
    }
    if (cut.empties) {
        uint64_t cas = cut.new_cas != 0 ? cut.new_cas : e->cas;

        store_entry(m, e, "", 0, cas);
        e->flags = cut.client_flags;
        e->exptime = STORE_NEVER;
    }
    if (cut.touches) {
        e->exptime = cut.exptime;
    }
    if (cut.marks_stale) {
        e->is_stale = true;
        e->is_won = false;
        number_entry(m, e, cut.new_cas);
    }
    ck_assert_uint_eq(r.cas, e->cas);
    ck_assert_uint_eq(r.exptime_after, e->exptime);
}

static bool
is_held(const struct model *m, const struct key *key)
{
    for (unsigned n = 0; n < m->held_count; n++) {
        const struct item *it = m->held[n].item;

        if (it->key_len == key->len && memcmp(item_key(it), key->p, key->len) == 0 &&
            item_is(it, ITEM_LINKED)) {
            return true;
        }
    }
    return false;
}

/* Values of the model are numbers of up to 9 digits and blanks, or letters. */
static void
do_arith(struct model *m, unsigned i)
{
    struct entry *e = live(m, i);
    bool increment = below(m, 2) == 0;
    unsigned delta = below(m, 1500);
    char number[STORE_NUMBER_DIGITS], text[64], padded[VALUE_MAX + 1] = "";
    struct key key = key_text(i, text);
    bool in_place = !is_held(m, &key);
    struct store_sum sum = {.increments = increment,
                            .delta = delta,
                            .creates = below(m, 4) == 0,
                            .initial = below(m, 3000),
                            .create_exptime = random_exptime(m),
                            .is_binary_key = below(m, 4) == 0,
                            .touches = below(m, 4) == 0,
                            .exptime = random_exptime(m),
                            .new_cas = random_cas(m)};
    struct store_result r;
    size_t digits;
    unsigned long old, new;
    char *end;
    enum store_status status =
        store_arith(m->store, key, &sum, m->now, number, &digits, &r);

    if (e == NULL) {
        ck_assert_int_eq(status, sum.creates ? STORE_OK : STORE_MISS);
        if (sum.creates) {
            e = &m->entries[i];
            store_entry(m, e, number, digits, sum.new_cas);
            e->flags = 0;
            e->exptime = sum.create_exptime;
            e->is_binary = sum.is_binary_key;
            ck_assert_uint_eq(strtoul(memcpy(padded, number, digits), NULL, 10),
                              sum.initial);
        }
        return;
    }
    memcpy(padded, e->value, e->len);
    padded[e->len] = '\0';
    old = strtoul(padded, &end, 10);
    if (item_total(&m->store->conf, key.len, e->flags, (uint32_t)e->len) > CHUNK_MAX ||
        end == padded || (*end != '\0' && *end != ' ') || end - padded > 20) {
        ck_assert_int_eq(status, STORE_NOT_NUMERIC);
        return;
    }
    expect_ok(status);
    new = increment ? old + delta : delta > old ? 0 : old - delta;
    int n = snprintf(padded, sizeof(padded), "%lu", new);
    ck_assert_uint_eq(digits, (size_t)n);
    ck_assert_mem_eq(number, padded, digits);
    if (in_place && digits <= e->len) {
        memset(padded + digits, ' ', e->len - digits);
        memcpy(e->value, padded, e->len);
        number_entry(m, e, sum.new_cas);
    } else {
        store_entry(m, e, padded, digits, sum.new_cas);
    }
    if (sum.touches) {
        e->exptime = sum.exptime;
    }
    ck_assert_uint_eq(r.cas, e->cas);
}

static void
do_remove(struct model *m, unsigned i)
{
    struct entry *e = live(m, i);
    bool touch = below(m, 2) == 0;
    char text[64];
    struct key key = key_text(i, text);
    struct store_result r;
    uint32_t exptime = random_exptime(m);
    enum store_status status = touch ? store_touch(m->store, key, exptime, m->now, &r)
                                     : store_delete(m->store, key, NULL, m->now, &r);

    ck_assert_int_eq(status, e != NULL ? STORE_OK : STORE_MISS);
    if (e != NULL && touch) {
        e->exptime = exptime;
        e->is_fetched = true;
    } else if (e != NULL) {
        e->is_present = false;
    }
}

static void
do_flush(struct model *m)
{
    uint32_t at = below(m, 2) ? 0 : m->now + below(m, 10);

    if (m->flush_at != 0 && m->flush_at <= m->now && m->border <= m->flush_at) {
        m->border = (uint64_t)m->flush_at + 1;
    }
    m->flush_at = 0;
    store_flush(m->store, at, m->now);
    if (at >= m->now) {
        m->flush_at = at;
    } else if (m->use_cas) {
        for (unsigned i = 0; i < KEYS; i++) {
            m->entries[i].is_present = false;
        }
    } else if (m->border <= m->now) {
        m->border = (uint64_t)m->now + 1;
    }
}

static void
do_move(struct model *m)
{
    int to = (int)below(m, 1 + store_class_count(m->store));

    if (!totals_of(m->store).is_moving) {
        enum store_move_status status = store_move_page(m->store, -1, to);

        ck_assert(status == STORE_MOVE_OK || status == STORE_MOVE_NO_SPARE);
    }
    (void)store_move_step(m->store, 1 + below(m, 100), m->now);
}

static void
end_walk(struct model *m)
{
    if (m->is_walking) {
        store_walk_close(m->store, m->ticket);
        m->is_walking = false;
    }
}

static void
do_walk(struct model *m)
{
    struct store_walk_spec ask = {.classes = STORE_WALK_ALL,
                                  .by_table = below(m, 2) == 0};

    if (!m->is_walking) {
        m->is_walking =
            store_walk_open(m->store, &ask, m->now, &m->ticket) == STORE_WALK_OK;
    } else if (store_walk_step(m->store, m->ticket, 1 + below(m, 200), m->now, NULL,
                               NULL) != STORE_WALK_MORE) {
        end_walk(m);
    }
}

static void
do_upkeep(struct model *m)
{
    switch (below(m, 4)) {
    case 0:
        (void)store_step(m->store, 1 + below(m, 60));
        break;
    case 1:
        (void)store_juggle(m->store, 1 + below(m, store_class_count(m->store)),
                           below(m, 200), m->now);
        break;
    case 2:
        do_move(m);
        break;
    default:
        do_walk(m);
        break;
    }
}

static void
do_anything(struct model *m)
{
    unsigned i = below(m, KEYS);
    unsigned what = below(m, 1000);

    if (what < 420) {
        do_store(m, i);
    } else if (what < 640) {
        do_get(m, i);
    } else if (what < 740) {
        do_look(m, i);
    } else if (what < 780) {
        do_cut(m, i);
    } else if (what < 880) {
        do_arith(m, i);
    } else if (what < 950) {
        do_remove(m, i);
    } else if (what < 975 && m->held_count > 0) {
        release_held(m, below(m, m->held_count));
    } else if (what < 995) {
        do_upkeep(m);
    } else if (below(m, 2) == 0) {
        m->now += 1 + below(m, 4);
    } else if (below(m, 400) == 0) {
        do_flush(m);
    }
}

/* Six ways; then the same with lean items. */
TEST_LOOP(store_does_as_the_model, 12)
{
    FREED struct model *m = calloc(1, sizeof(*m));
    struct store_conf conf = default_conf(256 * MIB);
    unsigned present = 0;

    conf.use_cas = _i % 2 == 0;
    conf.hash_seed = (uint64_t)_i;
    conf.chunk_max = CHUNK_MAX;
    conf.growth_factor = 2; /* few classes, so that they have pages to spare */
    conf.can_reassign = true;
    conf.keeps_pages_when_full = true; /* nothing is lost by a move */
    conf.lru = segmented_lru();
    conf.lru.policy = _i % 6 >= 4   ? STORE_LRU_S3FIFO
                      : _i % 6 >= 2 ? STORE_LRU_SEGMENTED
                                    : STORE_LRU_FLAT;
    conf.lru.temp_ttl = _i % 6 == 3 ? 10 : -1;
    conf.is_lean = _i >= 6;
    conf.min_space = _i >= 6 ? 32 : conf.min_space;
    conf.inline_suffix = !conf.is_lean;
    rng_init(&m->rng, 12345, (uint64_t)_i);
    m->store = open_store(&conf);
    m->use_cas = conf.use_cas;
    m->now = NOW;
    for (unsigned n = 0; n < OPERATIONS; n++) {
        do_anything(m);
        /* The second half starts full, so that growth meets every operation, and is filled
         * again, whatever was flushed. */
        if (n >= OPERATIONS / 2 && n % (OPERATIONS / 8) == 0) {
            for (unsigned i = 0; i < KEYS; i++) {
                do_store(m, i);
            }
        }
        if (n == OPERATIONS / 2) {
            end_walk(m); /* one over the table would put growth off */
            ck_assert(store_step(m->store, 1));
        }
    }
    while (m->held_count > 0) {
        release_held(m, 0);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        present += live(m, i) != NULL;
        do_get(m, i);
        while (m->held_count > 0) {
            release_held(m, 0);
        }
    }
    audit_store(m->store);
    end_walk(m);
    while (store_step(m->store, KEYS)) {
    }
    struct store_totals t = totals_of(m->store);
    ck_assert_uint_ge(t.hash_power, 13);
    ck_assert_uint_gt(t.pages_moved, 0);
    ck_assert_uint_gt(t.move_rescues, 1000);
    ck_assert_uint_gt(t.count.crawler_items_checked, 1000);
    ck_assert_uint_gt(m->hits, OPERATIONS / 20);
    ck_assert_uint_ge(t.curr_items, present > 0 ? 1 : 0);
    ck_assert_uint_eq(t.count.evicted, 0);
    for (unsigned i = 0; i < KEYS; i++) {
        char text[64];
        struct store_result r;

        ck_assert_int_ne(store_delete(m->store, key_text(i, text), NULL, m->now, &r),
                         STORE_BUSY);
    }
    assert_empty(m->store);
    store_destroy(&m->store);
}
