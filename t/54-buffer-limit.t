#!/usr/bin/env perl
# read_buf_mem_limit: replies that pile up beyond a worker's share turn a get into an error,
# and close a connection that has stacked other requests. Without it nothing is refused.
use MCTest;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-o', 'read_buf_mem_limit=1', '-t', '32', '-R', '500', '-c', '300');
    my $has_stats = $profile ne '1.4';
    my $oom = sub { return mem_stats($server->control)->{response_obj_oom} };
    is($oom->(), 0, 'response_obj_oom is 0 at first') if $has_stats;
    my $refusal = "SERVER_ERROR out of memory writing get response\r\n";
    exchange($s, 'get ' . join(' ', map { "foo$_" } 1 .. 500) . "\r\n", $refusal, 'a get of 500 absent keys');
    is($oom->(), 1, 'is counted') if $has_stats;
    exchange($s, "set foo 0 0 2\r\nhi\r\n", "STORED\r\n", 'the connection goes on');
    exchanges($s, ['get' . ' foo' x 500 . "\r\n", $refusal, 'a get of 500 hits'],
        ["get foo\r\nget" . ' foo' x 500 . "\r\nget foo\r\n",
            "VALUE foo 0 2\r\nhi\r\nEND\r\n${refusal}VALUE foo 0 2\r\nhi\r\nEND\r\n",
            'only the long get of three is refused'],
        ['get' . ' foo' x 6000 . "\r\n", $refusal, 'a line longer than a buffer'],
        ['get' . ' foo' x 8 . "\r\n", "VALUE foo 0 2\r\nhi\r\n" x 8 . "END\r\n", 'a get of 8']);
    my $value = 'v' x 200000;
    exchanges($s, ["set big 0 0 200000\r\n$value\r\n", "STORED\r\n"],
        ['get' . ' big' x 10 . "\r\n", "VALUE big 0 200000\r\n$value\r\n" x 10 . "END\r\n",
            'what is sent as it goes does not pile up']);
    my $before = $has_stats ? $oom->() : 0;
    put($s, "delete nothing\r\n" x 500);
    expect_eof($s, '', '500 stacked requests close the connection');
    cmp_ok($oom->(), '>', $before, 'and are counted') if $has_stats;
    $s = $server->connect;
    exchange($s, "delete nothing\r\n" x 10, "NOT_FOUND\r\n" x 10, 'ten do not');
    if ($has_stats) {
        soon { mem_stats($server->control)->{response_obj_count} == 0 } 'nothing is left counted';
        put($s, "mg foo v\r\n" x 500);
        expect_eof($s, '', '500 stacked mg close the connection');
    }
    $s = $server->connect;
    exchange($s, "set foo 0 0 2 noreply\r\nhi\r\n" x 500 . "get foo\r\n", "VALUE foo 0 2\r\nhi\r\nEND\r\n", 'what has no reply leaves none');
    exchange($s, "ms foo 2 q\r\nhi\r\nmg none q\r\n" x 500 . "mn\r\n", "MN\r\n", '... nor do quiet requests');
    is(mem_stats($server->control)->{response_obj_count}, 0, '... and nothing is counted') if $has_stats;
    is(mem_stats($server->control, 'settings')->{read_buf_mem_limit}, $has_stats ? 1 << 20 : undef,
        'settings');

    # a worker whose buffers are held by clients that do not read refuses others, and recovers
    $server = serve($profile, '-o', 'read_buf_mem_limit=1', '-t', '1', '-m', '64');
    $s = $server->control;
    exchange($s, "set big 0 0 1000000\r\n" . 'b' x 1000000 . "\r\n", "STORED\r\n");
    my @stuck = map { $server->connect } 1 .. 200;
    put($_, "get big\r\n" x 100) for @stuck;
    my $alive = wait_until(sub {
        my $c = eval { $server->connect } or return 0;
        put($c, "version\r\n");
        my $line = read_line($c, 1);
        close $c;
        return 1 if $line eq VERSION_REPLY($profile);
        close shift @stuck if @stuck;
        return 0;
    });
    ok($alive, 'with clients that do not read the server goes on');
    @stuck = ();
    delete $server->{control};

    ($server, $s) = serve($profile);
    exchanges($s, ["set foo 0 0 2\r\nhi\r\n", "STORED\r\n"],
        ['get' . ' foo' x 6000 . "\r\n", "VALUE foo 0 2\r\nhi\r\n" x 6000 . "END\r\n", 'without a limit']);
});

done_testing();
