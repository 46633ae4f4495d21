// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// hiccups PERIOD_US LEAST_US CPU...: when was a CPU away, as the host of a virtual machine takes it?
//
// While a CPU works, the kernel's clock event (perf_event_open(2)) notes the time once a period, in the
// interrupt of a timer. While it does not, that timer may stop; then a thread at SCHED_IDLE notes it, which
// sleeps in between. Neither preempts a thread, nor does the scheduler decide anew for it: what is measured
// beside it runs as it would without. The kernel stops an event for what is left of a tick when it comes more
// often than kernel.perf_event_max_sample_rate says, and there are no ticks without work, so that is more
// meanwhile.
//
// At SIGTERM it prints a line for each two notes of a CPU that are further apart than a period and that least:
// CPU, and from when to when it was away, in seconds since 1970. What of it came before the moment at which the
// second note was due, a period at most, is not in it.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MOST 1024
#define NOTES_MOST (1 << 18) // of a kind
#define SECOND 1000000000
#define RATE_SETTING "/proc/sys/kernel/perf_event_max_sample_rate"
#define RATE 100000000

struct event {
    struct perf_event_header header;
    uint64_t time; // CLOCK_MONOTONIC, ns
};

struct watch {
    int cpu;
    pthread_t thread;
    struct perf_event_mmap_page *ring; // on the next page the first event
    uint64_t *notes;                   // of the thread
    size_t count;
};

static uint64_t period, least;

static _Noreturn void
fail(const char *what, int error)
{
    fprintf(stderr, "hiccups: %s: %s\n", what, strerror(error));
    exit(1);
}

static void
check(int error, const char *what)
{
    if (error != 0) {
        fail(what, error);
    }
}

static uint64_t
read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static struct perf_event_mmap_page *
start_event(int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period,
        .sample_type = PERF_SAMPLE_TIME,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        fail("perf_event_open", errno);
    }
    size_t size = (size_t)sysconf(_SC_PAGESIZE) + NOTES_MOST * sizeof(struct event);
    void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        fail("mmap of the events", errno);
    }
    return ring; // the event is there as long as its map
}

static uint64_t *
new_notes(size_t count)
{
    uint64_t *notes = calloc(count, sizeof *notes);
    check(notes == NULL ? ENOMEM : 0, "notes");
    return notes;
}

static void *
note_when_idle(void *arg)
{
    struct watch *w = arg;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(w->cpu, &cpus);
    const struct sched_param none = {0};
    check(pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus), "affinity");
    check(pthread_setschedparam(pthread_self(), SCHED_IDLE, &none), "SCHED_IDLE");
    const struct timespec pause = {.tv_nsec = (long)(period * 3 / 4)};
    for (size_t i = 0; i < NOTES_MOST; i++) {
        w->notes[i] = read_clock(CLOCK_MONOTONIC);
        __atomic_store_n(&w->count, i + 1, __ATOMIC_RELEASE);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    fail("too long", ENOBUFS);
}

static void
start(struct watch *w, int cpu)
{
    *w = (struct watch){
        .cpu = cpu, .ring = start_event(cpu), .notes = new_notes(NOTES_MOST)};
    check(pthread_create(&w->thread, NULL, note_when_idle, w), "threads");
}

// Sets it; what it was.
static long
set_rate(long rate)
{
    long before;
    FILE *setting = fopen(RATE_SETTING, "r+");
    if (setting == NULL || fscanf(setting, "%ld", &before) != 1 ||
        fseek(setting, 0, SEEK_SET) != 0 || fprintf(setting, "%ld\n", rate) < 0 ||
        fclose(setting) != 0) {
        fail(RATE_SETTING, errno);
    }
    return before;
}

// Of both kinds, into room for 2 * NOTES_MOST; how many. The thread goes on.
static size_t
collect(const struct watch *w, uint64_t *all)
{
    size_t count = __atomic_load_n(&w->count, __ATOMIC_ACQUIRE);
    memcpy(all, w->notes, count * sizeof *all);
    const char *at = (const char *)w->ring + w->ring->data_offset;
    const char *end = at + __atomic_load_n(&w->ring->data_head, __ATOMIC_ACQUIRE);
    for (const struct perf_event_header *h; at < end; at += h->size) {
        h = (const struct perf_event_header *)at;
        check(h->type == PERF_RECORD_LOST || h->type == PERF_RECORD_THROTTLE ? ENOBUFS
                                                                             : 0,
              "notes are missing");
        if (h->type == PERF_RECORD_SAMPLE) {
            all[count++] = ((const struct event *)h)->time;
        }
    }
    return count;
}

static int
earlier(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void
print(const struct watch *w, uint64_t *all, uint64_t since_1970)
{
    size_t count = collect(w, all);
    check(count == 0 ? ENODATA : 0, "no notes");
    qsort(all, count, sizeof *all, earlier);
    for (size_t i = 1; i < count; i++) {
        uint64_t due = all[i - 1] + period;
        if (all[i] > due + least) {
            printf("%d %.6f %.6f\n", w->cpu, (double)(due + since_1970) / SECOND,
                   (double)(all[i] + since_1970) / SECOND);
        }
    }
}

int
main(int argc, char **argv)
{
    period = argc > 3 ? strtoull(argv[1], NULL, 10) * 1000 : 0;
    least = argc > 3 ? strtoull(argv[2], NULL, 10) * 1000 : 0;
    int count = argc - 3;
    if (period == 0 || least == 0 || count > CPUS_MOST) {
        fprintf(stderr, "usage: hiccups PERIOD_US LEAST_US CPU...\n");
        return 2;
    }
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    check(pthread_sigmask(SIG_BLOCK, &end, NULL), "signals");
    long rate = set_rate(RATE);
    static struct watch watches[CPUS_MOST];
    for (int i = 0; i < count; i++) {
        start(&watches[i], atoi(argv[3 + i]));
    }
    int got;
    sigwait(&end, &got);
    set_rate(rate);
    uint64_t since_1970 = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
    uint64_t *all = new_notes(2 * NOTES_MOST);
    for (int i = 0; i < count; i++) {
        print(&watches[i], all, since_1970);
    }
    return 0;
}
