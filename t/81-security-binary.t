#!/usr/bin/env perl
# Binary requests that lie about their lengths, and those that once crashed or corrupted a
# memcached, are refused as the protocol says; the server lives and is in sync.
use MCTest;
use MCBinary;

my %TEXT = (0x01 => 'Not found', 0x04 => 'Invalid arguments', 0x81 => 'Unknown command',
    0x03 => 'Too large.', 0x06 => 'Non-numeric server-side value for incr or decr');

# The head of a request; lengths can be made to lie.
sub header($op, $klen, $elen, $blen = undef, %o) {
    return pack 'CCnCCnNNQ>', $o{magic} // 0x80, $op, $klen, $elen, 0, 0, $blen, OPAQUE, $o{cas} // 0;
}

sub refusal($op, $status) { return error_bytes($op, $status, $TEXT{$status}); }

my $noop = request(0x0a);
my $noop_reply = error_bytes(0x0a, 0, '');

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, qw(-m 64 -t 2));
    my $b = $server->connect;

    my $is_there = canary($server, $s);
    # The server lives; a text and a binary connection that were open all along are in sync.
    my $unharmed = sub ($name) {
        $is_there->($name);
        put($b, $noop);
        expect_bytes($b, $noop_reply, "$name: binary too");
    };
    # Is answered by exactly this and closed, with the sender's side open.
    my $closes = sub ($name, $bytes, $want) {
        my $c = $server->connect;
        put($c, $bytes, 10);
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "$name: closed");
        is(unpack('H*', $got), unpack('H*', $want), "$name: answer") if defined $want;
        $unharmed->($name);
    };
    # Ends in a closed connection once the client has nothing more to say.
    my $survives = sub ($name, $bytes) {
        my $c = $server->connect;
        put($c, $bytes, 10);
        shutdown $c, 1;
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "$name: closed");
        $unharmed->($name);
        return $got;
    };
    # Is answered and the connection stays in sync.
    my $answers = sub ($name, $bytes, $want) {
        put($b, $bytes . $noop, 10);
        my $got = read_bytes($b, length($want) + 24);
        is(unpack('H*', $got), unpack('H*', $want . $noop_reply), "$name");
    };

    # CVE-2011-4971 (issue 192) and CVE-2017-9951: body lengths of 2^31 and more
    for my $op (0x12, 0x01, 0x11, 0x02, 0x0e, 0x19, 0x0f, 0x1a, 0x00, 0x05, 0x20, 0x21, 0x22, 0x25, 0xff) {
        $survives->(sprintf('CVE-2011-4971 op %02x body %x', $op, $_), header($op, 1, 8, $_) . "\0" x 40)
            for 0xffffffe8, 0x7fffffff, 0x80000000, 0xffffffff, 0x40000001;
    }

    # CVE-2016-8704: append and prepend with a body shorter than the key
    $closes->(sprintf('CVE-2016-8704 op %02x', $_), header($_, 0xfa, 0, 0) . 'A' x 1024, refusal($_, 0x81))
        for 0x0e, 0x19, 0x0f, 0x1a;
    # CVE-2016-8705: stores with a body shorter than extras and key, and a huge one
    for my $op (0x01, 0x02, 0x03, 0x11, 0x12, 0x13) {
        $closes->(sprintf('CVE-2016-8705 op %02x', $op), header($op, 0xfa, 8, 0) . 'A' x 1024,
            refusal($op, 0x81));
        $survives->(sprintf('CVE-2016-8705 op %02x, huge', $op),
            header($op, 0xfa, 8, 0xffffffd0) . 'A' x 1024);
    }
    # CVE-2016-8706: the same in SASL
    $survives->(sprintf('CVE-2016-8706 op %02x', $_), header($_, 0x20, 0, 1) . 'A' x 1000) for 0x20, 0x21, 0x22;

    # CVE-2020-10931: extras longer than any request has, for every opcode
    for my $op (0x00 .. 0x26) {
        next if $op == 0x07 || $op == 0x17;
        $survives->(sprintf('CVE-2020-10931 op %02x extras %d', $op, $_), header($op, 4, $_, $_ + 4) . 'e' x $_
            . 'keyk') for 21, 0x30, 0xff;
    }

    # key lengths
    $closes->(sprintf('op %02x with a key of 365', $_), request($_, 'k' x 365), refusal($_, 0x04)) for 0x00,
        0x09, 0x0c, 0x0d, 0x04, 0x14;
    for my $op (0x1c, 0x1d, 0x1e, 0x23, 0x24) {
        $closes->(sprintf('CVE-2017-9951 op %02x with a key of 365', $op),
            request($op, 'k' x 365, "\0" x 4), refusal($op, 0x04));
        $closes->(sprintf('CVE-2017-9951 op %02x without extras', $op), request($op, 'key'),
            refusal($op, 0x04));
        $closes->(sprintf('CVE-2017-9951 op %02x with a lying key', $op),
            header($op, 0xffff, 4, 8) . 'A' x 64, refusal($op, 0x81)) if $profile ne 'ref';
    }
    $survives->(sprintf('op %02x without a key', $_), request($_, '')) for 0x00, 0x01, 0x05, 0x04, 0x0e, 0x1c,
        0x23;

    # unknown opcodes: exactly the body is swallowed
    for my $op (0x1b, 0x1f, 0x25 .. 0xff) {
        put($b, request($op));
        expect_bytes($b, refusal($op, 0x81), sprintf '[%s] opcode %02x', $profile, $op);
    }
    $answers->('an unknown opcode with key, extras and value',
        request(0x77, 'key', 'extras', 'v' x 5000), refusal(0x77, 0x81)) if $profile ne 'ref';

    # SASL that is off, step before auth
    for my $op (0x20, 0x21, 0x22) {
        my @parts = $op == 0x20 ? () : ('PLAIN', '', "\0user\0password");
        $answers->(sprintf('SASL op %02x is off', $op), request($op, @parts), refusal($op, 0x81));
        $answers->(sprintf('SASL op %02x is off, whatever its lengths', $op), "\x80" . chr($op)
            . "\0\0\x02\0\0\0\0\0\0\x06\xde\xad\xbe\xef\0\0\0\0\0\0\0\0exdata", refusal($op, 0x81));
    }

    # numbers
    put($b, request(0x11, 'text', "\0" x 8, 'text'));
    $answers->('incr of text', request(0x05, 'text', pack('Q>Q>N', 1, 0, 0)), refusal(0x05, 0x06));
    put($b, request(0x11, 'empty', "\0" x 8, ''));
    $answers->('incr of nothing', request(0x05, 'empty', pack('Q>Q>N', 1, 0, 0)) x 50,
        refusal(0x05, 0x06) x 50);

    # 1.6.43: many references to one item by clients that do not read
    {
        put($b, request(0x11, 'ref', "\0" x 8, 'v' x 5000));
        put($b, $noop);
        expect_bytes($b, $noop_reply, 'a value to hold');
        my @stuck = map {
            my $c = $server->connect;
            my $pair = request(0x0d, 'ref') . request(0x24, 'ref', "\0" x 4);
            put($c, $pair x 10_000, 0.2);
            $c;
        } 1 .. 3;
        is(length read_bytes($_, 24 + 4 + 3 + 5000), 24 + 4 + 3 + 5000, '1.6.43: it flows') for @stuck;
        exchange($s, "delete ref\r\nset ref 0 0 3\r\nnew\r\nget ref\r\n",
            "DELETED\r\nSTORED\r\nVALUE ref 0 3\r\nnew\r\nEND\r\n", '1.6.43: replaced meanwhile');
        close $_ for @stuck;
        $unharmed->('1.6.43');
    }

    # keys of any bytes do not disturb the text listings
    my $odd = "a b\r\nEND\r\n\0\xff";
    put($b, request(0x11, $odd, "\0" x 8, 'odd'));
    put($b, request(0x00, $odd) . $noop);
    like(read_bytes($b, 24 + 4 + 3 + 24), qr/odd/, 'a key with blanks and line ends');
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
            fail("rubbish of round $round: not closed");
            diag('    sent: ' . show($bytes));
            last;
        }
    }
    $unharmed->('rubbish');
});

# CVE-2013-7290, -7291: binary requests under -vv
each_profile(sub ($profile) {
    my ($server, $b) = serve($profile, '-vv');
    for my $op (0x00, 0x04, 0x0c, 0x1c, 0x05, 0x01, 0x0e) {
        my $extras = $op == 0x01 ? "\0" x 8 : $op == 0x05 ? "\0" x 20 : $op == 0x1c ? "\0" x 4 : '';
        put($b, request($op, 'k' x 250, $extras, $op == 0x01 || $op == 0x0e ? 'v' : ''));
    }
    put($b, $noop);
    my $seen = '';
    while (index($seen, $noop_reply) < 0) {
        my $byte = read_bytes($b, 1);
        last if $byte eq '';
        $seen .= $byte;
    }
    like($seen, qr/\Q$noop_reply\E\z/, 'CVE-2013-7291: -vv with keys of 250');
});

done_testing();
