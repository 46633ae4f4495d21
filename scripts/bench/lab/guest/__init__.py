# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Other kernels, in deterministic time: Debian's kernels in a virtual machine without KVM whose clock
counts instructions, so that the load of this machine does not matter; with this build's memcached and
mcload. One to four minutes of CPU time for each scheduler. Interrupted, it goes on behind the last
point; what is in the repository is not measured again. Without arguments: all that is missing."""
import itertools
import json
import os
import sys

import side_by_side as side

from .. import common, store
from . import kernels, machine, results
from .experiments import EXPERIMENTS, SAME, SCHEDULERS, difference, missing, plan

TOP = os.path.realpath(os.path.join(machine.HERE, "../../../.."))


def arguments(parser):
    parser.add_argument("kernel", metavar="KERNEL", nargs="?",
                        help="; ".join(f"{name}: {suite}'s, {what}"
                                       for name, (suite, what) in kernels.KERNELS.items())
                        + "; or the path of one")
    parser.add_argument("experiment", metavar="EXPERIMENT", choices=[*EXPERIMENTS], nargs="?",
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
                        help="for kernels, and results that are not whole yet (build/lab)")
    results.add_folder(parser)
    parser.add_argument("--plan", action="store_true",
                        help="print what the guest is to do, and boot none")


def unfinished(args, name):
    """The file of a round that is not whole; its guest's words are beside it."""
    return os.path.join(args.folder, "guests", name + ".json")


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


def boot(experiment, kernel, args, result, log, keep):
    """A guest for those points that the result has not."""
    sched, turn = result["sched"], result["round"]
    lines = list(plan(experiment, SCHEDULERS[sched], result["points"], turn))
    files = machine.contents(args.build, "\n".join(lines) + "\n")
    if SCHEDULERS[sched].rules is not None:
        files |= machine.bvt(os.path.join(TOP, "patches/sched_ext-bvt"), os.path.join(args.folder, "bvt"))
    count = len(result["points"]) + len(missing(lines, result["points"]))

    def told(now):
        keep(now)
        if sys.stderr.isatty():
            print(f"{sched}, round {turn}: {len(now['points'])} of {count} points ", end="\r", file=sys.stderr)

    try:
        follow(machine.boot(kernel, files, log, SCHEDULERS[sched].rules is not None), result, told)
        lost = missing(lines, result["points"])
        if lost:
            raise machine.Refused(f"the guest did not tell {', '.join(lost)}")
    except machine.Refused as why:
        raise machine.Refused(f"{why}. It said what is in {log}; with the same command again, its points "
                              "so far are not measured again") from why


def facts_of(name, sched, turn, runs):
    return {"experiment": name, "sched": sched, "round": turn, "runs": runs, "commit": store.commit(), "host": side.machine(),
            "qemu": machine.output(machine.QEMU, "--version").splitlines()[0],
            "options": " ".join(machine.command(SCHEDULERS[sched].rules is not None)[1:]),
            "compiler": machine.output("gcc", "--version").splitlines()[0]}


def measure(name, sched, turn, kernel, args):
    """The file of a round of one scheduler, and what is in it: the points of a run, and by how much others differ."""
    experiment, file = EXPERIMENTS[name], results.name_of(kernels.release_of(kernel), name, sched, turn)
    path, partial = os.path.join(args.guest_results, file + ".json"), unfinished(args, file)
    is_new = args.again or args.runs > 1
    there = None if is_new else results.stored(path)
    if there is not None:
        return path, there
    facts = facts_of(name, sched, turn, args.runs)
    before = None if is_new else results.begun(partial)
    if before is not None and any(before.get(fact) != facts[fact] for fact in facts):
        print(f"{partial} is of another version or machine: from the beginning", file=sys.stderr)
        before = None
    result = {"points": {}, "errors": {}, **(before or {}), **facts}
    os.makedirs(os.path.dirname(partial), exist_ok=True)
    log = partial.removesuffix("json") + "log"
    boot(experiment, kernel, args, result, log, lambda now: results.save(now, partial))
    others = [{**facts, "points": {}, "errors": {}} for _ in range(1, args.runs)]
    for other in others:
        boot(experiment, kernel, args, other, log, lambda _: None)
    result["difference"] = max([difference(result["points"], other["points"]) for other in others], default=0.0)
    result = results.judged(result)
    results.save(result, path)
    os.remove(partial)
    return path, result


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
    todo = [(kernel, name) for name in ([args.experiment] if args.experiment else EXPERIMENTS)
            for kernel in ([args.kernel] if args.kernel else kernels.KERNELS)]
    common.end_on_signals()
    try:
        if not args.plan:
            machine.needed(machine.QEMU, "qemu-system-x86")
        for kernel, name in todo:
            kernels.check(kernel)
            possible = kernels.possible(kernel)
            scheds = [one for one in args.sched or possible if args.kernel or one in possible]
            if args.plan:
                for sched in scheds:
                    print(f"# {sched}", *plan(EXPERIMENTS[name], SCHEDULERS[sched]), sep="\n")
                continue
            path = kernels.fetch(kernel, args.folder)
            for turn, sched in itertools.product(range(1, args.rounds + 1), scheds):
                file, result = measure(name, sched, turn, path, args)
                show(result)
                print(file, flush=True)
    except machine.Refused as why:
        print(f"scripts/lab guest: {why}", file=sys.stderr)
        sys.exit(1)
