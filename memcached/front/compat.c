/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which memcached the server behaves like, and what of theirs is accepted or refused.
 */
#include "front/front.h"

#define CHUNK_MAX_SPLIT (STORE_PAGE_BYTES / 2)

/* The defaults depend on it, so it was looked for before (find_profile). */
static const char *
set_compat(void *conf, const char *text)
{
    enum profile profile;
    (void)conf;
    return rules_profile(text, &profile) ? NULL : "--compat must be native, 1.6 or 1.4";
}

/* What 1.6 has by default, or what 1.4 has. */
static void
set_generation(struct settings *s, bool is_modern)
{
    s->listen.rejects_fast = s->store.can_reassign = s->maint.has_crawler = is_modern;
    s->maint.has_maintainer = is_modern;
    s->store.lru.policy = !is_modern                            ? STORE_LRU_FLAT
                          : rules_of(s->profile)->lru_is_s3fifo ? STORE_LRU_S3FIFO
                                                                : STORE_LRU_SEGMENTED;
    s->automove.level = is_modern;
    s->hash_algorithm = is_modern ? "murmur3" : "jenkins";
}

static void
init(struct settings *s)
{
    s->store.inline_suffix = s->profile == PROFILE_14;
    set_generation(s, s->profile != PROFILE_14);
}

static const char *
set_modern(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    if (!rules_of(s->profile)->is_always_modern) {
        s->chunk_max = s->chunk_max == 0 ? CHUNK_MAX_SPLIT : s->chunk_max;
        s->store.inline_suffix = false;
        set_generation(s, true);
    }
    return NULL;
}

static const char *
set_no_modern(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    s->chunk_max = s->chunk_max == 0 ? STORE_PAGE_BYTES : s->chunk_max;
    set_generation(s, false);
    return NULL;
}

static const char *
set_nothing(void *conf, const char *text)
{
    (void)conf, (void)text;
    return NULL;
}

#define REFUSED(word_, arg_, what)                                                       \
    {                                                                                    \
        .word = word_, .kind = OPT_REFUSE, .arg = arg_, .section = COMPAT,               \
        .error = "This server is not built with " what "."                               \
    }

/* clang-format off */
static const struct opt options[] = {
    {.name = "compat", SET(set_compat), .exit_status = FRONT_USAGE, .arg = "V",
     .section = COMPAT, .common = 14, .preset_help = "native",
     .help = "behave like 1.4, 1.6 or native"},
    {.letter = 'o', .name = "extended", .kind = OPT_WORDS, .arg = "WORD[=VALUE],...",
     .section = COMPAT, .help = "options that have no letter, below as -o WORD"},
    {.word = "modern", SET(set_modern), .section = COMPAT,
     .help = "with --compat=1.4: the defaults of 1.6; else no effect"},
    {.word = "no_modern", SET(set_no_modern), .section = COMPAT,
     .help = "the defaults of 1.4"},
    /* Accepted in silence: what they ask for is so in any case. */
    {.word = "inline_ascii_resp", SET(set_nothing), .section = COMPAT,
     .help = "the default in 1.4, without effect otherwise"},
    {.word = "relaxed_privileges", SET(set_nothing), .section = COMPAT,
     .help = "no effect: there is no sandbox"},
    {.word = "no_drop_privileges", SET(set_nothing), .section = COMPAT},
    /* Accepted with a line that says so. */
    {.word = "drop_privileges", .kind = OPT_IGNORE, .section = COMPAT},
    {.word = "resp_obj_mem_limit", .kind = OPT_IGNORE, .arg = "N?", .section = NETWORK,
     .help = "no effect; read_buf_mem_limit bounds replies"},
    /* Parts of other builds. Not in the help, which harnesses search for their names. */
    REFUSED("ext_path", "X?", "external storage"),
    REFUSED("ext_page_size", "X?", "external storage"),
    REFUSED("ext_wbuf_size", "X?", "external storage"),
    REFUSED("ext_threads", "X?", "external storage"),
    REFUSED("ext_io_depth", "X?", "external storage"),
    REFUSED("ext_item_size", "X?", "external storage"),
    REFUSED("ext_item_age", "X?", "external storage"),
    REFUSED("ext_low_ttl", "X?", "external storage"),
    REFUSED("ext_recache_rate", "X?", "external storage"),
    REFUSED("ext_compact_under", "X?", "external storage"),
    REFUSED("ext_drop_under", "X?", "external storage"),
    REFUSED("ext_max_frag", "X?", "external storage"),
    REFUSED("ext_max_sleep", "X?", "external storage"),
    REFUSED("ext_drop_unread", "X?", "external storage"),
    REFUSED("slab_automove_freeratio", "X?", "external storage"),
    REFUSED("proxy_config", "X?", "a proxy"),
    REFUSED("sock_cookie_id", "N?", "socket cookies"),
};
/* clang-format on */

const struct front front_compat = {OPTIONS(options), .init = init};
