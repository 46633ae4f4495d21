/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/workload.h"

#include <math.h>

#include "base/alloc.h"
#include "base/num.h"

/* Fixed, not the run's seed: a client must find what another has loaded. */
#define SIZE_SEED UINT64_C(0x6d636c6f61642d32)
#define CONTENT_SEED UINT64_C(0x6d636c6f61642d33)
/* A value begins at one of so many places of the content, which its key chooses. */
#define CONTENT_WINDOW 65536

enum size_purpose {
    PURPOSE_KEY = 0,
    PURPOSE_VALUE = 2,
    PURPOSE_EXPIRY = 4,
    PURPOSE_CONTENT = 6,
};

/* What traces are made of. */
static const char trace_digits[] = "00000000000000000001";

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

/* The number in hexadecimal digits, or in bytes; returns how many. */
static size_t
put_shifted(char *dst, uint64_t key, unsigned bits)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 1;
    while (n * bits < 64 && key >> (n * bits) != 0) {
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned part = (unsigned)(key >> ((n - 1 - i) * bits)) & ((1U << bits) - 1);
        dst[i] = bits == 4 ? digits[part] : (char)part;
    }
    return n;
}

static size_t
put_number(const struct workload *w, uint64_t key, char *dst)
{
    return likely(w->conf.key_format == KEY_DECIMAL)
               ? num_put_u64(dst, key)
               : put_shifted(dst, key, w->conf.key_format == KEY_HEX ? 4 : 8);
}

/* What most keys begin with, written beforehand: prefix and zeros. */
static void
set_stem(struct workload *w)
{
    if (w->key_len >= w->prefix_len + NUM_PADDED + 1 && !w->conf.is_replay &&
        w->conf.key_format == KEY_DECIMAL) {
        w->stem_len = w->key_len - NUM_PADDED;
        memset(w->stem, '0', w->stem_len);
        memcpy(w->stem, w->conf.key_prefix, w->prefix_len);
        w->stem_begin = short_text_of(
            w->stem, w->stem_len < SHORT_TEXT_MAX ? w->stem_len : SHORT_TEXT_MAX);
    }
}

const char *
workload_init(struct workload *w, const struct workload_conf *conf)
{
    must(conf->records > 0 && conf->records <= WORKLOAD_KEYS_END && conf->mix.count > 0);
    must(conf->verify >= 0 && conf->verify <= 1);
    char digits[NUM_U64_DIGITS];
    *w = (struct workload){.conf = *conf};
    w->prefix_len = strlen(conf->key_prefix);
    w->has_odds = conf->miss_ratio > 0 || conf->one_hit > 0;
    bool grows = mix_share(&conf->mix, MIX_INSERT) > 0 || conf->churn > 0;
    uint64_t keys_end = w->has_odds ? WORKLOAD_ODDS_END
                        : grows     ? WORKLOAD_KEYS_END
                                    : conf->records;
    w->digits = (unsigned)put_number(w, keys_end - 1, digits);
    w->key_min = w->prefix_len + w->digits;
    uint64_t end = dist_size_max(&conf->value_size, 0, UINT64_MAX);
    w->value_cap = end == UINT64_MAX ? WORKLOAD_VALUE_CAP : end;
    bool scans = mix_share(&conf->mix, MIX_SCAN) > 0;
    w->keys_max = (unsigned)dist_size_max(&conf->getcount, 1, WORKLOAD_GETCOUNT_MAX);
    w->getcount = conf->getcount.kind == DIST_FIXED ? w->keys_max : 0;
    w->keys_max =
        scans && w->keys_max < WORKLOAD_SCAN_MAX ? WORKLOAD_SCAN_MAX : w->keys_max;
    double counted = mix_share(&conf->mix, MIX_INCR);
    w->counter_every = counted > 0 ? (uint64_t)fmin(round(1 / counted), 1000) : 0;
    w->key_len = conf->key_size.kind == DIST_FIXED
                     ? dist_size(&conf->key_size, 0.5, w->key_min, WORKLOAD_KEY_MAX)
                     : 0;
    set_stem(w);
    popularity_init(&w->conf.popularity, conf->records);
    if (conf->key_size.kind == DIST_FIXED && conf->key_size.a > WORKLOAD_KEY_MAX) {
        return "keys are at most 250 bytes long";
    }
    if (w->value_cap > WORKLOAD_VALUE_MAX) {
        return "values are at most 1 GiB long";
    }
    return check_prefix(conf->key_prefix, w->prefix_len);
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
    double u = d->kind == DIST_FIXED ? 0.5 : unit_of(key, purpose);
    return dist_size(d, u, min, max);
}

static size_t
key_len(const struct workload *w, uint64_t key)
{
    if (likely(w->key_len > 0)) {
        return w->key_len;
    }
    return size_of(&w->conf.key_size, key, PURPOSE_KEY, w->key_min, WORKLOAD_KEY_MAX);
}

size_t
workload_put_key(const struct workload *w, uint64_t key, char *dst)
{
    char number[NUM_U64_DIGITS];
    if (likely(w->stem_len > 0)) {
        memcpy(dst, w->stem, w->stem_len);
        num_put_padded(dst + w->stem_len, key);
        return w->key_len;
    }
    if (unlikely(w->trace_buffer != NULL)) {
        const struct trace_buffer_slot *page = trace_buffer_slot(w->trace_buffer, key);
        memcpy(dst, page->key, page->key_len);
        return page->key_len;
    }
    size_t digits = put_number(w, key, number);
    size_t len = key_len(w, key);
    int filler = w->conf.key_format == KEY_BINARY ? 0 : '0';
    memcpy(dst, w->conf.key_prefix, w->prefix_len);
    memset(dst + w->prefix_len, filler, len - w->prefix_len - digits);
    memcpy(dst + len - digits, number, digits);
    return len;
}

bool
workload_is_key(const struct workload *w, uint64_t key, const char *text, size_t len)
{
    if (likely(w->stem_len > 0)) {
        const struct num_padded digits = num_padded_of(key);
        return workload_is_completed(w, &digits, text, len);
    }
    char expected[WORKLOAD_KEY_MAX];
    return workload_put_key(w, key, expected) == len && memcmp(expected, text, len) == 0;
}

size_t
workload_value_len(const struct workload *w, uint64_t key)
{
    if (unlikely(w->trace_buffer != NULL)) {
        return trace_buffer_slot(w->trace_buffer, key)->value_len;
    }
    if (workload_is_counter(w, key)) {
        return WORKLOAD_COUNTER_LEN;
    }
    return size_of(&w->conf.value_size, key, PURPOSE_VALUE, 0, w->value_cap);
}

size_t
workload_set_len(const struct workload *w, uint64_t key, uint64_t salt)
{
    const struct dist *size = &w->conf.value_size;
    if (likely(!w->conf.sizes_per_set) || w->trace_buffer != NULL ||
        workload_is_counter(w, key)) {
        return workload_value_len(w, key);
    }
    double u = unit_of(rng_mix(salt, key, PURPOSE_VALUE), PURPOSE_VALUE);
    return dist_size(size, u, 0, w->value_cap);
}

uint64_t
workload_drift(const struct workload *w, uint64_t elapsed_ns)
{
    double drift = w->conf.churn * (double)elapsed_ns / 1e9;
    return (uint64_t)fmin(drift, (double)(WORKLOAD_KEYS_END - w->conf.records));
}

int32_t
workload_expiry(const struct workload *w, uint64_t key)
{
    if (unlikely(w->trace_buffer != NULL)) {
        const struct trace_buffer_slot *page = trace_buffer_slot(w->trace_buffer, key);
        if (page->ttl > 0) {
            return page->ttl;
        }
        key = page->hash;
    }
    const struct dist *law = &w->conf.expiry;
    double u = law->kind == DIST_FIXED ? 0.5 : unit_of(key, PURPOSE_EXPIRY);
    /* A life that is only short does not become one without an end. */
    bool is_endless = dist_is_fixed_at(law, u) && dist_value(law, u) == 0;
    return is_endless ? 0 : (int32_t)dist_size(law, u, 1, WORKLOAD_EXPIRY_MAX);
}

bool
workload_has_same_records(const struct workload *a, const struct workload *b)
{
    return a->conf.records == b->conf.records && a->digits == b->digits &&
           a->counter_every == b->counter_every &&
           a->conf.key_format == b->conf.key_format && a->conf.flags == b->conf.flags &&
           strcmp(a->conf.key_prefix, b->conf.key_prefix) == 0 &&
           dist_is_same(&a->conf.key_size, &b->conf.key_size) &&
           dist_is_same(&a->conf.value_size, &b->conf.value_size) &&
           dist_is_same(&a->conf.expiry, &b->conf.expiry);
}

void
workload_open(struct workload *w)
{
    size_t len = workload_value_len_max(w) + CONTENT_WINDOW;
    struct rng rng;
    w->content = alloc_bytes(len);
    rng_init(&rng, CONTENT_SEED, 0);
    for (size_t i = 0; i < len; i++) {
        w->content[i] = (char)('a' + rng_below(&rng, 26));
    }
}

void
workload_close(struct workload *w)
{
    free(w->content);
    w->content = NULL;
}

const char *
workload_value(const struct workload *w, uint64_t key)
{
    static const char counter[WORKLOAD_COUNTER_LEN + 1] = "1000000000";
    if (workload_is_counter(w, key)) {
        return counter;
    }
    if (unlikely(w->trace_buffer != NULL)) {
        const struct trace_buffer_slot *page = trace_buffer_slot(w->trace_buffer, key);
        if (page->value_len <= WORKLOAD_TRACE_DIGITS) {
            return trace_digits + WORKLOAD_TRACE_DIGITS - page->value_len;
        }
        key = page->hash;
    }
    return w->content + rng_mix(SIZE_SEED, key, PURPOSE_CONTENT) % CONTENT_WINDOW;
}

static bool
has_only_digits(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] < '0' || bytes[i] > '9') {
            return false;
        }
    }
    return true;
}

bool
workload_is_value_len(const struct workload *w, uint64_t key, uint64_t len)
{
    /* Redis makes a counter of 0 where there is none to count up. */
    bool is_new_counter = workload_is_counter(w, key) && len < WORKLOAD_COUNTER_LEN;
    return len == workload_value_len(w, key) || (is_new_counter && len > 0);
}

bool
workload_is_value(const struct workload *w, uint64_t key, uint64_t at, const char *bytes,
                  size_t len)
{
    if (at + len > workload_value_len(w, key)) {
        return false;
    }
    /* A counter's value is unknown: it depends on how often it was counted up. */
    return workload_is_counter(w, key)
               ? has_only_digits(bytes, len)
               : memcmp(workload_value(w, key) + at, bytes, len) == 0;
}

size_t
workload_key_len_max(const struct workload *w)
{
    return w->conf.is_replay
               ? WORKLOAD_KEY_MAX
               : dist_size_max(&w->conf.key_size, w->key_min, WORKLOAD_KEY_MAX);
}

size_t
workload_value_len_max(const struct workload *w)
{
    size_t max = w->conf.is_replay ? WORKLOAD_TRACE_VALUE_MAX
                                   : dist_size_max(&w->conf.value_size, 0, w->value_cap);
    return w->counter_every != 0 && max < WORKLOAD_COUNTER_LEN ? WORKLOAD_COUNTER_LEN
                                                               : max;
}
