/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/loop.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/eventfd.h>

static const int numbers[LOOP_SIGNALS] = {SIGTERM, SIGINT, SIGUSR1};

static void
on_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    struct loop *l = arg;
    l->ended_by = (int)number;
    must(event_base_loopbreak(l->base) == 0);
}

static void
on_polled(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    poller_wait(arg, false);
}

static bool
start_polling(struct loop *l)
{
    return poller_open(&l->poller) &&
           event_assign(&l->polled, l->base, l->poller.fd, EV_READ | EV_PERSIST,
                        on_polled, &l->poller) == 0 &&
           event_add(&l->polled, NULL) == 0;
}

struct event_base *
loop_base(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL) {
        return NULL;
    }
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

bool
loop_open(struct loop *l)
{
    *l = (struct loop){.base = loop_base()};
    if (l->base == NULL) {
        return false;
    }
    for (unsigned i = 0; i < LOOP_SIGNALS; i++) {
        if (evsignal_assign(&l->signals[i], l->base, numbers[i], on_signal, l) != 0 ||
            event_add(&l->signals[i], NULL) != 0) {
            return false;
        }
    }
    return start_polling(l);
}

static void
on_hangup_signal(evutil_socket_t number, short what, void *arg)
{
    (void)number;
    (void)what;
    struct loop *l = arg;
    l->on_hangup(l->ctx);
}

bool
loop_watch_hangup(struct loop *l, loop_hangup *on_hangup, void *ctx)
{
    l->on_hangup = on_hangup;
    l->ctx = ctx;
    return evsignal_assign(&l->hangup, l->base, SIGHUP, on_hangup_signal, l) == 0 &&
           event_add(&l->hangup, NULL) == 0;
}

static void
on_call(evutil_socket_t fd, short what, void *arg)
{
    struct loop *l = arg;
    eventfd_t calls;
    (void)what;
    if (eventfd_read(fd, &calls) == 0) {
        l->on_wake(l->wake_ctx);
    }
}

bool
loop_watch_calls(struct loop *l, loop_wake *on_wake, void *ctx)
{
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake_fd < 0) {
        return false;
    }
    l->on_wake = on_wake;
    l->wake_ctx = ctx;
    return event_assign(&l->wake, l->base, l->wake_fd, EV_READ | EV_PERSIST, on_call,
                        l) == 0 &&
           event_add(&l->wake, NULL) == 0;
}

void
loop_call(struct loop *l)
{
    must(eventfd_write(l->wake_fd, 1) == 0);
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
    if (l->on_hangup != NULL) {
        event_del(&l->hangup);
    }
    event_del(&l->polled);
    poller_close(&l->poller);
    if (l->on_wake != NULL) {
        event_del(&l->wake);
        close(l->wake_fd);
    }
    event_base_free(l->base);
}

const char *
loop_library(void)
{
    return event_get_version();
}
