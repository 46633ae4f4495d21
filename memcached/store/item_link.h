/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Links of 32 bits between the items of a store: half of what pointers take. All slab memory of a
 * store lies in one range of addresses (pages.h), and a link says how many units behind its begin
 * an item begins, counted from 1; 0 is none. A unit is 8 bytes where that reaches, which is up to
 * 32 GiB, else the next power of two that does; chunks begin at multiples of it.
 *
 * Any thread; a range does not change. Private to store/.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LINK_SHIFT_LEAST 3u
#define LINK_BITS 32u

struct item;

struct link_range {
    char *origin; /* a unit before the first byte */
    unsigned shift;
};

static inline struct link_range
link_range(void *first, unsigned shift)
{
    return (struct link_range){(char *)first - ((size_t)1 << shift), shift};
}

/* Of the smallest unit with which links reach so many bytes. */
static inline unsigned
link_shift(uint64_t bytes)
{
    unsigned shift = LINK_SHIFT_LEAST;

    while (bytes >> LINK_BITS >> shift != 0) {
        shift++;
    }
    return shift;
}

static inline struct item *
link_item(const struct link_range *r, uint32_t link)
{
    return link != 0 ? (struct item *)(void *)(r->origin + ((size_t)link << r->shift))
                     : NULL;
}

/* Not of NULL. */
static inline uint32_t
link_to(const struct link_range *r, const struct item *it)
{
    return (uint32_t)((size_t)((const char *)it - r->origin) >> r->shift);
}
