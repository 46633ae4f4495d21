/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Loads the scheduler of bvt.bpf.c, which is that of the machine until this program ends; bvt(8).
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bvt.h"

#include "bvt.skel.h" /* made by build; it needs the former */

#define NS_PER_US 1000ULL

struct rule {
    char *text;
    struct bvt_name name;
    unsigned long long group; /* 0: by name */
    struct bvt_warp warp;
};

static volatile sig_atomic_t is_ending;

static void
end(int signal)
{
    (void)signal;
    is_ending = 1;
}

static void
fail(const char *what, const char *value, const char *why)
{
    fprintf(stderr, "bvt: %s%s: %s\n", what, value, why);
    exit(1);
}

static unsigned long long
microseconds(const char *text, const char *whole, char **rest)
{
    unsigned long long us = strtoull(text, rest, 10);
    if (*rest == text || *text == '-' || us > 10000000) {
        fail("", whole, "wants microseconds up to 10 s");
    }
    return us * NS_PER_US;
}

/* WARP[:LIMIT:REST] */
static struct bvt_warp
parse_warp(const char *text, const char *whole)
{
    char *rest;
    struct bvt_warp warp = {.warp = microseconds(text, whole, &rest)};
    if (*rest == ':') {
        warp.limit = microseconds(rest + 1, whole, &rest);
        if (*rest != ':') {
            fail("", whole, "a limit wants its rest, too: WARP:LIMIT:REST");
        }
        warp.rest = microseconds(rest + 1, whole, &rest);
    }
    if (*rest != '\0') {
        fail("", whole, "wants NAME=WARP[:LIMIT:REST], in microseconds");
    }
    return warp;
}

/* What has the warp: the beginning of a thread's name or, with a slash first, a control group. */
static struct rule
parse_rule(char *text)
{
    struct rule rule = {.text = strdup(text)};
    char *equals = strrchr(text, '=');
    struct stat group;
    if (equals == NULL || equals == text || rule.text == NULL) {
        fail("", text, "wants NAME=WARP[:LIMIT:REST] or /CGROUP=WARP[:LIMIT:REST]");
    }
    rule.warp = parse_warp(equals + 1, rule.text);
    *equals = '\0';
    if (text[0] == '/') {
        if (stat(text, &group) != 0) {
            fail("control group ", text, strerror(errno));
        }
        rule.group = group.st_ino;
    } else if (strlen(text) >= BVT_NAME_LEN) {
        fail("", rule.text, "names of threads have at most 15 characters");
    } else {
        strcpy(rule.name.text, text);
        rule.name.bits = 8 * (unsigned)strlen(text);
    }
    return rule;
}

static void
add_rule(const struct bvt *bvt, const struct rule *rule)
{
    int map = bpf_map__fd(rule->group != 0 ? bvt->maps.groups : bvt->maps.names);
    const void *key =
        rule->group != 0 ? (const void *)&rule->group : (const void *)&rule->name;
    if (bpf_map_update_elem(map, key, &rule->warp, BPF_ANY) != 0) {
        fail("", rule->text, strerror(errno));
    }
}

static void
print_counters(const struct bvt *bvt)
{
    static const char *const names[BVT_COUNTERS] = {"runs", "warped", "wakeups",
                                                    "preempted", "limited"};
    for (unsigned i = 0; i < BVT_COUNTERS; i++) {
        unsigned long long values[BVT_CPUS_MOST] = {0}, sum = 0;
        if (bpf_map_lookup_elem(bpf_map__fd(bvt->maps.counters), &i, values) == 0) {
            for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
                sum += values[cpu];
            }
        }
        printf("%s%s %llu", i == 0 ? "" : ", ", names[i], sum);
    }
    printf("\n");
    fflush(stdout);
}

static bool
is_line(const char *path, const char *wanted)
{
    char line[32] = "";
    FILE *f = fopen(path, "r");
    bool is_read = f != NULL && fgets(line, sizeof line, f) != NULL;
    if (f != NULL) {
        fclose(f);
    }
    return is_read && strcmp(line, wanted) == 0;
}

/* Not another one, loaded when the kernel had ended this one. */
static bool
is_enabled(void)
{
    return is_line("/sys/kernel/sched_ext/state", "enabled\n") &&
           is_line("/sys/kernel/sched_ext/root/ops", "bvt\n");
}

static const char usage[] =
    "usage: bvt [-w WARP_US[:LIMIT_US:REST_US]] [-l LATENCY_US] [-g GRANULARITY_US] "
    "[-i SECONDS] [NAME|/CGROUP]=WARP_US[:LIMIT_US:REST_US]...\n"
    "A scheduler for Linux with sched_ext; see bvt(8).\n";

static unsigned long long
option_us(const char *text)
{
    char *rest;
    unsigned long long ns = microseconds(text, text, &rest);
    if (*rest != '\0' || ns == 0) {
        fail("", text, "wants microseconds, from 1");
    }
    return ns;
}

static unsigned
option_seconds(const char *text)
{
    char *rest;
    unsigned long seconds = strtoul(text, &rest, 10);
    if (*text < '0' || *text > '9' || *rest != '\0' || seconds > UINT_MAX) {
        fail("", text, "wants seconds");
    }
    return (unsigned)seconds;
}

/* The scheduler, with its options; seconds between two lines of counters, or 0. */
static struct bvt *
parse_options(int argc, char **argv, unsigned *interval)
{
    struct bvt *bvt = bvt__open();
    if (bvt == NULL) {
        fail("", "libbpf", strerror(errno));
    }
    for (int option; (option = getopt(argc, argv, "w:l:g:i:h")) != -1;) {
        switch (option) {
        case 'w':
            bvt->rodata->asked = parse_warp(optarg, optarg);
            break;
        case 'l':
            bvt->rodata->latency = option_us(optarg);
            break;
        case 'g':
            bvt->rodata->granularity = option_us(optarg);
            break;
        case 'i':
            *interval = option_seconds(optarg);
            break;
        default:
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option != 'h');
        }
    }
    return bvt;
}

int
main(int argc, char **argv)
{
    unsigned interval = 0;
    struct bvt *bvt = parse_options(argc, argv, &interval);
    unsigned count = (unsigned)(argc - optind);
    struct rule rules[BVT_RULES_MOST];
    if (count > BVT_RULES_MOST) {
        fail("", argv[optind + BVT_RULES_MOST], "too many");
    }
    for (unsigned i = 0; i < count; i++) {
        rules[i] = parse_rule(argv[optind + (int)i]);
    }
    if (libbpf_num_possible_cpus() > BVT_CPUS_MOST) {
        fail("", "this machine", "it may have more than 1024 CPUs");
    }
    if (bvt__load(bvt) != 0) {
        fail("", "the kernel takes no scheduler",
             "it wants root, and Linux 6.13 or later with CONFIG_SCHED_CLASS_EXT");
    }
    for (unsigned i = 0; i < count; i++) {
        add_rule(bvt, &rules[i]);
    }
    struct bpf_link *link = bpf_map__attach_struct_ops(bvt->maps.bvt);
    if (link == NULL) {
        fail("", "not the scheduler",
             errno == EBUSY ? "there is one of sched_ext already" : strerror(errno));
    }
    signal(SIGINT, end);
    signal(SIGTERM, end);
    for (unsigned second = 1; !is_ending && is_enabled(); second++) {
        sleep(1);
        if (interval != 0 && second % interval == 0) {
            print_counters(bvt);
        }
    }
    print_counters(bvt);
    bool is_ejected = !is_ending;
    bpf_link__destroy(link);
    bvt__destroy(bvt);
    if (is_ejected) {
        fail("", "the kernel has ended it", "dmesg says why");
    }
    return 0;
}
