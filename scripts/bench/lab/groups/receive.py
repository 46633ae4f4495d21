# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Which CPU processes received packets: the server's, the other one, or both. Server and client are in
a network namespace whose loopback device steers packets (RPS)."""
import contextlib
import ctypes
import os
import subprocess

import side_by_side as side

from .. import beside
from ..rows import Point, Row
from ..work import SEVERAL

CLIENTS = (1, 2, 4, 8, 16)
NEW_NET = 0x40000000  # CLONE_NEWNET
SHIELDED = 1.2        # times, at 16 clients
NEIGHBOUR = 2         # times the loss of a batch job on the other CPU
LOAD = 0.5            # of the peak, beside that job
WHERE = ("server", "other", "both")

SET_UP = """set -e
ip link set lo up
mount -t sysfs lab "$1"
echo "$2" >"$1/class/net/lo/queues/rx-0/rps_cpus"
"""


def mask_of(where):
    server, other = 1 << side.SERVER_CPU, 1 << side.CLIENT_CPU
    words = f"{ {'server': server, 'other': other, 'both': server | other}[where]:x}"
    # Words of 32 bits, with commas.
    parts = [words[max(0, end - 8):end] for end in range(len(words), 0, -8)]
    return ",".join(reversed(parts))


@contextlib.contextmanager
def steered(lab, where):
    """All that is started within the block is in a network of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home:
        if libc.unshare(NEW_NET) != 0:
            side.fail(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        try:
            mount = os.path.join(lab.bench.work, "sys")
            os.makedirs(mount, exist_ok=True)
            # The mount is gone with the shell.
            subprocess.run(["unshare", "--mount", "sh", "-c", SET_UP, "sh", mount, mask_of(where)], check=True)
            yield
        finally:
            if libc.setns(home.fileno(), NEW_NET) != 0:
                side.fail(f"the network namespace cannot be left: {os.strerror(ctypes.get_errno())}")


def own(one):
    """A packet that comes while a CPU is idle is processed by no process: none of the others was it."""
    one.faults = [fault for fault in one.faults if not fault.startswith("others used")]
    return one


def peak(where, clients):
    def run(lab):
        with steered(lab, where), lab.bare_server(["-t", "1"]) as server:
            return own(lab.flat_out(server, *SEVERAL, "-c", clients, limit=None))
    return run


def neighbour(where):
    """What a batch job on the other CPU loses while the server has its load, of what it would do in the time
    that the client leaves."""
    def run(lab):
        job = beside.Job(("code", str(4 << 10)), "client")
        alone = beside.alone(lab, beside.Job(job.argv))
        with steered(lab, where), lab.bare_server(["-t", "1"]) as server:
            rate = lab.base("server-16", "rate") * LOAD
            with beside.running(lab, job) as started:
                one = lab.paced(server, rate, *SEVERAL, "-c", 16, is_shared=True)
        one.values["lost"] = max(0.0, 1 - started[0].work / (alone * (1 - one.values["client_cpu"])))
        return own(one)
    return run


def points(lab):
    for clients in (1, 16) if lab.quick else CLIENTS:
        for where in WHERE:
            yield Point(f"{where}-{clients}", peak(where, clients), needs=("root",))
    for where in WHERE[:2]:
        yield Point(f"neighbour-{where}", neighbour(where), needs=("root",))


def shielded(points):
    ratio = points.ratio("other-16", "server-16", "rate")
    return f"shielded {ratio:.2f}x at 16 clients", {f"shielded is {SHIELDED}x": ratio >= SHIELDED}


def plots(points):
    words = {"server": "on the server's CPU", "other": "on the other CPU", "both": "on both"}
    yield ("curves", "Where received packets are processed", "clients", "MB/s", {
        words[where]: points.curve(where + "-{}", CLIENTS, "bytes", 1e-6) for where in WHERE}, "linear", "linear")


def spread(points):
    both, other = (points.ratio(f"{where}-16", "server-16", "rate") for where in ("both", "other"))
    return f"both CPUs {both:.2f}x the server's, the other one {other:.2f}x", {
        "a second CPU for packets brings more": both > 1}


def affinity(points):
    names = ["neighbour-server", "neighbour-other"]
    own, other = (points(name, "lost") for name in names)
    beyond = points.by_round(names, "lost", lambda lost: lost[1] - NEIGHBOUR * lost[0])
    return f"a job on the other CPU loses {own:.0%}, and {other:.0%} when packets are processed there", {
        f"it loses {NEIGHBOUR}x without affinity": beyond >= 0 and other > 0}


ROWS = [
    Row("SF Fig 9", "shielded receiving", "138, not 70 MB/s with interrupts on other CPUs",
        f"packets received on the other CPU: >= {SHIELDED}x at 16 clients", shielded, plots, ("cpus", "root")),
    Row("SF Fig 6, 8", "CPUs for receiving", "more CPUs for interrupts do more; remote -31 %",
        "packets received on two CPUs: more than on the server's alone", spread, needs=("cpus", "root")),
    Row("D 2.4 RSS", "flow affinity", "without RSS <= 500K packets/s; affinity off helps at part load and harms others",
        f"a batch job on the other CPU loses >= {NEIGHBOUR}x when packets are received there", affinity,
        needs=("cpus", "root")),
]
