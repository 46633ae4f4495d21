# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The differences from the reference that scripts/differential knows, and why; doc/compatibility.md
lists the reasons."""

import re

FORMAT = rb"CLIENT_ERROR bad command line format\r\n"
DELTA = rb"CLIENT_ERROR invalid numeric delta argument\r\n"
USAGE = rb"CLIENT_ERROR bad command line format\.  Usage: delete <key> \[noreply\]\r\n"
STORE = rb"(?:set|add|replace|append|prepend|cas)"
META_FAULT = rb"CLIENT_ERROR (?:invalid flag|duplicate flag|bad token in command line format|" \
    rb"opaque token too long|incorrect length for M token|invalid mode for m[sa] M token|" \
    rb"invalid numeric \w+ value|bad command line format|error decoding key)\r\n"
WRONG = rb"CLIENT_ERROR invalid or duplicate flag\r\n"

# (reason, request, reply of the reference, reply of ours): all are full matches; the request
# with CR LF in place of a lone LF at its end, a binary one as describe() writes it.
EXPLAINED = [
    ("a line of fewer than four bytes with its end is refused by its length since 1.6.45",
     rb"[^\n]{0,2}\r?\n| *\r?\n", rb"ERROR\r\n", FORMAT),
    ("the rest of a data block that is too long is such a short line",
     rb"(?s)" + STORE + rb" .*", rb"CLIENT_ERROR bad data chunk\r\nERROR\r\n",
     rb"CLIENT_ERROR bad data chunk\r\n" + FORMAT),
    ("1.6.45 swallows the data block after an error in a storage line",
     rb"(?s)" + STORE + rb" .*", FORMAT + rb"(?:ERROR\r\n|" + FORMAT + rb"|<closed>)*", rb"(?:" + FORMAT + rb"){1,2}"),
    ("a wrong number of words is a format error in 1.6.45; the data line is swallowed or not",
     rb"(?s)(?:set|add|replace|append|prepend|cas|incr|decr|touch|delete|gets?|gats?)\b.*",
     rb"(?:ERROR\r\n)+", FORMAT + rb"(?:ERROR\r\n|" + FORMAT + rb")?"),
    ("1.6.18 refuses delete with an argument, 1.6.45 ignores it",
     rb"delete [^ ]+ [^ ]+\r\n", USAGE, rb"DELETED\r\n|NOT_FOUND\r\n"),
    ("a delta with a plus sign is a number in 1.6.18 only",
     rb"(?:incr|decr) [^ ]+ \+\d+( noreply)?\r\n",
     rb"\d+\r\n|NOT_FOUND\r\n|CLIENT_ERROR cannot increment.*\r\n", DELTA),
    ("shutdown says SERVER_ERROR in 1.6.45",
     rb"shutdown\r\n", rb"ERROR: shutdown not enabled\r\n",
     rb"SERVER_ERROR: shutdown not enabled\r\n"),
    ("gat without a key is a format error in 1.6.45",
     rb"gats? [^ ]+\r\n", rb"END\r\n|ERROR\r\n", FORMAT + rb"|ERROR\r\n"),
    ("signed arguments with a plus sign are numbers in 1.6.18 only",
     rb"(?s)(?:" + STORE + rb" [^ ]+|touch [^ ]+|gats?|verbosity)(?: \d+)* \+\d+.*",
     rb"OK\r\n|STORED\r\n|NOT_STORED\r\n|EXISTS\r\n|TOUCHED\r\n|NOT_FOUND\r\n|(?s:VALUE .*)?END\r\n",
     rb"CLIENT_ERROR (?:bad command line format|invalid exptime argument)\r\n"),
    ("times of touch and gat are 64-bit numbers in 1.6.18, 32-bit ones in 1.6.45",
     rb"(?:touch [^ ]+|gats?) (?:2147483648|4294967295|4294967296)\b.*\r\n",
     rb"TOUCHED\r\n|NOT_FOUND\r\n|(?s:VALUE .*)?END\r\n", rb"CLIENT_ERROR invalid exptime argument\r\n"),
    ("1.6.18 looks for a minus sign beyond the end of a stored number of 2^63 and more",
     rb"(?:incr|decr) .*\r\n", rb"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
     rb"(?:9[2-9]\d{17}|1\d{19}|\d{1,11})\r\n"),
    ("1.6.18 looks for that minus sign in ma and in binary requests too",
     rb"(?s)ma .*\r\n|magic=80 op=[01][56] .*",
     rb"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n|op=.. status=06 .*\n",
     rb"(?:HD.*\r\n|VA .*\r\n\d+\r\n|)|(?s:op=.. status=00 .*\n|)"),
    ("a level of verbosity beyond 32 bits is no number in 1.6.45",
     rb"verbosity (?:4294967296|18446744073709551615)\r\n", rb"OK\r\n", FORMAT),
    ("a line that begins with a blank is no command in 1.6.45",
     rb" +[^ \r\n].*\r\n", rb"(?s).*", rb"ERROR\r\n"),
    ("1.6.18 reads the data block after a refused storage line with noreply as commands",
     rb"(?s)" + STORE + rb" .* noreply\r\n.*", rb"(?:ERROR\r\n|" + FORMAT + rb")*(?:<closed>)?", rb""),
    ("1.6.18 sends the value of an mg though its C says that the client has it",
     rb"mg [^ ]+ .*C.*\r\n", rb"VA \d+[^\r]*\r\n(?s:.*)\r\n", rb"HD[^\r]*\r\n"),
    ("1.6.18 does not know the meta flags E and x",
     rb"(?s)m[gsda] [^\r]* [Ex].*", rb"CLIENT_ERROR invalid (?:or duplicate )?flag\r\n", rb"(?s).*"),
    ("1.6.18 has one text for every wrong flag of md and ma, 1.6.45 for fewer",
     rb"m[da] .*\r\n", WRONG, rb"CLIENT_ERROR .*\r\n"),
    ("the mode of ms and ma is one letter in 1.6.18; 1.6.45 looks at the first",
     rb"(?s)m[sa] [^\r]* M(?:[^IDEAPRS+-].*|.[^ ]+.*| .*|\r\n.*)", rb"CLIENT_ERROR incorrect length for M token\r\n",
     rb"(?:CLIENT_ERROR invalid mode for m[sa] M token|HD.*|N[SF].*|VA .*\r\n.*|CLIENT_ERROR invalid or duplicate flag)\r\n"),
    ("meta flags F beyond 32 bits are cut in 1.6.18, refused by 1.6.45",
     rb"(?s)m[gsda] [^\r]* F\d{10,20}\b.*", rb"(?s).*", FORMAT),
    ("the times of meta commands are 64-bit numbers in 1.6.18, 32-bit ones in 1.6.45",
     rb"(?s)m[gsda] [^\r]* [TNR](?:2147483648|4294967295|4294967296)\b.*", rb"(?s).*",
     rb"CLIENT_ERROR (?:bad token in command line format|invalid or duplicate flag)\r\n"),
    ("memcached decodes base64 up to the first wrong letter, 1.6.45 in md only; ours refuses it",
     rb"(?s)m[gsda] .* b\b.*", rb"(?s).*", rb"CLIENT_ERROR error decoding key\r\n|" + WRONG),
    ("more words than a line may have: another text, counted before any is read, not swallowed",
     rb"(?s)m[gsda](?: [^ \r]+){20,}.*",
     rb"CLIENT_ERROR options flags (?:are )?too long\r\n(?:ERROR\r\n|" + FORMAT + rb"|<closed>)*|" + WRONG,
     rb"CLIENT_ERROR [^\r]*\r\n"),
    ("of two faults in a meta line each finds another one first",
     rb"(?s)m[gsda] .*", META_FAULT, META_FAULT),
    ("1.6.18 reads the data block of an ms with an over-long key as commands",
     rb"(?s)ms [^ \r]{251,} .*", FORMAT + rb"(?:ERROR\r\n|" + FORMAT + rb"|<closed>)*", FORMAT),
    ("append and prepend with N make an item since 1.6.45",
     rb"(?s)ms [^\r]* N[^\r]*\r\n.*", rb"NS.*\r\n", rb"HD.*\r\n|"),
    ("q keeps ma silent about an item that it makes since 1.6.45",
     rb"ma .* q.*\r\n", rb"HD.*\r\n|VA \d+.*\r\n\d+\r\n", rb""),
    ("a meta number with a plus sign is one in 1.6.18 only",
     rb"(?s)m[gsda] [^\r]* [TNRCFJD]\+1.*", rb"(?s).*",
     rb"CLIENT_ERROR (?:bad token in command line format|bad command line format|invalid or duplicate flag)\r\n"),
    ("a meta command without a key is a format error in 1.6.45",
     rb"m[gsda] *\r\n", rb"ERROR\r\n", FORMAT),
    ("1.6.18 returns the key of an item that mg makes undecoded, without its b",
     rb"m[ge] .*\r\n", rb"(?s)(?:HD|VA \d+|ME) .*",
     rb"(?s)(?:(?:HD|VA \d+).* k[A-Za-z0-9+/=]+ b|ME [A-Za-z0-9+/=]+ ).*\r\n"),
    ("1.6.18 waits for more than a lying or unknown request has, or than it takes to refuse it",
     rb"(?s)magic=80 .*", rb"", rb"op=.. status=(?:81|03|04) klen=0 elen=0 .*\n"),
    ("a short line, on a connection that another magic made one of text",
     rb"(?s)magic=(?!80).*", rb"(?s)junk .*ERROR.*", rb"(?s)junk .*ERROR.*"),
    ("1.6.18 forgets replies when a wrong magic follows",
     rb"(?s)magic=80 op=0[ab] klen=0 elen=0 blen=0 sent=[1-9].*", rb"", rb"op=0[ab] status=00 .*\n"),
    ("1.6.18 overlooks a value behind the key of a touch or gat",
     rb"(?s)magic=80 op=(?:1c|1d|1e|23|24) .*", rb"(?s)op=.. status=0[01] .*|", rb"op=.. status=04 .*\n"),
    ("SASL that is off: 1.6.18 refuses a malformed request as such, ours as one it does not know",
     rb"(?s)magic=80 op=2[012] .*", rb"op=2[012] status=04 .*\n", rb"op=2[012] status=81 .*\n"),
    ("a binary body of more than 1 GiB is an invalid argument since 1.6.42",
     rb"(?s)magic=80 op=.. klen=\d+ elen=\d+ blen=\d{10} .*", rb"op=.. status=(?:81|03|04) .*\n|", rb"op=.. status=04 .*\n|"),
    ("verbosity and flush_all without a number",
     rb"(?:verbosity|cache_memlimit)\r\n", rb"ERROR\r\n", FORMAT),
]
EXPLAINED = [(why, re.compile(a), re.compile(b), re.compile(c)) for why, a, b, c in EXPLAINED]

# What no pattern of a request and its two replies shows.
LATER = [
    "1.6.18 looks for that minus sign: what it found shows in a later reply",
]

# What is not sent, because the difference would show in a later reply or not each time.
NOT_SENT = [
    "gat with an over-long key behind others: 1.6.18 touches the others before it refuses the line",
    "get with an over-long key behind requests of the same packet: 1.6.18 drops their replies",
    "ma with T: 1.6.18 may set the time of an item that it has just replaced",
    "meta commands that make or touch an item with an opaque of 32 bytes and more: 1.6.18 "
    "finds the fault afterwards",
    "lru_crawler metadump: 1.6.45 begins it with OK and shows flags",
    "incr and decr of stored blanks alone: 1.6.18 looks for a minus sign beyond the end of a number",
]
