/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes the sentence that says why, and returns false. */
__attribute__((format(printf, 3, 4))) bool fail_because(char *err, size_t err_len,
                                                        const char *format, ...);
