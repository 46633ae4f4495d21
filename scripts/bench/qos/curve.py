# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Latency of small gets against their rate, beside a few multigets at a fixed rate."""
import contextlib

import side_by_side as side

from . import theory
from .neighbours import OURS, VARIANTS
from .runner import KEYS, SEVERAL, Watch, point, values, verdict

SHARES = (0.1, 0.3, 0.5, 0.7, 0.8)  # above, the client is the limit
CONNECTIONS = 32
OTHER_RATE, OTHER_KEYS = 500, 50
HEAD = ["gets/s", "p99 us: classes on", "classes off", "Debian's memcached", "mean wait us: on",
        "off", "M/G/1 priority", "M/G/1 FIFO", "validity"]


def beside(run, server, rate):
    """A run of small gets at that rate beside the multigets."""
    other = run.bench.start_load(server, "-t", run.seconds + 1, "--noload", "-T", 1, "-c", 1,
                                 "-q", OTHER_RATE, *SEVERAL, f"--getcount={OTHER_KEYS}",
                                 "--spin=5")

    def finish():
        result = run.bench.finish_load(other, run.seconds + 60)
        return {}, side.client_cpu_of(result, polling=True)

    return run.interactive(server, "-c", CONNECTIONS, *SEVERAL, rate=rate, neighbour=finish)


def service(run, server, *options):
    """Seconds of the server's CPU a request."""
    watch = Watch(run.bench, server)
    result = run.bench.load(server, run.seconds, "--noload", "-T", 1, "-c", 8, *SEVERAL, *options)
    used = server.cpu()[0] - watch.start[1]
    return used / side.requests_of(result)


def peak_of(run, name, server):
    return run.until_valid(f"peak of {name}", lambda: run.peak(server, *SEVERAL)).values["rate"]


def case(run):
    samples = {}
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(run.server(name, **how))
                   for name, how in VARIANTS.items()}
        peak = min(peak_of(run, name, server) for name, server in servers.items())
        small = service(run, servers[OURS])
        large = service(run, servers[OURS], f"--getcount={OTHER_KEYS}")
        rates = [int(peak * share) for share in run.some(SHARES)]
        for turn, names in run.turns(VARIANTS):
            for rate in rates:
                for name in names:
                    one = run.until_valid(f"round {turn} {name} at {rate}/s",
                                          lambda: beside(run, servers[name], rate))
                    samples.setdefault((name, rate), []).append(one)
    for rate in rates:
        yield row(samples, rate, rates[0], theory.Queue((rate, small), (OTHER_RATE, large)),
                  theory.Queue((rates[0], small), (OTHER_RATE, large)))
    run.plots.append((
        "curves", "latency", f"p99 of small gets beside {OTHER_RATE} multigets of {OTHER_KEYS} keys a "
        "second", f"gets of {KEYS} keys, 1000/s", "p99, us",
        {name: [(rate / 1e3, *point(samples[name, rate], "p99")) for rate in rates]
         for name in VARIANTS}))


def row(samples, rate, lowest, queue, queue_at_lowest):
    """Waits are told from what a get takes without any by the mean at the lowest rate."""
    runs = {name: samples[name, rate] for name in VARIANTS}
    ours, off, _ = VARIANTS
    waits = []
    for name, at_lowest in ((ours, queue_at_lowest.priority_wait()),
                            (off, queue_at_lowest.fifo_wait())):
        means = [side.median(values(samples[name, at], "mean")) for at in (rate, lowest)]
        waits.append(means[0] - means[1] + at_lowest * 1e6)
    return [f"{rate:,}", *[side.spread(values(runs[name], "p99"), "{:.0f}") for name in VARIANTS],
            *[f"{wait:.1f}" for wait in waits], f"{queue.priority_wait() * 1e6:.1f}",
            f"{queue.fifo_wait() * 1e6:.1f}", verdict(sum(runs.values(), []))]
