#!/usr/bin/env perl
# idle_timeout closes TCP connections from which nothing has come for longer, and no others.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use MCTest;

# Time moves in steps shorter than the time-out, so that the helper's own connection stays: it
# speaks at each step.

# Reading the counter keeps the helper's own connection in use.
sub kicks_become {
    my ($server, $n, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got;
    my $ok = wait_until(sub {
        $got = mem_stats($server->control)->{idle_kicks};
        return $got >= $n;
    });
    return $ok ? is($got, $n, $name) : fail("$name: $got");
}

for my $profile (profiles()) {
    my $server = start_server(profile => $profile);
    ok(!exists mem_stats($server->control)->{idle_kicks}, "[$profile] off: no idle_kicks");
    is(mem_stats($server->control, 'settings')->{idle_timeout}, 0, "[$profile] setting 0");
    my $c = $server->connect;
    exchange($c, "version\r\n", VERSION_REPLY($profile));
    debugtime($server, 100000);
    expect_open($c, "[$profile] off: nobody is closed");
    $server->stop;

    $server = start_server(profile => $profile, args => ['-o', 'idle_timeout=100', '-t', '2']);
    is(mem_stats($server->control)->{idle_kicks}, 0, "[$profile] idle_kicks is 0 at first");
    is(mem_stats($server->control, 'settings')->{idle_timeout}, 100, "[$profile] setting 100");
    my @idle = map { $server->connect } 1 .. 5;
    exchange($_, "version\r\n", VERSION_REPLY($profile)) for @idle;
    my $half = $server->connect;
    put($half, "set half 0 0 10\r\nxx");
    wait_until(sub {
        grep { /conn_nread/ } stat_lines($server->control, 'conns');
    });
    debugtime($server, 60);
    my $busy = shift @idle;
    exchange($busy, "version\r\n", VERSION_REPLY($profile), 'one says something');
    debugtime($server, 60);
    kicks_become($server, 5, "[$profile] four idle and one in the middle of a value are closed");
    for my $s (@idle) {
        expect_eof($s, '', "[$profile] the idle one reads end of file");
    }
    expect_eof($half, '', "[$profile] and the half request");
    expect_open($busy, "[$profile] the busy one is open");
    exchange($server->connect, "get half\r\n", "END\r\n", 'the half value is not there');
    $server->stop;

    # More than are looked at in one piece.
    $server = start_server(profile => $profile,
        args => ['-o', 'idle_timeout=100', '-t', '1', '-c', '1000']);
    my @many = map { $server->connect(no_wait => 1) } 1 .. 600;
    ok(wait_until(sub { mem_stats($server->control)->{curr_connections} >= 601 }),
        "[$profile] 600 connections");
    debugtime($server, 60) for 1 .. 2;
    kicks_become($server, 600, "[$profile] all of 600 go");
    ok(wait_until(sub { mem_stats($server->control)->{curr_connections} <= 2 }),
        "[$profile] and are given back");
    @many = ();
    $server->stop;

    for my $bad ('idle_timeout', 'idle_timeout=', 'idle_timeout=x', 'idle_timeout=-1') {
        my $run = run_program('-o', $bad, '-p', '-1', "--compat=$profile",
            $> == 0 ? ('-u', 'root') : ());
        is($run->{status}, 1, "[$profile] -o $bad exits 1");
    }
}

# UNIX connections stay.
my $path = scratch_dir() . "/idle";
my $server = start_server(profile => '1.4', path => $path,
    args => ['-s', $path, '-o', 'idle_timeout=1']);
my $c = $server->connect;
exchange($c, "version\r\n", VERSION_REPLY('1.4'));
debugtime($server, 100);
my $end = time + 1.5; # a walk begins every second
wait_until(sub { time > $end });
expect_open($c, "[1.4] a UNIX connection is not closed");
is(mem_stats($server->control)->{idle_kicks}, 0, "[1.4] nor counted");
$server->stop;

done_testing();
