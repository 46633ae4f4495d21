# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What all cases of scripts/bench-qos need: servers, the client whose tail counts, repeats, and
the gates that tell a measurement from a mishap."""
import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field

import side_by_side as side

RATE = 5000  # small gets a second of the client whose tail counts
RECORDS = 10000
SMALL = ["--key-prefix=small", "-r", RECORDS]
# Small ones of several keys cost the server a little more than the client, so that the client
# can offer most of what the server can do.
KEYS = 15
SEVERAL = [*SMALL, f"--getcount={KEYS}"]
MEMORY = ["-m", "1024"]

# A run counts when all of these hold.
SERVER_CPU_MIN = 0.97  # of a run in which the server is to be the limit
CLIENT_CPU_MAX = 0.95  # of CLIENT_CPU, by all clients together
REALTIME_CPU_MAX = 0.9  # by one at real-time priority: the kernel takes 5 % of each second from it
STEAL_MAX = 0.01       # share of the machine's time that its host kept
OTHERS_MAX = 0.05      # share of it that other processes used, by the ticks
WAIT_MAX = 0.03        # share of a CPU for which the server waited, with no other load; to
                       # be woken up makes 1 % or so
LAG_P99_MAX_US = 50    # by how much the measuring client sends late through its own fault; more
                       # where a runner says so

# What mcload judges that is the client's fault, not the server's.
CLIENT_CHECKS = ("answers", "client_cpu", "interrupted")
FIFO_POLICY = 1


@dataclass
class Run:
    """Results of one measurement and what speaks against it. turn: the round, where that counts."""
    values: dict
    faults: list = field(default_factory=list)
    turn: int = 1


class Watch:
    """The server and the machine from now on."""

    def __init__(self, bench, server):
        self.bench, self.server = bench, server
        self.start, self.switched = self.read(), self.switches()

    def read(self):
        return (time.monotonic(), self.server.cpu()[0], self.server.waited(),
                self.bench.cpu_used(), *side.ticks())

    def server_cpu(self, is_shared=False):
        """Share of one CPU that the server used, and what is wrong with the machine.
        is_shared: another program is to run on the server's CPU."""
        took, server, waited, ours, every, busy, kept = (
            now - then for now, then in zip(self.read(), self.start))
        faults = []
        if not is_shared and waited / took > WAIT_MAX:
            faults.append(f"server without CPU {waited / took:.1%}")
        if kept / every > STEAL_MAX:
            faults.append(f"steal {kept / every:.1%}")
        if (busy - ours) / every > OTHERS_MAX:
            faults.append(f"others used {(busy - ours) / every:.0%}")
        return server / took, faults

    def switches(self):
        """Of all CPUs; interrupts of one by another; how often the server's threads were preempted."""
        return (*side.switches(), self.server.preempted())

    def per_request(self, requests):
        """The same, for each of the requests that have come meanwhile."""
        return {name: (now - then) / max(requests, 1) for name, now, then in
                zip(("switches", "interrupts", "preempted"), self.switches(), self.switched)}


@dataclass
class Load:
    """A client whose tail counts, at work."""
    seconds: int
    watch: Watch
    process: object
    is_realtime: bool = False  # or need not be


def may_be_realtime():
    return subprocess.run(["chrt", "--fifo", "10", "true"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def is_realtime(pid):
    """Is a thread of the process at SCHED_FIFO?"""
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            if os.sched_getscheduler(int(task)) == FIFO_POLICY:
                return True
    return False


def client_faults(result, realtime, lag_max_us=LAG_P99_MAX_US):
    """What mcload, its punctuality and its priority say against the run."""
    faults = [f"mcload: {check['name']} {check['value']:.3g}" for check in result["checks"]
              if not check["ok"] and check["name"] in CLIENT_CHECKS]
    lag = side.lag_of(result, "p99")
    # A send that waits for a connection is late, too. That is the server's fault; it is
    # possible when so many are due while a slow reply is under way.
    due = side.issue_p99_of(result) / 1e6 * result["totals"]["offered_qps"]
    if lag > lag_max_us and due < result["load"]["connections"] / 2:
        faults.append(f"sent {lag:.0f} us late")
    if not realtime:
        faults.append("client not SCHED_FIFO")
    return faults


def verdict(runs):
    """For the last cell of a row."""
    bad = [run for run in runs if run.faults]
    if not bad:
        return "VALID"
    reasons = sorted({fault for run in bad for fault in run.faults})
    return f"INVALID {len(bad)}/{len(runs)}: " + "; ".join(reasons[:3])


def values(runs, name):
    """Of the valid runs; of all when there are none."""
    good = [run for run in runs if not run.faults] or runs
    return [run.values[name] for run in good]


def ratios(runs, base, name):
    """To the median of the base, for a cell; empty where none of that is valid."""
    if all(run.faults for run in base):
        return ""
    median = side.median(values(base, name))
    return side.spread([value / median for value in values(runs, name)])


def point(runs, name):
    """Their median for a plot, and whether it is one of valid runs."""
    return side.median(values(runs, name)), any(not run.faults for run in runs)


def figure(value):
    """For people: 21,550 and 0.875."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class Runner:
    """One case at work. rounds, seconds: how often and how long each run is."""

    def __init__(self, bench, args, rounds, seconds):
        self.bench = bench
        self.rounds = args.rounds or (1 if args.quick else rounds)
        self.seconds = args.seconds or (1 if args.quick else seconds)
        self.quick = args.quick
        self.only = getattr(args, "only", None)
        self.retries = 0 if args.quick else args.retries
        self.realtime = ["--realtime=fifo:10"]  # of the client whose tail counts
        self.plots = []  # (kind of svg.KINDS, name, title, what that function takes more)

    @staticmethod
    def lag_max_us(_result):
        return LAG_P99_MAX_US

    @staticmethod
    def say(words):
        print(words, file=sys.stderr, flush=True)

    def some(self, cases):
        """All cases, or the first and the last for --quick."""
        cases = list(cases)
        return [cases[0], cases[-1]] if self.quick and len(cases) > 2 else cases

    @contextlib.contextmanager
    def server(self, name, options=(), debian=False, cpus=None, threads=1,
               client=(), program=None, realtime=0):
        """A server with the small records, for as long as the block. client: options of mcload.
        program: another one of ours. realtime: as side_by_side.Server's."""
        program = program or (self.bench.debian() if debian else self.bench.ours())
        server = self.bench.start_memcached(name, program,
                                            ["-t", str(threads), *MEMORY, *options], cpus, realtime=realtime)
        self.bench.fill(server, *SMALL, *client)
        yield server
        self.bench.end_server(server)

    def turns(self, variants):
        """The variants of each round, another one first each time."""
        variants = list(variants)
        for turn in range(self.rounds):
            at = turn % len(variants)
            yield turn + 1, variants[at:] + variants[:at]

    def until_valid(self, what, measure):
        """measure() again while its run is invalid and retries of the case are left."""
        while True:
            run = measure()
            numbers = ", ".join(f"{name} {figure(value)}" for name, value in run.values.items()
                                if isinstance(value, (int, float)))
            self.say(f"{what}: {numbers}; {verdict([run])}")
            if not run.faults or self.retries == 0:
                return run
            self.retries -= 1

    def start_interactive(self, server, *options, rate=RATE):
        """Starts the client whose tail counts, and all watching."""
        seconds = self.seconds
        load = Load(seconds, Watch(self.bench, server), self.bench.start_load(
            server, "-t", seconds, "--noload", "-T", 1, "-c", 8, "-q", rate, "--spin=5",
            *self.realtime, *SMALL, *options))
        time.sleep(min(0.4, seconds / 2))
        load.is_realtime = not self.realtime or is_realtime(load.process.pid)
        return load

    def finish_interactive(self, load, server_limited=False, is_shared=False, neighbour=None):
        """The run. is_shared: another program is to run on the server's CPU. neighbour:
        function that ends the one beside it and returns (results, share of a CPU)."""
        result = self.bench.finish_load(load.process, load.seconds + 60)
        cpu, faults = load.watch.server_cpu(is_shared)
        client = side.client_cpu_of(result, polling=True)
        is_starved = client >= REALTIME_CPU_MAX
        run = Run({"p99": side.p99_of(result), "p95": side.p95_of(result),
                   "p50": side.quantile_of(result, "p50"), "mean": side.mean_of(result),
                   "p999": side.quantile_of(result, "p99.9"), "max": side.max_of(result),
                   "late": side.lag_of(result, "p99"), "late999": side.lag_of(result, "p99.9"),
                   "served": side.served_of(result), "server_cpu": cpu,
                   **load.watch.per_request(side.requests_of(result))})
        if neighbour is not None:
            more, share = neighbour()
            run.values.update(more)
            client += share
        run.values["client_cpu"] = client
        run.faults = faults + client_faults(result, load.is_realtime, self.lag_max_us(result))
        if server_limited and cpu < SERVER_CPU_MIN:
            run.faults.append(f"server CPU {cpu:.0%}")
        if client >= CLIENT_CPU_MAX or is_starved:
            run.faults.append(f"client CPU {client:.0%}")
        return run

    def interactive(self, server, *options, rate=RATE, **how):
        """start_interactive() and finish_interactive()."""
        return self.finish_interactive(self.start_interactive(server, *options, rate=rate), **how)

    def peak(self, server, *options):
        """A run of the closed loop: requests a second."""
        watch = Watch(self.bench, server)
        result = self.bench.load(server, self.seconds, "--noload", "-T", 1, "-c", 32, *SMALL,
                                 *options)
        cpu, faults = watch.server_cpu()
        run = Run({"rate": side.rate_of(result), "server_cpu": cpu,
                   "client_cpu": side.client_cpu_of(result)}, faults)
        if cpu < SERVER_CPU_MIN:
            run.faults.append(f"server CPU {cpu:.0%}")
        return run
