/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/command.h"

enum outcome
top_run(const struct options *o, struct link *l)
{
    (void)o;
    return link_explain(
        l, USAGE,
        "this mcqos was built without ncurses, which top needs; see mcqos "
        "status");
}
