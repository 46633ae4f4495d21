# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""More and more connections in a closed loop: this server, Debian's memcached, Redis and NGINX,
which answers each key with the same value."""
from ..rows import Point, Row, over

COUNTS = (1, 4, 16, 64, 128, 256)
SERVERS = {"ours": "this server", "theirs": "Debian's memcached", "redis": "Redis", "nginx": "NGINX"}
NEEDS = {"ours": (), "theirs": ("memcached",), "redis": ("redis",), "nginx": ("nginx",)}
KNEE = 0.9   # of the most, where the knee is
GROWS = 1.5  # times, from the knee to the last


def started(lab, name):
    if name in ("redis", "nginx"):
        return getattr(lab, name)()
    return lab.bare_server(["-t", "1"], name == "theirs")


def measure(name, connections):
    protocol = {"redis": ["--protocol=redis"], "nginx": ["--protocol=http"]}.get(name, [])

    def run(lab):
        with started(lab, name) as server:
            return lab.flat_out(server, *protocol, "-c", connections, limit=None)
    return run


def points(lab):
    for connections in lab.some(COUNTS) + [16] * lab.quick:
        for name in SERVERS:
            yield Point(f"{name}-{connections}", measure(name, connections), needs=NEEDS[name])


def knee(points):
    for count in (1, 16, 256):
        points.of(f"ours-{count}")
    counts = [count for count in COUNTS if points.has(f"ours-{count}")]
    names = [f"ours-{count}" for count in counts]
    most = max(points(name, "rate") for name in names)
    parts = {count: points.by_round(names, "rate", lambda rates, i=i: over(rates[i], max(rates))) for i, count in enumerate(counts)}
    at = min((count for count, part in parts.items() if part >= KNEE), default=counts[-1])
    grows = points.ratio("ours-256", f"ours-{at}", "p99")
    return f"{most / 1e3:.0f}K, the knee at {at} connections, p99 {grows:.1f}x with 256", {
        "there is a knee before the last": at < COUNTS[-1],
        f"p99 grows {GROWS}x after it": grows >= GROWS}


def plots(points):
    for value, label, scale, kind in (("rate", "thousand gets/s", 1e-3, "linear"), ("p99", "p99, us", 1, "log")):
        yield ("curves", "Connections in a closed loop", "connections", label, {
            title: points.curve(name + "-{}", COUNTS, value, scale) for name, title in SERVERS.items()},
            "log", kind)


def others(points):
    ratios = {title: points.ratio("ours-16", f"{name}-16", "rate")
              for name, title in SERVERS.items() if name != "ours" and points.has(f"{name}-16")}
    points.of("nginx-16")
    return ", ".join(f"{ratio:.2f}x {title}" for title, ratio in ratios.items()), {
        f"more than {title}": ratio > 1 for title, ratio in ratios.items()}


ROWS = [
    Row("003 Fig 2", "connections", "375K, p99 below 1 ms at 84 connections, then it grows",
        f"1 to 256: the rate has a knee, p99 grows >= {GROWS}x after it", knee, plots, ("cpus",)),
    Row("004 servers", "other servers", "memcached beside NGINX as a cache",
        "16 connections, single gets: this server does more than each of the others", others, needs=("cpus", "nginx")),
]
