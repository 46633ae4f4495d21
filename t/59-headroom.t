#!/usr/bin/env perl
# The gauge of headroom tells what was asked for and what the worker's thread took for it, by the
# kernel's own account, at two loads.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Time::HiRes qw(time sleep);
use MCTest;

if (!is_ours()) {
    plan skip_all => 'needs memcached-qos';
}

my $WINDOW = 1.1; # looks that are closer are one
my $TICK = 0.02;  # the kernel counts a running thread's time now and then
my $server = start_server(args => ['-t', '1']);
my $s = $server->connect;
# Seconds for which the worker has wanted a CPU.
sub wanted {
    for my $task (glob '/proc/' . $server->pid . '/task/*') {
        next if MCTest::slurp("$task/comm") !~ /\Amc-worker 0\n/;
        my ($run, $wait) = split ' ', MCTest::slurp("$task/schedstat");
        return $run > 0 ? ($run + $wait) / 1e9 : undef;
    }
    return;
}

put($s, "get a\r\n"); # so that the worker has run
read_line($s);
if (!defined wanted()) {
    plan skip_all => 'the kernel does not tell what a thread has run';
}

sub get {
    my ($batches) = @_;
    for (1 .. $batches) {
        put($s, "get a\r\n" x 50);
        read_line($s) for 1 .. 50;
    }
    return;
}

# A look at the gauge, what the kernel says, and between which moments.
sub look {
    my $look = {begin => time, least => wanted()};
    $look->{q} = mem_stats($server->control, 'qos');
    $look->{most} = wanted();
    $look->{end} = time;
    return $look;
}

sub spans {
    my ($from, $to) = @_;
    return ($to->{begin} - $from->{end}, $to->{end} - $from->{begin});
}

my $last = look();
for my $batches (4, 400) {
    my $requests = 50 * $batches;
    get($batches);
    my $rest = $last->{end} + $WINDOW - time;
    sleep $rest if $rest > 0;
    my $now = look();
    my $q = $now->{q};
    my ($short, $long) = spans($last, $now);
    cmp_ok($q->{qos_rate}, '>=', $requests / $long - 1, "$requests requests: the rate");
    cmp_ok($q->{qos_rate}, '<=', $requests / $short + 1, '... not more than there was');
    my $busy = $q->{qos_utilisation_pct} / 100;
    cmp_ok($busy, '<=', ($now->{most} - $last->{least} + $TICK) / $short + 0.001, '... utilisation is what the thread took');
    cmp_ok($busy, '>=', ($now->{least} - $last->{most} - $TICK) / $long - 0.001, '... all of it') if $busy < 1;
    cmp_ok(abs(100 - $q->{qos_headroom_pct} - $q->{qos_utilisation_pct}), '<=', 0.2, '... the rest is room');
    my $part = $q->{qos_rate} / $q->{qos_capacity_now};
    cmp_ok(abs($busy - ($part < 1 ? $part : 1)), '<=', 0.001 + 0.01 * $part, '... capacity is rate by utilisation');
    my $free = $q->{qos_capacity_now} - $q->{qos_rate};
    cmp_ok(abs($q->{qos_predicted_p95_us} * $free / 3e6 - 1), '<=', 0.05, '... p95 is that of M/M/1') if $free > 100;
    is("$q->{qos_worker_0_capacity} $q->{qos_worker_0_utilisation_pct}",
        "$q->{qos_capacity_now} $q->{qos_utilisation_pct}", '... of the one worker there is');
    $last = $now;
}

done_testing();
