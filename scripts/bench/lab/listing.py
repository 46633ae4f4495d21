# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Groups of experiments and their rows: what each is reproduced by, and what this machine lacks
for it. And those in guests, with what is missing."""
from . import common
from .guest import results
from .guest.experiments import EXPERIMENTS
from .machine import Machine


def arguments(parser):
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="these alone")
    results.add_folder(parser)


def run(args):
    machine = Machine()
    caches = ", ".join(f"{name} {size >> 10} KB" for name, size in machine.caches.items())
    print(f"{machine.facts()['machine']}; {caches or 'caches unknown'}")
    for name, group in common.groups(args.groups).items():
        print(f"\n{name}: {' '.join(group.__doc__.split())}")
        for row in group.ROWS:
            lacks = machine.lacks(row.needs)
            print(f"  {row.label}: {row.title}; {row.when}")
            for what in lacks:
                print(f"    not here: needs {what}")
    if not args.groups:
        guests(results.read(args.guest_results))


def guests(every):
    print("\nscripts/lab guest: other kernels, in virtual machines")
    for name, experiment in EXPERIMENTS.items():
        print(f"  {name}: {experiment.what}")
        for names, rounds in results.rows_of(every, name).items():
            print(f"    {' with '.join(names)}, rounds: {len(rounds)}")
        for command in results.commands(every, name):
            print(f"    missing: {command}")
