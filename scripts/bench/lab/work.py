# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Groups at work: the runner of scripts/bench-qos, which stores what each point measured and
goes on where it was interrupted."""
import contextlib
import functools
import os
import time
from dataclasses import dataclass

import side_by_side as side
from qos.runner import (CLIENT_CPU_MAX, LAG_P99_MAX_US, MEMORY, SERVER_CPU_MIN, SMALL, Run, Runner,
                        Watch, is_realtime, may_be_realtime)
from qos.scheduling import Groups

from . import machine as machines

GOAL = "p95:500us"  # of the papers
# Gets of so many keys that a client with a CPU of its own can offer all of what the server can do:
# of single gets both do the same, send, receive and wake up.
SEVERAL = [*SMALL, "--getcount=100"]
# The client takes some 10 us to read the reply to one of these; what is due meanwhile is late, as it
# would be with any client, and by a part of the latencies that is no more than this.
LATE_PART = 0.5
ALL_CPUS_MIN = 0.95  # of a run in which the machine is to be the limit
CLIENT_THREADS = 1
ROUNDS, SECONDS = 5, 5
NOT_REALTIME = "client not SCHED_FIFO"
NAMED = 5  # points of a group, where it is told what is not measured
STARTING_S = 1.5  # of a run, for its servers to start and to be filled


def uses_all(server, client, threads, cpus):
    """Whether servers of so many threads were the limit, or the CPUs were that they and the client can use; server, client:
    CPUs that they used."""
    return server >= SERVER_CPU_MIN * threads or server + client >= ALL_CPUS_MIN * min(cpus, threads + CLIENT_THREADS)


@dataclass(frozen=True)
class Together:
    """Servers that share the load, as one."""
    servers: tuple
    name = "servers"

    def target(self):
        return ",".join(server.target() for server in self.servers)

    def cpu(self):
        return tuple(map(sum, zip(*(server.cpu() for server in self.servers))))

    def waited(self):
        return max(server.waited() for server in self.servers)

    def preempted(self):
        return sum(server.preempted() for server in self.servers)


class Lab(Runner):
    """shared: an ExitStack that is left when all that bench has started is ended."""

    def __init__(self, bench, args, machine, store, shared):
        super().__init__(bench, args, ROUNDS, SECONDS)
        self.machine, self.store, self.retries_of_point = machine, store, self.retries
        if not may_be_realtime():
            self.realtime = []
        self.group, self.turn, self.base_is_valid = None, None, True
        self.kept = set()  # (group, point, round) that are not to be measured again
        self.done = self.total = 0
        self.began = time.monotonic()
        self.shared = shared

    @staticmethod
    def lag_max_us(result):
        return max(LAG_P99_MAX_US, LATE_PART * side.p99_of(result))

    # ---- points of a group ------------------------------------------------------------

    def run(self, groups, only=()):
        """Measures what is missing of them; groups: {name: module}; only: names of points."""
        todo = [(name, turn + 1, point) for name, group in groups.items()
                for turn in range(self.rounds) for point in group.points(self)
                if not only or point.name in only]
        unknown = set(only) - {point.name for _, _, point in todo}
        if unknown:
            side.fail(f"no such point: {', '.join(sorted(unknown))}")
        self.say_lacking({(name, point.name): point.needs for name, _, point in todo})
        todo = [one for one in todo if not self.machine.lacks(one[-1].needs)]
        stored = {name: self.store.latest(name) for name in groups}
        todo = [(name, turn, point) for name, turn, point in todo
                if stored[name].get((point.name, turn), ["missing"]) and (name, point.name, turn) not in self.kept]
        self.total = sum(point.cost for _, _, point in todo)
        self.say(f"{len(todo)} points to measure, about {self.total * (self.seconds + STARTING_S) / 60:.0f} min"
                 if todo else "everything is measured")
        for self.group, self.turn, point in todo:
            self.measure(point)

    def say_lacking(self, needs):
        """needs: {(group, point): what it needs}"""
        lacking = {}
        for (group, point), wanted in needs.items():
            for what in self.machine.lacks(wanted):
                lacking.setdefault(what, {}).setdefault(group, []).append(point)
        for what, groups in lacking.items():
            self.say(f"not measured, needs {what}: " + "; ".join(
                f"{group}, {', '.join(points) if len(points) <= NAMED else f'{len(points)} points'}"
                for group, points in groups.items()))

    def measure(self, point):
        start = time.monotonic()
        self.base_is_valid, self.retries = True, self.retries_of_point
        one = self.until_valid(f"{self.group}, round {self.turn}: {point.name}", lambda: point.measure(self))
        if not self.base_is_valid:
            one.faults.append("the peak that the load is a part of was invalid")
        self.store.put(self.group, point.name, self.turn, one, time.monotonic() - start)
        self.done += point.cost
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done)
        self.say(f"  {self.done / self.total:.0%}, {left / 60:.0f} min left")

    def base(self, point, value):
        """What this round of a point of this group measured: rates are parts of it, as the speed of a machine
        differs from round to round."""
        for run in self.store.runs(self.group).get(point, []):
            if run.turn == self.turn:
                self.base_is_valid &= not run.faults
                return run.values[value]
        return side.fail(f"{self.group}: what is measured needs the point {point} first")

    @functools.cached_property
    def cpu_groups(self):
        """Control groups of the same share, for a server and a batch job."""
        return self.shared.enter_context(Groups())

    @property
    def threads(self):
        """Numbers of threads: up to twice the CPUs as far as the papers go, and always as many as CPUs and one more."""
        cpus = len(self.machine.cpus)
        return list(range(1, 5)) if cpus < 4 else sorted({1, 2, cpus, cpus + 1, *range(4, min(24, 2 * cpus) + 1, 2)})

    @property
    def every_cpu(self):
        return ",".join(map(str, self.machine.cpus))

    # ---- servers ----------------------------------------------------------------------

    @contextlib.contextmanager
    def bare_server(self, options=(), debian=False, cpus=None, fill=SMALL, memory=MEMORY):
        """A memcached with other records than the usual."""
        program = self.bench.debian() if debian else self.bench.ours()
        server = self.bench.start_memcached("theirs" if debian else "ours", program,
                                            [*memory, *options], cpus)
        self.bench.fill(server, *fill)
        yield server
        self.bench.end_server(server)

    @contextlib.contextmanager
    def redis(self):
        port = side.free_port()
        server = side.Server("Redis", [machines.program("redis-server"), "--port", str(port), "--bind",
                                       "127.0.0.1", "--save", "", "--appendonly", "no"], port)
        self.bench.servers.append(server)
        self.bench.fill(server, "--protocol=redis", *SMALL)
        yield server
        self.bench.end_server(server)

    @contextlib.contextmanager
    def nginx(self, size=200):
        """It answers every key with the same value."""
        port = side.free_port()
        path = os.path.join(self.bench.work, "nginx.conf")
        with open(path, "w") as f:
            f.write(f"daemon off; master_process off; pid {self.bench.work}/nginx.pid; error_log stderr crit;\n"
                    "events { worker_connections 4096; }\n"
                    f"http {{ access_log off; keepalive_requests 1000000000; "
                    f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 {'v' * size}; }} }} }}\n")
        server = side.Server("NGINX", [machines.program("nginx"), "-p", self.bench.work, "-c", path], port)
        self.bench.servers.append(server)
        yield server
        self.bench.end_server(server)

    # ---- measurements -----------------------------------------------------------------

    def watched(self, server, options, timeout, is_shared=False, needs_priority=True):
        """(result of mcload, seconds that the server used: all, user, system; faults of the
        machine; what Watch counts for each request)."""
        watch, before = Watch(self.bench, server), server.cpu()
        priority = self.realtime if needs_priority else []
        load = self.bench.start_load(server, "--noload", "-T", CLIENT_THREADS, *priority, *options)
        time.sleep(0.2)
        faults = [] if not needs_priority or is_realtime(load.pid) else [NOT_REALTIME]
        result = self.bench.finish_load(load, timeout)
        used = [now - then for now, then in zip(server.cpu(), before)]
        return (result, used, faults + watch.server_cpu(is_shared)[1],
                watch.per_request(side.requests_of(result)))

    def flat_out(self, server, *options, is_shared=False, limit="server"):
        """A closed loop: rate, latencies, CPU time. limit: what has to be used up, "server" (its
        CPU), a number (all that so many threads of servers can use) or None; the client alone never."""
        # A CPU of its own is enough; with a priority the kernel would keep 5 % of that idle.
        result, used, faults, counted = self.watched(
            server, ["-t", self.seconds, "-c", 32, *SMALL, *options], self.seconds + 60, is_shared,
            needs_priority=is_shared)
        client = side.client_cpu_of(result, polling=True)
        rate, seconds = side.rate_of(result), result["totals"]["seconds"]
        run = Run({"rate": rate, "p50": side.quantile_of(result, "p50"), "p95": side.p95_of(result),
                   "p99": side.p99_of(result), "bytes": side.received_of(result),
                   "server_cpu": used[0] / seconds, "client_cpu": client,
                   "system": used[2] / max(used[1] + used[2], 1e-9),
                   "us": used[0] / max(side.requests_of(result), 1) * 1e6, **counted}, faults)
        if isinstance(limit, int) and not uses_all(used[0] / seconds, client, limit, len(self.machine.cpus)):
            run.faults.append(f"all CPUs together {used[0] / seconds + client:.0%}")
        is_used_up = used[0] / seconds >= SERVER_CPU_MIN
        if limit == "server" and not is_used_up:
            run.faults.append(f"server CPU {used[0] / seconds:.0%}")
        if limit is None and not is_used_up and client >= CLIENT_CPU_MAX:
            run.faults.append(f"client CPU {client:.0%}")
        return run

    def search(self, server, *options, is_shared=False, may_be_capped=False, may_differ=False):
        """The rate at which the goal of the papers is kept (QoS-QPS), and the peak. may_be_capped: the
        client may be the limit, which "capped" says: the server would keep the goal at a higher rate.
        may_differ: where runs at the same rate now keep the goal and now do not, none keeps it."""
        tolerance, budget = ("5%", 12) if self.quick else ("2%", 16 * self.seconds)
        each = 1 if self.quick else max(1, self.seconds // 2)
        result, _, faults, _ = self.watched(
            server, ["-t", each, "-c", 32, f"--search={GOAL}", f"--search-tolerance={tolerance}",
                     f"--search-budget={budget}", *SMALL, *options], 3 * budget + 120, is_shared)
        found = result["search"]
        is_capped = found["bound"] == "client"
        run = Run({"qos": found["qps"] if found["found"] else 0.0, "rate": found["peak_qps"],
                   "capped": float(is_capped)}, faults)
        if found["met"] and not found["found"] and not may_differ:
            run.faults.append("the search: runs at the same rate differ")
        if is_capped and not may_be_capped:
            run.faults.append("the client was the limit of the search")
        return run

    def start_paced(self, server, rate, *options):
        return self.start_interactive(server, *options, rate=max(int(rate), 1))

    def finish_paced(self, load, rate, is_shared=False):
        one = self.finish_interactive(load, is_shared=is_shared)
        one.values["rate"] = rate
        if not self.realtime:
            one.faults.append(NOT_REALTIME)
        return one

    def paced(self, server, rate, *options, is_shared=False):
        """An open loop at that rate: latencies, with all gates."""
        return self.finish_paced(self.start_paced(server, rate, *options), rate, is_shared)
