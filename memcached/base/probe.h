/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Static probes for tracers (bpftrace, perf, SystemTap): a nop in the code, and a note in the
 * ELF section .note.stapsdt that says where it is, what it is called and where its arguments
 * are at that moment. Nothing is called and nothing loaded; a tracer puts a breakpoint there.
 *
 * PROBE(name, arguments...) with up to five integers or pointers. Provider: memcached. Names
 * with "__" are written "-" by some tools. On other architectures a probe is nothing.
 */
#pragma once

#if defined(__x86_64__) || defined(__aarch64__)

/* 4 bytes and less are signed, 8 are not. */
#define PROBE_SIZE_(x) "n"(sizeof(x) == 8 ? 8 : -(int)sizeof(x)), "nor"(x)

#define PROBE_NOTE_(name, args, ...)                                                     \
    __asm__ volatile("990: nop\n"                                                        \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n"                        \
                     ".balign 4\n"                                                       \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                  \
                     "991: .asciz \"stapsdt\"\n"                                         \
                     "992: .balign 4\n"                                                  \
                     "993: .8byte 990b, _.stapsdt.base, 0\n"                             \
                     ".asciz \"memcached\"\n"                                            \
                     ".asciz \"" name "\"\n"                                             \
                     ".asciz \"" args "\"\n"                                             \
                     "994: .balign 4\n"                                                  \
                     ".popsection\n"                                                     \
                     ".ifndef _.stapsdt.base\n"                                          \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\","                   \
                     ".stapsdt.base,comdat\n"                                            \
                     ".weak _.stapsdt.base\n"                                            \
                     ".hidden _.stapsdt.base\n"                                          \
                     "_.stapsdt.base: .space 1\n"                                        \
                     ".size _.stapsdt.base, 1\n"                                         \
                     ".popsection\n"                                                     \
                     ".endif\n" ::__VA_ARGS__)

#define PROBE_ARG_(n, v) "%c" #n "@%" #v

#define PROBE_1_(name, a) PROBE_NOTE_(#name, PROBE_ARG_(0, 1), PROBE_SIZE_(a))
#define PROBE_2_(name, a, b)                                                             \
    PROBE_NOTE_(#name, PROBE_ARG_(0, 1) " " PROBE_ARG_(2, 3), PROBE_SIZE_(a),            \
                PROBE_SIZE_(b))
#define PROBE_3_(name, a, b, c)                                                          \
    PROBE_NOTE_(#name, PROBE_ARG_(0, 1) " " PROBE_ARG_(2, 3) " " PROBE_ARG_(4, 5),       \
                PROBE_SIZE_(a), PROBE_SIZE_(b), PROBE_SIZE_(c))
#define PROBE_4_(name, a, b, c, d)                                                       \
    PROBE_NOTE_(                                                                         \
        #name,                                                                           \
        PROBE_ARG_(0, 1) " " PROBE_ARG_(2, 3) " " PROBE_ARG_(4, 5) " " PROBE_ARG_(6, 7), \
        PROBE_SIZE_(a), PROBE_SIZE_(b), PROBE_SIZE_(c), PROBE_SIZE_(d))
#define PROBE_5_(name, a, b, c, d, e)                                                    \
    PROBE_NOTE_(#name,                                                                   \
                PROBE_ARG_(0, 1) " " PROBE_ARG_(2, 3) " " PROBE_ARG_(                    \
                    4, 5) " " PROBE_ARG_(6, 7) " " PROBE_ARG_(8, 9),                     \
                PROBE_SIZE_(a), PROBE_SIZE_(b), PROBE_SIZE_(c), PROBE_SIZE_(d),          \
                PROBE_SIZE_(e))
#define PROBE_PICK_(a, b, c, d, e, chosen, ...) chosen
#define PROBE(name, ...)                                                                 \
    PROBE_PICK_(__VA_ARGS__, PROBE_5_, PROBE_4_, PROBE_3_, PROBE_2_, PROBE_1_, )         \
    (name, __VA_ARGS__)

#else

#define PROBE(name, ...) ((void)sizeof(#name))

#endif
