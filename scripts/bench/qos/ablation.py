# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The mechanisms that came on top of the classes and the limit, and what the server loses without
each: a condition in the sources is changed so that it never acts."""
import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Callable

import side_by_side as side

from . import Case, abuse, balance, costs, limits, neighbours, scheduling
from .runner import values, verdict

HEAD = ["mechanism", "code lines", "under", "measure", "with", "without", "x worse without",
        "judgement", "validity"]
WITH, WITHOUT = "with", "without"
NOISE = 1.05  # a loss of less is not told from the drift of the machine


# ---- loads --------------------------------------------------------------------------------

@dataclass
class Load:
    """measure: one run against a server. shows: what of it may get worse, and whether more of it
    is better. start: of the server, given a Runner and the program."""
    measure: Callable
    shows: dict
    options: tuple = ()
    start: Callable = None

    @contextlib.contextmanager
    def server(self, run, program):
        start = self.start(run, program) if self.start else \
            run.server(WITH, list(self.options), program=program)
        with start as server:
            yield server


P99 = {"p99 us": ("p99", False)}
P99_AND_BYTES = {**P99, "neighbour MB/s": ("moved", True)}
ANSWERED = {"answered/s": ("rate", True), **P99}
COST = {"us of CPU a get": ("cost", False)}
OVERLOAD = 900000  # gets a second: more than one CPU can answer here


def beside(what, *options):
    neighbour = neighbours.all_neighbours()[what]

    def measure(run, server):
        neighbours.prepare(server, neighbour)
        one = neighbours.beside(run, server, neighbour)
        one.values["moved"] /= 1e6
        return one
    return Load(measure, P99_AND_BYTES, options)


def overload(slo):
    return Load(lambda run, server: limits.offer(run, server, OVERLOAD), ANSWERED, (f"--slo={slo}",))


def cost(depth, *options):
    return Load(lambda run, server: costs.measure(run, server, depth), COST,
                ("--classes=off", *options))


def abused(what):
    pattern = abuse.PATTERNS[what]

    def measure(run, server):
        if pattern.stores:
            neighbours.exchange(server, pattern.stores, b"STORED\r\n")
        return abuse.beside(run, server, pattern, str(server.port), [])
    return Load(measure, P99, (*abuse.OPTIONS, *pattern.options, *pattern.ours))


def upset(what):
    how = balance.UPSETS[what]
    return Load(lambda run, server: balance.measure(run, server, how), P99,
                start=lambda run, program: run.server(
                    WITH, balance.VARIANTS["on"], program=program, threads=how.threads,
                    cpus=f"{side.SERVER_CPU},{side.CLIENT_CPU}"))


def wave(rate):
    """rate: of gets of several keys a second."""
    groups = []

    @contextlib.contextmanager
    def start(run, program):
        with scheduling.Groups() as both, contextlib.ExitStack() as stack:
            with both.entered("server"):
                server = stack.enter_context(
                    run.server(WITH, scheduling.MODES["slice:100us"], program=program))
            groups[:] = [both]
            yield server
    return Load(lambda run, server: scheduling.measure(run, groups[0], server, rate, True), P99,
                start=start)


LOADS = {
    "multigets of 50 keys": beside(neighbours.MULTIGETS),
    "pipelined gets of 100 KB": beside(neighbours.LARGE_GETS),
    "pipelined small gets": beside("64 pipelined small gets, 16 connections"),
    "overload, --slo=p99:1ms": overload("p99:1ms"),
    "overload, --slo=p99:250us": overload("p99:250us"),
    "--slo=p99:10s, gets one by one": cost(1, "--slo=p99:10s"),
    "--slo=p99:10s, 16 gets at a time": cost(16, "--slo=p99:10s"),
    "--qps-limit=10m, gets one by one": cost(1, "--qps-limit=10m"),
    "--qps-limit=10m, 16 gets at a time": cost(16, "--qps-limit=10m"),
    "trickled gets": abused("trickle"),
    "batch job on one worker's CPU": upset("batch job on one worker's CPU"),
    "3 workers on 2 CPUs": upset("3 workers on 2 CPUs"),
    "square wave, --sched=slice:100us, at 10 % of the peak": wave(7000),
    "square wave, --sched=slice:100us, at 20 % of the peak": wave(14000),
    "square wave, --sched=slice:100us, at 40 % of the peak": wave(28000),
}


# ---- mechanisms ---------------------------------------------------------------------------

@dataclass
class Mechanism:
    """lines: of code that would go with it, by hand. loads: of LOADS. edits: (file below
    memcached/, text that is there once, what takes it out)."""
    lines: int
    loads: list
    edits: list


OVER = "overload, --slo=p99:1ms"
MULTI, LARGE = "multigets of 50 keys", "pipelined gets of 100 KB"
MECHANISMS = {
    "what a connection asked before queues its next read": Mechanism(52, [MULTI], [
        ("qos/history.h", "    if (h->recent == UINT16_MAX) {\n",
         "    if (h->recent == UINT16_MAX && h->floor == UINT16_MAX) {\n"),
        ("qos/history.h", "    return h->is_greedy ? history_queue(h, served) : CLASS_NONE;",
         "    return history_trickles(h) ? history_queue(h, served) : CLASS_NONE;")]),
    "trickled reads are charged": Mechanism(92, ["trickled gets"], [
        ("qos/history.c", "    reckon(h, served);\n    uint64_t part",
         "    if (h->floor != UINT16_MAX) {\n        return false;\n    }\n"
         "    reckon(h, served);\n    uint64_t part")]),
    "refusals of several reads leave in one write": Mechanism(134, [OVER], [
        ("core/coalesce.c", "k->is_draining || p->has_budget) {",
         "k->is_draining || p->has_budget || p->coalesced.bytes > 0) {")]),
    "gets behind a refused one are not parsed": Mechanism(79, [OVER], [
        ("core/pump.c", "k->admission.refuses_rest && p->answers_together",
         "k->admission.refuses_rest && p->answers_together && k == NULL")]),
    "one read of 64 is measured while nothing queues": Mechanism(
        39, ["--slo=p99:10s, gets one by one", "--slo=p99:10s, 16 gets at a time"], [
            ("qos/slo.h", "    if (w->is_neutral && now - w->sampled_at < SLO_SAMPLE_NS &&",
             "    if (w->is_neutral && now < w->sampled_at &&"),
            ("qos/slo.h", "    return w->is_neutral && now - w->sampled_at < SLO_SAMPLE_NS &&",
             "    return w->is_neutral && now < w->sampled_at &&")]),
    "the oldest request's age is told from the pass before": Mechanism(20, [OVER], [
        ("core/arrival.c", "    return a->has_rest || unread < took ? unread : took;",
         "    return a->has_rest && unread < took ? 0 : 0 * took;")]),
    "what serving takes is taken off the wait": Mechanism(43, ["overload, --slo=p99:250us", OVER], [
        ("qos/slo.c",
         "    atomic_store_explicit(&w->serving[class], to < r->target_ns ? to : r->target_ns,",
         "    atomic_store_explicit(&w->serving[class], to < r->target_ns ? 0 : 0,")]),
    "shorter turns while small requests come": Mechanism(17, [MULTI, LARGE], [
        ("qos/pace.c", "    if (p->guest_at == 0) {", "    if (p->guest_at < UINT64_MAX) {")]),
    "the time that a byte takes is learned": Mechanism(52, [LARGE], [
        ("qos/pace.c", "    if (bytes < PACE_PIECE_MIN) {\n",
         "    if (bytes < PACE_PIECE_MIN || took > 0) {\n")]),
    "bulk output waits for its next turn": Mechanism(14, [LARGE], [
        ("qos/pace.h", "    return lane > CLASS_SMALL && bytes > PACE_PIECE_MIN;",
         "    return lane > CLASS_SMALL && bytes == SIZE_MAX;")]),
    "a get that finds a large value goes on as bulk": Mechanism(30, [LARGE], [
        ("core/pump.c", "    bool may_be_late = class_is_inline(turn->lane)",
         "    bool may_be_late = p->core == NULL && class_is_inline(turn->lane)")]),
    "what is served where it is read has a bound": Mechanism(33, [MULTI, "pipelined small gets"], [
        ("core/queue.c",
         "           core_read_clock(k) - k->pass.woke_at >= k->queue.inline_ns;",
         "           core_read_clock(k) - k->pass.woke_at == UINT64_MAX;")]),
    "plain requests pass unasked while nothing binds": Mechanism(
        44, ["--qps-limit=10m, 16 gets at a time", "--slo=p99:10s, 16 gets at a time"], [
            ("core/pump.c", "? most : admission_unasked(k, most);",
             "? most : 0 * admission_unasked(k, most);")]),
    "a worker takes up to 64 tokens at a time": Mechanism(
        52, ["--qps-limit=10m, gets one by one", "--qps-limit=10m, 16 gets at a time"], [
            ("qos/limit.c", "    return size > LEASE_MAX ? LEASE_MAX : size;",
             "    return size > LEASE_MAX ? 1 : 1;")]),
    "saturated workers are told apart by delay": Mechanism(46, ["3 workers on 2 CPUs"], [
        ("qos/balance.c", "        w->backlog = BACKLOG_WEIGHT * saturation(w) *",
         "        w->backlog = 0.0 * BACKLOG_WEIGHT * saturation(w) *")]),
    "a worker whose CPU others use gives connections away": Mechanism(
        310, ["batch job on one worker's CPU"], [
            ("qos/crowd.c", "    } else if (!w->is_crowded && w->windows >= CROWD_WINDOWS) {",
             "    } else if (!w->is_crowded && w->windows == UINT32_MAX) {")]),
    "a real-time thread makes the kernel choose again": Mechanism(
        217, ["square wave, --sched=slice:100us, at 10 % of the peak",
              "square wave, --sched=slice:100us, at 20 % of the peak",
              "square wave, --sched=slice:100us, at 40 % of the peak"], [
            ("place/scheduling.c",
             "            nudge_suspects(&n->policy, waited(n), clock_now())) {",
             "            nudge_suspects(&n->policy, 0, clock_now())) {")]),
}


def edited(tree, mechanism):
    """{file: (its text, and what it is without the mechanism)}"""
    texts = {}
    for file, text, instead in mechanism.edits:
        path = os.path.join(tree, "memcached", file)
        if path not in texts:
            with open(path) as f:
                whole = f.read()
            texts[path] = (whole, whole)
        whole, now = texts[path]
        if now.count(text) != 1:
            side.fail(f"memcached/{file} has not once: {text!r}")
        texts[path] = (whole, now.replace(text, instead))
    return texts


class Sources:
    """A copy of the sources, configured as the build that is measured."""

    def __init__(self, bench):
        self.tree = os.path.join(bench.work, "sources")
        self.programs = bench.work
        shutil.copytree(side.TOP, self.tree, symlinks=True,
                        ignore=shutil.ignore_patterns("build*", ".git", "*.o"))
        # The name of the one folder of scripts/ that the pattern leaves out.
        shutil.copytree(os.path.join(side.TOP, "scripts/build-aux"),
                        os.path.join(self.tree, "scripts/build-aux"), dirs_exist_ok=True)
        self.build = os.path.join(self.tree, "ablation")
        os.mkdir(self.build)
        how = subprocess.run([os.path.join(bench.build, "config.status"), "--config"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        subprocess.run(f"../configure --quiet {how.strip()}", cwd=self.build, shell=True, check=True)

    def make(self, name):
        """The program of the sources as they are."""
        cpus = f"{side.SERVER_CPU},{side.CLIENT_CPU}"
        subprocess.run(["taskset", "-c", cpus, "make", "-s", "-j2", "memcached/memcached"],
                       cwd=self.build, check=True, stdout=subprocess.DEVNULL)
        return shutil.copy2(os.path.join(self.build, "memcached/memcached"),
                            os.path.join(self.programs, name))

    def make_without(self, mechanism, name):
        texts = edited(self.tree, mechanism)
        self.write({path: without for path, (_, without) in texts.items()})
        program = self.make(name)
        self.write({path: whole for path, (whole, _) in texts.items()})
        return program

    @staticmethod
    def write(texts):
        for path, text in texts.items():
            with open(path, "w") as f:
                f.write(text)


def sample(run, load, programs, what):
    """{variant: [one run a round]}"""
    samples = {}
    for turn, names in run.turns(programs):
        for name in names:
            def measure():
                with load.server(run, programs[name]) as server:
                    return load.measure(run, server)
            one = run.until_valid(f"round {turn} {what} {name}", measure)
            samples.setdefault(name, []).append(one)
    return samples


def judgement(ratios):
    if side.median(ratios) < NOISE:
        return "no loss"
    return "loses" if min(ratios) > 1 else "within the noise"


def shown(measured):
    return side.spread(measured, "{:,.0f}" if min(measured) >= 1000 else "{:.3g}")


def rows(mechanism, name, what, samples):
    runs = [samples[WITH], samples[WITHOUT]]
    for measure, (value, is_more) in LOADS[what].shows.items():
        pairs = list(zip(*runs))
        pairs = [pair for pair in pairs if not pair[0].faults + pair[1].faults] or pairs
        ratios = [whole.values[value] / less.values[value] if is_more
                  else less.values[value] / whole.values[value] for whole, less in pairs]
        yield [name, mechanism.lines, what, measure,
               *(shown(values(one, value)) for one in runs),
               side.spread(ratios), judgement(ratios), verdict([run for one in runs for run in one])]


def case(run):
    sources = Sources(run.bench)
    programs = {None: sources.make("memcached-whole")}
    for i, name in enumerate(run.only):
        programs[name] = sources.make_without(MECHANISMS[name], f"memcached-{i}")
    for name in run.only:
        for what in MECHANISMS[name].loads:
            both = {WITH: programs[None], WITHOUT: programs[name]}
            samples = sample(run, LOADS[what], both, f"{name}, {what}:")
            yield from rows(MECHANISMS[name], name, what, samples)


CASES = {
    "ablation": Case(
        case, HEAD, "What each mechanism is worth",
        "Each is taken out alone, by a changed condition. A ratio is of the two runs of a round; "
        f"a loss counts when its median is above {NOISE} and every round has it.", 5, 5),
}
