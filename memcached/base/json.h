/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Writes JSON to a stream: commas, escapes and finite numbers are its business. A key is
 * NULL inside an array. One thread.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    unsigned depth;
    bool has_members; /* in the innermost object or array */
    bool is_line;     /* for the caller to set: no line ends within */
};

void json_init(struct json *j, FILE *out);

void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                 /* '}' or ']' */

/* A member of an object, or, with a NULL key, an element of an array. */
struct json_member {
    enum json_kind {
        JSON_IS_LEFT_OUT,
        JSON_IS_TEXT,
        JSON_IS_VALUE, /* text, without quotes where it is a number */
        JSON_IS_COUNT,
        JSON_IS_NUMBER, /* null when it is not finite */
        JSON_IS_EXACT,  /* finite; reads back as the same number */
        JSON_IS_BOOL,
        JSON_IS_END, /* of a row of members */
    } kind;
    const char *key;
    union {
        const char *text;
        uint64_t count;
        double number;
        bool is;
    };
};

static inline struct json_member
json_of_text(const char *key, const char *text)
{
    return (struct json_member){JSON_IS_TEXT, key, {.text = text}};
}

/* A number keeps its digits, all of them. */
static inline struct json_member
json_of_value(const char *key, const char *text)
{
    return (struct json_member){JSON_IS_VALUE, key, {.text = text}};
}

static inline struct json_member
json_of_count(const char *key, uint64_t count)
{
    return (struct json_member){JSON_IS_COUNT, key, {.count = count}};
}

static inline struct json_member
json_of_number(const char *key, double number)
{
    return (struct json_member){JSON_IS_NUMBER, key, {.number = number}};
}

static inline struct json_member
json_of_bool(const char *key, bool is)
{
    return (struct json_member){JSON_IS_BOOL, key, {.is = is}};
}

/* By the type of the value. */
#define JSON(key, value)                                                                 \
    _Generic((value), char *                                                             \
             : json_of_text, const char *                                                \
             : json_of_text, double                                                      \
             : json_of_number, bool                                                      \
             : json_of_bool, default                                                     \
             : json_of_count)(key, value)
#define JSON_EXACT(key, value)                                                           \
    ((struct json_member){JSON_IS_EXACT, key, {.number = value}})
#define JSON_NULL(key) JSON(key, (double)INFINITY)
#define JSON_IF(condition, member) ((condition) ? (member) : (struct json_member){0})

void json_members(struct json *j, const struct json_member *members);
#define json_put(j, ...)                                                                 \
    json_members(j, (const struct json_member[]){__VA_ARGS__, {.kind = JSON_IS_END}})
/* A whole object of members that are none. */
#define json_object_of(j, key, ...)                                                      \
    (json_open(j, key, '{'), json_put(j, __VA_ARGS__), json_close(j, '}'))
