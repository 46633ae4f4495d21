/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Who may talk to the server: files, PLAIN, the gate of text clients.
 */
#include "serve/auth.h"

#include <poll.h>
#include <unistd.h>

#include "check_main.h"

static char path[SCRATCH_PATH];
static char err[512];

static void
write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void
setup(void)
{
    scratch_file(path, "", 0);
    *err = '\0';
}

static void
teardown(void)
{
    unlink(path);
}

static struct slice
slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static bool
knows(struct auth *a, const char *user, const char *password)
{
    return auth_check_token(a, slice_of(user), slice_of(password));
}

/* ---- files ---------------------------------------------------------------------------- */

static struct auth *
open_tokens(const char *text)
{
    write_file(text);
    struct auth *a = auth_open_tokens(path, NULL, err, sizeof err);
    ck_assert_msg(a != NULL, "%s", err);
    return a;
}

FIXTURE(setup, teardown);

TEST(tokens_of_a_file)
{
    struct auth *a = open_tokens("foo:bar\nbaaaz:quux\r\na:b:c\nempty:\nlast:one");
    expect(knows(a, "foo", "bar") && knows(a, "baaaz", "quux") && knows(a, "a", "b:c"));
    expect(!knows(a, "empty", "") && knows(a, "last", "one"));
    expect(!knows(a, "foo", "quux") && !knows(a, "foo", "ba") &&
           !knows(a, "foo", "barr"));
    expect(!knows(a, "fo", "bar") && !knows(a, "nobody", "bar") && !knows(a, "", ""));
    expect(!auth_check_token(a, (struct slice){"foo", 3}, (struct slice){"bar\0", 4}));
    auth_close(&a);
    ck_assert_ptr_null(a);
}

TEST(fields_have_a_limit)
{
    char line[600];
    memset(line, 'x', sizeof line);
    memcpy(line, "u:", 2);
    line[255] = '\n';
    line[256] = '\0';
    struct auth *a = open_tokens(line);
    expect(auth_check_token(a, slice_of("u"), (struct slice){line + 2, 253}));
    expect(!auth_check_token(a, slice_of("u"), (struct slice){line + 2, 252}));
    /* As long as the entry in its padded width, and longer. */
    char given[1000] = {0};
    memcpy(given, line + 2, 253);
    for (size_t len = 254; len <= sizeof given; len++) {
        expect(!auth_check_token(a, slice_of("u"), (struct slice){given, len}));
    }
    auth_close(&a);
    line[255] = 'x';
    line[256] = '\n';
    line[257] = '\0';
    write_file(line);
    ck_assert_ptr_null(auth_open_tokens(path, NULL, err, sizeof err));
    expect_part(err, "malformed entry");
}

TEST(eight_tokens_count)
{
    SCOPED(auth_close)
    struct auth *a = open_tokens("1:1\n2:2\n3:3\n4:4\n5:5\n6:6\n7:7\n8:8\n9:9\nno colon");
    expect(knows(a, "1", "1") && knows(a, "8", "8") && !knows(a, "9", "9"));
}

TEST(bad_files)
{
    ck_assert_ptr_null(auth_open_tokens("no/such/file", NULL, err, sizeof err));
    expect_part(err, "Could not open authfile [no/such/file] for reading");
    write_file("foo:bar\nnonsense\n");
    ck_assert_ptr_null(auth_open_tokens(path, NULL, err, sizeof err));
    expect_part(err, "has a malformed entry. Should be 'user:password'");
}

TEST(reload_keeps_the_old_when_bad)
{
    SCOPED(auth_close) struct auth *a = open_tokens("foo:bar\n");
    write_file("foo:new\n");
    expect(auth_reload(a, err, sizeof err));
    expect(knows(a, "foo", "new") && !knows(a, "foo", "bar"));
    write_file("nonsense\n");
    expect(!auth_reload(a, err, sizeof err) && *err != '\0');
    expect(knows(a, "foo", "new"));
    unlink(path);
    expect(!auth_reload(a, err, sizeof err));
    expect(knows(a, "foo", "new"));
}

/* ---- SASL ----------------------------------------------------------------------------- */

static struct auth *
open_passwords(const char *text)
{
    write_file(text);
    struct auth *a = auth_open_sasl(path, NULL, err, sizeof err);
    ck_assert_msg(a != NULL, "%s", err);
    return a;
}

static struct slice challenge;

static struct mbox box;
static struct mbox_message message;
static const struct mbox_back back = {&box, &message};

/* As a worker has it that waits for libsasl2. */
static enum auth_status
settled(struct auth_session *s, enum auth_status status)
{
    struct pollfd fd = {.fd = box.fd, .events = POLLIN};
    if (status != AUTH_ASKED) {
        return status;
    }
    expect(auth_is_asked(s));
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    mbox_clear(&box);
    ck_assert_ptr_eq(mbox_take(&box), &message);
    return auth_answer(s, &challenge);
}

static enum auth_status
start(struct auth *a, struct auth_session **s, const char *mechanism, struct slice data)
{
    enum auth_status status =
        auth_start(a, s, slice_of(mechanism), data, &back, &challenge);
    return settled(*s, status);
}

static enum auth_status
step(struct auth *a, struct auth_session **s, struct slice data)
{
    enum auth_status status = auth_step(a, s, data, &back, &challenge);
    return settled(*s, status);
}

#define START(a, s, mechanism, text)                                                     \
    start(a, s, mechanism, (struct slice){text, sizeof(text) - 1})
#define STEP(a, s, text) step(a, s, (struct slice){text, sizeof(text) - 1})

TEST(plain)
{
    SCOPED(auth_close)
    struct auth *a = open_passwords("# who may\nfoo:bar:rest\nbaz:qux\n");
    struct auth_session *s = NULL;
    ck_assert_str_eq(auth_mechanisms(a), "PLAIN");
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0foo\0bar"), AUTH_DONE);
    ck_assert_int_eq(START(a, &s, "PLAIN", "foo\0foo\0bar"), AUTH_DONE);
    ck_assert_int_eq(START(a, &s, "PLAIN", "baz\0foo\0bar"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0foo\0bar:rest"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0foo\0bar\0"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0nobody\0bar"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0foo"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "foo"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0\0"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "CRAM-MD5", "\0foo\0bar"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "", "\0foo\0bar"), AUTH_FAILED);
    auth_end(&s);
    ck_assert_ptr_null(s);
}

TEST(plain_in_two_steps)
{
    SCOPED(auth_close) struct auth *a = open_passwords("foo:bar\n");
    struct auth_session *s = NULL;
    ck_assert_int_eq(STEP(a, &s, "\0foo\0bar"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", ""), AUTH_CONTINUE);
    ck_assert_uint_eq(challenge.len, 0);
    ck_assert_int_eq(STEP(a, &s, "\0foo\0bar"), AUTH_DONE);
    ck_assert_int_eq(STEP(a, &s, "\0foo\0bar"), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", ""), AUTH_CONTINUE);
    ck_assert_int_eq(STEP(a, &s, ""), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", ""), AUTH_CONTINUE);
    ck_assert_int_eq(START(a, &s, "OTHER", ""), AUTH_FAILED);
    ck_assert_int_eq(STEP(a, &s, "\0foo\0bar"), AUTH_FAILED);
    auth_end(&s);
    auth_end(&s);
}

TEST(library)
{
    if (!HAVE_SASL) {
        ck_assert_ptr_null(auth_open_sasl(NULL, NULL, err, sizeof err));
        ck_assert_str_eq(err, "This server is not built with SASL support.");
        return;
    }
    struct auth_session *s = NULL;
    write_file("mech_list: PLAIN\n");
    setenv("SASL_CONF_PATH", ".", 1);
    SCOPED(auth_close) struct auth *a = auth_open_sasl(NULL, NULL, err, sizeof err);
    ck_assert_msg(a != NULL, "%s", err);
    expect(mbox_init(&box) && auth_serve(a));
    ck_assert_int_eq(START(a, &s, "NO-SUCH-MECHANISM", ""), AUTH_FAILED);
    ck_assert_int_eq(START(a, &s, "PLAIN", "\0foo\0bar"), AUTH_FAILED);
    ck_assert_int_eq(STEP(a, &s, ""), AUTH_FAILED);
    expect(auth_reload(a, err, sizeof err));
    auth_end(&s);
    expect(auth_stop(a, &(struct timespec){.tv_sec = INT32_MAX}));
    mbox_fini(&box);
}

/* ---- text clients --------------------------------------------------------------------- */

static const struct gate_row {
    const char *input;
    const char *replies; /* ids, one letter each; '!' closes */
} gate_rows[] = {
    {"set x 0 0 7\r\nfoo bar\r\n", "S"},
    {"set x 0 0 7 noreply\r\nfoo bar\r\n", "S"},
    {"settle x y z 7\r\nfoo bar\r\n", "S"},
    {"set x 0 0 7\nfoo bar\r\n", "S"},
    {"set x 0 0 9\r\nfoo bar  \r\nset x 0 0 7\r\nfoo bar\r\n", "AS"},
    {"set x 0 0 7\r\nfoo baz\r\n", "A"},
    {"set x 0 0 3\r\nfoo\r\n", "F"},
    {"set x 0 0 0\r\n\r\n", "F"},
    {"set x 0 0 7\r\nfoo bar..", "E"},
    {"set x 0 0 7\r\nfoo bar\n\r", "E"},
    {"set x 0 0 16385\r\n", "L"},
    {"set x 0 0 2147483646\r\nset x 0 0 7\r\nfoo bar\r\n", "LS"},
    {"set x 0 0 4294967294\r\n", "L"},
    {"set x 0 0 4294967295\r\n", "L"},
    {"set x 0 0 4294967296\r\n", "U"},
    {"set x 0 0 -1\r\n", "U"},
    {"set x 0 0 7x\r\n", "U"},
    {"set x 0 7\r\nfoo bar\r\n", "UU"},
    {"get foo\r\nget bar\r\n", "UU"},
    {"version\r\n", "U"},
    {"      \r\n", "U"},
    {"quit\r\n", "!"},
    {"\r\n", "!"},
    {"mn\r\n", "!"},
    {"set x 0 0 100\r\nfoo bar\r\n", ""},
    {"set x 0 0 7", ""},
};

static char
letter_of(enum reply reply)
{
    static const char letters[REPLY_COUNT] = {
        [REPLY_STORED] = 'S',           [REPLY_AUTH_FAILURE] = 'A',
        [REPLY_TOKEN_BAD_FORMAT] = 'F', [REPLY_TOKEN_BAD_END] = 'E',
        [REPLY_TOKEN_TOO_LONG] = 'L',   [REPLY_UNAUTHENTICATED] = 'U'};
    return letters[reply] != '\0' ? letters[reply] : '?';
}

/* Hands the input over with at most `step` new bytes at a time, as a socket would. */
static void
play(struct auth *a, const char *input, size_t len, size_t step, char *replies)
{
    struct auth_session *s = NULL;
    size_t at = 0;
    size_t have = 0;
    while (at + have < len) {
        have += step < len - at - have ? step : len - at - have;
        enum auth_gate gate;
        do {
            size_t consumed;
            enum reply reply;
            char *copy = exact_copy(input + at, have);
            gate = auth_gate(a, &s, copy, have, &consumed, &reply);
            free(copy);
            expect(consumed <= have);
            at += consumed;
            have -= consumed;
            if (gate == AUTH_GATE_REPLY) {
                *replies++ = letter_of(reply);
            }
        } while (gate == AUTH_GATE_REPLY && have > 0);
        if (gate == AUTH_GATE_CLOSE) {
            *replies++ = '!';
            break;
        }
    }
    *replies = '\0';
    auth_end(&s);
}

TEST_ROWS(gate, gate_rows, row->input)
{
    SCOPED(auth_close) struct auth *a = open_tokens("foo:bar\nbaaaz:quux\n");
    size_t len = strlen(row->input);
    for (size_t step = 1; step <= len; step++) {
        char replies[64];
        play(a, row->input, len, step, replies);
        ck_assert_msg(strcmp(replies, row->replies) == 0, "step %zu: %s, not %s", step,
                      replies, row->replies);
    }
}

TEST(gate_long_tokens)
{
    static char input[20000];
    SCOPED(auth_close) struct auth *a = open_tokens("foo:bar\n");
    for (unsigned announced = 500; announced <= AUTH_TEXT_MAX; announced += 2647) {
        char replies[8];
        size_t at = (size_t)sprintf(input, "set x 0 0 %u\r\n", announced);
        memset(input + at, 'x', announced);
        memcpy(input + at, "foo bar", 7);
        memcpy(input + at + announced, "\r\n", 2);
        play(a, input, at + announced + 2, 1000, replies);
        ck_assert_str_eq(replies, "A");
        input[at + 3] = 'x';
        play(a, input, at + announced + 2, 1000, replies);
        ck_assert_str_eq(replies, "F");
    }
}

TEST(gate_bounds_lines)
{
    char input[2049], replies[8];
    SCOPED(auth_close) struct auth *a = open_tokens("foo:bar\n");
    memset(input, ' ', sizeof input);
    play(a, input, 2048, 100, replies);
    ck_assert_str_eq(replies, "");
    play(a, input, 2049, 100, replies);
    ck_assert_str_eq(replies, "!");
}
