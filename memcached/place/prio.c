/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/prio.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "place/cgroup.h"

#define NICE_LEAST (-20)
#define NICE_MOST 19
#define PRIORITY_MOST 99
#define PRIORITY_DEFAULT 1
#define RESET_ON_FORK 1    /* SCHED_FLAG_RESET_ON_FORK */
#define POLICY_EXT 7       /* SCHED_EXT, Linux 6.12 */
#define WARP_NS "40000000" /* as patches/sched_ext-bvt gives to threads that ask */
#define AUTOGROUP_TRIES 20
#define AUTOGROUP_SLEEP_NS 20000000 /* the kernel takes ten a second, of all processes */

/* struct sched_attr of the kernel, first version. */
struct attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime; /* the slice, of SCHED_OTHER */
    uint64_t deadline;
    uint64_t period;
};

/* ---- the option ----------------------------------------------------------------------- */

static const char *
parse_nice(struct prio_spec *spec, const char *text)
{
    int64_t nice;
    if (!num_i64(text, strlen(text), &nice) || nice < NICE_LEAST || nice > NICE_MOST) {
        return "sched: other:N wants a nice value from -20 to 19";
    }
    spec->nice = (int)nice;
    return NULL;
}

static const char *
parse_slice(struct prio_spec *spec, const char *text)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    size_t len = strspn(text, "0123456789");
    uint64_t number;
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + len, units[i].name) == 0 && num_u64(text, len, &number) &&
            number <= PRIO_SLICE_MAX_NS / units[i].ns &&
            number * units[i].ns >= PRIO_SLICE_MIN_NS) {
            spec->slice_ns = number * units[i].ns;
            return NULL;
        }
    }
    return "sched: slice:T wants a time from 100us to 100ms, such as 3ms";
}

static const char *
parse_priority(struct prio_spec *spec, const char *text)
{
    uint32_t priority;
    if (!num_u32(text, strlen(text), &priority) || priority < 1 ||
        priority > PRIORITY_MOST) {
        return "sched: fifo:P and rr:P want a priority from 1 to 99";
    }
    spec->priority = priority;
    return NULL;
}

/* Without `parse` it takes no value. */
static const struct {
    const char *name;
    enum prio_policy policy;
    const char *(*parse)(struct prio_spec *spec, const char *value);
    bool needs_value;
    const char *refusal;
} words[] = {
    {"other", PRIO_OTHER, parse_nice, false, NULL},
    {"slice", PRIO_SLICE, parse_slice, true, NULL},
    {"fifo", PRIO_FIFO, parse_priority, false, NULL},
    {"rr", PRIO_RR, parse_priority, false, NULL},
    {"bvt", PRIO_BVT, NULL, false, NULL},
    {"batch", PRIO_BATCH, NULL, false, NULL},
    {"deadline", PRIO_LEAVE, parse_priority, false,
     "sched: deadline is not offered: the kernel's admission control refuses threads "
     "that "
     "are bound to CPUs (--pin), and all but root; use fifo or slice"},
};

const char *
prio_parse(void *to, const char *text)
{
    struct prio_spec *spec = to;
    size_t len = strcspn(text, ":");
    const char *value = text[len] == ':' ? text + len + 1 : NULL;
    *spec = (struct prio_spec){.policy = PRIO_LEAVE};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].name) != len || strncmp(text, words[i].name, len) != 0 ||
            (value != NULL && words[i].parse == NULL)) {
            continue;
        }
        if (words[i].refusal != NULL) {
            return words[i].refusal;
        }
        spec->policy = words[i].policy;
        spec->priority = prio_is_realtime(spec) ? PRIORITY_DEFAULT : 0;
        return value == NULL && !words[i].needs_value
                   ? NULL
                   : words[i].parse(spec, value != NULL ? value : "");
    }
    return "sched must be other:N, slice:T, fifo[:P], rr[:P], bvt or batch";
}

const char *
prio_name(const struct prio_spec *spec)
{
    static _Thread_local char text[48];
    switch (spec->policy) {
    case PRIO_LEAVE:
        return "default";
    case PRIO_OTHER:
        snprintf(text, sizeof text, "other:%d", spec->nice);
        break;
    case PRIO_SLICE:
        snprintf(text, sizeof text, "slice:%lluus",
                 (unsigned long long)spec->slice_ns / 1000);
        break;
    case PRIO_FIFO:
        snprintf(text, sizeof text, "fifo:%u", spec->priority);
        break;
    case PRIO_RR:
        snprintf(text, sizeof text, "rr:%u", spec->priority);
        break;
    case PRIO_BVT:
        return "bvt";
    case PRIO_BATCH:
        return "batch";
    }
    return text;
}

/* The kernel lets nothing without the right leave SCHED_IDLE. */
static bool
is_idle(void)
{
    return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_IDLE;
}

bool
prio_needs_right(const struct prio_spec *spec)
{
    switch (spec->policy) {
    case PRIO_LEAVE:
        return false;
    case PRIO_OTHER:
        return is_idle() || spec->nice < getpriority(PRIO_PROCESS, 0);
    case PRIO_BATCH:
        return is_idle();
    case PRIO_SLICE:
    case PRIO_FIFO:
    case PRIO_RR:
    case PRIO_BVT:
        break;
    }
    return true;
}

bool
prio_is_realtime(const struct prio_spec *spec)
{
    return spec->policy == PRIO_FIFO || spec->policy == PRIO_RR;
}

/* ---- threads --------------------------------------------------------------------------- */

static int
read_attr(pid_t tid, struct attr *attr)
{
    *attr = (struct attr){.size = sizeof *attr};
    return syscall(SYS_sched_getattr, tid, attr, sizeof *attr, 0) == 0 ? 0 : errno;
}

static struct attr
attr_of(const struct prio_spec *spec, const struct attr *now)
{
    struct attr attr = {.size = sizeof attr,
                        .flags = RESET_ON_FORK,
                        .nice = now->nice,
                        .policy = SCHED_OTHER};
    switch (spec->policy) {
    case PRIO_LEAVE:
        break;
    case PRIO_OTHER:
        attr.nice = spec->nice;
        break;
    case PRIO_SLICE:
        attr.runtime = spec->slice_ns;
        break;
    case PRIO_FIFO:
    case PRIO_RR:
        attr.policy = spec->policy == PRIO_FIFO ? SCHED_FIFO : SCHED_RR;
        attr.priority = spec->priority;
        attr.nice = 0;
        break;
    case PRIO_BVT:
        attr.policy = POLICY_EXT;
        break;
    case PRIO_BATCH:
        attr.policy = SCHED_BATCH;
        break;
    }
    return attr;
}

static int
write_text(const char *path, const char *text)
{
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int error = write(fd, text, len) == (ssize_t)len ? 0 : errno;
    close(fd);
    return error;
}

int
prio_warp(const char *root, pid_t tid)
{
    char path[CGROUP_PATH_MAX], text[24];
    snprintf(path, sizeof path, "%s/proc/self/task/%d/sched_warp_ns", root,
             tid != 0 ? (int)tid : (int)gettid());
    int error = write_text(path, WARP_NS);
    if (error != 0) {
        return error;
    }
    return file_read_line(path, text, sizeof text) && strcmp(text, WARP_NS) == 0
               ? 0
               : ENOTSUP;
}

/* Kernels before 6.12 take a slice and forget it. */
int
prio_apply(const struct prio_spec *spec, pid_t tid)
{
    struct attr now;
    if (spec->policy == PRIO_LEAVE) {
        return 0;
    }
    int warp = spec->policy == PRIO_BVT ? prio_warp("", tid) : ENOENT;
    if (warp != ENOENT) {
        return warp;
    }
    int error = read_attr(tid, &now);
    if (error != 0) {
        return error;
    }
    struct attr attr = attr_of(spec, &now);
    if (syscall(SYS_sched_setattr, tid, &attr, 0) != 0) {
        return errno;
    }
    error = read_attr(tid, &now);
    if (error != 0) {
        return error;
    }
    bool is_applied = now.policy == attr.policy && now.nice == attr.nice &&
                      now.priority == attr.priority &&
                      (attr.runtime == 0 || now.runtime == attr.runtime);
    if (!is_applied) {
        return ENOTSUP;
    }
    return spec->policy != PRIO_BVT || prio_has_bvt("") ? 0 : ENODEV;
}

bool
prio_has_bvt(const char *root)
{
    char path[CGROUP_PATH_MAX], name[16];
    snprintf(path, sizeof path, "%s/sys/kernel/sched_ext/root/ops", root);
    return file_read_line(path, name, sizeof name) && strcmp(name, "bvt") == 0;
}

int
prio_read(pid_t tid, struct prio_seen *seen)
{
    static const char *const names[] = {
        [SCHED_OTHER] = "other", [SCHED_FIFO] = "fifo", [SCHED_RR] = "rr",
        [SCHED_BATCH] = "batch", [SCHED_IDLE] = "idle", [6] = "deadline",
        [POLICY_EXT] = "ext",
    };
    struct attr attr;
    int error = read_attr(tid, &attr);
    const char *name =
        attr.policy < sizeof names / sizeof *names ? names[attr.policy] : NULL;
    *seen = (struct prio_seen){.policy = name != NULL ? name : "unknown",
                               .nice = attr.nice,
                               .priority = attr.priority,
                               .slice_ns = attr.runtime,
                               .resets_on_fork = (attr.flags & RESET_ON_FORK) != 0};
    return error;
}

void
prio_explain(const struct prio_spec *spec, int error, const char *root, char *text,
             size_t len)
{
    char file[CGROUP_PATH_MAX];
    if (spec->policy == PRIO_BVT && error == ENODEV) {
        snprintf(
            text, len,
            "--sched=bvt: bvt is not the kernel's scheduler; workers have no warp until "
            "it is (patches/sched_ext-bvt)");
    } else if (spec->policy == PRIO_BVT && error == EINVAL) {
        snprintf(
            text, len,
            "--sched=bvt: the kernel has no sched_ext; it needs Linux 6.13 or later with "
            "CONFIG_SCHED_CLASS_EXT, or patches/linux-6.1-bvt");
    } else if (spec->policy == PRIO_BVT && error == ENOTSUP) {
        snprintf(
            text, len,
            "--sched=bvt: the kernel did not keep the warp; build it again with this "
            "version's patches/linux-6.1-bvt");
    } else if (spec->policy == PRIO_BVT && error == EPERM) {
        snprintf(
            text, len,
            "--sched=bvt: not permitted; it needs root at the start, or CAP_SYS_NICE");
    } else if (error == ENOTSUP) {
        snprintf(text, len,
                 "--sched=%s: the kernel ignores it; slices need Linux 6.12 or later",
                 prio_name(spec));
    } else if (error == EPERM && prio_is_realtime(spec) &&
               cgroup_lacks_rt_budget(root, CGROUP_SELF, file, sizeof file)) {
        snprintf(
            text, len,
            "--sched=%s: refused, because the control group has no real-time budget; "
            "write one, such as 100000, to %s (cpu.rt_runtime_us)",
            prio_name(spec), file);
    } else if (error == EPERM) {
        snprintf(
            text, len,
            "--sched=%s: not permitted; it needs root at the start, CAP_SYS_NICE, or a "
            "limit (%s)",
            prio_name(spec),
            prio_is_realtime(spec) ? "ulimit -r, LimitRTPRIO=" : "ulimit -e, LimitNICE=");
    } else {
        snprintf(text, len, "--sched=%s: %s", prio_name(spec), strerror(error));
    }
}

/* ---- autogroup ------------------------------------------------------------------------- */

#define AUTOGROUP "/proc/self/autogroup"

static bool
has_autogroups(void)
{
    char line[16];
    return file_read_line("/proc/sys/kernel/sched_autogroup_enabled", line,
                          sizeof line) &&
           line[0] == '1';
}

static int
write_autogroup(int nice)
{
    char text[8];
    snprintf(text, sizeof text, "%d", nice);
    return write_text(AUTOGROUP, text);
}

int
prio_lift_autogroup(const struct prio_spec *spec)
{
    if (spec->policy != PRIO_OTHER || !has_autogroups() ||
        cgroup_is_grouped("", CGROUP_SELF)) {
        return 0;
    }
    /* A process that has changed its user does not own its files in /proc, unless it may
     * be dumped. */
    int dumps = prctl(PR_GET_DUMPABLE);
    bool is_changed = dumps == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
    struct timespec pause = {.tv_nsec = AUTOGROUP_SLEEP_NS};
    int error = write_autogroup(spec->nice);
    for (unsigned i = 0; i < AUTOGROUP_TRIES && error == EAGAIN; i++) {
        nanosleep(&pause, NULL);
        error = write_autogroup(spec->nice);
    }
    if (is_changed) {
        must(prctl(PR_SET_DUMPABLE, dumps) == 0);
    }
    return error;
}

void
prio_autogroup(char *text, size_t len)
{
    char line[64];
    if (!has_autogroups() || !file_read_line(AUTOGROUP, line, sizeof line)) {
        snprintf(text, len, "off");
        return;
    }
    if (cgroup_is_grouped("", CGROUP_SELF)) {
        snprintf(text, len, "cgroup");
        return;
    }
    const char *nice = strstr(line, " nice ");
    snprintf(text, len, "%s", nice != NULL ? nice + strlen(" nice ") : "off");
}
