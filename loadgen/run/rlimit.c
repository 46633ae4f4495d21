/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/rlimit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#define SPARE_FDS 64

void
rlimit_raise_files(const struct options *o, unsigned threads, FILE *err)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)threads * 2 + SPARE_FDS;
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        needed += (rlim_t)(c->threads * c->connections) * o->servers_len;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            fprintf(err, "mcload: cannot open %ju files: %s\n", (uintmax_t)needed,
                    strerror(errno));
        }
    }
}
