#!/usr/bin/env perl
# The gauge of headroom tells of the time before the first who asks, and the same however often it is
# asked. The arithmetic of its windows is in t/unit/check_cpushare.c.
use MCTest ':ours';
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $GETS = 20_000;

for my $case (['1.4'], ['1.6'], ['1.6', '--busy-poll=20']) {
    my ($profile, @more) = @{$case};
    my $what = join ' ', "[$profile]", @more;
    my ($server, $s) = serve($profile, '-t', '1', @more);
    for my $ask (1 .. 3) {
        # The question comes right behind requests that the worker has served without a break.
        put($s, "get a\r\n" x $GETS . "stats qos\r\n");
        my $left = $GETS;
        $left-- while $left > 0 && read_line($s) eq "END\r\n";
        is($left, 0, "$what: gets before question $ask");
        my $q = {};
        while (read_line($s) =~ /^STAT (\S+) (\S+)/) {
            $q->{$1} = $2;
        }
        has($q, "$what: ... the rate that was", qos_rate => ['>', 0], qos_utilisation_pct => ['>', 0]);
        cmp_ok(abs(100 - $q->{qos_headroom_pct} - $q->{qos_utilisation_pct}), '<=', 0.2, '... the rest is room');
        my $part = $q->{qos_rate} / $q->{qos_capacity_now};
        $part = $part < 1 ? $part : 1;
        cmp_ok(abs($q->{qos_utilisation_pct} / 100 - $part), '<=', 0.001 + 0.01 * $part, '... capacity is rate by utilisation');
        my $free = $q->{qos_capacity_now} - $q->{qos_rate};
        if ($free > 100) {
            my $p95 = 3e6 / $free; # told to a tenth
            cmp_ok(abs($q->{qos_predicted_p95_us} - $p95), '<=', 0.06 + 0.05 * $p95, '... p95 is that of M/M/1');
        }
        is("$q->{qos_worker_0_capacity} $q->{qos_worker_0_utilisation_pct}",
            "$q->{qos_capacity_now} $q->{qos_utilisation_pct}", '... of the one worker there is');
        mem_stats($server->control, 'qos') for 1 .. 20; # another one who asks
    }
}

# What is refused takes time, too: else the capacity, which is that of the rate as above, would be that of a server
# which needs all of its time for the few requests that a limit admits.
{
    my $start = clock_gettime(CLOCK_MONOTONIC);
    my ($server, $s) = serve('native', '-t', '1', '--qps-limit=1');
    exchange($s, "qos action error\r\n", "OK\r\n");
    put($s, "get a\r\n" x $GETS . "stats qos\r\n");
    my $refused = 0;
    $refused += read_line($s) =~ /^SERVER_ERROR / for 1 .. $GETS;
    cmp_ok($refused, '>', $GETS / 2, 'a limit refuses');
    my %q;
    while (read_line($s) =~ /^STAT (\S+) (\S+)/) {
        $q{$1} = $2;
    }
    cmp_ok($q{qos_rate} * (clock_gettime(CLOCK_MONOTONIC) - $start), '>', $GETS / 20, 'the rate is that of all requests');
}

done_testing();
