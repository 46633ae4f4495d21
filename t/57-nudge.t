#!/usr/bin/env perl
# --sched=slice:T beside a batch job on the worker's CPU: the kernel is made to look again whom the
# CPU belongs to while that helps, and by nobody otherwise.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Time::HiRes qw(time sleep);
use MCTest;

plan skip_all => 'needs memcached-qos' if !is_ours();
my $list = (proc_status($$, 'Cpus_allowed_list'))[0];
my ($cpu) = $list =~ /^(\d+)/;
plan skip_all => 'needs taskset' if system('taskset -V >/dev/null 2>&1') != 0;

sub sched_stats {
    my ($server) = @_;
    return mem_stats($server->control, 'pin');
}

sub slurp {
    my ($path) = @_;
    open my $fh, '<', $path or return '';
    local $/;
    return <$fh> // '';
}

# The folders in /proc of the threads that do it.
sub nudgers {
    my ($server) = @_;
    return grep { slurp("$_/comm") =~ /^mc-nudge/ } glob '/proc/' . $server->pid . '/task/*';
}

# The 41st field; the name in parentheses has blanks.
sub policy_of {
    my ($task) = @_;
    my $line = slurp("$task/stat");
    $line =~ s/^.*\) //s;
    return (split ' ', $line)[38];
}

# Asks for more than the worker's share of its CPU until $is_enough says so; gives up after a while.
sub keep_asking {
    my ($server, $is_enough) = @_;
    my @conns = map { $server->connect } 1 .. 4;
    my $batch = ('get ' . join(' ', map { "k$_" } 1 .. 40) . "\r\n") x 20;
    my $end = time + 30;
    while (time < $end) {
        for (1 .. 10) {
            put($_, $batch) for @conns;
            for my $c (@conns) {
                return 'a wrong reply' if read_bytes($c, length "END\r\n" x 20) ne "END\r\n" x 20;
            }
        }
        return 'enough' if $is_enough->();
    }
    return 'not seen';
}

# Nobody asks, nobody is nudged. The same without a slice, whatever else runs.
for my $args (["--pin=list:$cpu", '--sched=slice:100us'], ["--pin=list:$cpu"]) {
    my $server = start_server(args => ['-t', '1', @$args]);
    my $stats = sched_stats($server);
    is($stats->{sched_nudges}, 0, "@$args: no nudges");
    is($stats->{sched_nudgers_refused}, 0, 'none refused');
    is(scalar(nudgers($server)), 0, 'by no thread');
    $server->stop;
}

# beside a batch job
SKIP: {
    my $server = start_server(args => ['-t', '1', "--pin=list:$cpu", '--sched=slice:100us']);
    skip 'the kernel takes no slices', 1 if sched_stats($server)->{sched_errors} > 0;
    my $tid = sched_stats($server)->{pin_worker_0_tid};
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if (!$pid) {
        exec 'taskset', '-c', $cpu, 'sh', '-c', 'while :; do :; done' or POSIX::_exit(127);
    }
    my $stats;
    my $seen = keep_asking($server, sub {
        $stats = sched_stats($server);
        return $stats->{sched_nudges} > 0 || $stats->{sched_nudgers_refused} > 0;
    });
    is($seen, 'enough', 'beside a batch job there are nudges, or they are refused');
    is(scalar(nudgers($server)), 1, 'by one thread for the one worker');
    is($stats->{pin_worker_0_sched_policy}, 'other', 'the worker stays what it is');
    is($stats->{pin_worker_0_sched_slice_ns}, 100000, 'with its slice');
    SKIP: {
        skip 'real-time priority is not permitted here', 1 if $stats->{sched_nudgers_refused} > 0;
        # Nobody asks, so the worker waits for nothing, whatever else uses the CPU.
        my ($thread) = nudgers($server);
        ok(wait_until(sub { policy_of($thread) == 0 }), 'nobody asks: they end');
    }
    kill 'KILL', $pid;
    waitpid $pid, 0;
    exchange($server->connect, "set a 0 0 1\r\n1\r\nget a\r\n",
        "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n", 'it serves');
    $server->stop;
}

# Root that becomes another user may nudge all the same, if it may set limits.
SKIP: {
    skip 'needs root', 1 if $> != 0 || !defined getpwnam 'nobody';
    skip 'may not set limits', 1 if system('prlimit --rtprio=1:1 true 2>/dev/null') != 0;
    chmod 0777, scratch_dir();
    my $server = start_server(
        args => ['-t', '1', '-u', 'nobody', "--pin=list:$cpu", '--sched=slice:100us']);
    like(slurp('/proc/' . $server->pid . '/limits'), qr/^Max realtime priority\s+[1-9]/m,
        'the right to it is kept');
    $server->stop;
    chmod 0700, scratch_dir();
}

done_testing();
