#!/usr/bin/env perl
# Every malformed text command gets the exact error line of the profile, and what follows it
# on the connection is read from the right byte.
use MCTest;

my $format = "CLIENT_ERROR bad command line format\r\n";
my $key250 = 'k' x 250;
my $key251 = 'k' x 251;

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    my ($server, $s) = serve($profile);
    my $count = pick($profile, '1.4' => "ERROR\r\n", '1.6' => $format, ref => "ERROR\r\n");

    # unknown commands
    exchanges($s, ["fooble\r\n", "ERROR\r\n"], ["fooble\n", "ERROR\r\n"],
        ["GET foo\r\n", "ERROR\r\n", 'commands are case sensitive'], ["Version\r\n", "ERROR\r\n"],
        ["versionx\r\n", "ERROR\r\n"], ["versio\r\n", "ERROR\r\n"],
        ["get\tfoo\r\n", "ERROR\r\n", 'a tab does not separate words'],
        ["\x01\x02\x03\x04\xff\xfe\r\n", "ERROR\r\n", 'binary rubbish'],
        ["fooble noreply\r\n", "ERROR\r\n", 'unknown command with noreply']);

    # short and blank lines
    my $short = pick($profile, '1.4' => "ERROR\r\n", '1.6' => $format, ref => "ERROR\r\n");
    exchanges($s, ["\r\n", $short, 'an empty line'], ["\n", $short, 'an empty line of LF'],
        [" \n", $short, 'a blank line'], ["x\r\n", $short, 'a line of one letter'],
        ["   \r\n", qr/\A(\Q$format\E|ERROR\r\n)\z/, 'a line of three blanks']);

    # word counts
    exchanges($s, ["get\r\n", $count], ["gets\r\n", $count]);
    exchanges($s, ["$_\r\n", $count], ["$_ a\r\n", $count], ["$_ a 0\r\n", $count], ["$_ a 0 0\r\n", $count])
        for qw(set add replace append prepend);
    exchanges($s, ["cas a 0 0\r\n", $count], ["incr\r\n", $count], ["incr a\r\n", $count],
        ["decr a\r\n", $count], ["touch\r\n", $count], ["touch a\r\n", $count], ["delete\r\n", $count]);
    if ($profile eq '1.4') {
        exchanges($s, ["incr a 1 2 3\r\n", "ERROR\r\n"], ["decr a 1 2 3\r\n", "ERROR\r\n"],
            ["touch a 1 2 3\r\n", "ERROR\r\n"], ["delete a 1 2 3\r\n", "ERROR\r\n"],
            ["set a 0 0 0 1 2\r\n", "ERROR\r\n"], ["cas a 0 0 0 1 2 3\r\n", "ERROR\r\n"],
            ["flush_all 1 2 3\r\n", "ERROR\r\n"], ["version foo\r\n", "ERROR\r\n"],
            ["quit foo\r\n", "ERROR\r\n", 'quit with a word does not quit'], ["verbosity\r\n", "ERROR\r\n"],
            ["verbosity 1 2 3\r\n", "ERROR\r\n"], ["cache_memlimit\r\n", "ERROR\r\n"],
            ["cache_memlimit 64 2 3\r\n", "ERROR\r\n"]);
    }

    # cas without a unique: 1.4 reads the data line as a command, 1.6 swallows it
    exchange($s, "cas k 0 0 6 \r\nfooval\r\n", pick($profile, '1.4' => "ERROR\r\nERROR\r\n", '1.6' => $format,
        ref => "ERROR\r\nERROR\r\n"), 'cas without a unique');

    # keys
    exchanges($s,
        ["set $key251 0 0 3\r\nabc\r\n",
            pick($profile, '1.4' => "${format}ERROR\r\n", '1.6' => $format, ref => "${format}ERROR\r\n"),
            'set with a key of 251 bytes'],
        ["get $key251\r\n",
            pick($profile, '1.4' => $format, '1.6' => qr/\A\Q$format\E(\r\n)?\z/, ref => $format),
            'get of a key of 251 bytes'], ["set a 0 0 1\r\n1\r\n", "STORED\r\n"],
        ["get a $key251\r\n", $format, 'get a <251>: only the error line'],
        ["gets a a a a a a a a a $key251 a\r\n", $format, 'an over-long key late'],
        ["incr $key251 1\r\n", $format], ["decr $key251 1\r\n", $format], ["touch $key251 1\r\n", $format],
        ["delete $key251\r\n", $format]);
    exchange($s, "$_ $key251 0 0 3\r\nabc\r\n", pick($profile, '1.4' => "${format}ERROR\r\n", '1.6' => $format,
        ref => "${format}ERROR\r\n"), "$_ with a key of 251 bytes") for qw(add replace append prepend);
    exchange($s, "cas $key251 0 0 3 1\r\nabc\r\n", pick($profile, '1.4' => "${format}ERROR\r\n",
        '1.6' => $format, ref => "${format}ERROR\r\n"), 'cas with a key of 251 bytes');

    # numbers of the storage line: what follows is read as a command in 1.4, swallowed in 1.6
    for my $bad ('-1 0', '-2147483648 0', '18446744073709551616 0', '99999999999999999999999 0',
        '0x1 0', 'f 0', '1f 0', '0 x', '0 1x', '0 99999999999999999999') {
        exchange($s, "set b $bad 3\r\nabc\r\n", pick($profile, '1.4' => "${format}ERROR\r\n",
                '1.6' => $format, ref => "${format}ERROR\r\n"), "set with flags, exptime $bad");
    }
    exchange($s, "cas a 0 0 3 x\r\nabc\r\n", pick($profile, '1.4' => "${format}ERROR\r\n",
            '1.6' => $format, ref => "${format}ERROR\r\n"), 'cas with a bad unique');
    exchange($s, "cas a 0 0 3 18446744073709551616\r\nabc\r\n", pick($profile, '1.4' => "${format}ERROR\r\n",
        '1.6' => $format, ref => "${format}ERROR\r\n"), 'cas with a unique of 2^64');

    # bad lengths: nothing is swallowed
    for my $bad (qw(-1 -2147483648 2147483646 2147483647 2147483648 4294967295 4294967296
        18446744073709551615 18446744073709551616 x 1x 0x10 --1)) {
        next if $is_ref && $bad =~ /^(4294967296|2147483646)$/;
        exchange($s, "set c 0 0 $bad\r\nversion\r\n", $format . VERSION_REPLY($profile),
            "set with length $bad: the next line is a command");
    }

    # data block without CR LF
    my $short_line = pick($profile, '1.4' => "ERROR\r\n", '1.6' => $format, ref => "ERROR\r\n");
    my $chunk = "CLIENT_ERROR bad data chunk\r\n";
    exchange($s, "set d 0 0 1\r\n1\r\n", "STORED\r\n");
    {
        exchange($s, "set d 0 0 1\r\nxyz\r\n", $chunk . $short_line, {cmd_set => 1},
            'data too long: exactly length + 2 bytes are consumed');
        mem_get_is($s, 'd', '1', 'a bad data chunk leaves the old value');
        exchanges($s,
            ["set d 0 0 1\r\nx\n\nversion\r\n", $chunk . VERSION_REPLY($profile), 'LF LF is no end of data'],
            ["set d 0 0 5\r\nabcdeXYversion\r\n", $chunk . VERSION_REPLY($profile)],
            ["set d 0 0 0\r\nXYversion\r\n", $chunk . VERSION_REPLY($profile),
                'zero-length data without CR LF'], ["add nn 0 0 1\r\nx\n\nget nn\r\n", $chunk . "END\r\n"],
            ["append d 0 0 1\r\nx\n\nget d\r\n", $chunk . "VALUE d 0 1\r\n1\r\nEND\r\n"]);
        my ($cas) = mem_gets($s, 'd');
        exchange($s, "cas d 0 0 1 $cas\r\nx\n\nget d\r\n", $chunk . "VALUE d 0 1\r\n1\r\nEND\r\n");
    }

    # delete with an argument
    exchange($s, "set e 0 0 1\r\n1\r\n", "STORED\r\n");
    my $usage = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
    exchange($s, "delete e 10\r\n", pick($profile, '1.4' => $usage, '1.6' => "DELETED\r\n", ref => $usage));
    mem_get_is($s, 'e', pick($profile, '1.4' => '1', '1.6' => undef, ref => '1'),
        'and the key is there or gone');

    # incr and decr
    my $delta = "CLIENT_ERROR invalid numeric delta argument\r\n";
    my $value = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    exchange($s, "set n 0 0 2\r\n10\r\n", "STORED\r\n");
    for my $bad (qw(x 1x -1 0x1 18446744073709551616 99999999999999999999)) {
        exchange($s, "incr n $bad\r\n", $delta, {incr_hits => 0, incr_misses => 0});
        exchange($s, "decr n $bad\r\n", $delta, {decr_hits => 0, decr_misses => 0});
    }
    exchange($s, "incr n +1\r\n", pick($profile, '1.4' => "11\r\n", '1.6' => $delta, ref => "11\r\n"));
    for my $bad ('text', '-1', '', '18446744073709551616', '123456789012345678901', '1x',
        '0x1', '1.5') {
        exchange($s, "set nn 0 0 " . length($bad) . "\r\n$bad\r\n", "STORED\r\n");
        exchange($s, "incr nn 1\r\n", $value, "incr of the value '$bad'");
        exchange($s, "decr nn 1\r\n", $value, "decr of the value '$bad'");
    }

    # touch and gat
    my $exptime = "CLIENT_ERROR invalid exptime argument\r\n";
    exchanges($s, ["touch n x\r\n", $exptime], ["touch n 1x\r\n", $exptime],
        ["touch n 99999999999999999999\r\n", $exptime]);
    exchange($s, "touch n 4294967296\r\n", $exptime) if $profile eq '1.6';
    exchanges($s, ["gat x n\r\n", $exptime], ["gats x n\r\n", $exptime]);
    exchange($s, "gat 0 n $key251\r\n", $format) if !$is_ref;

    # flush_all and verbosity with rubbish
    exchanges($s, ["flush_all invalid\r\n", pick($profile, '1.4' => "OK\r\n", '1.6' => $exptime)],
        ["flush_all 99999999999999999999\r\n", pick($profile, '1.4' => $format, '1.6' => $exptime)],
        ["verbosity invalid\r\n", pick($profile, '1.4' => "OK\r\n", '1.6' => $format)],
        ["verbosity 0\r\n", "OK\r\n"]);

    # administration
    exchanges($s, ["cache_memlimit\r\n", qr/\A(ERROR|\Q$count\E)/], ["cache_memlimit x\r\n", "ERROR\r\n"],
        ["cache_memlimit 7\r\n", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"],
        ["cache_memlimit 1000000001\r\n", "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n"],
        ["stats fooble\r\n", "ERROR\r\n"], ["stats maps\r\n", "ERROR\r\n", 'stats maps discloses nothing'],
        ["stats malloc\r\n", "ERROR\r\n", 'stats malloc discloses nothing'],
        ["shutdown\r\n",
            pick($profile, '1.4' => "ERROR: shutdown not enabled\r\n", '1.6' => "SERVER_ERROR: shutdown not enabled\r\n", ref => "ERROR: shutdown not enabled\r\n")]);
    exchange($s, "debugtime\r\n", qr/ERROR/, 'debugtime without a number') if !$is_ref;
    exchange($s, "slabs\r\n", qr/\A(ERROR|\Q$format\E)/);
    exchange($s, "lru mode\r\n", "ERROR\r\n", 'lru mode without an argument') if !$is_ref;
    exchange($s, "lru temp_ttl\r\n", "ERROR\r\n") if !$is_ref;

    # too large values
    my $big = 'x' x 1048577;
    exchange($s, "set big 0 0 3\r\nold\r\n", "STORED\r\n");
    exchange($s, "set big 0 0 1048577\r\n$big\r\nversion\r\n", "SERVER_ERROR object too large for cache\r\n"
        . VERSION_REPLY($profile), 'a value above -I is refused and swallowed');
    mem_get_is($s, 'big', undef, 'and the stale value is gone');
    exchange($s, "set big 0 0 1048577 noreply\r\n$big\r\nversion\r\n", VERSION_REPLY($profile),
        'noreply hides that error too');

    # first lines of HTTP requests
    for my $line ('GET / HTTP/1.0', 'PUT /x HTTP/1.1', 'DELETE HTTP/1.1') {
        my $h = $server->connect;
        if ($profile eq '1.4') {
            exchange($h, "$line\r\n", "ERROR\r\n");
        } else {
            put($h, "$line\r\n");
            expect_eof($h, '', "$line closes the connection", "$line\r\n");
        }
    }

    # NUL bytes
    exchange($s, "set z 0 0 3\r\na\0b\r\n", "STORED\r\n");
    exchange($s, "get z\r\n", "VALUE z 0 3\r\na\0b\r\nEND\r\n", 'NUL inside a value');
    exchange($s, "\0\0\0\0\0\r\n", "ERROR\r\n", 'a line of NUL bytes') if !$is_ref;
    exchanges($s, ["set q\0x 0 0 1\r\n1\r\n", "STORED\r\n", 'NUL inside a key'], ["get q\r\n", "END\r\n",
        'is part of the key'], ["get q\0x\r\n", "VALUE q\0x 0 1\r\n1\r\nEND\r\n"]) if !$is_ref;
    $server->stop;

    if (!$is_ref) {
        my $plain = serve($profile, {debug => 0});
        exchange($plain->connect, "debugtime 1\r\n", "ERROR\r\n",
            'debugtime is unknown without --debug-commands');
        exchange($plain->connect, "$_\r\n", "ERROR\r\n", "'$_' likewise")
            for 'debugtime', 'debugtime 1 2', 'debugitem', 'debugitem ref k', 'debugitem ref k 1';
        $plain->stop;
        my ($noflush, $f) = serve($profile, '-F');
        exchanges($f, ["set a 0 0 1\r\n1\r\n", "STORED\r\n"],
            ["flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n", {cmd_flush => 1}]);
        mem_get_is($f, 'a', '1');
    }
});

done_testing();
