# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What `stats qos` says of the room that is left, beside what there is."""
import time

import side_by_side as side

from .runner import SEVERAL, values, verdict

HEAD = ["load", "gets/s", "server CPU", "utilisation shown", "capacity shown x peak",
        "p95 us: predicted", "at the client", "client CPU", "validity"]
LOADS = (0.02, 0.2, 0.4, 0.6, 0.8)  # at the first none waits
CONNECTIONS = 32
WINDOW = 2  # seconds that the gauge covers at most


def measure(run, server, rate):
    """The gauge is read when all that it covers is of the run."""
    load = run.start_interactive(server, "-c", CONNECTIONS, *SEVERAL, rate=rate)
    time.sleep(max(min(WINDOW, run.seconds / 2), run.seconds - 1))
    shown = side.stats(server.port, "qos")
    one = run.finish_interactive(load)
    for name in ("qos_utilisation_pct", "qos_capacity_now", "qos_predicted_p95_us"):
        one.values[name] = float(shown[name])
    return one


def case(run):
    samples = {}
    with run.server("ours") as server:
        peak = run.until_valid("peak", lambda: run.peak(server, *SEVERAL)).values["rate"]
        for turn in range(run.rounds):
            for load in run.some(LOADS):
                one = run.until_valid(f"round {turn + 1} at {load:.0%}",
                                      lambda: measure(run, server, int(peak * load)))
                samples.setdefault(load, []).append(one)
    for load, runs in samples.items():
        yield row(peak, load, runs)


def row(peak, load, runs):
    def spread(name, form, scale=1):
        return side.spread([value * scale for value in values(runs, name)], form)

    return [f"{load:.0%}", f"{int(peak * load):,}", spread("server_cpu", "{:.0%}"),
            spread("qos_utilisation_pct", "{:.0%}", 0.01),
            spread("qos_capacity_now", "{:.2f}", 1 / peak),
            spread("qos_predicted_p95_us", "{:.0f}"), spread("p95", "{:.0f}"),
            spread("client_cpu", "{:.0%}"), verdict(runs)]
