/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/auth_sasl.h"

#include <sasl/sasl.h>
#include <sys/stat.h>

#include "base/log.h"

#define APPLICATION "memcached" /* names the library's own file: memcached.conf */

/* Versions of the library differ in whether they free the answer, so it is given away once and
 * kept in sight, where a leak checker finds it. */
static char *volatile conf_path;

/* Where memcached.conf is: SASL_CONF_PATH names its directory, or the file itself. */
static int
find_conf(void *context, char **path)
{
    (void)context;
    const char *given = getenv("SASL_CONF_PATH");
    struct stat st;
    given = given != NULL ? given : "/etc/sasl2:/etc/sasl:/usr/lib/sasl2";
    const char *slash = strrchr(given, '/');
    size_t len = strlen(given);
    if (stat(given, &st) == 0 && S_ISREG(st.st_mode)) {
        len = slash != NULL ? (size_t)(slash - given) : 0;
    }
    conf_path = len > 0 ? strndup(given, len) : strdup(slash != NULL ? "/" : ".");
    *path = conf_path;
    return *path != NULL ? SASL_OK : SASL_NOMEM;
}

static int
on_log(void *context, int level, const char *message)
{
    (void)context;
    /* What is more than a note may hold secrets. */
    if (level <= SASL_LOG_NOTE) {
        log_write(level <= SASL_LOG_ERR ? LOG_WARNING : LOG_INFO, "sasl: %s", message);
    }
    return SASL_OK;
}

/* The library's type of a callback is that of a function without arguments. */
typedef int callback_fn(void);

static const sasl_callback_t callbacks[] = {
    {SASL_CB_GETCONFPATH, (callback_fn *)(void (*)(void))find_conf, NULL},
    {SASL_CB_LOG, (callback_fn *)(void (*)(void))on_log, NULL},
    {SASL_CB_LIST_END, NULL, NULL},
};

bool
auth_sasl_init(char *err, size_t err_len)
{
    int rc = sasl_server_init(callbacks, APPLICATION);
    if (rc != SASL_OK) {
        snprintf(err, err_len, "Error initializing sasl. (%s)",
                 sasl_errstring(rc, NULL, NULL));
    }
    return rc == SASL_OK;
}

void
auth_sasl_fini(void)
{
    sasl_done();
}

static enum auth_status
status_of(int rc)
{
    switch (rc) {
    case SASL_OK:
        return AUTH_DONE;
    case SASL_CONTINUE:
        return AUTH_CONTINUE;
    case SASL_NOMEM:
        return AUTH_NO_MEMORY;
    default:
        return AUTH_FAILED;
    }
}

static int
open_conn(sasl_conn_t **conn)
{
    /* What follows the login is not wrapped: no mechanism may count on a layer. */
    sasl_security_properties_t plain = {.max_ssf = 0};
    int rc = sasl_server_new(APPLICATION, NULL, NULL, NULL, NULL, NULL, 0, conn);
    return rc == SASL_OK ? sasl_setprop(*conn, SASL_SEC_PROPS, &plain) : rc;
}

char *
auth_sasl_mechanisms(void)
{
    sasl_conn_t *conn = NULL;
    const char *names = NULL;
    char *copy = NULL;
    if (open_conn(&conn) == SASL_OK &&
        sasl_listmech(conn, NULL, "", " ", "", &names, NULL, NULL) == SASL_OK) {
        copy = strdup(names);
    }
    sasl_dispose(&conn);
    return copy;
}

enum auth_status
auth_sasl_start(void **conn, struct slice mechanism, struct slice data,
                struct slice *challenge)
{
    char name[AUTH_MECHANISM_MAX + 1];
    sasl_conn_t *fresh = NULL;
    unsigned len = 0;
    if (mechanism.len > AUTH_MECHANISM_MAX) {
        return AUTH_FAILED;
    }
    memcpy(name, mechanism.p, mechanism.len);
    name[mechanism.len] = '\0';
    int rc = open_conn(&fresh);
    *conn = fresh;
    if (rc == SASL_OK) {
        /* No data is not the same as a first answer that is empty. */
        rc = sasl_server_start(fresh, name, data.len > 0 ? data.p : NULL,
                               (unsigned)data.len, &challenge->p, &len);
    }
    challenge->len = len;
    return status_of(rc);
}

enum auth_status
auth_sasl_step(void *conn, struct slice data, struct slice *challenge)
{
    unsigned len = 0;
    int rc = sasl_server_step(conn, data.len > 0 ? data.p : "", (unsigned)data.len,
                              &challenge->p, &len);
    challenge->len = len;
    return status_of(rc);
}

void
auth_sasl_end(void **conn)
{
    sasl_conn_t *old = *conn;
    sasl_dispose(&old);
    *conn = NULL;
}
