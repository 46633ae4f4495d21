#!/usr/bin/env perl
# Endless lines, floods of blanks, huge and negative lengths and rubbish end in a clear error
# or a closed connection, in bounded memory, and the next client is served.
use MCTest;

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    my ($server, $s) = serve($profile);
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my $rss = proc_status($server->pid, 'VmRSS');
    my $closes = sub {
        my ($send, $name) = @_;
        my $c = $server->connect;
        put($c, $send);
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "$name: closed") or diag('    got: ' . show($got));
        is($got, '', "$name: without a reply");
        exchange($s, "get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n", 'the next is served');
    };
    my $answers = sub ($first, $rest, $want, $name) {
        my $c = $server->connect;
        put($c, $first);
        roundtrip($s, "get x\r\n", "END\r\n");
        exchange($c, $rest, $want, $name);
    };

    # lines without an end
    $closes->('x' x 4096, '4096 letters without LF');
    $closes->('x' x 10_000_000, 'ten million letters without LF');
    $closes->(' ' x 4095, '4095 blanks') if !$is_ref;
    $closes->((' ' x 101) . 'gets foo' . (' ' x 3986), '101 blanks and a get') if !$is_ref;
    $closes->('incr ' . (' ' x 4096) . 'manyspaces 1', 'incr and 4096 blanks');
    $closes->('set ' . ('k' x 4096), 'a set with an endless key');
    $closes->('gat 0 ' . ('k ' x 4096), 'gat has no exemption') if !$is_ref;
    $closes->("\0" x 4096, '4096 NUL bytes');
    $closes->("version " . ("\0" x 100_000), 'version and NUL bytes');
    $closes->(join('', map { chr(128 + $_ % 127) } 1 .. 100_000), 'high bytes') if !$is_ref;
    my $limit = pick($profile, '1.4' => 1024, '1.6' => 2048);
    $answers->('x' x ($limit - 100), "\r\n", "ERROR\r\n", 'a long line below the limit');

    # lines of get may be long
    my $keys = join ' ', map { sprintf '%010d', $_ } 1 .. 363;
    $answers->("gets $keys", "\r\n", "END\r\n", 'gets of 4000 bytes, LF later');
    $answers->("get $keys", "\r\n", "END\r\n", 'get of 4000 bytes, LF later');
    $answers->('get ' . (' ' x 2048) . 'manyspaces', "\r\n", "END\r\n", 'get and 2048 blanks');
    $answers->('get' . (' a' x 300_000), " a\r\n", "VALUE a 0 1\r\n1\r\n" x 300_001 . "END\r\n",
        'get of 300,001 keys, LF later') if !$is_ref;

    # lengths
    my $format = "CLIENT_ERROR bad command line format\r\n";
    for my $verb (qw(set add replace append prepend)) {
        for my $n (qw(-1 -2 -2147483648 2147483647 4294967295 18446744073709551615
            99999999999999999999999999)) {
            exchange($s, "$verb b 0 0 $n\r\nget a\r\n",
                $format . "VALUE a 0 1\r\n1\r\nEND\r\n", "$verb with length $n");
        }
    }
    exchange($s, "cas b 0 0 -1 0\r\nget a\r\n", $format . "VALUE a 0 1\r\n1\r\nEND\r\n");

    # a huge length that is allowed by the grammar is swallowed
    my $c = $server->connect;
    put($c, "set huge 0 0 2147483645\r\n");
    expect_bytes($c, "SERVER_ERROR object too large for cache\r\n", "[1.4] 2 GB are refused before they come")
        if $profile eq '1.4';
    put($c, 'x' x 50_000_000);
    exchange($s, "get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n", 'others are served meanwhile');
    close $c;
    my $n = 3_000_000;
    exchange($s, "set huge 0 0 $n\r\n" . ('x' x $n) . "\r\nget a\r\n",
        "SERVER_ERROR object too large for cache\r\nVALUE a 0 1\r\n1\r\nEND\r\n",
        '3 MB are refused and swallowed');

    # a program piped in
    open my $fh, '<:raw', $^X or die;
    read $fh, my $binary, 300_000;
    close $fh;
    $c = $server->connect;
    put($c, "x$binary", 5);
    shutdown $c, 1;
    my ($got, $closed) = read_until_eof($c);
    ok($closed, 'a program piped in ends with a closed connection');
    exchange($s, "get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n", 'the next is served');

    # random bytes, with line ends among them
    srand 7;
    my @words = ('get', 'set', 'add', 'cas', 'incr', 'delete', 'touch', 'gat', 'stats', 'a', 'b',
        '0', '-1', '1', '5', '250', '99999', '4294967296', 'noreply', '', ' ', "\0", "\xff",
        "\r", 'k' x 250, 'k' x 251, 'flush_all', 'verbosity', 'version', 'append', 'qos', 'slabs',
        'lru', 'lru_crawler', 'watch', 'cache_memlimit', 'mn', 'mg', 'items', 'settings');
    for my $round (1 .. 300) {
        my $c = $server->connect;
        my $send = join '', map {
            join(' ', map { $words[rand @words] } 0 .. rand 8) . (rand() < 0.9 ? "\r\n" : "\n")
        } 0 .. rand 30;
        $send =~ s/cache_memlimit/cache_memlimi/g;
        $send =~ s/watch/watc/g;
        put($c, $send, 5);
        shutdown $c, 1;
        ($got, $closed) = read_until_eof($c);
        if (!$closed) {
            fail("random words, round $round: not closed");
            diag('    sent: ' . show($send));
            last;
        }
    }
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n", 'random words do no harm');
    my $grown = proc_status($server->pid, 'VmRSS') - $rss;
    cmp_ok($grown, '<', 40_000, 'memory stays bounded');
});

done_testing();
