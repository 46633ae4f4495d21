#!/usr/bin/env perl
# A client may leave after any byte of its conversation, politely or by reset: nothing is
# stored by halves, nothing leaks, the next client is served.
use MCTest;
use Socket qw(SOL_SOCKET SO_LINGER);

my $script = join '', "set a 0 0 3\r\nabc\r\n", "get a b c\r\n", "add b 0 0 2 noreply\r\nxx\r\n",
    "incr n 1\r\n", "append a 0 0 4\r\n1234\r\n", "cas a 0 0 1 5\r\nx\r\n", "bogus\r\n",
    "set big 0 0 20000\r\n";
my $tail = ('z' x 20000) . "\r\nget big\r\ndelete big\r\nstats\r\nquit\r\n";

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile);
    exchange($s, "set keep 0 0 4\r\nkeep\r\n", "STORED\r\n");
    my $before = mem_stats($s);
    my $cuts = 0;
    my $drop = sub ($bytes, $reset) {
        my $c = $server->connect;
        setsockopt $c, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) if $reset;
        put($c, $bytes);
        close $c;
        $cuts++;
    };
    $drop->(substr($script, 0, $_), $_ % 2) for 0 .. length $script;
    $drop->($script . substr($tail, 0, $_), $_ % 2) for 0 .. 40, 8191, 8192, 8193, 16383, 16384,
        19999 .. length $tail;
    pass("$cuts clients left in the middle");
    exchange($s, "get keep\r\n", "VALUE keep 0 4\r\nkeep\r\nEND\r\n", 'the next is served');
    ok(all_have_left($s, $before, $cuts), 'all their connections are gone');

    # a set that was cut off has no effect
    exchange($s, "set old 0 0 3\r\nold\r\n", "STORED\r\n");
    for my $n (0 .. 7) {
        my $c = $server->connect;
        put($c, substr "set old 0 0 6\r\nnewval\r\n", 0, 15 + $n);
        roundtrip($s, "get x\r\n", "END\r\n");
        close $c;
    }
    ok(all_have_left($s, $before, $cuts + 8), 'cut off sets');
    mem_get_is($s, 'old', 'old', 'leave the old value');

    # half closed: what was sent whole is answered, then the server closes
    my $c = $server->connect;
    put($c, "get keep\r\nget keep\r\nget ke");
    shutdown $c, 1;
    expect_eof($c, "VALUE keep 0 4\r\nkeep\r\nEND\r\n" x 2,
        'a half-closed connection gets its replies', 'two and a half gets');
    exchange($s, "flush_all\r\n", "OK\r\n");
});

done_testing();
