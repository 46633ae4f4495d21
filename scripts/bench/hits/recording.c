/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "scripts/bench/hits/recording.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/mix.h"
#include "loadgen/work/model.h"
#include "loadgen/work/popularity.h"

/* Caches get so many bytes, unless the keys are so small that their number is the
 * bound. */
#define CAPACITY 40e6
#define RECORDS_MAX 2000000
#define REQUESTS_MIN 200000
#define VALUE_MAX 1000000
#define LOOP_SHARE 0.9
/* So large a part of the keys is the loop, and is a scan that begins whenever a half
 * of as many requests as there are keys have been made. */
#define PART 8
#define SCANS_A_RECORD 2
/* A second tenant's share of the requests, and its keys for each of the first one. */
#define TENANT_SHARE 0.8
#define TENANT_KEYS 100

enum special { PLAIN, LONG, ONE_HIT, SHIFT, LOOP, SCAN, ALONE, TENANTS };

/* Requests and keys for each of the records; those of a tenant are the first one's. */
static const struct {
    unsigned requests, keys;
} shapes[] = {
    [PLAIN] = {2, 1},   [LONG] = {5, 1},
    [ONE_HIT] = {2, 1}, [SHIFT] = {4, 2},
    [LOOP] = {2, 1},    [SCAN] = {2, 1},
    [ALONE] = {10, 1},  [TENANTS] = {50, 1 + TENANT_KEYS},
};

enum purpose { PURPOSE_KEY, PURPOSE_VALUE };

static const struct row {
    const char *name, *workload, *popularity;
    enum special special;
    double share;
    const char *about;
} rows[] = {
#define RECORDING(...) {__VA_ARGS__},
#include "scripts/bench/hits/recordings.def"
#undef RECORDING
};

/* The sizes of the rows that are about popularity: Facebook's ETC without its many
 * values of a few bytes. */
static const struct model sizes = {
    .texts = {[MODEL_KEYSIZE] = "fb_key",
              [MODEL_VALUESIZE] = "pareto:0,214.476,0.348238",
              [MODEL_OPS] = "get:1"},
};

struct maker {
    struct recording *r;
    const struct row *row;
    struct dist key_size, value_size;
    struct popularity popularity;
    struct mix mix;
    struct rng rng;
    uint64_t seed;
    uint32_t records, fresh, looped; /* fresh: the next key that was not asked for yet */
    uint32_t least;                  /* requests */
};

static uint64_t
size_of(const struct maker *m, const struct dist *d, uint32_t key, enum purpose purpose,
        uint64_t min, uint64_t max)
{
    double u = ((double)(rng_mix(m->seed, key, purpose) >> 11) + 0.5) / 0x1p53;
    return dist_size(d, u, min, max);
}

static uint32_t
draw_key(struct maker *m, uint32_t i, bool *is_aside)
{
    enum special special = m->row->special;
    if (special == ONE_HIT && rng_unit(&m->rng) < 0.5) {
        return m->fresh++;
    }
    if (special == LOOP && rng_unit(&m->rng) < LOOP_SHARE) {
        return m->looped++ % (m->records / PART);
    }
    if (special == SCAN && i % (m->records / SCANS_A_RECORD) < m->records / PART) {
        *is_aside = true;
        return m->fresh++;
    }
    if (special == TENANTS && rng_unit(&m->rng) < TENANT_SHARE) {
        *is_aside = true;
        return m->records + m->looped++ % (TENANT_KEYS * m->records);
    }
    uint64_t rank = popularity_rank(&m->popularity, &m->rng);
    uint32_t key = (uint32_t)popularity_key_of(&m->popularity, rank);
    return special == SHIFT && i >= m->r->counted_from ? m->records + key : key;
}

static enum recording_verb
draw_verb(struct maker *m)
{
    switch (mix_draw(&m->mix, rng_unit(&m->rng))) {
    case MIX_SET:
    case MIX_CAS:
        return RECORDING_SET;
    case MIX_DELETE:
        return RECORDING_DELETE;
    default:
        return RECORDING_GET;
    }
}

static void
make_requests(struct maker *m)
{
    struct recording *r = m->r;
    enum special special = m->row->special;
    r->count = shapes[special].requests * m->records;
    r->count = r->count > m->least ? r->count : m->least;
    r->counted_from = r->count / 2;
    r->requests = alloc_zeroed(r->count, sizeof *r->requests);
    m->fresh = shapes[special].keys * m->records;
    for (uint32_t i = 0; i < r->count; i++) {
        bool is_aside = false;
        uint32_t key = draw_key(m, i, &is_aside);
        uint64_t len = size_of(m, &m->value_size, key, PURPOSE_VALUE, 1, VALUE_MAX);
        r->requests[i] = (struct request){
            .key = key,
            .value_len =
                (len << (special == SHIFT && key >= m->records)) & RECORDING_VALUE_BITS,
            .verb = draw_verb(m),
            .is_aside = is_aside,
        };
    }
    r->keys = m->fresh;
    r->key_lens = alloc_zeroed(r->keys, 1);
    for (uint32_t key = 0; key < r->keys; key++) {
        r->key_lens[key] = (uint8_t)size_of(m, &m->key_size, key, PURPOSE_KEY,
                                            RECORDING_KEY_MIN, RECORDING_KEY_MAX);
    }
    for (uint32_t key = 0; key < m->records; key++) {
        r->footprint += RECORDING_ITEM_OVERHEAD + r->key_lens[key] +
                        size_of(m, &m->value_size, key, PURPOSE_VALUE, 1, VALUE_MAX);
    }
}

static const char *
parse(struct maker *m, const struct model *model)
{
    const char *popularity =
        m->row->popularity != NULL ? m->row->popularity : model->texts[MODEL_POPULARITY];
    const char *wrong = dist_parse(&m->key_size, model->texts[MODEL_KEYSIZE]);
    wrong =
        wrong != NULL ? wrong : dist_parse(&m->value_size, model->texts[MODEL_VALUESIZE]);
    wrong = wrong != NULL ? wrong : popularity_parse(&m->popularity, popularity);
    return wrong != NULL ? wrong : mix_parse(&m->mix, model->texts[MODEL_OPS]);
}

static const char *
make(struct recording *r, const struct row *row, double scale, uint64_t seed)
{
    const struct model *model = model_find(row->workload);
    struct maker m = {.r = r, .row = row, .seed = seed};
    const char *wrong = parse(&m, model != NULL ? model : &sizes);
    if (wrong == NULL) {
        double item =
            RECORDING_ITEM_OVERHEAD + dist_mean(&m.key_size) + dist_mean(&m.value_size);
        m.records = (uint32_t)(scale * fmin(RECORDS_MAX, CAPACITY / row->share / item));
        popularity_init(&m.popularity, m.records);
        rng_init(&m.rng, seed, 0);
        m.least = (uint32_t)(scale * REQUESTS_MIN);
        r->share = row->share;
        r->records = m.records;
        make_requests(&m);
    }
    dist_fini(&m.key_size);
    dist_fini(&m.value_size);
    return wrong;
}

const char *
recording_open(struct recording *r, const char *name, double scale, uint64_t seed,
               char err[RECORDING_ERR_MAX])
{
    static const char file[] = "file:";
    *r = (struct recording){.share = 0.1};
    if (strncmp(name, file, sizeof file - 1) == 0) {
        return recording_read(r, name + sizeof file - 1, err);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return make(r, &rows[i], scale, seed);
        }
    }
    snprintf(err, RECORDING_ERR_MAX, "there is no recording '%s' (hits list)", name);
    return err;
}

void
recording_close(struct recording *r)
{
    free(r->requests);
    free(r->key_lens);
    *r = (struct recording){.requests = NULL};
}

void
recording_list(FILE *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fprintf(out, "%s\t%s\n", rows[i].name, rows[i].about);
    }
}

uint32_t *
recording_next_gets(const struct recording *r)
{
    uint32_t *next = alloc_zeroed(r->count, sizeof *next);
    uint32_t *coming = alloc_zeroed(r->keys, sizeof *coming);
    memset(coming, 0xff, r->keys * sizeof *coming);
    for (uint32_t i = r->count; i-- > 0;) {
        const struct request *q = &r->requests[i];
        next[i] = coming[q->key];
        coming[q->key] = q->verb == RECORDING_GET ? i : UINT32_MAX;
    }
    free(coming);
    return next;
}

size_t
recording_put_key(const struct recording *r, const struct request *q, char *dst)
{
    size_t len = r->key_lens[q->key];
    uint32_t rest = q->key;
    for (size_t i = len; i-- > 1; rest /= 10) {
        dst[i] = (char)('0' + rest % 10);
    }
    dst[0] = q->is_aside ? 'b' : 'k';
    return len;
}
