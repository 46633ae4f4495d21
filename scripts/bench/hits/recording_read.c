/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A recording from a file, in the formats of mcload: keys get numbers in the order in
 * which they come. Hits are counted in its second half, as in what is made.
 */
#include <string.h>

#include "scripts/bench/hits/recording.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "loadgen/work/trace.h"

#define ROOM_FIRST 1024

/* Numbers of keys, by 64 bits of each: two of n keys have the same ones with a
 * probability of n^2 / 2^65. Open addressed. */
struct names {
    struct {
        uint64_t hash;
        uint32_t key, value_len;
    } * places;
    uint32_t room; /* a power of two */
    uint32_t count;
};

static uint64_t
hash_of(const struct trace_record *t)
{
    uint64_t hash = t->key_len;
    for (size_t i = 0; i < t->key_len; i++) {
        hash = rng_mix(hash, (unsigned char)t->key[i], i);
    }
    return hash | 1; /* 0 is a free place */
}

static uint32_t
place_of(const struct names *n, uint64_t hash)
{
    uint32_t i = (uint32_t)(hash >> 32) & (n->room - 1);
    while (n->places[i].hash != 0 && n->places[i].hash != hash) {
        i = (i + 1) & (n->room - 1);
    }
    return i;
}

static void
grow(struct names *n)
{
    struct names old = *n;
    n->room = old.room == 0 ? ROOM_FIRST : 2 * old.room;
    n->places = alloc_zeroed(n->room, sizeof *n->places);
    for (uint32_t i = 0; i < old.room; i++) {
        if (old.places[i].hash != 0) {
            n->places[place_of(n, old.places[i].hash)] = old.places[i];
        }
    }
    free(old.places);
}

static enum recording_verb
verb_of(enum trace_verb verb)
{
    switch (verb) {
    case TRACE_SET:
    case TRACE_REPLACE:
    case TRACE_CAS:
    case TRACE_APPEND:
    case TRACE_PREPEND:
        return RECORDING_SET;
    case TRACE_DELETE:
        return RECORDING_DELETE;
    default:
        return RECORDING_GET;
    }
}

/* Traces tell the length of a value in some of their lines only: the last one that was
 * told counts. */
static void
add(struct recording *r, struct names *n, const struct trace_record *t)
{
    if (4 * n->count >= 3 * n->room) {
        grow(n);
    }
    uint64_t hash = hash_of(t);
    uint32_t i = place_of(n, hash);
    if (n->places[i].hash == 0) {
        n->places[i].hash = hash;
        n->places[i].key = n->count++;
        r->key_lens = alloc_more(r->key_lens, n->room, 1);
        r->key_lens[n->places[i].key] =
            (uint8_t)(t->key_len > RECORDING_KEY_MIN ? t->key_len : RECORDING_KEY_MIN);
    }
    if (t->value_len > 0) {
        n->places[i].value_len = t->value_len;
    }
    for (uint32_t again = 0; again < t->repeat; again++) {
        if ((r->count & (r->count - 1)) == 0) {
            r->requests =
                alloc_more(r->requests, 2 * (size_t)r->count + 1, sizeof *r->requests);
        }
        uint32_t len = n->places[i].value_len;
        r->requests[r->count++] = (struct request){
            .key = n->places[i].key,
            .value_len = (len > 0 ? len : 1) & RECORDING_VALUE_BITS,
            .verb = verb_of(t->verb),
        };
    }
}

static const char *
read_all(struct recording *r, struct trace *t, char err[RECORDING_ERR_MAX])
{
    struct names n = {.room = 0};
    struct trace_record record;
    enum trace_status status;
    while ((status = trace_next(t, &record)) == TRACE_RECORD) {
        add(r, &n, &record);
    }
    for (uint32_t i = 0; i < n.room; i++) {
        if (n.places[i].hash != 0) {
            r->footprint += RECORDING_ITEM_OVERHEAD + r->key_lens[n.places[i].key] +
                            n.places[i].value_len;
        }
    }
    free(n.places);
    r->keys = r->records = n.count;
    r->counted_from = r->count / 2;
    if (status == TRACE_FAILED) {
        snprintf(err, RECORDING_ERR_MAX, "%s", trace_error(t));
        return err;
    }
    return r->count > 0 ? NULL : "there is no request in the trace";
}

const char *
recording_read(struct recording *r, const char *format_and_path,
               char err[RECORDING_ERR_MAX])
{
    char format[RECORDING_ERR_MAX];
    const char *path = strrchr(format_and_path, ':');
    if (path == NULL) {
        return "a trace is file:FORMAT:PATH; formats are those of mcload --trace-format";
    }
    snprintf(format, sizeof format, "%.*s", (int)(path - format_and_path),
             format_and_path);
    struct trace_conf conf = {.path = path + 1, .skips_bad = true};
    struct trace *t = NULL;
    const char *wrong = trace_format_parse(&conf, format);
    wrong = wrong != NULL ? wrong : trace_open(&t, &conf, err);
    wrong = wrong != NULL ? wrong : read_all(r, t, err);
    trace_close(&t);
    return wrong;
}
