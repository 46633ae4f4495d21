#!/usr/bin/env perl
# What a client costs in memory, as doc/protocol.md promises it: idle connections, half requests,
# watchers that do not read, sources of datagrams. Counters and anonymous memory, of many at once.
use MCTest ':ours';
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_RCVBUF);

plan skip_all => 'a sanitizer or TLS takes memory of its own'
    if $ENV{ASAN_OPTIONS} || $ENV{TSAN_OPTIONS} || $ENV{MCTEST_TLS};

my $MANY = 800; # fewer than the 1024 descriptors that a process may have
my $BLOCK = 16384;
my $server;

# By the tables of its pages: what "status" has is off by dozens of pages for each CPU on some kernels.
sub memory {
    my ($kilobytes) = read_file('/proc/' . $server->pid . '/smaps_rollup') =~ /^Anonymous:\s+(\d+)/m;
    return ($kilobytes // proc_status($server->pid, 'RssAnon')) * 1024;
}

sub stat_of { return mem_stats($server->control)->{$_[0]} }

# 1.4 does not tell.
sub blocks_in_use {
    return 0 if $server->profile eq '1.4';
    my $st = mem_stats($server->control);
    return $st->{read_buf_count} - $st->{read_buf_bytes_free} / $BLOCK;
}

# Has them all send the same, and returns when the server has read it. There is one worker: it
# is done with what it has read when it answers stats.
sub all_send($bytes, @socks) {
    my $before = stat_of('bytes_read');
    put($_, $bytes) for @socks;
    return wait_until(sub { stat_of('bytes_read') - $before >= @socks * length $bytes });
}

sub costs_at_most {
    my ($most, $before, $count, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return cmp_ok((memory() - $before) / $count, '<=', $most, $name);
}

each_profile(sub ($profile) {
    $server = serve($profile, '-t', '1', '-m', '8', '-c', '1000');
    { my @warm = map { $server->connect } 1 .. 20; all_send("mn\r\n", @warm) }
    my $before = memory();
    my @idle = map { $server->connect } 1 .. $MANY;
    all_send("mn\r\n", @idle);
    read_line($_) for @idle;
    cmp_ok(blocks_in_use(), '<=', 3, 'idle connections have no blocks');
    costs_at_most(640, $before, $MANY, 'an idle connection takes 560 bytes');

    $before = memory();
    for my $round (1 .. 3) {
        ok(all_send('get ' . 'k' x 240, @idle), "half a request of each, $round");
        # The allocator may keep what the first round has given back.
        costs_at_most($round == 1 ? 500 : 2000, $before, $MANY, 'takes as much as it has bytes');
        my $more = (' ' . 'k' x 240) x 3;
        all_send($more, @idle);
        costs_at_most(2000, $before, $MANY, 'and more when it has more');
        cmp_ok(blocks_in_use(), '<=', 3, 'and no block');
        all_send("\r\n", @idle);
        read_line($_) for @idle;
    }
    my @long = @idle[0 .. 49];
    my $in_use = blocks_in_use();
    ok(all_send('get' . ' k' x 1800, @long), 'longer ones');
    is(blocks_in_use() - $in_use, $profile eq '1.4' ? 0 : 50, 'take a block each');
    all_send("\r\n", @long);
    is(read_line($_), "END\r\n", 'answered') for @long;
    is(blocks_in_use() - $in_use, 0, 'which they give back');
});

each_profile(sub ($profile) {
    my $kilobytes = 32;
    $server = serve($profile, '-t', '1', '-m', '8', '-o', "watcher_logbuf_size=$kilobytes");
    my $s = $server->connect;
    my @watchers = map { $server->connect } 1 .. 10;
    setsockopt $_, SOL_SOCKET, SO_RCVBUF, pack('i', 4096) for @watchers;
    my $lines = join '', map { 'get ' . 'k' x 240 . "$_\r\n" } 1 .. 200;
    my $get = sub { put($s, $lines); read_bytes($s, 5 * 200) };
    $get->();
    my $before = memory();
    put($_, "watch fetchers\r\n") for @watchers;
    read_line($_) for @watchers;
    soon { $get->(); stat_of('log_watcher_skipped') > 1000 } 'watchers that do not read skip lines';
    costs_at_most(2 * 1024 * $kilobytes + 50_000, $before, @watchers, 'and have their buffers only');
});

# Sources come and go, and nothing is kept of them; what they do not read is not kept either.
each_profile(sub ($profile) {
    my $port = free_port();
    $server = serve($profile, '-l', '127.0.0.1', '-p', $port, '-U', $port, '-t', '1', '-m', '8', {listen => 0});
    my $request = sub { return pack('n4', $_[0], 0, 1, 0) . $_[1] };
    my @sources = map {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp')
    } 1 .. 300;
    my $ask_all = sub {
        my $right = 0;
        for my $source (@sources) {
            send $source, $request->(7, "get a\r\n"), 0;
            my $got = '';
            recv $source, $got, 2000, 0 if MCTest::wait_io($source, 0, 60);
            $right++ if $got eq $request->(7, "END\r\n");
        }
        return $right;
    };
    is($ask_all->(), @sources, 'many sources are answered');
    my $before = memory();
    is($ask_all->(), @sources, 'again');
    costs_at_most(100, $before, scalar @sources, 'which takes no memory');
    my $dropped = sub { return mem_stats($server->control, 'qos')->{udp_dropped} };
    is($dropped->(), 0, 'none is dropped');
    for my $round (1 .. 20) {
        for my $source (@sources) {
            send $source, $_, 0 for $request->($round, "get a b c\r\n"), $request->($round, "set a 0 0 900\r\nx"),
                "\x80" x 30, $request->($round, "\x80\x00\xff\xff" . "\x00" x 20);
        }
    }
    soon { $dropped->() >= 100 } 'a flood of datagrams, half of them no requests';
    exchange($server->connect, "set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n",
        'who is connected is served');
    cmp_ok(memory() - $before, '<=', 4 << 20, 'takes bounded memory');
    $server->stop;
});

done_testing();
