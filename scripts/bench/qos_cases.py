# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The cases of scripts/bench-qos. Each is a function of a Runner that yields rows for its
table; a row is a list of cells."""
import contextlib
import os
import socket
import time

import side_by_side as side

RATE = 5000  # small gets a second of the client whose tail counts
SMALL = ["--key-prefix=small", "-r", 10000]
LARGE = ["--key-prefix=large", "-r", 200, "-V", 102400]
HUGE = ["--key-prefix=huge", "-r", 50, "-V", 1000000]
NEIGHBOURS = {
    "alone": None,
    "multigets of 50 keys, 50 connections": [*SMALL, "-c", 50, "--getcount=50"],
    "8 pipelined gets of 100 KB, 32 connections": [*LARGE, "-c", 32, "-d", 8],
    "4 pipelined sets of 1 MB, 4 connections": [*HUGE, "-c", 4, "-d", 4, "-u", "1.0"],
    "64 pipelined small gets, 16 connections": [*SMALL, "-c", 16, "-d", 64],
}
FIFO = "--realtime=fifo:10"
MEMORY = ["-m", "1024"]


class Runner:
    """What the cases need: the bench, the options, the repeats."""

    def __init__(self, bench, args):
        self.bench, self.args = bench, args
        self.samples = {}

    def say(self, words):
        print(words, file=side.sys.stderr, flush=True)

    def ours(self, name, *options, cpus=side.SERVER_CPU, threads=1):
        return self.bench.start_memcached(name, self.bench.ours(),
                                          ["-t", str(threads), *MEMORY, *options], cpus)

    def debian(self, *options, cpus=side.SERVER_CPU, threads=1):
        return self.bench.start_memcached("Debian's memcached", self.bench.debian(),
                                          ["-t", str(threads), *MEMORY, *options], cpus)

    def interactive(self, server, rate=RATE, seconds=None, *options):
        return self.bench.load(server, seconds or self.args.seconds, "--noload", "-T", 1, "-c",
                               8, "-q", rate, FIFO, *SMALL, *options)

    def peak(self, server, *options):
        """Requests a second, closed loop, and how much of its CPU the server used."""
        before, at = server.cpu()[0], time.monotonic()
        result = self.bench.load(server, self.args.seconds, "--noload", "-T", 1, "-c", 32,
                                 *SMALL, *options)
        used = (server.cpu()[0] - before) / (time.monotonic() - at)
        return side.rate_of(result), used

    def turns(self, servers):
        """The servers of each round, another one first each time."""
        for turn in range(self.args.rounds):
            at = turn % len(servers)
            yield turn + 1, servers[at:] + servers[:at]


# ---- beside a neighbour -------------------------------------------------------------------

NEIGHBOUR_HEAD = ["beside", "server", "p99 us", "x alone", "served", "neighbour MB/s",
                  "x Debian's", "server CPU"]


def beside(run, server, load):
    """The interactive client's p99 and share served, the neighbour's bytes, the server's CPU."""
    seconds = run.args.seconds
    other = None
    if load is not None:
        # It starts a second earlier and ends a second later than what is measured.
        other = run.bench.start_load(server, "-t", seconds + 2, "--noload", "-T", 1, *load)
        time.sleep(1)
    before, at = server.cpu()[0], time.monotonic()
    result = run.interactive(server)
    cpu = (server.cpu()[0] - before) / (time.monotonic() - at)
    moved = 0.0
    if other is not None:
        moved = side.moved_of(run.bench.finish_load(other, seconds + 60))
    return {"p99": side.p99_of(result), "served": side.served_of(result), "moved": moved,
            "cpu": cpu}


def neighbours(run):
    servers = [run.ours("classes on"), run.ours("classes off", "--classes=off"), run.debian()]
    for server in servers:
        for records in (SMALL, LARGE, HUGE):
            run.bench.fill(server, *records)
    samples = {}
    for turn, order in run.turns(servers):
        for case, load in NEIGHBOURS.items():
            for server in order:
                one = beside(run, server, load)
                samples.setdefault((server.name, case), []).append(one)
                run.say(f"round {turn} {case:44} {server.name:18} p99 {one['p99']:9.0f} us, "
                        f"served {one['served'] * 100:5.1f} %, {one['moved'] / 1e6:5.0f} MB/s, "
                        f"CPU {one['cpu'] * 100:3.0f} %")
    for case in NEIGHBOURS:
        for server in servers:
            yield neighbour_row(samples, case, server.name, servers[-1].name)
    for server in servers:
        run.bench.end_server(server)


def neighbour_row(samples, case, name, theirs):
    got = samples[name, case]
    ratios = [one["p99"] / base["p99"] for one, base in zip(got, samples[name, "alone"])]
    shares = [one["moved"] / other["moved"] for one, other in zip(got, samples[theirs, case])
              if other["moved"]]
    is_alone = case == "alone"
    return [case, name, side.spread([one["p99"] for one in got], "{:.0f}"),
            "" if is_alone else side.spread(ratios),
            f"{side.median([one['served'] for one in got]) * 100:.1f} %",
            "" if is_alone else f"{side.median([one['moved'] for one in got]) / 1e6:.0f}",
            side.spread(shares) if shares and name != theirs else "",
            f"{side.median([one['cpu'] for one in got]) * 100:.0f} %"]


# ---- the limiter --------------------------------------------------------------------------

LIMIT_HEAD = ["limit", "offered", "achieved", "of the limit", "`version` p99 us"]


@contextlib.contextmanager
def at_realtime():
    """This process on the client's CPU, ahead of the client."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {side.CLIENT_CPU})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cpus)


def control_p99(server, seconds):
    """Microseconds that `version` takes on a connection of its own, 100 times a second."""
    taken = []
    with at_realtime(), socket.create_connection(("127.0.0.1", server.port)) as s:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            at = time.monotonic()
            s.sendall(b"version\r\n")
            s.recv(100)
            taken.append(time.monotonic() - at)
            time.sleep(0.01)
    return sorted(taken)[int(len(taken) * 0.99)] * 1e6


def limiter(run):
    server = run.ours("memcached-qos")
    run.bench.fill(server, *SMALL)
    samples = {}
    cases = [(rate, factor) for rate in (1000, 10000, 50000) for factor in (1.2, 3)]
    for turn in range(run.args.rounds):
        for rate, factor in cases:
            side.command(server.port, f"qos qps_limit {rate}")
            load = run.bench.start_load(server, "-t", run.args.seconds, "-w", 1, "--noload",
                                        "-T", 1, "-c", 64, "-q", int(rate * factor), *SMALL)
            time.sleep(1.2)
            p99 = control_p99(server, run.args.seconds - 0.5)
            result = run.bench.finish_load(load, run.args.seconds + 60)
            achieved = side.requests_of(result) / run.args.seconds
            samples.setdefault((rate, factor), []).append((achieved, p99))
            run.say(f"round {turn + 1} limit {rate} offered {factor}x: {achieved:.1f}/s, "
                    f"version p99 {p99:.0f} us")
    for rate, factor in cases:
        got = samples[rate, factor]
        yield [f"{rate:,}", f"{factor:g}x", side.spread([a for a, _ in got], "{:.1f}"),
               side.spread([a / rate * 100 for a, _ in got], "{:.2f}") + " %",
               side.spread([p for _, p in got], "{:.0f}")]
    run.bench.end_server(server)


# ---- SLO mode -----------------------------------------------------------------------------

SLO_HEAD = ["server", "offered", "answered/s", "of its peak", "p99 of the answered, us",
            "refused"]
SLO_US = 1000
# Of several keys, so that the client can offer twice what the server can do.
SLO_LOAD = [*SMALL, "--getcount=15"]


def slo(run):
    options = (f"--slo=p99:{SLO_US}us",)
    servers = [run.ours("SLO off"), run.ours(f"SLO p99 {SLO_US} us", *options)]
    for server in servers:
        run.bench.fill(server, *SMALL)
    peaks, samples = [], {}
    for turn, order in run.turns(servers):
        peak = run.peak(servers[0], "-d", 4, *SLO_LOAD)[0]
        peaks.append(peak)
        for server in order:
            result = run.bench.load(server, run.args.seconds, "-w", 1, "--noload", "-T", 1,
                                    "-c", 64, "-d", 8, "-q", int(2 * peak), "--late=drop",
                                    *SLO_LOAD)
            refused = result["errors"]["server_error"]
            one = {"rate": side.rate_of(result), "p99": side.answered_p99_of(result),
                   "refused": refused / max(1, refused + side.requests_of(result)),
                   "share": side.rate_of(result) / peak}
            samples.setdefault(server.name, []).append(one)
            run.say(f"round {turn} {server.name} at 2x {peak:.0f}/s: {one}")
    for server in servers:
        got = samples[server.name]
        yield [server.name, f"2x {side.median(peaks) / 1e3:.0f}k/s",
               side.spread([one["rate"] / 1e3 for one in got], "{:.0f}k"),
               side.spread([one["share"] for one in got]),
               side.spread([one["p99"] for one in got], "{:.0f}"),
               f"{side.median([one['refused'] for one in got]) * 100:.0f} %"]
        run.bench.end_server(server)


# ---- a square wave on the worker's CPU ----------------------------------------------------

SCHED_HEAD = ["scheduling", "load", "p99 alone, us", "p99 beside the wave, us", "batch share"]
BUSY_MS, PERIOD_MS = 6, 48
CPU_GROUPS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")


class Groups:
    """Two CPU cgroups (version 1) of equal shares; real-time budget for the first."""

    def __init__(self):
        root = next((top for top in CPU_GROUPS if os.path.isdir(top)), None)
        if root is None or os.geteuid() != 0:
            side.fail("the square wave needs root and a cpu cgroup (version 1)")
        self.paths = [os.path.join(root, f"bench-{os.getpid()}-{name}")
                      for name in ("server", "batch")]
        for path in self.paths:
            os.mkdir(path)
        with open(os.path.join(self.paths[0], "cpu.rt_runtime_us"), "w") as f:
            f.write("800000")

    def server(self):
        return lambda: self.join(0)

    def batch(self):
        return lambda: self.join(1)

    def join(self, which):
        with open(os.path.join(self.paths[which], "tasks"), "w") as f:
            f.write(str(os.getpid()))

    def remove(self):
        for path in self.paths:
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.1)


def adopt(groups, server):
    """All threads of the server into its group."""
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(os.path.join(groups.paths[0], "tasks"), "w") as f:
            f.write(task)


def scheduling(run):
    groups = Groups()
    wave = run.bench.compiled("wave")
    modes = {"default": [], "slice:100us": ["--sched=slice:100us"], "fifo": ["--sched=fifo"]}
    samples = {}
    servers = []
    for name, options in modes.items():
        # Into its group first: a policy may be refused in another.
        server = run.ours(name)
        run.bench.end_server(server)
        port = side.free_port()
        argv = [run.bench.ours(), "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1",
                *MEMORY, *side.unprivileged(), *options]
        enter = os.path.join(groups.paths[0], "tasks")
        server = side.Server(name, ["sh", "-c", 'echo $$ > "$0" && exec "$@"', enter] + argv,
                             port)
        run.bench.servers.append(server)
        run.bench.fill(server, *SMALL)
        servers.append(server)
    peak = run.peak(servers[0])[0]
    loads = (0.1, 0.3, 0.5)
    for turn, order in run.turns(servers):
        for load in loads:
            for server in order:
                rate = int(peak * load)
                alone = side.p99_of(run.interactive(server, rate))
                batch = run.bench.start_beside(
                    ["taskset", "-c", str(side.SERVER_CPU), wave, str(BUSY_MS), str(PERIOD_MS),
                     str(run.args.seconds + 1)], preexec_fn=groups.batch())
                time.sleep(0.5)
                p99 = side.p99_of(run.interactive(server, rate))
                share = float(batch.communicate(timeout=run.args.seconds + 30)[0])
                samples.setdefault((server.name, load), []).append((alone, p99, share))
                run.say(f"round {turn} {server.name} at {load:.0%}: {alone:.0f} us alone, "
                        f"{p99:.0f} us beside, batch got {share:.0%}")
    for load in loads:
        for server in servers:
            got = samples[server.name, load]
            yield [server.name, f"{load:.0%} of the peak",
                   side.spread([one[0] for one in got], "{:.0f}"),
                   side.spread([one[1] for one in got], "{:.0f}"),
                   f"{side.median([one[2] for one in got]):.0%}"]
    for server in servers:
        run.bench.end_server(server)
    groups.remove()


# ---- balance ------------------------------------------------------------------------------

BALANCE_HEAD = ["server", "case", "p99 us", "x balanced"]
BALANCE_ON = ["--pin", "--steer=p2c", "--balance"]


def balance(run):
    """Two workers on two CPUs. Balanced; a batch job on the first worker's CPU."""
    both = f"{side.SERVER_CPU},{side.CLIENT_CPU}"
    servers = [run.ours("on", *BALANCE_ON, cpus=both, threads=2),
               run.ours("off", "--pin", cpus=both, threads=2)]
    wave = run.bench.compiled("wave")
    samples = {}
    for server in servers:
        run.bench.fill(server, *SMALL)
    for turn, order in run.turns(servers):
        for server in order:
            plain = side.p99_of(run.interactive(server, RATE, None, "-w", 2, "-c", 32))
            batch = run.bench.start_beside(
                ["taskset", "-c", str(side.SERVER_CPU), wave, "10", "10",
                 str(run.args.seconds + 4)])
            result = run.interactive(server, RATE, None, "-w", 2, "-c", 32)
            shared = side.p99_of(result)
            batch.communicate(timeout=run.args.seconds + 30)
            samples.setdefault(server.name, []).append((plain, shared))
            run.say(f"round {turn} {server.name}: {plain:.0f} us balanced, {shared:.0f} us "
                    "beside a batch job on the first worker's CPU")
    for server in servers:
        got = samples[server.name]
        yield [server.name, "balanced", side.spread([one[0] for one in got], "{:.0f}"), ""]
        yield [server.name, "batch job on a worker's CPU",
               side.spread([one[1] for one in got], "{:.0f}"),
               side.spread([one[1] / one[0] for one in got])]
        run.bench.end_server(server)


# ---- the cost of it all -------------------------------------------------------------------

COST_HEAD = ["server", "depth", "CPU us/get", "x off"]
COST_ON = ["--pin=list:0", "--steer=cpu", "--balance", "--qps-limit=10m",
           "--slo=p99:10s"]
COST_OFF = ["--classes=off"]


def cost(run):
    servers = [run.ours("everything on", *COST_ON), run.ours("everything off", *COST_OFF)]
    samples = {}
    for server in servers:
        run.bench.fill(server, *SMALL)
    for turn, order in run.turns(servers):
        for depth in (1, 16):
            for server in order:
                before = server.cpu()[0]
                result = run.bench.load(server, run.args.seconds, "--noload", "-T", 1, "-c", 16,
                                        "-d", depth, *SMALL)
                used = (server.cpu()[0] - before) / side.requests_of(result) * 1e6
                samples.setdefault((server.name, depth), []).append(used)
                run.say(f"round {turn} {server.name} depth {depth}: {used:.3f} us a get")
    for depth in (1, 16):
        off = samples[servers[1].name, depth]
        for server in servers:
            got = samples[server.name, depth]
            yield [server.name, depth, side.spread(got, "{:.3f}"),
                   side.spread([one / base for one, base in zip(got, off)])]
    for server in servers:
        run.bench.end_server(server)


# ---- latency against load -----------------------------------------------------------------

CURVE_HEAD = ["load, 1000/s", "classes on", "classes off", "Debian's memcached"]
CURVE_SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)


def curve(run):
    """p99 of gets against their rate, beside one connection of multigets of 50 keys."""
    servers = [run.ours("classes on"), run.ours("classes off", "--classes=off"), run.debian()]
    for server in servers:
        run.bench.fill(server, *SMALL)
    peak = min(run.peak(server)[0] for server in servers)
    points = {server.name: {} for server in servers}
    for turn, order in run.turns(servers):
        for share in CURVE_SHARES:
            for server in order:
                rate = int(peak * share)
                other = run.bench.start_load(server, "-t", run.args.seconds + 1, "--noload",
                                             "-T", 1, "-c", 1, "-q", 500, "--getcount=50",
                                             *SMALL)
                p99 = side.p99_of(run.interactive(server, rate, None, "-c", 16))
                run.bench.finish_load(other, run.args.seconds + 60)
                points[server.name].setdefault(rate, []).append(p99)
                run.say(f"round {turn} {server.name} at {rate}/s: p99 {p99:.0f} us")
    run.series = {name: [(rate / 1e3, side.median(got)) for rate, got in of.items()]
                  for name, of in points.items()}
    rates = sorted({rate for of in points.values() for rate in of})
    for rate in rates:
        yield [f"{rate / 1e3:.1f}"] + [side.spread(points[s.name][rate], "{:.0f}")
                                       for s in servers]
    for server in servers:
        run.bench.end_server(server)


CASES = {
    "neighbours": (neighbours, NEIGHBOUR_HEAD, "Beside a greedy neighbour",
                   f"{RATE} small gets a second, open loop, on 8 connections. Targets: p99 at "
                   "most 1.5x alone (2x beside small gets), all served, the neighbour's bytes "
                   "at least 0.95x Debian's."),
    "limiter": (limiter, LIMIT_HEAD, "The limit",
                "64 connections, open loop. Targets: within 1 %; `version` below 1 ms."),
    "slo": (slo, SLO_HEAD, "Twice the capacity",
            "64 connections, open loop, gets of 15 keys, 8 on their way on each. Target: p99 "
            "of what is admitted at most the SLO."),
    "sched": (scheduling, SCHED_HEAD, "A square wave on the worker's CPU",
              f"A batch job that wants {BUSY_MS} of every {PERIOD_MS} ms, in a cpu cgroup of its "
              "own with equal shares. Targets: slice at most a quarter of default below half "
              "load, fifo flat, the batch job keeps its share."),
    "balance": (balance, BALANCE_HEAD, "A batch job on one worker's CPU",
                "Two workers on two CPUs, the client beside them at real-time priority. Target: "
                "at most 1.3x the balanced case."),
    "cost": (cost, COST_HEAD, "Everything on, nothing binding",
             "16 connections. Target: at most 1.02x."),
    "curve": (curve, CURVE_HEAD, "Latency against load",
              "p99 in us, beside 500 multigets of 50 keys a second."),
}
