/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/fair.h"

#include <assert.h>

#include "base/part.h"

#define SETS (FAIR_TENANTS / FAIR_WAYS)

static_assert(FAIR_TENANTS - 1 <= UINT8_MAX, "a place is a byte");

const char *const fair_by_names[FAIR_BYS] = {[FAIR_OFF] = "off",
                                             [FAIR_PEER] = "peer",
                                             [FAIR_PREFIX] = "prefix",
                                             [FAIR_CLASS] = "class"};

bool
fair_by_parse(const char *text, size_t len, enum fair_by *by)
{
    *by = (enum fair_by)part_find(fair_by_names, FAIR_BYS, text, len);
    return *by < FAIR_BYS;
}

/* ---- the table ------------------------------------------------------------------------- */

static void
line_init(struct fair_line *l, uint8_t place)
{
    *l = (struct fair_line){.place = place};
    l->head.next = l->head.prev = &l->head;
}

struct fair_table *
fair_table_create(void)
{
    struct fair_table *t = calloc(1, sizeof *t);
    for (unsigned i = 0; t != NULL && i < FAIR_TENANTS; i++) {
        for (unsigned q = 0; q < FAIR_QUEUES; q++) {
            line_init(&t->tenants[i].queues[q], (uint8_t)i);
        }
    }
    return t;
}

void
fair_table_destroy(struct fair_table **t)
{
    free(*t);
    *t = NULL;
}

static void
move_count(ctr_t *from, ctr_t *to)
{
    ctr_add(to, ctr_get(from));
    atomic_store_explicit(from, 0, memory_order_relaxed);
}

/* The place is another's from here on; what was counted is that of those without a place. The key
 * is 0 meanwhile, so that fair_report_of does not mix the two. */
static void
change_hands(struct fair_table *t, struct fair_tenant *to, uint32_t key)
{
    struct fair_tenant *none = &t->tenants[0];
    atomic_store(&to->key, 0);
    move_count(&to->turns, &none->turns);
    move_count(&to->requests, &none->requests);
    move_count(&to->used_ns, &none->used_ns);
    move_count(&to->tokens, &none->tokens);
    for (unsigned i = 0; i < sizeof to->name / sizeof to->name[0]; i++) {
        atomic_store(&to->name[i], 0);
    }
    for (unsigned q = 0; q < FAIR_QUEUES; q++) {
        to->queues[q].left = 0;
    }
    atomic_store(&to->key, key);
}

/* The place of a set that may change hands best; NULL: all have work. */
static struct fair_tenant *
idle_of(struct fair_tenant *set, unsigned first)
{
    struct fair_tenant *found = NULL;
    for (unsigned i = first; i < FAIR_WAYS; i++) {
        if (set[i].lines == 0 && (found == NULL || set[i].used_at < found->used_at)) {
            found = &set[i];
        }
    }
    return found;
}

uint8_t
fair_place(struct fair_table *t, uint32_t key)
{
    if (t == NULL || key == 0) {
        return 0;
    }
    struct fair_tenant *set = &t->tenants[key % SETS * FAIR_WAYS];
    unsigned first = set == t->tenants; /* place 0 is not to be had */
    struct fair_tenant *found = NULL;
    for (unsigned i = first; i < FAIR_WAYS && found == NULL; i++) {
        uint32_t its = atomic_load_explicit(&set[i].key, memory_order_relaxed);
        found = its == key ? &set[i] : NULL;
    }
    if (found == NULL) {
        found = idle_of(set, first);
        if (found == NULL) {
            ctr_add(&t->shared, 1);
            return 0;
        }
        change_hands(t, found, key);
    }
    found->used_at = ++t->ticks;
    return (uint8_t)(found - t->tenants);
}

bool
fair_has_name(const struct fair_table *t, uint8_t place)
{
    return atomic_load_explicit(&t->tenants[place].name[0], memory_order_relaxed) != 0;
}

void
fair_set_name(struct fair_table *t, uint8_t place, const char *name, size_t len)
{
    uint64_t words[FAIR_NAME_MAX / sizeof(uint64_t)] = {0};
    memcpy(words, name, len < sizeof words ? len : sizeof words);
    for (unsigned i = 0; i < FAIR_NAME_MAX / sizeof(uint64_t); i++) {
        atomic_store(&t->tenants[place].name[i], words[i]);
    }
}

bool
fair_report_of(const struct fair_table *t, unsigned place, struct fair_report *report)
{
    const struct fair_tenant *from = &t->tenants[place];
    uint64_t words[FAIR_NAME_MAX / sizeof(uint64_t)];
    uint32_t key = atomic_load(&from->key);
    for (unsigned i = 0; i < FAIR_NAME_MAX / sizeof(uint64_t); i++) {
        words[i] = atomic_load(&from->name[i]);
    }
    *report = (struct fair_report){.key = key,
                                   .turns = ctr_get(&from->turns),
                                   .requests = ctr_get(&from->requests),
                                   .used_ns = ctr_get(&from->used_ns),
                                   .tokens = ctr_get(&from->tokens),
                                   .waiting = ctr_get(&from->waiting)};
    memcpy(report->name, words, sizeof words);
    return (place == 0 || key != 0) && atomic_load(&from->key) == key;
}

/* ---- the ring -------------------------------------------------------------------------- */

void
fair_init(struct fair_queue *q, unsigned number, int64_t quantum, int64_t debt_most)
{
    must(number < FAIR_QUEUES && quantum > 0);
    *q = (struct fair_queue){.number = number,
                             .quantum = quantum,
                             .debt_most = debt_most,
                             .forgiving = (uint64_t)(debt_most / quantum) + 1};
    line_init(&q->own, 0);
}

void
fair_set_table(struct fair_queue *q, struct fair_table *table)
{
    must(q->table == NULL);
    q->table = table;
    table->tenants[0].lines += q->own.next != NULL;
    ctr_add(&table->tenants[0].waiting, q->own.length);
}

static struct fair_line *
line_at(struct fair_queue *q, uint8_t place)
{
    return place == 0 ? &q->own : &q->table->tenants[place].queues[q->number];
}

static void
note_lines(struct fair_queue *q, const struct fair_line *l, int change)
{
    q->lines += (unsigned)change;
    if (q->table != NULL) {
        q->table->tenants[l->place].lines += (unsigned)change;
    }
}

/* Its credit is lost. */
static void
leave(struct fair_queue *q, struct fair_line *l)
{
    q->visited = q->visited != l ? q->visited : l->next != l ? l->next : NULL;
    l->next->prev = l->prev;
    l->prev->next = l->next;
    l->next = l->prev = NULL;
    l->left = l->left < 0 ? l->left : 0;
    note_lines(q, l, -1);
}

static void
visit(struct fair_queue *q, struct fair_line *l)
{
    q->visited = l;
    q->round = ++l->round;
    l->left += q->quantum;
}

/* The last one to be visited; the rounds without it have paid back what they would have given. */
static void
enter(struct fair_queue *q, struct fair_line *l)
{
    uint64_t missed = q->round - l->round;
    bool is_paid = missed > (uint64_t)(-l->left / q->quantum);
    l->left = is_paid ? 0 : l->left + (int64_t)missed * q->quantum;
    l->round = q->round;
    struct fair_line *behind = q->visited != NULL ? q->visited : l;
    l->next = behind;
    l->prev = behind != l ? behind->prev : l;
    l->prev->next = l->next->prev = l;
    note_lines(q, l, 1);
    if (behind == l) {
        visit(q, l);
    }
}

/* Nothing waits, and l is next: what was used before does not matter. */
static void
forgive(struct fair_queue *q, struct fair_line *l)
{
    q->round += q->forgiving;
    if (q->lines == 1 && q->visited == l) {
        l->left = q->quantum; /* as ever, while there is one tenant */
        l->round = q->round;
        return;
    }
    while (q->visited != NULL) {
        leave(q, q->visited);
    }
}

/* Rounds in which none could be served. */
static void
skip_rounds(struct fair_queue *q)
{
    int64_t rounds = INT64_MAX;
    struct fair_line *l = q->visited;
    do {
        int64_t needs = l->left < 0 ? -l->left / q->quantum : 0;
        rounds = needs < rounds ? needs : rounds;
        l = l->next;
    } while (l != q->visited);
    do {
        l->left += rounds * q->quantum;
        l->round += (uint64_t)rounds;
        l = l->next;
    } while (l != q->visited);
    q->round += (uint64_t)rounds;
}

/* The line whose visit it is; some line has work. */
static struct fair_line *
entitled(struct fair_queue *q)
{
    unsigned seen = 0;
    while (true) {
        struct fair_line *l = q->visited;
        if (l->length == 0) {
            leave(q, l);
            visit(q, q->visited);
        } else if (l->left > 0) {
            return l;
        } else {
            if (++seen > q->lines || q->lines == 1) {
                skip_rounds(q);
                seen = 0;
            }
            visit(q, l->next);
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------- */

static void
note_waiting(struct fair_queue *q, const struct fair_node *n, uint64_t change)
{
    if (q->table != NULL) {
        ctr_add(&q->table->tenants[n->place].waiting, change);
    }
}

void
fair_push(struct fair_queue *q, struct fair_node *n)
{
    must(!fair_is_queued(n));
    n->place = fair_place(q->table, n->tenant);
    struct fair_line *l = line_at(q, n->place);
    if (q->length == 0) {
        forgive(q, l);
    }
    n->next = &l->head;
    n->prev = l->head.prev;
    n->prev->next = n;
    l->head.prev = n;
    l->length++;
    q->length++;
    note_waiting(q, n, 1);
    if (l->next == NULL) {
        enter(q, l);
    }
}

void
fair_remove(struct fair_queue *q, struct fair_node *n)
{
    struct fair_line *l = line_at(q, n->place);
    must(q->length > 0 && l->length > 0);
    must(n->prev->next == n && n->next->prev == n);
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
    l->length--;
    q->length--;
    note_waiting(q, n, (uint64_t)-1);
}

struct fair_node *
fair_pop(struct fair_queue *q)
{
    if (q->length == 0) {
        return NULL;
    }
    struct fair_node *n = entitled(q)->head.next;
    fair_remove(q, n);
    return n;
}

void
fair_charge(struct fair_queue *q, uint8_t place, uint64_t cost)
{
    struct fair_line *l = line_at(q, place);
    l->left = cost < (uint64_t)q->debt_most ? l->left - (int64_t)cost : -q->debt_most;
    l->left = l->left > -q->debt_most ? l->left : -q->debt_most;
}

const struct fair_line *
fair_each(const struct fair_queue *q, const struct fair_line *line)
{
    const struct fair_line *l = line == NULL ? q->visited : line->next;
    return line != NULL && l == q->visited ? NULL : l;
}
