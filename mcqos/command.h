/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The commands. Each writes its answer to standard output; when it does not end with DONE, the
 * sentence why is in the link. Those that need a server are given an open link.
 */
#pragma once

#include "base/json.h"
#include "mcqos/link.h"
#include "mcqos/options.h"

/* What each JSON answer begins with, the version of its form: what is there stays, more may come. */
#define COMMAND_SCHEMA 1

typedef enum outcome command_run(const struct options *o, struct link *l);

command_run status_run; /* status.c; also class */
command_run top_run;    /* top.c, or top_none.c; opens the link itself */
command_run set_run, pin_run, reload_run;  /* set.c; limit, slo; pin; reload, save */
command_run ping_run, watch_run, dump_run; /* stream.c; ping likewise */
command_run doctor_run;                    /* doctor.c; likewise, if it needs one */
command_run layout_run;                    /* layout.c; needs no server */

/* Opens an answer, and in it a member that is an object or array; NULL: none. What is put into it
 * is JSON in the caller's `room`, which is returned, or lines of text: NULL. */
struct json *command_open(struct json *room, const struct options *o, const char *member,
                          char bracket);
/* A line, its name in so many columns, or a member. Name NULL: text alone. */
void command_put(struct json *j, int columns, const char *name, const char *value);
/* Closes both. */
void command_close(struct json *j, char bracket);
