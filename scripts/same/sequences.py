# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Seeded sequences of requests for scripts/differential: text, meta and binary, most of them
well-formed, some odd."""

import base64
import random
import struct

from peers import BINARY, HEADER, TEXT

KEYS = [b"k%d" % i for i in (0, 1, 1, 1, 2, 2, 3)]
FLAGS = [0, 0, 1, 65535, 2 ** 31, 2 ** 32 - 1]
TTLS = [0, 0, 0, 100, 1000, 2592000, -1]
ODD_NUMBERS = [b"-1", b"-2147483648", b"2147483647", b"2147483648", b"4294967295",
               b"4294967296", b"18446744073709551615", b"18446744073709551616",
               b"9" * 30, b"x", b"1x", b"0x10", b"+1", b"00700", b"1.5", b"\xff", b"-"]
BAD_LENGTHS = [b"-1", b"x", b"9" * 30, b"2147483646", b"2147483647", b"4294967295", b"1x"]
SIZES = [0, 0, 1, 2, 3, 7, 20, 60, 200, 1000, 2020, 2047, 2048, 2049, 4096, 8191, 8192, 8193,
         16384, 65535, 70000]
# 1.6.18 looks for a minus sign beyond the end of a stored number: there is to be none.
NOISE = random.Random(0).randbytes(70000).replace(b"-", b".")


READS = {b"ge", b"ga", b"mg", b"ma", 0x00, 0x09, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x23, 0x24}
COUNTS = {b"in", b"de", b"ma", 0x05, 0x06, 0x15, 0x16}


class Command:
    """One request. half: it may leave the server waiting, so the client closes its side."""
    __slots__ = ("proto", "wire", "half", "key", "cas_of", "waits", "reads", "counts")

    def __init__(self, proto, wire, half=False, key=None, cas_of=None, waits=False):
        self.proto = proto
        self.wire = wire
        self.half = half
        self.key = key
        self.cas_of = cas_of
        start = wire[1] if proto == BINARY else wire[:2]
        self.reads = start in READS
        self.counts = start in COUNTS
        self.waits = waits  # is written when those before it are answered


class Segment:
    """Requests written together on the connection of one protocol."""
    __slots__ = ("commands", "cuts")

    def __init__(self, commands, cuts=()):
        self.commands = commands
        self.cuts = cuts


def text(wire, **more):
    return Command(TEXT, wire, **more)


def packet(op, key=b"", extras=b"", value=b"", cas=0, opaque=0, klen=None, elen=None,
           blen=None, magic=0x80, dtype=0, vbucket=0):
    """A binary request; lengths can be made to lie."""
    body = extras + key + value
    return HEADER.pack(magic, op, (len(key) if klen is None else klen) & 0xFFFF,
                       (len(extras) if elen is None else elen) & 0xFF, dtype, vbucket,
                       (len(body) if blen is None else blen) & 0xFFFFFFFF, opaque, cas) + body


class Source:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.opaque = 0
        self.mix = [(self.text_command, 4), (self.meta_command, 4), (self.binary_command, 4)]

    # ---- parts ---------------------------------------------------------------------------

    def chance(self, p):
        return self.rng.random() < p

    def key(self):
        r = self.rng.random()
        if r < 0.93:
            return self.rng.choice(KEYS)
        if r < 0.97:
            return b"K" * self.rng.randrange(1, 253)
        return bytes(self.rng.choice(b"\x01\x09\x0b\x7f\x80\xffab%{}") for _ in
                     range(self.rng.randrange(1, 12)))

    def value(self):
        rng = self.rng
        r = rng.random()
        if r < 0.35:
            return b"%d" % rng.randrange(10 ** rng.randrange(1, 20))
        if r < 0.40:
            return rng.choice([b"18446744073709551615", b"18446744073709551616", b" 5", b"5 ",
                               b"12 34", b"", b"00012", b"1\r\n", b"9" * 20])
        size = rng.choice(SIZES) if r < 0.55 else rng.randrange(60)
        at = rng.randrange(len(NOISE) - size + 1)
        value = NOISE[at:at + size]
        # In a value of blanks alone 1.6.18 looks for a number beyond its end.
        return value if value.strip() else b"x" * size

    def ttl(self):
        return b"%d" % self.rng.choice(TTLS)

    def odd(self):
        return self.rng.choice(ODD_NUMBERS)

    def end(self):
        return b"\r\n" if self.chance(0.97) else b"\n"

    # ---- text ----------------------------------------------------------------------------

    def text_command(self):
        rng = self.rng
        r = rng.random()
        if r < 0.08:
            return [self.broken_text()]
        if r < 0.12:
            return self.text_cas()
        verb = rng.choice([b"get", b"gets", b"set", b"set", b"set", b"add", b"replace", b"append",
                           b"prepend", b"incr", b"decr", b"touch", b"delete", b"gat", b"gats"])
        noreply = b" noreply" if self.chance(0.12) else b""
        if verb in (b"get", b"gets"):
            keys = [self.key() for _ in range(rng.randrange(1, 4))]
            if self.chance(0.03):
                keys *= rng.randrange(2, 30)
            return [text(verb + b" " + b" ".join(keys) + self.end(), waits=too_long(keys))]
        if verb in (b"gat", b"gats"):
            keys = [self.key() for _ in range(rng.randrange(1, 4))]
            if too_long(keys):  # 1.6.18 touches those before an over-long one
                keys.sort(key=len, reverse=True)
            return [text(verb + b" " + self.ttl() + b" " + b" ".join(keys) + b"\r\n",
                         waits=too_long(keys))]
        if verb in (b"incr", b"decr"):
            delta = rng.choice([0, 1, 7, 10 ** 9, 2 ** 63, 2 ** 64 - 1])
            return [text(verb + b" " + self.key() + b" %d" % delta + noreply + self.end())]
        if verb == b"touch":
            return [text(b"touch " + self.key() + b" " + self.ttl() + noreply + self.end())]
        if verb == b"delete":
            return [text(b"delete " + self.key() + noreply + self.end())]
        return [self.text_store(verb, self.key(), b"", noreply)]

    def text_store(self, verb, key, unique, noreply, waits=False):
        value = self.value()
        line = verb + b" " + key + b" %d " % self.rng.choice(FLAGS) + self.ttl()
        n = len(value)
        block = value + b"\r\n"
        if self.chance(0.02):  # one byte too many or too few
            if n and self.chance(0.5):
                n -= 1
            else:
                n += 1
                block += b"Z\r\n"
        return text(line + b" %d" % n + unique + noreply + b"\r\n" + block, waits=waits)

    def text_cas(self):
        key = self.rng.choice(KEYS)
        unique = b" {cas " + key + b"}" if self.chance(0.8) else b" 999999999"
        return [text(b"gets " + key + b"\r\n"), self.text_store(b"cas", key, unique, b"", True)]

    def broken_text(self):
        """A line with one fault; what follows it is read alike by both. None is a time of a few seconds:
        what is read afterwards would be a question of a second."""
        rng = self.rng
        kind = rng.randrange(7)
        if kind < 4:
            words = list(rng.choice([
                [b"get", b"k1"], [b"gets", b"k1", b"k2"], [b"incr", b"k1", b"1"],
                [b"decr", b"k1", b"1"], [b"touch", b"k1", b"100"], [b"delete", b"k1"],
                [b"gat", b"0", b"k1"], [b"verbosity", b"0"], [b"gats", b"0", b"k2"]]))
            if kind == 0:
                words.pop()
            elif kind == 1:
                words[rng.randrange(1, len(words))] = self.odd()
            elif kind == 2:
                words[0] = rng.choice([words[0].upper(), words[0] + b"x", words[0][:-1], b"", b"\0"])
            else:
                words.insert(rng.randrange(len(words)), b"")
            return text(b" ".join(words) + self.end(), waits=True)
        if kind == 4:
            words = [rng.choice([b"set", b"add", b"append", b"replace"]), b"k1", b"0", b"0", b"5"]
            at = rng.randrange(1, 5)
            if at == 4:
                words[at] = rng.choice(BAD_LENGTHS)
                return text(b" ".join(words) + b"\r\n")
            words[at] = b"K" * 251 if at == 1 else self.odd()
            return text(b" ".join(words) + b"\r\nvalue\r\n")
        if kind == 5:
            return text(bytes(rng.choice(b"abcgst 019\0\x01\x7f") for _ in
                              range(rng.randrange(3, 40))).lstrip(b"w") + b"\r\n")
        line = rng.choice([b"bogus\r\n", b"\r\n", b"stats bogus\r\n", b"gets\n", b"get \r\n",
                                b"shutdown\r\n", b"GET / HTTP/1.1\r\n", b"verbosity 0\r\n",
                                b"verbosity\r\n", b"stats reset\r\n", b"slabs\r\n",
                                b"lru\r\n", b"get " + b"K" * 251 + b"\r\n"])
        return text(line, waits=True, half=line.endswith(b"HTTP/1.1\r\n"))  # which closes

    # ---- meta ----------------------------------------------------------------------------

    def meta_key(self):
        """(words that name the key, the flags that go with them, text form)"""
        key = self.key()
        if not self.chance(0.12):
            return key, []
        if self.chance(0.5):
            key = bytes(self.rng.choice(b"\0\r\n ab\xff") for _ in range(self.rng.randrange(1, 20)))
        coded = base64.b64encode(key)
        if self.chance(0.05):
            coded = self.rng.choice([coded.rstrip(b"="), coded + b"=", b"*" + coded, b"===="])
        return coded, [b"b"]

    def meta_flags(self, letters):
        rng = self.rng
        flags = []
        for letter in rng.sample(letters, rng.randrange(min(6, len(letters)) + 1)):
            flags.append(self.meta_flag(letter))
        if self.chance(0.02):
            flags.append(rng.choice(flags) if flags and self.chance(0.5) else
                         rng.choice([b"a", b"Z", b"!", b"\xff", b"o", b"3", b"E", b"x"]))
        if self.chance(0.01):  # more words than a line may have
            flags = [self.meta_flag(letter) for letter in b"kOqsvctflhuCNRTFIMJDPL"]
        return flags

    def meta_flag(self, letter):
        rng = self.rng
        one = bytes([letter])
        if one == b"R":  # not a time that an item was given: it would be a question of a second
            number = rng.choice([b"0", b"50", b"500", b"3000", b"2500000", b"-1"])
        elif one in b"TN":
            number = rng.choice([b"0", b"100", b"1000", b"5000", b"2592000", b"-1"])
        elif one == b"F":
            number = b"%d" % rng.choice(FLAGS)
        elif one in b"DJ":
            number = b"%d" % rng.choice([0, 1, 5, 2 ** 63, 2 ** 64 - 1])
        elif one == b"C":
            number = rng.choice([b"1", b"0", b"18446744073709551615"])
        elif one == b"O":
            # A longer one is found by 1.6.18 after the item was made or touched.
            number = b"o" * rng.choice([0, 1, 5, 30, 31]) if self.chance(0.3) else b"oq"
        elif one == b"M":
            number = b"I"
        elif one in b"PL":
            number = b"path"
        else:
            return one + (b"v" if self.chance(0.02) else b"")
        if self.chance(0.03):
            number = rng.choice([b"", self.odd()])
        return one + number

    def meta_command(self):
        rng = self.rng
        r = rng.random()
        if r < 0.03:
            return [text(rng.choice([b"mn\r\n", b"mn x\r\n", b"mg\r\n", b"ms\r\n", b"md \r\n",
                                     b"ma\r\n", b"me\r\n", b"me nix\r\n", b"me k1\r\n", b"me k1\r\n",
                                     b"mg nix O" + b"o" * 32 + b"\r\n", b"mx k1\r\n",
                                     b"mgx k1\r\n"]))]
        if r < 0.12:
            return self.meta_cas()
        key, flags = self.meta_key()
        verb = rng.choice([b"mg", b"mg", b"ms", b"ms", b"md", b"ma", b"mg"])
        if verb == b"mg":
            flags += self.meta_flags(b"ksvctfhuqOTNRCPL")
        elif verb == b"md":
            flags += self.meta_flags(b"kqOTICPL")
        elif verb == b"ma":
            flags += self.meta_flags(b"kqONJDvctCPL")  # 1.6.18 may set T on an item just replaced
            if self.chance(0.3):
                flags.append(b"M" + (rng.choice([b"I", b"D", b"+", b"-"]) if self.chance(0.9) else
                                     rng.choice([b"incr", b"d", b"i", b"", b"X"])))
        else:
            return [self.meta_store(key, flags + self.meta_flags(b"kqOTFCIcPL"))]
        rng.shuffle(flags)
        return [text(b" ".join([verb, key] + flags) + self.end())]

    def meta_store(self, key, flags, waits=False):
        rng = self.rng
        if self.chance(0.5):
            mode = rng.choice(b"EAPRS")
            flags.append(b"M" + (bytes([mode]) if self.chance(0.9) else
                                 rng.choice([b"e", b"a", b"p", b"r", b"s", b"append", b"", b"X"])))
            if self.chance(0.2):
                flags.append(b"N" + rng.choice([b"0", b"100"]))
        value = self.value()
        block = value + b"\r\n"
        n = b"%d" % len(value)
        if self.chance(0.01):
            n, block = rng.choice(BAD_LENGTHS), b""
        rng.shuffle(flags)
        return text(b" ".join([b"ms", key, n] + flags) + b"\r\n" + block, waits=waits)

    def meta_cas(self):
        rng = self.rng
        key = rng.choice(KEYS)
        compare = b"C{cas " + key + b"}"
        verb = rng.choice([b"mg", b"ms", b"md", b"ma"])
        flags = [compare] + self.meta_flags(b"kqOv" if verb == b"mg" else b"kqO")
        if verb == b"ms":
            second = self.meta_store(key, flags, True)
        else:
            second = text(b" ".join([verb, key] + flags) + b"\r\n", waits=True)
        return [text(b"mg " + key + b" k c\r\n"), second]

    # ---- binary --------------------------------------------------------------------------

    def next_opaque(self):
        self.opaque = (self.opaque + 1) & 0xFFFFFF
        return 0x0B000000 + self.opaque

    def binary_key(self):
        if self.chance(0.95):
            return self.key()[:250]
        return bytes(self.rng.choice(b"\0\r\n ab\xff") for _ in range(self.rng.randrange(1, 20)))

    def packed(self, op, key=b"", extras=b"", value=b"", cas_of=None, half=False, **more):
        wire = packet(op, key, extras, value, opaque=self.next_opaque(), **more)
        return Command(BINARY, wire, half=half, key=key, cas_of=cas_of, waits=cas_of is not None)

    def binary_extras(self, op):
        rng = self.rng
        ttl = struct.pack(">I", rng.choice([0, 0, 0, 100, 1000, 2592000, 0xFFFFFFFF]))
        if op in (0x01, 0x02, 0x03, 0x11, 0x12, 0x13):
            return struct.pack(">I", rng.choice(FLAGS)) + ttl
        if op in (0x05, 0x06, 0x15, 0x16):
            delta = rng.choice([0, 1, 7, 2 ** 63, 2 ** 64 - 1])
            return struct.pack(">QQ", delta, rng.choice([0, 1, 99, 2 ** 64 - 1])) + ttl
        if op in (0x1C, 0x1D, 0x1E, 0x23, 0x24):
            return ttl
        return b""

    def binary_command(self):
        rng = self.rng
        r = rng.random()
        if r < 0.06:
            return [self.broken_binary()]
        if r < 0.12:
            return self.binary_cas()
        if r < 0.14:
            return [self.packed(rng.choice([0x0A, 0x0B, 0x1B, 0x1F, 0x20, 0x25, 0x80, 0xFF]))]
        op = rng.choice([0x00, 0x01, 0x01, 0x01, 0x11, 0x02, 0x03, 0x04, 0x05, 0x06, 0x09, 0x0C, 0x0D,
                         0x0E, 0x0F, 0x12, 0x13, 0x14, 0x15, 0x16, 0x19, 0x1A, 0x1C, 0x1D, 0x1E,
                         0x23, 0x24])
        value = self.value() if op in (0x01, 0x02, 0x03, 0x0E, 0x0F, 0x11, 0x12, 0x13, 0x19,
                                       0x1A) else b""
        return [self.packed(op, self.binary_key(), self.binary_extras(op), value,
                            cas=rng.choice([1, 999]) if self.chance(0.02) else 0,
                            vbucket=rng.choice([0, 0, 0, 7]))]

    def binary_cas(self):
        rng = self.rng
        key = rng.choice(KEYS)
        op = rng.choice([0x01, 0x03, 0x0E, 0x04, 0x05, 0x11, 0x14, 0x02])
        value = self.value() if op in (0x01, 0x02, 0x03, 0x0E, 0x11) else b""
        return [self.packed(0x00, key),
                self.packed(op, key, self.binary_extras(op), value, cas_of=key)]

    def broken_binary(self):
        """A header that lies, or a request without what it needs."""
        rng = self.rng
        op = rng.choice(list(range(0x00, 0x28)) + [0xFF])
        if op in (0x10, 0x07, 0x17, 0x08, 0x18):
            op = 0x01
        key, value = rng.choice([b"", b"k1", b"K" * 250, b"K" * 251]), rng.choice([b"", b"v" * 40])
        extras = rng.choice([self.binary_extras(op), b"", b"e" * 4, b"e" * 8, b"e" * 20, b"e" * 24,
                             b"e" * 200])
        lie = {}
        if self.chance(0.4):
            lie["blen"] = rng.choice([0, 1, 7, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 24, 2 ** 32 - 1,
                                      1 << 30, (1 << 20) + 1])
        if self.chance(0.2):
            lie["klen"] = rng.choice([0, 1, 250, 251, 65535])
        if self.chance(0.2):
            lie["elen"] = rng.choice([0, 1, 4, 8, 20, 21, 255])
        if self.chance(0.05):
            lie["magic"] = rng.choice([0x81, 0x00, 0x47])
        if self.chance(0.2):
            lie["dtype"] = 1
        return self.packed(op, key, extras, value, half=True, **lie)

    # ---- sequences -----------------------------------------------------------------------

    def commands(self):
        rng = self.rng
        makers = [maker for maker, weight in self.mix for _ in range(weight)]
        maker = rng.choice(makers)
        out = []
        for _ in range(rng.randrange(2, 20)):
            if self.chance(0.08):
                maker = rng.choice(makers)
            out += maker()
        return out

    def sequence(self):
        """Segments; the first one begins with flush_all."""
        commands = self.commands()
        flush = text(b"flush_all\r\n") if commands[0].proto == TEXT else self.packed(0x08)
        return segments_of([flush] + commands,
                           lambda: sorted(self.rng.random() for _ in range(self.rng.randrange(1, 4)))
                           if self.chance(0.25) else ())


def too_long(keys):
    """1.6.18 drops the replies not yet sent to requests before an over-long key of a get."""
    return any(len(key) > 250 for key in keys)


def segments_of(commands, cuts=tuple):
    """Commands that may be written together: of one protocol, up to one that needs an earlier
    reply or leaves its connection unusable. Nor is a number changed behind a reply that still
    holds it: whether that is done in place, padded with blanks, is the server's own affair."""
    out = []
    pending = []
    for command in commands:
        if pending and (command.counts and any(c.reads for c in pending) or command.proto != pending[0].proto or command.waits or command.half or
                        pending[-1].half):
            out.append(Segment(pending, cuts()))
            pending = []
        pending.append(command)
    out.append(Segment(pending, cuts()))
    return out
