# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Other kernels, in deterministic time: Debian's kernels in a virtual machine without KVM whose clock
counts instructions, so that the load of this machine does not matter; with this build's memcached and
mcload. One to four minutes of CPU time for each scheduler. Interrupted, it goes on behind the last
point."""
import itertools
import json
import os
import platform
import sys

from .. import common, store
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
                        help=f"of {', '.join(SCHEDULERS)}; may be repeated; all that the kernel may have are the default")
    parser.add_argument("--rounds", metavar="N", type=int, choices=range(1, 10), default=1,
                        help="each with a seed of its own for arrivals and keys, the round's number (1)")
    parser.add_argument("--runs", metavar="N", type=int, choices=range(1, 10), default=1,
                        help="of each with the same seed; their largest difference is told (1)")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--build", metavar="DIR", default=os.path.join(TOP, "build"),
                        help="with memcached/memcached and loadgen/mcload (build)")
    parser.add_argument("--folder", metavar="DIR", default=os.path.join(TOP, "build/lab"),
                        help="for kernels and results (build/lab)")
    parser.add_argument("--plan", action="store_true",
                        help="print what the guest is to do, and boot none")


def path_of(args, sched, turn):
    return os.path.join(args.folder, f"guest-{os.path.basename(args.kernel)}-{args.experiment}-{sched}.{turn}.json")


def stored(path):
    """The result of a run before, whole or not; None: there was none."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def save(result, path):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    os.rename(path + ".new", path)


def follow(lines, result, keep):
    """What a guest tells, into the result; keep is called with each point."""
    kinds = set()
    for line in lines:
        kind = machine.take(line, result)
        kinds.add(kind)
        if kind == "@point":
            keep(result)
    if "@end" not in kinds:
        raise machine.Refused("the guest did not get to its end"
                              + (", but to the limit of its time" if "@limit" in kinds else ""))


def boot(experiment, kernel, args, result, keep):
    """A guest for those points that the result has not."""
    sched, turn = result["sched"], result["round"]
    lines = list(plan(experiment, SCHEDULERS[sched], result["points"], turn))
    files = machine.contents(args.build, "\n".join(lines) + "\n")
    if SCHEDULERS[sched].rules is not None:
        files |= machine.bvt(os.path.join(TOP, "patches/sched_ext-bvt"), os.path.join(args.folder, "bvt"))
    log = path_of(args, sched, turn).removesuffix("json") + "log"
    count = len(result["points"]) + len(missing(lines, result["points"]))

    def told(now):
        keep(now)
        if sys.stderr.isatty():
            print(f"{sched}, round {turn}: {len(now['points'])} of {count} points ", end="\r", file=sys.stderr)

    try:
        follow(machine.boot(kernel, files, log), result, told)
        lost = missing(lines, result["points"])
        if lost:
            raise machine.Refused(f"the guest did not tell {', '.join(lost)}")
    except machine.Refused as why:
        raise machine.Refused(f"{why}. It said what is in {log}; with the same command again, its points "
                              "so far are not measured again") from why


def measure(experiment, sched, turn, kernel, args):
    """The result of a round of one scheduler: the points of a run, and by how much others differ."""
    path = path_of(args, sched, turn)
    os.makedirs(args.folder, exist_ok=True)
    before = None if args.again or args.runs > 1 else stored(path)
    if before is not None and "difference" in before:
        return before
    facts = {"experiment": args.experiment, "sched": sched, "round": turn, "commit": store.commit(), "host": platform.release(),
             "qemu": machine.output(machine.QEMU, "--version").splitlines()[0], "runs": args.runs}
    result = {"points": {}, "errors": {}, **(before or {}), **facts}
    boot(experiment, kernel, args, result, lambda now: save(now, path))
    others = [{**facts, "points": {}, "errors": {}} for _ in range(1, args.runs)]
    for other in others:
        boot(experiment, kernel, args, other, lambda _: None)
    result["difference"] = max([difference(result["points"], other["points"]) for other in others], default=0.0)
    if not result["errors"]:
        result["verdict"] = experiment.judge(result["points"])
    save(result, path)
    return result


def show(result):
    print(f"{result['kernel']} {result['sched']}, round {result['round']}")
    if "server" in result:
        print(f"    the server said: {result['server']}")
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


def run(args):
    experiment = EXPERIMENTS[args.experiment]
    names = args.sched or kernels.possible(args.kernel)
    if args.plan:
        for name in names:
            print(f"# {name}", *plan(experiment, SCHEDULERS[name]), sep="\n")
        return
    common.end_on_signals()
    try:
        machine.needed(machine.QEMU, "qemu-system-x86")
        kernel = kernels.fetch(args.kernel, args.folder)
        for turn, name in itertools.product(range(1, args.rounds + 1), names):
            show(measure(experiment, name, turn, kernel, args))
            print(path_of(args, name, turn), flush=True)
    except machine.Refused as why:
        print(f"scripts/lab guest: {why}", file=sys.stderr)
        sys.exit(1)
