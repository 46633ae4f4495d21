/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The live page: one document, made of live.html at build time. The HTTP server's thread.
 */
#pragma once

#include <stddef.h>

#include "admin/page.h"

/* What may run in it: its own script and style, named by their SHA-256. t/74-live.t says
 * what they are after a change. */
#define LIVE_SCRIPT_HASH "sha256-XrX3Zj7kxnQiRIROfeML+tlL2UuQI/foctESQMRpKi0="
#define LIVE_STYLE_HASH "sha256-ZLmXBrsgG+uvZsgfBUp5R2A2v+dJ2FVvM9h6di8Ze6s="

extern const unsigned char live_html[];
extern const size_t live_html_len;

admin_page live_page;
