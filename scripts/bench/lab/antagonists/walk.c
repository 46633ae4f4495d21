/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Reads memory line by line in a random order in which each read needs the one before: BYTES
 * of a cache are in use. `walk BYTES SECONDS`; work: lines read. Prints lines=, those that one lap reads.
 */
#include "antagonist.h"

struct line {
    struct line *next;
    char rest[LINE_BYTES - sizeof(struct line *)];
};

/* One circle through all lines (Sattolo). */
static struct line *
make_circle(size_t lines)
{
    struct line *at = aligned_alloc(LINE_BYTES, lines * sizeof *at);
    size_t *order = malloc(lines * sizeof *order);
    if (at == NULL || order == NULL) {
        fail("walk");
    }
    for (size_t i = 0; i < lines; i++) {
        order[i] = i;
    }
    for (size_t i = lines - 1; i > 0; i--) {
        size_t other = (size_t)random() % i;
        size_t swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    for (size_t i = 0; i < lines; i++) {
        at[order[i]].next = &at[order[(i + 1) % lines]];
    }
    free(order);
    return at;
}

static size_t
lap_of(const struct line *first)
{
    size_t lines = 1;
    for (const struct line *at = first->next; at != first; at = at->next) {
        lines++;
    }
    return lines;
}

int
main(int argc, char **argv)
{
    size_t lines = argc == 3 ? strtoull(argv[1], NULL, 10) / sizeof(struct line) : 0;
    if (lines == 0) {
        usage("walk BYTES SECONDS");
    }
    struct line *first = make_circle(lines);
    begin(argv[2]);
    const struct line *volatile at = first;
    uint64_t work = 0;
    while (goes_on()) {
        const struct line *next = at;
        for (int i = 0; i < 4096; i++) {
            next = next->next;
        }
        at = next;
        work += 4096;
    }
    stop();
    finish(work, "lines=%zu", lap_of(first));
    free(first);
    return 0;
}
