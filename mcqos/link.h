/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The connection to a server: questions in the text protocol, answers line by line, each question
 * with a deadline. One thread; the owner ends it with link_close.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "mcqos/options.h"

/* How a command ended: the exit status of the program. */
enum outcome {
    DONE = 0,
    REFUSED = 1,     /* the server answers, but not as it should */
    UNREACHABLE = 2, /* no connection, no answer in time, or half of one */
    USAGE = 64,      /* as the server's */
};

#define LINK_LINE_MAX 65536
#define LINK_WHY_MAX 512

struct link {
    int fd;                   /* -1: closed */
    bool has_answered;        /* on this connection */
    bool is_closed;           /* by the server */
    const char *server;       /* as it was given */
    nsec_t timeout, deadline; /* deadline 0: waits for ever */
    unsigned asked;           /* questions, those of earlier connections as well; */
    unsigned login_asked;     /* others, of clients that had no password given yet */
    size_t len, at;           /* of buf: what was read, what was taken */
    char why[LINK_WHY_MAX];   /* the sentence about what failed */
    char buf[LINK_LINE_MAX];
};

/* Connects to HOST, HOST:PORT, [V6]:PORT or the path of a UNIX socket, and gives the password if
 * there is one and the server wants one. The options must live on. l->why, unless it is DONE. The
 * link is initialised in any case. */
must_check enum outcome link_open(struct link *l, const struct options *o);
void link_close(struct link *l);

/* Asks one line, without its end; what comes until the next question has its deadline. */
must_check bool link_ask(struct link *l, const char *question);
/* The next line without its end, cleaned; valid until the next call. NULL, with l->why: there is
 * none. */
must_check char *link_line(struct link *l);
/* Asks a line and takes the first one of the answer. NULL as above. */
must_check char *link_word(struct link *l, const char *question);

/* Nothing that a terminal obeys: what is not printable ASCII becomes '?'. Returns it. */
char *link_clean(char *text, size_t len);
/* Whether the server is on this host, so that the numbers of processes are those of here. */
bool link_is_local(const struct link *l);

/* Writes l->why; returns the outcome. */
__attribute__((format(printf, 3, 4))) enum outcome
link_explain(struct link *l, enum outcome outcome, const char *format, ...);
/* What options_join refuses is no question. */
enum outcome link_no_line(struct link *l);
/* The server answered this line where another was due: writes l->why. */
enum outcome link_refused(struct link *l, const char *question, const char *answer);
