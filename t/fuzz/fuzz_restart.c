/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a restart finds. The first byte chooses between two things.
 *
 * The text of FILE.meta, also with a right checksum put behind it: what is understood is
 * written and understood again.
 *
 * The slab memory and what FILE.meta says of it, behind the checksums: a store that was, with
 * as many changes as the input has records of eight bytes. Either it is refused, or it is a
 * store in which everything is in its place, and which works on.
 */
#include <stdio.h>

#include "../unit/audit_store.h"
#include "fuzz.h"
#include "store/census.h"
#include "store/memfile.h"
#include "store/relink.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FLAG_TEXT 1
#define FLAG_SIGNED 2 /* text */
#define FLAG_NO_CAS 2 /* memory */
#define FLAG_FLAT 4
#define FLAG_LEAN 8
#define VARIANTS 16
#define NOW 1000
#define PAGES 4
#define BYTES ((size_t)PAGES * STORE_PAGE_BYTES)
#define CHUNK_MAX 2048
#define RECORD 8
#define PLACES_MAX 256
#define HEADER_BYTES                                                                     \
    160 /* of a chunk that changes: header, key, header of the first chunk */

/* ---- text ------------------------------------------------------------------------------- */

static void
fuzz_text(const uint8_t *data, size_t size, bool is_signed)
{
    struct text t = {.p = NULL};
    struct snapshot snap, again;
    char line[64];

    text_add(&t, data, size);
    if (is_signed) {
        int n = snprintf(line, sizeof line, "Kchecksum %016llx\n",
                         (unsigned long long)XXH3_64bits(t.p, t.len));
        text_add(&t, line, (size_t)n);
    }
    char *exact = exact_copy(t.p, t.len);
    snapshot_init(&snap);
    if (snapshot_parse(&snap, exact, t.len) == SNAPSHOT_OK) {
        size_t len, len_again;
        char *text = snapshot_format(&snap, &len);
        must(text != NULL);
        snapshot_init(&again);
        must(snapshot_parse(&again, text, len) == SNAPSHOT_OK);
        must(snapshot_difference(&snap, &again) == NULL);
        char *text_again = snapshot_format(&again, &len_again);
        must(text_again != NULL && len == len_again &&
             memcmp(text, text_again, len) == 0);
        free(text);
        free(text_again);
        snapshot_fini(&again);
    }
    snapshot_fini(&snap);
    free(exact);
    free(t.p);
}

/* ---- a store that was ------------------------------------------------------------------- */

struct model {
    struct store_conf conf;
    char *memory; /* as the store left it */
    char *copy;   /* for a run */
    struct snapshot snap;
    uint64_t places[PLACES_MAX]; /* offsets of the chunks in use */
    unsigned place_count;
};

static void
put_item(struct store *s, const char *key, uint32_t len, uint32_t exptime)
{
    struct store_put put = {.mode = STORE_SET};
    struct store_result result;
    struct item *it;
    char *p;
    must(store_reserve(s, (struct key){key, strlen(key)}, len, exptime, len, NOW, &it) ==
         STORE_OK);
    for (size_t at = 0; at < (size_t)len + 2;) {
        size_t n = item_space(it, at, &p);
        memset(p, 'x', n);
        at += n;
    }
    item_terminate(it);
    must(store_commit(s, it, &put, NOW, &result) == STORE_OK);
}

static void
fill(struct store *s)
{
    struct store_result result;
    char key[16];
    for (unsigned i = 0; i < 12; i++) {
        snprintf(key, sizeof key, "key%u", i);
        put_item(s, key, i % 4 == 3 ? 1000 + i * 500 : i * 40, i % 5 == 0 ? NOW + i : 0);
        struct item *it;
        if (i % 3 == 0 &&
            store_get(s, (struct key){key, strlen(key)}, NOW, &it) == STORE_OK) {
            store_release(s, it);
        }
    }
    must(store_delete(s, (struct key){"key2", 4}, NULL, NOW, &result) == STORE_OK);
    must(store_delete(s, (struct key){"key7", 4}, NULL, NOW, &result) == STORE_OK);
    (void)store_juggle(s, 1, 2, NOW);
}

static char *
map_pages(void)
{
    void *p = NULL;
    must(posix_memalign(&p, memfile_offset_mask(BYTES) + 1, BYTES) == 0);
    memset(p, 0, BYTES);
    return p;
}

static void
find_places(struct model *m)
{
    for (unsigned id = 1; id < STORE_CLASSES; id++) {
        const struct snapshot_class *c = &m->snap.classes[id];
        static const uint32_t sizes[] = {0, 96, 600, CHUNK_MAX};
        for (unsigned i = 0; c->page_count > 0 && i < 16; i++) {
            must(id < sizeof sizes / sizeof *sizes && m->place_count < PLACES_MAX);
            m->places[m->place_count++] =
                (uint64_t)m->snap.pages[c->first_page] * STORE_PAGE_BYTES + i * sizes[id];
        }
    }
}

static struct model *
model_of(unsigned variant)
{
    static const uint32_t sizes[] = {96, 600};
    static struct model models[VARIANTS];
    struct model *m = &models[variant];
    char err[128];
    if (m->memory != NULL) {
        return m;
    }
    m->memory = map_pages();
    m->copy = map_pages();
    m->conf = (struct store_conf){
        .limit_bytes = BYTES,
        .item_max = 16 * CHUNK_MAX,
        .chunk_max = CHUNK_MAX,
        .sizes = sizes,
        .size_count = 2,
        .hash_power = TABLE_POWER_MIN,
        .threads = 1,
        .hash_seed = 42,
        .use_cas = (variant & FLAG_NO_CAS) == 0,
        .is_lean = (variant & FLAG_LEAN) != 0,
        .can_evict = true,
        .can_reassign = true,
        .memory = m->memory,
        .lru = {.policy =
                    (variant & FLAG_FLAT) == 0 ? STORE_LRU_SEGMENTED : STORE_LRU_FLAT,
                .hot_pct = 20,
                .warm_pct = 40,
                .hot_factor = 0.2,
                .warm_factor = 2,
                .temp_ttl = 3},
    };
    struct store *s = store_create(&m->conf, err, sizeof err);
    must(s != NULL);
    fill(s);
    snapshot_init(&m->snap);
    must(relink_describe(s, &m->snap));
    store_destroy(&s);
    find_places(m);
    m->conf.memory = m->copy;
    m->conf.restores = true;
    return m;
}

/* ---- changes ---------------------------------------------------------------------------- */

struct change {
    uint8_t kind, at;
    uint8_t place, other;
    uint32_t value;
};

enum {
    CHANGE_BYTE,
    CHANGE_WORD,
    CHANGE_POINTER,
    CHANGE_COPY,
    CHANGE_LINK,
    CHANGE_COUNTS,
    CHANGE_PAGE,
    CHANGE_NUMBERS,
    CHANGES,
};

static uint64_t
place_of(const struct model *m, uint8_t i)
{
    return m->places[i % m->place_count];
}

static void
change_snapshot(struct snapshot *snap, const struct change *ch)
{
    struct snapshot_class *c = &snap->classes[ch->at % PAGES];
    switch (ch->kind % CHANGES) {
    case CHANGE_COUNTS:
        if (ch->place % 2 == 0) {
            c->cut_count = ch->value;
        } else {
            c->fresh_count = ch->value;
        }
        break;
    case CHANGE_PAGE:
        if (snap->page_count > 0) {
            snap->pages[ch->place % snap->page_count] = ch->value;
        }
        break;
    default:
        snap->items = ch->value;
    }
}

static void
change_memory(const struct model *m, const struct change *ch)
{
    char *chunk = m->copy + place_of(m, ch->place);
    uint64_t pointer = (uintptr_t)m->memory + place_of(m, ch->other) + ch->value;
    uint32_t link = (uint32_t)(place_of(m, ch->other) / SLAB_ALIGN) + 1 + ch->value;
    switch (ch->kind % CHANGES) {
    case CHANGE_BYTE:
        chunk[ch->at % HEADER_BYTES] = (char)ch->value;
        break;
    case CHANGE_WORD:
        memcpy(chunk + ch->at % HEADER_BYTES / 4 * 4, &ch->value, sizeof ch->value);
        break;
    case CHANGE_COPY:
        memmove(chunk, m->copy + place_of(m, ch->other), HEADER_BYTES);
        break;
    case CHANGE_LINK:
        memcpy(chunk + ch->at % HEADER_BYTES / 4 * 4, &link, sizeof link);
        break;
    default:
        memcpy(chunk + ch->at % HEADER_BYTES / 8 * 8, &pointer, sizeof pointer);
    }
}

/* ---- a run ------------------------------------------------------------------------------ */

static void
read_all(struct store *s)
{
    for (unsigned i = 0; i < STORE_CLASSES * STORE_LISTS; i++) {
        for (const struct item *it =
                 s->lru.classes[i / STORE_LISTS].lists[i % STORE_LISTS].head;
             it != NULL; it = link_item(&s->table.range, it->next)) {
            const char *p;
            for (size_t at = 0; at < (size_t)item_value_len(it) + 2;) {
                size_t n = item_bytes(it, at, &p);
                must(n > 0 && p >= (char *)s->conf.memory &&
                     p + n <= (char *)s->conf.memory + BYTES);
                at += n;
            }
        }
    }
}

static void
use(struct store *s)
{
    struct snapshot snap;
    audit_store(s);
    read_all(s);
    for (unsigned i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", i);
        put_item(s, key, i * 300, 0);
    }
    (void)store_juggle(s, 1, 100, NOW + 100);
    audit_store(s);
    snapshot_init(&snap);
    must(relink_describe(s, &snap));
    snapshot_fini(&snap);
}

/* The sum as it is now, by a load that ends where it has looked at all. */
static uint64_t
load_in_part(const struct model *m, const struct snapshot *snap)
{
    char err[128];
    struct store *s = store_create(&m->conf, err, sizeof err);
    uint64_t items, sum = 0;
    bool are_good;
    must(s != NULL && relink_check_pages(s, snap, &are_good));
    if (are_good) {
        struct census *census = census_open(s, snap, true, NOW);
        must(census != NULL);
        (void)!census_count(census, &items, &sum);
        census_close(&census);
    }
    store_destroy(&s);
    return sum;
}

static void
restart(const struct model *m, struct snapshot *snap)
{
    struct census *census;
    const char *wrong;
    char err[128];
    snap->contents = load_in_part(m, snap);
    struct store *s = store_create(&m->conf, err, sizeof err);
    must(s != NULL && relink_items(s, snap, NOW, &census, &wrong));
    if (wrong == NULL) {
        relink_settle(s, census);
        use(s);
    }
    census_close(&census);
    store_destroy(&s);
}

static void
fuzz_memory(const uint8_t *data, size_t size, unsigned variant)
{
    const struct model *m = model_of(variant);
    struct snapshot snap = m->snap;
    struct change ch;

    snap.pages = malloc(snap.page_room * sizeof *snap.pages);
    must(snap.pages != NULL);
    memcpy(snap.pages, m->snap.pages, snap.page_count * sizeof *snap.pages);
    memcpy(m->copy, m->memory, BYTES);
    for (; size >= RECORD; data += RECORD, size -= RECORD) {
        ch = (struct change){data[0], data[1], data[2], data[3], 0};
        memcpy(&ch.value, data + 4, sizeof ch.value);
        if (ch.kind % CHANGES >= CHANGE_COUNTS) {
            change_snapshot(&snap, &ch);
        } else {
            change_memory(m, &ch);
        }
    }
    restart(m, &snap);
    free(snap.pages);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if ((data[0] & FLAG_TEXT) != 0) {
        fuzz_text(data + 1, size - 1, (data[0] & FLAG_SIGNED) != 0);
    } else {
        fuzz_memory(data + 1, size - 1, data[0] & (FLAG_NO_CAS | FLAG_FLAT | FLAG_LEAN));
    }
    return 0;
}
