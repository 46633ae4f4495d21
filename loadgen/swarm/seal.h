/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Authentication of leader and agent: a key that both sides have beforehand. Both prove
 * that they have it by an HMAC-SHA-256 over what was said so far, nonces of both sides
 * included; from then on every frame carries its number and a shortened HMAC by a key of
 * its direction (HKDF, RFC 5869). Frames are authenticated, not encrypted.
 *
 * seal.c has this from OpenSSL; a build without it has seal_none.c, and only the
 * unauthenticated swarm on loopback is left. Pure but for the kernel's
 * random numbers; any thread.
 */
#pragma once

#include "base/must.h"
#include "loadgen/swarm/frame.h"

#define SEAL_NONCE 32
#define SEAL_PROOF 32
#define SEAL_KEY_MIN 16
#define SEAL_KEY_MAX 4096
#define SEAL_CHANNEL_KEY 32

struct seal_key {
    uint8_t bytes[SEAL_KEY_MAX];
    size_t len; /* 0: none */
};

enum seal_side {
    SEAL_LEADER,
    SEAL_AGENT,
    SEAL_SIDES,
};

/* What one end of a connection knows after the proofs. */
struct seal {
    bool is_on;                                 /* else frames have no MAC */
    uint8_t keys[SEAL_SIDES][SEAL_CHANNEL_KEY]; /* of frames that the side sends */
};

/* Reads a key from a file that no other user may read; without a file (NULL) there is none. False
 * with a sentence. */
must_check bool seal_read_key(struct seal_key *key, const char *path, char *err,
                              size_t err_len);

/* Unpredictable bytes. False: the kernel has none. */
must_check bool seal_random(uint8_t *p, size_t len);

/* What takes OpenSSL. */
struct seal_ops {
    /* What `side` shows to have the key: over both hellos, as they were on the wire. */
    bool (*prove)(const struct seal_key *key, enum seal_side side,
                  const uint8_t *hello_leader, size_t leader_len,
                  const uint8_t *hello_agent, size_t agent_len,
                  uint8_t proof[SEAL_PROOF]);
    /* The keys of both directions, by the nonces of both hellos. */
    bool (*open)(struct seal *s, const struct seal_key *key,
                 const uint8_t nonce_leader[SEAL_NONCE],
                 const uint8_t nonce_agent[SEAL_NONCE]);
    /* The MAC of a frame that `side` sends. */
    bool (*mac)(const struct seal *s, enum seal_side side, const uint8_t *p, size_t len,
                uint8_t mac[FRAME_MAC]);
};
/* NULL: this build has none, and so no keys. */
extern const struct seal_ops *const seal_ops;

/* In a time that does not tell where they differ. */
bool seal_equals(const uint8_t *a, const uint8_t *b, size_t len);
/* Overwrites, also where the compiler sees no use in it. */
void seal_forget(void *p, size_t len);
