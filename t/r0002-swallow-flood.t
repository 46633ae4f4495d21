#!/usr/bin/env perl
# A client that streams a rejected value as fast as it can does not keep the worker from
# others: its bytes are dropped in bounded turns.
use MCTest;

my $size = 100_000_000;
each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '1', '-m', '64');
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my @pipe;
    pipe($pipe[0], $pipe[1]) or die "pipe: $!";
    my $child = in_child(sub {
        my $c = $server->connect;
        my $block = 'z' x 1_000_000;
        put($c, "set huge 0 0 $size\r\n");
        for my $i (1 .. $size / 1_000_000) {
            put($c, $block);
            syswrite $pipe[1], "half\n" if $i == $size / 2_000_000;
        }
        put($c, "\r\n");
        my $ok = read_line($c) eq "SERVER_ERROR object too large for cache\r\n" && roundtrip($c, "get a\r\n",
            "VALUE a 0 1\r\n1\r\nEND\r\n") eq "VALUE a 0 1\r\n1\r\nEND\r\n";
        POSIX::_exit($ok ? 0 : 1);
    });
    close $pipe[1];
    sysread $pipe[0], my $half, 5;
    exchange($s, "get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n", 'served while bytes are dropped');
    waitpid $child, 0;
    is($?, 0, 'the flood itself is answered and stays in step');
});
done_testing();
