/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"

#define READS_PER_CALL 2 /* a client that sends without end does not keep the thread */
/* Messages behind the handshake, new keys for instance, in a call: real clients send one in
 * gigabytes, and each costs more to read than to send. */
#define LATE_MESSAGES_MAX 64

struct tls {
    struct tls_conf conf;            /* as the user wrote it */
    char *chain, *key, *authorities; /* paths whatever the directory; ours */
    BIO_METHOD *method;              /* of all sessions */
    pthread_mutex_t lock;            /* guards ctx */
    SSL_CTX *ctx; /* of new connections; each holds a reference to its own */
    _Atomic uint32_t loaded_at;
};

/* ---- certificates --------------------------------------------------------------------- */

/* Puts the sentence and the oldest of OpenSSL's complaints into err. */
__attribute__((format(printf, 3, 4))) static bool
complain(char *err, size_t err_len, const char *fmt, ...)
{
    char text[256];
    unsigned long code = ERR_get_error();
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err, err_len, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < err_len && code != 0) {
        ERR_error_string_n(code, text, sizeof text);
        snprintf(err + n, err_len - (size_t)n, ": %s", text);
    }
    ERR_clear_error();
    return false;
}

/* A server cannot ask for a passphrase. */
static int
no_passphrase(char *buf, int size, int is_for_writing, void *ctx)
{
    (void)buf;
    (void)size;
    (void)is_for_writing;
    (void)ctx;
    return -1;
}

/* Clients that check it refuse a certificate outside its time. Others do not, so the server goes on. */
static void
warn_of_time(const SSL_CTX *ctx, const char *name)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    const ASN1_TIME *from = X509_get0_notBefore(cert), *to = X509_get0_notAfter(cert);
    bool is_over = X509_cmp_current_time(to) < 0;
    struct tm day;
    if ((is_over || X509_cmp_current_time(from) > 0) &&
        ASN1_TIME_to_tm(is_over ? to : from, &day) == 1) {
        log_write(LOG_WARNING,
                  "memcached: warning: the certificate %s %s %d-%02d-%02d: clients that "
                  "check it refuse it; renew it, then send refresh_certs or SIGHUP",
                  name, is_over ? "expired on" : "is not valid before",
                  day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    }
}

static bool
load_key(SSL_CTX *ctx, const struct tls *t, char *err, size_t err_len)
{
    const struct tls_conf *conf = &t->conf;
    if (t->chain == NULL) {
        return complain(err, err_len,
                        "Error loading the certificate chain: (null) : ssl_chain_cert is "
                        "not given; write -o ssl_chain_cert=FILE");
    }
    if (SSL_CTX_use_certificate_chain_file(ctx, t->chain) != 1) {
        return complain(err, err_len, "Error loading the certificate chain: %s ",
                        conf->chain_cert);
    }
    if (SSL_CTX_use_PrivateKey_file(ctx, t->key, conf->key_format) != 1) {
        return complain(err, err_len, "Error loading the key: %s ",
                        conf->key != NULL ? conf->key : conf->chain_cert);
    }
    if (SSL_CTX_check_private_key(ctx) != 1) {
        return complain(err, err_len, "Error validating the certificate");
    }
    warn_of_time(ctx, conf->chain_cert);
    return true;
}

static bool
load_authorities(SSL_CTX *ctx, const struct tls *t, char *err, size_t err_len)
{
    if (t->authorities == NULL) {
        return true;
    }
    STACK_OF(X509_NAME) *names = NULL;
    if (SSL_CTX_load_verify_file(ctx, t->authorities) != 1 ||
        (names = SSL_load_client_CA_file(t->authorities)) == NULL) {
        return complain(err, err_len, "Error loading the CA certificate: %s ",
                        t->conf.ca_cert);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    return true;
}

static int
verify_flags(const struct tls_conf *conf, enum tls_mode mode)
{
    static const int flags[TLS_VERIFY_MODES] = {
        SSL_VERIFY_NONE,
        SSL_VERIFY_PEER,
        SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE,
    };
    must(conf->verify_mode < TLS_VERIFY_MODES);
    switch (mode) {
    case TLS_BASIC:
        return SSL_VERIFY_NONE;
    case TLS_MUTUAL:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    default:
        return flags[conf->verify_mode];
    }
}

static int
on_new_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_session *s = SSL_get_app_data(ssl);
    (void)session;
    ctr_add(&s->thread->new_sessions, 1);
    return 0; /* no reference is kept */
}

static void
set_options(SSL_CTX *ctx, const struct tls_conf *conf)
{
    /* A client that ends without good-bye cuts nothing: lengths tell where values end. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                 SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1); /* a record in one call instead of two */
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    if (conf->caches_sessions) {
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
        SSL_CTX_sess_set_new_cb(ctx, on_new_session);
    } else {
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    }
}

static SSL_CTX *
load(const struct tls *t, char *err, size_t err_len)
{
    const struct tls_conf *conf = &t->conf;
    static const int versions[TLS_VERSIONS] = {TLS1_VERSION, TLS1_1_VERSION,
                                               TLS1_2_VERSION, TLS1_3_VERSION};
    must(conf->min_version < TLS_VERSIONS);
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL) {
        complain(err, err_len, "Error creating the TLS context");
        return NULL;
    }
    set_options(ctx, conf);
    bool is_good =
        load_key(ctx, t, err, err_len) && load_authorities(ctx, t, err, err_len);
    if (is_good && conf->ciphers != NULL &&
        SSL_CTX_set_cipher_list(ctx, conf->ciphers) != 1) {
        ERR_clear_error();
        is_good = complain(err, err_len, "Error setting the provided cipher(s): %s",
                           conf->ciphers);
    }
    if (is_good && SSL_CTX_set_min_proto_version(ctx, versions[conf->min_version]) != 1) {
        is_good = complain(err, err_len, "Error setting the minimum TLS version");
    }
    if (!is_good) {
        SSL_CTX_free(ctx);
        ctx = NULL;
    }
    ERR_clear_error();
    return ctx;
}

/* ---- the socket ----------------------------------------------------------------------- */

/* As OpenSSL reads from a socket, but not for ever, and remembering whether it had more. */
static int
read_socket(BIO *bio, char *to, int room)
{
    struct tls_session *s = BIO_get_app_data(bio);
    BIO_clear_retry_flags(bio);
    if (s->late_messages > LATE_MESSAGES_MAX) {
        ctr_add(&s->thread->protocol_errors, 1);
        errno = EPROTO;
        return -1;
    }
    if (s->reads_left == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    s->reads_left--;
    int n = BIO_meth_get_read(BIO_s_socket())(bio, to, room);
    s->is_dry = n < room && n != 0;
    s->is_empty = n < 0;
    return n;
}

/* NULL: no memory. */
static BIO_METHOD *
create_method(void)
{
    const BIO_METHOD *socket = BIO_s_socket();
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOCKET, "counted socket");
    bool is_good = m != NULL && BIO_meth_set_read(m, read_socket) == 1 &&
                   BIO_meth_set_write(m, BIO_meth_get_write(socket)) == 1 &&
                   BIO_meth_set_ctrl(m, BIO_meth_get_ctrl(socket)) == 1 &&
                   BIO_meth_set_create(m, BIO_meth_get_create(socket)) == 1 &&
                   BIO_meth_set_destroy(m, BIO_meth_get_destroy(socket)) == 1;
    if (!is_good) {
        BIO_meth_free(m);
        m = NULL;
    }
    return m;
}

static void
on_message(const SSL *ssl, int where, int result)
{
    struct tls_session *s = SSL_get_app_data(ssl);
    (void)result;
    s->late_messages += s->is_agreed && (where & (SSL_CB_LOOP | SSL_CB_ALERT)) != 0;
}

/* ---- the process ---------------------------------------------------------------------- */

const char *
tls_version_name(unsigned min_version)
{
    static const char *const names[TLS_VERSIONS] = {"tlsv1.0", "tlsv1.1", "tlsv1.2",
                                                    "tlsv1.3"};
    must(min_version < TLS_VERSIONS);
    return names[min_version];
}

/* A path that stays good when the process changes its directory. Links are not followed:
 * renewing certificates may change them. NULL: no memory, or no path. */
static char *
keep_path(const char *path)
{
    return path != NULL ? file_absolute(path) : NULL;
}

struct tls *
tls_open(const struct tls_conf *conf, char *err, size_t err_len)
{
    struct tls *t = calloc(1, sizeof *t);
    if (t == NULL) {
        snprintf(err, err_len, "no memory for TLS");
        return NULL;
    }
    t->conf = *conf;
    t->chain = keep_path(conf->chain_cert);
    t->key = keep_path(conf->key != NULL ? conf->key : conf->chain_cert);
    t->authorities = keep_path(conf->ca_cert);
    if (conf->record_bytes == 0 || conf->record_bytes > TLS_RECORD_MAX) {
        t->conf.record_bytes = TLS_RECORD_MAX;
    }
    atomic_init(&t->loaded_at, 0);
    PTHREAD_OK(pthread_mutex_init(&t->lock, NULL));
    t->method = create_method();
    if (t->method == NULL || (conf->chain_cert != NULL && t->chain == NULL) ||
        (t->key == NULL && (conf->key != NULL || conf->chain_cert != NULL)) ||
        (conf->ca_cert != NULL && t->authorities == NULL)) {
        snprintf(err, err_len, "no memory for TLS");
    } else {
        t->ctx = load(t, err, err_len);
    }
    if (t->ctx == NULL) {
        tls_close(&t);
    }
    return t;
}

static bool
is_pipe(const char *path)
{
    struct stat st;
    return path != NULL && stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

bool
tls_reload(struct tls *t, uint32_t now, char *err, size_t err_len)
{
    const char *pipe = is_pipe(t->chain)         ? t->chain
                       : is_pipe(t->key)         ? t->key
                       : is_pipe(t->authorities) ? t->authorities
                                                 : NULL;
    if (pipe != NULL) {
        return complain(err, err_len,
                        "Error loading %s: a pipe can be read only once; give a file",
                        pipe);
    }
    SSL_CTX *fresh = load(t, err, err_len);
    if (fresh == NULL) {
        return false;
    }
    PTHREAD_OK(pthread_mutex_lock(&t->lock));
    SSL_CTX *old = t->ctx;
    t->ctx = fresh;
    PTHREAD_OK(pthread_mutex_unlock(&t->lock));
    SSL_CTX_free(old);
    atomic_store_explicit(&t->loaded_at, now, memory_order_relaxed);
    return true;
}

uint32_t
tls_loaded_at(const struct tls *t)
{
    return atomic_load_explicit(&t->loaded_at, memory_order_relaxed);
}

void
tls_close(struct tls **t)
{
    struct tls *old = *t;
    if (old != NULL) {
        PTHREAD_OK(pthread_mutex_destroy(&old->lock));
        SSL_CTX_free(old->ctx);
        BIO_meth_free(old->method);
        free(old->chain);
        free(old->key);
        free(old->authorities);
        free(old);
        *t = NULL;
    }
}

bool
tls_thread_init(struct tls_thread *thread, const struct tls *t)
{
    if (t == NULL) {
        return true;
    }
    thread->record_bytes = t->conf.record_bytes;
    thread->record = malloc(thread->record_bytes);
    return thread->record != NULL;
}

void
tls_thread_fini(struct tls_thread *thread)
{
    free(thread->record);
    thread->record = NULL;
}

/* ---- a connection --------------------------------------------------------------------- */

/* A session may be resumed only where the client would be asked for as much: else one begun
 * without a certificate would let its owner in where one is demanded. */
static bool
set_resumption(SSL *ssl, enum tls_mode mode)
{
    const unsigned char name[] = {'m', 'c', (unsigned char)mode};
    return SSL_set_session_id_context(ssl, name, sizeof name) == 1;
}

struct tls_session *
tls_begin(struct tls *t, int fd, enum tls_mode mode)
{
    must(mode != TLS_OFF);
    struct tls_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    PTHREAD_OK(pthread_mutex_lock(&t->lock));
    s->ssl = SSL_new(t->ctx);
    PTHREAD_OK(pthread_mutex_unlock(&t->lock));
    BIO *bio = BIO_new(t->method);
    if (s->ssl == NULL || bio == NULL || !set_resumption(s->ssl, mode) ||
        BIO_set_app_data(bio, s) != 1 || SSL_set_app_data(s->ssl, s) != 1) {
        ERR_clear_error();
        BIO_free(bio);
        SSL_free(s->ssl);
        free(s);
        return NULL;
    }
    BIO_set_fd(bio, fd, BIO_NOCLOSE);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_verify(s->ssl, verify_flags(&t->conf, mode), NULL);
    SSL_set_info_callback(s->ssl, on_message);
    SSL_set_accept_state(s->ssl);
    return s;
}

static void
keep_reason(struct tls_session *s, const char *fallback)
{
    unsigned long code = ERR_peek_error();
    const char *why = code != 0 ? ERR_reason_error_string(code) : NULL;
    snprintf(s->reason, sizeof s->reason, "%s", why != NULL ? why : fallback);
}

/* What a call of OpenSSL came to that did not do what was wanted. */
static enum tls_io
judge(struct tls_session *s, int result, ctr_t *errors)
{
    int error = errno;
    enum tls_io io = TLS_BROKEN;
    switch (SSL_get_error(s->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return s->reads_left == 0 && !s->is_empty ? TLS_MORE : TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        keep_reason(s, "closed by the client");
        io = TLS_EOF;
        break;
    case SSL_ERROR_SYSCALL:
        s->is_broken = true;
        keep_reason(s, error != 0 ? strerror(error) : "closed by the client");
        io = error != 0 ? TLS_BROKEN : TLS_EOF;
        break;
    default:
        s->is_broken = true;
        keep_reason(s, "broken record");
        ctr_add(errors, 1);
        break;
    }
    ERR_clear_error();
    return io;
}

static void
enter(struct tls_session *s, struct tls_thread *thread)
{
    must(!s->is_broken);
    s->thread = thread;
    s->reads_left = READS_PER_CALL;
    s->late_messages = 0;
    s->is_dry = s->is_empty = false;
    ERR_clear_error();
    errno = 0;
}

enum tls_io
tls_handshake(struct tls_session *s, struct tls_thread *thread)
{
    ctr_t others = 0;
    enter(s, thread);
    int result = SSL_do_handshake(s->ssl);
    if (result == 1) {
        s->is_agreed = true;
        return TLS_OK;
    }
    enum tls_io io = judge(s, result, &others);
    if (io == TLS_EOF || io == TLS_BROKEN) {
        /* A probe of the port has not tried to agree. */
        bool has_tried = io == TLS_BROKEN || BIO_number_read(SSL_get_rbio(s->ssl)) > 0;
        s->is_broken = true;
        ctr_add(&thread->handshake_errors, has_tried);
    }
    return io;
}

enum tls_io
tls_recv(struct tls_session *s, struct tls_thread *thread, char *to, size_t room,
         size_t *got, bool *has_more)
{
    enter(s, thread);
    int result = SSL_read_ex(s->ssl, to, room, got);
    if (result == 1) {
        *has_more = !s->is_dry || SSL_has_pending(s->ssl) != 0;
        s->was_held = s->reads_left == READS_PER_CALL;
        return TLS_OK;
    }
    *got = 0;
    return judge(s, result, &thread->protocol_errors);
}

/* The next record of the runs from `at` bytes into the first one on: a run that fills it is
 * taken where it lies, small ones are gathered. */
static const char *
next_record(struct tls_thread *thread, const struct iovec *iov, unsigned runs, size_t at,
            size_t *len)
{
    const char *first = (const char *)iov->iov_base + at;
    size_t left = iov->iov_len - at;
    if (left >= thread->record_bytes || runs == 1) {
        *len = left < thread->record_bytes ? left : thread->record_bytes;
        return first;
    }
    memcpy(thread->record, first, left);
    *len = left;
    for (unsigned i = 1; i < runs && *len < thread->record_bytes; i++) {
        size_t room = thread->record_bytes - *len;
        size_t n = iov[i].iov_len < room ? iov[i].iov_len : room;
        memcpy(thread->record + *len, iov[i].iov_base, n);
        *len += n;
    }
    return thread->record;
}

enum tls_io
tls_send(struct tls_session *s, struct tls_thread *thread, const struct iovec *iov,
         unsigned runs, size_t *sent)
{
    size_t at = 0;
    *sent = 0;
    while (runs > 0) {
        size_t len;
        size_t written;
        const char *record = next_record(thread, iov, runs, at, &len);
        if (s->committed != 0) {
            must(s->committed <= len); /* it is sealed; more may have come behind it */
            len = s->committed;
        }
        enter(s, thread);
        int result = SSL_write_ex(s->ssl, record, len, &written);
        if (result != 1) {
            enum tls_io io = judge(s, result, &thread->protocol_errors);
            s->committed = io == TLS_WANT_READ || io == TLS_WANT_WRITE ? len : 0;
            return io;
        }
        s->committed = 0;
        *sent += written;
        at += written;
        while (runs > 0 && at >= iov->iov_len) {
            at -= iov->iov_len;
            iov++;
            runs--;
        }
    }
    return TLS_OK;
}

void
tls_end(struct tls_session **s)
{
    struct tls_session *old = *s;
    if (old == NULL) {
        return;
    }
    ERR_clear_error();
    if (!old->is_broken && old->committed == 0 && SSL_is_init_finished(old->ssl)) {
        (void)SSL_shutdown(old->ssl); /* what does not go now does not go */
    }
    SSL_free(old->ssl);
    ERR_clear_error();
    free(old);
    *s = NULL;
}
