/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fail.h"
#include "base/num.h"
#include "serve/auth_sasl.h"
#include "serve/login.h"

#define FIELD_BYTES (AUTH_FIELD_MAX + 1)
#define TOKEN_LINE_MAX 255                  /* of a -Y file */
#define TOKEN_KEPT (2 * AUTH_FIELD_MAX + 1) /* a longer token cannot be right */
#define LINE_MIN 6                          /* shorter lines close: "quit" */
#define LINE_MAX_BYTES 2048                 /* that may wait for a line feed */
#define AUTH_BYTES_MAX (16 << 20)           /* of a file */
#define LINE_WORDS 5                        /* set <any> <any> <any> <length> */

/* Padded with zeros to the full width, so that comparing two always takes the same time. */
struct field {
    size_t len;
    uint8_t bytes[FIELD_BYTES];
};

struct entry {
    struct field user, password;
};

struct entries {
    size_t count, room;
    struct entry *list;
};

enum auth_kind {
    KIND_TOKENS,    /* -Y: text clients */
    KIND_PASSWORDS, /* MEMCACHED_SASL_PWDB: PLAIN */
    KIND_LIBRARY,   /* libsasl2 */
};

struct auth {
    enum auth_kind kind;
    char *path; /* NULL: KIND_LIBRARY */
    char *mechanisms;
    pthread_mutex_t lock; /* guards entries, which auth_reload swaps */
    struct entries entries;
    struct logins logins; /* KIND_LIBRARY: its thread */
};

/* A token that a text client has announced and that is still arriving. */
struct token {
    uint32_t expected; /* bytes with the line end; 0: no token is under way */
    uint32_t got;
    bool has_blank;
    uint8_t last[LINE_END_BYTES];
    char kept[TOKEN_KEPT];
};

struct auth_session {
    struct auth *owner;
    bool expects_plain;  /* PLAIN has been named, its data is still to come */
    bool is_asked;       /* the library is, by `login` */
    struct login *login; /* KIND_LIBRARY, from the first AUTH on */
    struct token *token;
};

/* ---- entries -------------------------------------------------------------------------- */

static void
field_set(struct field *f, const char *p, size_t len)
{
    *f = (struct field){.len = len};
    memcpy(f->bytes, p, len < FIELD_BYTES ? len : FIELD_BYTES);
}

/* 0 when equal. No branch and no end depends on the bytes. */
static uint64_t
field_difference(const struct field *a, const struct field *b)
{
    uint64_t difference = a->len ^ b->len;
    for (size_t i = 0; i < FIELD_BYTES; i++) {
        difference |= (uint64_t)(a->bytes[i] ^ b->bytes[i]);
    }
    return difference;
}

static void
entries_free(struct entries *e)
{
    if (e->list != NULL) {
        explicit_bzero(e->list, e->room * sizeof *e->list);
    }
    free(e->list);
    *e = (struct entries){.list = NULL};
}

/* realloc would leave the old passwords in freed memory. */
static bool
entries_grow(struct entries *e)
{
    struct entries grown = {.room = e->room == 0 ? AUTH_TOKENS_MAX : e->room * 2};
    grown.list = calloc(grown.room, sizeof *grown.list);
    if (grown.list == NULL) {
        return false;
    }
    if (e->count > 0) {
        memcpy(grown.list, e->list, e->count * sizeof *e->list);
    }
    grown.count = e->count;
    entries_free(e);
    *e = grown;
    return true;
}

enum line_status {
    LINE_TAKEN,
    LINE_BAD,
    LINE_NO_MEMORY,
};

/* user:password, and in a password database what follows a second colon is not ours. */
static enum line_status
take_line(struct entries *e, enum auth_kind kind, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    if (colon == NULL || (kind == KIND_TOKENS && len > TOKEN_LINE_MAX)) {
        return LINE_BAD;
    }
    size_t user_len = (size_t)(colon - line);
    const char *password = colon + 1;
    size_t password_len = len - user_len - 1;
    if (kind == KIND_PASSWORDS) {
        const char *end = memchr(password, ':', password_len);
        password_len = end != NULL ? (size_t)(end - password) : password_len;
    }
    if (user_len > AUTH_FIELD_MAX || password_len > AUTH_FIELD_MAX) {
        return LINE_BAD;
    }
    if (e->count == e->room && !entries_grow(e)) {
        return LINE_NO_MEMORY;
    }
    field_set(&e->list[e->count].user, line, user_len);
    field_set(&e->list[e->count].password, password, password_len);
    e->count++;
    return LINE_TAKEN;
}

/* A bad line ends a -Y file; a password database may hold lines that are not entries. */
static enum line_status
take_lines(struct entries *e, enum auth_kind kind, FILE *file)
{
    enum line_status status = LINE_TAKEN;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while (status == LINE_TAKEN && (kind != KIND_TOKENS || e->count < AUTH_TOKENS_MAX) &&
           (len = getline(&line, &room, file)) >= 0) {
        len -= len > 0 && line[len - 1] == '\n';
        len -= len > 0 && line[len - 1] == '\r';
        status = take_line(e, kind, line, (size_t)len);
        status = kind == KIND_PASSWORDS && status == LINE_BAD ? LINE_TAKEN : status;
    }
    if (line != NULL) {
        explicit_bzero(line, room);
    }
    free(line);
    return status;
}

static bool
entries_read(struct entries *e, enum auth_kind kind, const char *path, char *err,
             size_t err_len)
{
    struct stat st;
    *e = (struct entries){.list = NULL};
    /* A device has no end, and a pipe would be waited for. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool is_open = fd >= 0 && fstat(fd, &st) == 0;
    bool is_file = is_open && S_ISREG(st.st_mode) && st.st_size <= AUTH_BYTES_MAX;
    FILE *file = is_file ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        const char *why = is_open && !is_file ? "it is no regular file of 16 MiB at most"
                                              : strerror(errno);
        if (fd >= 0) {
            close(fd);
        }
        return fail_because(err, err_len,
                            "Could not open authfile [%s] for reading, error %s", path,
                            why);
    }
    enum line_status status = take_lines(e, kind, file);
    bool is_read = ferror(file) == 0;
    fclose(file);
    if (status == LINE_TAKEN && is_read) {
        return true;
    }
    if (status == LINE_NO_MEMORY) {
        snprintf(err, err_len, "Authfile [%s]: out of memory", path);
    } else if (!is_read) {
        snprintf(err, err_len, "Could not read authfile [%s]", path);
    } else {
        snprintf(err, err_len,
                 "Authfile [%s] has a malformed entry. Should be 'user:password'", path);
    }
    entries_free(e);
    return false;
}

/* ---- life ----------------------------------------------------------------------------- */

static struct auth *
open_kind(enum auth_kind kind, const char *path, const pthread_mutexattr_t *lock_attr,
          char *err, size_t err_len)
{
    struct auth *a = calloc(1, sizeof *a);
    /* -d changes the directory. Links are not followed: another file may be put behind them. */
    char *where = path != NULL ? file_absolute(path) : NULL;
    if (a == NULL || (path != NULL && where == NULL)) {
        snprintf(err, err_len, "no memory for authentication");
        free(where);
        free(a);
        return NULL;
    }
    a->kind = kind;
    PTHREAD_OK(pthread_mutex_init(&a->lock, lock_attr));
    a->path = where;
    if (path != NULL && !entries_read(&a->entries, kind, path, err, err_len)) {
        auth_close(&a);
    }
    return a;
}

struct auth *
auth_open_tokens(const char *path, const pthread_mutexattr_t *lock_attr, char *err,
                 size_t err_len)
{
    return open_kind(KIND_TOKENS, path, lock_attr, err, err_len);
}

struct auth *
auth_open_sasl(const char *path, const pthread_mutexattr_t *lock_attr, char *err,
               size_t err_len)
{
    if (path == NULL && !auth_sasl_init(err, err_len)) {
        return NULL;
    }
    struct auth *a = open_kind(path != NULL ? KIND_PASSWORDS : KIND_LIBRARY, path,
                               lock_attr, err, err_len);
    if (a != NULL) {
        a->mechanisms = path != NULL ? strdup("PLAIN") : auth_sasl_mechanisms();
    }
    if (a != NULL && path != NULL && a->mechanisms == NULL) {
        snprintf(err, err_len, "no memory for authentication");
        auth_close(&a);
    }
    return a;
}

bool
auth_reload(struct auth *a, char *err, size_t err_len)
{
    struct entries fresh, old;
    if (a->path == NULL) {
        return true;
    }
    if (!entries_read(&fresh, a->kind, a->path, err, err_len)) {
        return false;
    }
    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    old = a->entries;
    a->entries = fresh;
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
    entries_free(&old);
    return true;
}

bool
auth_serve(struct auth *a)
{
    return a == NULL || a->kind != KIND_LIBRARY || logins_start(&a->logins);
}

bool
auth_stop(struct auth *a, const struct timespec *until)
{
    return a == NULL || a->kind != KIND_LIBRARY || logins_stop(&a->logins, until);
}

void
auth_close(struct auth **a)
{
    struct auth *old = *a;
    if (old == NULL || old->logins.is_running) {
        return; /* a thread that was left behind has it */
    }
    if (old->kind == KIND_LIBRARY) {
        auth_sasl_fini();
    }
    entries_free(&old->entries);
    PTHREAD_OK(pthread_mutex_destroy(&old->lock));
    free(old->path);
    free(old->mechanisms);
    free(old);
    *a = NULL;
}

/* ---- checking ------------------------------------------------------------------------- */

bool
auth_check_token(struct auth *a, struct slice user, struct slice password)
{
    struct entry given;
    uint64_t found = 0;
    field_set(&given.user, user.p, user.len);
    field_set(&given.password, password.p, password.len);
    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    for (size_t i = 0; i < a->entries.count; i++) {
        const struct entry *entry = &a->entries.list[i];
        uint64_t difference = field_difference(&entry->user, &given.user) |
                              field_difference(&entry->password, &given.password);
        found |= (uint64_t)(difference == 0);
    }
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
    explicit_bzero(&given, sizeof given);
    found &= (uint64_t)(password.len > 0);
    return found != 0;
}

static struct auth_session *
session_of(struct auth *a, struct auth_session **s)
{
    if (*s == NULL && (*s = calloc(1, sizeof **s)) != NULL) {
        (*s)->owner = a;
    }
    return *s;
}

void
auth_end(struct auth_session **s)
{
    struct auth_session *old = *s;
    if (old == NULL) {
        return;
    }
    must(!old->is_asked);
    login_end(&old->owner->logins, &old->login);
    if (old->token != NULL) {
        explicit_bzero(old->token, sizeof *old->token);
    }
    free(old->token);
    free(old);
    *s = NULL;
}

/* ---- SASL ----------------------------------------------------------------------------- */

const char *
auth_mechanisms(const struct auth *a)
{
    return a->mechanisms != NULL ? a->mechanisms : "";
}

/* [authzid] NUL user NUL password; an authzid other than the user is refused. */
static enum auth_status
check_plain(struct auth *a, struct auth_session *s, struct slice data,
            struct slice *challenge)
{
    if (data.len == 0) {
        s->expects_plain = true;
        *challenge = (struct slice){.p = "", .len = 0};
        return AUTH_CONTINUE;
    }
    const char *first = memchr(data.p, '\0', data.len);
    if (first == NULL) {
        return AUTH_FAILED;
    }
    struct slice acting = {data.p, (size_t)(first - data.p)};
    struct slice user = {first + 1, data.len - acting.len - 1};
    const char *second = memchr(user.p, '\0', user.len);
    if (second == NULL) {
        return AUTH_FAILED;
    }
    struct slice password = {second + 1, user.len - (size_t)(second - user.p) - 1};
    user.len = (size_t)(second - user.p);
    bool is_known = auth_check_token(a, user, password);
    bool is_self = acting.len == 0 ||
                   (acting.len == user.len && memcmp(acting.p, user.p, user.len) == 0);
    return is_known && is_self ? AUTH_DONE : AUTH_FAILED;
}

static enum auth_status
ask_library(struct auth_session *s, enum login_step step, struct slice mechanism,
            struct slice data, const struct mbox_back *back)
{
    struct logins *logins = &s->owner->logins;
    must(back->message != NULL); /* no datagram authenticates */
    if (s->login == NULL) {
        s->login = calloc(1, sizeof *s->login);
    }
    s->is_asked =
        s->login != NULL && login_ask(logins, s->login, step, mechanism, data, back);
    if (!s->is_asked) {
        login_end(logins, &s->login); /* nothing of an older conversation is left */
        return AUTH_NO_MEMORY;
    }
    return AUTH_ASKED;
}

enum auth_status
auth_start(struct auth *a, struct auth_session **session, struct slice mechanism,
           struct slice data, const struct mbox_back *back, struct slice *challenge)
{
    struct auth_session *s = session_of(a, session);
    *challenge = (struct slice){.p = "", .len = 0};
    if (s == NULL) {
        return AUTH_NO_MEMORY;
    }
    s->expects_plain = false;
    if (a->kind == KIND_LIBRARY) {
        return ask_library(s, LOGIN_START, mechanism, data, back);
    }
    bool is_plain = a->kind == KIND_PASSWORDS && req_word_is(mechanism, "PLAIN");
    return is_plain ? check_plain(a, s, data, challenge) : AUTH_FAILED;
}

enum auth_status
auth_step(struct auth *a, struct auth_session **session, struct slice data,
          const struct mbox_back *back, struct slice *challenge)
{
    struct auth_session *s = session_of(a, session);
    *challenge = (struct slice){.p = "", .len = 0};
    if (s == NULL) {
        return AUTH_NO_MEMORY;
    }
    if (s->login != NULL) {
        return ask_library(s, LOGIN_STEP, (struct slice){NULL, 0}, data, back);
    }
    bool expects = s->expects_plain && data.len > 0;
    s->expects_plain = false;
    return expects ? check_plain(a, s, data, challenge) : AUTH_FAILED;
}

bool
auth_is_asked(const struct auth_session *s)
{
    return s != NULL && s->is_asked;
}

enum auth_status
auth_answer(struct auth_session *s, struct slice *challenge)
{
    must(s->is_asked);
    s->is_asked = false;
    *challenge = s->login->challenge;
    return s->login->status;
}

void
auth_abandon(struct auth_session *s)
{
    if (auth_is_asked(s)) {
        login_abandon(s->login);
        s->is_asked = false;
    }
}

/* ---- text ----------------------------------------------------------------------------- */

/* The line that announces a token; sets *reply when it is no such line. False: close. */
static bool
take_announcement(struct token *t, struct slice line, enum reply *reply)
{
    struct slice word = {.p = NULL};
    uint32_t announced = 0;
    if (line.len < LINE_MIN) {
        return false;
    }
    line.len -= line.p[line.len - 1] == '\r';
    bool is_set =
        req_next_word(&line, &word) && word.len >= 3 && memcmp(word.p, "set", 3) == 0;
    for (unsigned i = 1; is_set && i < LINE_WORDS; i++) {
        is_set = req_next_word(&line, &word);
    }
    if (!is_set || !num_u32(word.p, word.len, &announced)) {
        *reply = REPLY_UNAUTHENTICATED;
    } else if (announced > AUTH_TEXT_MAX) {
        *reply = REPLY_TOKEN_TOO_LONG;
    } else {
        t->expected = announced + LINE_END_BYTES;
        t->got = 0;
        t->has_blank = false;
    }
    return true;
}

/* How many of the bytes belong to the token. */
static size_t
take_bytes(struct token *t, const char *p, size_t len)
{
    size_t part = t->expected - t->got < len ? t->expected - t->got : len;
    for (size_t i = 0; i < part; i++, t->got++) {
        t->has_blank |= p[i] == ' ';
        if (t->got < TOKEN_KEPT) {
            t->kept[t->got] = p[i];
        }
        t->last[0] = t->last[1];
        t->last[1] = (uint8_t)p[i];
    }
    return part;
}

static enum reply
judge(struct auth *a, struct token *t)
{
    size_t len = t->expected - LINE_END_BYTES;
    t->expected = 0;
    if (t->last[0] != '\r' || t->last[1] != '\n') {
        return REPLY_TOKEN_BAD_END;
    }
    if (!t->has_blank) {
        return REPLY_TOKEN_BAD_FORMAT;
    }
    const char *blank = len <= TOKEN_KEPT ? memchr(t->kept, ' ', len) : NULL;
    if (blank == NULL) {
        return REPLY_AUTH_FAILURE;
    }
    struct slice user = {t->kept, (size_t)(blank - t->kept)};
    struct slice password = {blank + 1, len - user.len - 1};
    bool is_known = auth_check_token(a, user, password);
    explicit_bzero(t, sizeof *t);
    return is_known ? REPLY_STORED : REPLY_AUTH_FAILURE;
}

enum auth_gate
auth_gate(struct auth *a, struct auth_session **session, const char *p, size_t len,
          size_t *consumed, enum reply *reply)
{
    struct auth_session *s = session_of(a, session);
    *consumed = 0;
    *reply = REPLY_NONE;
    if (a->kind != KIND_TOKENS || s == NULL) {
        return AUTH_GATE_CLOSE;
    }
    if (s->token == NULL && (s->token = calloc(1, sizeof *s->token)) == NULL) {
        return AUTH_GATE_CLOSE;
    }
    if (s->token->expected == 0) {
        size_t most = len < LINE_MAX_BYTES + 1 ? len : LINE_MAX_BYTES + 1;
        const char *line_feed = most > 0 ? memchr(p, '\n', most) : NULL;
        if (line_feed == NULL) {
            return len > LINE_MAX_BYTES ? AUTH_GATE_CLOSE : AUTH_GATE_MORE;
        }
        struct slice line = {p, (size_t)(line_feed - p)};
        *consumed = line.len + 1;
        if (!take_announcement(s->token, line, reply)) {
            return AUTH_GATE_CLOSE;
        }
    }
    if (*reply == REPLY_NONE) {
        *consumed += take_bytes(s->token, p + *consumed, len - *consumed);
        if (s->token->got < s->token->expected) {
            return AUTH_GATE_MORE;
        }
        *reply = judge(a, s->token);
    }
    return AUTH_GATE_REPLY;
}
