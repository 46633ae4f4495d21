/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/sojourn.h"

struct sojourn
sojourn_of(const struct sojourn_times *t)
{
    struct sojourn s = {
        .loop = t->read_mono > t->ready_mono ? t->read_mono - t->ready_mono : 0};
    s.total = s.loop;
    if (t->rx_wall == 0 || t->rx_wall > t->read_wall ||
        t->read_wall - t->rx_wall > SOJOURN_MAX_NS) {
        return s;
    }
    nsec_t age = t->read_wall - t->rx_wall;
    s.has_kernel = true;
    if (age > s.loop) {
        s.kernel = age - s.loop;
        s.total = age;
    }
    return s;
}
