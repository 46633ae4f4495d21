/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How many hits one more page would bring to each class, and from which class to which one a page
 * goes therefore. For s3fifo. Pure; the caller takes the samples and moves the pages. Private to store/.
 *
 * Of a sample of keys it is remembered that their items left the main queue (`lost` in store/lru.h), and
 * which of them returned: were stored again. These were the items nearest to staying. What is
 * remembered lasts equally long for all classes, so a chunk more brings in that time as many hits as
 * items returned of those that left, and a page that many for each of its chunks.
 *
 * What is known halves whenever as many have left as are remembered: time is counted in evictions. A page
 * moves only if it brings three times the hits and that is more than chance: each move costs hits, too.
 */
#pragma once

#include "store/automove.h"

/* What is known of a class: sums that have been halved now and then. */
struct worth_class {
    double losses, returns;
    uint64_t last_losses, last_returns;
};

struct worth {
    double losses;  /* of all classes */
    double seconds; /* in which they were */
    uint32_t last_time;
    bool has_last;
    struct automove_move last_move;
    struct worth_class classes[STORE_CLASSES];
};

/* All zero is a beginning. A move that was decided on has ended. */
void worth_add(struct worth *w, const struct automove_sample *sample);
/* What to do after the last sample, once for each; false: nothing. */
must_check bool worth_decide(struct worth *w, const struct automove_sample *sample,
                             struct automove_move *move);
