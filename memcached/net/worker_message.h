/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a worker's mailbox brings: a connection that has been accepted (struct handoff), one that
 * another worker gives away, or one of its own for which another thread has worked (struct conn).
 */
#pragma once

#include "base/mbox.h"

enum worker_message_kind { MESSAGE_NEW, MESSAGE_MOVED, MESSAGE_BACK };

struct worker_message {
    struct mbox_message message; /* first: the mailbox holds it by this */
    enum worker_message_kind kind;
};
