/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/live.h"

void
live_page(struct admin_view *view, struct http_exchange *x)
{
    (void)view;
    x->policy = "default-src 'none'; connect-src 'self'; img-src data:; "
                "script-src '" LIVE_SCRIPT_HASH "'; style-src '" LIVE_STYLE_HASH "'; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    fwrite(live_html, 1, live_html_len, x->out);
}
