# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""scripts/clients/refused runs this: the calls of a library for Python.
usage: refused.py LIBRARY VARIANT TIMEOUT HOST PORT"""
import asyncio
import os
import sys
import time
from importlib.metadata import version

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from fetched import need  # noqa: E402

LIBRARY, VARIANT, TIMEOUT, HOST, PORT = sys.argv[1:]
TIMEOUT, PORT = int(TIMEOUT), int(PORT)
ADDRESS = "%s:%d" % (HOST, PORT)
MANY = ["m1", "m2"]


class Calls:
    """What the libraries have in common; make() opens a client."""
    text = str
    get_multi = "get_multi"

    def call(self, client, name, *args):
        return getattr(client, name)(*args)

    def get(self, c):
        return self.call(c, "get", self.text("g"))

    def many(self, c):
        return self.call(c, self.get_multi, [self.text(key) for key in MANY])

    def set(self, c):
        return self.call(c, "set", self.text("s"), self.text("2"))

    def incr(self, c):
        return self.call(c, "incr", self.text("n"), 1)

    def delete(self, c):
        return self.call(c, "delete", self.text("d"))


class Pylibmc(Calls):
    def make(self):
        import pylibmc
        return pylibmc.Client([ADDRESS], binary=VARIANT == "binary",
                              behaviors={"receive_timeout": TIMEOUT * 1000000})


class Pymemcache(Calls):
    def make(self):
        from pymemcache.client.base import Client
        from pymemcache.client.hash import HashClient
        how = {"timeout": TIMEOUT, "default_noreply": False, "encoding": "ascii"}
        if VARIANT == "Client":
            return Client(ADDRESS, **how)
        return HashClient([ADDRESS], ignore_exc="ignore_exc" in VARIANT, **how)


class Memcache(Calls):
    def make(self):
        return need("memcache").Client([ADDRESS], socket_timeout=TIMEOUT)


class Bmemcached(Calls):
    def make(self):
        return need("bmemcached").Client((ADDRESS,), socket_timeout=TIMEOUT)


class Waiting(Calls):
    """Of a library for asyncio."""
    text = staticmethod(str.encode)
    loop = asyncio.new_event_loop()

    def call(self, client, name, *args):
        return self.loop.run_until_complete(getattr(client, name)(*args))


class Aiomcache(Waiting):
    def many(self, c):
        return self.call(c, "multi_get", *(self.text(key) for key in MANY))

    def make(self):
        return need("aiomcache").Client(HOST, PORT, pool_size=1)


class Emcache(Waiting):
    get_multi = "get_many"

    def incr(self, c):
        return self.call(c, "increment", b"n", 1)

    def make(self):
        module = need("emcache")
        return self.loop.run_until_complete(module.create_client(
            [module.MemcachedHostAddress(HOST, PORT)], timeout=TIMEOUT, autobatching=False))


class Meta(Calls):
    """It wants its arguments by name, and has no incr."""

    def key(self, name):
        return need("meta_memcache").Key(name)

    def get(self, c):
        return c.get(key=self.key("g"))

    def many(self, c):
        found = c.multi_get(keys=[self.key(key) for key in MANY])
        return {key.key: value for key, value in found.items()}

    def set(self, c):
        return c.set(key=self.key("s"), value="2", ttl=100)

    def incr(self, c):
        return c.delta_and_get(key=self.key("n"), delta=1)

    def delete(self, c):
        return c.delete(key=self.key("d"))

    def make(self):
        module = need("meta_memcache")
        how = {"raise_on_server_error": False} if VARIANT else {}
        return module.CacheClient.cache_client_from_servers(
            servers=[module.ServerAddress(HOST, PORT)],
            connection_pool_factory_fn=module.connection_pool_factory_builder(recv_timeout=TIMEOUT),
            **how)


LIBRARIES = {
    "pylibmc": Pylibmc,
    "pymemcache": Pymemcache,
    "python-memcached": Memcache,
    "python-binary-memcached": Bmemcached,
    "aiomcache": Aiomcache,
    "emcache": Emcache,
    "meta-memcache": Meta,
}


def said(call, client):
    """What the call returned, or what it raised, in one line."""
    start = time.monotonic()
    try:
        result = repr(call(client))
    except Exception as error:  # whatever the library raises is the answer
        result = type(error).__name__ + (": %s" % error if str(error) else "")
    return result + (", after its timeout" if time.monotonic() - start >= TIMEOUT else "")


def main():
    calls = LIBRARIES[LIBRARY]()
    try:
        calls.make()
        name = "%s %s%s" % (LIBRARY, version(LIBRARY), VARIANT and ", " + VARIANT)
    except ImportError:
        sys.exit(77)

    def show(what, result):
        print(name, what, result, sep="\t", flush=True)

    for what, call in (("get", calls.get), ("get_multi", calls.many), ("set", calls.set),
                       ("incr", calls.incr), ("delete", calls.delete)):
        show(what, said(call, calls.make()))
    kept = calls.make()
    for _ in range(5):
        said(calls.get, kept)
    print("ready", flush=True)
    sys.stdin.readline()
    show("then", said(calls.get, kept))
    # Not the ends of libraries, which have things to say of what is left open.
    os._exit(0)


main()
