# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Where a busy server's CPU time goes: user code, the kernel, receiving packets."""
import side_by_side as side

from ..rows import Point, Row

KERNEL = 0.7


def cpu_ticks(cpu):
    """(system, softirq) ticks of that CPU so far."""
    with open("/proc/stat") as f:
        fields = next(line.split() for line in f if line.startswith(f"cpu{cpu} "))
    return int(fields[3]) + int(fields[6]) + int(fields[7]), int(fields[7])


def measure(debian):
    def run(lab):
        with lab.bare_server(["-t", "1"], debian) as server:
            before = cpu_ticks(side.SERVER_CPU)
            one = lab.flat_out(server)
            system, soft = (now - then for now, then in zip(cpu_ticks(side.SERVER_CPU), before))
            one.values["softirq"] = soft / max(system, 1)
            return one
    return run


def points(_lab):
    yield Point("ours", measure(False))
    yield Point("theirs", measure(True), needs=("memcached",))


def share(points):
    kernel, soft = points("ours", "system"), points("ours", "softirq")
    return f"{kernel:.0%} in the kernel, {soft:.0%} of it softirq", {
        f"{KERNEL:.0%} of the time in the kernel": kernel >= KERNEL}


ROWS = [Row("E 3.2.2", "time in the kernel", "83 % in the kernel, 37 % of it softirq",
            f"single gets at the peak: {KERNEL:.0%} or more of the server's CPU time in the kernel", share)]
