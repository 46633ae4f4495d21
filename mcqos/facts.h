/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a server says of itself: the lines of "stats", by name. One thread; the owner ends them with
 * facts_fini.
 */
#pragma once

#include "mcqos/link.h"

struct fact {
    char *name, *value;
};

struct facts {
    struct fact *rows;
    size_t count;
    nsec_t at; /* when they were asked for */
    /* questions of this program that the counts of requests include: of the class control, small */
    unsigned asked, login_asked;
};

/* Adds the lines of "stats GROUP"; an empty GROUP is the plain "stats". */
must_check enum outcome facts_ask(struct facts *f, struct link *l, const char *group);
void facts_add(struct facts *f, const char *name, const char *value);
void facts_fini(struct facts *f);

/* The value of a name; NULL: it is not there. */
__attribute__((format(printf, 2, 3))) const char *facts_text(const struct facts *f,
                                                             const char *format, ...);
/* Likewise; NAN: it is not there, or no number. */
__attribute__((format(printf, 2, 3))) double facts_number(const struct facts *f,
                                                          const char *format, ...);
