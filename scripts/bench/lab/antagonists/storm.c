/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Maps a page, touches it and unmaps it, in THREADS threads, so that each unmap interrupts the CPUs
 * of the others. `storm THREADS SECONDS`; work: pages. Prints faults=, page faults meanwhile.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "antagonist.h"

enum { PAGE_BYTES = 4096, THREADS_MAX = 64 };

static long
faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void *
map_pages(void *arg)
{
    uint64_t *work = arg;
    do {
        volatile char *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            fail("mmap");
        }
        page[0] = 1;
        munmap((void *)page, PAGE_BYTES);
        ++*work;
    } while (goes_on());
    return NULL;
}

int
main(int argc, char **argv)
{
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > THREADS_MAX) {
        usage("storm THREADS SECONDS (64 threads at most)");
    }
    pthread_t started[THREADS_MAX];
    uint64_t work[THREADS_MAX] = {0};
    begin(argv[2]);
    long before = faults();
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&started[i], NULL, map_pages, &work[i]) != 0) {
            fail("pthread_create");
        }
    }
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(started[i], NULL);
        sum += work[i];
    }
    finish(sum, "faults=%ld", faults() - before);
    return 0;
}
