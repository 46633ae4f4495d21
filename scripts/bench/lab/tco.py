# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What colocation saves: the cost of a cluster that runs a latency-critical service and batch
work on the same servers, beside two clusters of the same throughput (Leverich and Kozyrakis,
EuroSys 2014, section 5; its model of cost is that of Patel and Shah, 2005)."""
import argparse
import json
import math
import sys
from dataclasses import dataclass

import side_by_side as side

HOURS_PER_YEAR = 24 * 365
SERVERS_MOST = 10**9


@dataclass(frozen=True)
class Prices:
    server: float = 2000  # dollars
    watts: float = 300    # at full utilisation
    static: float = 0.5   # part of them that an idle server takes
    energy: float = 0.08  # dollars per kWh
    years: float = 3
    # Overheads of a watt, by the names of the model: cooling, depreciation, both together.
    k1: float = 1.33
    l1: float = 0.8
    k2: float = 0.25

    def of_server(self, utilisation):
        """Dollars for a server, bought and run for those years."""
        kwh = (self.watts / 1000 * (self.static + (1 - self.static) * utilisation)
               * HOURS_PER_YEAR * self.years)
        return self.server + (1 + self.k1 + self.l1 + self.k2 * self.l1) * self.energy * kwh


@dataclass(frozen=True)
class Colocation:
    load: float     # of the service, of its peak
    batch: float    # throughput of the batch work beside it, of that of a server of its own
    servers: int
    prices: Prices

    @property
    def batch_servers(self):
        """How many servers for the batch work alone do the same."""
        return round(self.batch * self.servers)

    @property
    def together(self):
        """All servers are busy: the service has what it needs, the batch work the rest."""
        return self.servers * self.prices.of_server(1)

    @property
    def apart(self):
        return (self.servers * self.prices.of_server(self.load)
                + self.batch * self.servers * self.prices.of_server(1))

    @property
    def improvement(self):
        """Throughput for the money, more than that of two clusters."""
        return self.apart / self.together - 1

    @property
    def discount(self):
        return 1 - 1 / (1 + self.improvement)


# The paper's table 2: batch throughput beside memcached at each load, geometric means of all
# of SPEC CPU2006; and the rows that it prints.
LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
PUBLISHED = (0.75, 0.47, 0.30, 0.18, 0.20)
ROWS = {
    "400.perlbench": (74, 42, 22, 10, 14), "401.bzip2": (79, 48, 41, 17, 22),
    "403.gcc": (75, 41, 23, 14, 18), "410.bwaves": (65, 29, 17, 9, 10),
    "416.gamess": (78, 49, 28, 17, 17), "429.mcf": (77, 54, 38, 28, 26),
    "433.milc": (80, 56, 38, 29, 26), "434.zeusmp": (73, 43, 24, 13, 14),
    "450.soplex": (86, 53, 34, 18, 22), "459.GemsFDTD": (79, 56, 38, 24, 22),
    "470.lbm": (76, 53, 35, 23, 23), "471.omnetpp": (61, 48, 40, 28, 39),
}


def geometric_means():
    columns = zip(*ROWS.values())
    return tuple(math.exp(sum(map(math.log, column)) / len(column)) / 100 for column in columns)


def part(text):
    """A part of 1, as 0.3 or 30%."""
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1 or from 0% to 100%")
    return value


def pair(text):
    try:
        load, batch = text.split(":")
        return part(load), part(batch)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not LOAD:BATCH, such as 30%:47%") from None


amount = side.number(float, lambda value: 0 <= value < math.inf, "from 0")


cluster = side.number(int, lambda value: 1 <= value <= SERVERS_MOST, f"from 1 to {SERVERS_MOST}")


def arguments(parser):
    prices = Prices()
    points = parser.add_mutually_exclusive_group()
    points.add_argument("--at", metavar="LOAD:BATCH", action="append", type=pair, default=[],
                        help="load of the service and what the batch work beside it does, each "
                        "of what a server of its own does; may be repeated. The paper's means "
                        "are the default")
    points.add_argument("--rows", action="store_true",
                        help="the means of the paper's printed rows instead of its printed means")
    parser.add_argument("--servers", type=cluster, default=12000, metavar="N",
                        help="of the cluster (12000)")
    for name, what in (("server", "dollars for a server"),
                       ("watts", "that a server takes at full utilisation"),
                       ("energy", "dollars for a kWh"), ("years", "that a server is used"),
                       ("k1", "watts of cooling for a watt"),
                       ("l1", "depreciation of the power infrastructure for a watt"),
                       ("k2", "the same of the cooling's")):
        value = getattr(prices, name)
        parser.add_argument(f"--{name}", type=amount, default=value, metavar="X",
                            help=f"{what} ({value:g})")
    parser.add_argument("--static", type=part, default=prices.static, metavar="PART",
                        help=f"of the watts, taken by an idle server ({prices.static:g})")
    parser.add_argument("--json", action="store_true")


def fail(what):
    print(f"scripts/lab tco: {what}", file=sys.stderr)
    sys.exit(2)


def run(args):
    prices = Prices(**{name: getattr(args, name) for name in Prices.__dataclass_fields__})
    if prices.of_server(1) == 0:
        fail("servers that cost nothing: give --server or --energy")
    if not prices.of_server(1) * args.servers < math.inf:
        fail("servers that cost more than a number can say")
    points = args.at or zip(LOADS, geometric_means() if args.rows else PUBLISHED)
    cases = [Colocation(load, batch, args.servers, prices) for load, batch in points]
    if args.json:
        print(json.dumps({
            "server": {f"{u:g}": prices.of_server(u) for u in (0, 0.5, 1)},
            "cases": [{"load": c.load, "batch": c.batch, "servers": c.servers,
                       "batch_servers": c.batch_servers, "together": c.together,
                       "apart": c.apart, "improvement": c.improvement,
                       "discount": c.discount} for c in cases]}, indent=1))
        return
    print(f"A server, bought and run for {prices.years:g} years: ${prices.of_server(0):,.2f} idle, "
          f"${prices.of_server(0.5):,.2f} half busy, ${prices.of_server(1):,.2f} busy.\n")
    print(f"{'load':>6} {'batch':>7} {'servers apart':>15} {'$ apart':>14} {'$ together':>14} "
          f"{'for the money':>14} {'discount':>9}")
    for c in cases:
        apart = f"{c.servers:,}+{c.batch_servers:,}"
        print(f"{c.load:>6.0%} {c.batch:>7.1%} {apart:>15} {c.apart:>14,.0f} {c.together:>14,.0f} "
              f"{c.improvement:>+14.1%} {c.discount:>9.1%}")
