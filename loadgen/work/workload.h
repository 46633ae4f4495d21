/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is asked for: the key space, keys and values with their sizes, and the mix of
 * requests. A key is a number below `records`, or above when inserted later; its text, its
 * value's bytes, both sizes and its time to live are functions of that number alone, so that
 * any number of clients agree without talking and a reply can be checked without memory.
 * Constant after workload_open; any thread may draw, each with its own rng.
 */
#pragma once

#include "base/must.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/short_text.h"
#include "loadgen/work/trace_buffer.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/mix.h"
#include "loadgen/work/popularity.h"

#define WORKLOAD_KEY_MAX 250
#define WORKLOAD_PREFIX_MAX 200
#define WORKLOAD_GETCOUNT_MAX 1000
/* Sizes drawn from a law without upper end stop here; a fixed size may be larger. */
#define WORKLOAD_VALUE_CAP 1000000
#define WORKLOAD_VALUE_MAX (UINT64_C(1) << 30)

/* Keys of a scan. */
#define WORKLOAD_SCAN_MAX 100
/* Inserted keys have numbers below this. */
#define WORKLOAD_KEYS_END (UINT64_C(1) << 40)
/* Longer times to live are dates to memcached. */
#define WORKLOAD_EXPIRY_MAX 2592000
/* Above them are keys that are asked for and never stored, then those that one request alone
 * has; as many of each. */
#define WORKLOAD_ABSENT WORKLOAD_KEYS_END
#define WORKLOAD_ONCE (2 * WORKLOAD_KEYS_END)
#define WORKLOAD_ODDS_END (3 * WORKLOAD_KEYS_END)
/* Values of traces are at most so long: longer ones are cut. */
#define WORKLOAD_TRACE_VALUE_MAX WORKLOAD_VALUE_CAP
/* Those of at most so many bytes are digits, as incr wants them. */
#define WORKLOAD_TRACE_DIGITS 20
/* Values of keys that are counted up: digits, which incr does not make longer. */
#define WORKLOAD_COUNTER_LEN 10
/* Where there are leases: seconds that the one on a key lasts; and the share of its time to live
 * that a value has left when it is to be stored anew. */
#define WORKLOAD_LEASE_S 10
#define WORKLOAD_RECACHE_SHARE 10

/* How the number of a key is written. */
enum workload_key_format {
    KEY_DECIMAL,
    KEY_HEX,
    KEY_BINARY, /* its bytes, the highest first: only for protocols that take any byte */
};

struct workload_conf {
    uint64_t records;
    struct mix mix;
    bool fills;           /* a set follows each miss, */
    bool defers;          /* though not at once: */
    struct dist fetch;    /* after so many seconds */
    bool leases;          /* only with --on-miss=lease */
    double verify;        /* share of gets whose values are checked, 0 to 1 */
    struct dist getcount; /* keys of a get */
    double miss_ratio;    /* share of the keys of gets that are absent, 0 to 1 */
    double one_hit;       /* share of all keys that no other request has, 0 to 1 */
    double churn;         /* records a second that new ones replace */
    /* 1: each set draws the size of its value; nothing is verified */
    unsigned sizes_per_set;
    bool is_replay; /* keys are those of a trace: each thread's `book` */
    const char *key_prefix;
    enum workload_key_format key_format;
    uint32_t flags; /* of all values */
    struct dist key_size;
    struct dist value_size;
    struct dist expiry; /* seconds; 0 for ever */
    struct popularity popularity;
};

struct workload {
    struct workload_conf conf;
    size_t prefix_len;
    unsigned digits; /* or bytes, of the largest key number */
    size_t key_min;  /* prefix and digits */
    size_t key_len;  /* of all keys; 0: they differ */
    size_t stem_len; /* of stem, when all keys are that and NUM_PADDED digits; else 0 */
    char stem[WORKLOAD_KEY_MAX];
    struct short_text stem_begin; /* its first bytes */
    uint64_t value_cap;
    unsigned keys_max;      /* of one request */
    unsigned getcount;      /* keys of each get; 0: drawn */
    bool has_odds;          /* some keys are none of the records */
    uint64_t counter_every; /* keys divisible by it hold counters; 0: none does */
    char *content;          /* all values are parts of it */
    struct trace_buffer *trace_buffer; /* keys are its pages; NULL: they are numbers */
};

/* NULL, or a sentence saying what is wrong. key_prefix must live as long as w. */
must_check const char *workload_init(struct workload *w,
                                     const struct workload_conf *conf);
/* Whether the records of both have the same keys, values and times to live. */
bool workload_has_same_records(const struct workload *a, const struct workload *b);
/* Makes the bytes of values. */
void workload_open(struct workload *w);
void workload_close(struct workload *w);

/* The key that incr may use in place of this one. */
static inline uint64_t
workload_counter_of(const struct workload *w, uint64_t key)
{
    return key - key % w->counter_every;
}

static inline bool
workload_is_counter(const struct workload *w, uint64_t key)
{
    return w->counter_every != 0 && key % w->counter_every == 0;
}

/* Records that have been replaced so long after the begin of the run. */
uint64_t workload_drift(const struct workload *w, uint64_t elapsed_ns);

/* The working set is a window of `records` keys that moves up: which of them has the place of
 * record `key` once `drift` have been replaced. */
static inline uint64_t
workload_slide(const struct workload *w, uint64_t key, uint64_t drift)
{
    uint64_t records = w->conf.records;
    return drift == 0 ? key : drift + (key + records - drift % records) % records;
}

static inline bool
workload_is_absent(uint64_t key)
{
    return key >= WORKLOAD_ABSENT && key < WORKLOAD_ONCE;
}

/* While something needs the key. */
static inline void
workload_get_key(const struct workload *w, uint64_t key)
{
    if (unlikely(w->trace_buffer != NULL)) {
        trace_buffer_get(w->trace_buffer, key);
    }
}

/* Whether a set may follow when the key is not there: of a trace only where it has told how
 * long the value is. */
static inline bool
workload_can_fill(const struct workload *w, uint64_t key)
{
    return likely(w->trace_buffer == NULL)
               ? !workload_is_absent(key)
               : trace_buffer_slot(w->trace_buffer, key)->value_len > 0;
}

/* Writes the key's text, at most WORKLOAD_KEY_MAX bytes; returns its length. */
size_t workload_put_key(const struct workload *w, uint64_t key, char *dst);
/* The same where its stem is already; *digits is what comes behind that. */
static inline void
workload_complete_key(const struct workload *w, uint64_t key, char *dst,
                      struct num_padded *digits)
{
    if (likely(w->stem_len > 0)) {
        *digits = num_padded_of(key);
        memcpy(dst + w->stem_len, digits, sizeof *digits);
    } else {
        workload_put_key(w, key, dst);
    }
}
/* Whether text, as a reply has it, is the key's. */
bool workload_is_key(const struct workload *w, uint64_t key, const char *text,
                     size_t len);
/* The same of a key that has a stem, and digits that were kept (workload_complete_key). */
static inline bool
workload_is_completed(const struct workload *w, const struct num_padded *digits,
                      const char *text, size_t len)
{
    /* The digits are as many as stem_begin may have. */
    return len == w->key_len && short_text_begins(&w->stem_begin, text) &&
           memcmp(text + w->stem_len, digits, sizeof *digits) == 0 &&
           (w->stem_len <= SHORT_TEXT_MAX || memcmp(text, w->stem, w->stem_len) == 0);
}
size_t workload_value_len(const struct workload *w, uint64_t key);
/* The length of the value that a set stores: that, or with sizes_per_set one that depends on
 * `salt`, too, another for each set. */
size_t workload_set_len(const struct workload *w, uint64_t key, uint64_t salt);
/* workload_value_len_max bytes, those of the value first: after workload_open. */
const char *workload_value(const struct workload *w, uint64_t key);
/* Whether a value of that key may be so long. */
bool workload_is_value_len(const struct workload *w, uint64_t key, uint64_t len);
/* Whether these bytes, from the value's byte `at` on, are what the value has there. */
bool workload_is_value(const struct workload *w, uint64_t key, uint64_t at,
                       const char *bytes, size_t len);
/* Seconds to live, 0 for ever. */
int32_t workload_expiry(const struct workload *w, uint64_t key);

size_t workload_key_len_max(const struct workload *w);
size_t workload_value_len_max(const struct workload *w);
