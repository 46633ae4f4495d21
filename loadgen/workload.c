/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/workload.h"

#include <string.h>

#include "base/num.h"

/* Fixed, not the run's seed: a client must find what another has loaded. */
#define SIZE_SEED UINT64_C(0x6d636c6f61642d32)

enum size_purpose {
    PURPOSE_KEY = 0,
    PURPOSE_VALUE = 2, /* each uses its number and the next */
};

static const char *
check_prefix(const char *prefix, size_t len)
{
    if (len > WORKLOAD_PREFIX_MAX) {
        return "the key prefix is longer than 200 bytes";
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)prefix[i] <= ' ' || prefix[i] == 0x7f) {
            return "the key prefix contains blanks or control characters";
        }
    }
    return NULL;
}

const char *
workload_init(struct workload *w, const struct workload_conf *conf)
{
    must(conf->records > 0 && conf->update >= 0 && conf->update <= 1);
    must(conf->getcount >= 1 && conf->getcount <= WORKLOAD_GETCOUNT_MAX);
    char digits[NUM_U64_DIGITS];
    *w = (struct workload){.conf = *conf};
    w->prefix_len = strlen(conf->key_prefix);
    w->digits = (unsigned)num_put_u64(digits, conf->records - 1);
    w->key_min = w->prefix_len + w->digits;
    w->value_cap =
        conf->value_size.kind == DIST_FIXED || conf->value_size.kind == DIST_UNIFORM
            ? WORKLOAD_VALUE_MAX
            : WORKLOAD_VALUE_CAP;
    popularity_init(&w->conf.popularity, conf->records);
    if (conf->key_size.kind == DIST_FIXED && conf->key_size.a > WORKLOAD_KEY_MAX) {
        return "keys are at most 250 bytes long";
    }
    if (conf->value_size.a > (double)WORKLOAD_VALUE_MAX) {
        return "values are at most 1 GiB long";
    }
    return check_prefix(conf->key_prefix, w->prefix_len);
}

enum workload_verb
workload_verb(const struct workload *w, struct rng *rng)
{
    if (w->conf.update <= 0) {
        return WORKLOAD_GET;
    }
    return rng_unit(rng) < w->conf.update ? WORKLOAD_SET : WORKLOAD_GET;
}

static double
unit_of(uint64_t key, uint64_t purpose)
{
    return ((double)(rng_mix(SIZE_SEED, key, purpose) >> 12) + 0.5) * 0x1p-52;
}

static uint64_t
size_of(const struct dist *d, uint64_t key, enum size_purpose purpose, uint64_t min,
        uint64_t max)
{
    if (d->kind == DIST_FIXED) {
        return dist_size(d, 0.5, 0.5, min, max);
    }
    return dist_size(d, unit_of(key, purpose), unit_of(key, purpose + 1), min, max);
}

static size_t
key_len(const struct workload *w, uint64_t key)
{
    return size_of(&w->conf.key_size, key, PURPOSE_KEY, w->key_min, WORKLOAD_KEY_MAX);
}

size_t
workload_put_key(const struct workload *w, uint64_t key, char *dst)
{
    char number[NUM_U64_DIGITS];
    size_t digits = num_put_u64(number, key);
    size_t len = key_len(w, key);
    memcpy(dst, w->conf.key_prefix, w->prefix_len);
    memset(dst + w->prefix_len, '0', len - w->prefix_len - digits);
    memcpy(dst + len - digits, number, digits);
    return len;
}

bool
workload_is_key(const struct workload *w, uint64_t key, const char *text, size_t len)
{
    char expected[WORKLOAD_KEY_MAX];
    return workload_put_key(w, key, expected) == len && memcmp(expected, text, len) == 0;
}

size_t
workload_value_len(const struct workload *w, uint64_t key)
{
    return size_of(&w->conf.value_size, key, PURPOSE_VALUE, 0, w->value_cap);
}

size_t
workload_key_len_max(const struct workload *w)
{
    return dist_size_max(&w->conf.key_size, w->key_min, WORKLOAD_KEY_MAX);
}

size_t
workload_value_len_max(const struct workload *w)
{
    return dist_size_max(&w->conf.value_size, 0, w->value_cap);
}
