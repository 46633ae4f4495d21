/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Words of wrk, wrk2 and memtier_benchmark. Start-up thread.
 */
#pragma once

#include "base/opt.h"

/* Adds a row behind the `count` rows of `all` for each such word: another name of one of them
 * where that means exactly the same, else a row that refuses and says what to write. Words for
 * rows that are not there are left out. Returns how many rows there are; `max` has room. */
size_t foreign_add(struct opt *all, size_t count, size_t max);
