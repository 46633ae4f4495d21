/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What changes an item: store, delete, touch, count. Each takes effect at one moment under
 * the stripe of its key; memory is given back when the stripe is free.
 */
#include "store/store.h"

#include "base/num.h"
#include "store/core.h"
#include "store/policy.h"

#define JOIN_SHORT 65536 /* bytes of a value that are copied under the stripe */
#define JOIN_TRIES 3     /* to copy more without it */

/* Of an item that was found. */
static void
report(struct store_result *result, const struct store *s, const struct item *it)
{
    memset(result, 0, sizeof(*result));
    if (it == NULL) {
        return;
    }
    result->value_len = it->value_len;
    result->total = item_accounted(s, it);
    result->exptime_before = item_exptime(it);
    result->exptime_after = result->exptime_before;
    result->class_id = it->class_id;
    result->is_binary_key = item_has_binary_key(it);
}

/* The same item after the change, or the one in its place. */
static void
report_change(struct store_result *result, const struct store *s, const struct item *it)
{
    uint32_t before = result->exptime_before;

    report(result, s, it);
    result->exptime_before = before;
    result->cas = item_cas_load(it);
}

/* Without CAS (-C) the number of every item is 0. */
static bool
differs(const struct item *it, uint64_t compare)
{
    return item_cas_load(it) != compare;
}

/* Without CAS memcached stores whatever is compared with; what may refuse it has done so (exec_commit). */
static bool
refuses_put(const struct store *s, const struct item *old, const struct store_put *put)
{
    return put->has_compare && s->conf.use_cas && differs(old, put->compare);
}

/* ---- store --------------------------------------------------------------------------- */

enum store_status
store_reserve(struct store *s, struct key key, uint32_t flags, uint32_t exptime,
              uint32_t value_len, uint32_t now, struct item **item)
{
    return item_create(s, key, flags, exptime, value_len, now, item);
}

static bool
is_join(const struct store_put *put)
{
    return put->mode == STORE_APPEND || put->mode == STORE_PREPEND;
}

/* Memory for old + addition, with the flags of old. The stripe is held: old is not evicted
 * to make room. */
static enum store_status
create_joined(struct store *s, const struct item *old, const struct item *addition,
              uint32_t now, struct item **joined)
{
    uint64_t len = (uint64_t)old->value_len + addition->value_len;

    *joined = NULL;
    if (len > UINT32_MAX) {
        return STORE_TOO_LARGE;
    }
    enum store_status status =
        item_create(s, item_key_of(old), item_client_flags(old, old), item_exptime(old),
                    (uint32_t)len, now, joined);

    if (status == STORE_OK) {
        (*joined)->owner = old->owner;
    }
    return status;
}

/* Copies old + addition, or addition + old. */
static void
fill_joined(struct item *joined, const struct item *old, const struct item *addition,
            bool append)
{
    const struct item *first = append ? old : addition;
    const struct item *second = append ? addition : old;

    item_copy(joined, 0, first, first->value_len);
    item_copy(joined, first->value_len, second, second->value_len);
    item_terminate(joined);
    if (item_has_binary_key(addition)) {
        item_mark_binary_key(joined);
    }
}

/* A long value that has been joined without the stripe: what it was made of is referenced, so
 * as long as that is what is stored under the key, this may take its place. */
struct ahead {
    struct item *old, *joined;
};

static void
drop_ahead(struct store *s, struct ahead *ahead)
{
    if (ahead->old != NULL) {
        item_unref(s, ahead->old);
    }
    if (ahead->joined != NULL) {
        item_unref(s, ahead->joined);
    }
    *ahead = (struct ahead){.old = NULL};
}

/* The stripe is held, and given up for the copy. False when there is no memory. */
static bool
join_ahead(struct store *s, struct item *old, const struct item *addition, bool append,
           uint64_t hash, uint32_t now, struct ahead *ahead)
{
    struct item *joined;

    if (create_joined(s, old, addition, now, &joined) != STORE_OK) {
        return false;
    }
    item_ref(old);
    table_unlock(&s->table, hash);
    drop_ahead(s, ahead);
    *ahead = (struct ahead){.old = old, .joined = joined};
    fill_joined(joined, old, addition, append);
    table_lock(&s->table, hash);
    return true;
}

static bool
is_long_join(const struct store *s, const struct item *old, const struct item *addition,
             const struct store_put *put)
{
    return (uint64_t)old->value_len + addition->value_len > JOIN_SHORT &&
           !refuses_put(s, old, put);
}

/* With the stripe held at the beginning and at the end: joins what is long without it, again
 * when the value has changed meanwhile, but not for ever. Returns as core_find. */
static enum store_status
find_and_join(struct store *s, struct item *addition, const struct store_put *put,
              uint64_t hash, uint32_t now, struct item **old, struct ahead *ahead)
{
    struct key key = item_key_of(addition);
    enum store_status found = core_find(s, key, hash, now, old);

    for (unsigned i = 0; i < JOIN_TRIES; i++) {
        if (found != STORE_OK || *old == ahead->old ||
            !is_long_join(s, *old, addition, put) ||
            !join_ahead(s, *old, addition, put->mode == STORE_APPEND, hash, now, ahead)) {
            break;
        }
        found = core_find(s, key, hash, now, old);
    }
    return found;
}

/* Under the stripe. */
static enum store_status
join_items(struct store *s, struct item *old, const struct item *addition, bool append,
           uint32_t now, struct ahead *ahead, struct item **joined)
{
    if (ahead->old == old) {
        *joined = ahead->joined;
        ahead->joined = NULL;
        item_set_exptime(*joined, item_exptime(old)); /* it may have been touched */
        return STORE_OK;
    }
    enum store_status status = create_joined(s, old, addition, now, joined);
    if (status == STORE_OK) {
        fill_joined(*joined, old, addition, append);
    }
    return status;
}

static enum store_status
commit_absent(struct store *s, struct item *it, const struct store_put *put,
              uint64_t hash, uint32_t now)
{
    switch (put->mode) {
    case STORE_SET:
    case STORE_REPLACE:
        if (put->has_compare) {
            return STORE_MISS;
        }
        if (put->mode == STORE_REPLACE) {
            return STORE_NOT_STORED;
        }
        break;
    case STORE_APPEND:
    case STORE_PREPEND:
        if (!put->creates || put->has_compare) {
            return STORE_NOT_STORED;
        }
        break;
    case STORE_ADD:
        break;
    }
    core_link(s, it, put->new_cas, hash, now);
    return STORE_OK;
}

/* When OK, *stored is what is linked now and old is the caller's to drop. */
static enum store_status
commit_present(struct store *s, struct item *old, struct item *it,
               const struct store_put *put, uint64_t hash, uint32_t now,
               struct ahead *ahead, struct item **stored)
{
    bool is_late = false;

    *stored = it;
    if (put->mode == STORE_ADD) {
        core_bump(s, old, now); /* no fetch */
        return STORE_NOT_STORED;
    }
    if (refuses_put(s, old, put)) {
        is_late = put->accepts_stale && put->compare < item_cas_load(old);
        if (!is_late) {
            return STORE_EXISTS;
        }
    }
    if (is_join(put)) {
        enum store_status status =
            join_items(s, old, it, put->mode == STORE_APPEND, now, ahead, stored);

        if (status != STORE_OK) {
            return status;
        }
    }
    if (is_late) {
        item_set_exptime(*stored, item_exptime(old));
        item_mark(*stored, ITEM_STALE | (item_marks(old) & ITEM_WON));
    }
    core_replace(s, old, *stored, put->new_cas, hash, now);
    return STORE_OK;
}

enum store_status
store_commit(struct store *s, struct item *item, const struct store_put *put,
             uint32_t now, struct store_result *result)
{
    uint64_t hash = hash_of(s, item_key_of(item));
    struct ahead ahead = {.old = NULL};
    struct item *stored = item;
    struct item *old;
    enum store_status status;

    must(!item_is(item, ITEM_LINKED) && item_refs(item) == 1);
    table_lock(&s->table, hash);
    enum store_status found = is_join(put)
                                  ? find_and_join(s, item, put, hash, now, &old, &ahead)
                                  : core_find(s, item_key_of(item), hash, now, &old);
    if (found == STORE_OK) {
        status = commit_present(s, old, item, put, hash, now, &ahead, &stored);
    } else {
        status = commit_absent(s, item, put, hash, now);
    }
    if (status == STORE_OK) {
        report(result, s, stored);
        result->exptime_before = old != NULL ? item_exptime(old) : STORE_NEVER;
        result->cas = item_cas_load(stored);
    } else {
        report(result, s, old);
    }
    table_unlock(&s->table, hash);
    result->found = found;
    if (status != STORE_OK || stored != item) {
        item_unref(s, item); /* refused, or copied into the stored one */
    }
    if (status == STORE_OK && old != NULL) {
        item_unref(s, old);
    }
    if (unlikely(ahead.old != NULL)) {
        drop_ahead(s, &ahead);
    }
    return status;
}

/* Whether a plain item without marks of its own may become one of `total` bytes and of this owner
 * where it is, in this class. Where nothing is evicted (-M), a set needs memory of its own, as it
 * always did. */
static bool
can_renew(const struct store *s, const struct item *it, uint64_t total, unsigned owner,
          unsigned *class_id)
{
    if (!s->conf.can_evict || (it->layout & ~ITEM_HAS_CAS) != ITEM_KNOWN ||
        item_refs(it) != 1 || total > s->slab.chunk_max || sizes_is_on(&s->sizes) ||
        it->owner != owner) {
        return false;
    }
    *class_id = slab_class_of(&s->slab, total);
    return *class_id == it->class_id;
}

/* The stripe is held: to the others it is as if a new item had come in its place. */
static void
renew(struct store *s, struct item *it, unsigned class_id,
      const struct store_value *value, uint64_t hash, uint64_t total, uint32_t now)
{
    lru_renew(s, it, class_id, value, hash, total, now);
    core_set_cas(s, it, 0);
    item_fill(it, value);
}

/* Memory for another item is taken under the stripe, too: neither what was found nor what it is
 * among changes meanwhile, and nothing is looked up again. */
enum store_status
store_set(struct store *s, struct key key, const struct store_value *value, uint32_t now,
          uint8_t *class_id)
{
    uint64_t hash = hash_of(s, key);
    uint64_t total = item_total(&s->conf, key.len, value->flags, value->len);
    struct item *old, *it;
    unsigned id;

    table_lock(&s->table, hash);
    enum store_status found = core_find(s, key, hash, now, &old);
    if (found == STORE_OK && likely(can_renew(s, old, total, value->owner, &id))) {
        *class_id = (uint8_t)id;
        renew(s, old, id, value, hash, total, now);
        table_unlock(&s->table, hash);
        return STORE_OK;
    }
    enum store_status status =
        item_create(s, key, value->flags, value->exptime, value->len, now, &it);
    if (status == STORE_OK) {
        *class_id = it->class_id;
        item_fill(it, value);
        item_set_owner(it, value->owner);
        if (old != NULL) {
            core_replace(s, old, it, 0, hash, now);
        } else {
            core_link(s, it, 0, hash, now);
        }
    }
    table_unlock(&s->table, hash);
    if (status == STORE_OK && old != NULL) {
        item_unref(s, old);
    }
    return status;
}

/* ---- delete, touch ------------------------------------------------------------------- */

/* Puts an empty value in the place of *item, which the caller drops later through *old. */
static enum store_status
empty_item(struct store *s, const struct store_cut *cut, uint64_t hash, uint32_t now,
           struct item **item, struct item **old)
{
    struct item *it = *item;
    uint64_t cas = cut->new_cas != 0 ? cut->new_cas : item_cas_load(it);
    struct item *empty;
    enum store_status status =
        item_create(s, item_key_of(it), cut->client_flags,
                    cut->touches ? cut->exptime : STORE_NEVER, 0, now, &empty);

    if (status != STORE_OK) {
        return STORE_NO_MEMORY;
    }
    item_terminate(empty);
    empty->owner = it->owner;
    if (item_has_binary_key(it)) {
        item_mark_binary_key(empty);
    }
    core_replace(s, it, empty, cas, hash, now);
    *old = it;
    *item = empty;
    return STORE_OK;
}

static void
mark_stale(struct store *s, const struct store_cut *cut, struct item *it)
{
    item_set_marks(it, (item_marks(it) | ITEM_STALE) & ~ITEM_WON);
    if (cut->touches) {
        item_set_exptime(it, cut->exptime);
    }
    core_set_cas(s, it, cut->new_cas);
}

/* What is to be dropped goes to *old. */
static enum store_status
cut_item(struct store *s, struct item *it, const struct store_cut *cut, uint64_t hash,
         uint32_t now, struct store_result *result, struct item **old)
{
    if (cut->has_compare && differs(it, cut->compare)) {
        return STORE_EXISTS;
    }
    if (!cut->marks_stale && !cut->empties) {
        policy_delete(s, it, hash);
        core_unlink(s, it, hash);
        *old = it;
        return STORE_OK;
    }
    if (cut->empties) {
        enum store_status status = empty_item(s, cut, hash, now, &it, old);

        if (status != STORE_OK) {
            return status;
        }
    }
    if (cut->marks_stale) {
        mark_stale(s, cut, it);
    }
    report_change(result, s, it);
    return STORE_OK;
}

enum store_status
store_delete(struct store *s, struct key key, const struct store_cut *cut, uint32_t now,
             struct store_result *result)
{
    static const struct store_cut plain;
    uint64_t hash = hash_of(s, key);
    struct item *old = NULL;
    struct item *it;
    enum store_status status = STORE_MISS;

    table_lock(&s->table, hash);
    enum store_status found = core_find(s, key, hash, now, &it);
    report(result, s, it);
    if (found == STORE_OK) {
        status = cut_item(s, it, cut != NULL ? cut : &plain, hash, now, result, &old);
    }
    table_unlock(&s->table, hash);
    result->found = found;
    if (old != NULL) {
        item_unref(s, old);
    }
    return status;
}

enum store_status
store_touch(struct store *s, struct key key, uint32_t exptime, uint32_t now,
            struct store_result *result)
{
    uint64_t hash = hash_of(s, key);
    struct item *it;

    table_lock(&s->table, hash);
    enum store_status found = core_find(s, key, hash, now, &it);
    report(result, s, it);
    if (found == STORE_OK) {
        item_set_exptime(it, exptime);
        core_use(s, it, now);
        report_change(result, s, it);
    }
    table_unlock(&s->table, hash);
    result->found = found;
    return found == STORE_OK ? STORE_OK : STORE_MISS;
}

/* ---- count --------------------------------------------------------------------------- */

struct number {
    char *text; /* STORE_NUMBER_DIGITS */
    size_t digits;
};

/* Of a value in one chunk. */
static bool
parse_value(const struct item *it, uint64_t *value)
{
    const char *p;

    (void)item_bytes(it, 0, &p);
    return num_u64_loose(p, it->value_len, value);
}

static enum store_status
create_number(struct store *s, struct key key, const struct number *number,
              uint32_t flags, uint32_t exptime, bool is_binary_key, unsigned owner,
              uint32_t now, struct item **item)
{
    char *p;

    if (item_create(s, key, flags, exptime, (uint32_t)number->digits, now, item) !=
        STORE_OK) {
        return STORE_NO_MEMORY;
    }
    (void)item_space(*item, 0, &p);
    memcpy(p, number->text, number->digits);
    item_terminate(*item);
    (*item)->owner = owner % STORE_OWNERS;
    if (is_binary_key) {
        item_mark_binary_key(*item);
    }
    return STORE_OK;
}

static void
rewrite_number(struct store *s, struct item *it, const struct number *number,
               uint64_t cas)
{
    char *p = item_key_slot(it) + it->key_len;

    memcpy(p, number->text, number->digits);
    memset(p + number->digits, ' ', it->value_len - number->digits);
    core_set_cas(s, it, cas);
}

static enum store_status
replace_number(struct store *s, struct item *old, const struct number *number,
               uint64_t cas, uint64_t hash, uint32_t now, struct item **item)
{
    enum store_status status =
        create_number(s, item_key_of(old), number, item_client_flags(old, old),
                      item_exptime(old), item_has_binary_key(old), old->owner, now, item);

    if (status != STORE_OK) {
        return status;
    }
    core_replace(s, old, *item, cas, hash, now);
    item_unref(s, old); /* a single chunk: no need to wait for the stripe */
    return STORE_OK;
}

static uint64_t
apply_delta(uint64_t value, const struct store_sum *sum)
{
    if (sum->increments) {
        return value + sum->delta;
    }
    return sum->delta > value ? 0 : value - sum->delta;
}

static enum store_status
change_number(struct store *s, struct item *it, const struct store_sum *sum,
              uint64_t hash, uint32_t now, struct number *number,
              struct store_result *result)
{
    enum store_status status = STORE_OK;
    uint64_t value;

    if (it->value_len == 0 || (it->layout & ITEM_CHAINED)) {
        return STORE_NOT_NUMERIC; /* whatever its CAS */
    }
    if (sum->has_compare && differs(it, sum->compare)) {
        return STORE_EXISTS;
    }
    if (!parse_value(it, &value)) {
        return STORE_NOT_NUMERIC;
    }
    core_bump(s, it, now); /* no fetch */
    number->digits = num_put_u64(number->text, apply_delta(value, sum));
    if (number->digits <= it->value_len && item_refs(it) == 1) {
        rewrite_number(s, it, number, sum->new_cas);
    } else {
        status = replace_number(s, it, number, sum->new_cas, hash, now, &it);
    }
    if (status == STORE_OK) {
        if (sum->touches) {
            item_set_exptime(it, sum->exptime);
        }
        report_change(result, s, it);
    }
    return status;
}

static enum store_status
start_number(struct store *s, struct key key, const struct store_sum *sum, uint64_t hash,
             uint32_t now, struct number *number, struct store_result *result)
{
    struct item *it;

    number->digits = num_put_u64(number->text, sum->initial);
    enum store_status status = create_number(s, key, number, 0, sum->create_exptime,
                                             sum->is_binary_key, sum->owner, now, &it);
    if (status == STORE_OK) {
        core_link(s, it, sum->new_cas, hash, now);
        report(result, s, it);
        result->cas = item_cas_load(it);
        result->is_created = true;
    }
    return status;
}

enum store_status
store_arith(struct store *s, struct key key, const struct store_sum *sum, uint32_t now,
            char text[STORE_NUMBER_DIGITS], size_t *digits, struct store_result *result)
{
    struct number number = {.text = text};
    uint64_t hash = hash_of(s, key);
    enum store_status status = STORE_MISS;
    struct item *it;

    table_lock(&s->table, hash);
    enum store_status found = core_find(s, key, hash, now, &it);
    report(result, s, it);
    if (found == STORE_OK) {
        status = change_number(s, it, sum, hash, now, &number, result);
    } else if (sum->creates) {
        status = start_number(s, key, sum, hash, now, &number, result);
    }
    table_unlock(&s->table, hash);
    result->found = found;
    *digits = number.digits;
    return status;
}
