/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Locks that workers share with threads in the background lend the worker's priority to who
 * holds them, when workers run at real-time priority; and only then.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "check_main.h"
#include "place/pinner.h"
#include "serve/maint.h"
#include "serve/watch.h"
#include "sock/registry.h"
#include "store/core.h"

#define INHERITS                                                                         \
    32 /* in the kind of a mutex of glibc, which has no function to ask with */
#define PRIORITY 3
#define PATIENCE_S 60

static pthread_mutexattr_t attr;

static void
check_lock(const char *name, const pthread_mutex_t *lock, bool inherits)
{
#ifdef __GLIBC__
    ck_assert_msg(((lock->__data.__kind & INHERITS) != 0) == inherits, "%s", name);
#else
    (void)name, (void)lock, (void)inherits;
#endif
}

static const pthread_mutexattr_t *
attr_for(bool inherits)
{
    PTHREAD_OK(pthread_mutexattr_init(&attr));
    PTHREAD_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    return inherits ? &attr : NULL;
}

TEST_LOOP(locks_of_the_store_inherit, 2)
{
    bool inherits = _i == 1;
    char err[128];
    struct store_conf conf = {.limit_bytes = 8 << 20,
                              .growth_factor = 1.25,
                              .min_space = 48,
                              .item_max = 1 << 20,
                              .chunk_max = 1 << 20,
                              .hash_power = 12,
                              .threads = 4,
                              .lock_attr = attr_for(inherits)};
    struct store *s = store_create(&conf, err, sizeof err);
    ck_assert_ptr_nonnull(s);
    for (uint64_t i = 0; i <= s->table.stripe_mask; i++) {
        check_lock("stripe", &s->table.stripes[i].lock, inherits);
    }
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        check_lock("lists", &s->lru.classes[i].lock, inherits);
    }
    check_lock("lru settings", &s->lru.conf_lock, inherits);
    check_lock("slab", &s->slab.lock, inherits);
    check_lock("walk", &s->walk.lock, inherits);
    check_lock("dumps", &s->dumps.lock, inherits);
    check_lock("sizes", &s->sizes.lock, inherits);
    check_lock("automover", &s->automover.lock, inherits);
    check_lock("flush", &s->flush.lock, inherits);
    store_destroy(&s);
}

TEST_LOOP(other_locks_inherit, 2)
{
    bool inherits = _i == 1;
    const pthread_mutexattr_t *lock_attr = attr_for(inherits);
    struct maint_conf maint_conf = {0};
    struct maint maint;
    maint_init(&maint, &maint_conf, lock_attr);
    check_lock("maint", &maint.lock, inherits);
    maint_fini(&maint);

    struct registry registry;
    registry_init(&registry, lock_attr);
    check_lock("registry", &registry.lock, inherits);
    registry_fini(&registry);

    struct watch_conf watch_conf = {.threads = 1,
                                    .ring_bytes = 1 << 16,
                                    .outbox_bytes = 1 << 16,
                                    .lock_attr = lock_attr};
    struct watch watch;
    ck_assert(watch_init(&watch, &watch_conf));
    check_lock("live log", &watch.mask_lock, inherits);
    watch_fini(&watch);

    struct pin_spec spec = {.policy = PIN_NONE};
    struct pinner pinner;
    ck_assert(pinner_init(&pinner, &spec, 1, lock_attr));
    check_lock("pinner", &pinner.lock, inherits);
    pinner_fini(&pinner);
}

/* ---- seen in the kernel ---------------------------------------------------------------- */

static struct maint shared;
static atomic_bool is_refused;

static void *
worker_main(void *arg)
{
    (void)arg;
    struct sched_param param = {.sched_priority = PRIORITY};
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        atomic_store(&is_refused, true);
    }
    (void)maint_conf(&shared);
    return NULL;
}

/* The priority at which this thread runs now: field 18, -1 - p at real-time priority p. */
static int
own_priority(void)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)gettid());
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    fclose(file);
    const char *p = strrchr(line, ')');
    for (unsigned field = 2; field < 18; field++) {
        p = strchr(p + 1, ' ');
    }
    return atoi(p);
}

TEST(holder_runs_at_the_priority_of_who_waits)
{
    struct maint_conf conf = {0};
    pthread_t worker;
    maint_init(&shared, &conf, attr_for(true));
    PTHREAD_OK(pthread_mutex_lock(&shared.lock));
    ck_assert_int_ge(own_priority(), 0);
    PTHREAD_OK(pthread_create(&worker, NULL, worker_main, NULL));
    time_t end = time(NULL) + PATIENCE_S;
    while (!atomic_load(&is_refused) && own_priority() != -1 - PRIORITY &&
           time(NULL) < end) {
        sched_yield();
    }
    int lent = own_priority();
    PTHREAD_OK(pthread_mutex_unlock(&shared.lock));
    PTHREAD_OK(pthread_join(worker, NULL));
    maint_fini(&shared);
    if (atomic_load(&is_refused)) {
        printf("# real-time priority is not permitted here\n");
        fflush(stdout);
        return;
    }
    ck_assert_int_eq(lent, -1 - PRIORITY);
    ck_assert_int_ge(own_priority(), 0);
}
