/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the options must be together. Here because no option may depend on what stands to its
 * right.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "serve/auth.h"
#include "front/settings.h"

#define EX_USAGE_STATUS 64
#define MEGABYTE (INT64_C(1) << 20)
#define ITEM_MAX_LEAST 1024
#define ITEM_MAX_MOST (INT64_C(1) << 30)
#define CHUNK_ALIGN 8
#define SLAB_SIZE_STEP 8     /* classes must be more than this apart */
#define SEGMENTS_PCT_MOST 80 /* of HOT and WARM together */
#define MANY_THREADS 64

__attribute__((format(printf, 3, 4))) static bool
fail(int *exit_status, int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("memcached: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    *exit_status = status;
    return false;
}

static bool
check_item_max(const struct settings *s, int *exit_status)
{
    const struct rules *rules = rules_of(s->profile);
    int status = (int)rules->item_status;
    int64_t part = MEGABYTE / rules->item_share; /* of each megabyte of -m */
    if (s->item_max < ITEM_MAX_LEAST) {
        return fail(exit_status, status, "Item max size cannot be less than 1024 bytes.");
    }
    if (s->item_max > ITEM_MAX_MOST) {
        return fail(exit_status, status,
                    "Cannot set item size limit higher than a gigabyte.");
    }
    if (s->item_max > MEGABYTE && s->item_max > s->memory_mb * part) {
        return fail(exit_status, status,
                    "Cannot set item size limit higher than 1/%u of memory max. "
                    "Give -m %lld or more, or a smaller -I",
                    rules->item_share, (long long)((s->item_max - 1) / part + 1));
    }
    return true;
}

static int64_t
default_chunk_max(const struct settings *s)
{
    int64_t largest = rules_of(s->profile)->chunk_max;
    if (s->item_max > STORE_PAGE_BYTES) {
        largest = STORE_PAGE_BYTES / 2;
    }
    return s->has_whole_items || largest > s->item_max ? s->item_max : largest;
}

static bool
check_chunk_max(struct settings *s, int *exit_status)
{
    bool is_given = s->chunk_max != 0;
    if (s->has_whole_items && s->item_max > STORE_PAGE_BYTES) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "no_chunked_items: items above one megabyte (-I) need chunks");
    }
    if (!is_given || s->has_whole_items) {
        s->chunk_max = default_chunk_max(s);
    }
    if (s->chunk_max > s->item_max) {
        return fail(
            exit_status, EX_USAGE_STATUS,
            "slab_chunk_max (bytes: %lld) cannot be larger than -I (item_size_max %lld)",
            (long long)s->chunk_max, (long long)s->item_max);
    }
    if (s->item_max % s->chunk_max != 0) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "-I (item_size_max: %lld) must be evenly divisible by slab_chunk_max "
                    "(bytes: %lld)",
                    (long long)s->item_max, (long long)s->chunk_max);
    }
    if (is_given && STORE_PAGE_BYTES % s->chunk_max != 0) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "slab_chunk_max (bytes: %lld) must divide evenly into the slab page "
                    "size (%d)",
                    (long long)s->chunk_max, STORE_PAGE_BYTES);
    }
    if (s->chunk_max % CHUNK_ALIGN != 0) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "the largest chunk must be a multiple of 8 bytes");
    }
    return true;
}

static bool
check_slab_sizes(const struct settings *s, int *exit_status)
{
    uint32_t last = 0;
    for (unsigned i = 0; i < s->slab_size_count; i++) {
        uint32_t size = s->slab_sizes[i];
        if (size < s->min_space || size > s->chunk_max) {
            return fail(exit_status, EX_USAGE_STATUS,
                        "slab size %u is out of valid range", size);
        }
        if (size <= last) {
            return fail(exit_status, EX_USAGE_STATUS,
                        "slab size %u cannot be lower than or equal to a previous class "
                        "size",
                        size);
        }
        if (i > 0 && size <= last + SLAB_SIZE_STEP) {
            return fail(exit_status, EX_USAGE_STATUS,
                        "slab size %u must be at least %d bytes larger than previous "
                        "class",
                        size, SLAB_SIZE_STEP);
        }
        last = size;
    }
    return true;
}

static bool
check_lru(const struct settings *s, int *exit_status)
{
    if (s->hot_pct + s->warm_pct > SEGMENTS_PCT_MOST) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "hot_lru_pct + warm_lru_pct cannot be more than %d%% combined",
                    SEGMENTS_PCT_MOST);
    }
    if (s->has_temp && !s->has_maintainer) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "temporary_ttl requires lru_maintainer to be enabled");
    }
    return true;
}

/* No datagram carries a name, so UDP and authentication exclude each other. */
static bool
check_udp(struct settings *s, int *exit_status)
{
    if (s->udp_port == 0 || (!s->uses_sasl && s->token_file == NULL)) {
        return true;
    }
    if (s->token_file != NULL) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "Cannot use UDP with ascii authentication enabled (-U 0 to disable)");
    }
    if (rules_of(s->profile)->udp_refuses_sasl) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "ERROR: Cannot enable UDP while using binary SASL authentication.");
    }
    fputs("memcached: warning: UDP stays closed, because it has no authentication (-S)\n",
          stderr);
    s->udp_port = 0;
    return true;
}

static bool
check_auth(struct settings *s, int *exit_status)
{
    if (s->uses_sasl && s->password_file == NULL && !auth_has_library()) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "This server is not built with SASL support.");
    }
    if (s->uses_sasl && (s->token_file != NULL ||
                         (s->is_binding_given && s->binding != BINDING_BINARY))) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "ERROR: You cannot allow the ASCII protocol while using SASL.");
    }
    if (s->token_file != NULL && s->is_binding_given && s->binding != BINDING_ASCII) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "ERROR: You cannot allow the BINARY protocol while using ascii "
                    "authentication tokens.");
    }
    if (s->uses_sasl) {
        s->binding = BINDING_BINARY;
    } else if (s->token_file != NULL) {
        s->binding = BINDING_ASCII;
    }
    return check_udp(s, exit_status);
}

static bool
check_connections(const struct settings *s, int *exit_status)
{
    if (s->max_conns <= s->threads * SETTINGS_FILES_PER_WORKER + 1) {
        return fail(exit_status, 1,
                    "Maxconns setting is too low, use -c to increase: %" PRId64
                    " threads need more than %" PRId64,
                    s->threads, s->threads * SETTINGS_FILES_PER_WORKER + 1);
    }
    if (s->threads > MANY_THREADS) {
        fputs("memcached: warning: a high number of worker threads is not recommended; "
              "more than the CPUs only cost\n",
              stderr);
    }
    return true;
}

static bool
check_tls(const struct settings *s, int *exit_status)
{
    if (s->uses_tls && s->port == LISTEN_PORT_OFF) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "ERROR: You cannot enable SSL without a TCP port.");
    }
    return true;
}

static bool
check_resctrl(const struct settings *s, int *exit_status)
{
    if (s->resctrl.schemata != NULL && s->resctrl.group == NULL) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "resctrl-schemata are the limits of a group: --resctrl names it");
    }
    return true;
}

/* A default burst that is more than a second's worth surprises its user. */
static void
tell_burst(const char *option, const char *name, struct limiter_rule rule)
{
    uint64_t burst = limit_default_burst(rule.rate);
    if (rule.rate > 0 && rule.burst == 0 && burst > rule.rate) {
        fprintf(
            stderr,
            "memcached: warning: --%s=%s%llu lets %llu requests through at once after a "
            "pause; burst=N behind it sets another number\n",
            option, name, (unsigned long long)rule.rate, (unsigned long long)burst);
    }
}

static void
tell_bursts(const struct settings *s)
{
    char name[32];
    tell_burst("qps-limit", "", s->limits.total);
    tell_burst("qps-limit-peer", "", s->limits.peer);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        snprintf(name, sizeof name, "%s=", class_name((enum req_class)c));
        tell_burst("qps-limit", name, s->limits.by_class[c]);
    }
}

bool
settings_check(struct settings *s, int *exit_status)
{
    tell_bursts(s);
    return check_item_max(s, exit_status) && check_chunk_max(s, exit_status) &&
           check_slab_sizes(s, exit_status) && check_lru(s, exit_status) &&
           check_auth(s, exit_status) && check_tls(s, exit_status) &&
           check_resctrl(s, exit_status) && check_connections(s, exit_status);
}
