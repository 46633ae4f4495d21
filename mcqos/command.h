/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The commands. Each writes its answer to standard output; when it does not end with DONE, the
 * sentence why is in the link. Those that need a server are given an open link.
 */
#pragma once

#include "mcqos/link.h"
#include "mcqos/options.h"

/* What each JSON answer begins with, and the version of its form: what is there stays, more may come. */
#define COMMAND_SCHEMA 1

typedef enum outcome command_run(const struct options *o, struct link *l);

command_run status_run; /* status.c; also class */
command_run top_run;    /* top.c, or top_none.c; opens the link itself */
command_run set_run, pin_run, reload_run;  /* set.c; limit, slo; pin; reload, save */
command_run ping_run, watch_run, dump_run; /* stream.c; ping likewise */
command_run layout_run;                    /* layout.c; needs no server */

struct json;
/* Opens an answer: its first members. */
void command_open_json(struct json *j, const struct options *o);
