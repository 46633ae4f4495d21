/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/class.h"

#include "base/num.h"

#define PER_MILLE_OF_PERCENT 10

struct class_row {
    const char *name;
    bool is_inline;
    bool is_limited;
    unsigned share;
};

static const struct class_row rows[CLASS_COUNT] = {
#define CLASS(id, name, is_inline, is_limited, share, help)                              \
    [CLASS_##id] = {name, is_inline, is_limited, share},
#include "qos/class.def"
#undef CLASS
};

/* class_is_inline relies on it. */
#define CLASS(id, name, is_inline, is_limited, share, help)                              \
    _Static_assert((is_inline) == (CLASS_##id <= CLASS_SMALL),                           \
                   "inline classes are first");
#include "qos/class.def"
#undef CLASS

struct class_conf
class_conf_make(bool is_on, uint32_t bulk_keys, uint64_t bulk_bytes)
{
    return (struct class_conf){.is_on = is_on,
                               .bulk_keys = is_on ? bulk_keys : UINT32_MAX,
                               .bulk_bytes = is_on ? bulk_bytes : UINT64_MAX};
}

enum req_class
class_of(const struct class_conf *conf, const struct class_traits *t)
{
    if (t->is_control) {
        return CLASS_CONTROL;
    }
    if (!conf->is_on) {
        return CLASS_SMALL;
    }
    if (t->is_incomplete || t->keys > conf->bulk_keys ||
        t->value_bytes > conf->bulk_bytes) {
        return CLASS_BULK;
    }
    return t->is_write ? CLASS_WRITE : CLASS_SMALL;
}

static const struct class_row *
row_of(enum req_class c)
{
    must((unsigned)c < CLASS_COUNT);
    return &rows[c];
}

const char *
class_name(enum req_class c)
{
    return row_of(c)->name;
}

enum req_class
class_by_name(const char *name, size_t len)
{
    unsigned c = 0;
    while (c < CLASS_COUNT &&
           (strlen(rows[c].name) != len || memcmp(rows[c].name, name, len) != 0)) {
        c++;
    }
    return (enum req_class)c;
}

enum req_class
class_by_declared_name(const char *name, size_t len)
{
    enum req_class c = class_by_name(name, len);
    return c == CLASS_CONTROL ? CLASS_NONE : c;
}

bool
class_is_lower(enum req_class from, enum req_class to, bool has_key_rules)
{
    if (from != CLASS_NONE) {
        return to != CLASS_NONE && to >= from;
    }
    /* No request tells of itself that it is background work, but its key may. */
    return to == CLASS_NONE || to == CLASS_BACKGROUND ||
           (to == CLASS_BULK && !has_key_rules);
}

bool
class_is_limited(enum req_class c)
{
    return row_of(c)->is_limited;
}

void
class_shares_init(struct class_shares *s)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        s->per_mille[c] = rows[c].share;
    }
}

const char *
class_shares_parse(void *to, const char *text)
{
    struct class_shares *s = to;
    static const char bad[] =
        "class-shares must be like write:10,bulk:5,background:1, in "
        "percent from 0.1";
    struct class_shares shares = *s;
    bool is_given[CLASS_COUNT] = {false};
    for (;;) {
        size_t len = strcspn(text, ",");
        const char *colon = len > 0 ? memchr(text, ':', len) : NULL;
        if (colon == NULL) {
            return bad;
        }
        enum req_class c = class_by_name(text, (size_t)(colon - text));
        double percent;
        if (c == CLASS_NONE || class_is_inline(c) ||
            !num_double(colon + 1, len - (size_t)(colon + 1 - text), &percent) ||
            percent < 0.1 || percent > 100) {
            return bad;
        }
        if (is_given[c]) {
            return "class-shares: one class is given twice";
        }
        is_given[c] = true;
        shares.per_mille[c] = (unsigned)(percent * PER_MILLE_OF_PERCENT + 0.5);
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    unsigned sum = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        sum += shares.per_mille[c];
    }
    if (sum > CLASS_SHARES_MAX) {
        return "class-shares add up to more than 90 percent: nothing is left for small "
               "requests";
    }
    *s = shares;
    return NULL;
}
