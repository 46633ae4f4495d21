# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What features cost when they are on and nothing binds."""
import side_by_side as side

from .runner import SMALL, Run, Watch, values, verdict

HEAD = ["server", "depth", "CPU us/get", "x off", "target", "validity"]
CONNECTIONS = 16
DEPTHS = (1, 16)
TARGET = 1.02
OFF = "everything off"

# Each feature alone, far from binding, on top of everything off.
FEATURES = {
    "classes": [],
    "limit": ["--classes=off", "--qps-limit=10m"],
    "slo": ["--classes=off", "--slo=p99:10s"],
    "balance": ["--classes=off", "--balance"],
    "pin": ["--classes=off", "--pin=list:{cpu}"],
    "pin, steer=cpu": ["--classes=off", "--pin=list:{cpu}", "--steer=cpu"],
}
VARIANTS = {
    OFF: ["--classes=off"],
    "everything on": ["--pin=list:{cpu}", "--steer=cpu", "--balance", "--qps-limit=10m",
                      "--slo=p99:10s"],
    **FEATURES,
}


def started(run, name):
    options = [option.format(cpu=side.SERVER_CPU) for option in VARIANTS[name]]
    return run.server(name, options)


def measure(run, server, depth):
    watch = Watch(run.bench, server)
    before = server.cpu()[0]
    result = run.bench.load(server, run.seconds, "--noload", "-T", 1, "-c", CONNECTIONS, "-d",
                            depth, *SMALL)
    used = server.cpu()[0] - before
    cpu, faults = watch.server_cpu()
    return Run({"cost": used / side.requests_of(result) * 1e6, "server_cpu": cpu}, faults)


def case(run):
    """Each variant runs right beside everything off, turn about; both are started anew each
    round: where their memory happens to lie makes a percent or two, which rounds of the same
    processes would not average out."""
    samples = {}
    for turn, names in run.turns(name for name in VARIANTS if name != OFF):
        for name in names:
            with started(run, OFF) as off, started(run, name) as on:
                pair = (off, on) if turn % 2 else (on, off)
                for depth in DEPTHS:
                    for server in pair:
                        one = run.until_valid(
                            f"round {turn} {name} depth {depth}: {server.name}",
                            lambda: measure(run, server, depth))
                        samples.setdefault((name, server.name, depth), []).append(one)
    for depth in DEPTHS:
        every = [one for name in samples if name[1:] == (OFF, depth) for one in samples[name]]
        yield [OFF, depth, side.spread(values(every, "cost"), "{:.3f}"), "", "", verdict(every)]
        for name in VARIANTS:
            if name != OFF:
                yield row(name, depth, samples[name, name, depth], samples[name, OFF, depth])


def row(name, depth, on, off):
    pairs = list(zip(on, off))
    pairs = [pair for pair in pairs if not pair[0].faults + pair[1].faults] or pairs
    ratios = [one.values["cost"] / base.values["cost"] for one, base in pairs]
    return [name, depth, side.spread(values(on, "cost"), "{:.3f}"),
            side.spread(ratios, "{:.3f}"), f"{TARGET:.2f}", verdict(on + off)]
