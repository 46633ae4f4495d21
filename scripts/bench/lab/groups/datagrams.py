# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""UDP, of which any thread takes the next request, beside TCP, whose connections stay where they
are: one thread more than CPUs, so that some are slower."""
import side_by_side as side
from qos.runner import SMALL

from ..rows import Point, Row
from ..work import SEVERAL

LOADS = (50, 60, 70)  # of each one's peak
NEEDS = ("cpus", "client")  # which takes most of one of two
# So short that the reply to a get of 100 keys is five datagrams.
FILL = [*SMALL, "-V", 20]
RECORDS = [*SEVERAL, "-V", 20]


def measure(transport, load):
    def run(lab):
        port = side.free_port()
        udp = transport == "udp"
        threads = len(lab.machine.cpus) + 1
        options = ["-t", str(threads), "--pin=none", *(["-U", str(port)] if udp else [])]
        with lab.bare_server(options, cpus=lab.every_cpu, fill=FILL) as server:
            if udp:
                server.target = lambda: f"udp://127.0.0.1:{port}"
            if load is None:
                return lab.flat_out(server, *RECORDS, is_shared=True, limit=threads)
            return lab.paced(server, lab.base(f"{transport}-peak", "rate") * load / 100, *RECORDS, "-c", 32, is_shared=True)
    return run


def points(lab):
    for transport in ("udp", "tcp"):
        yield Point(f"{transport}-peak", measure(transport, None), needs=NEEDS)
    for load in (60,) if lab.quick else LOADS:
        for transport in ("udp", "tcp"):
            yield Point(f"{transport}-{load}", measure(transport, load), needs=NEEDS)


def balanced(points):
    peak = points.ratio("udp-peak", "tcp-peak", "rate")
    points.ratio("udp-60", "tcp-60", "p95")
    ratios = {load: points.ratio(f"udp-{load}", f"tcp-{load}", "p95") for load in LOADS
              if points.has(f"udp-{load}", f"tcp-{load}")}
    return (f"UDP peak {peak:.0%} of TCP's; p95 " + ", ".join(
        f"{ratio:.2f}x TCP's at {load} %" for load, ratio in ratios.items())), {
        "p95 of UDP is below TCP's": max(ratios.values()) < 1, "the peak of UDP is lower": peak < 1}


ROWS = [Row("E 3.2.4", "UDP without imbalance", "no imbalance; peak below 30 % of TCP's",
            "p95 of UDP below TCP's at 50-70 % of each one's peak, of which UDP's is lower", balanced, needs=NEEDS)]
