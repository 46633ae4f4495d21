# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Sequences whose replies scripts/differential knows: each was once answered otherwise than by
memcached 1.6.45. SAME: as the reference answers, which is older but agrees in this; else the bytes
of 1.6.45."""

from sequences import packet

SAME = None

OK = b"OK\r\n"
ERROR = b"ERROR\r\n"
FORMAT = b"CLIENT_ERROR bad command line format\r\n"
EXPTIME = b"CLIENT_ERROR invalid exptime argument\r\n"
TOKEN = b"CLIENT_ERROR bad token in command line format\r\n"
SUM = 0x05


def store(key, value, flags=b""):
    return b"ms %s %d %s\r\n%s\r\n" % (key, len(value), flags, value)


def increments(value):
    """A stored number, counted by every command that does."""
    key = b"n"
    one = (1).to_bytes(8, "big") + bytes(8) + bytes(4)
    put = b"set n 0 0 %d\r\n%s\r\n" % (len(value), value)
    return [(put, SAME), (b"incr n 1\r\n", SAME), (b"get n\r\n", SAME), (put, SAME), (b"decr n 1\r\n", SAME),
            (b"get n\r\n", SAME), (put, SAME), (b"ma n v\r\n", SAME), (put, SAME),
            (packet(SUM, key, one, opaque=1), SAME), (packet(0x00, key, opaque=2), SAME)]


def silent(*commands):
    return [(command + b" noreply\r\n", b"") for command in commands]


# (what it is about, [(request, reply), ...]): sent one by one, on a store that has been emptied.
FIXED = [
    ("C0 is no unique where values are added to, and never a lower one", [
        (store(b"n", b"5"), SAME), (store(b"n", b"6", b"C0 I"), SAME), (b"mg n v\r\n", SAME),
        (store(b"n", b"6", b"C0"), SAME), (store(b"n", b"6", b"C0 MR I"), SAME),
        (store(b"n", b"6", b"C0 ME"), SAME), (b"ma n C0\r\n", SAME), (b"ma n C0 v\r\n", SAME),
        (store(b"n", b"1", b"C0 MA"), SAME), (store(b"n", b"1", b"C0 MP"), SAME),
        (b"mg n C0 v\r\n", SAME), (b"md n C0\r\n", SAME), (b"md n C0 I\r\n", SAME),
        (store(b"nix", b"1", b"C0"), SAME), (store(b"nix", b"1", b"C0 I"), SAME),
        (store(b"nix", b"1", b"C0 MA"), SAME), (b"md nix C0\r\n", SAME), (b"ma nix C0\r\n", SAME),
    ]),
    ("client flags of meta commands have 32 bits", [
        (store(b"n", b"5", b"F4294967295"), SAME), (b"mg n f\r\n", SAME),
        (store(b"n", b"5", b"F4294967296"), FORMAT), (b"mg n F4294967296\r\n", FORMAT),
        (b"ma n F4294967296\r\n", FORMAT), (b"mg n f v\r\n", b"VA 1 f4294967295\r\n5\r\n"),
        (b"set n 4294967297 0 1\r\n5\r\n", SAME), (b"get n\r\n", SAME),
    ]),
    ("R beyond 30 days is a wall time", [
        (store(b"n", b"5", b"T100"), SAME), (b"mg n R2592001 t\r\n", SAME),
        (b"mg n R2592000 t\r\n", SAME), (b"mg n R2592000 t\r\n", SAME),
    ]),
    ("stored numbers", [
        row for value in (b"+5", b"0" * 25, b"0" * 25 + b"7", b"12\0", b"12\0abc", b" +5", b"\t5", b"5\v9", b"-0",
                          b"+", b"+-5", b"+ 5", b"\0", b"5x", b"5\x85", b"+18446744073709551615",
                          b"+18446744073709551616", b" " * 30 + b"5", b"5" + b" " * 30)
        for row in increments(value)]),
    ("-0 where no other negative number may stand", [
        (b"set n -0 0 1\r\n5\r\n", SAME), (b"incr n -0\r\n", SAME), (b"cas n -0 0 1 -0\r\n5\r\n", SAME),
        (b"incr n -1\r\n", SAME), (b"verbosity -0\r\n", SAME), (b"verbosity -1\r\n", SAME),
        (b"cache_memlimit -0\r\n", SAME), (b"cache_memlimit -1\r\n", SAME),
    ]),
    ("numbers of admin commands have 32 bits", [
        (b"set n 0 0 1\r\n5\r\n", SAME), (b"flush_all -2147483649\r\n", EXPTIME),
        (b"flush_all 2147483648\r\n", EXPTIME), (b"flush_all 4294967296\r\n", EXPTIME),
        (b"flush_all -9223372036854775809\r\n", SAME), (b"flush_all 9223372036854775808\r\n", SAME),
        (b"get n\r\n", b"VALUE n 0 1\r\n5\r\nEND\r\n"), (b"flush_all -2147483648\r\n", SAME),
        (b"verbosity 4294967296\r\n", FORMAT), (b"verbosity 18446744073709551616\r\n", SAME),
        (b"cache_memlimit 999999999999\r\n", ERROR), (b"cache_memlimit 4294967295\r\n", SAME),
        (b"cache_memlimit 1000000001\r\n", SAME), (b"slabs automove 4294967295\r\n", SAME),
        (b"slabs automove 4294967296\r\n", FORMAT), (b"lru_crawler tocrawl 4294967296\r\n", FORMAT),
        (b"lru_crawler sleep 4294967296\r\n", FORMAT), (b"lru_crawler sleep 4294967295\r\n", SAME),
    ]),
    ("slabs", [
        (b"slabs reassign 0 1\r\n", b"NOSPARE source class has no spare pages\r\n"),
        (b"slabs reassign -1 1\r\n", b"BADCLASS invalid src or dst class id\r\n"),
        (b"slabs automove window\r\n", SAME), (b"slabs automove freeratio\r\n", SAME),
        (b"slabs automove window x\r\n", SAME), (b"slabs automove ratio\r\n", SAME),
        (b"slabs automove ratio 8e-1\r\n", SAME), (b"slabs automove ratio .8\r\n", SAME),
    ]),
    ("admin commands with noreply", silent(
        b"slabs automove 1", b"slabs automove 0", b"slabs automove x", b"slabs automove ratio 0.8",
        b"slabs automove window 10", b"slabs reassign 1 2", b"slabs reassign x y", b"slabs", b"lru",
        b"lru tune 20 40 0.2 2.0", b"lru tune 90 40 0.2 2.0", b"lru mode segmented", b"lru mode x",
        b"lru temp_ttl -1", b"lru temp_ttl x", b"lru_crawler enable", b"lru_crawler sleep 100",
        b"lru_crawler sleep x", b"lru_crawler tocrawl 0", b"lru_crawler crawl all", b"lru_crawler crawl x",
        b"lru_crawler metadump all", b"lru_crawler metadump x", b"lru_crawler", b"refresh_certs",
        b"shutdown", b"shutdown x", b"verbosity 0", b"verbosity x", b"cache_memlimit 1024",
        b"cache_memlimit 1", b"flush_all", b"flush_all x", b"watch x", b"delete")),
    ("a key named noreply", [
        (b"set noreply 0 0 1\r\n1\r\n", SAME), (b"get noreply\r\n", SAME), (b"delete noreply\r\n", b""),
        (b"get noreply\r\n", b"END\r\n"), (b"stats reset noreply\r\n", SAME), (b"mn noreply\r\n", SAME),
    ]),
    ("blanks before a command", [
        (b"  get a b\r\n", ERROR), (b" version\r\n", ERROR), (b" mn\r\n", ERROR), (b"get   a  b \r\n", SAME),
    ]),
    ("statistics of what is not there", [
        (b"stats extstore\r\n", SAME), (b"stats extstor\r\n", SAME), (b"stats proxy\r\n", SAME),
    ]),
]
