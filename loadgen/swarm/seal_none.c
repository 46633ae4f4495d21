/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A build without OpenSSL: nothing can be proved, and nothing claims to be.
 */
#include "loadgen/swarm/seal.h"

const struct seal_ops *const seal_ops = NULL;
