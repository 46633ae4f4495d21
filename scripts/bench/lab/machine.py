# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What the machine has, as the kernel tells, and what it lacks for an experiment."""
import glob
import os
import shutil

import side_by_side as side

SEARCHED = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin:/bin:/sbin"


def read(path, default=""):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return default


def bytes_of(text):
    """32K, 1024K, 32M"""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text or 0)


class Machine:
    """sys, dev: roots of what is read, for tests."""

    def __init__(self, sys="/sys", dev="/dev", cpus=None):
        self.sys, self.dev = sys, dev
        self.cpus = sorted(cpus or os.sched_getaffinity(0))
        self.caches = self.find_caches()
        topology = [f"{sys}/devices/system/cpu/cpu{cpu}/topology" for cpu in self.cpus]
        self.sockets = len({read(f"{folder}/physical_package_id") for folder in topology})
        self.nodes = max(1, sum(bool(read(f"{node}/cpulist")) for node in glob.glob(f"{sys}/devices/system/node/node[0-9]*")))
        self.queues = max((len(glob.glob(f"{card}/queues/rx-*"))
                           for card in glob.glob(f"{sys}/class/net/*")
                           if os.path.exists(f"{card}/device")), default=0)

    @property
    def core(self):
        """The CPUs of the server's core that may be used."""
        cpu = side.SERVER_CPU if side.SERVER_CPU in self.cpus else self.cpus[0]
        said = read(f"{self.sys}/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        return sorted({cpu} | (side.cpus_in(said) & set(self.cpus) if said else set()))

    @property
    def siblings(self):
        return len(self.core)

    def find_caches(self):
        """{"L1D": bytes} of the first CPU, as far as the kernel tells."""
        found = {}
        for folder in glob.glob(f"{self.sys}/devices/system/cpu/cpu{self.cpus[0]}/cache/index*"):
            level = "L" + read(f"{folder}/level")
            kind = {"Data": "D", "Instruction": "I"}.get(read(f"{folder}/type"), "")
            found[level + kind] = bytes_of(read(f"{folder}/size"))
        return dict(sorted(found.items()))

    def cache(self, level, default):
        return self.caches.get(level) or default

    def facts(self):
        """What is stored with each result."""
        return {"machine": side.machine(), "kernel": os.uname().release, "cpus": self.cpus,
                "sockets": self.sockets, "threads_per_core": self.siblings, "nodes": self.nodes,
                "caches": self.caches, "nic_queues": self.queues,
                "kvm": os.access(f"{self.dev}/kvm", os.R_OK | os.W_OK),
                "sched_ext": os.path.exists(f"{self.sys}/kernel/sched_ext/state")}

    def lacks(self, needs):
        """What of these is missing, in words."""
        return [NEEDS[need][1] for need in needs if not NEEDS[need][0](self)]


def program(name):
    return shutil.which(name, path=SEARCHED)


NEEDS = {
    "cpus": (lambda machine: len(machine.cpus) > 1, "two CPUs"),
    "client": (lambda machine: len(machine.cpus) > 2, "a third CPU, for the client alone"),
    "smt": (lambda machine: machine.siblings > 1, "cores of two threads (SMT)"),
    "sockets": (lambda machine: machine.sockets > 1, "two sockets"),
    "nodes": (lambda machine: machine.nodes > 1, "two NUMA nodes"),
    "onload": (lambda machine: program("onload"), "OpenOnload and a card of its maker"),
    "root": (lambda machine: os.geteuid() == 0, "root"),
    "memcached": (lambda machine: side.Bench.installed(), "another memcached (package memcached)"),
    "redis": (lambda machine: program("redis-server"), "Redis (package redis-server)"),
    "bpftrace": (lambda machine: program("bpftrace"), "bpftrace (package bpftrace)"),
    "stress-ng": (lambda machine: program("stress-ng"), "stress-ng (package stress-ng)"),
    "nginx": (lambda machine: program("nginx"), "NGINX (package nginx-light)"),
}
