/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Who may talk to the server. The first byte chooses between two things.
 *
 * A whole session with authentication on, tokens or SASL with a password database: until a
 * right name and password have arrived, nothing leaves but what authentication itself says,
 * and nothing is looked up or stored; whatever was sent, the next client with a right token
 * gets through.
 *
 * The file of tokens or passwords: what is read from it is what stands there.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drive.h"
#include "serve/auth.h"

#define FLAG_PROFILE 1
#define FLAG_SASL 2       /* a password database, else tokens */
#define FLAG_FILE 4       /* the bytes are the file, else what a client sends */
#define SHIFT_BINDING 6   /* two bits; the cutter has the two below */
#define ENTRIES_CHECKED 8 /* at either end of a file */
#define TOKEN_LINE_MAX 255
#define OPCODE_VERSION 0x0b
#define OPCODE_LIST 0x20
#define OPCODE_AUTH 0x21
#define OPCODE_STEP 0x22
#define STATUS_SUCCESS 0x00
#define STATUS_INVALID 0x04
#define STATUS_AUTH_FAILED 0x20
#define STATUS_AUTH_CONTINUE 0x21
#define STATUS_UNKNOWN 0x81

#define BYTES(literal) ((struct slice){literal, sizeof(literal) - 1})

static const enum serve_binding bindings[] = {BINDING_AUTO, BINDING_ASCII, BINDING_BINARY,
                                              BINDING_AUTO};

/* ---- a file that is not in the file system -------------------------------------------- */

struct file {
    int fd;
    char path[64];
};

static void
file_write(struct file *f, const void *p, size_t size)
{
    if (f->path[0] == '\0') {
        f->fd = memfd_create("fuzz_auth", MFD_CLOEXEC);
        must(f->fd >= 0);
        snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    }
    must(ftruncate(f->fd, 0) == 0);
    must(pwrite(f->fd, p, size, 0) == (ssize_t)size);
}

static struct auth *
open_auth(bool is_sasl, const char *path)
{
    char err[512] = "";
    struct auth *a = is_sasl ? auth_open_sasl(path, NULL, err, sizeof err)
                             : auth_open_tokens(path, NULL, err, sizeof err);
    must((a == NULL) == (*err != '\0'));
    return a;
}

/* ---- files ---------------------------------------------------------------------------- */

struct line {
    struct slice user, password;
};

/* What stands in a file, read a second time in another way. */
struct entries {
    bool is_sasl;
    bool is_bad;
    size_t count;
    struct line *list;
};

static void
entries_line(struct entries *e, struct slice line)
{
    const char *colon = line.len > 0 ? memchr(line.p, ':', line.len) : NULL;
    if (colon == NULL) {
        e->is_bad |= !e->is_sasl;
        return;
    }
    struct slice user = {line.p, (size_t)(colon - line.p)};
    struct slice password = {colon + 1, line.len - user.len - 1};
    for (size_t i = 0; e->is_sasl && i < password.len; i++) {
        if (password.p[i] == ':') {
            password.len = i;
        }
    }
    if (!e->is_sasl && line.len > TOKEN_LINE_MAX) {
        e->is_bad = true;
    } else if (user.len <= AUTH_FIELD_MAX && password.len <= AUTH_FIELD_MAX) {
        e->list[e->count++] = (struct line){user, password};
    }
}

static void
entries_read(struct entries *e, bool is_sasl, const char *p, size_t size)
{
    *e = (struct entries){.is_sasl = is_sasl};
    e->list = malloc((size + 1) * sizeof *e->list);
    must(e->list != NULL);
    for (size_t at = 0;
         at < size && !e->is_bad && (is_sasl || e->count < AUTH_TOKENS_MAX);) {
        const char *end = memchr(p + at, '\n', size - at);
        size_t len = end != NULL ? (size_t)(end - p) - at : size - at;
        struct slice line = {p + at, len};
        line.len -= len > 0 && line.p[len - 1] == '\r';
        entries_line(e, line);
        at += len + 1;
    }
}

static bool
is_same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static bool
entries_have(const struct entries *e, struct slice user, struct slice password)
{
    for (size_t i = 0; i < e->count; i++) {
        if (password.len > 0 && is_same(e->list[i].user, user) &&
            is_same(e->list[i].password, password)) {
            return true;
        }
    }
    return false;
}

/* The server knows who is in the file, and not who is almost in it. */
static void
check_entry(struct auth *a, const struct entries *e, const struct line *entry)
{
    char text[AUTH_FIELD_MAX + 1];
    struct slice longer = {text, entry->password.len + 1};
    struct slice shorter = {text, entry->password.len / 2};
    must(auth_check_token(a, entry->user, entry->password) == (entry->password.len > 0));
    memcpy(text, entry->password.p, entry->password.len);
    text[entry->password.len] = '\0';
    must(auth_check_token(a, entry->user, longer) ==
         entries_have(e, entry->user, longer));
    must(auth_check_token(a, entry->user, shorter) ==
         entries_have(e, entry->user, shorter));
    must(auth_check_token(a, entry->password, entry->user) ==
         entries_have(e, entry->password, entry->user));
}

static void
check_entries(struct auth *a, const struct entries *e)
{
    for (size_t i = 0; i < e->count; i++) {
        if (i < ENTRIES_CHECKED || i + ENTRIES_CHECKED >= e->count) {
            check_entry(a, e, &e->list[i]);
        }
    }
    must(auth_check_token(a, BYTES("nobody"), BYTES("?")) ==
         entries_have(e, BYTES("nobody"), BYTES("?")));
}

/* Opens it, and reloads its first half: a bad one leaves what was there. */
static void
fuzz_file(bool is_sasl, const char *p, size_t size)
{
    static struct file file;
    char err[512] = "";
    struct entries whole, half;
    entries_read(&whole, is_sasl, p, size);
    entries_read(&half, is_sasl, p, size / 2);
    file_write(&file, p, size);
    struct auth *a = open_auth(is_sasl, file.path);
    must((a == NULL) == whole.is_bad);
    if (a != NULL) {
        check_entries(a, &whole);
        file_write(&file, p, size / 2);
        must(auth_reload(a, err, sizeof err) == !half.is_bad);
        must((*err != '\0') == half.is_bad);
        check_entries(a, half.is_bad ? &whole : &half);
    }
    auth_close(&a);
    free(whole.list);
    free(half.list);
}

/* ---- what a stranger is told ---------------------------------------------------------- */

static const char known[] = "foo:bar\nbaaaz:quux\nempty:\n";

static const struct slice right_token[] = {
    {"foo bar\r\n", 9}, {"baaaz quux\r\n", 12}, {"empty \r\n", 8}};
static const struct slice right_plain[] = {
    {"\0foo\0bar", 8},     {"\0baaaz\0quux", 11},      {"\0empty\0", 7},
    {"foo\0foo\0bar", 11}, {"baaaz\0baaaz\0quux", 16}, {"empty\0empty\0", 12}};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool
has_sent_token(const struct run *r)
{
    for (size_t i = 0; i < COUNT(right_token); i++) {
        if (memmem(r->received.p, r->received.len, right_token[i].p,
                   right_token[i].len) != NULL) {
            return true;
        }
    }
    return false;
}

static bool
is_right_plain(struct slice data)
{
    for (size_t i = 0; i < COUNT(right_plain); i++) {
        if (is_same(data, right_plain[i])) {
            return true;
        }
    }
    return false;
}

static bool
is_stranger_line(struct slice reply)
{
    static const struct slice lines[] = {
        {"CLIENT_ERROR unauthenticated\r\n", 30},
        {"CLIENT_ERROR auth token too long\r\n", 34},
        {"CLIENT_ERROR bad command line termination\r\n", 43},
        {"CLIENT_ERROR bad authentication token format\r\n", 46},
        {"CLIENT_ERROR authentication failure\r\n", 37},
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        if (is_same(lines[i], reply)) {
            return true;
        }
    }
    return false;
}

/* The packet without what it echoes: its status and its body; opcode is taken out. */
static struct slice
packet_meaning(struct slice reply, uint8_t *opcode, uint8_t *status)
{
    must(reply.len >= BINARY_HEADER_BYTES && (uint8_t)reply.p[0] == BINARY_REPLY_MAGIC);
    const uint8_t *p = (const uint8_t *)reply.p;
    struct slice body = {reply.p + BINARY_HEADER_BYTES, reply.len - BINARY_HEADER_BYTES};
    must(p[2] == 0 && p[3] == 0 && p[4] == 0 && p[5] == 0 && p[6] == 0);
    must(p[8] == 0 && p[9] == 0 && p[10] == 0 && p[11] == body.len);
    *opcode = p[1];
    *status = p[7];
    return body;
}

static bool
is_stranger_packet(const struct run *r, struct slice reply, bool is_sasl)
{
    uint8_t opcode, status;
    struct slice body = packet_meaning(reply, &opcode, &status);
    bool is_auth = opcode == OPCODE_AUTH || opcode == OPCODE_STEP;
    switch (status) {
    case STATUS_SUCCESS:
        return (opcode == OPCODE_VERSION && is_same(body, BYTES(DRIVE_VERSION))) ||
               (opcode == OPCODE_LIST &&
                is_same(body, is_sasl ? BYTES("PLAIN") : BYTES("")));
    case STATUS_INVALID:
        return (is_auth || opcode == OPCODE_VERSION || opcode == OPCODE_LIST) &&
               is_same(body, BYTES("Invalid arguments"));
    case STATUS_AUTH_FAILED:
        return is_same(body, BYTES("Auth failure.")) && (is_auth || r->is_over);
    case STATUS_AUTH_CONTINUE:
        return is_auth && is_sasl && body.len == 0;
    case STATUS_UNKNOWN:
        return is_same(body, BYTES("Unknown command")) && r->is_over;
    default:
        return false;
    }
}

/* A client that has just become known, or already was. */
static void
check_known(const struct run *r, struct slice reply, bool was_authenticated)
{
    const struct req *req = r->session.req;
    uint8_t opcode, status;
    if (req->protocol != PROTOCOL_BINARY) {
        must(has_sent_token(r));
        must(was_authenticated || is_same(reply, BYTES("STORED\r\n")));
        return;
    }
    if (was_authenticated && (reply.len == 0 || req->family != FAMILY_SASL)) {
        return;
    }
    struct slice body = packet_meaning(reply, &opcode, &status);
    bool is_welcome = opcode != OPCODE_LIST && status == STATUS_SUCCESS;
    must(is_welcome || was_authenticated);
    /* Who begins anew is a stranger until it has succeeded. */
    must(status != STATUS_AUTH_FAILED && status != STATUS_AUTH_CONTINUE);
    if (is_welcome) {
        must(opcode == OPCODE_AUTH || opcode == OPCODE_STEP);
        must(is_same(body, BYTES("Authenticated")) && is_right_plain(req->value));
    }
}

/* What was done for clients, apart from authentication. */
static uint64_t
work_done(const struct serve_ctr *ctr)
{
    uint64_t sum = 0;
#define COUNTER(field) sum += ctr_get(&ctr->field);
#define SLAB_COUNTER(field)
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
#define COUNTER(field)
#define SLAB_COUNTER(field) sum += ctr_get(&ctr->slab[i].field);
#define SLAB_COUNTERS(field, count)                                                      \
    for (unsigned part = 0; part < (count); part++) {                                    \
        sum += ctr_get(&ctr->slab[i].field[part]);                                       \
    }
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
    }
    return sum - ctr_get(&ctr->auth_cmds) - ctr_get(&ctr->auth_errors);
}

static void
check_reply(struct run *r, bool was_authenticated, size_t from)
{
    struct slice reply = {r->sent.p + from, r->sent.len - from};
    bool is_binary = r->session.req->protocol == PROTOCOL_BINARY;
    bool is_sasl = strcmp(auth_mechanisms(r->conf.auth), "PLAIN") == 0;
    if (r->session.is_authenticated) {
        must(is_binary == is_sasl);
        check_known(r, reply, was_authenticated);
        return;
    }
    must(is_binary ? is_stranger_packet(r, reply, is_sasl) : is_stranger_line(reply));
    must(r->was_authenticated || work_done(&r->ctr) == 0);
}

/* ---- sessions ------------------------------------------------------------------------- */

static const struct slice text_login = {"set x 0 0 7\r\nfoo bar\r\n", 22};
static const struct slice text_version = {"version\r\n", 9};
static const struct slice text_version_reply = {"VERSION " DRIVE_VERSION "\r\n", 15};
static const struct slice binary_login = {
    "\x80\x21\0\x05\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0\0\0\0\0\0PLAIN\0foo\0bar", 37};
static const struct slice binary_noop = {
    "\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24};
static const struct slice binary_noop_reply = {
    "\x81\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24};

/* Sends a command and looks for its reply. */
static void
expect_service(struct run *r, bool is_binary, struct cutter *cutter)
{
    struct slice command = is_binary ? binary_noop : text_version;
    struct slice reply = is_binary ? binary_noop_reply : text_version_reply;
    size_t from = r->sent.len;
    run_input(r, (const uint8_t *)command.p, command.len, cutter);
    must(is_same((struct slice){r->sent.p + from, r->sent.len - from}, reply));
}

static void
check_next_client(struct run *r, bool is_sasl, struct cutter *cutter)
{
    struct slice login = is_sasl ? binary_login : text_login;
    run_reconnect(r);
    run_input(r, (const uint8_t *)login.p, login.len, cutter);
    bool is_possible = r->conf.binding != (is_sasl ? BINDING_ASCII : BINDING_BINARY);
    must(r->session.is_authenticated == is_possible);
    if (is_possible) {
        expect_service(r, is_sasl, cutter);
    }
}

static void
check_end(struct run *r, bool is_sasl, struct cutter *cutter)
{
    if (r->session.is_authenticated && !r->is_over && !r->is_closed &&
        session_is_quiescent(&r->session, &r->in)) {
        expect_service(r, is_sasl, cutter);
    }
    check_next_client(r, is_sasl, cutter);
    run_close(r);
}

/* Of the servers, which live as long as the program. */
static struct auth *
known_auth(bool is_sasl)
{
    static struct auth *opened[2];
    static struct file file;
    if (opened[is_sasl] == NULL) {
        file_write(&file, known, sizeof known - 1);
        opened[is_sasl] = open_auth(is_sasl, file.path);
        must(opened[is_sasl] != NULL);
    }
    return opened[is_sasl];
}

static void
fuzz_session(uint8_t flags, const uint8_t *data, size_t size)
{
    bool is_sasl = (flags & FLAG_SASL) != 0;
    struct drive_conf conf = {
        .profile = flags & FLAG_PROFILE ? PROFILE_16 : PROFILE_14,
        .binding = bindings[flags >> SHIFT_BINDING],
        .use_cas = true,
        .auth = known_auth(is_sasl),
        .observe = check_reply,
    };
    struct run whole, cut;
    struct cutter one = {.piece_max = 0}, many;
    cutter_init(&many, flags, size);
    run_open(&whole, &conf, (struct session_limits){.keys = 64, .out_bytes = 131072});
    run_open(&cut, &conf, (struct session_limits){.keys = 1, .out_bytes = 100});
    run_input(&whole, data, size, &one);
    run_input(&cut, data, size, &many);
    run_compare(&whole, &cut);
    must(whole.is_closed || cut.is_closed ||
         whole.session.is_authenticated == cut.session.is_authenticated);
    check_end(&whole, is_sasl, &one);
    check_end(&cut, is_sasl, &many);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] & FLAG_FILE) {
        char *p = exact_copy(data + 1, size - 1);
        fuzz_file((data[0] & FLAG_SASL) != 0, p, size - 1);
        free(p);
    } else {
        fuzz_session(data[0], data + 1, size - 1);
    }
    return 0;
}
