#!/usr/bin/env perl
# Binary requests that lie about their lengths, and those that once crashed or corrupted a
# memcached, are refused as the protocol says; the server lives and is in sync.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

my $OPAQUE = 0xdeadbeef;
my %TEXT = (0x01 => 'Not found', 0x04 => 'Invalid arguments', 0x81 => 'Unknown command',
    0x03 => 'Too large.', 0x06 => 'Non-numeric server-side value for incr or decr');

# A request; lengths can be made to lie.
sub header {
    my ($op, $klen, $elen, $blen, %o) = @_;
    return pack 'CCnCCnNNQ>', $o{magic} // 0x80, $op, $klen, $elen, 0, 0, $blen, $OPAQUE, $o{cas} // 0;
}

sub packet {
    my ($op, $key, $extras, $value) = @_;
    my $body = ($extras // '') . ($key // '') . ($value // '');
    return header($op, length($key // ''), length($extras // ''), length $body) . $body;
}


sub refusal {
    my ($op, $status) = @_;
    my $body = $TEXT{$status};
    return pack('CCnCCnNNQ>', 0x81, $op, 0, 0, 0, $status, length $body, $OPAQUE, 0) . $body;
}

my $noop = packet(0x0a);
my $noop_reply = pack 'CCnCCnNNQ>', 0x81, 0x0a, 0, 0, 0, 0, 0, $OPAQUE, 0;

for my $profile (profiles()) {
    my $server = start_server(profile => $profile, args => [qw(-m 64 -t 2)]);
    my $s = $server->connect;
    exchange($s, "set canary 5 0 6\r\nyellow\r\n", "STORED\r\n");
    my $b = $server->connect;

    # The server lives; a text and a binary connection that were open all along are in sync.
    my $unharmed = sub {
        my ($name) = @_;
        ok($server->is_alive, "[$profile] $name: alive") or BAIL_OUT("server died: " . $server->err);
        exchange($s, "get canary\r\n", "VALUE canary 5 6\r\nyellow\r\nEND\r\n", "$name: in sync");
        put($b, $noop);
        expect_bytes($b, $noop_reply, "[$profile] $name: binary too");
    };
    # Is answered by exactly this and closed, with the sender's side open.
    my $closes = sub {
        my ($name, $bytes, $want) = @_;
        my $c = $server->connect;
        put($c, $bytes, 10);
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "[$profile] $name: closed");
        is(unpack('H*', $got), unpack('H*', $want), "[$profile] $name: answer") if defined $want;
        $unharmed->($name);
    };
    # Ends in a closed connection once the client has nothing more to say.
    my $survives = sub {
        my ($name, $bytes) = @_;
        my $c = $server->connect;
        put($c, $bytes, 10);
        shutdown $c, 1;
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "[$profile] $name: closed");
        $unharmed->($name);
        return $got;
    };
    # Is answered and the connection stays in sync.
    my $answers = sub {
        my ($name, $bytes, $want) = @_;
        put($b, $bytes . $noop, 10);
        my $got = read_bytes($b, length($want) + 24);
        is(unpack('H*', $got), unpack('H*', $want . $noop_reply), "[$profile] $name");
    };

    # CVE-2011-4971 (issue 192) and CVE-2017-9951: body lengths of 2^31 and more
    for my $op (0x12, 0x01, 0x11, 0x02, 0x0e, 0x19, 0x0f, 0x1a, 0x00, 0x05, 0x20, 0x21, 0x22, 0x25, 0xff) {
        for my $blen (0xffffffe8, 0x7fffffff, 0x80000000, 0xffffffff, 0x40000001) {
            $survives->(sprintf('CVE-2011-4971 op %02x body %x', $op, $blen),
                header($op, 1, 8, $blen) . "\0" x 40);
        }
    }

    # CVE-2016-8704: append and prepend with a body shorter than the key
    for my $op (0x0e, 0x19, 0x0f, 0x1a) {
        $closes->(sprintf('CVE-2016-8704 op %02x', $op), header($op, 0xfa, 0, 0) . 'A' x 1024,
            refusal($op, 0x81));
    }
    # CVE-2016-8705: stores with a body shorter than extras and key, and a huge one
    for my $op (0x01, 0x02, 0x03, 0x11, 0x12, 0x13) {
        $closes->(sprintf('CVE-2016-8705 op %02x', $op), header($op, 0xfa, 8, 0) . 'A' x 1024,
            refusal($op, 0x81));
        $survives->(sprintf('CVE-2016-8705 op %02x, huge', $op),
            header($op, 0xfa, 8, 0xffffffd0) . 'A' x 1024);
    }
    # CVE-2016-8706: the same in SASL
    for my $op (0x20, 0x21, 0x22) {
        $survives->(sprintf('CVE-2016-8706 op %02x', $op), header($op, 0x20, 0, 1) . 'A' x 1000);
    }

    # CVE-2020-10931: extras longer than any request has, for every opcode
    for my $op (0x00 .. 0x26) {
        next if $op == 0x07 || $op == 0x17;
        for my $elen (21, 0x30, 0xff) {
            $survives->(sprintf('CVE-2020-10931 op %02x extras %d', $op, $elen),
                header($op, 4, $elen, $elen + 4) . 'e' x $elen . 'keyk');
        }
    }

    # key lengths
    for my $op (0x00, 0x09, 0x0c, 0x0d, 0x04, 0x14) {
        $closes->(sprintf('op %02x with a key of 365', $op), packet($op, 'k' x 365), refusal($op, 0x04));
    }
    for my $op (0x1c, 0x1d, 0x1e, 0x23, 0x24) {
        $closes->(sprintf('CVE-2017-9951 op %02x with a key of 365', $op),
            packet($op, 'k' x 365, "\0" x 4), refusal($op, 0x04));
        $closes->(sprintf('CVE-2017-9951 op %02x without extras', $op), packet($op, 'key'),
            refusal($op, 0x04));
        $closes->(sprintf('CVE-2017-9951 op %02x with a lying key', $op),
            header($op, 0xffff, 4, 8) . 'A' x 64, refusal($op, 0x81)) if $profile ne 'ref';
    }
    for my $op (0x00, 0x01, 0x05, 0x04, 0x0e, 0x1c, 0x23) {
        $survives->(sprintf('op %02x without a key', $op), packet($op, ''));
    }

    # wrong magic behind a good request; a header in pieces
    $closes->('a second header with another magic', $noop . header(0x0a, 0, 0, 0, magic => 0x81),
        $noop_reply);
    {
        my $c = $server->connect;
        my $bytes = packet(0x01, 'piece', pack('NN', 7, 0), 'value') . packet(0x00, 'piece');
        for my $byte (split //, $bytes) {
            put($c, $byte);
        }
        my $got = read_bytes($c, 24 + 24 + 4 + 5);
        is(substr($got, -9), pack('N', 7) . 'value', "[$profile] byte by byte");
    }

    # too large: refused, swallowed, in sync; with watchers and without
    my $too_large = packet(0x01, 'canary2', "\0" x 8, 'x' x 1_048_577);
    $answers->('a value of item size and more', $too_large, refusal(0x01, 0x03));
    $answers->('add of it', packet(0x12, 'canary3', "\0" x 8, 'x' x 1_048_577), refusal(0x12, 0x03));

    # unknown opcodes: exactly the body is swallowed
    for my $op (0x1b, 0x1f, 0x25 .. 0xff) {
        put($b, packet($op));
        expect_bytes($b, refusal($op, 0x81), sprintf '[%s] opcode %02x', $profile, $op);
    }
    $answers->('an unknown opcode with key, extras and value',
        packet(0x77, 'key', 'extras', 'v' x 5000), refusal(0x77, 0x81)) if $profile ne 'ref';

    # SASL that is off, step before auth
    for my $op (0x20, 0x21, 0x22) {
        my @parts = $op == 0x20 ? () : ('PLAIN', '', "\0user\0password");
        $answers->(sprintf('SASL op %02x is off', $op), packet($op, @parts), refusal($op, 0x81));
    }

    # numbers
    put($b, packet(0x11, 'text', "\0" x 8, 'text'));
    $answers->('incr of text', packet(0x05, 'text', pack('Q>Q>N', 1, 0, 0)), refusal(0x05, 0x06));
    put($b, packet(0x11, 'empty', "\0" x 8, ''));
    $answers->('incr of nothing', packet(0x05, 'empty', pack('Q>Q>N', 1, 0, 0)) x 50,
        refusal(0x05, 0x06) x 50);

    # 1.6.43: many references to one item by clients that do not read
    {
        put($b, packet(0x11, 'ref', "\0" x 8, 'v' x 5000));
        put($b, $noop);
        expect_bytes($b, $noop_reply, "[$profile] a value to hold");
        my @stuck = map {
            my $c = $server->connect;
            my $pair = packet(0x0d, 'ref') . packet(0x24, 'ref', "\0" x 4);
            put($c, $pair x 10_000, 0.2);
            $c;
        } 1 .. 3;
        is(length read_bytes($_, 24 + 4 + 3 + 5000), 24 + 4 + 3 + 5000, "[$profile] 1.6.43: it flows")
            for @stuck;
        exchange($s, "delete ref\r\nset ref 0 0 3\r\nnew\r\nget ref\r\n",
            "DELETED\r\nSTORED\r\nVALUE ref 0 3\r\nnew\r\nEND\r\n", '1.6.43: replaced meanwhile');
        close $_ for @stuck;
        $unharmed->('1.6.43');
    }

    # keys of any bytes do not disturb the text listings
    my $odd = "a b\r\nEND\r\n\0\xff";
    put($b, packet(0x11, $odd, "\0" x 8, 'odd'));
    put($b, packet(0x00, $odd) . $noop);
    like(read_bytes($b, 24 + 4 + 3 + 24), qr/odd/, "[$profile] a key with blanks and line ends");
    $unharmed->('odd keys');

    # seeded rubbish: headers of all opcodes with random lengths
    srand 11;
    for my $round (1 .. 300) {
        my $bytes = '';
        for (0 .. rand 6) {
            my $op = int rand 0x30;
            $op = 0x0a if $op == 0x08 || $op == 0x18; # the canary stays
            my @sizes = (0, 1, 4, 8, 20, 21, 250, 251, 65535);
            $bytes .= header($op, $sizes[rand @sizes], $sizes[rand 6] & 0xff,
                rand() < 0.8 ? $sizes[rand @sizes] : int rand 2 ** 32) . 'b' x int rand 300;
        }
        my $c = $server->connect;
        put($c, $bytes, 5);
        shutdown $c, 1;
        my ($got, $closed) = read_until_eof($c);
        if (!$closed) {
            fail("[$profile] rubbish of round $round: not closed");
            diag('    sent: ' . show($bytes));
            last;
        }
    }
    $unharmed->('rubbish');
    $server->stop;
}

# CVE-2013-7290, -7291: binary requests under -vv
for my $profile (profiles()) {
    my $server = start_server(profile => $profile, args => ['-vv']);
    my $b = $server->connect;
    for my $op (0x00, 0x04, 0x0c, 0x1c, 0x05, 0x01, 0x0e) {
        my $extras = $op == 0x01 ? "\0" x 8 : $op == 0x05 ? "\0" x 20 : $op == 0x1c ? "\0" x 4 : '';
        put($b, packet($op, 'k' x 250, $extras, $op == 0x01 || $op == 0x0e ? 'v' : ''));
    }
    put($b, $noop);
    my $seen = '';
    while (index($seen, $noop_reply) < 0) {
        my $byte = read_bytes($b, 1);
        last if $byte eq '';
        $seen .= $byte;
    }
    like($seen, qr/\Q$noop_reply\E\z/, "[$profile] CVE-2013-7291: -vv with keys of 250");
    $server->stop;
}

# -B binary: text is closed silently, also with 24 bytes and more; -B ascii: 0x80 is text
for my $profile (profiles()) {
    my $server = start_server(profile => $profile, args => [qw(-B binary)], debug => 0);
    my $c = $server->connect;
    put($c, 'x' x 62);
    expect_eof($c, '', "[$profile] text on a binary port");
    $c = $server->connect;
    put($c, $noop);
    expect_bytes($c, $noop_reply, "[$profile] binary on a binary port");
    $server->stop;

    $server = start_server(profile => $profile, args => [qw(-B ascii)]);
    $c = $server->connect;
    put($c, $noop . "\r\n");
    like(read_line($c), qr/ERROR/, "[$profile] binary on a text port");
    $server->stop;
}

done_testing();
