/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of what the calling thread may have, these, as bits of the first word. */
static bool
set_rights(uint32_t wanted)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    data[0].permitted &= wanted;
    data[0].effective = data[0].permitted;
    data[0].inheritable = 0;
    data[1] = (struct __user_cap_data_struct){0};
    return syscall(SYS_capset, &header, data) == 0;
}

void
rights_keep(struct rights *r)
{
    r->is_kept = geteuid() == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0;
}

bool
rights_reduce(struct rights *r)
{
    if (!r->is_kept) {
        return true;
    }
    r->is_kept = geteuid() != 0; /* still root: it keeps what it has */
    return prctl(PR_SET_KEEPCAPS, 0) == 0 &&
           (!r->is_kept || set_rights(UINT32_C(1) << CAP_SYS_NICE));
}

static void *
wait_for_errand(void *arg)
{
    struct rights *r = arg;
    while (sem_wait(&r->go) != 0) {
        must(errno == EINTR);
    }
    if (r->errand != NULL) {
        r->errand(r->ctx);
    }
    return NULL;
}

bool
rights_lend(struct rights *r)
{
    if (!r->is_kept) {
        return true;
    }
    must(sem_init(&r->go, 0, 0) == 0);
    r->is_lent = pthread_create(&r->thread, NULL, wait_for_errand, r) == 0;
    must(set_rights(0));
    return r->is_lent;
}

void
rights_use(struct rights *r, void (*errand)(void *ctx), void *ctx)
{
    if (!r->is_lent) {
        if (errand != NULL) {
            errand(ctx);
        }
        return;
    }
    r->errand = errand;
    r->ctx = ctx;
    must(sem_post(&r->go) == 0);
    PTHREAD_OK(pthread_join(r->thread, NULL));
    must(sem_destroy(&r->go) == 0);
    r->is_lent = false;
}
