#!/usr/bin/env perl
# What once crashed, hung, disclosed or overflowed a memcached (text and meta protocol,
# administration) ends in a clear answer or a closed connection; the server lives and is in sync.
#
# Elsewhere, by CVE or by the commit that mended the peer:
#   t/24, t/43  2009-2415 (lengths)   t/43  2010-1152 (a line without an end)
#   t/81  2011-4971 2016-8704 2016-8705 2016-8706 2017-9951 2020-10931 2013-7290 2013-7291
#         229cf41be (bodies beyond INT_MAX) e3b7d33ce (references of binary reads)
#   t/82  2013-7239 2016-8706 2021-37519 2026-90698 9981d748f (length of a token) ced9e1730 (a step
#         first) e7c7a1089 (UDP and SASL) 57934a1d0 (reload during logins; t/87 a thousand times)
#   t/83  7eeac6e9a (dumps that nobody reads) e7793811f 3bc58f6ea 3a66ebeb1 (watchers that close)
#   t/84  2018-1000115 2022-48571 76dc58c6b (prefixes without bounds)
#   t/85  8b852b61f a372e0d6c (no memory)   t/87  32ea7d8b5 (a failed store that is watched)
#   t/r0007  3791d9eda (a listener's protocol and -Y)   t/unit/check_mover.c  08474d86a
#   t/unit/check_auth_time.c  2026-47783 2026-47784   t/39  0d77dc6c3 (-e)
#   here without a number: e8364b58b (65,535 blanks) 17684bfa9 (flags that lack their number)
use MCTest;

my $format = "CLIENT_ERROR bad command line format\r\n";
my $canary = "VALUE canary 5 6\r\nyellow\r\nEND\r\n";

each_profile(sub ($profile) {
    my $six = $profile ne '1.4';
    my ($server, $s) = serve($profile, qw(-m 64 -c 512 -t 2));

    my $unharmed = canary($server, $s);
    # Bytes on a connection of their own whose sending side is closed behind them: the server
    # answers (whatever it says) and closes.
    my $survives = sub ($name, $bytes, $want = undef) {
        my $c = $server->connect;
        put($c, $bytes, 10);
        shutdown $c, 1;
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "$name: closed");
        like($got, $want, "$name: answer") if defined $want;
        $unharmed->($name);
        return $got;
    };
    # A request and its exact answer on one connection that stays in sync.
    my $answers = sub ($id, $send, $want, $name = undef) {
        exchange($s, $send, $want, $id . ' ' . ($name // show(substr $send, 0, 50)));
    };

    # CVE-2009-1255, CVE-2009-1494: nothing about memory is told
    $answers->('CVE-2009-1255', "stats $_\r\n", "ERROR\r\n") for qw(maps malloc foo);

    # issue 102, 1.6.45: blanks, NULs and rubbish up to the end of the buffer
    $survives->("$_ blanks", ' ' x $_) for 1, 99, 100, 101, 1023, 1024, 1025, 2047, 2048, 2049,
        14_000, 16_383, 16_384, 65_535, 65_536;
    $survives->("$_ blanks and LF", ' ' x $_ . "\n") for 1, 100, 2047, 2048, 16_384, 65_535;
    $survives->("$_ NULs and LF", "\0" x $_ . "\r\n") for 1, 100, 2047, 2048, 16_384;
    $survives->('NUL in a command', "get a\0b c\r\nset a\0 0 0 1\r\nx\r\nincr \0 1\r\n");
    $survives->("lines of a byte", "\n" x 5000);
    $survives->("lines of CR LF", "\r\n" x 5000);
    $survives->("CRs", "\r" x 5000);

    # CVE-2023-46852: blanks before a key; CVE-2023-46853: LF without CR
    $answers->('CVE-2023-46852', 'get' . (' ' x $_) . "canary\r\n", $canary, "get and $_ blanks") for 20, 100,
        1000;
    $answers->('CVE-2023-46853', @$_) for ["set lf 0 0 1\n1\r\n", "STORED\r\n"],
        ["get lf\n", "VALUE lf 0 1\r\n1\r\nEND\r\n"], ["incr lf 1\n", "2\r\n"], ["touch lf 0\n", "TOUCHED\r\n"],
        ["delete lf\n", "DELETED\r\n"], ["set lf 0 0 1\n1\n\n", qr/^CLIENT_ERROR bad data chunk\r\n/];

    # CVE-2013-0179 and 2019-11596: words that are missing
    for my $line ('lru', 'lru mode', 'lru tune', 'lru tune 10', 'lru tune 10 20', 'lru tune 10 20 0.1',
            'lru temp_ttl', 'lru bogus', 'lru_crawler', 'lru_crawler crawl', 'lru_crawler tocrawl',
            'lru_crawler sleep', 'lru_crawler metadump', 'lru_crawler bogus', 'slabs', 'slabs reassign',
            'slabs reassign 1', 'slabs automove', 'slabs bogus', 'slabs automove ratio', 'watch bogus',
            'stats detail', 'stats cachedump', 'stats cachedump 1', 'cache_memlimit', 'verbosity',
            'debugitem', 'debugtime', 'misbehave x', 'extstore', 'extstore x', 'refresh_certs') {
        $answers->('CVE-2019-11596', "$line\r\n", qr/^(?:(?:CLIENT_|SERVER_)?ERROR|OK|MISS)[^\r\n]*\r\n\z/,
            $line);
    }
    # 1.6.42 and later: classes and numbers out of range
    for my $pair ('31 64', '31 60', '-1 0', '0 0', '2147483647 1', '1 2147483647', '-5 70', '1 -1',
            '99999999999999999999 1', 'x y', '1 1') {
        $answers->('0240ddee0', "slabs reassign $pair\r\n",
            qr/^(?:OK|BUSY|BADCLASS|NOSPARE|SAME|CLIENT_ERROR|ERROR)[^\r\n]*\r\n\z/, "slabs reassign $pair");
    }
    $answers->('6ab74b585', "slabs automove $_\r\n", qr/^(?:OK|CLIENT_ERROR|ERROR)[^\r\n]*\r\n\z/,
        "slabs automove $_") for '0', '1', '2', '3', '-1', 'x', 'window 0', 'window 1', 'window 2',
        'window 1801', 'window 4294967295', 'window -1', 'window', 'ratio x', 'ratio 2', 'freeratio x', '0';
    for my $list (split / /, '0 64 65 -1 x 1,2,64 , 1, ,1 4294967296 99999999999999999999 1,1,1 all') {
        $answers->('crawl', "lru_crawler crawl $list\r\n",
            qr/^(?:OK|BUSY|BADCLASS|NOTSTARTED|CLIENT_ERROR|ERROR)[^\r\n]*\r\n\z/, "crawl $list");
    }
    $answers->('issue 92', "stats cachedump $_\r\n", qr/(?:END|ERROR[^\r\n]*)\r\n\z/, "stats cachedump $_")
        for '64 0', '200 0 0', '-1 0', '1 -1', '99999999999 1', '1 4294967296';
    $answers->('limits', "cache_memlimit $_\r\n", qr/^(?:MEMLIMIT|CLIENT_ERROR|ERROR)[^\r\n]*\r\n\z/,
        "cache_memlimit $_") for qw(-1 0 x 1000000001 18446744073709551615 99999999999999999999);
    $answers->('refresh_certs', "refresh_certs\r\n", qr/^ERROR\r\n\z/);
    $unharmed->('administration');

    exchange($s, "set e 0 0 0\r\n\r\n", "STORED\r\n");
    exchange($s, "incr e 1\r\n" x 100 . "delete e\r\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n" x 100 . "DELETED\r\n",
        'incr of an empty value holds nothing back');

    # CVE-2018-1000127, 1.6.43: more references to one item than 16 bits count
    {
        my $value = 'v' x 3000;
        exchange($s, "set ref 0 0 3000\r\n$value\r\n", "STORED\r\n");
        my @stuck = map {
            my $c = $server->connect;
            put($c, 'get' . ' ref' x 33_000 . "\r\n", 10);
            $c;
        } 1 .. 3;
        my $piece = "VALUE ref 0 3000\r\n$value\r\n";
        is(read_bytes($_, length $piece) eq $piece, 1, 'CVE-2018-1000127: the first of 33,000') for @stuck;
        exchange($s, "delete ref\r\nset ref 0 0 3\r\nnew\r\nget ref\r\n",
            "DELETED\r\nSTORED\r\nVALUE ref 0 3\r\nnew\r\nEND\r\n", 'CVE-2018-1000127: replaced meanwhile');
        my $whole = grep {
            my $head = read_line($stuck[0]);
            my ($n) = $head =~ /^VALUE ref 0 (3|3000)\r\n\z/;
            $n && read_bytes($stuck[0], $n + 2) eq ($n == 3 ? "new\r\n" : "$value\r\n");
        } 1 .. 2000;
        is($whole, 2000, 'CVE-2018-1000127: whole values, old or new');
        close $_ for @stuck;
        $unharmed->('CVE-2018-1000127');
    }

    # HTTP: no command inside a request body is run
    {
        my $body = "set http 0 0 1\r\n1\r\n";
        my $c = $server->connect;
        put($c, "POST / HTTP/1.1\r\nHost: x\r\n\r\n$body", 5);
        shutdown $c, 1;
        my ($got) = read_until_eof($c);
        is($got, '', "a browser's request is dropped") if $six;
        exchange($s, "get http\r\n", "END\r\n", 'nothing of its body is run') if $six;
        $unharmed->('HTTP');
    }

    # CVE-2020-22570 and 1.6.45: meta flags without what they need, at the end of the line
    if ($six) {
        for my $verb ('mg canary', 'md nix', 'ma nix', 'me canary') {
            for my $letter ('A' .. 'Z', 'a' .. 'z', '0', '-', "\x01", "\x7f", "\x80", "\xff") {
                next if "$verb $letter" =~ /^(?:md|ma).* [xI]/;
                $answers->('CVE-2020-22570', "$verb $letter\r\n",
                    qr/^(?:(?:HD|EN|NF|ME|VA)[^\r]*|CLIENT_ERROR [^\r]*)\r\n(?:yellow\r\n)?\z/,
                    show("$verb $letter"));
            }
        }
        $answers->('CVE-2020-22570', "ms junk 2 $_\r\nhi\r\nget canary\r\n",
            qr/^(?:HD[^\r]*\r\n|NF[^\r]*\r\n|EX[^\r]*\r\n|NS[^\r]*\r\n|CLIENT_ERROR [^\r]*\r\n|)\Q$canary\E\z/,
            show("ms junk 2 $_")) for 'A' .. 'Z', 'a' .. 'z', "\xff";
        my $long = 'O' . 'o' x 40;
        $answers->('152ddb68f', "mg canary $long\r\n" x 300 . "mg canary v\r\n",
            "CLIENT_ERROR opaque token too long\r\n" x 300 . "VA 6\r\nyellow\r\n",
            'long opaques hold no reference');
        $answers->('152ddb68f', "ms junk 2 $long\r\nhi\r\n" x 300 . "md junk q\r\nmn\r\n",
            qr/^(?:CLIENT_ERROR opaque token too long\r\n){300}(?:NF\r\n)?MN\r\n\z/, 'nor do those of ms');
        $answers->('flags', 'mg canary' . (' v' x 30) . "\r\n", qr/^CLIENT_ERROR [^\r]*\r\n\z/);
        for my $key ('=', '====', 'a', 'ab', 'abc', 'YQ=', 'YQ', 'Y Q==', '*' x 8, 'A' x 250, 'A' x 252,
                "\xff" x 4) {
            $answers->('base64', "mg $key b k v\r\n", qr/^(?:EN[^\r]*|CLIENT_ERROR [^\r]*)\r\n\z/,
                show("base64 key $key"));
            $answers->('base64', "ms $key 2 b c\r\nhi\r\nmn\r\n",
                qr/^(?:HD[^\r]*|CLIENT_ERROR [^\r]*)\r\n(?:CLIENT_ERROR [^\r]*\r\n|ERROR\r\n)*MN\r\n\z/,
                show("base64 key $key stored"));
        }
        $answers->('meta keys', "mg " . ('k' x 251) . " v\r\n", $format);
        $survives->('meta lines that end at once', "mg\r\nmg \r\nms\r\nms \r\nms a\r\nmd\r\nma\r\nme\r\nmn\r\n");
    }

    $unharmed->('at the end');
});

# CVE-2013-0179, -7290, -7291: nothing is printed past its end
each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-vv');
    my $key = 'k' x 250;
    exchange($s, "set $key 0 0 1\r\n1\r\nget $key\r\ndelete $key\r\n",
        "STORED\r\nVALUE $key 0 1\r\n1\r\nEND\r\nDELETED\r\n", 'CVE-2013-0179 -vv with a key of 250');
    exchange($s, "get " . ('%s%n' x 50) . "\r\n", "END\r\n", 'a key of formats');
    exchange($s, "verbosity 1000000\r\n", qr/\r\n/);
    put($s, "get a\0b\r\nget \xff\xfe\r\n");
});

# CVE-2019-15026: UNIX sockets in stats conns
each_profile(sub ($profile) {
    my $dir = scratch_dir();
    for my $name ('s', 'p' x (106 - length $dir)) {
        my $path = "$dir/$name";
        my ($server, $s) = serve($profile, '-s', $path, {path => $path});
        my ($listener) = grep { /:addr unix:/ } stat_lines($s, 'conns');
        like($listener, qr/:addr unix:\Q$path\E\z/, 'the path of ' . length($path) . ' bytes');
        $server->stop;
        unlink $path;
    }
});

# A client names its own UNIX socket: in stats conns that is one word of one line.
{
    my $dir = scratch_dir();
    my ($server, $s) = serve('native', '-s', "$dir/t", {path => "$dir/t"});
    my $client = IO::Socket::UNIX->new(Local => "$dir/x\r\nEND\r\nSTAT \x7fy", Peer => "$dir/t") or die $!;
    exchange($client, "mn\r\n", "MN\r\n");
    my @lines = grep { m{addr unix:\Q$dir\E/x} } stat_lines($s, 'conns');
    is(scalar(@lines), 1, 'the client is in stats conns');
    like($lines[0], qr{:addr unix:\Q$dir\E/x__END__STAT__y\z}, 'with a name that ends no line and has no blank');
    exchange($s, "mn\r\n", "MN\r\n", '... and replies are in step');
}

done_testing();
