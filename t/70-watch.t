#!/usr/bin/env perl
# Watchers hear of what they asked for, in order and soon; nobody else is disturbed.
use MCTest;
use MCBinary;

# A new connection that watches.
sub watcher($server, $types) {
    my $w = $server->connect;
    put($w, "watch $types\r\n");
    is(read_line($w), "OK\r\n", "watch $types");
    return $w;
}

# The next line, without ts= and gid=, and with numbers that differ from run to run cut off.
sub event($w) {
    my $line = read_line($w);
    return show($line) if $line !~ /^ts=\d+\.\d{1,6} gid=\d+ (type=.*)\n\z/;
    my $rest = $1;
    $rest =~ s/ cfd=\d+/ cfd=N/;
    $rest =~ s/ rport=[1-9]\d*/ rport=N/;
    return $rest;
}

sub expect_events($w, $name, @want) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_deeply([map { event($w) } @want], \@want, $name);
}

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $is_16 = $profile eq '1.6';
    # nobody but the client finds what has expired
    my ($server, $s) = serve($profile, '-o', 'no_lru_crawler,no_lru_maintainer');
    my $size = sub { return $is_16 ? " cfd=N size=$_[0]" : '' };

    # defaults, and what is refused
    my $w = $server->connect;
    put($w, "watch\r\n");
    is(read_line($w), "OK\r\n", 'watch');
    exchange($s, "get a\r\n", "END\r\n");
    expect_events($w, 'is watch fetchers', 'type=item_get key=a status=not_found clsid=0' . $size->(0));
    exchanges($s, ["watch nothing\r\n", "ERROR\r\n"], ["watch fetchers nothing\r\n", "ERROR\r\n"],
        ["watch fetchers noreply\r\n", '']);
    if ($is_16) {
        exchange($s, "get a\r\nwatch\r\n", "END\r\nERROR cannot pipeline other commands before watch\r\n");
    } else {
        exchange($s, "watch connevents\r\n", "ERROR\r\n");
        my $p = $server->connect;
        put($p, "get a\r\nwatch rawcmds\r\n");
        expect_bytes($p, "END\r\nOK\r\n", '[1.4] a watch may follow other commands');
    }

    # what the watcher sends is thrown away
    put($w, "get b\r\nquit\r\nversion\r\n" . ('x' x 100000));
    exchange($s, "get c\r\n", "END\r\n");
    expect_events($w, 'input of a watcher is not executed',
        map { "type=item_get key=$_ status=not_found clsid=0" . $size->(0) } qw(a c));
    close $w;

    # Whatever way the request before it takes, and whenever its reply goes out. Of the first bytes of a
    # connection the protocol is not known yet.
    if ($is_16) {
        my $other = serve($profile, '-R', '4');
        my $p = $other->connect;
        my $value = 'v' x 100_000;
        exchange($p, "set big 0 0 100000\r\n$value\r\n", "STORED\r\n");
        for my $case (["get x\r\n", "END\r\n"], ["set y 0 0 1\r\n1\r\n", "STORED\r\n"],
            ["get big\r\n", "VALUE big 0 100000\r\n$value\r\nEND\r\n"], ["mn\r\n", "MN\r\n"],
            ["touch x 1\r\n" x 4, "NOT_FOUND\r\n" x 4], ["touch x 1\r\n" x 30, "NOT_FOUND\r\n" x 30]) { # more than in one turn
            my ($sent, $want) = @$case;
            exchange($p, $sent . "watch\r\n", $want . "ERROR cannot pipeline other commands before watch\r\n");
            exchange($p, $sent . "lru_crawler metadump all\r\n",
                $want . "ERROR cannot pipeline other commands before metadump\r\n");
        }
        put($p, "get x\r\nwat");
        expect_bytes($p, "END\r\n", 'half a command behind a get');
        put($p, "ch\r\n");
        expect_bytes($p, "OK\r\n", 'is alone by then');
    }

    # every internal look-up, and every mutation
    $w = watcher($server, 'fetchers mutations');
    my $get = sub { "type=item_get key=$_[0] status=$_[1] clsid=$_[2]" . $size->($_[3]) };
    my $store = sub ($key, $status, $cmd, $ttl, $class, $bytes) {
        return "type=item_store key=$key status=$status cmd=$cmd ttl=$ttl clsid=$class" . $size->($bytes);
    };
    exchanges($s, ["set k 0 0 3\r\nabc\r\n", "STORED\r\n"], ["get k\r\n", "VALUE k 0 3\r\nabc\r\nEND\r\n"],
        ["add k 0 0 1\r\na\r\n", "NOT_STORED\r\n"], ["append k 0 0 2\r\nde\r\n", "STORED\r\n"],
        ["prepend k 0 0 1\r\n0\r\n", "STORED\r\n"], ["replace k 0 1000 1\r\n7\r\n", "STORED\r\n"],
        ["cas k 0 0 1 1\r\n7\r\n", "EXISTS\r\n"], ["cas x 0 0 1 1\r\n7\r\n", "NOT_FOUND\r\n"],
        ["incr k 1\r\n", "8\r\n"], ["touch k 0\r\n", "TOUCHED\r\n"], ["delete k\r\n", "DELETED\r\n"],
        ["set big 0 0 2000000\r\n" . ('x' x 2000000) . "\r\n", "SERVER_ERROR object too large for cache\r\n",
            'too large']);
    expect_events($w, 'look-ups and mutations in order', $get->('k', 'not_found', 0, 0), $store->('k', 'stored',
        'set', 0, 1, 3), $get->('k', 'found', 1, 3), $get->('k', 'found', 1, 3), $store->('k', 'not_stored',
        'add', 0, 1, 1), $get->('k', 'found', 1, 3), $store->('k', 'stored', 'append', 0, 1, 5), $get->('k',
        'found', 1, 5), $store->('k', 'stored', 'prepend', 0, 1, 6), $get->('k', 'found', 1, 6), $store->('k',
        'stored', 'replace', 1000, 1, 1), $get->('k', 'found', 1, 1), $store->('k', 'exists', 'cas', 0, 1, 1),
        $get->('x', 'not_found', 0, 0), $store->('x', 'not_found', 'cas', 0, 1, 1), $get->('k', 'found', 1, 1),
        $get->('k', 'found', 1, 1), $get->('k', 'found', 1, 1), $store->('big', 'too_large', 'set', 0, 0, 0),
        $get->('big', 'not_found', 0, 0));

    # keys are encoded; the fourth word is key=
    my $long = '#' x 250;
    exchange($s, "get $long\r\nget ok-1._~%\r\n", "END\r\nEND\r\n");
    my @words = split / /, read_line($w);
    is($words[3], 'key=' . ('%23' x 250), 'an encoded key of 250 bytes');
    expect_events($w, 'what is not encoded', $get->('ok-1._~%25', 'not_found', 0, 0));

    # expired and flushed; meta and binary commands
    exchange($s, "set e 0 1 1\r\n1\r\nset f 0 0 1\r\n1\r\n", "STORED\r\nSTORED\r\n");
    event($w) for 1 .. 4;
    debugtime($server, 5);
    exchange($s, "get e\r\nflush_all\r\n", "END\r\nOK\r\n");
    debugtime($server, 2);
    exchange($s, "get f\r\n", "END\r\n");
    expect_events($w, 'expired and flushed', $get->('e', 'expired', 0, 0), $get->('f', 'flushed', 0, 0));
    my $b = $server->connect;
    put($b, request(0x01, 'bk', store_extras(), 'abc'));
    is(length(read_bytes($b, 24)), 24, 'a binary set is answered');
    put($b, request(0x00, 'bk'));
    is(length(read_bytes($b, 31)), 31, 'a binary get is answered');
    expect_events($w, 'of a binary client', $get->('bk', 'not_found', 0, 0),
        $store->('bk', 'stored', 'set', 0, 1, 3), $get->('bk', 'found', 1, 3));
    if ($is_16) {
        exchange($s, "ms m 2 T30\r\nab\r\nmg m v\r\nma n N30 J5\r\n", "HD\r\nVA 2\r\nab\r\nHD\r\n");
        expect_events($w, '[1.6] of meta commands', $get->('m', 'not_found', 0, 0),
            $store->('m', 'stored', 'set', 30, 1, 2), $get->('m', 'found', 1, 2),
            $get->('n', 'not_found', 0, 0), $get->('n', 'not_found', 0, 0),
            $store->('n', 'stored', 'add', 30, 1, 1));
        for my $row (['', 'cas'], [' MR', 'cas'], [' MA', 'append'], [' ME', 'add', 'not_stored']) {
            my ($mode, $cmd, $status) = @$row;
            $status //= 'exists';
            my $reply = $status eq 'exists' ? 'EX' : 'NS';
            exchange($s, "ms m 1 C77$mode\r\na\r\n", "$reply\r\n");
            expect_events($w, "[1.6] ms with C$mode", $get->('m', 'found', 1, 2),
                $store->('m', $status, $cmd, 0, 1, 1));
            exchange($s, "ms big 2000000 C77$mode\r\n" . ('x' x 2000000) . "\r\n",
                "SERVER_ERROR object too large for cache\r\n", 'too large');
            expect_events($w, "[1.6] ms with C$mode, too large", $store->('big', 'too_large', $cmd, 0, 0, 0),
                $get->('big', 'not_found', 0, 0));
        }
    }

    # numbers ascend over all workers
    my $open = mem_stats($s)->{curr_connections};
    my @clients = map { $server->connect } 1 .. 8;
    expect_open($_, 'a client') for @clients;
    for my $i (1 .. 20) {
        put($_, "get n$i\r\n") for @clients;
    }
    expect_bytes($_, "END\r\n" x 20, 'its replies') for @clients;
    my ($last, $bad) = (0, 0);
    for (1 .. 160) {
        my ($gid) = read_line($w) =~ / gid=(\d+) /;
        $bad++ if !$gid || $gid <= $last;
        $last = $gid;
    }
    is($bad, 0, 'gid ascends');
    close $_ for @clients;
    close $w;
    @clients = ();
    soon { mem_stats($s)->{curr_connections} == $open - 1 } 'all of them are gone';

    # types that no commands produce
    if ($is_16) {
        $w = watcher($server, 'deletions connevents rawcmds proxyreqs proxyevents proxyuser');
        exchange($s, "set d 0 0 3\r\nabc\r\nmd d I\r\ndelete d\r\ndelete d\r\n",
            "STORED\r\nHD\r\nDELETED\r\nNOT_FOUND\r\n");
        exchange($s, "set d 0 0 2\r\nab\r\nmd d\r\n", "STORED\r\nHD\r\n");
        expect_events($w, '[1.6] deletions', 'type=deleted key=d cmd=delete clsid=1 size=3',
            'type=deleted key=d cmd=md clsid=1 size=2');
        $open = mem_stats($s)->{curr_connections};
        my $c = $server->connect;
        expect_open($c, '[1.6] a client comes');
        put($c, "quit\r\n");
        expect_eof($c, '', '[1.6] and quits');
        # TLS says goodbye before the connection is gone, and the next may be another worker's
        soon { mem_stats($s)->{curr_connections} == $open } '[1.6] and has gone';
        $c = $server->connect;
        put($c, "GET / HTTP/1.1\r\n");
        expect_eof($c, '', '[1.6] one that speaks HTTP');
        my $conn = 'rip=127.0.0.1 rport=N transport=tcp';
        expect_events($w, '[1.6] connections', "type=conn_new $conn cfd=N",
            "type=conn_close $conn reason=normal cfd=N", "type=conn_new $conn cfd=N",
            "type=conn_close $conn reason=error cfd=N");
        close $w;
        soon { mem_stats($s)->{log_watchers} == 0 } '[1.6] log_watchers follows the watchers';
    }

    # the limit of watchers, and that they leave their places
    my @watchers = map { watcher($server, 'fetchers') } 1 .. 20;
    exchange($s, "watch\r\n", "WATCHER_TOO_MANY log watcher limit reached\r\n");
    is(mem_stats($s)->{log_watchers}, 20, '[1.6] log_watchers') if $is_16;
    my @conns = stat_lines($s, 'conns');
    is((grep { /:state conn_watch$/ } @conns), 20, 'they are in conn_watch');
    close shift @watchers;
    my $again;
    soon {
        $again = $server->connect;
        put($again, "watch\r\n");
        return read_line($again) eq "OK\r\n";
    } 'a place that was left is free';
    my $before = mem_stats($s);
    exchange($s, "get k\r\n", "END\r\n");
    my $want = 'type=item_get key=k status=not_found clsid=0' . $size->(0);
    is((grep { event($_) eq $want } @watchers, $again), 20, 'each hears of it');
    my $after = mem_stats($s);
    is($after->{log_worker_written} - $before->{log_worker_written}, 1, 'written');
    is($after->{log_watcher_sent} - $before->{log_watcher_sent}, 20, 'sent');
    is($after->{log_worker_dropped} + $after->{log_watcher_skipped}, 0, 'none lost');
    exchange($s, "stats reset\r\n", "RESET\r\n");
    is(mem_stats($s)->{log_watcher_sent}, 0, 'stats reset clears the counters');
    close $_ for @watchers, $again;
    soon { !grep { /conn_watch/ } stat_lines($s, 'conns') } 'all are gone';
    @watchers = (watcher($server, 'fetchers'));
    $server->stop;
    expect_eof($watchers[0], '', 'a stop closes watchers');

    # evictions, of a full cache
    ($server, $s) = serve($profile, '-m', '8', '-o', $is_16 ? 'no_lru_maintainer,no_slab_reassign' : 'no_lru_crawler');
    $w = watcher($server, 'evictions');
    my $value = 'x' x 11000;
    put($s, "set key$_ 0 0 11000 noreply\r\n$value\r\n") for 1 .. 1200;
    expect_open($s, 'a full cache');
    my $evicted = mem_stats($s)->{evictions};
    cmp_ok($evicted, '>', 100, 'evicts');
    my $class = $is_16 ? qr/clsid=\d+ size=11000/ : qr/clsid=\d+/;
    like(event($w), qr/^type=eviction key=key1 fetch=no ttl=-1 la=\d+ $class$/, 'the first that went');

    # the background thread: crawls and page moves
    ($server, $s) = serve($profile, '-o', 'no_slab_automove,slab_reassign,lru_crawler,no_lru_maintainer');
    $w = watcher($server, 'sysevents');
    put($s, "set key$_ 0 0 11000 noreply\r\n$value\r\n") for 1 .. 300;
    exchange($s, "set a 0 0 1\r\n1\r\nset b 0 -1 1\r\n1\r\n", "STORED\r\nSTORED\r\n");
    exchange($s, "lru_crawler crawl 1\r\n", "OK\r\n");
    like(event($w), qr/^type=lru_crawler crawler=1 lru=cold low_mark=1 next_reclaims=0 since_run=0 next_run=65 elapsed=\d+ examined=2 reclaimed=1$/,
        'a crawl');
    my ($from) = map { /^STAT (\d+):total_pages [2-9]/ ? $1 : () } stat_lines($s, 'slabs');
    exchange($s, "slabs reassign $from 1\r\n", "OK\r\n");
    is(event($w), "type=slab_move src=$from dst=1" . ($is_16 ? ' state=ok' : ''), 'a page move');

    # -W
    ($server, $s) = serve($profile, '-W');
    exchange($s, "watch\r\n", "CLIENT_ERROR watch commands not allowed\r\n");
});

# UNIX sockets
my $path = scratch_dir() . '/watch.sock';
my $server = serve('1.6', '-s', $path, {path => $path});
my $w = watcher($server, 'connevents');
my $s = $server->connect;
expect_open($s, '[1.6] a client of the UNIX socket');
expect_events($w, '[1.6] is told of', 'type=conn_new rip=unix rport=0 transport=local cfd=N');
close $s;
expect_events($w, '[1.6] until it goes',
    'type=conn_close rip=unix rport=0 transport=local reason=normal cfd=N');

done_testing();
