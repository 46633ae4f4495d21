# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""A running memcached with one text and one binary connection, for scripts/differential.

Peer.send() and Peer.collect() are apart so that two servers work at the same time. What
collect() returns is normalised: binary replies as text, cas uniques renamed in order of
appearance, times rounded to ten seconds, versions blanked.
"""

import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds for what must come
QUIET = 3  # seconds after which a server is asked whether there is more
ROUNDS = 20  # of such questions: its only worker has had as many turns by then
TEXT, BINARY = "text", "binary"
SENTINEL = b"version\r\n"
SENTINEL_REPLY = re.compile(rb"VERSION [^\r\n]+\r\n\Z")
HEADER = struct.Struct(">BBHBBHIIQ")
NOOP_OPAQUE = 0x7E571E57
NOOP = HEADER.pack(0x80, 0x0A, 0, 0, 0, 0, 0, NOOP_OPAQUE, 0)
NOOP_REPLY = HEADER.pack(0x81, 0x0A, 0, 0, 0, 0, 0, NOOP_OPAQUE, 0)

VALUE_LINE = re.compile(rb"(VALUE )([^ \r\n]+)( \d+ \d+ )(\d+)\r\n")
META_LINE = re.compile(rb"(?m)^(?:HD|VA \d+) [^\r]*\r$")
META_CAS = re.compile(rb"(?<= c)(\d+)")
META_KEY = re.compile(rb" k([^ \r]+)")
META_TIME = re.compile(rb"( [tl])(\d+)")
ME_LINE = re.compile(rb"(?m)^(ME [^ \r\n]+ exp=)(-?\d+)( la=)(\d+)( cas=)(\d+)( .*\r)$")
VERSION_LINE = re.compile(rb"VERSION [^\r\n]+\r\n")


def free_port():
    """One that the kernel gives to nobody who asks for any."""
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(20000, 30000)))
                return s.getsockname()[1]
            except OSError:
                pass


def rounded(digits):
    """Seconds to tens; those of an expired item wrap in 1.6.18."""
    seconds = int(digits)
    return b"0" if seconds >= 1 << 31 else b"%d" % ((seconds + 5) // 10 * 10)


class Peer:
    def __init__(self, command, name):
        self.name = name
        self.command = list(command)
        self.conns = {}
        self.start()

    # ---- the process ---------------------------------------------------------------------

    def start(self):
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        args = self.command + ["-l", "127.0.0.1", "-p", str(self.port)]
        if os.geteuid() == 0:
            args += ["-u", "root"]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit("%s does not start: %s" % (self.name, self.said()))
                time.sleep(0.02)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def is_alive(self):
        return self.process.poll() is None

    def restart(self):
        self.kill()
        self.start()

    def close(self):
        for conn in self.conns.values():
            conn.close()
        self.conns = {}

    def kill(self):
        self.close()
        if self.is_alive():
            self.process.kill()
        self.process.wait()

    def stop(self):
        self.close()
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -1

    # ---- sequences -----------------------------------------------------------------------

    def begin(self):
        """A sequence starts: names of uniques anew."""
        self.cas_names = {}
        self.cas_of = {}
        self.key_of = {}

    def connection(self, proto):
        conn = self.conns.get(proto)
        if conn is None:
            conn = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.conns[proto] = conn
        return conn

    def drop(self, proto):
        conn = self.conns.pop(proto, None)
        if conn:
            conn.close()

    def wire_of(self, command):
        """The bytes of a command, the last unique seen of a key where it asks for it."""
        wire = command.wire
        if command.proto == TEXT:
            if b"{cas " in wire:
                wire = re.sub(rb"\{cas ([^ }]+)\}", lambda m: self.cas_of.get(m.group(1), b"1"), wire)
            return wire
        opaque = struct.unpack_from(">I", wire, 12)[0] if len(wire) >= 24 else None
        self.key_of[opaque] = command.key
        if command.cas_of is not None and len(wire) >= 24:
            cas = int(self.cas_of.get(command.cas_of, b"1"))
            wire = wire[:16] + struct.pack(">Q", cas) + wire[24:]
        return wire

    def send(self, segment):
        """Writes the commands of a segment, in pieces where it says so, and what tells
        the end of the replies."""
        proto = segment.commands[0].proto
        self.half = segment.commands[-1].half
        wire = b"".join([self.wire_of(c) for c in segment.commands])
        if not self.half:
            wire += SENTINEL if proto == TEXT else NOOP
        try:
            conn = self.connection(proto)
            at = 0
            for cut in segment.cuts:
                cut = int(cut * len(wire))
                conn.sendall(wire[at:cut])
                at = cut
            conn.sendall(wire[at:])
            if self.half:
                conn.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # collect() sees it closed

    def collect(self, segment):
        proto = segment.commands[0].proto
        raw, ending = self.receive(proto)
        reply = self.text(raw) if proto == TEXT else self.packets(raw)
        if self.half or ending:
            self.drop(proto)
        return reply + ending

    def is_ready(self, conn, seconds):
        return bool(select.select([conn], [], [], seconds)[0])

    def is_silent(self, conn):
        """Nothing comes, though the server has time: it answers others. How long that takes does
        not matter, nor whether this machine stands still meanwhile."""
        if self.is_ready(conn, QUIET):
            return False
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as other:
            for _ in range(ROUNDS):
                other.sendall(SENTINEL)
                other.recv(256)
        return not self.is_ready(conn, 0)

    def receive(self, proto):
        conn = self.conns.get(proto)
        got = bytearray()
        while True:
            try:
                if conn and self.is_silent(conn):
                    return bytes(got), b"<no more>"
                chunk = conn.recv(1 << 18) if conn else b""
            except OSError:
                chunk = b""
            if not chunk:
                return bytes(got), b"" if self.half else b"<closed>"
            got += chunk
            if self.half:
                continue
            if proto == TEXT:
                end = SENTINEL_REPLY.search(got, max(0, len(got) - 64))
                if end:
                    return bytes(got[:end.start()]), b""
            elif got.endswith(NOOP_REPLY):
                return bytes(got[:-len(NOOP_REPLY)]), b""

    # ---- normal forms --------------------------------------------------------------------

    def name_of(self, cas, key=None):
        if cas in (b"0", 0):
            return b"0"
        if isinstance(cas, int):
            cas = b"%d" % cas
        if key is not None:
            self.cas_of[key] = cas
        return self.cas_names.setdefault(cas, b"cas%d" % len(self.cas_names))

    def text(self, raw):
        def value(match):
            return match.group(1) + match.group(2) + match.group(3) + \
                self.name_of(match.group(4), match.group(2)) + b"\r\n"

        def meta(match):
            line = match.group()
            key = META_KEY.search(line)
            line = META_CAS.sub(lambda m: self.name_of(m.group(1), key and key.group(1)), line)
            return META_TIME.sub(lambda m: m.group(1) + rounded(m.group(2)), line)

        def debug(match):
            g = match.groups()
            return g[0] + (g[1] if g[1] == b"-1" else rounded(g[1].lstrip(b"-"))) + g[2] + \
                rounded(g[3]) + g[4] + self.name_of(g[5]) + g[6]

        if b"VALUE " in raw:
            raw = VALUE_LINE.sub(value, raw)
        if b"HD " in raw or b"VA " in raw:
            raw = META_LINE.sub(meta, raw)
        if b"ME " in raw:
            raw = ME_LINE.sub(debug, raw)
        if b"VERSION " in raw:
            raw = VERSION_LINE.sub(b"VERSION x\r\n", raw)
        return raw

    def packets(self, raw):
        """One line a packet; what is no packet as it came."""
        out = []
        at = 0
        while at < len(raw):
            if len(raw) - at < 24 or raw[at] != 0x81:
                out.append(b"junk " + raw[at:at + 200])
                break
            _, op, klen, elen, dtype, status, blen, opaque, cas = HEADER.unpack_from(raw, at)
            body = raw[at + 24:at + 24 + blen]
            at += 24 + blen
            if len(body) < blen:
                out.append(b"cut short")
            name = self.name_of(cas, self.key_of.get(opaque))
            if op == 0x0B and status == 0:
                body = b"x"
                blen = 1
            out.append(b"op=%02x status=%02x klen=%d elen=%d dtype=%d blen=%d opaque=%08x cas=%s %s"
                       % (op, status, klen, elen, dtype, blen, opaque, name, body))
        return b"\n".join(out) + b"\n" if out else b""
