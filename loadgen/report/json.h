/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Writes JSON to a stream: commas, escapes and finite numbers are its business. A key is
 * NULL inside an array. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    unsigned depth;
    bool has_members; /* in the innermost object or array */
};

void json_init(struct json *j, FILE *out);

void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                 /* '}' or ']' */

void json_text(struct json *j, const char *key, const char *value);
void json_u64(struct json *j, const char *key, uint64_t value);
/* null when not finite. */
void json_number(struct json *j, const char *key, double value);
/* Finite; reads back as the same number. */
void json_exact(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
/* null. (jansson, where it is linked, has a json_null of its own.) */
void json_nothing(struct json *j, const char *key);
