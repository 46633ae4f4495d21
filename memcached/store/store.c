/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/store.h"

#include "base/num.h"
#include "store/core.h"

/* ---- life ---------------------------------------------------------------------------- */

struct store *
store_create_failing(const struct store_conf *conf, long fail_in, char *err,
                     size_t err_len)
{
    struct store *s = NULL;
    struct mem mem;

    atomic_init(&mem.fail_in, fail_in);
    atomic_init(&mem.failures, 0);
    if (mem_may(&mem)) {
        s = aligned_alloc(_Alignof(struct store), sizeof(*s));
    }
    if (s == NULL) {
        snprintf(err, err_len, "no memory for the store");
        return NULL;
    }
    memset(s, 0, sizeof(*s));
    s->conf = *conf;
    s->conf.sizes = NULL; /* borrowed for this call only */
    atomic_init(&s->mem.fail_in, atomic_load(&mem.fail_in));
    if (!slab_init(&s->slab, conf, &s->mem, err, err_len)) {
        free(s);
        return NULL;
    }
    if (!table_init(&s->table, conf, &s->mem, err, err_len)) {
        slab_fini(&s->slab);
        free(s);
        return NULL;
    }
    lru_init(&s->lru);
    PTHREAD_OK(pthread_mutex_init(&s->flush.lock, NULL));
    return s;
}

struct store *
store_create(const struct store_conf *conf, char *err, size_t err_len)
{
    return store_create_failing(conf, 0, err, err_len);
}

void
store_destroy(struct store **sp)
{
    struct store *s = *sp;

    if (s == NULL) {
        return;
    }
    *sp = NULL;
    PTHREAD_OK(pthread_mutex_destroy(&s->flush.lock));
    lru_fini(&s->lru);
    table_fini(&s->table);
    slab_fini(&s->slab);
    free(s);
}

/* ---- common parts; the stripe of the hash is held ------------------------------------ */

static uint64_t
hash_of(const struct store *s, struct key key)
{
    must(key.len >= 1 && key.len <= STORE_KEY_MAX);
    return table_hash(&s->table, key.p, key.len);
}

static uint64_t
next_cas(struct store *s)
{
    return s->conf.use_cas
               ? atomic_fetch_add_explicit(&s->cas, 1, memory_order_relaxed) + 1
               : 0;
}

static void
set_cas(struct store *s, struct item *it)
{
    if (s->conf.use_cas) {
        atomic_store_explicit(item_cas_slot(it), next_cas(s), memory_order_relaxed);
    }
}

/* The table's reference becomes the caller's, who drops it when the stripe is free: there
 * may be many chunks to give back. */
static void
unlink_item(struct store *s, struct item *it, uint64_t hash)
{
    table_remove(&s->table, it, hash);
    lru_unlink(s, it);
    it->marks &= (uint8_t)~ITEM_LINKED;
}

/* The caller's reference becomes the table's. */
static void
link_item(struct store *s, struct item *it, uint64_t hash, uint32_t now)
{
    set_cas(s, it);
    it->marks |= ITEM_LINKED;
    lru_link(s, it, now);
    table_insert(&s->table, it, hash);
}

/* Both of the above at once. */
static void
replace_item(struct store *s, struct item *old, struct item *it, uint64_t hash,
             uint32_t now)
{
    set_cas(s, it);
    it->marks |= ITEM_LINKED;
    table_remove(&s->table, old, hash);
    lru_replace(s, old, it, now);
    table_insert(&s->table, it, hash);
    old->marks &= (uint8_t)~ITEM_LINKED;
}

__attribute__((cold, noinline)) static enum store_status
remove_gone(struct store *s, struct item *it, uint64_t hash, uint32_t now)
{
    enum store_status status =
        is_flushed(s, it, now) ? STORE_GONE_FLUSHED : STORE_GONE_EXPIRED;

    unlink_item(s, it, hash);
    item_unref(s, it);
    return status;
}

/* OK and *item, or why not; what has gone is removed on the way. */
static inline enum store_status
find_live(struct store *s, struct key key, uint64_t hash, uint32_t now,
          struct item **item)
{
    struct item *it = table_find(&s->table, key, hash);

    *item = NULL;
    if (it == NULL) {
        return STORE_MISS;
    }
    if (unlikely(is_flushed(s, it, now) || is_expired(it, now))) {
        return remove_gone(s, it, hash, now);
    }
    *item = it;
    return STORE_OK;
}

static void
use_item(struct store *s, struct item *it, uint32_t now)
{
    if ((it->marks & ITEM_FETCHED) == 0) {
        it->marks |= ITEM_FETCHED;
    }
    lru_use(s, it, now);
}

static void
report(struct store_result *result, const struct item *it, uint64_t cas)
{
    result->cas = cas;
    result->class_id = it != NULL ? it->class_id : 0;
}

/* ---- reading ------------------------------------------------------------------------- */

static inline enum store_status
get_item(struct store *s, struct key key, uint64_t hash, uint32_t now, struct item **item)
{
    enum store_status status = find_live(s, key, hash, now, item);

    if (status != STORE_OK) {
        return status;
    }
    if (unlikely(item_refs(*item) > STORE_REFS_MAX)) {
        *item = NULL;
        return STORE_BUSY;
    }
    item_ref(*item);
    use_item(s, *item, now);
    return STORE_OK;
}

enum store_status
store_get(struct store *s, struct key key, uint32_t now, struct item **item)
{
    uint64_t hash = hash_of(s, key);
    enum store_status status;

    table_lock(&s->table, hash);
    status = get_item(s, key, hash, now, item);
    table_unlock(&s->table, hash);
    return status;
}

enum store_status
store_get_and_touch(struct store *s, struct key key, uint32_t exptime, uint32_t now,
                    struct item **item)
{
    uint64_t hash = hash_of(s, key);
    enum store_status status;

    table_lock(&s->table, hash);
    status = get_item(s, key, hash, now, item);
    if (status == STORE_OK) {
        item_set_exptime(*item, exptime);
    }
    table_unlock(&s->table, hash);
    return status;
}

void
store_release(struct store *s, struct item *item)
{
    item_unref(s, item);
}

/* ---- writing ------------------------------------------------------------------------- */

enum store_status
store_reserve(struct store *s, struct key key, uint32_t flags, uint32_t exptime,
              uint32_t value_len, uint32_t now, struct item **item)
{
    return item_create(s, key, flags, exptime, value_len, now, item);
}

/* Links old + addition, or addition + old, with the flags and exptime of old. */
static enum store_status
join_items(struct store *s, struct item *old, const struct item *addition, bool append,
           uint64_t hash, uint32_t now, struct item **joined)
{
    struct key key = {item_key_slot(old), old->key_len};
    uint64_t len = (uint64_t)old->value_len + addition->value_len;
    const struct item *first = append ? old : addition;
    const struct item *second = append ? addition : old;
    enum store_status status;

    *joined = NULL;
    if (len > UINT32_MAX) {
        return STORE_TOO_LARGE;
    }
    status = item_create(s, key, old->client_flags, item_exptime(old), (uint32_t)len, now,
                         joined);
    if (status != STORE_OK) {
        return status;
    }
    item_copy(*joined, 0, first, first->value_len);
    item_copy(*joined, first->value_len, second, second->value_len);
    item_terminate(*joined);
    replace_item(s, old, *joined, hash, now);
    return STORE_OK;
}

static enum store_status
commit_absent(struct store *s, struct item *it, enum store_mode mode, uint64_t hash,
              uint32_t now)
{
    switch (mode) {
    case STORE_SET:
    case STORE_ADD:
        link_item(s, it, hash, now);
        return STORE_OK;
    case STORE_CAS:
        return STORE_MISS;
    case STORE_REPLACE:
    case STORE_APPEND:
    case STORE_PREPEND:
        return STORE_NOT_STORED;
    }
    unreachable();
}

/* When OK, *stored is what is linked now and old is the caller's to drop. */
static enum store_status
commit_present(struct store *s, struct item *old, struct item *it, enum store_mode mode,
               uint64_t cas, uint64_t hash, uint32_t now, struct item **stored)
{
    *stored = it;
    switch (mode) {
    case STORE_ADD:
        lru_use(s, old, now);
        return STORE_NOT_STORED;
    case STORE_CAS:
        if (s->conf.use_cas && item_cas_load(old) != cas) {
            return STORE_EXISTS;
        }
        break;
    case STORE_APPEND:
    case STORE_PREPEND:
        return join_items(s, old, it, mode == STORE_APPEND, hash, now, stored);
    case STORE_SET:
    case STORE_REPLACE:
        break;
    }
    replace_item(s, old, it, hash, now);
    return STORE_OK;
}

enum store_status
store_commit(struct store *s, struct item *item, enum store_mode mode, uint64_t cas,
             uint32_t now, struct store_result *result)
{
    struct key key = {item_key_slot(item), item->key_len};
    uint64_t hash = hash_of(s, key);
    struct item *stored = item;
    struct item *old;
    enum store_status status;

    must((item->marks & ITEM_LINKED) == 0 && item_refs(item) == 1);
    table_lock(&s->table, hash);
    if (find_live(s, key, hash, now, &old) == STORE_OK) {
        status = commit_present(s, old, item, mode, cas, hash, now, &stored);
    } else {
        status = commit_absent(s, item, mode, hash, now);
    }
    report(result, status == STORE_OK ? stored : old,
           status == STORE_OK ? item_cas_load(stored) : 0);
    table_unlock(&s->table, hash);
    if (status != STORE_OK || stored != item) {
        item_unref(s, item); /* refused, or copied into the stored one */
    }
    if (status == STORE_OK && old != NULL) {
        item_unref(s, old);
    }
    return status;
}

/* Of what the next three do the callers hear MISS, however the item went. */
static enum store_status
find_present(struct store *s, struct key key, uint64_t hash, uint32_t now,
             struct item **item)
{
    return find_live(s, key, hash, now, item) == STORE_OK ? STORE_OK : STORE_MISS;
}

enum store_status
store_delete(struct store *s, struct key key, uint32_t now, struct store_result *result)
{
    uint64_t hash = hash_of(s, key);
    enum store_status status;
    struct item *it;

    table_lock(&s->table, hash);
    status = find_present(s, key, hash, now, &it);
    report(result, it, 0);
    if (status == STORE_OK) {
        unlink_item(s, it, hash);
    }
    table_unlock(&s->table, hash);
    if (status == STORE_OK) {
        item_unref(s, it);
    }
    return status;
}

enum store_status
store_touch(struct store *s, struct key key, uint32_t exptime, uint32_t now,
            struct store_result *result)
{
    uint64_t hash = hash_of(s, key);
    enum store_status status;
    struct item *it;

    table_lock(&s->table, hash);
    status = find_present(s, key, hash, now, &it);
    report(result, it, it != NULL ? item_cas_load(it) : 0);
    if (status == STORE_OK) {
        item_set_exptime(it, exptime);
        use_item(s, it, now);
    }
    table_unlock(&s->table, hash);
    return status;
}

static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Blanks, digits, and then the end or a blank; what follows that blank is ignored. */
static bool
parse_value(const struct item *it, uint64_t *value)
{
    const char *p;
    size_t n = it->value_len;
    size_t digits = 0;

    if (it->layout & ITEM_CHAINED) {
        return false;
    }
    (void)item_bytes(it, 0, &p);
    while (n > 0 && is_blank(*p)) {
        p++;
        n--;
    }
    while (digits < n && digits <= STORE_NUMBER_DIGITS && !is_blank(p[digits])) {
        digits++;
    }
    return digits <= STORE_NUMBER_DIGITS && num_u64(p, digits, value);
}

static void
rewrite_number(struct store *s, struct item *it, const char *number, size_t digits)
{
    char *p = item_key_slot(it) + it->key_len;

    memcpy(p, number, digits);
    memset(p + digits, ' ', it->value_len - digits);
    set_cas(s, it);
}

static enum store_status
replace_number(struct store *s, struct item *old, const char *number, size_t digits,
               uint64_t hash, uint32_t now, struct item **item)
{
    struct key key = {item_key_slot(old), old->key_len};
    enum store_status status = item_create(s, key, old->client_flags, item_exptime(old),
                                           (uint32_t)digits, now, item);
    char *p;

    if (status != STORE_OK) {
        return STORE_NO_MEMORY;
    }
    (void)item_space(*item, 0, &p);
    memcpy(p, number, digits);
    item_terminate(*item);
    (*item)->marks |= ITEM_FETCHED;
    replace_item(s, old, *item, hash, now);
    item_unref(s, old); /* a single chunk: no need to wait for the stripe */
    return STORE_OK;
}

static uint64_t
apply_delta(uint64_t value, bool increment, uint64_t delta)
{
    if (increment) {
        return value + delta;
    }
    return delta > value ? 0 : value - delta;
}

static enum store_status
change_number(struct store *s, struct item *it, bool increment, uint64_t delta,
              uint64_t hash, uint32_t now, char number[STORE_NUMBER_DIGITS],
              size_t *digits, struct store_result *result)
{
    enum store_status status = STORE_OK;
    uint64_t value;

    report(result, it, 0);
    if (!parse_value(it, &value)) {
        return STORE_NOT_NUMERIC;
    }
    use_item(s, it, now);
    *digits = num_put_u64(number, apply_delta(value, increment, delta));
    if (*digits <= it->value_len && item_refs(it) == 1) {
        rewrite_number(s, it, number, *digits);
    } else {
        status = replace_number(s, it, number, *digits, hash, now, &it);
    }
    if (status == STORE_OK) {
        report(result, it, item_cas_load(it));
    }
    return status;
}

enum store_status
store_arith(struct store *s, struct key key, bool increment, uint64_t delta, uint32_t now,
            char number[STORE_NUMBER_DIGITS], size_t *digits, struct store_result *result)
{
    uint64_t hash = hash_of(s, key);
    enum store_status status;
    struct item *it;

    *digits = 0;
    table_lock(&s->table, hash);
    status = find_present(s, key, hash, now, &it);
    report(result, NULL, 0);
    if (status == STORE_OK) {
        status =
            change_number(s, it, increment, delta, hash, now, number, digits, result);
    }
    table_unlock(&s->table, hash);
    return status;
}

static void
raise_border(_Atomic uint64_t *border, uint64_t to)
{
    if (atomic_load_explicit(border, memory_order_relaxed) < to) {
        atomic_store_explicit(border, to, memory_order_relaxed);
    }
}

void
store_flush(struct store *s, uint32_t at, uint32_t now)
{
    struct flush *f = &s->flush;
    uint32_t pending;

    PTHREAD_OK(pthread_mutex_lock(&f->lock));
    pending = atomic_load_explicit(&f->at, memory_order_relaxed);
    if (pending != 0 && pending <= now) {
        /* It has struck: what it killed stays dead when the time is overwritten. */
        raise_border(&f->time_below, (uint64_t)pending + 1);
    }
    if (at > now) {
        f->latest = at;
        atomic_store_explicit(&f->at, at, memory_order_relaxed);
    } else {
        f->latest = now;
        if (s->conf.use_cas) {
            uint64_t last = atomic_load_explicit(&s->cas, memory_order_relaxed);

            raise_border(&f->cas_below, last + 1);
        } else {
            raise_border(&f->time_below, (uint64_t)now + 1);
        }
        atomic_store_explicit(&f->at, 0, memory_order_relaxed);
    }
    PTHREAD_OK(pthread_mutex_unlock(&f->lock));
}

/* ---- upkeep -------------------------------------------------------------------------- */

void
store_set_limit(struct store *s, uint64_t bytes)
{
    slab_set_limit(&s->slab, bytes);
}

bool
store_step(struct store *s, unsigned buckets)
{
    return table_step(&s->table, lru_number(&s->lru), buckets);
}
