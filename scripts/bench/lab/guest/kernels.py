# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Debian's kernels for virtual machines, taken out of their packages."""
import os
import re
import struct
import subprocess

from .experiments import SCHEDULERS
from .machine import Refused

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGE = "linux-image-cloud-amd64"
HEAD = 1 << 16  # of a kernel's file
# Name: the suite, and what its scheduler is.
KERNELS = {
    "6.1": ("bookworm", "CFS"),
    "6.12": ("bookworm-backports", "EEVDF"),
    "newest": ("trixie-backports", "EEVDF and sched_ext"),
}


def possible(kernel):
    """The schedulers that it may have: sched_ext is in the newest of Debian's, patches/linux-6.1-bvt in none."""
    return [name for name, s in SCHEDULERS.items()
            if kernel not in KERNELS or not (s.has_hrtick or s.rules is not None and kernel != "newest")]


def mirror():
    """Of the packages that this machine has its own from."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"],
                             capture_output=True, text=True, check=False).stdout
    for uri in targets.split():
        if re.search(r"/debian/?$", uri):
            return uri
    raise Refused("no mirror of Debian among the sources of apt (apt-get indextargets); give the "
                  "path of a kernel instead")


def settings(folder, suite, uri):
    """Of an apt that touches nothing of this machine's: paths and their contents."""
    return {
        "sources.list": f"deb [signed-by={KEYRING}] {uri} {suite} main\n",
        "apt.conf": "".join(f'{key} "{value}";\n' for key, value in (
            ("Dir::State", f"{folder}/state"), ("Dir::Cache", f"{folder}/cache"),
            ("Dir::State::status", "/dev/null"), ("Dir::Etc::SourceParts", "/dev/null"),
            ("Dir::Etc::SourceList", f"{folder}/sources.list"),
            ("Dir::Etc::PreferencesParts", "/dev/null"), ("APT::Sandbox::User", "root"),
            ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false"),
            ("Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled", "false"))),
    }


def apt(folder, *command):
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                         env=os.environ | {"APT_CONFIG": f"{folder}/apt.conf"})
    if run.returncode != 0:
        raise Refused(f"{' '.join(command)}: {run.stderr.strip()}")
    return run.stdout


def release(depends):
    """Of the kernel that the package without a version in its name stands for."""
    found = re.search(r"\blinux-image-(\d\S*)", depends)
    if found is None:
        raise Refused(f"{PACKAGE} depends on no kernel: {depends.strip()}")
    return found[1]


def release_of(path):
    """What a kernel's file says that it is: a text that its head has the place of."""
    with open(path, "rb") as f:
        head = f.read(HEAD)
    if head[0x202:0x206] != b"HdrS":
        raise Refused(f"{path} is no kernel for x86")
    return head[0x200 + struct.unpack_from("<H", head, 0x20e)[0]:].partition(b"\0")[0].decode().split()[0]


def found_kernel(folder):
    for path, _, names in os.walk(folder):
        for name in names:
            if name.startswith("vmlinuz"):
                return os.path.join(path, name)
    return None


def check(name):
    """Of a kernel, or the path of one, which may not be there yet."""
    if "/" not in name and name not in KERNELS:
        raise Refused(f"no kernel {name}: give a path, or one of {', '.join(KERNELS)}")


def fetch(name, folder):
    """The path of the kernel, of that name or of a file; downloaded once."""
    check(name)
    if "/" in name:
        if not os.path.exists(name):
            raise Refused(f"no kernel {name}")
        return name
    folder = os.path.join(os.path.abspath(folder), "kernels", name)
    here = found_kernel(folder)
    if here is not None:
        return here
    for path in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, path), exist_ok=True)
    for path, text in settings(folder, KERNELS[name][0], mirror()).items():
        with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
            f.write(text)
    apt(folder, "apt-get", "update", "-qq")
    of = release(apt(folder, "apt-cache", "depends", PACKAGE))
    # Newer ones have the file itself in a package of its own.
    packages = [f"linux-{kind}-{of}" for kind in ("image", "binary")]
    there = apt(folder, "apt-cache", "pkgnames", "linux-").split()
    apt(folder, "apt-get", "download", *(p for p in packages if p in there))
    for package in os.listdir(folder):
        if package.endswith(".deb"):
            apt(folder, "dpkg-deb", "-x", package, "root")
    here = found_kernel(folder)
    if here is None:
        raise Refused(f"no kernel in the packages {' '.join(packages)}")
    return here
