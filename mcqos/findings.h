/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a person should hear of a view, with its remedy. Part of view.
 */
#pragma once

#include "mcqos/view.h"

/* Fills v->findings from the rest of it. */
void findings_add(struct view *v);
