/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The item store: slab memory, hash table, LRU lists. The only header of this layer that
 * others include. It knows no protocol, no socket and no clock: `now` is the relative clock
 * in seconds (base/clock.h), always passed in.
 *
 * Any thread may call any function unless it says otherwise; operations on one key are
 * linearizable. Locks, in the order in which they may be taken: item stripe (by hash) ->
 * LRU list of a class -> slab allocator. A second stripe is only ever tried, not waited for.
 *
 * Items are counted references. A reference keeps the item's bytes unchanged and in place
 * even when the key is deleted or replaced meanwhile.
 */
#pragma once

#include <pthread.h>

#include "base/must.h"
#include "base/seq.h"

#define STORE_KEY_MAX 250
#define STORE_CLASS_MAX 63 /* slab class ids are 1..63 */
#define STORE_CLASSES 64   /* array size for an index by class id */
#define STORE_OWNERS 4     /* that share the memory: numbers of the caller's */
#define STORE_SLOTS (STORE_CLASSES * STORE_OWNERS)
#define STORE_SLOT(class_id, owner) ((class_id) | (owner)*STORE_CLASSES)
#define STORE_PAGE_BYTES 1048576    /* unit of slab memory */
#define STORE_ITEM_HEADER 48        /* upstream's, which sizes of classes begin with */
#define STORE_VALUE_MAX 0x7fffffffu /* bytes of a value, and of an item */
#define STORE_NUMBER_DIGITS 20      /* longest result of incr and decr */
#define STORE_REFS_MAX 60000        /* readers that may hold one item */

/* Relative times that are not times. */
#define STORE_NEVER 0   /* exptime: does not expire */
#define STORE_EXPIRED 1 /* exptime: has expired already */

struct store; /* opaque; shared by all threads */
struct item;  /* opaque; owned by the store, borrowed by counted reference */

/* Which item leaves when there is no room (policy.h). */
enum store_lru_policy {
    STORE_LRU_FLAT,      /* one list, called COLD */
    STORE_LRU_SEGMENTED, /* HOT, WARM, COLD */
    STORE_LRU_S3FIFO,    /* HOT (new), COLD (the rest) */
    STORE_LRU_POLICIES,
};

/* How the lists of a class are kept; may change while the store runs (store_set_lru). */
struct store_lru_conf {
    enum store_lru_policy policy;
    unsigned hot_pct, warm_pct;     /* of the class's bytes */
    double hot_factor, warm_factor; /* of the age of the COLD tail */
    int64_t
        temp_ttl; /* items of at most this many seconds go to TEMP; -1: no TEMP list */
};

#define STORE_SHARES_TOTAL 1000

/* What part of the memory each owner may keep, whatever the others store. */
struct store_shares {
    bool is_on;
    struct store_share {
        unsigned per_mille; /* of the bytes of all items; 0: nothing is reserved */
        bool is_ceiling;    /* and it may not have more, of the limit */
    } of[STORE_OWNERS];
};

struct store_event;

struct store_conf {
    uint64_t limit_bytes;  /* for slab pages */
    double growth_factor;  /* > 1 */
    uint32_t min_space;    /* first chunk is header + this, rounded up to 8 */
    uint32_t item_max;     /* largest item total */
    uint32_t chunk_max;    /* largest chunk; item_max is a multiple of it */
    const uint32_t *sizes; /* explicit class sizes, or NULL */
    unsigned size_count;
    unsigned hash_power;       /* 12..32 */
    unsigned threads;          /* how many threads will call; sizes the stripes */
    uint64_t hash_seed;        /* random per process, fixed in tests */
    uint64_t initial_malloced; /* start value of the charged bytes */
    uint64_t machine_bytes; /* memory that there is, whatever the limit; 0: not known */
    bool reserves_least;    /* no addresses for a limit that is raised */
    bool use_cas;
    bool can_evict;
    bool can_grow_hash;
    bool whole_pages;   /* charge full pages, not chunk size x chunks */
    bool is_lean;       /* charge an item what it takes; false: as upstream does */
    bool inline_suffix; /* account the text suffix " <flags> <bytes>\r\n" per item */
    bool
        preallocates; /* all slab memory at once, large pages where the system has them */
    /* Where all slab pages are taken from: limit_bytes, which may hold anything, and are and
     * stay the caller's; NULL: from the system. As preallocated. */
    void *memory;
    bool restores; /* with memory: no class gets a page before restart_load brings them */
    bool can_reassign; /* pages may move between classes */
    /* Classes get no page of their own before it is worth while: until then their items are in
     * chunks of the next larger class. */
    bool lends_chunks;
    bool
        keeps_pages_when_full; /* mover: no free chunk is "busy" (1.6), not an eviction */
    uint32_t
        tail_repair_seconds; /* a referenced tail entry idle for longer goes; 0: never */
    struct store_lru_conf lru;
    struct store_shares shares; /* with can_evict */
    /* Called for evictions and page moves, with locks held: must not block, nor call the
     * store. May be NULL. */
    void (*on_event)(void *ctx, const struct store_event *event);
    void *event_ctx;
    /* Called for memory of slab pages before it is touched, under the slab lock: must not
     * call the store. May be NULL. */
    void (*on_map)(void *ctx, void *area, size_t bytes);
    void *map_ctx;
    /* Of all locks, which workers share with the threads in the background. NULL: default. */
    const pthread_mutexattr_t *lock_attr;
};

enum store_status {
    STORE_OK,
    STORE_MISS,         /* absent */
    STORE_GONE_EXPIRED, /* was there, had expired; removed now */
    STORE_GONE_FLUSHED, /* was there, older than the last flush; removed now */
    STORE_NOT_STORED,   /* condition of add, replace, append, prepend not met */
    STORE_EXISTS,       /* cas differs */
    STORE_TOO_LARGE,
    STORE_NO_MEMORY,
    STORE_NOT_NUMERIC,
    STORE_BUSY, /* too many readers hold the item */
};

enum store_mode {
    STORE_SET,
    STORE_ADD,
    STORE_REPLACE,
    STORE_APPEND,
    STORE_PREPEND,
};

struct key {
    const char *p;
    size_t len; /* 1..STORE_KEY_MAX */
};

/* The lists of a class. In flat mode all items are in COLD. */
enum store_list {
    STORE_LIST_HOT,
    STORE_LIST_WARM,
    STORE_LIST_COLD,
    STORE_LIST_TEMP,
    STORE_LISTS,
};

/* What a mutation returns to its caller beside the status. Of the item found or stored; all 0
 * when there is none. */
struct store_result {
    uint64_t cas; /* 0 without CAS */
    uint32_t value_len;
    uint32_t total;          /* accounted bytes */
    uint32_t exptime_before; /* relative clock, STORE_NEVER */
    uint32_t exptime_after;
    uint8_t class_id;
    bool is_created;         /* arith: made with the initial value */
    bool is_binary_key;      /* the stored item carries the mark */
    enum store_status found; /* before the change: OK, MISS or GONE_* */
};

/* A list of a class that has been crawled to its end. */
struct store_crawl {
    uint64_t examined, reclaimed; /* items */
    uint64_t low_mark;      /* items that must expire for a visit to be worth while */
    uint64_t next_reclaims; /* items that will have expired at the next visit */
    uint32_t elapsed;       /* seconds */
    uint32_t since_run;     /* seconds since the visit before this one; 0: the first */
    uint32_t next_run;      /* seconds until the next one */
};

/* For on_event. Keys point into items and are valid during the call only. */
enum store_event_kind {
    STORE_EVENT_EVICTION,
    STORE_EVENT_PAGE_MOVE, /* begun by command, or decided by the automover */
    STORE_EVENT_CRAWL,     /* a list has been walked to its end */
};

struct store_event {
    enum store_event_kind kind;
    struct key key; /* EVICTION */
    bool was_fetched;
    int64_t ttl;              /* EVICTION: seconds left, -1 never */
    uint32_t idle;            /* EVICTION: seconds since last access */
    uint32_t value_len;       /* EVICTION */
    uint8_t class_id;         /* EVICTION, CRAWL; PAGE_MOVE: source */
    uint8_t to_class;         /* PAGE_MOVE: destination, 0 the pool */
    bool has_failed;          /* PAGE_MOVE: not begun, or the class keeps the page */
    enum store_list list;     /* CRAWL */
    struct store_crawl crawl; /* CRAWL */
};

/* ---- life ---------------------------------------------------------------------------- */

/* NULL with a sentence in err when conf is impossible or memory is short. */
struct store *store_create(const struct store_conf *conf, char *err, size_t err_len);
/* False with that sentence when conf is impossible, with all memory at once (also that of a file) or
 * without. Allocates nothing that stays. */
must_check bool store_check(const struct store_conf *conf, bool at_once, char *err,
                            size_t err_len);
/* No other thread may be inside; references must be released. */
void store_destroy(struct store **s);

/* ---- reading ------------------------------------------------------------------------- */

/* STORE_OK: *item is a counted reference to release. Else MISS, GONE_*, BUSY and *item is
 * NULL. Counts as a use for the LRU. */
must_check enum store_status store_get(struct store *s, struct key key, uint32_t now,
                                       struct item **item);
/* The same and sets the exptime (relative clock) under the same lock. */
must_check enum store_status store_get_and_touch(struct store *s, struct key key,
                                                 uint32_t exptime, uint32_t now,
                                                 struct item **item);
void store_release(struct store *s, struct item *item);

/* What a look at an item saw. From before this access, unless it says otherwise. */
struct store_seen {
    bool is_created;
    bool is_won;        /* this caller has the token now */
    bool is_won_before; /* another one has it */
    bool is_stale;
    bool was_fetched;
    uint64_t cas;                           /* after it, when created */
    uint32_t flags;                         /* before, unless created */
    uint32_t last_access;                   /* relative clock */
    uint32_t exptime_before, exptime_after; /* relative clock, STORE_NEVER */
};

/* ---- many keys at once ---------------------------------------------------------------
 *
 * Nothing of an item outlives the look at it, so it needs no reference; and most looks are
 * without a lock. */

#define STORE_READS_MAX 16

struct store_read {
    struct key key;
    uint64_t hash; /* private */
};

/* An item that was found. All is true but the bytes of the value, the flags and the CAS number, for
 * which store_hit_holds has to be asked. */
struct store_hit {
    const char *value;       /* and CR LF; NULL: not in one piece, only `item` has it */
    const struct item *head; /* has its facts but for key, value, flags and CAS number */
    struct item *item;       /* with the lock held; else NULL */
    uint64_t cas;
    uint32_t flags, value_len;
    uint8_t slot; /* STORE_SLOT */
    enum store_list list;
    const struct seq *seq; /* private, these two */
    uint64_t seen;
};

/* Whether what was copied of the value is true. Asked behind the last look at it. */
static inline bool
store_hit_holds(const struct store_hit *hit)
{
    return hit->seq == NULL || likely(seq_read_holds(hit->seq, hit->seen));
}

/* As what store_look sees. */
void store_hit_see(const struct store_hit *hit, struct store_seen *seen);

/* What becomes of a hit. */
enum store_take {
    STORE_TAKEN,      /* on to the next key */
    STORE_TAKE_HOLD,  /* the caller wants a reference; this was the last key */
    STORE_TAKE_STOP,  /* no use was made of it: the key before it was the last one */
    STORE_TAKE_AGAIN, /* the value did not hold, and nothing was made of it */
};

/* What store_get would say of key i, in order; hit: NULL but for OK. AGAIN, and HOLD without
 * an item, have it called once more for this key, with the lock held: then the value holds. Calls
 * nothing of the store but the facts of an item and item_bytes. */
typedef enum store_take store_take_fn(void *ctx, unsigned i, enum store_status status,
                                      const struct store_hit *hit);

/* Looks up n keys, STORE_READS_MAX at most. Returns how many; the rest was stopped. */
unsigned store_read(struct store *s, struct store_read *reads, unsigned n, uint32_t now,
                    store_take_fn *take, void *ctx);

/* A look at an item that may also touch it, create it, or decide that this client
 * refreshes it (the meta protocol's get). All zero: a look that leaves no trace. */
struct store_look {
    bool is_use; /* counts as an access: LRU, fetched mark */
    bool touches;
    uint32_t exptime; /* relative clock, for touches */
    bool creates;     /* on a miss: an empty item, flags 0, whose token this caller has */
    bool is_binary_key; /* mark of a created item */
    uint8_t owner;      /* of a created item */
    uint32_t create_exptime;
    uint64_t new_cas; /* of a created item; 0: the next number */
    bool takes_stale; /* win the token of a stale item if it is free */
    bool recaches;    /* win the token when fewer than recache_below seconds are left */
    bool recache_sees_touch; /* the time left is that after the touch */
    uint32_t recache_below;
};

/* As store_get: OK with *item to release; else MISS, GONE_*, BUSY; NO_MEMORY and TOO_LARGE
 * when it could not create. */
must_check enum store_status store_look(struct store *s, struct key key,
                                        const struct store_look *ask, uint32_t now,
                                        struct store_seen *seen, struct item **item);

/* Facts of a referenced item; constant while referenced, except the exptime, the times and
 * marks of use, the list, and the CAS number when store_delete marks the item stale. */
const char *item_key(const struct item *it);
uint8_t item_key_len(const struct item *it);
uint32_t item_flags(const struct item *it);
uint32_t item_value_len(const struct item *it); /* without the CR LF behind it */
uint64_t item_cas(const struct item *it);       /* 0 without CAS */
uint8_t item_class(const struct item *it);      /* class id that counts it in the LRU */
uint8_t item_slot(const struct item *it);       /* STORE_SLOT of that and its owner */
uint32_t item_expires(const struct item *it);   /* relative clock, STORE_NEVER */
uint32_t item_accessed(const struct item *it);  /* relative clock */
bool item_was_fetched(const struct item *it);
enum store_list item_list(const struct item *it); /* callers count hits by list */
bool item_has_binary_key(const struct item *it);
uint32_t item_accounted(const struct store *s, const struct item *it);

/* The longest contiguous stretch of value-and-CRLF bytes from offset
 * (0..value_len + 1): every value is stored with CR LF behind it. Returns its length. */
size_t item_bytes(const struct item *it, size_t offset, const char **p);
/* Where a reader of a value of many chunks has got to; all 0: at the beginning. */
struct item_place {
    struct chunk *chunk;
    uint32_t at; /* the offset of the chunk */
};
/* As item_bytes, for a reader whose offsets do not decrease: it does not begin anew each time. */
size_t item_read(const struct item *it, struct item_place *place, size_t offset,
                 const char **p);

/* ---- writing ------------------------------------------------------------------------- */

/* Takes memory for an item that is not visible yet. OK, TOO_LARGE or NO_MEMORY. The
 * caller fills all value_len + 2 bytes through item_space and then commits or releases
 * it. */
must_check enum store_status store_reserve(struct store *s, struct key key,
                                           uint32_t flags, uint32_t exptime,
                                           uint32_t value_len, uint32_t now,
                                           struct item **item);
/* Writable stretch from offset of a reserved item; as item_bytes. */
size_t item_space(struct item *it, size_t offset, char **p);
/* Every value is stored with CR LF behind it: writes them; whether they are there. */
void item_terminate(struct item *it);
bool item_is_terminated(const struct item *it);

/* Marks a reserved item's key as binary: shown encoded in texts. */
void item_mark_binary_key(struct item *it);
/* Whose share of the memory a reserved item uses; else 0. What is added to a value, or counted,
 * stays its owner's. */
void item_set_owner(struct item *it, uint8_t owner);

/* How to store. All zero but mode: the plain text commands. */
struct store_put {
    enum store_mode mode;
    bool
        has_compare; /* the item must have this CAS: EXISTS when it differs, MISS when there
                         is none (APPEND, PREPEND: NOT_STORED). ADD ignores it. */
    bool
        accepts_stale; /* a compare lower than the item's CAS stores too, as stale: the time
                           to live and the token mark of the old item stay */
    bool creates; /* APPEND, PREPEND: on a miss the data becomes an item with the exptime
                     that it was reserved with */
    uint64_t compare;
    uint64_t new_cas; /* 0: the next number */
};

/* Links a reserved item under its key and gives up the caller's reference, whatever the
 * status: OK, NOT_STORED, EXISTS, MISS, NO_MEMORY, TOO_LARGE (append and prepend build a new
 * item). APPEND and PREPEND keep the old flags and exptime. */
must_check enum store_status store_commit(struct store *s, struct item *item,
                                          const struct store_put *put, uint32_t now,
                                          struct store_result *result);

/* A value that is here as a whole. */
struct store_value {
    const char *p;
    uint32_t len, flags;
    uint32_t exptime; /* relative clock */
    uint8_t owner;
};

/* store_reserve, the value with CR LF behind it, and store_commit of a plain set. What is stored
 * under the key is overwritten where it is, if it needs as much memory, is the owner's and is not
 * held. OK and the
 * class of the item; else TOO_LARGE or NO_MEMORY, and nothing has changed. */
must_check enum store_status store_set(struct store *s, struct key key,
                                       const struct store_value *value, uint32_t now,
                                       uint8_t *class_id);

/* How to delete. All zero: unlink. */
struct store_cut {
    bool has_compare; /* EXISTS when the CAS differs */
    bool marks_stale; /* instead: stale, token free, new CAS */
    bool empties;     /* instead: the value becomes empty, with these flags */
    bool touches;     /* with marks_stale or empties; else empties means STORE_NEVER */
    uint32_t exptime;
    uint32_t client_flags;
    uint64_t compare;
    uint64_t new_cas; /* 0: the next number (marks_stale), unchanged (empties) */
};

/* OK, MISS or EXISTS; NO_MEMORY when it could not empty. cut may be NULL. */
must_check enum store_status store_delete(struct store *s, struct key key,
                                          const struct store_cut *cut, uint32_t now,
                                          struct store_result *result);
/* OK or MISS. A use for the LRU. */
must_check enum store_status store_touch(struct store *s, struct key key,
                                         uint32_t exptime, uint32_t now,
                                         struct store_result *result);

/* How to count. */
struct store_sum {
    bool increments;    /* wraps at 2^64; else decrements, and stops at 0 */
    bool has_compare;   /* EXISTS when the CAS differs */
    bool creates;       /* on a miss: an item with the initial value, flags 0 */
    bool is_binary_key; /* mark of a created item */
    uint8_t owner;      /* of a created item */
    bool touches;
    uint64_t delta;
    uint64_t initial;
    uint64_t compare;
    uint64_t new_cas; /* 0: the next number */
    uint32_t create_exptime;
    uint32_t exptime;
};

/* number[0..*digits) is the new value in decimal. In place and padded with blanks to the
 * old length when the new text is not longer and no other thread holds the item; else a
 * new item of exact length. OK, MISS, EXISTS, NOT_NUMERIC, NO_MEMORY. */
must_check enum store_status store_arith(struct store *s, struct key key,
                                         const struct store_sum *sum, uint32_t now,
                                         char number[STORE_NUMBER_DIGITS], size_t *digits,
                                         struct store_result *result);

/* With at < now: everything stored so far is gone. Else, when the clock reaches `at`, everything that is
 * stored until the end of that second; only the latest of these is remembered. */
void store_flush(struct store *s, uint32_t at, uint32_t now);

/* ---- maintenance --------------------------------------------------------------------- */

/* Pages of the pool are given back while more is charged than the limit. False when it can
 * not be changed (preallocated memory). */
must_check bool store_set_limit(struct store *s, uint64_t bytes);

/* Each of the steps below does one bounded piece of work and is called by one thread at a
 * time (any thread). None holds a lock that a get waits for longer than its step. */

/* Moves `buckets` buckets of a growing hash table. False when nothing is left for now. */
bool store_step(struct store *s, unsigned buckets);

/* As in options and statistics: flat, segmented, s3fifo. */
const char *store_lru_name(enum store_lru_policy policy);
void store_set_lru(struct store *s, const struct store_lru_conf *conf);
struct store_lru_conf store_lru(struct store *s);
/* What is lent is taken back as its owner stores. */
void store_set_shares(struct store *s, const struct store_shares *conf);
struct store_shares store_shares(struct store *s);
struct store_juggled {
    unsigned settled;   /* left HOT or TEMP: new items make for as many */
    unsigned reordered; /* of WARM and COLD: reads make for them, as often as they come */
};
/* One visit of a class's lists: expired tails go, items move between HOT, WARM and COLD, at
 * most `moves` of each kind. In flat mode HOT and WARM drain. */
struct store_juggled store_juggle(struct store *s, unsigned class_id, unsigned moves,
                                  uint32_t now);

/* ---- walks: the crawler and the dumps -------------------------------------------------- */

#define STORE_WALK_ALL UINT64_MAX

enum store_walk_status {
    STORE_WALK_OK,
    STORE_WALK_BUSY,   /* one walk at a time */
    STORE_WALK_EMPTY,  /* no items in these classes, or none whose time has come */
    STORE_WALK_LOCKED, /* the hash table is growing */
    STORE_WALK_NO_MEMORY,
};

struct store_walk_spec {
    uint64_t classes; /* bit per class id */
    bool by_table;    /* over the hash table: each item exactly once */
    bool is_crawl; /* of lists: on_event hears of each, and its next visit is planned */
    bool only_due; /* with is_crawl: lists whose visit was planned for now */
    uint32_t per_list; /* stop a list after so many items; 0: none */
};

/* Called for each live item, under its lock: must not block, nor call the store. False: no
 * room for it; the step ends and the next one begins with the same item. */
typedef bool store_visit(void *ctx, const struct item *it);

/* *ticket is the walk's name from here on. */
must_check enum store_walk_status store_walk_open(struct store *s,
                                                  const struct store_walk_spec *ask,
                                                  uint32_t now, uint32_t *ticket);

enum store_walk_step {
    STORE_WALK_MORE,
    STORE_WALK_OVER, /* it still has to be closed */
    STORE_WALK_LOST, /* it has been closed: it was not stepped for too long */
};

/* Looks at up to `items` items; those that have expired or been flushed go. visit may be
 * NULL. */
enum store_walk_step store_walk_step(struct store *s, uint32_t ticket, unsigned items,
                                     uint32_t now, store_visit *visit, void *ctx);
/* Does nothing when the walk is lost. */
void store_walk_close(struct store *s, uint32_t ticket);
/* Once a second: closes a walk that has not got on for a minute, because its owner has no room
 * or does not step it, and one that is no crawl after half an hour; and listings. */
void store_walk_expire(struct store *s, uint32_t now);

/* ---- page moves ------------------------------------------------------------------------ */

enum store_move_status {
    STORE_MOVE_OK,
    STORE_MOVE_BUSY, /* one page at a time */
    STORE_MOVE_BAD_CLASS,
    STORE_MOVE_NO_SPARE, /* the source has fewer than two pages */
    STORE_MOVE_SAME,
    STORE_MOVE_OFF, /* conf.can_reassign is false */
};

/* Starts to move the oldest page of `from` (-1: any class that has two) to `to` (0: pool). */
must_check enum store_move_status store_move_page(struct store *s, int from, int to);
enum store_move_progress {
    STORE_MOVE_IDLE,    /* there is no page under way */
    STORE_MOVE_WAITING, /* for chunks that are in use: no hurry */
    STORE_MOVE_WORKING, /* call again */
};

/* Works on the page under way, up to `chunks` chunks. */
enum store_move_progress store_move_step(struct store *s, unsigned chunks, uint32_t now);

struct store_automove {
    unsigned level; /* 0 off, 1 by age, or hits (s3fifo), 2 a page at each eviction */
    double ratio;
    unsigned window; /* seconds */
};
void store_set_automove(struct store *s, const struct store_automove *conf);
struct store_automove store_automove(struct store *s);
/* Level 2: begins the move to the class that has evicted last, if any has since the last call.
 * False on other levels: need not be called again. */
bool store_automove_evicted(struct store *s);
/* Once a second, level 1: looks at evictions, and ages or ghosts, may start a move. True when the next one of the
 * same second may follow as soon as that page has moved. */
bool store_automove_step(struct store *s, uint32_t now);

/* ---- listings -------------------------------------------------------------------------- */

#define STORE_DUMPS                                                                      \
    16 /* at a time; one more ends the one that has not gone on for longest */

/* Live items of a class from the most recent end, at most `limit` (0: all): COLD list, or HOT
 * when hot_first and segmented. Returns the listing's name, never 0. */
must_check uint32_t store_dump_begin(struct store *s, unsigned class_id, bool hot_first,
                                     uint32_t limit, uint32_t now);
/* Looks at up to `items` items. The same rules for visit, but false ends the listing. The class
 * can store nothing meanwhile. False: that was all, or the listing has been ended. One that
 * does not go on for a minute ends, too, so it need not be stepped to its end. */
must_check bool store_dump_step(struct store *s, uint32_t ticket, unsigned items,
                                uint32_t now, store_visit *visit, void *ctx);

/* Counts items by accounted size, those that are stored while it is on. False when it can
 * not be switched on: no CAS, or no memory. */
must_check bool store_track_sizes(struct store *s, bool is_on);
bool store_is_tracking_sizes(struct store *s);
#define STORE_SIZE_LOOKS 16 /* that a size for which there are items counts */

typedef void store_size_visit(void *ctx, uint64_t size, uint64_t count);
/* Tells how many items there are of each size, rounded up to 32 bytes, in ascending order from
 * *bucket on, 0 at first, for up to `looks` looks. False: that was all. With tracking off
 * there is nothing. */
must_check bool store_sizes_step(struct store *s, unsigned *bucket, unsigned looks,
                                 store_size_visit *visit, void *ctx);

/* For tests: takes or gives back the stripe lock of the key, on the calling thread. */
void store_debug_lock(struct store *s, struct key key, bool is_locked);

/* ---- statistics ---------------------------------------------------------------------- */

/* Of a class, or of all, for which evicted_time, seconds of the last one, says nothing. They begin at 0
 * and go back there at a reset. */
struct store_counters {
    uint64_t total_items;
    uint64_t evicted, evicted_nonzero, evicted_time, evicted_unfetched, evicted_active;
    uint64_t reclaimed, expired_unfetched;
    uint64_t outofmemory, tailrepairs, reflocked;
    uint64_t moves_to_cold, moves_to_warm, moves_within_lru;
    uint64_t crawler_reclaimed, crawler_items_checked;
    uint64_t ghost_hits; /* items stored again not long after they were evicted */
    uint64_t returns;    /* of store_class_stats.losses, those that came back */
};

struct store_totals {
    struct store_counters count;
    uint64_t limit_bytes, malloced_bytes;
    uint64_t item_bytes, curr_items;
    uint64_t direct_reclaims;
    uint64_t malloc_fails;
    uint64_t crawler_starts; /* lists */
    uint64_t juggles;        /* calls of store_juggle for the last class */
    bool is_walking;
    uint64_t pages_moved, move_rescues, move_chunk_rescues, move_evictions_nomem,
        move_inline_reclaim, move_busy_items, move_busy_deletes, move_busy_nomem;
    const char *move_last_busy; /* static text, "none" at first */
    bool is_moving;
    uint64_t pool_pages;
    uint32_t flush_time; /* relative; 0: never flushed */
    unsigned hash_power;
    uint64_t hash_bytes;
    bool is_expanding;
    unsigned active_classes; /* with at least one page */
};

struct store_class_stats {
    struct store_counters count;
    uint32_t chunk_size, chunks_per_page, total_pages;
    uint64_t total_chunks, used_chunks, free_chunks, requested_bytes;
    uint64_t number; /* items in all lists */
    uint64_t list_number[STORE_LISTS];
    uint32_t age; /* seconds since last access of the COLD tail */
    uint32_t age_hot, age_warm;
    uint64_t item_bytes; /* of live items; requested_bytes has those being written too */
    uint64_t direct_reclaims;
    uint64_t
        losses; /* of a sample: left the main queue; count.returns came back. Never reset */
    unsigned host;  /* the class that would serve its items if it had no page; 0: none */
    bool is_wanted; /* it has no page, there was none, and what serves is much larger */
};

struct store_owner_stats {
    uint64_t bytes, items;
    /* Since the start, whatever is reset. */
    uint64_t evicted;
    uint64_t
        would_hit; /* stored again after one of the last evictions, a tenth as many as the
                           owner has items; counted while shares are on */
};

void store_totals(struct store *s, struct store_totals *out);
void store_owner_stats(struct store *s, unsigned owner, struct store_owner_stats *out);
/* Classes exist for ids 1..store_class_count. */
unsigned store_class_count(const struct store *s);
/* Without a lock: about so many. */
uint64_t store_class_items(const struct store *s, unsigned class_id);
void store_class_stats(struct store *s, unsigned class_id, uint32_t now,
                       struct store_class_stats *out);
/* Zeroes the counters; states (items, bytes, pages) stay. */
void store_reset_stats(struct store *s);
