# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Several workers, and something that makes one of them the slow one."""
import time
from dataclasses import dataclass

import side_by_side as side

from .runner import SEVERAL, values, verdict

HEAD = ["server", "case", "p99 us", "x balanced", "target", "mean us", "connections moved",
        "client CPU", "validity"]
RATE = 6000
CONNECTIONS = 32
LOAD = ["-c", CONNECTIONS, *SEVERAL]
SETTLE = 3    # seconds of load before it is measured
UPSET_AT = 1  # of which so many are undisturbed
TARGET = 1.3
VARIANTS = {
    "on": ["--pin", "--steer=p2c", "--balance"],
    "off": ["--pin", "--steer=rr"],
}


@dataclass
class Upset:
    """What happens to the server UPSET_AT seconds after the load began."""
    threads: int = 2
    has_batch: bool = False
    is_piled_up: bool = False


BALANCED = "balanced"
UPSETS = {
    BALANCED: Upset(),
    "all connections on one worker": Upset(is_piled_up=True),
    "batch job on one worker's CPU": Upset(has_batch=True),
    "3 workers on 2 CPUs": Upset(threads=3),
}


def measure(run, server, upset):
    load = run.start_interactive(server, *LOAD, "-w", SETTLE, rate=RATE)
    time.sleep(UPSET_AT)
    if upset.is_piled_up:
        side.command(server.port, f"qos rebalance 1 0 {CONNECTIONS}")
    batch = None
    if upset.has_batch:
        # A wave without troughs.
        batch = run.bench.start_beside(
            ["taskset", "-c", str(side.SERVER_CPU), run.bench.compiled("wave"), "10", "10",
             str(SETTLE + run.seconds)])
    one = run.finish_interactive(load, is_shared=True)
    if batch:
        batch.communicate(timeout=run.seconds + 60)
    one.values["moved"] = int(side.stats(server.port, "qos")["migrations_total"])
    return one


def case(run):
    both = f"{side.SERVER_CPU},{side.CLIENT_CPU}"
    samples = {}
    for turn, names in run.turns(VARIANTS):
        for what, upset in UPSETS.items():
            for name in names:
                with run.server(name, VARIANTS[name], cpus=both,
                                threads=upset.threads) as server:
                    one = run.until_valid(f"round {turn} {what} {name}",
                                          lambda: measure(run, server, upset))
                samples.setdefault((name, what), []).append(one)
    for name in VARIANTS:
        base = side.median(values(samples[name, BALANCED], "p99"))
        for what in UPSETS:
            runs = samples[name, what]
            yield [name, what, side.spread(values(runs, "p99"), "{:.0f}"),
                   "" if what == BALANCED else
                   side.spread([p99 / base for p99 in values(runs, "p99")]),
                   f"{TARGET:g}" if name == "on" and what != BALANCED else "",
                   f"{side.median(values(runs, 'mean')):.0f}",
                   f"{side.median(values(runs, 'moved')):.0f}",
                   f"{side.median(values(runs, 'client_cpu')):.0%}", verdict(runs)]
