/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whole numbers shared out by weights so that the shares add up exactly: the method of the
 * largest remainder. Pure.
 */
#pragma once

#include <stdint.h>

#include "base/must.h"

#define SPLIT_PARTS_MAX 1024
#define SPLIT_WEIGHT_MAX 1e6

/* shares[0..parts) of `total` by weights >= 0, not all 0. Equal remainders: the first of
 * them first. A weight of 0 gets nothing. */
void split_by_weight(uint64_t total, const double *weights, unsigned parts,
                     uint64_t *shares);
