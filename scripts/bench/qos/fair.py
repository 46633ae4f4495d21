# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""A tenant with many connections beside one with few."""
import side_by_side as side

from .neighbours import Neighbour, multigets, prepare, store
from .runner import CLIENT_CPU_MAX, SERVER_CPU_MIN, Run, Watch, values, verdict

HEAD = ["server", "requests/s, many", "requests/s, few", "few of many", "target", "server CPU", "client CPU",
        "validity"]
WARMUP = 1
KEYS = 15
MANY, FEW = 1000, 10  # connections
OFF, FAIR, DEBIAN = "--fair=off", "--fair=prefix", "Debian's memcached"
VARIANTS = {OFF: {"options": [OFF]}, FAIR: {"options": [FAIR]}, DEBIAN: {"debian": True}}
TARGET = {FAIR: ">= 0.90"}


def tenant(name, connections):
    """Its keys begin with its name."""
    stores = [store(name + b":", i, 100) for i in range(10000)]
    return Neighbour(connections, 1, list(multigets(KEYS, 10000, 500, name + b":")), stores, "small", 1)


def measure(run, server, tenants):
    clients = [run.bench.start_greedy(server, one, WARMUP, run.seconds) for one in tenants]
    watch = Watch(run.bench, server)
    told = []
    for client in clients:
        output, _ = client.communicate(timeout=WARMUP + run.seconds + 60)
        if client.returncode != 0:
            side.fail(f"greedy against {server.name} ended with {client.returncode}")
        told.append([float(word) for word in output.split()])
    cpu, faults = watch.server_cpu()
    client = sum(share for _, _, share in told)
    many, few = (requests / seconds for requests, seconds, _ in told)
    if cpu < SERVER_CPU_MIN:
        faults.append(f"server CPU {cpu:.0%}")
    if client >= CLIENT_CPU_MAX:
        faults.append(f"client CPU {client:.0%}")
    return Run({"many": many, "few": few, "ratio": few / many, "server_cpu": cpu, "client_cpu": client}, faults)


def case(run):
    samples = {}
    tenants = [tenant(b"many", MANY), tenant(b"few", FEW)]
    for turn, names in run.turns(VARIANTS):
        for name in names:
            with run.server(name, **VARIANTS[name]) as server:
                for one in tenants:
                    prepare(server, one)
                samples.setdefault(name, []).append(run.until_valid(
                    f"round {turn} {name}", lambda: measure(run, server, tenants)))
    for name in VARIANTS:
        runs = samples[name]
        yield [name, *(side.spread(values(runs, what), "{:.0f}") for what in ("many", "few")),
               side.spread(values(runs, "ratio")), TARGET.get(name, ""),
               *(f"{side.median(values(runs, what)):.0%}" for what in ("server_cpu", "client_cpu")),
               verdict(runs)]
