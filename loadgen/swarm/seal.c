/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/seal.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/be.h"

#define DIGEST "SHA256"

/* Several pieces, each after its length, so that no two lists of pieces look alike. */
struct hashed {
    const void *p;
    size_t len;
};

static const char *const proof_labels[SEAL_SIDES] = {
    [SEAL_LEADER] = "mcload swarm 1 proof of the leader",
    [SEAL_AGENT] = "mcload swarm 1 proof of the agent",
};
static const char *const channel_labels[SEAL_SIDES] = {
    [SEAL_LEADER] = "mcload swarm 1 frames of the leader",
    [SEAL_AGENT] = "mcload swarm 1 frames of the agent",
};

static bool
add_pieces(EVP_MAC_CTX *ctx, const struct hashed *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint8_t len[8];
        be_put(len, pieces[i].len, FRAME_NUMBER_BYTES);
        if (EVP_MAC_update(ctx, len, sizeof len) != 1 ||
            EVP_MAC_update(ctx, pieces[i].p, pieces[i].len) != 1) {
            return false;
        }
    }
    return true;
}

static bool
hmac(const uint8_t *key, size_t key_len, const struct hashed *pieces, unsigned count,
     uint8_t out[SEAL_PROOF])
{
    char digest[] = DIGEST;
    size_t len = 0;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
    EVP_MAC_CTX *ctx = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;
    bool is_good = ctx != NULL && EVP_MAC_init(ctx, key, key_len, params) == 1 &&
                   add_pieces(ctx, pieces, count) &&
                   EVP_MAC_final(ctx, out, &len, SEAL_PROOF) == 1 && len == SEAL_PROOF;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return is_good;
}

static bool
hkdf(const struct seal_key *key, const uint8_t *salt, size_t salt_len, const char *label,
     uint8_t out[SEAL_CHANNEL_KEY])
{
    char digest[] = DIGEST;
    /* The interface takes what it only reads without const. */
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key->bytes,
                                          key->len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)label,
                                          strlen(label)),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *ctx = kdf != NULL ? EVP_KDF_CTX_new(kdf) : NULL;
    bool is_good = ctx != NULL && EVP_KDF_derive(ctx, out, SEAL_CHANNEL_KEY, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    return is_good;
}

static bool
prove(const struct seal_key *key, enum seal_side side, const uint8_t *hello_leader,
      size_t leader_len, const uint8_t *hello_agent, size_t agent_len,
      uint8_t proof[SEAL_PROOF])
{
    struct hashed pieces[] = {
        {proof_labels[side], strlen(proof_labels[side])},
        {hello_leader, leader_len},
        {hello_agent, agent_len},
    };
    return hmac(key->bytes, key->len, pieces, 3, proof);
}

static bool
open(struct seal *s, const struct seal_key *key, const uint8_t nonce_leader[SEAL_NONCE],
     const uint8_t nonce_agent[SEAL_NONCE])
{
    uint8_t salt[2 * SEAL_NONCE];
    memcpy(salt, nonce_leader, SEAL_NONCE);
    memcpy(salt + SEAL_NONCE, nonce_agent, SEAL_NONCE);
    s->is_on = true;
    for (unsigned side = 0; side < SEAL_SIDES; side++) {
        if (!hkdf(key, salt, sizeof salt, channel_labels[side], s->keys[side])) {
            return false;
        }
    }
    return true;
}

static bool
mac(const struct seal *s, enum seal_side side, const uint8_t *p, size_t len,
    uint8_t mac[FRAME_MAC])
{
    uint8_t whole[SEAL_PROOF];
    struct hashed piece = {p, len};
    if (!hmac(s->keys[side], SEAL_CHANNEL_KEY, &piece, 1, whole)) {
        return false;
    }
    memcpy(mac, whole, FRAME_MAC);
    return true;
}

static const struct seal_ops ops = {prove, open, mac};
const struct seal_ops *const seal_ops = &ops;
