/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Item memory: how much, in what chunks, found by which table, kept in which file.
 */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/num.h"
#include "base/part.h"
#include "base/rng.h"
#include "front/front.h"
#include "serve/maint.h"
#include "store/automove.h"

#define CHUNK_MAX_14 STORE_PAGE_BYTES /* the largest chunk of 1.4 */
#define MEGABYTE (INT64_C(1) << 20)
#define ITEM_MAX_LEAST 1024
#define ITEM_MAX_MOST (INT64_C(1) << 30)
#define CHUNK_ALIGN 8
#define SLAB_SIZE_STEP 8 /* classes must be more than this apart */
#define AUTOMOVE_LEVEL_MAX 2
#define GROWTH_FACTOR 1.25
#define MIN_SPACE 48
/* Classes of our own: close together up to 512 bytes, then as in 1.6. */
#define FINE_FIRST 56
#define FINE_NEXT 600
#define HASH_POWER_LEAST 12
#define HASH_POWER_DEFAULT 16
#define HASH_POWER_MOST 32

/* ---- options -------------------------------------------------------------------------- */

static const char *
set_hash_power(void *conf, const char *text)
{
    struct settings *s = conf;
    if (!num_u32(text, strlen(text), &s->hash_power)) {
        return "Missing numeric argument for hashpower";
    }
    if (s->hash_power < HASH_POWER_LEAST) {
        return front_say("Initial hashtable multiplier of %s is too low", text);
    }
    return s->hash_power > HASH_POWER_MOST
               ? front_say("Initial hashtable multiplier of %s is too high", text)
               : NULL;
}

/* The table's hash is keyed and the same in every case; clients can not tell. */
static const char *
set_hash_algorithm(void *conf, const char *text)
{
    static const char *const names[] = {"jenkins", "murmur3", "xxh3"};
    struct settings *s = conf;
    const unsigned count = sizeof names / sizeof *names;
    unsigned i = part_find(names, count, text, strlen(text));
    if (i < count) {
        s->hash_algorithm = names[i];
        return NULL;
    }
    return "Unknown hash_algorithm option (jenkins, murmur3, xxh3)";
}

static const char *
set_chunk_max(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t number;
    bool in_kilobytes = rules_of(s->profile)->chunk_max_is_in_kilobytes;
    if (!num_u32(text, strlen(text), &number) || number == 0) {
        return "slab_chunk_max must be > 0";
    }
    if (in_kilobytes && number > 1024) {
        return "slab_chunk_max must be specified in kilobytes, at most 1024";
    }
    s->chunk_max = in_kilobytes ? (int64_t)number * 1024 : number;
    return NULL;
}

/* "1-2-3", checked against the other sizes when all options are known. */
static const char *
set_slab_sizes(void *conf, const char *text)
{
    struct settings *s = conf;
    s->slab_size_count = 0;
    while (true) {
        size_t len = strcspn(text, "-");
        if (s->slab_size_count == SETTINGS_SLAB_SIZES_MAX) {
            return "too many slab classes specified";
        }
        if (!num_u32(text, len, &s->slab_sizes[s->slab_size_count])) {
            return front_say("slab size %.*s is out of valid range", (int)len, text);
        }
        s->slab_size_count++;
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

static const char *
set_automove(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t level = 1;
    if (text != NULL &&
        (!num_u32(text, strlen(text), &level) || level > AUTOMOVE_LEVEL_MAX)) {
        return "slab_automove must be between 0 and 2";
    }
    s->automove.level = level;
    return NULL;
}

static const char *
set_automove_window(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t most = rules_of(s->profile)->automove_window_max;
    uint32_t window;
    if (!num_u32(text, strlen(text), &window) || window < AUTOMOVE_WINDOW_MIN ||
        window > most) {
        return most < UINT32_MAX ? "slab_automove_window must be > 2 and < 1800"
                                 : "slab_automove_window must be > 2";
    }
    s->automove.window = window < AUTOMOVE_WINDOW_MAX ? window : AUTOMOVE_WINDOW_MAX;
    return NULL;
}

/* ---- at run time ---------------------------------------------------------------------- */

static void
read_limit(void *program, void *conf)
{
    struct stats *st = program;
    struct store_totals totals;
    store_totals(st->shared->store, &totals);
    ((struct settings *)conf)->memory_mb = (int64_t)(totals.limit_bytes >> 20);
}

/* Memory that was taken at the start stays as much as it is. */
static bool
apply_limit(void *program, const void *conf)
{
    struct stats *st = program;
    return store_set_limit(st->shared->store,
                           (uint64_t)((const struct settings *)conf)->memory_mb << 20);
}

static void
read_automove(void *program, void *conf)
{
    struct stats *st = program;
    ((struct settings *)conf)->automove = store_automove(st->shared->store);
}

static bool
apply_automove(void *program, const void *conf)
{
    struct stats *st = program;
    store_set_automove(st->shared->store, &((const struct settings *)conf)->automove);
    maint_wake(st->shared->serve->maint);
    return true;
}

static const struct opt_live live_limit = {read_limit, apply_limit, NULL, NULL},
                             live_automove = {read_automove, apply_automove, NULL, NULL};

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'm', .name = "memory-limit", .kind = OPT_MEGS, OF(memory_mb), .min = 1,
     .max = 1e9, .arg = "N", .section = MEMORY, .common = 1, .preset = "64",
     .error = "memory must be 1 to 1000000000 megabytes, such as 64, 64m or 1g",
     .live = &live_limit, .help = "item memory in megabytes; 1g is 1024"},
    {.letter = 'M', .name = "disable-evictions", .kind = OPT_OFF, OF(store.can_evict),
     .section = MEMORY,
     .help = "answer an error when memory is full instead of evicting"},
    {.letter = 'f', .name = "slab-growth-factor", .kind = OPT_DOUBLE, OF(store.growth_factor),
     .min = 1.000001, .max = 1e6, .arg = "X", .section = MEMORY, .preset_help = "1.25",
     .error = "Factor must be greater than 1 and at most 1000000", .help = "ratio between slab chunk sizes"},
    {.letter = 'n', .name = "slab-min-size", .kind = OPT_INT, OF(store.min_space), .min = 1,
     .max = 1 << 20, .arg = "N", .section = MEMORY, .preset_help = "48",
     .error = "Chunk size must be greater than 0 and at most 1048576",
     .help = "minimum space for key and value"},
    {.letter = 'C', .name = "disable-cas", .kind = OPT_OFF, OF(store.use_cas),
     .section = MEMORY, .help = "no CAS; items are 8 bytes smaller"},
    {.letter = 'I', .name = "max-item-size", .kind = OPT_BYTES, OF(item_max), .arg = "SIZE",
     .section = MEMORY, .preset = "1m", .help = "largest item, with k or m"},
    {.word = "hashpower", SET(set_hash_power), .arg = "N", .section = MEMORY,
     .preset_help = "16", .help = "hash table starts with 2^N buckets, 12 to 32"},
    {.word = "slab_reassign", .kind = OPT_FLAG, OF(store.can_reassign), .section = MEMORY,
     .help = "allow pages to move between slab classes"},
    {.word = "no_slab_reassign", .kind = OPT_OFF, OF(store.can_reassign), .section = MEMORY,
     .help = "pages do not move between slab classes"},
    {.word = "slab_automove", SET(set_automove), OF(automove.level), .arg = "N?",
     .section = MEMORY, .preset = "1", .old_preset = "0", .live = &live_automove,
     .help = "move pages between classes: 0 never, 1 by hits or age, 2 at each eviction"},
    {.word = "no_slab_automove", .kind = OPT_SET, OF(automove.level), .section = MEMORY,
     .live = &live_automove, .help = "pages move by command only"},
    {.word = "slab_automove_ratio", .kind = OPT_DOUBLE, OF(automove.ratio), .min = 1e-9,
     .max = 1, .arg = "X", .section = MEMORY, .preset = "0.8",
     .live = &live_automove,
     .error = "slab_automove_ratio must be > 0 and < 1",
     .help = "ratio of ages below which the automover moves a page"},
    {.word = "slab_automove_window", SET(set_automove_window), OF(automove.window),
     .arg = "N", .section = MEMORY, .preset = "10", .old_preset = "30", .live = &live_automove,
     .help = "window of the automover in seconds"},
    {.word = "slab_chunk_max", SET(set_chunk_max), .arg = "N", .section = MEMORY,
     .preset_help = "512; in 1.4 1m",
     .help = "largest chunk in kilobytes, in 1.4 in bytes"},
    {.word = "hash_algorithm", SET(set_hash_algorithm), .arg = "jenkins|murmur3|xxh3",
     .section = MEMORY,
     .help = "reported name only; keys are always hashed with keyed XXH3"},
    {.word = "no_inline_ascii_resp", .kind = OPT_OFF, OF(store.inline_suffix),
     .section = MEMORY,
     .help = "account 4 bytes of flags instead of a text suffix per item"},
    {.letter = 'e', .name = "memory-file", .kind = OPT_TEXT, OF(memory_file), .arg = "FILE",
     .section = MEMORY,
     .help = "keep items in FILE across restarts; SIGUSR1 saves and stops"},
    {.word = "no_hashexpand", .kind = OPT_OFF, OF(store.can_grow_hash), .section = MEMORY,
     .help = "never grow the hash table"},
    {.letter = 'k', .name = "lock-memory", .kind = OPT_FLAG, OF(locks_memory),
     .section = MEMORY, .help = "lock all memory with mlockall()"},
    {.letter = 'L', .name = "enable-largepages", .kind = OPT_FLAG, OF(store.preallocates),
     .section = MEMORY,
     .help = "allocate all item memory at the start, in large pages if available"},
    {.word = "slab_sizes", SET(set_slab_sizes), .exit_status = FRONT_USAGE,
     .arg = "A-B-C", .section = MEMORY,
     .help = "chunk sizes of the slab classes instead of those by -n and -f"},
    {.word = "no_chunked_items", .kind = OPT_FLAG, OF(has_whole_items), .section = MEMORY,
     .help = "largest chunk is the largest item; -I at most 1m"},
};
/* clang-format on */

/* The charged bytes of a test that wants to see more than 32 bits. */
static uint64_t
initial_malloced(void)
{
    const char *text = getenv("T_MEMD_INITIAL_MALLOC");
    uint64_t bytes;
    return text != NULL && num_u64(text, strlen(text), &bytes) ? bytes : 0;
}

static void
init(struct settings *s)
{
    s->store.can_evict = s->store.use_cas = s->store.can_grow_hash = true;
    s->store.initial_malloced = initial_malloced();
}

/* ---- what they must be together ------------------------------------------------------- */

static const char *
check_item_max(const struct settings *s, int *status)
{
    const struct rules *rules = rules_of(s->profile);
    int64_t part = MEGABYTE / rules->item_share; /* of each megabyte of -m */
    *status = (int)rules->item_status;
    if (s->item_max < ITEM_MAX_LEAST) {
        return "Item max size cannot be less than 1024 bytes.";
    }
    if (s->item_max > ITEM_MAX_MOST) {
        return "Cannot set item size limit higher than a gigabyte.";
    }
    if (s->item_max > MEGABYTE && s->item_max > s->memory_mb * part) {
        return front_say("Cannot set item size limit higher than 1/%u of memory max. "
                         "Give -m %lld or more, or a smaller -I",
                         rules->item_share, (long long)((s->item_max - 1) / part + 1));
    }
    *status = FRONT_USAGE;
    return NULL;
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

static const char *
check_chunk_max(struct settings *s)
{
    bool is_given = s->chunk_max != 0;
    if (s->has_whole_items && s->item_max > STORE_PAGE_BYTES) {
        return "no_chunked_items: items above one megabyte (-I) need chunks";
    }
    if (!is_given || s->has_whole_items) {
        s->chunk_max = default_chunk_max(s);
    }
    if (s->chunk_max > s->item_max) {
        return front_say(
            "slab_chunk_max (bytes: %lld) cannot be larger than -I (item_size_max %lld)",
            (long long)s->chunk_max, (long long)s->item_max);
    }
    if (s->item_max % s->chunk_max != 0) {
        return front_say("-I (item_size_max: %lld) must be evenly divisible by "
                         "slab_chunk_max (bytes: %lld)",
                         (long long)s->item_max, (long long)s->chunk_max);
    }
    if (is_given && STORE_PAGE_BYTES % s->chunk_max != 0) {
        return front_say("slab_chunk_max (bytes: %lld) must divide evenly into the slab "
                         "page size (%d)",
                         (long long)s->chunk_max, STORE_PAGE_BYTES);
    }
    return s->chunk_max % CHUNK_ALIGN != 0
               ? "the largest chunk must be a multiple of 8 bytes"
               : NULL;
}

static const char *
check_slab_sizes(const struct settings *s)
{
    uint32_t last = 0;
    for (unsigned i = 0; i < s->slab_size_count; i++) {
        uint32_t size = s->slab_sizes[i];
        if (size < s->store.min_space || size > s->chunk_max) {
            return front_say("slab size %u is out of valid range", size);
        }
        if (size <= last) {
            return front_say("slab size %u cannot be lower than or equal to a previous "
                             "class size",
                             size);
        }
        if (i > 0 && size <= last + SLAB_SIZE_STEP) {
            return front_say("slab size %u must be at least %d bytes larger than "
                             "previous class",
                             size, SLAB_SIZE_STEP);
        }
        last = size;
    }
    return NULL;
}

/* The largest chunk is a class in any case. */
static void
add_slab_size(struct settings *s, uint32_t size)
{
    if (size < s->chunk_max && s->slab_size_count < SETTINGS_SLAB_SIZES_MAX) {
        s->slab_sizes[s->slab_size_count++] = size;
    }
}

static void
make_fine_sizes(struct settings *s)
{
    /* So many bytes apart, up to that size. */
    static const struct {
        uint32_t apart, end;
    } steps[] = {{8, 192}, {16, 320}, {32, 512}};
    uint32_t size = FINE_FIRST - steps[0].apart;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        while (size < steps[i].end) {
            add_slab_size(s, size += steps[i].apart);
        }
    }
    for (size = FINE_NEXT; size < s->chunk_max / GROWTH_FACTOR;
         size =
             ((uint32_t)(size * GROWTH_FACTOR) + CHUNK_ALIGN - 1) & ~(CHUNK_ALIGN - 1u)) {
        add_slab_size(s, size);
    }
}

/* The profile's own, but for what is given. */
static const char *
settle_slab_sizes(struct settings *s)
{
    struct store_conf *conf = &s->store;
    bool is_given =
        conf->growth_factor != 0 || conf->min_space != 0 || s->slab_size_count > 0;
    conf->growth_factor = conf->growth_factor != 0 ? conf->growth_factor : GROWTH_FACTOR;
    conf->min_space = conf->min_space != 0 ? conf->min_space : MIN_SPACE;
    const char *wrong = check_slab_sizes(s);
    if (!is_given && rules_of(s->profile)->slab_classes_are_fine) {
        make_fine_sizes(s);
        conf->lends_chunks = true;
    }
    conf->sizes = s->slab_size_count > 0 ? s->slab_sizes : NULL;
    conf->size_count = s->slab_size_count;
    return wrong;
}

static const char *
settle(struct settings *s, struct settling *to)
{
    struct store_conf *conf = &s->store;
    const char *wrong = check_item_max(s, &to->status);
    wrong = wrong == NULL ? check_chunk_max(s) : wrong;
    wrong = wrong == NULL ? settle_slab_sizes(s) : wrong;
    conf->limit_bytes = (uint64_t)s->memory_mb << 20;
    conf->item_max = (uint32_t)s->item_max;
    conf->chunk_max = (uint32_t)s->chunk_max;
    conf->hash_power = s->hash_power != 0 ? s->hash_power : HASH_POWER_DEFAULT;
    conf->threads = (unsigned)s->threads;
    conf->hash_seed = rng_seed();
    conf->whole_pages = conf->can_reassign || s->chunk_max != CHUNK_MAX_14;
    conf->is_lean = rules_of(s->profile)->items_are_lean;
    struct sysinfo machine;
    if (sysinfo(&machine) == 0) {
        conf->machine_bytes =
            ((uint64_t)machine.totalram + machine.totalswap) * machine.mem_unit;
    }
    /* Addresses count as locked memory, which has a limit for some. */
    conf->reserves_least =
        s->locks_memory &&
        (geteuid() != 0 || prctl(PR_CAPBSET_READ, CAP_IPC_LOCK, 0L, 0L, 0L) != 1);
    conf->keeps_pages_when_full = !rules_of(s->profile)->mover_may_evict;
    s->serve.use_cas = conf->use_cas;
    return wrong;
}

const struct front front_memory = {OPTIONS(options), .init = init, .settle = settle};
