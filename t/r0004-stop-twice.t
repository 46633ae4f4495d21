#!/usr/bin/env perl
# The end of a server: a second signal does not cut it short, a client that never stops
# sending does not delay it, and it leaves alone a UNIX socket that another server owns now.
use MCTest;

# A server stops while a client floods it with noreply sets: at once. Who waits for the client gives it 4 s,
# 800 by a slow clock, which is more than `stop` waits for.
sub stop_in_flood($profile) {
    my $server = serve($profile, '-t', '1', {env => slowed(200)});
    pipe my $out, my $in;
    my $child = in_child(sub {
        local $SIG{PIPE} = 'DEFAULT';
        my $c = $server->connect;
        my $batch = "set f 0 0 1 noreply\r\n1\r\n" x 1000;
        syswrite $in, 'r';
        put($c, $batch, 20) while 1;
    });
    close $in;
    sysread $out, my $ready, 1;
    $server->stop('TERM', 'a client that goes on sending: exit 0, without delay');
    kill 'KILL', $child;
    waitpid $child, 0;
}

# A client that does not read keeps the server waiting, 4 s: time for a second signal.
{
    my ($server, $s) = serve();
    my $value = 'v' x 500_000;
    exchange($s, "set k 0 0 500000\r\n$value\r\n", "STORED\r\n");
    my $stuck = $server->connect;
    put($stuck, "get k\r\n" x 100);
    exchange($s, "get x\r\n", "END\r\n", 'served beside the stuck client');
    kill 'TERM', $server->pid;
    soon { !eval { $server->connect; 1 } } 'no longer listening';
    $server->stop('TERM', 'a second SIGTERM: exit 0 all the same');
}

each_profile(sub ($profile) {
    stop_in_flood($profile);
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $path = MCTest::scratch_dir() . "/socket.$$.$profile";
    my $old = serve($profile, '-s', $path, {path => $path});
    my $inode = (stat $path)[1];
    my $new = serve($profile, '-s', $path, {path => $path});
    soon { -S $path && (stat _)[1] != $inode } 'two servers, one after the other';
    $old->stop('TERM', 'the old one ends');
    ok(-S $path, 'the new one keeps its socket');
    $new->stop('TERM', 'and removes it');
    ok(!-e $path, 'at its own end');
});
done_testing();
