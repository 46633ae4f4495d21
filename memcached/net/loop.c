/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/loop.h"

#include <event2/event.h>
#include <signal.h>

#include "base/log.h"
#include "store/store.h"

#define UPKEEP_IDLE_MS 50  /* how often to look whether the hash table must grow */
#define UPKEEP_BUCKETS 256 /* moved between two polls */

static const int numbers[LOOP_SIGNALS] = {SIGTERM, SIGINT, SIGUSR1};

static void
on_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    struct loop *l = arg;
    log_write(LOG_INFO, "Signal handled: %s.", strsignal((int)number));
    must(event_base_loopbreak(l->base) == 0);
}

/* Moves a growing hash table on, a bounded piece at a time. */
static void
on_upkeep(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct loop *l = arg;
    bool has_more = store_step(l->store, UPKEEP_BUCKETS);
    struct timeval delay = {.tv_usec = has_more ? 0 : UPKEEP_IDLE_MS * 1000};
    must(event_add(&l->upkeep, &delay) == 0);
}

bool
loop_open(struct loop *l, struct store *store)
{
    *l = (struct loop){.store = store};
    struct event_config *config = event_config_new();
    if (config == NULL) {
        return false;
    }
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
    l->base = event_base_new_with_config(config);
    event_config_free(config);
    if (l->base == NULL) {
        return false;
    }
    for (unsigned i = 0; i < LOOP_SIGNALS; i++) {
        if (evsignal_assign(&l->signals[i], l->base, numbers[i], on_signal, l) != 0 ||
            event_add(&l->signals[i], NULL) != 0) {
            return false;
        }
    }
    must(evtimer_assign(&l->upkeep, l->base, on_upkeep, l) == 0);
    on_upkeep(-1, 0, l);
    return true;
}

void
loop_run(struct loop *l)
{
    must(event_base_dispatch(l->base) >= 0);
}

void
loop_close(struct loop *l)
{
    for (unsigned i = 0; i < LOOP_SIGNALS; i++) {
        event_del(&l->signals[i]);
    }
    event_del(&l->upkeep);
    event_base_free(l->base);
}

const char *
loop_library(void)
{
    return event_get_version();
}
