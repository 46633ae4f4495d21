# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""A virtual machine whose time is the number of its instructions: what is in it, its run, and what
it has printed."""
import glob
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
QEMU = "qemu-system-x86_64"
# One nanosecond for each instruction, idle time skipped, nothing random: two runs are the same.
MACHINE = [QEMU, "-nodefaults", "-display", "none", "-machine", "q35", "-m", "512",
           "-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm",
           "-serial", "stdio", "-no-reboot"]
# Without cmpxchg16b, which leaves garbage in the flags in QEMU 7.2: an interrupt right behind it ended Linux 6.12 with a
# double fault. Without it Linux 7.3 has no memory for what BPF programs store with a task, as sched_ext-bvt does.
PROCESSOR, PROCESSOR_OF_BPF = "max,-cx16", "max"
COMMAND_LINE = ("console=ttyS0 quiet clocksource=tsc tsc=reliable nokaslr norandmaps noautogroup "
                "mitigations=off panic=-1 reboot=t")
FOLDERS = ("bin", "dev", "etc", "proc", "sys", "tmp")
FILE, FOLDER = 0o100755, 0o040755
CPU_LIMIT_S = 3600  # of the host, for a guest that does not come to its own limit (init)
PROGRAMS = ("service", "as", "quota")  # compiled for it


class Refused(Exception):
    """What it lacks, and what helps."""


def entry(name, mode, data=b""):
    """Of a cpio archive of the form newc."""
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def archive(files):
    """An initramfs of {path: bytes}, the same for the same files."""
    folders = set(FOLDERS)
    for path in files:
        parts = path.split("/")[:-1]
        folders |= {"/".join(parts[:i + 1]) for i in range(len(parts))}
    entries = [entry(path, FOLDER) for path in sorted(folders)]
    entries += [entry(path, FILE, data) for path, data in sorted(files.items())]
    return gzip.compress(b"".join(entries) + entry("TRAILER!!!", 0), 1, mtime=0)


def libraries(text):
    """The files that ldd has printed."""
    return sorted(set(re.findall(r"(/\S+) \(0x", text)))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(path):
    """A static program has none, which ldd takes for an error."""
    return libraries(subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout)


def needed(program, package):
    path = shutil.which(program)
    if path is None:
        raise Refused(f"no {program} here: scripts/deps --lab installs it (package {package})")
    return path


def stripped(path, folder):
    to = os.path.join(folder, os.path.basename(path))
    output("strip", "-o", to, path)
    return to


def contents(build, plan):
    """{path: bytes} of a guest with this build's programs, that runs this plan."""
    files = {"init": read(os.path.join(HERE, "init")), "plan": plan.encode(),
             "etc/passwd": b"root:x:0:0::/:/bin/sh\n", "etc/group": b"root:x:0:\n"}
    with tempfile.TemporaryDirectory() as folder:
        sources = [(name, os.path.join(HERE, name + ".c")) for name in PROGRAMS]
        for name, source in (*sources, ("wave", os.path.join(HERE, "../../wave.c"))):
            path = os.path.join(folder, name)
            output("gcc", "-O2", "-static", "-o", path, source, "-lm")
            files["bin/" + name] = read(path)
        built = [os.path.join(build, path) for path in ("memcached/memcached", "loadgen/mcload")]
        for path in (needed("busybox", "busybox-static"), *built):
            if not os.access(path, os.X_OK):
                raise Refused(f"no {path}: build first (doc/hacking.md), or say --build")
            for library in libraries_of(path):
                files[library.lstrip("/")] = read(library)
            files["bin/" + os.path.basename(path)] = read(stripped(path, folder))
    return files


def bvt(source, folder):
    """{path: bytes} of the scheduler of patches/, made in that folder when it is not there."""
    if not os.path.exists(os.path.join(folder, "bvt")):
        needed("mmdebstrap", "mmdebstrap")
        if subprocess.run([os.path.join(source, "build"), folder], check=False).returncode != 0:
            raise Refused(f"{source}/build {folder} failed")
    paths = [os.path.join(folder, "bvt")]
    paths += glob.glob(os.path.join(folder, "lib/*"))
    return {os.path.join("bvt", os.path.relpath(path, folder)): read(path) for path in paths}


def take(line, result):
    """Of a line that a guest has printed: its kind, and what it tells, put into the result."""
    kind, _, rest = line.strip().partition(" ")
    if kind == "@kernel":
        if result.setdefault("kernel", rest) != rest:
            raise Refused(f"the points so far are of Linux {result['kernel']}, this is {rest}: say --again")
    elif kind == "@server" and rest:
        result["server"] = rest.strip("|").replace("|", "; ")
    elif kind == "@point":
        take_point(rest, result)
    return kind


def take_point(text, result):
    try:
        name, status, said, why = re.match(r"(\S+) (\d+) (.*)@(.*)", text).groups()
        result["points"][name] = values_of(said.strip("| ")) if status == "0" else None
    except (AttributeError, ValueError) as error:
        raise Refused(f"no result of a point is '{text}'") from error
    if status != "0":
        result["errors"][name] = why.strip("| ").replace("|", "; ")


def values_of(result):
    """JSON, a share, a word, or the CSV of mcload: of its reads. What requests without a reply leave open is
    the largest that is known, at least; None without any."""
    if result.startswith("{"):
        return json.loads(result)
    if "," not in result:
        return {"share": float(result)} if result[:1].isdigit() else {"is": result}
    head, reads = (line.split(",") for line in result.split("|")[:2])
    row = dict(zip(head, reads))
    columns = {"p50": "50th", "p95": "95th", "p99": "99th", "max": "max"}
    known = [float(row[column]) for column in columns.values() if row[column]]
    if not known:
        return None
    return {"rate": float(row["qps"]), "count": int(row["count"]), "errors": int(row["errors"]),
            "valid": row["valid"] == "true",
            "done_us": {key: float(row[column] or max(known)) for key, column in columns.items()}}


def as_guest():
    """Limits that the load of this machine does not matter for. On one CPU the emulator's threads do not race: of 10 runs
    of the same one differed, on two CPUs 4 of 12."""
    os.nice(10)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))


def command(has_bpf):
    return [*MACHINE, "-cpu", PROCESSOR_OF_BPF if has_bpf else PROCESSOR, "-append", COMMAND_LINE]


def boot(kernel, files, log, has_bpf=False):
    """The lines that a guest with these files prints, as they come; all are in the log."""
    needed(QEMU, "qemu-system-x86")
    with tempfile.NamedTemporaryFile(suffix=".gz") as initramfs, open(log, "w", encoding="utf-8") as said:
        initramfs.write(archive(files))
        initramfs.flush()
        with subprocess.Popen([*command(has_bpf), "-kernel", kernel, "-initrd", initramfs.name],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", preexec_fn=as_guest) as guest:
            try:
                for line in guest.stdout:
                    said.write(line)
                    said.flush()
                    yield line
            finally:
                guest.kill()
