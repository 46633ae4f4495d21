/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Runs BYTES of straight code, which fill that much of an instruction cache. `code BYTES SECONDS`;
 * work: laps. Prints instructions=, those of a lap.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "antagonist.h"

#if defined(__x86_64__) || defined(__i386__)
typedef uint8_t instruction_t;
static const instruction_t nop = 0x90, ret = 0xc3;
#elif defined(__aarch64__)
typedef uint32_t instruction_t;
static const instruction_t nop = 0xd503201f, ret = 0xd65f03c0;
#else
#error "no instructions are known for this processor"
#endif

int
main(int argc, char **argv)
{
    size_t count = argc == 3 ? strtoull(argv[1], NULL, 10) / sizeof nop : 0;
    if (count == 0) {
        usage("code BYTES SECONDS");
    }
    size_t bytes = count * sizeof nop;
    instruction_t *code =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) {
        fail("mmap");
    }
    for (size_t i = 0; i < count; i++) {
        code[i] = i + 1 < count ? nop : ret;
    }
    if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) {
        fail("mprotect");
    }
    __builtin___clear_cache((char *)code, (char *)code + bytes);
    void (*run)(void);
    memcpy(&run, &code, sizeof run);
    begin(argv[2]);
    uint64_t work = 0;
    while (goes_on()) {
        run();
        work++;
    }
    finish(work, "instructions=%zu", count);
    return 0;
}
