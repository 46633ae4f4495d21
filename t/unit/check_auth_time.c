/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Checking a name and a password takes the same instructions in the same order whatever of them
 * is wrong: a child that checks is run step by step, and its path compared. No clock is read.
 */
#include "serve/auth.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_main.h"

#define CHILD_CANNOT 77
#define FNV_PRIME UINT64_C(1099511628211)
#define STEPS_MIN 1000 /* fewer: what should be measured was not */

/* A sanitizer's code is not the one that is shipped, and slow by steps. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ ||                       \
    defined __SANITIZE_UNDEFINED__
#define IS_INSTRUMENTED true
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_INSTRUMENTED true
#endif
#endif
#ifndef IS_INSTRUMENTED
#define IS_INSTRUMENTED false
#endif

/* The path of a call: how many instructions, and where they were. */
struct path {
    unsigned long steps;
    uint64_t places;
    bool is_accepted;
};

typedef bool (*check_fn)(struct auth *a, const char *user, const char *password);

static char file_name[SCRATCH_PATH];
static char err[512];

static bool
check_token(struct auth *a, const char *user, const char *password)
{
    return auth_check_token(a, (struct slice){user, strlen(user)},
                            (struct slice){password, strlen(password)});
}

static bool
check_plain(struct auth *a, const char *user, const char *password)
{
    char data[64] = "";
    struct auth_session *session = NULL;
    struct slice challenge;
    size_t user_len = strlen(user), len = 2 + user_len + strlen(password);
    memcpy(data + 1, user, user_len);
    memcpy(data + 2 + user_len, password, strlen(password));
    enum auth_status status = auth_start(a, &session, (struct slice){"PLAIN", 5},
                                         (struct slice){data, len}, NULL, &challenge);
    auth_end(&session);
    return status == AUTH_DONE;
}

static uint64_t
place_of(pid_t child)
{
#if defined __x86_64__
    struct user_regs_struct registers;
    ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &registers), 0);
    return registers.rip;
#else
    (void)child; /* the number of instructions alone */
    return 0;
#endif
}

static void
run_child(check_fn check, struct auth *a, const char *user, const char *password)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(CHILD_CANNOT);
    }
    raise(SIGSTOP);
    bool is_accepted = check(a, user, password);
    raise(SIGSTOP);
    _exit(is_accepted ? 1 : 0);
}

/* False when a process may not look at its child here. */
static bool
trace(check_fn check, struct auth *a, const char *user, const char *password,
      struct path *path)
{
    int status;
    *path = (struct path){.steps = 0};
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        run_child(check, a, user, password);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        ck_assert_int_eq(WEXITSTATUS(status), CHILD_CANNOT);
        return false;
    }
    do {
        ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSTOPPED(status));
        path->steps++;
        path->places = (path->places ^ place_of(child)) * FNV_PRIME;
    } while (WSTOPSIG(status) == SIGTRAP);
    ck_assert_int_eq(WSTOPSIG(status), SIGSTOP);
    ck_assert_int_eq(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    path->is_accepted = WEXITSTATUS(status) == 1;
    return true;
}

static const struct {
    const char *user, *password;
    bool is_accepted;
} attempts[] = {
    {"nobody00", "password", false}, /* unknown */
    {"someone1", "xecret-1", false}, /* the first byte */
    {"someone1", "secret-x", false}, /* the last byte */
    {"someone1", "xxxxxxxx", false}, /* all */
    {"xomeone1", "secret-1", false}, /* the first byte of the name */
    {"someonex", "secret-1", false}, /* its last byte */
    {"someone8", "xecret-8", false}, /* an entry at the end */
    {"someone8", "secret-x", false},
    {"someone1", "secret-8", false}, /* another's password */
    {"someone1", "secret-1", true},
    {"someone8", "secret-8", true},
};

/* Few: each is compared in full, and each instruction of that is two changes of process. */
static const char entries[] = "someone1:secret-1\nlonger-name:\nsomeone8:secret-8\n";

/* with_success: the path to acceptance is that of refusal as well. */
static void
compare(struct auth *a, check_fn check, bool with_success)
{
    struct path first, path;
    ck_assert_msg(a != NULL, "%s", err);
    if (IS_INSTRUMENTED ||
        !trace(check, a, attempts[0].user, attempts[0].password, &first)) {
        puts("# nothing compared: a sanitizer, or no leave to trace");
        return;
    }
    ck_assert_uint_ge(first.steps, STEPS_MIN);
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        if (attempts[i].is_accepted && !with_success) {
            continue;
        }
        ck_assert(trace(check, a, attempts[i].user, attempts[i].password, &path));
        ck_assert_int_eq(path.is_accepted, attempts[i].is_accepted);
        ck_assert_msg(path.steps == first.steps && path.places == first.places,
                      "%s:%s takes %lu instructions, not %lu, or others",
                      attempts[i].user, attempts[i].password, path.steps, first.steps);
    }
}

static void
write_entries(void)
{
    scratch_file(file_name, entries, sizeof entries - 1);
}

TEST(a_token)
{
    write_entries();
    SCOPED(auth_close)
    struct auth *a = auth_open_tokens(file_name, NULL, err, sizeof err);
    unlink(file_name);
    compare(a, check_token, true);
}

TEST(a_password)
{
    write_entries();
    SCOPED(auth_close) struct auth *a = auth_open_sasl(file_name, NULL, err, sizeof err);
    unlink(file_name);
    compare(a, check_token, true);
    compare(a, check_plain, false);
}

/* The comparison would find one that stops at the first difference. */
static bool
check_hastily(struct auth *a, const char *user, const char *password)
{
    (void)a;
    volatile unsigned work = 0;
    for (unsigned i = 0; i < STEPS_MIN; i++) {
        work++;
    }
    size_t i = 0;
    while (user[i] == attempts[0].user[i] && user[i] != '\0') {
        i++;
    }
    return user[i] == '\0' && strcmp(password, attempts[0].password) == 0;
}

TEST(a_hasty_check_is_found)
{
    struct path first, other;
    if (IS_INSTRUMENTED || !trace(check_hastily, NULL, "xobody00", "password", &first)) {
        puts("# nothing compared: a sanitizer, or no leave to trace");
        return;
    }
    ck_assert(trace(check_hastily, NULL, "nobodyxx", "password", &other));
    ck_assert_uint_ne(first.steps, other.steps);
}
