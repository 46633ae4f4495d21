/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Authentication of clients: SASL, tokens, TLS.
 */
#include "front/front.h"
#include "serve/auth.h"

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'S', .name = "enable-sasl", .kind = OPT_FLAG, OF(uses_sasl), .section = AUTH,
     .common = 9, .help = "SASL authentication; binary protocol only"},
    {.letter = 'Y', .name = "auth-file", .kind = OPT_TEXT, OF(token_file), .arg = "FILE",
     .section = AUTH, .help = "token authentication; text protocol only"},
};

/* A build without TLS refuses these, and neither helps nor shows them. */
static const struct opt tls_options[] = {
    {.letter = 'Z', .name = "enable-ssl", .kind = OPT_FLAG, OF(uses_tls),
     .exit_status = FRONT_USAGE, .section = AUTH, .common = 10,
     .help = "TLS on the TCP listeners"},
    {.word = "ssl_chain_cert", .kind = OPT_TEXT, OF(tls.chain_cert), .arg = "FILE",
     .section = AUTH, .help = "certificate chain, PEM"},
    {.word = "ssl_key", .kind = OPT_TEXT, OF(tls.key), .arg = "FILE", .section = AUTH,
     .help = "private key, if not in ssl_chain_cert"},
    {.word = "ssl_verify_mode", .kind = OPT_INT, OF(tls.verify_mode), .max = 3, .arg = "N",
     .section = AUTH, .preset = "0",
     .error = "Invalid ssl_verify_mode. Use help to see valid options.",
     .help = "certificate of the client: 0 none, 1 asked for, 2 required, 3 required once"},
    {.word = "ssl_keyformat", .kind = OPT_INT, OF(tls.key_format), .max = 1000, .arg = "N",
     .section = AUTH, .preset = "1", .error = "could not parse argument to ssl_keyformat",
     .help = "of ssl_key: 1 PEM, 2 DER"},
    {.word = "ssl_ciphers", .kind = OPT_TEXT, OF(tls.ciphers), .arg = "LIST",
     .section = AUTH, .help = "ciphers up to TLS 1.2, as OpenSSL lists them"},
    {.word = "ssl_ca_cert", .kind = OPT_TEXT, OF(tls.ca_cert), .arg = "FILE",
     .section = AUTH, .help = "certificate authorities of clients, PEM"},
    {.word = "ssl_wbuf_size", .kind = OPT_INT, OF(tls.record_bytes), .unit = 1024,
     .max = 1e6, .arg = "KB", .section = AUTH, .preset = "16",
     .error = "could not parse argument to ssl_wbuf_size",
     .help = "largest record that is sent, in kilobytes; not above 16"},
    {.word = "ssl_session_cache", .kind = OPT_FLAG, OF(tls.caches_sessions),
     .section = AUTH, .help = "cache sessions in the server, for clients without tickets"},
    {.word = "ssl_kernel_tls", .kind = OPT_FLAG, OF(tls.wants_kernel), .section = AUTH,
     .help = "accepted, without effect: the server encrypts"},
    {.word = "ssl_min_version", .kind = OPT_INT, OF(tls.min_version), .max = 3, .arg = "N",
     .section = AUTH, .preset = "2",
     .error = "Invalid ssl_min_version. Use help to see valid options.",
     .help = "minimum version: 0 TLS 1.0, 1 TLS 1.1, 2 TLS 1.2, 3 TLS 1.3"},
};
/* clang-format on */

static void
init(struct settings *s)
{
    s->password_file = getenv("MEMCACHED_SASL_PWDB");
}

/* No datagram carries a name, so UDP and authentication exclude each other. */
static const char *
check_udp(struct settings *s, FILE *err)
{
    if (s->listen.udp_port == LISTEN_PORT_OFF ||
        (!s->uses_sasl && s->token_file == NULL)) {
        return NULL;
    }
    if (s->token_file != NULL) {
        return "Cannot use UDP with ascii authentication enabled (-U 0 to disable)";
    }
    if (rules_of(s->profile)->udp_refuses_sasl) {
        return "ERROR: Cannot enable UDP while using binary SASL authentication.";
    }
    fputs("memcached: warning: UDP stays closed, because it has no authentication (-S)\n",
          err);
    s->listen.udp_port = LISTEN_PORT_OFF;
    return NULL;
}

static const char *
settle(struct settings *s, struct settling *to)
{
    bool is_given = s->is_binding_given;
    if (s->uses_sasl && s->password_file == NULL && !HAVE_SASL) {
        return "This server is not built with SASL support.";
    }
    if (s->uses_sasl &&
        (s->token_file != NULL || (is_given && s->serve.binding != BINDING_BINARY))) {
        return "ERROR: You cannot allow the ASCII protocol while using SASL.";
    }
    if (s->token_file != NULL && is_given && s->serve.binding != BINDING_ASCII) {
        return "ERROR: You cannot allow the BINARY protocol while using ascii "
               "authentication tokens.";
    }
    if (s->uses_sasl) {
        s->serve.binding = BINDING_BINARY;
    } else if (s->token_file != NULL) {
        s->serve.binding = BINDING_ASCII;
    }
    return check_udp(s, to->err);
}

static const char *
settle_tls(struct settings *s, struct settling *to)
{
    if (s->uses_tls && s->listen.port == LISTEN_PORT_OFF) {
        return "ERROR: You cannot enable SSL without a TCP port.";
    }
    if (s->uses_tls && s->listen.socket_path != NULL) {
        fputs("memcached: warning: -Z has no effect on a UNIX socket (-s), which stays "
              "plain\n",
              to->err);
    }
    /* The others say it as a memcached does (sock/tls.c). */
    return s->uses_tls && s->tls.chain_cert == NULL && s->profile == PROFILE_NATIVE
               ? "-Z needs a certificate: write -o ssl_chain_cert=FILE"
               : NULL;
}

const struct front front_auth = {OPTIONS(options), .usage = FRONT_USAGE, .init = init,
                                 .settle = settle};
const struct front front_tls = {
    OPTIONS(tls_options),
    .missing = HAVE_TLS ? NULL : "This server is not built with TLS support.",
    .settle = settle_tls};
