/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * In place of saved.c where jansson is missing.
 */
#include "loadgen/tools/saved.h"

const struct saved_reader *const saved_reader = NULL;
