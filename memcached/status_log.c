/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "status_log.h"

#include <stdarg.h>

#include "base/log.h"
#include "config.h"
#include "net/listen.h"
#include "net/worker.h"
#include "place/pinner.h"
#include "front/brief.h"
#include "front/front.h"

#define LIST_MAX 8 /* listeners and CPUs that a line names */
#define LIST_TEXT_MAX 700

struct list {
    char text[LIST_TEXT_MAX];
    size_t len;
    unsigned count;
};

__attribute__((format(printf, 2, 3))) static void
add(struct list *list, const char *fmt, ...)
{
    va_list args;
    size_t room = sizeof list->text - list->len;
    if (list->count++ >= LIST_MAX || room < 3) {
        return;
    }
    if (list->len > 0) {
        list->len += (size_t)snprintf(list->text + list->len, room, ", ");
        room = sizeof list->text - list->len;
    }
    va_start(args, fmt);
    size_t n = (size_t)vsnprintf(list->text + list->len, room, fmt, args);
    va_end(args);
    list->len += n < room ? n : room - 1;
}

/* "a, b and 3 more". */
static const char *
end(struct list *list)
{
    size_t room = sizeof list->text - list->len;
    if (list->count > LIST_MAX) {
        snprintf(list->text + list->len, room, " and %u more", list->count - LIST_MAX);
    }
    return list->count > 0 ? list->text : "nowhere";
}

static const char *
list_addresses(const struct stats *st, struct list *list)
{
    const struct udp_sockets *udp = &st->shared->udp;
    for (unsigned i = 0; i < st->listen->count; i++) {
        const struct listener *l = st->listen->list[i];
        if (!l->is_further) {
            add(list, "%s%s", l->entry.addr, l->tls != TLS_OFF ? " (TLS)" : "");
        }
    }
    for (unsigned i = 0; i < udp->addresses; i++) {
        char text[REGISTRY_ADDR_MAX];
        udp_describe(udp, i, text, sizeof text);
        add(list, "%s", text);
    }
    return end(list);
}

static const char *
list_cpus(const struct stats *st, struct list *list)
{
    for (unsigned i = 0; i < st->worker_count; i++) {
        struct pinner_seat seat;
        pinner_seat(st->shared->pinner, i, &seat);
        if (seat.place.cpu < 0 || seat.error != 0) {
            return "any CPU";
        }
        add(list, "%s%d", i == 0 ? "CPU " : "", seat.place.cpu);
    }
    return end(list);
}

void
status_log_start(const struct stats *st)
{
    const struct settings *s = st->settings;
    struct list addresses = {.len = 0}, cpus = {.len = 0};
    char qos[BRIEF_LINES][BRIEF_MAX];
    if (log_level() < LOG_INFO) {
        return;
    }
    brief_settings(st, qos);
    log_write(LOG_INFO, "memcached: %s %s as memcached %s (profile %s), listening on %s",
              PACKAGE_NAME, PACKAGE_VERSION, settings_version(s),
              rules_profile_name(s->profile), list_addresses(st, &addresses));
    log_write(LOG_INFO, "memcached: %u workers on %s; %s; %s; %s", st->worker_count,
              list_cpus(st, &cpus), qos[0], qos[1], qos[2]);
}

void
status_describe(const struct stats *st, char dst[STATUS_MAX])
{
    struct list addresses = {.len = 0};
    snprintf(dst, STATUS_MAX, "listening on %s; %u workers",
             list_addresses(st, &addresses), st->worker_count);
}

void
status_log_second(const struct stats *st, struct minute *m, nsec_t now)
{
    char line[MINUTE_LINE_MAX];
    if (now < m->due) {
        return;
    }
    struct limit_counts n = limit_counts(st);
    struct minute_counts sum = {.admitted = n.admitted,
                                .delayed = n.delayed,
                                .rejected = n.rejected,
                                .would_limit = n.would_limit,
                                .shed = slo_shed(st)};
    if (minute_tell(m, now, sum, line)) {
        log_write(LOG_INFO, "memcached: %s", line);
    }
}
