#!/usr/bin/env perl
# --balance beside a batch job: connections leave the worker whose CPU it uses, new ones go to
# the other worker, and when it has ended they come back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use MCTest;

plan skip_all => 'needs memcached-qos' if !is_ours();
my ($allowed) = slurp('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\S+)/m;
my @cpus = map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $allowed // '';
plan skip_all => 'needs two CPUs' if @cpus < 2;
plan skip_all => 'needs taskset' if system('taskset -V >/dev/null 2>&1') != 0;

sub slurp {
    my ($path) = @_;
    open my $f, '<', $path or return '';
    local $/;
    return <$f> // '';
}

# Ticks that the CPU was used, and all of them.
sub used {
    my ($cpu) = @_;
    my ($line) = slurp('/proc/stat') =~ /^cpu$cpu (.*)$/m;
    my @t = split ' ', $line // '0 0 0 0 0 0 0 0';
    my $all = 0;
    $all += $_ for @t[0 .. 7];
    return ($all - $t[3] - $t[4], $all);
}

my $server = start_server(args => ['-t', '2', "--pin=list:$cpus[0],$cpus[1]", '--balance',
        '--steer=p2c']);
my $s = $server->control;
my @conns = map { $server->connect } 1 .. 16;

# Waits until $what of the statistics is like $want, while requests come and go; gives up after
# a while.
sub keep_asking {
    my ($what, $want) = @_;
    my ($end, $batch) = (time + 25, "version\r\n" x 50);
    my $reply = VERSION_REPLY() x 50;
    my $got = '';
    while (time < $end) {
        put($_, $batch) for @conns;
        for my $c (@conns) {
            return 'a wrong reply' if read_bytes($c, length $reply) ne $reply;
        }
        $got = mem_stats($s, 'qos')->{$what};
        return $got if $got =~ $want;
        select undef, undef, undef, 0.002; # so that this does not fill its own CPU
    }
    return $got;
}

# It cannot be seen when other programs use both CPUs: a fact of the machine, no failure.
sub seen_or_skipped {
    my ($what, $want, $cpu, $why) = @_;
    my @before = used($cpu);
    my $got = keep_asking($what, $want);
    my @after = used($cpu);
    my $share = ($after[0] - $before[0]) / ($after[1] - $before[1] || 1);
    return 0 if $got !~ $want && $share > 0.3;
    like($got, $want, $why);
    return $got =~ $want;
}

sub start_batch {
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        exec 'taskset', '-c', $cpus[0], $^X, '-e', 'alarm 100; 1 while 1' or POSIX::_exit(1);
    }
    return $pid;
}

my @batch = (start_batch(), start_batch());
END { kill 'KILL', grep { defined } @batch }

SKIP: {
    skip 'others use the CPUs', 1
        if !seen_or_skipped('worker_0_crowded', qr/^yes$/, $cpus[1], 'the batch jobs are noticed');
    log_says($server, qr/balance: CPU $cpus[0] of worker 0 is crowded/, 'and the log says so');
    skip 'others use the CPUs', 1
        if !seen_or_skipped('worker_0_conns', qr/^0$/, $cpus[1], 'everybody leaves');
    my @late = map { $server->connect } 1 .. 8;
    exchange($_, "version\r\n", VERSION_REPLY()) for @late;
    # on a busy machine it may be free again for a moment
    ok(wait_until(sub {
        my $stats = mem_stats($s, 'qos');
        return $stats->{worker_0_crowded} eq 'no' || $stats->{worker_0_conns} == 0;
    }), 'new connections are elsewhere, too');
    kill 'KILL', @batch;
    waitpid $_, 0 for splice @batch;
    skip 'others use the CPU', 1
        if !seen_or_skipped('worker_0_crowded', qr/^no$/, $cpus[0], 'and it is noticed that they end');
    skip 'others use the CPUs', 1
        if !seen_or_skipped('worker_0_conns', qr/^[1-9]/, $cpus[1], 'connections come back');
}
$server->stop;
done_testing();
