/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A stream into memory that says so when memory runs out: one of open_memstream goes on without
 * what it had no room for. One thread.
 */
#pragma once

#include "base/must.h"

#define TEXT_OUT_BUFFER 4096

struct text_out {
    FILE *file;  /* to write to, from open to close */
    char *bytes; /* what was written; to be freed after close */
    size_t len, room;
    bool has_failed;
    char buffer[TEXT_OUT_BUFFER]; /* of the stream, which has to ask for none */
};

/* False: no memory. *t stays where it is until it is closed. */
must_check bool text_out_open(struct text_out *t);
/* False: memory was short for a part of it, and there are no bytes. */
must_check bool text_out_close(struct text_out *t);
