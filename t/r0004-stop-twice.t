#!/usr/bin/env perl
# The end of a server: a second signal does not cut it short, a client that never stops
# sending does not delay it, and it leaves alone a UNIX socket that another server owns now.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use POSIX ();
use Test::More;
use Time::HiRes qw(time);
use MCTest;

# How long a server takes to stop while a client floods it with noreply sets.
sub time_of_stop_in_flood {
    my ($profile) = @_;
    my $server = start_server(profile => $profile, args => ['-t', '1']);
    pipe my $out, my $in;
    my $child = fork // die "fork: $!";
    if (!$child) {
        local $SIG{PIPE} = 'DEFAULT';
        my $c = $server->connect;
        my $batch = "set f 0 0 1 noreply\r\n1\r\n" x 1000;
        syswrite $in, 'r';
        put($c, $batch, 20) while 1;
    }
    close $in;
    sysread $out, my $ready, 1;
    my $begin = time;
    $server->stop('TERM', "[$profile] a client that goes on sending: exit 0");
    my $took = time - $begin;
    kill 'KILL', $child;
    waitpid $child, 0;
    return $took;
}

# A client that does not read keeps the server waiting, 4 s: time for a second signal.
{
    my $server = start_server();
    my $s = $server->connect;
    my $value = 'v' x 500_000;
    exchange($s, "set k 0 0 500000\r\n$value\r\n", "STORED\r\n");
    my $stuck = $server->connect;
    put($stuck, "get k\r\n" x 100);
    exchange($s, "get x\r\n", "END\r\n", 'served beside the stuck client');
    kill 'TERM', $server->pid;
    ok(wait_until(sub { !eval { $server->connect; 1 } }), 'no longer listening');
    $server->stop('TERM', 'a second SIGTERM: exit 0 all the same');
}

for my $profile (profiles()) {
    # who waits for the client, which gets 4 s, is never quicker than that
    my $took = time_of_stop_in_flood($profile);
    cmp_ok($took, '<', 3, "[$profile] without delay") if is_quiet();

    next if $profile eq 'ref';
    my $path = MCTest::scratch_dir() . "/socket.$$.$profile";
    my $old = start_server(profile => $profile, args => ['-s', $path], path => $path);
    my $inode = (stat $path)[1];
    my $new = start_server(profile => $profile, args => ['-s', $path], path => $path);
    ok(wait_until(sub { -S $path && (stat _)[1] != $inode }), "[$profile] two servers, one after the other");
    $old->stop('TERM', "[$profile] the old one ends");
    ok(-S $path, "[$profile] the new one keeps its socket");
    $new->stop('TERM', "[$profile] and removes it");
    ok(!-e $path, "[$profile] at its own end");
}
done_testing();
