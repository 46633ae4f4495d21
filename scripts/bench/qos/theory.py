# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What queueing theory predicts, to stand beside what was measured."""


def residual_p99(turn):
    """A small get that arrives while a saturated worker serves turns of that length waits for
    the rest of one, which is uniform in it: its 99 %."""
    return 0.99 * turn


class Queue:
    """M/G/1: Poisson arrivals at one server, each kind with a rate and a service time that
    does not vary. Times in seconds; kinds from the most urgent: [(rate, service)]."""

    def __init__(self, *kinds):
        self.kinds = kinds
        self.residual = sum(rate * service ** 2 for rate, service in kinds) / 2

    def load(self, urgent=None):
        """Share of the time that the first so many kinds take."""
        return sum(rate * service for rate, service in self.kinds[:urgent])

    def fifo_wait(self):
        """Mean, in order of arrival (Pollaczek and Khinchine)."""
        rest = 1 - self.load()
        return self.residual / rest if rest > 0 else float("inf")

    def priority_wait(self):
        """Mean of the most urgent kind, which goes first and interrupts no other."""
        rest = 1 - self.load(1)
        return self.residual / rest if rest > 0 else float("inf")


def gcra_error(rate, threads, seconds=1, lease_seconds=200e-6, lease_max=64):
    """Share by which the requests of a window may miss the limit: each thread may hold a
    lease, and the window may cut through a token."""
    lease = min(max(rate * lease_seconds / threads, 1), lease_max)
    return (threads * lease + 1) / (rate * seconds)
