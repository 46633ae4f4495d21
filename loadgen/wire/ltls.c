/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/ltls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/fail.h"

#define WHY_MAX 256

struct ltls {
    SSL_CTX *ctx;
    bool verifies;
};

/* OpenSSL's own struct is all there is to know. */
static SSL *
ssl_of(struct ltls_session *s)
{
    return (SSL *)s;
}

/* The oldest of OpenSSL's complaints of this thread, the rest forgotten. */
static const char *
complaint(char *text, size_t len)
{
    unsigned long code = ERR_get_error();
    const char *reason = ERR_GET_LIB(code) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(code))
                         : code != 0                      ? ERR_reason_error_string(code)
                                                          : NULL;
    snprintf(text, len, "%s", reason != NULL ? reason : "no reason given");
    ERR_clear_error();
    return text;
}

static bool
load(SSL_CTX *ctx, const struct ltls_conf *conf, char *err, size_t err_len)
{
    char why[WHY_MAX];
    const char *key = conf->key != NULL ? conf->key : conf->cert;
    bool is_good = conf->ca != NULL ? SSL_CTX_load_verify_file(ctx, conf->ca) == 1
                                    : SSL_CTX_set_default_verify_paths(ctx) == 1;
    if (!is_good) {
        return fail_because(err, err_len, "cannot load authorities from %s: %s",
                            conf->ca != NULL ? conf->ca : "the system's files",
                            complaint(why, sizeof why));
    }
    if (conf->cert != NULL && SSL_CTX_use_certificate_chain_file(ctx, conf->cert) != 1) {
        return fail_because(err, err_len, "cannot load the certificate %s: %s",
                            conf->cert, complaint(why, sizeof why));
    }
    if (key != NULL && (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
                        SSL_CTX_check_private_key(ctx) != 1)) {
        return fail_because(err, err_len, "cannot load the key %s: %s", key,
                            complaint(why, sizeof why));
    }
    return true;
}

/* A passphrase is never asked for. */
static int
no_passphrase(char *buf, int size, int is_for_writing, void *ctx)
{
    (void)buf;
    (void)size;
    (void)is_for_writing;
    (void)ctx;
    return -1;
}

struct ltls *
ltls_open(const struct ltls_conf *conf, char *err, size_t err_len)
{
    struct ltls *t = alloc_zeroed(1, sizeof *t);
    SSL_CTX *ctx = alloc_checked(SSL_CTX_new(TLS_client_method()));
    t->ctx = ctx;
    t->verifies = conf->verifies;
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ctx, 1); /* a record in one call instead of two */
    SSL_CTX_set_verify(ctx, conf->verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!load(ctx, conf, err, err_len)) {
        ltls_close(t);
        return NULL;
    }
    return t;
}

void
ltls_close(struct ltls *t)
{
    if (t != NULL) {
        SSL_CTX_free(t->ctx);
        free(t);
    }
}

/* Addresses have no name to be sent, but may stand in a certificate. */
static bool
set_host(SSL *ssl, const char *host, bool verifies)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool is_address =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    if (!is_address && SSL_set_tlsext_host_name(ssl, host) != 1) {
        return false;
    }
    if (!verifies) {
        return true;
    }
    return is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
                      : SSL_set1_host(ssl, host) == 1;
}

static struct ltls_session *
begin(struct ltls *t, int fd, const char *host)
{
    sigset_t pipe;
    must(t != NULL);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &pipe, NULL));
    SSL *ssl = SSL_new(t->ctx);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || !set_host(ssl, host, t->verifies)) {
        SSL_free(ssl);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return (struct ltls_session *)ssl;
}

static void
end(struct ltls_session *s)
{
    SSL_free(ssl_of(s));
}

/* What a call that did not succeed came to. */
static enum link_io
outcome_of(SSL *ssl, int result, bool *wants_write)
{
    int error = SSL_get_error(ssl, result);
    *wants_write = error == SSL_ERROR_WANT_WRITE;
    return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? LINK_AGAIN
                                                                         : LINK_LOST;
}

static enum link_io
shake_hands(struct ltls_session *s, bool *wants_write, const char **why)
{
    static __thread char text[WHY_MAX];
    SSL *ssl = ssl_of(s);
    errno = 0;
    ERR_clear_error();
    int result = SSL_do_handshake(ssl);
    if (result == 1) {
        return LINK_OK;
    }
    enum link_io io = outcome_of(ssl, result, wants_write);
    if (io == LINK_LOST) {
        long verdict = SSL_get_verify_result(ssl);
        char reason[WHY_MAX / 2];
        bool is_strange = verdict != X509_V_OK &&
                          verdict != X509_V_ERR_HOSTNAME_MISMATCH &&
                          verdict != X509_V_ERR_IP_ADDRESS_MISMATCH;
        const char *what = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                           : ERR_peek_error() != 0 ? complaint(reason, sizeof reason)
                           : errno != 0            ? strerror(errno)
                                                   : "closed by the server";
        snprintf(text, sizeof text, "TLS handshake: %s%s", what,
                 is_strange ? " (--tls-ca=FILE: authorities that may sign it)" : "");
        *why = text;
        ERR_clear_error();
    }
    return io;
}

static enum link_io
send_tls(struct ltls_session *s, const char *bytes, size_t len, size_t *sent,
         bool *wants_write)
{
    ERR_clear_error();
    int result = SSL_write_ex(ssl_of(s), bytes, len, sent);
    if (result == 1) {
        return LINK_OK;
    }
    *sent = 0;
    return outcome_of(ssl_of(s), result, wants_write);
}

static enum link_io
receive(struct ltls_session *s, char *to, size_t room, size_t *len, bool *has_more)
{
    SSL *ssl = ssl_of(s);
    bool wants_write;
    size_t n = 0;
    ERR_clear_error();
    int result = SSL_read_ex(ssl, to, room, &n);
    /* A record that is there is decrypted now: one call more costs less than an event. */
    while (result == 1) {
        *len += n;
        *has_more = SSL_has_pending(ssl);
        if (!*has_more || *len == room) {
            return LINK_OK;
        }
        result = SSL_read_ex(ssl, to + *len, room - *len, &n);
    }
    enum link_io io = outcome_of(ssl, result, &wants_write);
    /* What came before the end is told first, the end when it is asked for again. */
    *has_more = *len > 0 && io == LINK_LOST;
    return *len > 0 ? LINK_OK : io;
}

const struct ltls_ops ltls_ops = {
    .begin = begin,
    .end = end,
    .shake_hands = shake_hands,
    .send = send_tls,
    .receive = receive,
};
