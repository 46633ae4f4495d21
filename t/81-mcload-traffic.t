#!/usr/bin/env perl
# mcload's traffic: schedules, sessions, think times, late requests, limits, and connections
# that come and go, as the server sees them.
use MCTest;
use MCLoad;
use MCTestd;

my @NOLOAD = ('--noload', '-r', '100');

# Runs mcload against such a server: (run, what the server did).
sub measure($server, @args) {
    my $testd = start_testd('--value=50', @$server);
    my $run = mcload_json('-s', "127.0.0.1:$testd->{port}", @NOLOAD, @args);
    return ($run, stop_testd($testd));
}

# Rows of the server's log, by connection.
sub by_connection($did) {
    my %rows;
    push @{$rows{$_->{conn}}}, $_ for @{$did->{rows}};
    return values %rows;
}

sub accounted($json, $name) {
    my $sum = 0;
    $sum += $json->{"totals.$_"} for qw(sent skipped unsent);
    is($sum, $json->{'totals.offered'}, "$name: every request offered is accounted for");
}

# ---- schedules --------------------------------------------------------------------------

for my $case (
    ['ramp:0:2k:1s', 1000, 0.25],
    ['ramp:2k:0:1s', 1000, 0.75],
    ['square:0:4k:500ms:0.25', 1000, 0.5],
    ['steps:500:1500:1000:500ms', 1000, 0.25],
    ['triangle:0:2k:1', 1000, 0.5],
    ['sine:50%:150%:1', 1000, 0.5, '-q', '1000'],
    ['etc-day', 1000, undef, '-q', '1000'],
) {
    my ($shape, $mean, $half, @args) = @$case;
    my ($run, $did) = measure([], '-c', '16', '-i', 'fixed', '-t', '1', "--schedule=$shape",
        '--late=drop', @args);
    my $json = $run->{json};
    cmp_ok(abs($json->{'totals.offered'} - $mean), '<=', 2, "$shape: $json->{'totals.offered'} offered");
    cmp_ok(abs($json->{'load.qps'} - $mean), '<=', 1, "$shape: the mean is said");
    accounted($json, $shape);
}

# Arrivals stand where the schedule has them: what was sent in time in each half.
{
    my ($run, $did) = measure([], '-c', '16', '-i', 'fixed', '-t', '1', '--schedule=square:0:1k:1s:0.5');
    has($run, 'square: 500 in the first half, none in the second', 'totals.offered' => 500,
        'totals.sent' => scalar @{$did->{rows}});
}

# A warm-up goes at the first rate, its end is quiet.
{
    my ($run, $did) = measure([], '-c', '16', '-i', 'fixed', '-q', '1000', '-w', '1',
        '--warmup-drain', '0.7', '-t', '0.2');
    my $before = @{$did->{rows}} - $run->{json}{'totals.sent'};
    ok($before > 0 && $before <= 302, "warm-up: nothing in its quiet end ($before before the window)");
    cmp_ok(abs($run->{json}{'totals.offered'} - 200), '<=', 2, 'warm-up: the window is as long');
    # Replies take 5 ms: in the 0.6 s before its quiet end each connection has 121 at most.
    ($run, $did) = measure(['--delay=5000'], '-c', '2', '-w', '1.6', '--warmup-drain', '1', '-t', '100', '--until=n:20');
    cmp_ok($run->{json}{'totals.sent'}, '>', 0, 'warm-up: a closed loop goes on afterwards');
    cmp_ok(@{$did->{rows}} - $run->{json}{'totals.sent'}, '<=', 2 * 123, 'warm-up: ... and was quiet before');
}

# ---- think times and sessions -------------------------------------------------------------

{
    my ($run, $did) = measure([], '-c', '4', '--think=20ms', '-t', '100', '--until=n:50');
    my $gap = 1e12;
    for my $rows (by_connection($did)) {
        for my $i (1 .. $#$rows) {
            my $g = $rows->[$i]{received} - $rows->[$i - 1]{sent};
            $gap = $g if $g < $gap;
        }
    }
    cmp_ok($gap, '>=', 19e6, 'think: no request within 20 ms of a reply');
    has($run, 'think: so many users, so many requests, and they ask again, a closed loop',
        'totals.sent' => ['<=', 4 * ($run->{json}{'totals.seconds'} / 0.02 + 1)], 'totals.sent' => ['>', 4], 'load.mode' => '"closed"');
    accounted($run->{json}, 'think');
}
{
    my ($run, $did) = measure([], '-c', '2', '-q', '1000', '-t', '0.5', '--think=20ms');
    cmp_ok(scalar @{$did->{rows}}, '<=', 2 * 26, 'think: a place rests in an open loop too');
    accounted($run->{json}, 'think, open loop');
}
for my $depth (1, 4) {
    my ($run, $did) = measure([], '-c', '8', '-d', $depth, '-q', '1000', '-i', 'fixed', '-t', '1.5',
        '--session=5', '--think=exponential:100');
    my $json = $run->{json};
    is($json->{'load.mode'}, '"partly"', "sessions, depth $depth: a partly open loop");
    # 300 sessions begin, whoever else uses the CPUs; how far each comes depends on its replies.
    cmp_ok($json->{'totals.offered'}, '>=', 300, "sessions: $json->{'totals.offered'} requests");
    cmp_ok($json->{'totals.offered'}, '<=', 1501, '... not more than the rate has');
    accounted($json, 'sessions');
}

# ---- late requests -------------------------------------------------------------------------

# The server stalls: what is late comes back at twice the rate, or never.
{
    my @args = ('-c', '32', '-q', '500', '-i', 'fixed', '-t', '1');
    my ($run, $did) = measure(['--delay=300000'], @args[0 .. 3], '-c', '1', '-t', '100', '--until=n:2',
        '--late=drop');
    cmp_ok($run->{json}{'totals.skipped'}, '>', 50, 'late: dropped');
    accounted($run->{json}, 'late: dropped');
    ($run, $did) = measure(['--stall=400:2000'], '-d', '100', '-c', '4', '--max-outstanding=4', @args[2 .. 7],
        '--late=cap:2');
    my @at = map { $_->{received} } @{$did->{rows}};
    my ($most, $from) = (0, 0);
    for my $i (0 .. $#at) { # in any 100 ms
        $from++ while $at[$i] - $at[$from] > 100e6;
        $most = $i - $from + 1 if $i - $from + 1 > $most;
    }
    cmp_ok($most, '<=', 150, "late: at most twice the rate ($most in 100 ms)");
    accounted($run->{json}, 'late: capped');
}
{
    my ($run, $did) = measure(['--delay=50000'], '-c', '8', '-d', '4', '-q', '1000', '-t', '0.5',
        '--max-outstanding=5');
    my ($now, $most) = (0, 0);
    for my $e (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
        map { ([$_->{received}, 1], [$_->{sent}, -1]) } @{$did->{rows}}) {
        $now += $e->[1];
        $most = $now if $now > $most;
    }
    cmp_ok($most, '<=', 5, 'at most 5 requests on their way');
    cmp_ok($run->{json}{'totals.unsent'}, '>', 0, '... the others wait');
    accounted($run->{json}, 'max-outstanding');
}

# ---- connections that come and go ------------------------------------------------------------

for my $case (['closed', '-c', '3', '-d', '2'], ['open', '-c', '3', '-q', '500']) {
    my ($name, @args) = @$case;
    my ($run, $did) = measure([], @args, @BRIEFLY, '--requests-per-connection=7');
    my @conns = by_connection($did);
    my @odd = grep { @$_ > 7 } @conns;
    my @short = grep { @$_ < 7 } @conns;
    cmp_ok(scalar @conns, '>', 3, "$name: connections are replaced");
    is(scalar @odd, 0, '... none had more than its requests');
    cmp_ok(scalar @short, '<=', 3, '... and all but the last had all of them');
    my $json = $run->{json};
    is($json->{'totals.lost'}, 0, '... no request is lost');
    cmp_ok($json->{'totals.opened'}, '>=', scalar @conns, '... opened connections are counted');
    my $still = $json->{'totals.opened'} - $json->{'totals.closed'};
    ok($still >= 0 && $still <= 3, '... and those closed');
    like($run->{out}, qr/^Connections = \d+ opened, \d+ closed by intent$/m, '... the report says so');
    accounted($json, $name);
}
{
    my ($run, $did) = measure([], '-c', '2', '-t', '100', '--until=n:10', '--requests-per-connection=1', '--connect-rate=20');
    my ($opened, $seconds) = map { $run->{json}{"totals.$_"} } qw(opened seconds);
    ok($opened > 3 && $opened <= 2 + 20 * ($seconds + 0.1), "connect-rate: $opened opened in $seconds s at 20 a second");
}
{
    my ($run, $did) = measure(['--fault=close:20'], '-c', '4', '-t', '0.6', '--reconnect=none');
    is($run->{json}{'totals.opened'}, 4, 'reconnect=none: lost connections stay so');
    ($run, $did) = measure(['--fault=close:20'], '-c', '4', '-t', 100, '--until=n:500', '--reconnect=now');
    cmp_ok($run->{json}{'totals.opened'}, '>', 4 + 8, 'reconnect=now: they come back');
}

# ---- refused -----------------------------------------------------------------------------------

for my $args (
    ['--schedule=x'], ['--schedule=ramp:1:2:3:4:5:6'], ['--schedule=sine:50%:150%:1'],
    ['--schedule=const:0'], ['--schedule=const:9', '-q', 5], ['--schedule=const:9', '-q', 9, '-Q', 1],
    ['--schedule=ramp:10:20:1', '--search=p99:1ms'], ['--schedule=const:5', '--scan=10:20:10'],
    ['--mode=open'], ['--mode=partly'], ['--mode=x'],
    ['--mode=closed', '-q', '5'], ['--session=5'], ['--late=cap:0.5', '-q', '5'],
    ['--late=cap:2'], ['--max-outstanding=5'], ['--max-outstanding=0', '-q', '5'],
    ['--max-outstanding=1', '-q', '5', '-T', '2'], ['--reconnect=x'], ['--think=x'],
    ['--connect-rate=-1'], ['--warmup-drain=1'], ['--mode=open', '--session=5', '-q', '5'],
) {
    my $run = mcload('-s', '127.0.0.1:1', '-t', '0.1', @$args);
    my $is_late = "@$args" =~ /const:0/; # known when the run is made
    ok($run->{status} == 1 || $is_late, "@$args: usage") or diag($run->{err});
    like($run->{err}, qr/^mcload: [^\n]+\n\z/, '... with one line');
}

done_testing();
