# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What the commands of scripts/lab share: the groups, where results lie."""
import importlib
import os

import side_by_side as side

# In the order in which they run: by what they show for their time.
GROUPS = ("threads", "processes", "kernel", "connections", "breakdown", "requests", "balance", "wave",
          "antagonists", "colocation", "primary", "services", "datagrams", "receive",
          "elsewhere")
FOLDER = os.path.join(side.TOP, "build/lab")
KEPT = os.path.join(side.TOP, "doc/lab/host.jsonl")  # what scripts/lab report --pack made of results, for the repository


def groups(names=()):
    """{name: module}; all of them without names."""
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        side.fail(f"no such group: {', '.join(unknown)} (scripts/lab list)")
    return {name: importlib.import_module(f"lab.groups.{name}") for name in GROUPS
            if not names or name in names}


def results_folder(args):
    return args.results or FOLDER + ("-quick" if args.quick else "")


def results_to_report(args):
    """Those of this machine, or those that the repository has."""
    folder = results_folder(args)
    is_measured = args.results or args.quick or os.path.exists(os.path.join(folder, "settings.json"))
    return KEPT if not is_measured and os.path.exists(KEPT) else folder


def add_folder(parser):
    parser.add_argument("--results", metavar="FOLDER",
                        help="where results are (build/lab, or build/lab-quick with --quick)")


def end_on_signals():
    side.end_on_signals("\nscripts/lab: interrupted; the same command goes on where it was")
