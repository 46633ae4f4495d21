/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/exec.h"

enum session_ran
exec_reply(const struct session *s, const struct env *env, struct chain *out,
           enum reply reply)
{
    if (s->req.is_noreply || ascii_put_reply(out, &env->chain, reply)) {
        return RAN_DONE;
    }
    return RAN_NO_MEMORY;
}
