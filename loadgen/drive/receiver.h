/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Answers to a drive's requests: read, told apart, counted. Its thread only.
 */
#pragma once

#include "loadgen/drive/drive.h"

/* Reads once from c and takes the answers in it; `at` is set to when that was. False when the
 * connection is gone. */
must_check bool answer_receive(struct drive *d, struct lconn *c, nsec_t *at);
