/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/samples.h"

#include <sys/mman.h>

#define BYTES (SAMPLES_MAX * sizeof(struct sample))

bool
samples_init(struct samples *s)
{
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *s = (struct samples){.all = p != MAP_FAILED ? p : NULL};
    return s->all != NULL;
}

void
samples_fini(struct samples *s)
{
    if (s->all != NULL) {
        munmap(s->all, BYTES);
    }
    *s = (struct samples){.all = NULL};
}
