# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Servers side by side on CPU 0 and mcload on CPU 1, for scripts/bench-*."""
import argparse
import contextlib
import glob
import json
import math
import os
import pwd
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
SERVER_CPU = 0
CLIENT_CPU = 1
WIDE = 200  # columns of a table in a document that nobody reads as it stands: it is not padded
TICK = os.sysconf("SC_CLK_TCK")


def fail(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def number(kind, holds, says):
    """A type for argparse."""
    def parse(text):
        try:
            if holds(kind(text)):
                return kind(text)
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text} is not a number {says}")
    return parse


count = number(int, lambda value: value >= 1, "from 1")
natural = number(int, lambda value: value >= 0, "from 0")
positive = number(float, lambda value: 0 < value < math.inf, "above 0")


def need_two_cpus():
    allowed = os.sched_getaffinity(0)
    if not {SERVER_CPU, CLIENT_CPU} <= allowed:
        fail(f"needs CPUs {SERVER_CPU} and {CLIENT_CPU}, has {sorted(allowed)}")


def cpus_in(text):
    """Of a list of the kernel's, such as 0,2-5."""
    parts = [part.split("-") for part in text.strip().split(",")]
    return {n for part in parts for n in range(int(part[0]), int(part[-1]) + 1)}


def siblings_of(cpu):
    """The CPUs that share its core, with itself; as far as the kernel tells."""
    try:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
            return cpus_in(f.read())
    except OSError:
        return {cpu}


def choose_two_cpus(server=None):
    """Any two that this process may use, on cores of their own if there are such; server: the
    one for the server."""
    global SERVER_CPU, CLIENT_CPU
    allowed = sorted(os.sched_getaffinity(0))
    if server is not None and server not in allowed:
        fail(f"CPU {server} is none of those that may be used: {allowed}")
    SERVER_CPU = allowed[0] if server is None else server
    others = [cpu for cpu in allowed if cpu != SERVER_CPU]
    if not others:
        fail("needs two CPUs, one for the server and one for its clients; has one")
    CLIENT_CPU = ([cpu for cpu in others if cpu not in siblings_of(SERVER_CPU)] or others)[0]


CLAIMS = []  # to ports, for as long as this process runs


def free_port():
    """One that the kernel gives to nobody who asks for any, and no other script or test takes meanwhile."""
    while True:
        port = random.randrange(20000, 30000)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0mctest-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
            CLAIMS.append(claim)
            return port
        except OSError:
            claim.close()


def unprivileged():
    """The option that lets root start a memcached."""
    if os.geteuid() != 0:
        return []
    for name in ("memcache", "memcached", "nobody"):
        try:
            return ["-u", pwd.getpwnam(name).pw_name]
        except KeyError:
            pass
    return ["-u", "root"]


def schedstats_of(pid):
    """Of each thread: seconds that it has been on a CPU, and ready but without one."""
    stats = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            used, waited = f.read().split()[:2]
            stats.append((int(used) / 1e9, int(waited) / 1e9))
    return stats


def cpu_time_of(pid):
    """Seconds that the process has been on a CPU."""
    return sum(used for used, _ in schedstats_of(pid))


def preemptions_of(pid):
    """How often its threads had to leave a CPU that they wanted to keep."""
    found = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            found += next(int(line.split()[1]) for line in f if line.startswith("nonvoluntary_ctxt_switches"))
    return found


def children_of(pid):
    """Of all its threads."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path) as f:
            found += f.read().split()
    return found


def cpu_time_of_ended(pid):
    """Of the children that the process has waited for."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / TICK


def cpu_time_with_children(pid):
    """Of the process and all that come from it, those that have ended included."""
    try:
        while True:
            ended = cpu_time_of_ended(pid)
            used = cpu_time_of(pid) + sum(map(cpu_time_with_children, children_of(pid)))
            if cpu_time_of_ended(pid) == ended:  # else one ended meanwhile, and is in neither or in both
                return used + ended
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it is among those that have ended


class Server:
    """A process on some CPUs that answers on self.port, or on the UNIX socket self.path."""

    def __init__(self, name, argv, port, cpus=None, path=None, patience=60, pause=0.05, realtime=0):
        """patience: seconds until it must answer; pause: between one attempt and the next;
        realtime: its priority at SCHED_RR."""
        self.name = name
        self.port = port
        self.path = path
        self.patience = patience
        self.said = tempfile.TemporaryFile()
        if realtime:
            argv = ["chrt", "--rr", str(realtime)] + argv
        self.process = subprocess.Popen(["taskset", "-c", str(SERVER_CPU if cpus is None else cpus)] + argv,
                                        stdin=subprocess.DEVNULL, stdout=self.said,
                                        stderr=subprocess.STDOUT)
        try:
            self.await_start(argv, pause)
        except BaseException:  # also when this program is told to end
            self.stop()
            raise

    def await_start(self, argv, pause):
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self.connect()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.said.seek(0)
                    fail(f"{self.name} did not start: {' '.join(argv)}\n"
                         f"{self.said.read().decode()}")
                time.sleep(pause)

    def connect(self):
        if self.path is None:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        else:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.path)

    def where(self):
        """For small clients."""
        return self.path or str(self.port)

    def target(self):
        """For mcload -s."""
        return f"unix:{self.path}" if self.path else f"127.0.0.1:{self.port}"

    def cpu(self):
        """Seconds on a CPU so far: (all, user, system); the first is exact."""
        exact = cpu_time_of(self.process.pid)
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return exact, int(fields[11]) / TICK, int(fields[12]) / TICK

    def waited(self):
        """Seconds that its busiest thread was ready but without a CPU so far, if all share one:
        but for those in which another thread of its own had it."""
        *others, (_, waited) = sorted(schedstats_of(self.process.pid))
        return waited - sum(used for used, _ in others)

    def preempted(self):
        return preemptions_of(self.process.pid)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(self.patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def end_on_signals(words=None):
    """As an exception, so that what was started is ended."""
    def end(number, _):
        if words:
            print(words, file=sys.stderr)
        sys.exit(128 + number)

    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, end)


class Bench:
    """Starts servers and mcload; ends all of them when the block is left."""

    def __init__(self, build):
        self.build = os.path.realpath(build)
        self.mcload = os.path.join(self.build, "loadgen/mcload")
        self.servers = []
        self.started = []
        self.awake = None
        self.greedy_prefix = []  # how greedy.c is to be run
        for tool in (self.mcload, self.ours()):
            if not os.access(tool, os.X_OK):
                fail(f"{tool} is not built (scripts/build)")
        self.work = tempfile.mkdtemp(prefix="bench-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for server in self.servers:
            server.stop()
        if self.awake:
            self.awake.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def ours(self):
        return os.path.join(self.build, "memcached/memcached")

    @staticmethod
    def installed():
        return shutil.which("memcached", path="/usr/bin:/usr/sbin:/usr/local/bin")

    def debian(self):
        return self.installed() or fail("no memcached package is installed (scripts/deps --ci)")

    def start_memcached(self, name, program, options, cpus=None, **how):
        """how: as Server's."""
        port = free_port()
        argv = [program, "-l", "127.0.0.1", "-p", str(port), "-U", "0"]
        server = Server(name, argv + unprivileged() + options, port, cpus, **how)
        self.servers.append(server)
        return server

    def end_server(self, server):
        server.stop()
        self.servers.remove(server)

    def start_beside(self, argv, **options):
        """Another program, ended with the block at the latest."""
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, **options)
        self.started.append(process)
        return process

    def keep_awake(self):
        """No CPU sleeps until the block is left: to wake a virtual one takes its host longer
        than a get takes. Without the right to ask the kernel for it they sleep."""
        try:
            self.awake = open("/dev/cpu_dma_latency", "wb", buffering=0)
            self.awake.write(struct.pack("i", 0))
        except OSError as error:
            why = ("only root can forbid it" if isinstance(error, PermissionError)
                   else str(error))
            print(f"CPUs may sleep ({why}): latencies include waking them", file=sys.stderr)

    @contextlib.contextmanager
    def may_sleep(self):
        """CPUs may, for as long as the block."""
        if self.awake:
            self.awake.close()
        try:
            yield
        finally:
            self.keep_awake()

    def cpu_used(self):
        """Seconds on a CPU so far of all that this bench has started, and of itself."""
        processes = [server.process for server in self.servers] + self.started
        # poll() makes one that has ended a child of RUSAGE_CHILDREN: before that is read.
        alive = [p for p in processes if p.poll() is None]
        used = sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
        return used + sum(cpu_time_with_children(p.pid) for p in alive)

    def compiled(self, name):
        """The program of scripts/bench/NAME.c."""
        program = os.path.join(self.work, os.path.basename(name))
        if not os.path.exists(program):
            subprocess.run([*os.environ.get("CC", "cc").split(), "-O2", "-std=gnu11", "-pthread", "-o", program,
                            os.path.join(TOP, f"scripts/bench/{name}.c"), "-lm"], check=True)
        return program

    def preload(self, name):
        """The library of t/preload/NAME.c."""
        path = f"t/preload/{name}.so"
        subprocess.run(["make", "-s", path], cwd=self.build, stdout=subprocess.DEVNULL, check=True)
        return os.path.join(self.build, path)

    def start_floor(self, is_unix=False):
        path = os.path.join(self.work, "socket") if is_unix else None
        port = None if is_unix else free_port()
        server = Server("floor", [self.compiled("floor"), path or str(port)], port, path=path)
        self.servers.append(server)
        return server

    def start_load(self, server, *options):
        """mcload against the server, on CLIENT_CPU; finish_load() has the result."""
        path = os.path.join(self.work, f"{len(self.started)}.json")
        argv = ["taskset", "-c", str(CLIENT_CPU), self.mcload, "-s", server.target()]
        argv += [str(option) for option in options]
        argv += [] if "--loadonly" in argv else ["--json", path]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        process.json_path = path
        self.started.append(process)
        return process

    def replay(self, server, block, connections, seconds):
        """Blocks answered in these seconds; scripts/bench/replay.c sends them, on CLIENT_CPU."""
        argv = ["taskset", "-c", str(CLIENT_CPU), self.compiled("replay"), str(server.port),
                str(connections), str(seconds)]
        result = subprocess.run(argv, input=block, stdout=subprocess.PIPE, timeout=seconds + 60)
        if result.returncode != 0:
            fail(f"replay against {server.name} failed")
        return int(result.stdout.split()[0])

    def start_greedy(self, server, neighbour, warmup, seconds):
        """scripts/bench/greedy.c against the server, on CLIENT_CPU; its output is a line of
        requests answered, seconds and share of a CPU."""
        path = os.path.join(self.work, f"{len(self.started)}.requests")
        with open(path, "wb") as f:
            f.write(b"".join(neighbour.requests))
        argv = ["taskset", "-c", str(CLIENT_CPU), *self.greedy_prefix, self.compiled("greedy"), str(server.port),
                str(neighbour.connections), str(neighbour.depth), str(warmup), str(seconds),
                str(len(neighbour.requests[0])), str(neighbour.reply_bytes), neighbour.takes]
        with open(path, "rb") as f:
            return self.start_beside(argv, stdin=f)

    def start_abuse(self, port, pattern, seconds):
        """scripts/bench/abuse.c against the port, on CLIENT_CPU; its output is a line of bytes
        sent and received, connections, seconds and share of a CPU."""
        path = os.path.join(self.work, f"{len(self.started)}.bytes")
        with open(path, "wb") as f:
            f.write(pattern.block)
        argv = ["taskset", "-c", str(CLIENT_CPU), self.compiled("abuse"), str(port),
                str(pattern.connections), str(seconds), str(pattern.chunk), str(pattern.times),
                pattern.reads, "again" if pattern.begins_again else "stay"]
        with open(path, "rb") as f:
            return self.start_beside(argv, stdin=f)

    def overload(self, server, request, connections, batch, rate, warmup, seconds):
        """What scripts/bench/overload.c, on CLIENT_CPU, says of this load on the server."""
        argv = ["taskset", "-c", str(CLIENT_CPU), self.compiled("overload"), str(server.port),
                str(connections), str(batch), str(rate), str(warmup), str(seconds)]
        result = subprocess.run(argv, input=request, stdout=subprocess.PIPE,
                                timeout=warmup + seconds + 60)
        if result.returncode != 0:
            fail(f"overload against {server.name} failed")
        return json.loads(result.stdout)

    @staticmethod
    def finish_load(process, timeout):
        """The JSON of the run. Status 3 is a run that mcload itself calls invalid (as a
        client that fills its CPU is): what was counted still counts here."""
        output, _ = process.communicate(timeout=timeout)
        if process.returncode not in (0, 3):
            fail(f"mcload ended with {process.returncode}:\n{output}")
        with open(process.json_path) as f:
            return json.load(f)

    def load(self, server, seconds, *options):
        return self.finish_load(self.start_load(server, "-t", seconds, *options), seconds + 60)

    def fill(self, server, *options):
        process = self.start_load(server, "--loadonly", *options)
        output, _ = process.communicate(timeout=300)
        if process.returncode != 0:
            fail(f"loading {server.name} ended with {process.returncode}:\n{output}")


def requests_of(result):
    """Requests answered."""
    return result["totals"]["requests"]


def rate_of(result):
    return result["totals"]["qps"]


def served_of(result):
    """Share of the requests due that were answered within the run."""
    return result["totals"]["achieved"] / result["totals"]["offered"]


def quantile_of(result, name):
    """Microseconds from the intended start; when more requests than that leaves were never
    answered, how long those were waited for; without end when none was."""
    latency = result["latency"]["intended"]
    ns = latency["pct_above"].get(name, latency["pct"].get(name))
    return float("inf") if ns is None else ns / 1e3


def duration(us):
    """For people."""
    if us == float("inf"):
        return "never"
    return f"{us:,.0f} us" if us < 10000 else f"{us / 1000:,.0f} ms"


def p99_of(result):
    return quantile_of(result, "p99")


def p95_of(result):
    return quantile_of(result, "p95")


def mean_of(result):
    """Microseconds from the intended start, of the answered."""
    return result["latency"]["intended"]["mean"] / 1e3


def max_of(result):
    """Microseconds from the intended start, of the answered."""
    return result["latency"]["intended"]["max"] / 1e3


def lag_of(result, name):
    """Microseconds that so many of the sends were late at most, by the client's own fault."""
    return result["lag"]["pct"][name] / 1e3 if result["lag"]["count"] else 0


def issue_p99_of(result):
    """Microseconds from the send; without end when more than 1 % were not answered."""
    return (result["latency"]["issue"]["pct"].get("p99") or float("inf")) / 1e3


def received_of(result):
    """Bytes received a second."""
    return result["totals"]["rx_bytes"] / result["totals"]["seconds"]


def client_cpu_of(result, polling=False):
    """Share of a CPU that the busiest sending thread used, with or without polling."""
    return max(thread["cpu" if polling else "busy"] for thread in result["threads"])


def ticks():
    """Seconds of all CPUs so far: (all, busy, kept by the host)."""
    with open("/proc/stat") as f:
        user, nice, system, idle, wait, irq, softirq, kept = map(
            int, f.readline().split()[1:9])
    busy = user + nice + system + irq + softirq
    return (busy + idle + wait + kept) / TICK, busy / TICK, kept / TICK


def switches():
    """Of all CPUs so far: (context switches, interrupts of one CPU by another)."""
    with open("/proc/stat") as f:
        switched = next(int(line.split()[1]) for line in f if line.startswith("ctxt "))
    with open("/proc/interrupts") as f:
        cpus = len(f.readline().split())
        lines = [line.split() for line in f]
    return switched, sum(sum(map(int, numbers[:cpus])) for name, *numbers in lines
                         if name in ("RES:", "CAL:") or name.startswith("IPI"))


def command(port, line):
    """The reply to a command whose reply ends with END or is one line."""
    with socket.create_connection(("127.0.0.1", port), 60) as s, s.makefile("rb") as replies:
        s.sendall(line.encode() + b"\r\n")
        got = []
        for reply in replies:
            got.append(reply.decode().rstrip())
            if not got[-1].startswith("STAT "):
                return got
    return got


def stats(port, what):
    """The lines of `stats WHAT`, {name: value}; none when the server knows no such."""
    lines = (line.split(" ", 2) for line in command(port, f"stats {what}"))
    return {line[1]: line[2] for line in lines if line[0] == "STAT"}


def resident(server):
    """Bytes."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def median(values):
    return statistics.median(values) if values else float("nan")


def spread(values, form="{:.2f}"):
    """Median and range."""
    return f"{form.format(median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def render(head, rows, markdown=False):
    table = [head] + rows
    widths = [max(len(str(row[i])) for row in table) for i in range(len(head))]
    if markdown and sum(widths) > WIDE:
        widths = [0] * len(head)

    def line(row):
        cells = [str(c).ljust(w) if i == 0 else str(c).rjust(w)
                 for i, (c, w) in enumerate(zip(row, widths))]
        return "| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip()

    lines = [line(head)]
    if markdown:
        lines.append("|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") if w else "---"
                                    for i, w in enumerate(widths)) + "|")
    lines += [line(row) for row in rows]
    return "\n".join(lines)


def section_of(name, blocks):
    first, last = (f"<!-- {name}: {end} -->\n" for end in ("begin", "end"))
    return first, first + "\n" + "\n\n".join(blocks) + "\n\n" + last, last


def put_section(path, name, blocks):
    """The section of that name in the file, in place of the one that is there."""
    first, section, last = section_of(name, blocks)
    with open(path, "a+") as f:
        f.seek(0)
        text = f.read()
        start, end = text.find(first), text.find(last)
        if start < 0 or end < start:
            text, start, end = text + "\n", len(text) + 1, len(text) + 1
        else:
            end += len(last)
        f.truncate(0)
        f.write(text[:start] + section + text[end:])


def put_markdown(path, name, title, remarks, head, rows, *after):
    put_section(path, name, [f"## {title}", "\n".join(remarks), render(head, rows, markdown=True), *after])


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo") as f:
        for text in f:
            if text.startswith("model name"):
                model = text.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} CPUs, Linux {os.uname().release.split('-')[0]}"
