/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/samples.h"

#include <math.h>
#include <sys/mman.h>

#include "base/alloc.h"

#define PURPOSE UINT64_C(0x73616d706c65)
#define BYTES (SAMPLES_MAX * sizeof(struct sample))

void
samples_init(struct samples *s, double share)
{
    must(share > 0 && share <= 1);
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *s = (struct samples){.all = alloc_checked(p != MAP_FAILED ? p : NULL),
                          .share = share};
}

void
samples_fini(struct samples *s)
{
    if (s->all != NULL) {
        munmap(s->all, BYTES);
    }
    *s = (struct samples){.all = NULL};
}

void
samples_start(struct samples *s, uint64_t seed, uint64_t stream)
{
    s->count = s->dropped = s->passed_over = 0;
    rng_init(&s->rng, rng_mix(seed, 0, PURPOSE), stream);
    if (s->share > 0 && s->share < 1) {
        s->passed_over = samples_pass_over(s);
    }
}

/* The gaps of independent choices are geometric: one draw for each that is kept. */
uint64_t
samples_pass_over(struct samples *s)
{
    double gap = log(rng_unit(&s->rng)) / log1p(-s->share);
    return gap < 1e18 ? (uint64_t)gap : UINT64_C(1000000000000000000);
}
