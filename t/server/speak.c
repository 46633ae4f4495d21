/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "speak.h"

#include <arpa/inet.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 1024
#define KEY_MAX 250
#define BINARY_HEADER 24
#define ERROR_TEXT "told to fail"

struct text {
    const char *p;
    size_t len;
};

struct item {
    char key[KEY_MAX + 1];
    char *value;
    size_t len;
    unsigned flags;
    uint64_t cas;
    bool is_there;
};

/* ---- bytes and the store ----------------------------------------------------------- */

void
bytes_add(struct bytes *b, const char *p, size_t len)
{
    if (b->len + len > b->cap) {
        b->cap = 2 * b->cap + len + 256;
        b->p = realloc(b->p, b->cap);
        if (b->p == NULL) {
            abort();
        }
    }
    memcpy(b->p + b->len, p, len);
    b->len += len;
}

void
bytes_addf(struct bytes *b, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    bytes_add(b, text, (size_t)n);
}

static void *tree;
static uint64_t last_cas;

static int
compare_items(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->key, ((const struct item *)b)->key);
}

/* The item of that key, made when it is wanted; NULL when it is not there. */
static struct item *
item_of(struct text key, bool is_wanted)
{
    struct item *it = calloc(1, sizeof *it);
    if (it == NULL || key.len > KEY_MAX) {
        abort();
    }
    memcpy(it->key, key.p, key.len);
    struct item **found =
        is_wanted ? tsearch(it, &tree, compare_items) : tfind(it, &tree, compare_items);
    if (found == NULL || *found != it) {
        free(it);
    }
    return found != NULL && (is_wanted || (*found)->is_there) ? *found : NULL;
}

static void
store_value(struct text key, const char *value, size_t len, unsigned flags)
{
    struct item *it = item_of(key, true);
    free(it->value);
    it->value = malloc(len + 1);
    if (it->value == NULL) {
        abort();
    }
    memcpy(it->value, value, len);
    it->value[len] = '\0';
    it->len = len;
    it->flags = flags;
    it->cas = ++last_cas;
    it->is_there = true;
}

/* What a get finds. */
static struct item *
find(const struct speak_conf *conf, struct text key)
{
    struct item *it = item_of(key, false);
    if (it == NULL && conf->invented > 0) {
        char *value = malloc(conf->invented);
        if (value == NULL) {
            abort();
        }
        memset(value, 'x', conf->invented);
        store_value(key, value, conf->invented, 0);
        free(value);
        it = item_of(key, false);
    }
    return it;
}

static void
add_value(struct bytes *reply, struct spoken *what, const struct item *it)
{
    what->value_at = reply->len;
    what->value_len = it->len;
    bytes_add(reply, it->value, it->len);
}

enum change {
    DONE,
    ABSENT,
    PRESENT,
    CHANGED, /* since the cas was read */
};

/* `mode` as in the text protocol: s(et), a(dd), r(eplace), c(as). */
static enum change
change(char mode, struct text key, const char *value, size_t len, unsigned flags,
       uint64_t cas)
{
    struct item *it = item_of(key, false);
    if ((mode == 'r' || mode == 'c') && it == NULL) {
        return ABSENT;
    }
    if (mode == 'a' && it != NULL) {
        return PRESENT;
    }
    if (mode == 'c' && it->cas != cas) {
        return CHANGED;
    }
    store_value(key, value, len, flags);
    return DONE;
}

static bool
forget(struct text key)
{
    struct item *it = item_of(key, false);
    if (it != NULL) {
        it->is_there = false;
    }
    return it != NULL;
}

static bool
count_up(struct text key, uint64_t by, uint64_t *number)
{
    char digits[32];
    struct item *it = item_of(key, false);
    if (it == NULL) {
        return false;
    }
    *number = strtoull(it->value, NULL, 10) + by;
    int n = snprintf(digits, sizeof digits, "%ju", (uintmax_t)*number);
    store_value(key, digits, (size_t)n, it->flags);
    return true;
}

/* ---- text and meta ----------------------------------------------------------------- */

static unsigned
split(const char *line, size_t len, struct text *words)
{
    unsigned n = 0;
    size_t at = 0;
    while (at < len && n < WORDS_MAX) {
        while (at < len && line[at] == ' ') {
            at++;
        }
        size_t start = at;
        while (at < len && line[at] != ' ') {
            at++;
        }
        if (at > start) {
            words[n++] = (struct text){line + start, at - start};
        }
    }
    return n;
}

static bool
is_word(struct text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.p, word, t.len) == 0;
}

static uint64_t
number_of(struct text t)
{
    return strtoull(t.p, NULL, 10); /* ends at the blank or line end behind it */
}

static void
text_get(const struct speak_conf *conf, const struct text *words, unsigned n,
         struct bytes *reply, struct spoken *what)
{
    bool with_cas = is_word(words[0], "gets");
    what->is_read = true;
    for (unsigned i = 1; i < n; i++) {
        struct item *it = find(conf, words[i]);
        if (it == NULL) {
            continue;
        }
        bytes_addf(reply, "VALUE %s %u %zu", it->key, it->flags, it->len);
        if (with_cas) {
            bytes_addf(reply, " %ju", (uintmax_t)it->cas);
        }
        bytes_add(reply, "\r\n", 2);
        add_value(reply, what, it);
        bytes_add(reply, "\r\n", 2);
    }
    bytes_addf(reply, "END\r\n");
}

static void
say_change(enum change done, bool is_meta, struct bytes *reply)
{
    static const char *const text[] = {"STORED", "NOT_FOUND", "NOT_STORED", "EXISTS"};
    static const char *const meta[] = {"HD", "NF", "NS", "EX"};
    bytes_addf(reply, "%s\r\n", (is_meta ? meta : text)[done]);
}

/* A line with a value behind it; -1 when it is not one, 0 when the value goes on. */
static ssize_t
text_store(const struct text *words, unsigned n, size_t line, const char *buf, size_t len,
           struct bytes *reply)
{
    bool is_meta = is_word(words[0], "ms");
    char mode = is_meta ? 's' : words[0].p[0];
    uint64_t cas = n > 5 ? number_of(words[5]) : 0;
    unsigned flags = is_meta ? 0 : (unsigned)number_of(words[2]);
    if (n < (is_meta ? 3U : 5U)) {
        return -1;
    }
    size_t bytes = number_of(words[is_meta ? 2 : 4]);
    if (len < line + bytes + 2) {
        return 0;
    }
    for (unsigned i = 3; is_meta && i < n; i++) {
        struct text flag = {words[i].p + 1, words[i].len - 1};
        if (words[i].p[0] == 'F') {
            flags = (unsigned)number_of(flag);
        } else if (words[i].p[0] == 'C') {
            cas = number_of(flag);
            mode = 'c';
        } else if (is_word(words[i], "ME")) {
            mode = 'a';
        }
    }
    say_change(change(mode, words[1], buf + line, bytes, flags, cas), is_meta, reply);
    return (ssize_t)(line + bytes + 2);
}

static bool
has_flag(const struct text *words, unsigned n, char flag)
{
    for (unsigned i = 2; i < n; i++) {
        if (words[i].p[0] == flag) {
            return true;
        }
    }
    return false;
}

static void
meta_get(const struct speak_conf *conf, const struct text *words, unsigned n,
         struct bytes *reply, struct spoken *what)
{
    struct item *it = find(conf, words[1]);
    what->is_read = true;
    if (it == NULL) {
        bytes_addf(reply, "%s", has_flag(words, n, 'q') ? "" : "EN\r\n");
        return;
    }
    bool has_value = has_flag(words, n, 'v');
    bytes_addf(reply, has_value ? "VA %zu" : "HD", it->len);
    for (unsigned i = 2; i < n; i++) {
        switch (words[i].p[0]) {
        case 'k':
            bytes_addf(reply, " k%s", it->key);
            break;
        case 'f':
            bytes_addf(reply, " f%u", it->flags);
            break;
        case 'c':
            bytes_addf(reply, " c%ju", (uintmax_t)it->cas);
            break;
        }
    }
    bytes_add(reply, "\r\n", 2);
    if (has_value) {
        add_value(reply, what, it);
        bytes_add(reply, "\r\n", 2);
    }
}

static void
meta_arithmetic(const struct text *words, unsigned n, struct bytes *reply)
{
    uint64_t number, by = 1;
    for (unsigned i = 2; i < n; i++) {
        if (words[i].p[0] == 'D') {
            by = strtoull(words[i].p + 1, NULL, 10);
        }
    }
    if (count_up(words[1], by, &number)) {
        char digits[32];
        int len = snprintf(digits, sizeof digits, "%ju", (uintmax_t)number);
        bytes_addf(reply, "VA %d\r\n%s\r\n", len, digits);
    } else {
        bytes_addf(reply, "NF\r\n");
    }
}

static bool
text_order(const struct speak_conf *conf, const struct text *words, unsigned n,
           struct bytes *reply, struct spoken *what)
{
    uint64_t number;
    if (is_word(words[0], "get") || is_word(words[0], "gets")) {
        text_get(conf, words, n, reply, what);
    } else if (is_word(words[0], "mg") && n > 1) {
        meta_get(conf, words, n, reply, what);
    } else if (is_word(words[0], "mn")) {
        bytes_addf(reply, "MN\r\n");
    } else if (is_word(words[0], "delete") && n > 1) {
        bytes_addf(reply, forget(words[1]) ? "DELETED\r\n" : "NOT_FOUND\r\n");
    } else if (is_word(words[0], "md") && n > 1) {
        bytes_addf(reply, forget(words[1]) ? "HD\r\n" : "NF\r\n");
    } else if (is_word(words[0], "touch") && n > 1) {
        bytes_addf(reply, item_of(words[1], false) ? "TOUCHED\r\n" : "NOT_FOUND\r\n");
    } else if (is_word(words[0], "incr") && n > 2) {
        if (count_up(words[1], number_of(words[2]), &number)) {
            bytes_addf(reply, "%ju\r\n", (uintmax_t)number);
        } else {
            bytes_addf(reply, "NOT_FOUND\r\n");
        }
    } else if (is_word(words[0], "ma") && n > 1) {
        meta_arithmetic(words, n, reply);
    } else if (is_word(words[0], "version")) {
        bytes_addf(reply, "VERSION 1.4.39\r\n");
    } else if (is_word(words[0], "stats")) {
        bytes_addf(reply, "STAT pid 1\r\nSTAT evictions 0\r\nEND\r\n");
    } else {
        return false;
    }
    return true;
}

static ssize_t
speak_text(const struct speak_conf *conf, const char *buf, size_t len,
           struct bytes *reply, struct spoken *what)
{
    static struct text words[WORDS_MAX];
    const char *end = memchr(buf, '\n', len);
    if (end == NULL) {
        return 0;
    }
    size_t line = (size_t)(end - buf) + 1;
    size_t text = line > 1 && end[-1] == '\r' ? line - 2 : line - 1;
    unsigned n = split(buf, text, words);
    if (n == 0) {
        return -1;
    }
    snprintf(what->verb, sizeof what->verb, "%.*s", (int)words[0].len, words[0].p);
    if (is_word(words[0], "set") || is_word(words[0], "add") || is_word(words[0], "ms") ||
        is_word(words[0], "replace") || is_word(words[0], "cas")) {
        return text_store(words, n, line, buf, len, reply);
    }
    if (is_word(words[0], "quit")) {
        what->closes = true;
    } else if (!text_order(conf, words, n, reply, what)) {
        bytes_addf(reply, "ERROR\r\n");
    }
    return (ssize_t)line;
}

/* ---- binary ------------------------------------------------------------------------ */

enum {
    B_GET = 0x00,
    B_SET = 0x01,
    B_ADD = 0x02,
    B_REPLACE = 0x03,
    B_DELETE = 0x04,
    B_INCR = 0x05,
    B_GETQ = 0x09,
    B_NOOP = 0x0a,
    B_GETK = 0x0c,
    B_GETKQ = 0x0d,
    B_TOUCH = 0x1c,
    B_AUTH = 0x21,
};

enum {
    B_OK = 0,
    B_NOT_FOUND = 1,
    B_EXISTS = 2,
    B_UNKNOWN = 0x81,
    B_INTERNAL = 0x84,
};

static uint64_t
take_number(const char *p, unsigned bytes)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < bytes; i++) {
        n = n << 8 | (unsigned char)p[i];
    }
    return n;
}

/* The header of the reply to `request`, with the lengths of what the caller adds. */
static void
add_header(struct bytes *reply, const char *request, unsigned status, size_t extras,
           size_t key, size_t body, uint64_t cas)
{
    char h[BINARY_HEADER] = {(char)0x81, request[1]};
    h[2] = (char)(key >> 8);
    h[3] = (char)key;
    h[4] = (char)extras;
    h[6] = (char)(status >> 8);
    h[7] = (char)status;
    uint32_t total = htonl((uint32_t)body);
    memcpy(h + 8, &total, sizeof total);
    memcpy(h + 12, request + 12, 4);
    for (unsigned i = 0; i < 8; i++) {
        h[23 - i] = (char)(cas >> (8 * i));
    }
    bytes_add(reply, h, sizeof h);
}

static void
binary_status(struct bytes *reply, const char *request, unsigned status)
{
    add_header(reply, request, status, 0, 0, 0, 0);
}

static void
binary_get(const struct speak_conf *conf, const char *request, struct text key,
           struct bytes *reply, struct spoken *what)
{
    unsigned opcode = (unsigned char)request[1];
    struct item *it = find(conf, key);
    size_t key_len = opcode == B_GETK || opcode == B_GETKQ ? key.len : 0;
    what->is_read = true;
    if (it == NULL) {
        if (opcode == B_GET || opcode == B_GETK) {
            binary_status(reply, request, B_NOT_FOUND);
        }
        return;
    }
    uint32_t flags = htonl(it->flags);
    add_header(reply, request, B_OK, sizeof flags, key_len,
               sizeof flags + key_len + it->len, it->cas);
    bytes_add(reply, (char *)&flags, sizeof flags);
    bytes_add(reply, key.p, key_len);
    add_value(reply, what, it);
}

static void
binary_store(const char *request, const char *extras, struct text key, struct text value,
             struct bytes *reply)
{
    static const unsigned statuses[] = {B_OK, B_NOT_FOUND, B_EXISTS, B_EXISTS};
    unsigned opcode = (unsigned char)request[1];
    uint64_t cas = take_number(request + 16, 8);
    char mode = opcode == B_ADD ? 'a' : opcode == B_REPLACE ? 'r' : cas != 0 ? 'c' : 's';
    unsigned flags = (unsigned)take_number(extras, 4);
    binary_status(reply, request,
                  statuses[change(mode, key, value.p, value.len, flags, cas)]);
}

static void
binary_incr(const char *request, const char *extras, struct text key, struct bytes *reply)
{
    uint64_t number;
    char body[8];
    if (!count_up(key, take_number(extras, 8), &number)) {
        binary_status(reply, request, B_NOT_FOUND);
        return;
    }
    for (unsigned i = 0; i < 8; i++) {
        body[7 - i] = (char)(number >> (8 * i));
    }
    add_header(reply, request, B_OK, 0, 0, sizeof body, last_cas);
    bytes_add(reply, body, sizeof body);
}

static ssize_t
speak_binary(const struct speak_conf *conf, const char *buf, size_t len,
             struct bytes *reply, struct spoken *what)
{
    if (len < BINARY_HEADER) {
        return 0;
    }
    size_t key_len = take_number(buf + 2, 2), extras = (unsigned char)buf[4];
    size_t body = take_number(buf + 8, 4);
    if (key_len > KEY_MAX || extras + key_len > body) {
        return -1;
    }
    if (len < BINARY_HEADER + body) {
        return 0;
    }
    const char *at = buf + BINARY_HEADER;
    struct text key = {at + extras, key_len};
    struct text value = {key.p + key_len, body - extras - key_len};
    unsigned opcode = (unsigned char)buf[1];
    snprintf(what->verb, sizeof what->verb, "0x%02x", opcode);
    switch (opcode) {
    case B_GET:
    case B_GETQ:
    case B_GETK:
    case B_GETKQ:
        binary_get(conf, buf, key, reply, what);
        break;
    case B_SET:
    case B_ADD:
    case B_REPLACE:
        if (extras != 8) {
            return -1;
        }
        binary_store(buf, at, key, value, reply);
        break;
    case B_DELETE:
        binary_status(reply, buf, forget(key) ? B_OK : B_NOT_FOUND);
        break;
    case B_INCR:
        binary_incr(buf, at, key, reply);
        break;
    case B_TOUCH:
        binary_status(reply, buf, item_of(key, false) ? B_OK : B_NOT_FOUND);
        break;
    case B_NOOP:
    case B_AUTH:
        binary_status(reply, buf, B_OK);
        break;
    default:
        binary_status(reply, buf, B_UNKNOWN);
        break;
    }
    return (ssize_t)(BINARY_HEADER + body);
}

/* ---- RESP -------------------------------------------------------------------------- */

/* "*N", then N of "$LEN", each with its bytes. Returns the bytes used, as speak. */
static ssize_t
take_array(const char *buf, size_t len, struct text *words, unsigned *n)
{
    const char *at = buf, *end = buf + len;
    const char *line = memchr(at, '\n', len);
    if (line == NULL) {
        return 0;
    }
    *n = (unsigned)strtoul(at + 1, NULL, 10);
    at = line + 1;
    if (*n == 0 || *n > WORDS_MAX) {
        return -1;
    }
    for (unsigned i = 0; i < *n; i++) {
        line = memchr(at, '\n', (size_t)(end - at));
        if (line == NULL) {
            return 0;
        }
        if (*at != '$') {
            return -1;
        }
        words[i] = (struct text){line + 1, strtoul(at + 1, NULL, 10)};
        if ((size_t)(end - words[i].p) < words[i].len + 2) {
            return 0;
        }
        at = words[i].p + words[i].len + 2;
    }
    return at - buf;
}

static void
resp_value(const struct speak_conf *conf, struct text key, struct bytes *reply,
           struct spoken *what)
{
    struct item *it = find(conf, key);
    what->is_read = true;
    if (it == NULL) {
        bytes_addf(reply, "$-1\r\n");
        return;
    }
    bytes_addf(reply, "$%zu\r\n", it->len);
    add_value(reply, what, it);
    bytes_add(reply, "\r\n", 2);
}

static void
resp_set(const struct text *words, unsigned n, struct bytes *reply)
{
    bool is_add = false;
    for (unsigned i = 3; i < n; i++) {
        is_add = is_add || is_word(words[i], "NX");
    }
    enum change done =
        change(is_add ? 'a' : 's', words[1], words[2].p, words[2].len, 0, 0);
    bytes_addf(reply, done == DONE ? "+OK\r\n" : "$-1\r\n");
}

static ssize_t
speak_resp(const struct speak_conf *conf, const char *buf, size_t len,
           struct bytes *reply, struct spoken *what)
{
    static struct text words[WORDS_MAX];
    unsigned n;
    uint64_t number;
    ssize_t used = take_array(buf, len, words, &n);
    if (used <= 0) {
        return used;
    }
    snprintf(what->verb, sizeof what->verb, "%.*s", (int)words[0].len, words[0].p);
    if (is_word(words[0], "GET") && n == 2) {
        resp_value(conf, words[1], reply, what);
    } else if (is_word(words[0], "MGET")) {
        bytes_addf(reply, "*%u\r\n", n - 1);
        for (unsigned i = 1; i < n; i++) {
            resp_value(conf, words[i], reply, what);
        }
    } else if (is_word(words[0], "SET") && n >= 3) {
        resp_set(words, n, reply);
    } else if (is_word(words[0], "DEL") && n == 2) {
        bytes_addf(reply, ":%d\r\n", forget(words[1]));
    } else if ((is_word(words[0], "EXPIRE") || is_word(words[0], "TOUCH")) && n >= 2) {
        bytes_addf(reply, ":%d\r\n", item_of(words[1], false) != NULL);
    } else if (is_word(words[0], "INCRBY") && n == 3) {
        number = strtoull(words[2].p, NULL, 10);
        if (!count_up(words[1], number, &number)) {
            store_value(words[1], words[2].p, words[2].len, 0);
        }
        bytes_addf(reply, ":%ju\r\n", (uintmax_t)number);
    } else if (is_word(words[0], "AUTH")) {
        bytes_addf(reply, "+OK\r\n");
    } else {
        bytes_addf(reply, "-ERR unknown command\r\n");
    }
    return used;
}

/* ---- HTTP -------------------------------------------------------------------------- */

static ssize_t
speak_http(const struct speak_conf *conf, const char *buf, size_t len,
           struct bytes *reply, struct spoken *what)
{
    const char *end = memmem(buf, len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    const char *key = buf + 5; /* "GET /" */
    const char *blank = memchr(key, ' ', (size_t)(end - key));
    if (blank == NULL || blank - key > KEY_MAX) {
        return -1;
    }
    struct item *it = find(conf, (struct text){key, (size_t)(blank - key)});
    snprintf(what->verb, sizeof what->verb, "GET");
    what->is_read = true;
    what->closes = conf->http != NULL && strstr(conf->http, "close") != NULL;
    bytes_addf(reply, "HTTP/1.1 %s\r\n", it != NULL ? "200 OK" : "404 Not Found");
    if (conf->http != NULL) {
        bytes_addf(reply, "%s\r\n", conf->http);
    }
    bytes_addf(reply, "Content-Length: %zu\r\n\r\n", it != NULL ? it->len : 0);
    if (it != NULL) {
        add_value(reply, what, it);
    }
    return end + 4 - buf;
}

/* ---- any --------------------------------------------------------------------------- */

static bool
is_http(const char *buf, size_t len)
{
    static const char get[] = "GET /";
    size_t n = len < sizeof get - 1 ? len : sizeof get - 1;
    return memcmp(buf, get, n) == 0;
}

ssize_t
speak(const struct speak_conf *conf, const char *buf, size_t len, struct bytes *reply,
      struct spoken *what)
{
    *what = (struct spoken){.verb = "?"};
    if (len == 0) {
        return 0;
    }
    if ((unsigned char)buf[0] == 0x80) {
        return speak_binary(conf, buf, len, reply, what);
    }
    if (buf[0] == '*') {
        return speak_resp(conf, buf, len, reply, what);
    }
    return is_http(buf, len) ? speak_http(conf, buf, len, reply, what)
                             : speak_text(conf, buf, len, reply, what);
}

void
speak_error(const char *request, struct bytes *reply)
{
    if ((unsigned char)request[0] == 0x80) {
        binary_status(reply, request, B_INTERNAL);
    } else if (request[0] == '*') {
        bytes_addf(reply, "-ERR %s\r\n", ERROR_TEXT);
    } else if (is_http(request, 5)) {
        bytes_addf(reply, "HTTP/1.1 500 %s\r\nContent-Length: 0\r\n\r\n", ERROR_TEXT);
    } else {
        bytes_addf(reply, "SERVER_ERROR %s\r\n", ERROR_TEXT);
    }
}
