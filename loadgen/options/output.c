/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is told, and to whom.
 */
#include "loadgen/options/group.h"

#include <string.h>

static const char *
call_progress(void *conf, const char *text)
{
    static const char *const names[] = {
        [PROGRESS_AUTO] = "auto",
        [PROGRESS_NONE] = "none",
        [PROGRESS_ALWAYS] = "always",
    };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            ((struct options *)conf)->progress = (enum options_progress)i;
            return NULL;
        }
    }
    return "progress is auto, none or always";
}

/* clang-format off */
static const struct opt rows[] = {
    {.name = "json", .kind = OPT_TEXT, OF_RUN(json), .arg = "FILE",
     .help = "write the result as JSON too"},
    {.name = "progress", .kind = OPT_CALL, .call = call_progress,
     .arg = "auto|none|always",
     .help = "a line a second on stderr (auto: on a terminal)"},
    {.letter = 'v', .name = "verbose", .kind = OPT_COUNT, OF_RUN(verbose),
     .help = "say more on stderr"},
    {.name = "quiet", .kind = OPT_FLAG, OF_RUN(is_quiet),
     .help = "nothing on stderr but errors"},
    {.letter = 'h', .name = "help", .kind = OPT_FLAG, OF_RUN(wants_help),
     .help = "print this and end"},
    {.name = "version", .kind = OPT_FLAG, OF_RUN(wants_version),
     .help = "print the version and end"},
    REFUSED_VALUE(0, "save"),
};
/* clang-format on */

const struct run_group group_output = {ROWS(rows)};
