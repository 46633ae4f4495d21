/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Random operations against a model that is plainly right: an array of entries, one a key.
 * The clock moves, flushes come and go, the hash table grows at random moments, and
 * references are held over other operations.
 */
#include "check_store.h"

#include "base/rng.h"

#define KEYS 16000u /* 4096 buckets at first: grows twice */
#define OPERATIONS 120000u
#define VALUE_MAX 200u
#define HELD_MAX 64u

struct entry {
    bool is_present;
    uint32_t flags, exptime, stored;
    uint64_t cas;
    size_t len;
    char value[VALUE_MAX];
};

struct held {
    struct item *item;
    size_t len;
    char value[VALUE_MAX];
};

struct model {
    struct store *store;
    struct rng rng;
    bool use_cas;
    uint32_t now;
    uint64_t cas;
    uint32_t flush_at; /* a future flush that is remembered, or 0 */
    uint64_t border;   /* stored before: gone */
    unsigned held_count, hits;
    struct held held[HELD_MAX];
    struct entry entries[KEYS];
};

static unsigned
below(struct model *m, unsigned bound)
{
    return (unsigned)rng_below(&m->rng, bound);
}

static struct entry *
live(struct model *m, unsigned i)
{
    struct entry *e = &m->entries[i];

    if (m->flush_at != 0 && m->flush_at <= m->now && e->stored <= m->flush_at) {
        e->is_present = false;
    }
    if (e->stored < m->border || (e->exptime != 0 && e->exptime <= m->now)) {
        e->is_present = false;
    }
    return e->is_present ? e : NULL;
}

static struct key
key_text(unsigned i, char text[64])
{
    int n = snprintf(text, 64, "key-%u-%.*s", i, (int)(i % 40),
                     "........................................");

    return (struct key){text, (size_t)n};
}

static void
store_entry(struct model *m, struct entry *e, const char *value, size_t len)
{
    e->is_present = true;
    e->stored = m->now;
    e->cas = m->use_cas ? ++m->cas : 0;
    e->len = len;
    memmove(e->value, value, len);
}

static size_t
random_value(struct model *m, char value[VALUE_MAX])
{
    size_t len;

    if (below(m, 3) == 0) {
        len = (size_t)snprintf(value, VALUE_MAX, "%u", below(m, 2000));
        return len;
    }
    len = below(m, 60);
    for (size_t i = 0; i < len; i++) {
        value[i] = (char)('A' + below(m, 26));
    }
    return len;
}

static uint32_t
random_exptime(struct model *m)
{
    return below(m, 2)         ? STORE_NEVER
           : below(m, 20) == 0 ? STORE_EXPIRED
                               : m->now + below(m, 40);
}

/* What the model says about a store, which it also carries out. */
static enum store_status
model_store(struct model *m, unsigned i, enum store_mode mode, const char *value,
            size_t len, uint32_t flags, uint32_t exptime, uint64_t cas)
{
    struct entry *e = live(m, i);
    char both[2 * VALUE_MAX];

    if (e == NULL && (mode == STORE_APPEND || mode == STORE_PREPEND)) {
        return STORE_NOT_STORED;
    }
    if (e == NULL && mode != STORE_ADD && cas != 0) {
        return STORE_MISS;
    }
    if (e == NULL && mode == STORE_REPLACE) {
        return STORE_NOT_STORED;
    }
    if (e != NULL && mode == STORE_ADD) {
        return STORE_NOT_STORED;
    }
    if (cas != 0 && e != NULL && m->use_cas && e->cas != cas) {
        return STORE_EXISTS;
    }
    if (mode == STORE_APPEND || mode == STORE_PREPEND) {
        bool append = mode == STORE_APPEND;

        memcpy(both + (append ? 0 : len), e->value, e->len);
        memcpy(both + (append ? e->len : 0), value, len);
        store_entry(m, e, both, e->len + len);
        return STORE_OK;
    }
    e = &m->entries[i];
    store_entry(m, e, value, len);
    e->flags = flags;
    e->exptime = exptime;
    return STORE_OK;
}

static void
do_store(struct model *m, unsigned i)
{
    static const enum store_mode modes[] = {STORE_SET,    STORE_SET,     STORE_ADD,
                                            STORE_APPEND, STORE_PREPEND, STORE_REPLACE};
    enum store_mode mode = modes[below(m, 6)];
    struct entry *e = live(m, i);
    uint64_t cas = below(m, 4) != 0 ? 0 : e != NULL ? e->cas + (below(m, 3) == 0) : 1;
    uint32_t exptime = random_exptime(m);
    uint32_t flags = below(m, 1000);
    char value[VALUE_MAX], text[64];
    struct store_result r;
    enum store_status expected;
    size_t len = random_value(m, value);

    if (e != NULL && (mode == STORE_APPEND || mode == STORE_PREPEND) &&
        e->len + len > VALUE_MAX) {
        mode = STORE_SET;
    }
    expected = model_store(m, i, mode, value, len, flags, exptime, cas);
    ck_assert_int_eq(put_full(m->store, mode, key_text(i, text), value, len, flags,
                              exptime, cas, m->now, &r),
                     expected);
    ck_assert_uint_eq(r.cas, expected == STORE_OK ? m->entries[i].cas : 0);
}

static void
check_item(const struct item *it, const char *value, size_t len)
{
    char *found = read_item(it);

    ck_assert_uint_eq(item_value_len(it), len);
    ck_assert(memcmp(found, value, len) == 0);
    free(found);
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
    ck_assert_int_eq(status, STORE_OK);
    m->hits++;
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
    char number[STORE_NUMBER_DIGITS], text[64], padded[VALUE_MAX + 1];
    struct key key = key_text(i, text);
    bool in_place = !is_held(m, &key);
    struct store_sum sum = {.increments = increment, .delta = delta};
    struct store_result r;
    size_t digits;
    unsigned long old, new;
    char *end;
    int n;
    enum store_status status =
        store_arith(m->store, key, &sum, m->now, number, &digits, &r);

    if (e == NULL) {
        ck_assert_int_eq(status, STORE_MISS);
        return;
    }
    memcpy(padded, e->value, e->len);
    padded[e->len] = '\0';
    old = strtoul(padded, &end, 10);
    if (e->len == 0 || end == padded || (*end != '\0' && *end != ' ') ||
        end - padded > 20) {
        ck_assert_int_eq(status, STORE_NOT_NUMERIC);
        return;
    }
    ck_assert_int_eq(status, STORE_OK);
    new = increment ? old + delta : delta > old ? 0 : old - delta;
    n = snprintf(padded, sizeof(padded), "%lu", new);
    ck_assert_uint_eq(digits, (size_t)n);
    ck_assert_mem_eq(number, padded, digits);
    if (in_place && digits <= e->len) {
        memset(padded + digits, ' ', e->len - digits);
        digits = e->len;
    }
    store_entry(m, e, padded, digits);
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
    if (at > m->now) {
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
do_anything(struct model *m)
{
    unsigned i = below(m, KEYS);
    unsigned what = below(m, 1000);

    if (what < 420) {
        do_store(m, i);
    } else if (what < 780) {
        do_get(m, i);
    } else if (what < 880) {
        do_arith(m, i);
    } else if (what < 950) {
        do_remove(m, i);
    } else if (what < 975 && m->held_count > 0) {
        release_held(m, below(m, m->held_count));
    } else if (what < 995) {
        (void)store_step(m->store, 1 + below(m, 60));
    } else if (below(m, 2) == 0) {
        m->now += 1 + below(m, 4);
    } else if (below(m, 400) == 0) {
        do_flush(m);
    }
}

START_TEST(store_does_as_the_model)
{
    struct model *m = calloc(1, sizeof(*m));
    struct store_conf conf = default_conf(256 * MIB);
    unsigned present = 0;
    struct store_totals t;

    conf.use_cas = _i % 2 == 0;
    conf.hash_seed = (uint64_t)_i;
    rng_init(&m->rng, 12345, (uint64_t)_i);
    m->store = open_store(&conf);
    m->use_cas = conf.use_cas;
    m->now = NOW;
    for (unsigned n = 0; n < OPERATIONS; n++) {
        do_anything(m);
        if (n == OPERATIONS / 2) {
            /* The second half starts full, so that growth meets every operation. */
            for (unsigned i = 0; i < KEYS; i++) {
                do_store(m, i);
            }
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
    t = totals_of(m->store);
    ck_assert_uint_ge(t.hash_power, 13);
    ck_assert_uint_gt(m->hits, OPERATIONS / 20);
    ck_assert_uint_ge(t.curr_items, present > 0 ? 1 : 0);
    ck_assert_uint_eq(t.evictions, 0);
    for (unsigned i = 0; i < KEYS; i++) {
        char text[64];
        struct store_result r;

        ck_assert_int_ne(store_delete(m->store, key_text(i, text), NULL, m->now, &r),
                         STORE_BUSY);
    }
    assert_empty(m->store);
    store_destroy(&m->store);
    free(m);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("store_model");
    TCase *tc = tcase_create("model");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, store_does_as_the_model, 0, 4);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
