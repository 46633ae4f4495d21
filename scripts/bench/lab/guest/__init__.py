# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Other kernels, in deterministic time: Debian's kernels in a virtual machine without KVM whose clock
counts instructions, so that the load of this machine does not matter; with this build's memcached and
mcload."""
import json
import os
import platform
import subprocess
import sys

from . import kernels, machine
from .experiments import EXPERIMENTS, SAME, SCHEDULERS, difference, missing, plan

TOP = os.path.realpath(os.path.join(machine.HERE, "../../../.."))


def arguments(parser):
    parser.add_argument("kernel", metavar="KERNEL",
                        help="; ".join(f"{name}: {suite}'s, {what}"
                                       for name, (suite, what) in kernels.KERNELS.items())
                        + "; or the path of one")
    parser.add_argument("experiment", metavar="EXPERIMENT", choices=[*EXPERIMENTS],
                        help="; ".join(f"{name}: {e.what}" for name, e in EXPERIMENTS.items()))
    parser.add_argument("--sched", metavar="NAME", action="append", choices=[*SCHEDULERS], default=[],
                        help=f"of {', '.join(SCHEDULERS)}; may be repeated; all are the default")
    parser.add_argument("--runs", metavar="N", type=int, choices=range(1, 10), default=1,
                        help="of each; their largest difference is told (1)")
    parser.add_argument("--build", metavar="DIR", default=os.path.join(TOP, "build"),
                        help="with memcached/memcached and loadgen/mcload (build)")
    parser.add_argument("--folder", metavar="DIR", default=os.path.join(TOP, "build/lab"),
                        help="for kernels and results (build/lab)")
    parser.add_argument("--plan", action="store_true",
                        help="print what the guest is to do, and boot none")


def measure(experiment, sched, kernel, args):
    """The result of one scheduler: the points of a run, and by how much others differ."""
    lines = list(plan(experiment, SCHEDULERS[sched]))
    files = machine.contents(args.build, "\n".join(lines) + "\n")
    if SCHEDULERS[sched].rules is not None:
        files |= machine.bvt(os.path.join(TOP, "patches/sched_ext-bvt"), os.path.join(args.folder, "bvt"))
    runs = [machine.points_of(machine.boot(kernel, files)) for _ in range(args.runs)]
    release, points, errors = runs[0]
    errors |= missing(lines, points)
    result = {"kernel": release, "sched": sched, "points": points, "errors": errors,
              "runs": args.runs, "difference": max(difference(points, other[1]) for other in runs)}
    if not errors:
        result["verdict"] = experiment.judge(points)
    return result


def show(result):
    print(f"{result['kernel']} {result['sched']}")
    for name, why in result["errors"].items():
        print(f"    {name}: {why}")
    for name, values in result["points"].items():
        if values is not None:
            late = values.get("begun_us", values.get("done_us", values))
            print(f"    {name:<16} " + "  ".join(f"{key} {value}" for key, value in late.items()))
    if "verdict" in result:
        print("    " + json.dumps(result["verdict"]))
    if result["runs"] > 1:
        words = "the same within 1 %" if result["difference"] <= SAME else "NOT the same"
        print(f"    {result['runs']} runs differ by {result['difference']:.2%}: {words}")


def commit():
    run = subprocess.run(["git", "-C", TOP, "rev-parse", "--short", "HEAD"], capture_output=True,
                         text=True, check=False)
    return run.stdout.strip() or None


def save(result, args):
    name = f"guest-{os.path.basename(args.kernel)}-{args.experiment}-{result['sched']}.json"
    path = os.path.join(args.folder, name)
    os.makedirs(args.folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"experiment": args.experiment, "commit": commit(), "host": platform.release(),
                   "qemu": machine.output(machine.QEMU, "--version").splitlines()[0], **result}, f,
                  indent=1)
    print(path)


def run(args):
    experiment = EXPERIMENTS[args.experiment]
    names = args.sched or list(SCHEDULERS)
    if args.plan:
        for name in names:
            print(f"# {name}", *plan(experiment, SCHEDULERS[name]), sep="\n")
        return
    try:
        machine.needed(machine.QEMU, "qemu-system-x86")
        kernel = kernels.fetch(args.kernel, args.folder)
        for name in names:
            result = measure(experiment, name, kernel, args)
            show(result)
            save(result, args)
    except machine.Refused as why:
        print(f"scripts/lab guest: {why}", file=sys.stderr)
        sys.exit(1)
