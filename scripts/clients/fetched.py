# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""For the Python clients: libraries that scripts/clients/fetch installed."""

import glob
import importlib
import os
import sys

NAME = os.path.basename(sys.argv[0])
FOLDER = os.environ.get("CLIENTS_FOLDER") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "memcached-qos/clients")


def need(module):
    """The module, or exit status 77. They belong to the interpreter that installed them."""
    interpreter = os.path.join(FOLDER, "python/bin/python3")
    if os.path.exists(interpreter) and not sys.prefix.startswith(os.path.join(FOLDER, "python")):
        os.execv(interpreter, [interpreter] + sys.argv)
    sys.path += glob.glob(os.path.join(FOLDER, "python/lib/python3*/site-packages"))
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        print("%s: skipped, %s (scripts/clients/fetch python)" % (NAME, reason))
        sys.exit(77)


def check(what, got, want):
    if got != want:
        print("%s: %s: got %r, not %r" % (NAME, what, str(got)[:200], str(want)[:200]))
        sys.exit(1)
