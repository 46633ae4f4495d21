/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The part of scripts/bench-hits that has to be quick.
 *
 * usage: hits list
 *        hits describe RECORDING SCALE SEED
 *        hits simulate RECORDING SCALE SEED MEGABYTES POLICY...
 *        hits play RECORDING SCALE SEED memcached|redis PORT
 * prints a line of JSON for each result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/bench/hits/cache.h"
#include "scripts/bench/hits/client.h"
#include "scripts/bench/hits/recording.h"

static _Noreturn void
refuse(const char *what)
{
    fprintf(stderr, "hits: %s\n", what);
    exit(1);
}

static struct client_score
play(struct cache *c, const struct recording *r)
{
    struct client_score score = {.gets = 0};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct request *q = &r->requests[i];
        uint32_t bytes = recording_bytes(r, q);
        c->now = i;
        if (q->verb == RECORDING_SET) {
            cache_set(c, q->key, bytes);
        } else if (q->verb == RECORDING_DELETE) {
            cache_delete(c, q->key);
        } else {
            bool is_hit = cache_get(c, q->key, bytes);
            bool counts = i >= r->counted_from && !q->is_aside;
            score.gets += counts;
            score.hits += counts && is_hit;
            score.bytes += counts ? q->value_len : 0;
            score.hit_bytes += counts && is_hit ? q->value_len : 0;
        }
    }
    return score;
}

static void
print_score(const char *name, const struct client_score *s)
{
    printf("{\"name\": \"%s\", \"gets\": %llu, \"hits\": %llu, \"bytes\": %llu, "
           "\"hit_bytes\": %llu, \"refused\": %llu}\n",
           name, (unsigned long long)s->gets, (unsigned long long)s->hits,
           (unsigned long long)s->bytes, (unsigned long long)s->hit_bytes,
           (unsigned long long)s->refused);
    fflush(stdout);
}

static void
simulate(const struct recording *r, uint64_t capacity, char **policies)
{
    uint32_t *next = recording_next_gets(r);
    for (; *policies != NULL; policies++) {
        struct cache c;
        uint64_t mean = r->footprint / r->records + 1;
        if (!cache_open(&c, *policies, r->keys, capacity, (uint32_t)(capacity / mean),
                        next)) {
            fprintf(stderr, "hits: there is no policy '%s': NAME or NAME:PARAMETER,...\n",
                    *policies);
            exit(1);
        }
        struct client_score score = play(&c, r);
        print_score(*policies, &score);
        cache_close(&c);
    }
    free(next);
}

int
main(int argc, char **argv)
{
    char err[RECORDING_ERR_MAX];
    struct recording r;
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "list") == 0) {
        recording_list(stdout);
        return 0;
    }
    if (argc < 5) {
        refuse("usage: hits list, describe, simulate or play; the head of its source has "
               "more");
    }
    const char *wrong =
        recording_open(&r, argv[2], atof(argv[3]), strtoull(argv[4], NULL, 10), err);
    if (wrong != NULL) {
        refuse(wrong);
    }
    if (strcmp(verb, "describe") == 0) {
        printf(
            "{\"requests\": %u, \"records\": %u, \"footprint\": %llu, \"share\": %g}\n",
            r.count, r.records, (unsigned long long)r.footprint, r.share);
    } else if (strcmp(verb, "simulate") == 0 && argc > 5) {
        simulate(&r, strtoull(argv[5], NULL, 10) << 20, argv + 6);
    } else if (strcmp(verb, "play") == 0 && argc == 7) {
        bool is_redis = strcmp(argv[5], "redis") == 0;
        struct client_score score;
        client_play(&r, is_redis ? CLIENT_REDIS : CLIENT_MEMCACHED, atoi(argv[6]),
                    &score);
        print_score(argv[5], &score);
    } else {
        refuse("no such verb, or too few arguments");
    }
    recording_close(&r);
    return 0;
}
