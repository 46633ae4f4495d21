/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a worker's mailbox brings: a connection that has been accepted (struct handoff), or one
 * that another worker gives away (struct conn). Embedded as the first member of both.
 */
#pragma once

#include "base/mbox.h"

enum mail_kind { MAIL_NEW, MAIL_MOVED };

struct mail {
    struct mbox_letter letter; /* first: the mailbox holds it by this */
    enum mail_kind kind;
};
