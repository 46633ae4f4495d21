/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * TLS on descriptors: certificates for the process, a session for a connection. tls.c alone
 * includes OpenSSL's headers; a build without it has tls_none.c instead.
 *
 * struct tls is one for the process and NULL without -Z; any thread may call. A struct
 * tls_session belongs to the thread that serves its connection, which lends it a struct
 * tls_thread for each call. Nothing blocks: the descriptors are non-blocking.
 */
#pragma once

#include <sys/uio.h>

#include "base/ctr.h"
#include "base/must.h"

struct ssl_st;
struct tls;

#define TLS_RECORD_MAX 16384 /* bytes of a record, by the standard */
#define TLS_REASON_MAX 96
#define TLS_VERIFY_MODES 4
#define TLS_VERSIONS 4

struct tls_conf {
    const char *chain_cert, *key, *ca_cert, *ciphers; /* NULL: not given */
    int key_format;                                   /* 1 PEM, 2 DER */
    unsigned verify_mode; /* 0 none, 1 requested, 2 required, 3 required once */
    unsigned min_version; /* 0 TLS 1.0 to 3 TLS 1.3 */
    size_t record_bytes;  /* at most in one record; 0, or too many: TLS_RECORD_MAX */
    bool caches_sessions;
    bool wants_kernel; /* as asked for, without effect */
};

/* What a listener speaks. */
enum tls_mode {
    TLS_OFF,
    TLS_DEFAULT, /* asks for a certificate of the client as verify_mode says */
    TLS_BASIC,   /* does not ask */
    TLS_MUTUAL,  /* demands one */
};

/* What a thread that serves connections has of TLS. Others read the counters. */
struct tls_thread {
    char *record; /* gathers small runs of output; NULL: no TLS */
    size_t record_bytes;
    ctr_t handshake_errors; /* connections that came to no agreement */
    ctr_t protocol_errors;  /* connections broken by records behind it */
    ctr_t new_sessions;     /* put into the cache */
};

struct tls_session {
    bool is_agreed; /* the handshake is done */
    bool
        was_held; /* the last tls_recv took nothing from the descriptor: it came before */
    size_t committed; /* bytes that the next tls_send has to be given again; 0: none */
    char reason[TLS_REASON_MAX]; /* why it is TLS_BROKEN, for the log */
    /* The rest is for tls.c alone. */
    struct ssl_st *ssl;
    struct tls_thread *thread; /* that is inside a call */
    unsigned reads_left;       /* in this call */
    unsigned late_messages;    /* of this call */
    bool is_dry;               /* the last read of this call got less than it might */
    bool is_empty;             /* and nothing at all, for now */
    bool is_broken;            /* nothing more may be asked of ssl */
};

enum tls_io {
    TLS_OK,
    TLS_MORE,       /* it goes on without an event; others should have a turn first */
    TLS_WANT_READ,  /* input has to come first */
    TLS_WANT_WRITE, /* room for output has to come first */
    TLS_EOF,        /* the peer has ended */
    TLS_BROKEN,     /* the peer does not speak TLS, or not so that we agree, or is gone */
};

/* How stats settings calls a min_version. */
const char *tls_version_name(unsigned min_version);

/* ---- the process ---------------------------------------------------------------------- */

/* Loads everything that conf names, with the rights and in the directory of the moment. NULL
 * with a line in err. */
struct tls *tls_open(const struct tls_conf *conf, char *err, size_t err_len);
/* Any thread: loads it again, for connections from here on. False with a line in err: all
 * stays as it was. `now`, of the relative clock, is what tls_loaded_at then tells. */
must_check bool tls_reload(struct tls *t, uint32_t now, char *err, size_t err_len);
/* 0: at the start. */
uint32_t tls_loaded_at(const struct tls *t);
/* All sessions have been ended. */
void tls_close(struct tls **t);

/* False: no memory. t may be NULL. */
must_check bool tls_thread_init(struct tls_thread *thread, const struct tls *t);
void tls_thread_fini(struct tls_thread *thread);

/* ---- a connection --------------------------------------------------------------------- */

/* The descriptor stays the caller's. NULL: no memory. */
struct tls_session *tls_begin(struct tls *t, int fd, enum tls_mode mode);
/* One step of the handshake. OK: it is done. */
must_check enum tls_io tls_handshake(struct tls_session *s, struct tls_thread *thread);
/* After the handshake. OK: *got bytes, at least one; *has_more: the next call may find more
 * without an event of the descriptor. */
must_check enum tls_io tls_recv(struct tls_session *s, struct tls_thread *thread,
                                char *to, size_t room, size_t *got, bool *has_more);
/* After the handshake. *sent bytes of the runs have gone; OK: all. After WANT_* the bytes
 * behind them may be on their way already: they are committed, and must be what is offered next
 * time. */
must_check enum tls_io tls_send(struct tls_session *s, struct tls_thread *thread,
                                const struct iovec *iov, unsigned runs, size_t *sent);
/* Says good-bye if that can be done at once; *s is NULL afterwards, and may be before. */
void tls_end(struct tls_session **s);
