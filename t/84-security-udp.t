#!/usr/bin/env perl
# Datagrams that once crashed a memcached or made it answer strangers, words of -o without their
# value, and -X and -F in every protocol.
use MCTest;
use MCBinary;

# What comes back for a datagram within a short while.
sub ask_udp($udp, $bytes, $seconds) {
    send $udp, $bytes, 0;
    my $bits = '';
    vec($bits, fileno $udp, 1) = 1;
    my $got = '';
    recv $udp, $got, 70_000, 0 if select($bits, undef, undef, $seconds) > 0;
    return $got;
}

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if !is_ours();
    # CVE-2018-1000115: nobody who did not ask for it has UDP
    my $port = free_port();
    my $server = serve($profile, '-l', '127.0.0.1', '-p', $port, {listen => 0});
    my $udp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp');
    is(ask_udp($udp, pack('n4', 1, 0, 1, 0) . "stats\r\n", 0.2), '',
        "[$profile] CVE-2018-1000115: no UDP unless asked for") if $profile eq '1.6';
    $server->stop;

    $port = free_port();
    $server = serve($profile, '-l', '127.0.0.1', '-p', $port, '-U', $port, {listen => 0});
    my $s = $server->connect;
    my $is_there = canary($server, $s);
    exchange($s, "set large 0 0 20000\r\n" . ('x' x 20_000) . "\r\n", "STORED\r\n");
    $udp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp');
    my $id = 0;
    my $get = sub { return pack('n4', ++$id, 0, 1, 0) . "get canary\r\n" };
    my $unharmed = sub ($name) {
        $is_there->($name);
        my $ask = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp');
        my $got = '';
        # A datagram may be lost: ask again.
        wait_until(sub {
            $got = ask_udp($ask, $get->(), 1);
            return $got ne '';
        });
        is(substr($got, 4), pack('n2', 1, 0) . "VALUE canary 5 6\r\nyellow\r\nEND\r\n",
            "[$profile] $name: UDP too");
    };
    $unharmed->('at first');
    # CVE-2022-48571: more than one datagram announced; short ones; nothing behind the header
    my @rows = (
        ['CVE-2022-48571', pack('n4', 1, 0, 0, 0) . "\0"], ['CVE-2022-48571', pack('n4', 1, 0, 2, 0) . "get canary\r\n"],
        ['65535 datagrams', pack('n4', 1, 0, 65_535, 0) . "get canary\r\n"],
        ['an empty datagram', ''], (map { ["$_ bytes", "\0" x $_] } 1 .. 9),
        ['a header alone', pack('n4', 1, 0, 1, 0)],
        ['no line end', pack('n4', 1, 0, 1, 0) . 'get canary'],
        ['a set without its data', pack('n4', 1, 0, 1, 0) . "set canary 0 0 100\r\nabc"],
        ['a set of 2 GB', pack('n4', 1, 0, 1, 0) . "set other 0 0 2147483645\r\nabc"],
        ['blanks', pack('n4', 1, 0, 1, 0) . ' ' x 60_000],
        ['NULs', pack('n4', 1, 0, 1, 0) . "\0" x 60_000],
        ['line ends', pack('n4', 1, 0, 1, 0) . "\r\n" x 20_000],
        ['half a binary header', pack('n4', 1, 0, 1, 0) . "\x80\0\0"],
        ['a binary body that is not there', pack('n4', 1, 0, 1, 0) . request(0x01, 'x') . "\x80\x01\xff\xff"],
        ['binary lengths that lie', pack('n4', 1, 0, 1, 0) . pack('CCnCCnNNQ>', 0x80, 1, 0xfa, 8, 0, 0, 0, 1, 0) . 'A' x 1024],
        ['watch', pack('n4', 1, 0, 1, 0) . "watch\r\n"],
        ['a dump', pack('n4', 1, 0, 1, 0) . "lru_crawler metadump all\r\n"],
        ['quit', pack('n4', 1, 0, 1, 0) . "quit\r\n"],
        ['binary quit', pack('n4', 1, 0, 1, 0) . request(0x07)],
        ['HTTP', pack('n4', 1, 0, 1, 0) . "GET / HTTP/1.1\r\n\r\n"],
    );
    for my $row (@rows) {
        my ($name, $bytes) = @$row;
        my $one = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp');
        send $one, $bytes, 0 for 1 .. 5;
        $unharmed->($name);
    }
    srand 3;
    for my $round (1 .. 500) {
        send $udp, join('', map { chr int rand 256 } 1 .. rand 60), 0;
        send $udp, pack('n4', 1, 0, 1, 0) . join('', map { chr int rand 256 } 1 .. rand 60), 0;
    }
    $unharmed->('random datagrams');
});

# words of -o and others without or with a wrong value: refused, not a crash (9.2)
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if !is_ours();
    for my $words (['-o', 'idle_timeout'], ['-o', 'slab_sizes'], ['-o', 'slab_sizes='], ['-o', 'slab_chunk_max=0'],
            ['-o', 'slab_chunk_max'], ['-o', 'hashpower'], ['-o', 'hashpower=99'], ['-o', 'tail_repair_time'],
            ['-o', 'hash_algorithm'], ['-o', 'hash_algorithm=x'], ['-o', 'worker_logbuf_size'],
            ['-o', 'watcher_logbuf_size'], ['-o', 'lru_crawler_sleep'], ['-o', 'temporary_ttl'],
            ['-o', 'slab_automove_window=0'], ['-o', 'slab_automove_ratio='], ['-o', 'hot_lru_pct=99'],
            ['-o', 'nosuch'], ['-D', ''], ['-B', 'http'], ['-I', '1000'], ['-t', '0'], ['-f', '0.5']) {
        my $run = run_program("--compat=$profile", @$words, '-l', '127.0.0.1', '-p', -1, '-u', 'root');
        ok($run->{signal} == 0 && $run->{status} > 0 && !$run->{timed_out}, "[$profile] refused: @$words")
            or diag("    status $run->{status}, signal $run->{signal}");
    }
});

# -X and -F hold in every protocol; prefixes end at 65536
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if !is_ours();
    my ($server, $s) = serve($profile, '-X', '-F');
    exchange($s, "set canary 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "stats cachedump 1 0\r\n", "CLIENT_ERROR stats cachedump not allowed\r\n");
    exchange($s, "lru_crawler metadump all\r\n", qr/^(?:ERROR|CLIENT_ERROR)[^\r]*\r\n\z/);
    exchange($s, "lru_crawler mgdump all\r\n", qr/^(?:ERROR|CLIENT_ERROR)[^\r]*\r\n\z/) if $profile eq '1.6';
    exchange($s, "stats detail dump\r\n", "CLIENT_ERROR stats detail not allowed\r\n") if $profile eq '1.6';
    exchange($s, "flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
    my $b = $server->connect;
    put($b, request(0x08));
    is((response($b))[0], 0x20, "[$profile] -F: binary flush is refused");
    if ($profile eq '1.6') {
        put($b, request(0x10, 'detail dump'));
        isnt((response($b))[0], 0, "[$profile] -X: binary stats detail is refused");
    }
    exchange($s, "get canary\r\n", "VALUE canary 0 1\r\n1\r\nEND\r\n", 'nothing was flushed');
});

for my $profile (is_ours() ? ('1.6') : ()) {
    my ($server, $s) = serve($profile, '-m', '64');
    exchange($s, "stats detail on\r\n", "OK\r\n");
    for my $block (0 .. 69) {
        put($s, join '', map { "get p$block.$_:k\r\n" } 1 .. 1000);
        read_bytes($s, 5 * 1000);
    }
    put($s, "stats detail dump\r\n");
    my $lines = 0;
    my $last;
    $lines++ while ($last = read_line($s)) =~ /^PREFIX/;
    is($last, "END\r\n", "[$profile] 70,000 prefixes: the dump is whole");
    is($lines, 65_536, "[$profile] and no more than 65,536 are kept");
}

pass('another memcached') if !is_ours();
done_testing();
