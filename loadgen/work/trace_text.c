/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace.h"

#include <strings.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/rng.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define FINE_DIGITS_MAX 9
#define TIME_MAX_S UINT64_C(10000000000)

struct cell {
    const char *p;
    size_t len;
};

static bool
is_text(struct cell f, const char *text)
{
    return strlen(text) == f.len && strncasecmp(text, f.p, f.len) == 0;
}

/* ---- names -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum trace_verb verb;
} verbs[] = {
    {"get", TRACE_GET},       {"gets", TRACE_GETS},       {"set", TRACE_SET},
    {"add", TRACE_ADD},       {"replace", TRACE_REPLACE}, {"cas", TRACE_CAS},
    {"append", TRACE_APPEND}, {"prepend", TRACE_PREPEND}, {"delete", TRACE_DELETE},
    {"incr", TRACE_INCR},     {"decr", TRACE_DECR},       {"touch", TRACE_TOUCH},
    {"get_lease", TRACE_GET}, {"set_lease", TRACE_SET},
};

/* In any case of letters; TRACE_VERBS_END when it is none. */
static enum trace_verb
find_verb(const char *name, size_t len)
{
    for (size_t i = 0; i < COUNT(verbs); i++) {
        if (is_text((struct cell){name, len}, verbs[i].name)) {
            return verbs[i].verb;
        }
    }
    return TRACE_VERBS_END;
}

static const struct {
    const char *name;
    enum trace_column column;
    uint64_t unit_ns;
} columns[] = {
    {"time", TRACE_COLUMN_TIME, NSEC_PER_SEC},
    {"timestamp", TRACE_COLUMN_TIME, NSEC_PER_SEC},
    {"op_time", TRACE_COLUMN_TIME, NSEC_PER_SEC},
    {"time_ms", TRACE_COLUMN_TIME, NSEC_PER_MSEC},
    {"time_us", TRACE_COLUMN_TIME, NSEC_PER_USEC},
    {"time_ns", TRACE_COLUMN_TIME, 1},
    {"key", TRACE_COLUMN_KEY, 0},
    {"key_size", TRACE_COLUMN_KEY_SIZE, 0},
    {"size", TRACE_COLUMN_VALUE_SIZE, 0},
    {"value_size", TRACE_COLUMN_VALUE_SIZE, 0},
    {"client", TRACE_COLUMN_CLIENT, 0},
    {"client_id", TRACE_COLUMN_CLIENT, 0},
    {"op", TRACE_COLUMN_OP, 0},
    {"operation", TRACE_COLUMN_OP, 0},
    {"ttl", TRACE_COLUMN_TTL, 0},
    {"count", TRACE_COLUMN_COUNT, 0},
    {"op_count", TRACE_COLUMN_COUNT, 0},
};

static const char *
add_column(struct trace_layout *l, struct cell name, bool is_header)
{
    enum trace_column column = TRACE_COLUMN_NONE;
    size_t i = 0;
    while (i < COUNT(columns) && !is_text(name, columns[i].name)) {
        i++;
    }
    if (i < COUNT(columns)) {
        column = columns[i].column;
    } else if (!is_header && !is_text(name, "-")) {
        return "columns are time, time_ms, time_us, time_ns, key, key_size, size, "
               "client, op, "
               "ttl, count and - for any other";
    }
    if (l->count == TRACE_COLUMNS_MAX) {
        return "a trace has at most 32 columns";
    }
    for (unsigned c = 0; column != TRACE_COLUMN_NONE && c < l->count; c++) {
        if (l->columns[c] == column) {
            return "a column of a trace is named twice";
        }
    }
    if (column == TRACE_COLUMN_TIME) {
        l->has_time = true;
        l->unit_ns = columns[i].unit_ns;
    }
    l->key = column == TRACE_COLUMN_KEY ? l->count : l->key;
    l->columns[l->count++] = column;
    return NULL;
}

const char *
trace_layout_parse(struct trace_layout *l, const char *text, size_t len, bool is_header)
{
    const char *wrong = NULL, *end = text + len;
    *l = (struct trace_layout){.key = TRACE_COLUMNS_MAX, .unit_ns = NSEC_PER_SEC};
    for (const char *p = text; wrong == NULL && p <= end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma != NULL ? comma : end;
        wrong = add_column(l, (struct cell){p, (size_t)(stop - p)}, is_header);
        p = stop + 1;
    }
    return wrong != NULL                 ? wrong
           : l->key == TRACE_COLUMNS_MAX ? "a trace needs a column with the key"
                                         : NULL;
}

void
trace_layout_twitter(struct trace_layout *l)
{
    static const char text[] = "time,key,key_size,size,client,op,ttl";
    const char *wrong = trace_layout_parse(l, text, sizeof text - 1, false);
    must(wrong == NULL);
    l->has_open_key = true;
}

/* ---- fields ------------------------------------------------------------------------- */

/* Cuts the line at its commas. A key that may have some itself begins behind its own comma and
 * ends where as many fields are left as belong behind it. */
static const char *
split(const struct trace_layout *l, const char *line, size_t len, struct cell *fields)
{
    const char *p = line, *end = line + len;
    unsigned commas = 0;
    for (size_t i = 0; i < len; i++) {
        commas += line[i] == ',' ? 1 : 0;
    }
    if (commas + 1 < l->count) {
        return "fields are missing";
    }
    unsigned extra = l->has_open_key ? commas + 1 - l->count : 0;
    if (commas + 1 > l->count + extra) {
        return "more fields than columns";
    }
    for (unsigned i = 0; i < l->count; i++) {
        const char *stop = memchr(p, ',', (size_t)(end - p));
        for (unsigned n = i == l->key ? extra : 0; n > 0; n--) {
            stop = memchr(stop + 1, ',', (size_t)(end - stop - 1));
        }
        stop = stop != NULL ? stop : end;
        fields[i] = (struct cell){p, (size_t)(stop - p)};
        p = stop + 1;
    }
    return NULL;
}

/* Nothing is 0. */
static bool
take_number(struct cell f, uint64_t max, uint64_t *number)
{
    *number = 0;
    return f.len == 0 || (num_u64(f.p, f.len, number) && *number <= max);
}

/* "1583990400" or "1583990400.25", of seconds. */
static bool
take_time(struct cell f, uint64_t unit_ns, uint64_t *time_ns, unsigned *digits)
{
    const char *point = memchr(f.p, '.', f.len);
    size_t whole = point != NULL ? (size_t)(point - f.p) : f.len;
    uint64_t number, fine = 0, scale = unit_ns;
    *digits = point != NULL ? (unsigned)(f.len - whole - 1) : 0;
    if (!num_u64(f.p, whole, &number) || number > TIME_MAX_S * (NSEC_PER_SEC / unit_ns) ||
        *digits > FINE_DIGITS_MAX ||
        (point != NULL && !num_u64(point + 1, *digits, &fine))) {
        return false;
    }
    for (unsigned i = 0; i < *digits; i++) {
        scale /= 10;
    }
    *time_ns = number * unit_ns + fine * scale;
    return true;
}

static uint64_t
client_of(struct cell f)
{
    uint64_t client = 0;
    if (f.len == 0 || num_u64(f.p, f.len, &client)) {
        return client;
    }
    for (size_t i = 0; i < f.len; i++) {
        client = rng_mix(client, (unsigned char)f.p[i], i);
    }
    return client;
}

static const char *
take_key(struct cell f, uint64_t size, struct trace_record *r)
{
    if (f.len == 0) {
        return "the key is empty";
    }
    if (f.len > TRACE_KEY_MAX || size > TRACE_KEY_MAX) {
        return "the key is longer than 250 bytes";
    }
    for (size_t i = 0; i < f.len; i++) {
        if ((unsigned char)f.p[i] <= ' ' || f.p[i] == 0x7f) {
            return "the key has blanks or control characters";
        }
    }
    memcpy(r->key, f.p, f.len);
    r->key_len = f.len;
    if (size > f.len) {
        memset(r->key + f.len, '.', size - f.len);
        r->key_len = size;
    }
    return NULL;
}

enum trace_line
trace_line_parse(const struct trace_layout *l, const char *line, size_t len,
                 struct trace_record *r, struct trace_line_note *note)
{
    struct cell fields[TRACE_COLUMNS_MAX], by[TRACE_COLUMNS] = {{NULL, 0}};
    static const struct {
        enum trace_column column;
        uint64_t most;
        const char *wrong;
    } counts[] = {
        {TRACE_COLUMN_KEY_SIZE, UINT32_MAX, "the size of the key is not a number"},
        {TRACE_COLUMN_VALUE_SIZE, TRACE_VALUE_MAX,
         "the size of the value is not a number"},
        {TRACE_COLUMN_TTL, UINT32_MAX, "the time to live is not a number"},
        {TRACE_COLUMN_COUNT, TRACE_REPEAT_MAX, "the count is not a number"},
    };
    uint64_t number[TRACE_COLUMNS];
    *r = (struct trace_record){.verb = TRACE_GET};
    *note = (struct trace_line_note){.wrong = split(l, line, len, fields)};
    if (note->wrong != NULL) {
        return TRACE_LINE_BAD;
    }
    for (unsigned i = 0; i < l->count; i++) {
        by[l->columns[i]] = fields[i];
    }
    if (l->has_time &&
        !take_time(by[TRACE_COLUMN_TIME], l->unit_ns, &r->time_ns, &note->fine_digits)) {
        note->wrong = "the time is not a number";
    }
    for (size_t i = 0; note->wrong == NULL && i < COUNT(counts); i++) {
        enum trace_column c = counts[i].column;
        note->wrong =
            take_number(by[c], counts[i].most, &number[c]) ? NULL : counts[i].wrong;
    }
    if (note->wrong == NULL) {
        note->wrong = take_key(by[TRACE_COLUMN_KEY], number[TRACE_COLUMN_KEY_SIZE], r);
    }
    if (note->wrong != NULL) {
        return TRACE_LINE_BAD;
    }
    r->client = client_of(by[TRACE_COLUMN_CLIENT]);
    r->value_len = (uint32_t)number[TRACE_COLUMN_VALUE_SIZE];
    r->ttl = (uint32_t)number[TRACE_COLUMN_TTL];
    uint64_t count = number[TRACE_COLUMN_COUNT];
    r->repeat = count > 0 ? (uint32_t)count : 1;
    struct cell op = by[TRACE_COLUMN_OP];
    r->verb = op.p != NULL ? find_verb(op.p, op.len) : TRACE_GET;
    note->verb = op.p;
    note->verb_len = op.len;
    return r->verb == TRACE_VERBS_END ? TRACE_LINE_UNKNOWN : TRACE_LINE_GOOD;
}
