/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/task.h"

#include "net/conn.h"
#include "net/udp.h"

void
task_take_turn(struct task *t, struct turn *turn)
{
    if (t->is_udp) {
        udp_turn(t, turn);
    } else {
        conn_turn(conn_of_task(t), turn);
    }
}
