# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Groups of experiments and their rows: what each is reproduced by, and what this machine lacks
for it."""
from . import common
from .machine import Machine


def arguments(parser):
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="these alone")


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
