/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Joins: looks random keys up in a hash table of BYTES, of which half are there. `join BYTES SECONDS`;
 * work: keys looked up. Prints wrong=, rows that were not those of their keys.
 */
#include "antagonist.h"

struct row {
    uint64_t key, value; /* key 0: none */
};

static uint64_t
hash(uint64_t key)
{
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

static struct row *
place_of(struct row *rows, size_t mask, uint64_t key)
{
    size_t at = hash(key) & mask;
    while (rows[at].key != 0 && rows[at].key != key) {
        at = (at + 1) & mask;
    }
    return &rows[at];
}

int
main(int argc, char **argv)
{
    size_t bytes = argc == 3 ? strtoull(argv[1], NULL, 10) : 0, size = 1;
    while (2 * size * sizeof(struct row) <= bytes) {
        size *= 2;
    }
    if (size < 4) {
        usage("join BYTES SECONDS");
    }
    struct row *rows = calloc(size, sizeof *rows);
    if (rows == NULL) {
        fail("join");
    }
    for (uint64_t key = 1; key <= size / 2; key++) {
        *place_of(rows, size - 1, key) = (struct row){key, ~key};
    }
    uint64_t work = 0, wrong = 0, seed = 1;
    begin(argv[2]);
    while (goes_on()) {
        for (int i = 0; i < 4096; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t key = 1 + (seed >> 33) % size;
            const struct row *row = place_of(rows, size - 1, key);
            wrong += key <= size / 2 ? row->value != ~key : row->key != 0;
        }
        work += 4096;
    }
    finish(work, "wrong=%llu", (unsigned long long)wrong);
    free(rows);
    return 0;
}
