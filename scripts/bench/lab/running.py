# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Measure what is missing: each point of each group, in rounds; the servers on one CPU, clients on
another one. Interrupted, it goes on where it was; what was invalid is measured again."""
import contextlib
import json
import os

import side_by_side as side

from . import common, store
from .machine import Machine
from .work import ROUNDS, SECONDS, Lab


def arguments(parser):
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="these alone (scripts/lab list)")
    parser.add_argument("--quick", action="store_true",
                        help="one round of short runs: all groups in about 10 minutes")
    parser.add_argument("--rounds", type=side.count, metavar="N", help=f"of all points ({ROUNDS})")
    parser.add_argument("--seconds", type=side.count, metavar="S", help=f"of each run ({SECONDS})")
    parser.add_argument("--retries", type=side.natural, default=2, metavar="N",
                        help="of an invalid run (2; none with --quick)")
    parser.add_argument("--server-cpu", type=int, metavar="N", help="of the servers (the first)")
    parser.add_argument("--point", metavar="NAME", action="append", default=[],
                        help="of the groups only this point; may be repeated")
    parser.add_argument("--build", default=os.path.join(side.TOP, "build"), metavar="FOLDER",
                        help="of the server and mcload (build)")
    parser.add_argument("--add-to", metavar="FILE",
                        help="results that scripts/lab report --pack wrote, of this machine and these options, to which rounds are added; what is invalid there stays so")
    common.add_folder(parser)


def add_to(lab, path, settings):
    """What the file has counts as measured, also what is invalid: its rates are parts of the peaks of that day. The
    kernel may be another build of the same version, which is part of the machine's name."""
    if not os.path.isfile(path):
        side.fail(f"{path}: no such file")
    settings = {name: value for name, value in settings.items() if name != "kernel"}
    for stored in store.unpacked(path):
        of = {**stored, **stored["options"]}
        check(path, {name: of.get(name) for name in settings}, settings, "leave out --add-to")
        lab.store.write(stored)
        lab.kept.add((stored["group"], stored["point"], stored["round"]))


def check(path, before, settings, remedy):
    changed = [name for name in settings if settings[name] != before.get(name)]
    if changed:
        name = changed[0]
        side.fail(f"{path} has results with {name} {before.get(name)}, not {settings[name]}: {remedy}")


def settings_of(folder, settings):
    """Results of a folder are of one machine and of the same options: they are compared."""
    path = os.path.join(folder, "settings.json")
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(path):
        with open(path) as f:
            check(folder, json.load(f), settings, "give another --results, or remove it")
        return
    with open(path, "w") as f:
        json.dump(settings, f, indent=1)
        f.write("\n")


def run(args):
    groups = common.groups(args.groups)
    machine = Machine()
    lacks = machine.lacks(["cpus"])
    if lacks:
        side.fail(f"needs {lacks[0]}")
    side.choose_two_cpus(args.server_cpu)
    common.end_on_signals()
    folder = common.results_folder(args)
    if os.path.isfile(folder):
        side.fail(f"{folder} is a file: give a folder")
    with contextlib.ExitStack() as shared, side.Bench(args.build) as bench:
        bench.keep_awake()
        lab = Lab(bench, args, machine, store.Store(folder), shared)
        options = {"seconds": lab.seconds, "quick": args.quick, "server_cpu": side.SERVER_CPU}
        facts = machine.facts()
        settings = {"machine": facts["machine"], "kernel": facts["kernel"], **options}
        settings_of(folder, settings)
        if args.add_to:
            add_to(lab, args.add_to, settings)
        lab.store.facts = {**facts, "commit": store.commit(), "options": {**options, "rounds": lab.rounds}}
        # The servers' CPU is theirs alone.
        os.sched_setaffinity(0, {side.CLIENT_CPU})
        lab.run(groups, args.point)
        lab.say("scripts/lab report" + " --quick" * args.quick
                + (f" --results {args.results}" if args.results else "") + " says what it shows")
