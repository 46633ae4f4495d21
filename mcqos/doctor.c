/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos doctor: becomes memcached --doctor, for the server that is asked which process it is.
 */
#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#include "base/num.h"
#include "mcqos/command.h"
#include "mcqos/facts.h"

#define OPTION_BYTES 512

/* The number of the server's process, as text. */
static enum outcome
ask_process(const struct options *o, struct link *l, char pid[], size_t cap)
{
    struct facts f = {0};
    enum outcome outcome = link_open(l, o);
    if (outcome != DONE) {
        strncat(l->why, "; for a server that is to run: mcqos doctor -- OPTIONS",
                sizeof l->why - strlen(l->why) - 1);
        return outcome;
    }
    outcome = facts_ask(&f, l, "");
    const char *number = facts_text(&f, "pid");
    if (outcome == DONE && (number == NULL || !link_is_local(l))) {
        outcome = link_explain(l, REFUSED,
                               "%s is not on this host: run memcached --doctor=%s there",
                               o->server, number != NULL ? number : "PID");
    }
    snprintf(pid, cap, "%s", outcome == DONE ? number : "");
    facts_fini(&f);
    return outcome;
}

static void
add_word(char option[OPTION_BYTES], const char *word)
{
    size_t len = strlen(option);
    snprintf(option + len, OPTION_BYTES - len, "%c%s",
             strchr(option, '=') != NULL ? ',' : '=', word);
}

enum outcome
doctor_run(const struct options *o, struct link *l)
{
    char option[OPTION_BYTES] = "--doctor", pid[NUM_U64_DIGITS + 1];
    const char *args[OPTIONS_WORDS_MAX + 2] = {o->layout.program, option};
    unsigned count = 2, n = 1;
    bool has_process = false;
    if (o->is_json) {
        add_word(option, "json");
    }
    for (; n < o->count && o->words[n][0] != '-'; n++) {
        has_process = has_process || isdigit((unsigned char)o->words[n][0]);
        add_word(option, o->words[n]);
    }
    if (!has_process && n == o->count) {
        enum outcome outcome = ask_process(o, l, pid, sizeof pid);
        if (outcome != DONE) {
            return outcome;
        }
        add_word(option, pid);
    }
    while (n < o->count) {
        args[count++] = o->words[n++];
    }
    execvp(args[0], (char *const *)args);
    return link_explain(l, USAGE,
                        "cannot start %s: %s; --memcached=PATH says where it is", args[0],
                        strerror(errno));
}
