/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Makes the classes of a run out of what stands outside and what each says of itself.
 * Start-up thread.
 */
#pragma once

#include "loadgen/options/options.h"
#include "loadgen/options/words.h"

/* Fills o->classes, which are not settled yet. False with a line in `err`; what is there is
 * freed by options_fini. */
must_check bool classes_make(struct options *o, int argc, char **argv, FILE *err);
