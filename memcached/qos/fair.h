/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Tenants of a worker, and whose work is next in a queue that they share.
 *
 * The law is deficit round robin (Shreedhar and Varghese, SIGCOMM '95). Each tenant with work has a
 * line of its own, and lines are visited in a ring. A visit adds a quantum to what the line may
 * use, and lasts while some of it is left; what was used beyond it is owed. A line that has no more
 * work when the next one is chosen leaves the ring: it keeps what it owes, which rounds without it
 * pay back, and no credit. When nothing waits all debts are forgiven. The cost of work is report when
 * it is known, in any unit: time of queues, tokens of limits.
 *
 * So while n tenants have work none waits for longer than n - 1 quanta and n turns. With one
 * tenant it is first come, first served.
 *
 * The table of tenants has FAIR_TENANTS places, in sets of FAIR_WAYS. One whose tenant has no
 * work may change hands, the one that was idle longest first. When the places of its set all have
 * work, a tenant shares a line with those that have no place and those that are none.
 *
 * Pure; the worker's thread, but for fair_report_of. Nodes are intrusive: no allocation.
 */
#pragma once

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"
#include "qos/class.h"

#define FAIR_TENANTS 256
#define FAIR_WAYS 8
#define FAIR_NAME_MAX 48 /* bytes of a name that are kept; a multiple of 8 */

/* What makes requests one tenant's. */
enum fair_by { FAIR_OFF, FAIR_PEER, FAIR_PREFIX, FAIR_CLASS, FAIR_BYS };

/* "off", "peer", "prefix", "class". */
extern const char *const fair_by_names[FAIR_BYS];
/* False: none of these. */
must_check bool fair_by_parse(const char *text, size_t len, enum fair_by *by);

/* The queues of a worker that tenants share: one a class, the limits of the classes, that of
 * all. */
enum {
    FAIR_QUEUE_CLASS,
    FAIR_QUEUE_LIMIT = FAIR_QUEUE_CLASS + CLASS_COUNT,
    FAIR_QUEUE_TOTAL = FAIR_QUEUE_LIMIT + CLASS_COUNT,
    FAIR_QUEUES
};

struct fair_node {
    struct fair_node *next, *prev; /* NULL: not queued */
    nsec_t since;                  /* its owner's: when it was queued */
    uint32_t tenant;               /* key of the tenant; 0: none */
    uint8_t place;                 /* of its line, while it is queued */
    uint8_t class;                 /* its owner's */
};

struct fair_line {
    struct fair_node head;         /* circular; head.next is the oldest */
    struct fair_line *next, *prev; /* in the ring; NULL: not there */
    unsigned length;
    uint8_t place;
    int64_t left;   /* of this visit; below 0: owed */
    uint64_t round; /* of its last visit */
};

struct fair_tenant {
    _Atomic uint32_t key; /* 0: free */
    unsigned lines;       /* that are in a ring */
    uint64_t used_at;     /* by the table's ticks */
    _Atomic uint64_t name[FAIR_NAME_MAX / sizeof(uint64_t)];
    ctr_t turns, requests, used_ns; /* deferred turns, what they served, what they took */
    ctr_t tokens;                   /* that it has waited for and got */
    ctr_t waiting;                  /* connections and flows in lines of it */
    struct fair_line queues[FAIR_QUEUES];
};

/* Place 0 is of those without a place: its lines are the queues' own. */
struct fair_table {
    uint64_t ticks;
    ctr_t shared; /* times that there was no place for a tenant */
    struct fair_tenant tenants[FAIR_TENANTS];
};

struct fair_queue {
    struct fair_table *table; /* NULL: there is one line */
    unsigned number;          /* of FAIR_QUEUES */
    int64_t quantum, debt_most;
    uint64_t round;
    uint64_t forgiving;        /* rounds that pay back any debt */
    unsigned length;           /* nodes of all lines */
    unsigned lines;            /* in the ring */
    struct fair_line *visited; /* NULL: the ring is empty */
    struct fair_line own;      /* of nodes without a place */
};

/* NULL: no memory. */
struct fair_table *fair_table_create(void);
void fair_table_destroy(struct fair_table **t);

/* debt_most: what is remembered of using more than the quantum. */
void fair_init(struct fair_queue *q, unsigned number, int64_t quantum, int64_t debt_most);
/* From here on nodes go to the lines of their tenants. */
void fair_set_table(struct fair_queue *q, struct fair_table *table);

static inline bool
fair_is_queued(const struct fair_node *n)
{
    return n->next != NULL;
}

/* Several lines have work, or had when the last node was taken. */
static inline bool
fair_is_shared(const struct fair_queue *q)
{
    return q->lines > 1;
}

/* Appends to the line of n->tenant. */
void fair_push(struct fair_queue *q, struct fair_node *n);
/* Leaves its line; it is in one. */
void fair_remove(struct fair_queue *q, struct fair_node *n);
/* Takes the next one; NULL: none waits. */
struct fair_node *fair_pop(struct fair_queue *q);
/* Work of the line at this place has cost so much. */
void fair_charge(struct fair_queue *q, uint8_t place, uint64_t cost);
/* The oldest node of the line behind `line`, from NULL on; it is `*oldest`. NULL: that was all. */
const struct fair_line *fair_each(const struct fair_queue *q,
                                  const struct fair_line *line);
static inline unsigned
fair_line_length(const struct fair_queue *q, uint8_t place)
{
    return place == 0 ? q->own.length : q->table->tenants[place].queues[q->number].length;
}

/* Finds a tenant's place, or makes it one; 0: there is none. */
uint8_t fair_place(struct fair_table *t, uint32_t key);
/* Gives the tenant at a place its name, once. */
must_check bool fair_has_name(const struct fair_table *t, uint8_t place);
void fair_set_name(struct fair_table *t, uint8_t place, const char *name, size_t len);

/* What is known of the tenant at a place; any thread. False: there is none. */
struct fair_report {
    uint32_t key;
    char name[FAIR_NAME_MAX + 1];
    uint64_t turns, requests, used_ns, tokens, waiting;
};
must_check bool fair_report_of(const struct fair_table *t, unsigned place,
                               struct fair_report *report);
