/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What leader and agents say to each other (doc/swarm.md has the order), and the hello with
 * which both begin. Types and tags are never used anew for something else. Pure.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "loadgen/swarm/frame.h"
#include "loadgen/swarm/seal.h"

/* ---- lease ------------------------------------------------------------------------- */

/* The dead man's switch of an agent and the pauses after failed proofs. Pure. */
#define LEASE_RENEW NSEC_PER_SEC      /* the leader renews the lease at this interval */
#define LEASE_TERM (3 * NSEC_PER_SEC) /* without a word for this long, an agent stops */
#define LEASE_PAUSE_FIRST (100 * NSEC_PER_MSEC)
#define LEASE_PAUSE_LAST (2 * NSEC_PER_SEC) /* within which a leader waits: GREET_TIME */

struct lease {
    nsec_t renewed_at;
};

static inline void
lease_renew(struct lease *l, nsec_t now)
{
    l->renewed_at = now > l->renewed_at ? now : l->renewed_at;
}

/* When it ends unless renewed. */
static inline nsec_t
lease_end(const struct lease *l)
{
    return l->renewed_at + LEASE_TERM;
}

static inline bool
lease_is_over(const struct lease *l, nsec_t now)
{
    return now >= lease_end(l);
}

/* How long the next attempt waits after so many failures in a row: doubled each time. */
static inline nsec_t
lease_pause(unsigned failures)
{
    return failures == 0
               ? 0
               : clock_doubled(LEASE_PAUSE_FIRST, failures - 1, LEASE_PAUSE_LAST);
}

/* ---- message ----------------------------------------------------------------------- */

/* ---- interval ---------------------------------------------------------------------- */

/* The intervals by which the processes of a swarm report a run, numbered from 1 by the leader's
 * time: number n ends n lengths after the start, the last one with the run. Pure. */
/* How long intervals are to be for a run so long, of which rows so long are shown: 10 to
 * 1000 ms, a whole number of them a row unless rows are shorter. */
nsec_t interval_length(nsec_t time, nsec_t row_length);
/* The number of the last interval of a run. */
uint64_t interval_last(nsec_t time, nsec_t length);
/* The number of the interval that ends about now, `since` the start: none is after the last
 * but one, whose reports are not the final ones. */
uint64_t interval_number(nsec_t since, nsec_t time, nsec_t length);

/* ---- message ----------------------------------------------------------------------- */

#define MESSAGE_MAGIC "mcload swarm"
#define MESSAGE_VERSION 3
#define MESSAGE_PORT 5556
#define MESSAGE_HELLO_MAX 1024 /* bytes of a frame before the proofs are given */
#define MESSAGE_TEXT_MAX 512   /* of a sentence, with its end */
#define MESSAGE_WORD_MAX 1024  /* of a word of the command line, with its end */
#define MESSAGE_WORDS_MAX 2048
#define MESSAGE_AGENTS_MAX 64
#define MESSAGE_WEIGHT_MAX 1000000
#define MESSAGE_COSTS_MAX 65536
#define MESSAGE_NOTES_MAX 16

/* What an agent is there for. Numbers on the wire. */
enum message_role {
    ROLE_LOAD,    /* sends its share of the load */
    ROLE_MEASURE, /* sends its share of what is measured beside it */
    ROLE_OBSERVE, /* asks servers for their stats, and sends nothing else */
    ROLES,
};

/* Bits of FIELD_FEATURES: what the sender of a hello knows beyond the first version. */
#define MESSAGE_KNOWS_ROLES 1
#define MESSAGE_KNOWS_RENEW 2
#define MESSAGE_FEATURES (MESSAGE_KNOWS_ROLES | MESSAGE_KNOWS_RENEW)

enum message {
    MESSAGE_HELLO = 1, /* both */
    MESSAGE_PROOF,     /* both */
    MESSAGE_WELCOME,   /* agent: commands are taken */
    MESSAGE_BUSY,      /* agent: of another leader */
    MESSAGE_REFUSED,   /* agent: TEXT says why, and no more comes */
    MESSAGE_CONFIG,    /* leader: WORDs, AGENT, AGENTS: connect and load */
    MESSAGE_READY,     /* agent: connected and loaded */
    MESSAGE_FAILED,    /* agent: TEXT says why; it is idle again */
    MESSAGE_STAMP,     /* leader: SENT; renews the lease */
    MESSAGE_STAMPS,    /* agent: SENT, HEARD, ANSWERED, with BEHIND: its heartbeat */
    MESSAGE_START,     /* leader: BEGIN on the agent's clock */
    MESSAGE_DELTA,     /* agent: INTERVAL, CLASS, COUNTERS, HISTs */
    MESSAGE_DONE,      /* agent: the totals' DIGEST, and what it cost */
    MESSAGE_STOP,      /* leader: end the run now */
    MESSAGE_SAMPLE,    /* agent that observes: SERVER, AT, VALUES */
    MESSAGE_RENEW, /* leader: IS_FRESH; connections for the next run: READY when there */
};

enum message_field {
    FIELD_MAGIC = 1,
    FIELD_VERSION = 2,
    FIELD_FEATURES = 3, /* bits; unknown ones are to be ignored */
    FIELD_NONCE = 4,
    FIELD_SHAPE = 5,   /* of counters: both sides must have the same */
    FIELD_IS_OPEN = 6, /* 1: the sender of this hello has no key */
    FIELD_PROOF = 7,
    FIELD_TEXT = 8,
    FIELD_WEIGHT = 9,
    FIELD_WORD = 10,
    FIELD_AGENT = 11,
    FIELD_AGENTS = 12,
    FIELD_LOADED = 13,
    FIELD_SENT = 14,
    FIELD_HEARD = 15,
    FIELD_ANSWERED = 16,
    /* 17 was how busy an agent is. */
    FIELD_BEHIND = 18, /* ns that its own loop was late */
    FIELD_BEGIN = 19,  /* by the agent's clock */
    FIELD_TIME = 20,   /* ns, and so are all times */
    FIELD_WARMUP = 21,
    FIELD_IS_FRESH = 22, /* 1: all connections are made anew before */
    FIELD_RATES = 23,    /* 8 bytes a class: the agent's share; 0: closed loop */
    FIELD_INTERVAL = 24,
    FIELD_CLASS = 25,
    FIELD_COUNTERS = 26,
    FIELD_HIST = 27,
    FIELD_DIGESTS = 28, /* 8 bytes a class */
    FIELD_COSTS = 29,   /* 4 times 8 bytes a thread: elapsed, cpu, idle, waited */
    FIELD_ELAPSED = 30, /* of the measured window */
    FIELD_START_ERROR = 31,
    /* 32 was whether the window ended early. */
    FIELD_IS_LOCAL = 33,     /* 1: a server shares the agent's machine */
    FIELD_WANTS_SECRET = 34, /* 1: servers are to be shown a name and a password, which
                                each process has in a file of its own */
    FIELD_LENGTH = 35,       /* of an interval */
    FIELD_ROLE = 36,         /* enum message_role; without one: ROLE_LOAD */
    FIELD_SERVER = 37,       /* from 0, of those that the agent was told */
    FIELD_AT = 38,           /* since the start of the window */
    FIELD_SLICE = 40,  /* 2 times 8 bytes: first, end (drive/reader.h); without: all */
    FIELD_NOTE = 41,   /* a line about the run, for people */
    FIELD_VALUES = 39, /* 8 bytes for each enum server_stat: a double's bits */
    /* Those that send the same classes; without them: AGENT of AGENTS. */
    FIELD_SENDER = 42,
    FIELD_SENDERS = 43,
    FIELD_TOLD = 44, /* a bit for each of them: the server tells it */
    /* 1e-9 of the time of its CPUs went to others; without: not known. */
    FIELD_STEAL = 45,
};

/* "load", "measure" or "observe". */
extern const char *const message_role_names[ROLES];

struct message_hello {
    uint64_t features, shape;
    bool is_open;
    uint8_t nonce[SEAL_NONCE];
};

void message_put_hello(struct frame_out *o, const struct message_hello *h);
/* NULL, or why the other side cannot be spoken with. */
must_check const char *message_get_hello(const struct frame *f, struct message_hello *h);
