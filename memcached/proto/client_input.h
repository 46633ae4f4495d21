/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What parsers of replies are made of: lines, blocks of a known length and values, found in
 * input that is cut anywhere. A line or block lies in the input when it is whole there, else
 * in the struct; it is valid until the next call. Pure; the owner's thread only.
 */
#pragma once

#include "base/must.h"

/* Longest reply line understood; statistics and error texts stay far below. */
#define CLIENT_LINE_MAX 2048

struct client_text {
    const char *p;
    size_t len;
};

struct client_input {
    uint64_t data_left;     /* bytes of the value still to come */
    uint8_t terminator_len; /* bytes of the CR LF after a value still to come */
    uint16_t line_len;
    char line[CLIENT_LINE_MAX]; /* the part of a line or block cut by the end of input */
};

enum client_take {
    CLIENT_TAKEN,
    CLIENT_CUT, /* all input taken, it goes on */
    CLIENT_BAD, /* cannot become what is asked for */
};

void client_input_init(struct client_input *in);
/* Nothing half read. */
bool client_input_is_idle(const struct client_input *in);

/* All take from buf[*taken..len) and move *taken. */

/* A line that ends in CR LF; *line is without them. */
must_check enum client_take client_take_line(struct client_input *in, const char *buf,
                                             size_t len, size_t *taken,
                                             struct client_text *line);
/* `bytes` bytes, at most CLIENT_LINE_MAX. */
must_check enum client_take client_take_block(struct client_input *in, size_t bytes,
                                              const char *buf, size_t len, size_t *taken,
                                              struct client_text *block);
/* What there is of the value, CUT when there is nothing. Needs data_left above 0. */
must_check enum client_take client_take_data(struct client_input *in, const char *buf,
                                             size_t len, size_t *taken,
                                             struct client_text *data);
/* The CR LF after a value, as far as terminator_len says that it is to come. */
must_check enum client_take client_take_terminator(struct client_input *in,
                                                   const char *buf, size_t len,
                                                   size_t *taken);

/* Cuts the next word off; words are separated by one blank. */
struct client_text client_take_word(struct client_text *rest);
bool client_has_prefix(struct client_text text, const char *prefix);
bool client_is_text(struct client_text text, const char *expected);
