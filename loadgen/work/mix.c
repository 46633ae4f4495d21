/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/mix.h"

#include <assert.h>

#include "base/num.h"
#include "base/part.h"

static const char *const names[] = {
    [MIX_GET] = "get",     [MIX_GETS] = "gets", [MIX_SET] = "set",
    [MIX_ADD] = "add",     [MIX_CAS] = "cas",   [MIX_DELETE] = "delete",
    [MIX_TOUCH] = "touch", [MIX_INCR] = "incr", [MIX_INSERT] = "insert",
    [MIX_SCAN] = "scan",   [MIX_RMW] = "rmw",
};
static_assert(sizeof names / sizeof names[0] == MIX_VERBS, "one name each");

struct weight {
    enum mix_verb verb;
    double value;
};

static int
heavier_first(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    if (x->value != y->value) {
        return x->value > y->value ? -1 : 1;
    }
    return (int)x->verb - (int)y->verb;
}

static void
build(struct mix *m, const double weights[MIX_VERBS], double sum)
{
    struct weight sorted[MIX_VERBS];
    double upto = 0;
    for (unsigned i = 0; i < MIX_VERBS; i++) {
        sorted[i] = (struct weight){(enum mix_verb)i, weights[i]};
    }
    qsort(sorted, MIX_VERBS, sizeof sorted[0], heavier_first);
    *m = (struct mix){.count = 0};
    for (unsigned i = 0; i < MIX_VERBS && sorted[i].value > 0; i++) {
        upto += sorted[i].value / sum;
        m->rows[m->count].verb = sorted[i].verb;
        m->rows[m->count++].upto = upto;
    }
}

/* One "verb:weight" into its place. */
static const char *
add_word(void *all, const char *word, size_t len)
{
    double *weights = all;
    const char *colon = memchr(word, ':', len);
    double weight;
    if (colon == NULL ||
        !num_double(colon + 1, len - (size_t)(colon - word) - 1, &weight) || weight < 0) {
        return "a mix is VERB:SHARE,VERB:SHARE and so on";
    }
    unsigned i = part_find(names, MIX_VERBS, word, (size_t)(colon - word));
    if (i < MIX_VERBS) {
        weights[i] += weight;
        return NULL;
    }
    return "the mix has get, gets, set, add, cas, delete, touch, incr, insert, scan, rmw";
}

const char *
mix_parse(void *mix, const char *text)
{
    double weights[MIX_VERBS] = {0}, sum = 0;
    const char *wrong = part_each(text, strlen(text), ',', add_word, weights);
    if (wrong != NULL) {
        return wrong;
    }
    for (unsigned i = 0; i < MIX_VERBS; i++) {
        sum += weights[i];
    }
    if (!(sum > 0)) {
        return "the shares of a mix are all 0";
    }
    build(mix, weights, sum);
    return NULL;
}

void
mix_of_update(struct mix *m, double share)
{
    must(share >= 0 && share <= 1);
    double weights[MIX_VERBS] = {[MIX_GET] = 1 - share, [MIX_SET] = share};
    build(m, weights, 1);
}

double
mix_share(const struct mix *m, enum mix_verb verb)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->rows[i].verb == verb) {
            return m->rows[i].upto - (i > 0 ? m->rows[i - 1].upto : 0);
        }
    }
    return 0;
}

double
mix_share_of_updates(const struct mix *m)
{
    double pairs = mix_share(m, MIX_CAS) + mix_share(m, MIX_RMW);
    double reads =
        mix_share(m, MIX_GET) + mix_share(m, MIX_GETS) + mix_share(m, MIX_SCAN);
    return (1 - reads) / (1 + pairs);
}
