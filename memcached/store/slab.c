/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/slab.h"

#include <inttypes.h>

#include "base/fail.h"
#include "store/item.h"

#define CHUNK_MAX_LEAST 512u /* the head of a chained item with the longest key fits */
#define PAGES_FIRST 16u
#define PAGES_TO_MOVE_ONE 2u /* a class keeps its last page */
#define PAGES_TO_OPEN                                                                    \
    4u                  /* for each class that has some, before one more gets its first */
#define LEND_REACH 1.25 /* times as large are the chunks that one may do with */

static uint32_t
round_up(uint32_t n)
{
    return (n + SLAB_ALIGN - 1) & ~(SLAB_ALIGN - 1);
}

/* In units of links, which with much memory are larger: two sizes may become one. */
static void
add_class(struct slab *sl, uint32_t size)
{
    uint32_t unit = UINT32_C(1) << sl->pages.range.shift;
    uint32_t rounded = (size + unit - 1) & ~(unit - 1);

    if (unit > SLAB_ALIGN && sl->class_count > 0 &&
        sl->classes[sl->class_count].chunk_size == rounded) {
        return;
    }
    struct slab_class *c = &sl->classes[++sl->class_count];
    c->chunk_size = rounded;
    c->chunks_per_page = STORE_PAGE_BYTES / rounded;
}

/* The smallest class whose chunks hold so much; the sizes never change. */
static unsigned
search_class(const struct slab *sl, uint64_t bytes)
{
    unsigned lo = 1;
    unsigned hi = sl->class_count;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (sl->classes[mid].chunk_size < bytes) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* ---- which class serves which; the lock is held, or there is no other thread yet ------- */

/* But for the one on its way. */
static uint32_t
own_pages(const struct slab *sl, unsigned id)
{
    return sl->classes[id].page_count - (sl->move.page != NULL && sl->move.from == id);
}

/* No class may take its first page if there is another one that serves. */
static bool
is_lending(const struct slab *sl)
{
    uint64_t open = 0;

    for (unsigned id = 1; id <= sl->class_count; id++) {
        open += own_pages(sl, id) > 0;
    }
    return sl->lends && (sl->is_full || open * PAGES_TO_OPEN * STORE_PAGE_BYTES >=
                                            sl->pages.limit_bytes);
}

static bool
is_in_reach(const struct slab *sl, unsigned id, unsigned host)
{
    return sl->classes[host].chunk_size <= LEND_REACH * sl->classes[id].chunk_size;
}

/* The next larger class that has pages. */
static unsigned
near_host(const struct slab *sl, unsigned id)
{
    unsigned host = id + 1;

    while (host <= sl->class_count && own_pages(sl, host) == 0) {
        host++;
    }
    return host <= sl->class_count && is_in_reach(sl, id, host) ? host : 0;
}

/* The class that is to get a page, as it can serve the most beside this one. */
static unsigned
farthest_in_reach(const struct slab *sl, unsigned id)
{
    unsigned host = id;

    while (host < sl->class_count && is_in_reach(sl, id, host + 1)) {
        host++;
    }
    return host;
}

/* `host` is the next larger class that has pages. It serves if it could serve the class that gets a
 * page else: so chunks are at most LEND_REACH times LEND_REACH as large as they have to be. */
static unsigned
find_server(const struct slab *sl, unsigned id, unsigned host)
{
    unsigned farthest = farthest_in_reach(sl, id);

    return host != 0 &&
                   (is_in_reach(sl, farthest, host) || sl->classes[farthest].is_wanted)
               ? host
               : farthest;
}

static void
assign_classes(struct slab *sl)
{
    bool lends = is_lending(sl);
    unsigned host = 0;

    for (unsigned id = sl->class_count; id >= 1; id--) {
        bool serves = !lends || own_pages(sl, id) > 0;

        sl->classes[id].is_wanted &= !serves;
        host = serves ? id : host;
        atomic_store_explicit(&sl->serving[id],
                              (uint8_t)(serves ? id : find_server(sl, id, host)),
                              memory_order_relaxed);
    }
    for (uint32_t bytes = 0, id = 1; bytes <= SLAB_SMALL_MAX; bytes += SLAB_ALIGN) {
        while (id < sl->class_count && sl->classes[id].chunk_size < bytes) {
            id++; /* with a small growth factor several classes have the same size */
        }
        atomic_store_explicit(
            &sl->small[bytes / SLAB_ALIGN],
            atomic_load_explicit(&sl->serving[id], memory_order_relaxed),
            memory_order_relaxed);
    }
}

/* The list as given, or a geometric series; the largest chunk always ends the table. */
static void
build_classes(struct slab *sl, const struct store_conf *conf)
{
    uint32_t size = STORE_ITEM_HEADER + conf->min_space;

    if (conf->sizes != NULL) {
        for (unsigned i = 0; i < conf->size_count; i++) {
            if (round_up(conf->sizes[i]) < conf->chunk_max) {
                add_class(sl, round_up(conf->sizes[i]));
            }
        }
    } else {
        while (sl->class_count < STORE_CLASS_MAX - 1 &&
               size < conf->chunk_max / conf->growth_factor) {
            size = round_up(size);
            add_class(sl, size);
            uint32_t next = (uint32_t)(size * conf->growth_factor);
            /* Equal sizes end the series where each of them counts; elsewhere it has to grow. */
            size = next > size || 1u << sl->pages.range.shift <= SLAB_ALIGN ? next
                                                                            : size + 1;
        }
    }
    add_class(sl, conf->chunk_max);
    assign_classes(sl);
}

static const char *
what_is_wrong(const struct store_conf *conf)
{
    if (conf->chunk_max < CHUNK_MAX_LEAST || conf->chunk_max > STORE_PAGE_BYTES ||
        conf->chunk_max % SLAB_ALIGN != 0) {
        return "the largest chunk must be a multiple of 8 from 512 bytes to 1 MiB";
    }
    if (conf->chunk_max % (1u << pages_shift(conf)) != 0) {
        return "the largest chunk is not a multiple of the step between sizes that so "
               "much "
               "memory needs: 16 bytes above 32 GiB, 32 above 64";
    }
    if (conf->item_max > STORE_VALUE_MAX) {
        return "the largest item must be less than 2 GiB";
    }
    if (conf->item_max < conf->chunk_max || conf->item_max % conf->chunk_max != 0) {
        return "the largest item must be a multiple of the largest chunk";
    }
    if (conf->sizes == NULL && !(conf->growth_factor > 1)) {
        return "the growth factor must be larger than 1";
    }
    if (conf->sizes == NULL && conf->min_space > STORE_PAGE_BYTES) {
        return "the smallest chunk is larger than a page";
    }
    if (conf->sizes != NULL && conf->size_count >= STORE_CLASS_MAX) {
        return "too many slab classes";
    }
    for (unsigned i = 0; conf->sizes != NULL && i < conf->size_count; i++) {
        if (conf->sizes[i] < STORE_ITEM_HEADER || conf->sizes[i] > conf->chunk_max ||
            (i > 0 && round_up(conf->sizes[i]) <= round_up(conf->sizes[i - 1]))) {
            return "slab sizes must increase and lie between an item header and the "
                   "largest chunk";
        }
    }
    return NULL;
}

/* ---- pages; the lock is held, or there is no other thread yet ------------------------- */

static uint64_t
page_charge(const struct slab *sl, const struct slab_class *c)
{
    return sl->whole_pages ? STORE_PAGE_BYTES
                           : (uint64_t)c->chunk_size * c->chunks_per_page;
}

static bool
reserve_page_entry(struct slab *sl, struct slab_class *c)
{
    uint32_t room = c->page_room == 0 ? PAGES_FIRST : c->page_room * 2;
    void **pages;

    if (c->page_count < c->page_room) {
        return true;
    }
    pages = mem_resize(sl->pages.mem, c->pages, room * sizeof(*pages));
    if (pages == NULL) {
        return false;
    }
    c->pages = pages;
    c->page_room = room;
    return true;
}

/* With lending: what first pages may make it, however often classes give theirs away. */
static void
set_most(struct slab *sl)
{
    uint64_t least = sl->pages.malloced_bytes > sl->pages.limit_bytes
                         ? sl->pages.malloced_bytes
                         : sl->pages.limit_bytes;
    uint64_t most = least + (uint64_t)sl->class_count * STORE_PAGE_BYTES;

    /* what has been given back since does not come again */
    sl->most_bytes = sl->most_bytes == 0 || most < sl->most_bytes ? most : sl->most_bytes;
}

/* Its first page, beyond the limit if there is no other class that serves; preallocated memory has
 * none there, but a class that serves in need. */
static void *
take_first_page(struct slab *sl, unsigned id)
{
    struct slab_class *c = &sl->classes[id];
    void *page = pages_take(&sl->pages, page_charge(sl, c), !sl->lends);

    if (page != NULL || !sl->lends) {
        return page;
    }
    sl->is_full = true;
    assign_classes(sl);
    if (near_host(sl, id) != 0) {
        return NULL;
    }
    page = pages_take(&sl->pages, page_charge(sl, c),
                      sl->pages.malloced_bytes < sl->most_bytes);
    if (page == NULL) {
        c->is_wanted = true;
        assign_classes(sl);
    }
    return page;
}

static bool
grow_class(struct slab *sl, unsigned id)
{
    struct slab_class *c = &sl->classes[id];
    bool is_first = own_pages(sl, id) == 0;

    if (!reserve_page_entry(sl, c)) {
        return false;
    }
    void *page = is_first ? take_first_page(sl, id)
                          : pages_take(&sl->pages, page_charge(sl, c), false);
    if (page == NULL) {
        return false;
    }
    c->pages[c->page_count++] = page;
    if (is_first) {
        assign_classes(sl);
    }
    return true;
}

/* Starts on the next page that has not been cut. */
static bool
cut_page(struct slab_class *c)
{
    if (c->cut_count == c->page_count) {
        return false;
    }
    c->fresh = c->pages[c->cut_count++];
    c->fresh_count = c->chunks_per_page;
    return true;
}

/* ---- life ---------------------------------------------------------------------------- */

/* Of which each class has one that can serve it. */
static uint64_t
count_classes_needed(const struct slab *sl)
{
    uint64_t count = 0;

    for (unsigned id = 1; id <= sl->class_count; id++) {
        id = sl->lends ? farthest_in_reach(sl, id) : id;
        count++;
    }
    return count;
}

/* Classes without memory. False: the sizes make none, `err` says why. */
static bool
plan(struct slab *sl, const struct store_conf *conf, struct mem *mem, char *err,
     size_t err_len)
{
    const char *wrong = what_is_wrong(conf);

    pages_init(&sl->pages, conf, mem);
    sl->chunk_max = conf->chunk_max;
    sl->whole_pages = conf->whole_pages || conf->can_reassign;
    sl->can_reassign = conf->can_reassign;
    sl->lends = conf->lends_chunks;
    if (wrong != NULL) {
        return fail_because(err, err_len, "%s", wrong);
    }
    build_classes(sl, conf);
    return true;
}

static bool
has_pages_for_all(const struct slab *sl, char *err, size_t err_len)
{
    uint64_t needed = count_classes_needed(sl);

    return sl->pages.limit_bytes / STORE_PAGE_BYTES >= needed ||
           fail_because(err, err_len,
                        "preallocation (-L, -e) needs -m %" PRIu64
                        " or more: a megabyte for each slab class",
                        needed);
}

/* With preallocation everything at once, and a page for each class; if they lend, for the largest,
 * which serves all. Else addresses alone. False: `err` says why. */
static bool
provide(struct slab *sl, const struct store_conf *conf, char *err, size_t err_len)
{
    if (!conf->preallocates && conf->memory == NULL) {
        snprintf(err, err_len, "no addresses for slab memory");
        return pages_reserve(&sl->pages);
    }
    if (!has_pages_for_all(sl, err, err_len)) {
        return false;
    }
    snprintf(err, err_len, "no memory for preallocation");
    bool has_all = pages_preallocate(&sl->pages, conf->memory);
    for (unsigned i = sl->lends ? sl->class_count : 1;
         has_all && i <= sl->class_count && !conf->restores; i++) {
        has_all = grow_class(sl, i);
    }
    return has_all;
}

bool
slab_init(struct slab *sl, const struct store_conf *conf, struct mem *mem, char *err,
          size_t err_len)
{
    memset(sl, 0, sizeof(*sl));
    PTHREAD_OK(pthread_mutex_init(&sl->lock, conf->lock_attr));
    bool is_right = plan(sl, conf, mem, err, err_len);
    if (is_right) {
        set_most(sl);
        is_right = provide(sl, conf, err, err_len);
    }
    if (!is_right) {
        slab_fini(sl);
    }
    return is_right;
}

bool
slab_check(const struct store_conf *conf, bool at_once, char *err, size_t err_len)
{
    struct mem mem;
    struct slab *sl = calloc(1, sizeof(*sl));

    if (sl == NULL) {
        return fail_because(err, err_len, "no memory for the store");
    }
    bool is_right = plan(sl, conf, &mem, err, err_len) &&
                    (!at_once || has_pages_for_all(sl, err, err_len));
    free(sl);
    return is_right;
}

void
slab_fini(struct slab *sl)
{
    for (unsigned i = 1; i <= sl->class_count; i++) {
        struct slab_class *c = &sl->classes[i];

        free(c->pages);
    }
    pages_fini(&sl->pages);
    PTHREAD_OK(pthread_mutex_destroy(&sl->lock));
}

bool
slab_adopt_page(struct slab *sl, unsigned class_id, uint32_t page)
{
    struct slab_class *c = &sl->classes[class_id];

    if (class_id == 0) {
        pages_give(&sl->pages, pages_adopt(&sl->pages, page, STORE_PAGE_BYTES));
        return true;
    }
    if (!reserve_page_entry(sl, c)) {
        return false;
    }
    c->pages[c->page_count++] = pages_adopt(&sl->pages, page, page_charge(sl, c));
    return true;
}

void
slab_adopt_cut(struct slab *sl, unsigned class_id, uint32_t cut_count,
               uint32_t fresh_count)
{
    struct slab_class *c = &sl->classes[class_id];

    must(cut_count <= c->page_count && fresh_count <= c->chunks_per_page);
    c->cut_count = cut_count;
    c->fresh_count = fresh_count;
    if (fresh_count > 0) {
        c->fresh = (char *)c->pages[cut_count - 1] +
                   (size_t)(c->chunks_per_page - fresh_count) * c->chunk_size;
    }
    assign_classes(sl);
}

unsigned
slab_class_of(const struct slab *sl, uint64_t bytes)
{
    must(bytes <= sl->chunk_max);
    return bytes <= SLAB_SMALL_MAX
               ? atomic_load_explicit(&sl->small[round_up((uint32_t)bytes) / SLAB_ALIGN],
                                      memory_order_relaxed)
               : atomic_load_explicit(&sl->serving[search_class(sl, bytes)],
                                      memory_order_relaxed);
}

/* ---- chunks --------------------------------------------------------------------------- */

static bool
is_leaving(const struct slab *sl, const void *chunk)
{
    return (uintptr_t)chunk - (uintptr_t)sl->move.page < STORE_PAGE_BYTES &&
           sl->move.page != NULL;
}

static void
put_out(struct slab *sl, struct item *it)
{
    item_set_layout(it, ITEM_OUT);
    sl->move.left--;
}

static struct item *
pop_free(const struct slab *sl, struct slab_class *c)
{
    struct item *it = c->free_list;

    if (it != NULL) {
        c->free_list = link_item(&sl->pages.range, it->next);
        c->free_count--;
    }
    return it;
}

/* Free chunks of the page on its way leave the list when they are met, but for one that is wanted back. */
static struct item *
take_locked(struct slab *sl, struct slab_class *c)
{
    struct item *it;

    while ((it = pop_free(sl, c)) != NULL && is_leaving(sl, it)) {
        if (sl->move.gives_back) {
            sl->move.gives_back = false;
            break;
        }
        put_out(sl, it);
        sl->move.inline_reclaim++;
    }
    if (it != NULL) {
        return it;
    }
    if (c->fresh_count == 0 && !cut_page(c)) {
        return NULL;
    }
    it = (struct item *)(void *)c->fresh;
    c->fresh += c->chunk_size;
    c->fresh_count--;
    return it;
}

void *
slab_take(struct slab *sl, unsigned class_id, uint32_t requested, bool can_grow)
{
    struct slab_class *c = &sl->classes[class_id];

    must(class_id >= 1 && class_id <= sl->class_count);
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    struct item *it = take_locked(sl, c);
    if (it == NULL && can_grow && grow_class(sl, class_id)) {
        it = take_locked(sl, c);
    }
    if (it != NULL) {
        item_set_layout(it, 0);
        c->requested_bytes += requested;
    }
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return it;
}

static void
put_free(struct slab *sl, struct slab_class *c, struct item *it)
{
    item_set_layout(it, ITEM_FREE);
    it->next = 0;
    if (c->free_list != NULL) {
        it->next = link_to(&sl->pages.range, c->free_list);
        c->free_list->prev = link_to(&sl->pages.range, it);
    }
    c->free_list = it;
    c->free_count++;
}

void
slab_give(struct slab *sl, unsigned class_id, void *chunk, uint32_t requested)
{
    struct slab_class *c = &sl->classes[class_id];
    struct item *it = chunk;

    must(class_id >= 1 && class_id <= sl->class_count);
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    c->requested_bytes -= requested;
    if (unlikely(is_leaving(sl, it)) && !sl->move.gives_back) {
        put_out(sl, it);
    } else {
        put_free(sl, c, it);
    }
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
}

uint64_t
slab_free_chunks(const struct slab *sl, unsigned class_id)
{
    const struct slab_class *c = &sl->classes[class_id];
    uint64_t out = sl->move.page != NULL && sl->move.from == class_id
                       ? sl->move.chunks - sl->move.left
                       : 0;

    return c->free_count + c->fresh_count +
           (uint64_t)(c->page_count - c->cut_count) * c->chunks_per_page + out;
}

/* Gives up the lock; what the limit has no room for goes back to the system without it. */
static void
unlock_trimmed(struct slab *sl)
{
    void *list = pages_trim(&sl->pages);

    set_most(sl);
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    if (list != NULL) {
        pages_empty(list);
        PTHREAD_OK(pthread_mutex_lock(&sl->lock));
        pages_shelve(&sl->pages, list);
        PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    }
}

bool
slab_set_limit(struct slab *sl, uint64_t bytes)
{
    if (!pages_can_limit(&sl->pages, bytes)) {
        return false;
    }
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    if (bytes > sl->pages.limit_bytes) {
        sl->most_bytes = 0; /* anew */
    }
    sl->pages.limit_bytes = bytes;
    set_most(sl);
    sl->is_full = false;
    assign_classes(sl);
    unlock_trimmed(sl);
    return true;
}

bool
slab_is_full(struct slab *sl)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    bool is_full = sl->pages.pool == NULL && pages_are_at_limit(&sl->pages);
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return is_full;
}

bool
slab_has_reached_limit(struct slab *sl)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    bool has_reached = pages_are_at_limit(&sl->pages);
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return has_reached;
}

unsigned
slab_host(const struct slab *sl, unsigned class_id)
{
    return sl->lends ? near_host(sl, class_id) : 0;
}

unsigned
slab_best_class(const struct slab *sl, unsigned class_id, uint64_t mean)
{
    return sl->lends && mean <= sl->chunk_max ? search_class(sl, mean) : class_id;
}

/* ---- the page on its way --------------------------------------------------------------- */

static bool
has_spare(const struct slab *sl, int id)
{
    return sl->classes[id].page_count >= PAGES_TO_MOVE_ONE;
}

/* A class that another one can serve may give its last page. */
static bool
may_give(const struct slab *sl, int id)
{
    return has_spare(sl, id) || (sl->lends && sl->classes[id].page_count > 0 &&
                                 near_host(sl, (unsigned)id) != 0);
}

/* Any class that has two pages, beginning behind the one that was robbed last. */
static int
any_source(const struct slab *sl, int to)
{
    for (unsigned i = 0; i < sl->class_count; i++) {
        int id = (int)((sl->move.from + i) % sl->class_count) + 1;

        if (id != to && has_spare(sl, id)) {
            return id;
        }
    }
    return 0;
}

static enum store_move_status
check_move(const struct slab *sl, int *from, int to)
{
    if (!sl->can_reassign) {
        return STORE_MOVE_OFF;
    }
    if (sl->move.page != NULL) {
        return STORE_MOVE_BUSY;
    }
    if (*from == to) {
        return STORE_MOVE_SAME;
    }
    if (*from == -1 && to >= 0 && to <= (int)sl->class_count) {
        *from = any_source(sl, to);
        return *from != 0 ? STORE_MOVE_OK : STORE_MOVE_NO_SPARE;
    }
    if (*from < 1 || *from > (int)sl->class_count || to < 0 ||
        to > (int)sl->class_count) {
        return STORE_MOVE_BAD_CLASS;
    }
    return may_give(sl, *from) ? STORE_MOVE_OK : STORE_MOVE_NO_SPARE;
}

static void
begin_locked(struct slab *sl, unsigned from, unsigned to)
{
    struct slab_class *c = &sl->classes[from];
    struct slab_move *m = &sl->move;

    m->serial++;
    m->page = c->pages[0];
    m->from = from;
    m->to = to;
    m->chunk_size = c->chunk_size;
    m->chunks = c->chunks_per_page;
    m->left = m->chunks;
    m->gives_back = false;
    if (c->page_count == 1) {
        assign_classes(sl);
    }
    if (c->cut_count == 0) {
        c->cut_count = 1; /* not a chunk of it has been used, */
        c->fresh = m->page;
        c->fresh_count = c->chunks_per_page;
    }
    if (c->cut_count == 1) {
        /* or not all: these are out at once. */
        for (uint32_t i = 0; i < c->fresh_count; i++) {
            put_out(sl, (struct item *)(void *)(c->fresh + (size_t)i * c->chunk_size));
        }
        c->fresh_count = 0;
    }
}

enum store_move_status
slab_move_begin(struct slab *sl, int *from, int to)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    enum store_move_status status = check_move(sl, from, to);
    if (status == STORE_MOVE_OK) {
        begin_locked(sl, (unsigned)*from, (unsigned)to);
    }
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return status;
}

bool
slab_is_moving(struct slab *sl)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    bool is_moving = sl->move.page != NULL;
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return is_moving;
}

bool
slab_is_losing(struct slab *sl, unsigned class_id, bool wants_back)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    bool is_losing =
        sl->move.page != NULL && sl->move.from == class_id && own_pages(sl, class_id) > 0;
    sl->move.gives_back |= is_losing && wants_back;
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return is_losing;
}

void
slab_move_detach(struct slab *sl, uint32_t i)
{
    struct slab_class *c = &sl->classes[sl->move.from];
    struct item *it = slab_move_chunk(sl, i);
    struct item *next = link_item(&sl->pages.range, it->next);

    if (c->free_list == it) {
        c->free_list = next;
    } else {
        link_item(&sl->pages.range, it->prev)->next = it->next;
        if (next != NULL) {
            next->prev = it->prev;
        }
    }
    c->free_count--;
    put_out(sl, it);
}

void
slab_move_cancel(struct slab *sl)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    for (uint32_t i = 0; i < sl->move.chunks; i++) {
        struct item *it = slab_move_chunk(sl, i);

        if (it->layout & ITEM_OUT) {
            put_free(sl, &sl->classes[sl->move.from], it);
        }
    }
    sl->move.page = NULL;
    assign_classes(sl);
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
}

/* The page has left its class; the new one may want no memory for the entry: then the pool
 * has it. */
static void
hand_over(struct slab *sl)
{
    struct slab_class *from = &sl->classes[sl->move.from];
    struct slab_class *to = &sl->classes[sl->move.to];

    must(from->pages[0] == sl->move.page && from->cut_count > 0);
    from->page_count--;
    from->cut_count--;
    memmove(from->pages, from->pages + 1, from->page_count * sizeof(*from->pages));
    if (sl->move.to != 0 && reserve_page_entry(sl, to)) {
        to->pages[to->page_count++] = sl->move.page;
    } else {
        pages_give(&sl->pages, sl->move.page);
        sl->is_full = false;
    }
    sl->move.page = NULL;
    assign_classes(sl);
}

bool
slab_move_end(struct slab *sl)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    bool is_done = sl->move.left == 0;
    if (is_done) {
        hand_over(sl);
    }
    unlock_trimmed(sl);
    return is_done;
}
