#!/usr/bin/env perl
# mcload looks for the highest rate that meets a goal, scans loads, repeats runs and takes
# rates as shares of the peak; records are stored once, and connections are kept between runs.
use MCTest;
use MCLoad;
use MCTestd;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;
my @base = ('-s', $at, '-r', '200', '-c', '2');

sub stats { return mem_stats($server->control) }

# The verdicts agree with the exit status: of several runs one that is INVALID decides.
sub has_verdict($run, $name) {
    my @verdicts = $run->{out} =~ /^(VALID|INVALID: .*)$/mg;
    my $said = join(', ', @verdicts);
    is($run->{status}, $said =~ /^VALID(?:, VALID)*$/ ? 0 : 3, "$name: $said")
        or diag("$run->{out}$run->{err}");
}

# A run that begins with a peak: once more when nothing was answered in the time that shows it, as the client
# did not have a CPU in it.
sub with_peak(@args) {
    my $run;
    for (1 .. 20) {
        $run = mcload_json(@args);
        last if $run->{err} !~ /no peak: no request was answered/;
    }
    return $run;
}

# ---- search ------------------------------------------------------------------------------

# A run, and what the server counted before and behind it.
my ($before, $after);

sub counted($make) {
    $before = stats();
    my $run = $make->();
    $after = stats();
    return $run;
}

my $run = counted(sub { mcload_json(@base, '-t', '0.7', '--search=50:900000', '--search-budget=2.5', '-vv') });
has_verdict($run, 'a goal that any rate meets');
my $json = $run->{json};
is($after->{cmd_set} - $before->{cmd_set}, 200, 'records are stored once');
SKIP: {
    skip 'nothing was answered while the machine stood still', 1 if $run->{out} =~ /^INVALID: no request was answered/m;
    has($run, 'the table, the peak stands below the rate, JSON', out => qr/^#type.*\nread [\s\d.>]*\nupdate/m,
        out => qr/^Total QPS = [\d.]+ .*\nPeak QPS  = [\d.]+$/m, 'search.goal' => '"p50 of gets <= 900000 us"',
        'search.low' => ['<=', $json->{'search.qps'}], 'search.runs' => ['>=', 1], 'search.peak_qps' => ['>', 0]);
    # Where it has stood still there may have been time for the first run only.
    like($run->{err}, $json->{'search.runs'} > 1 ? qr/^mcload: peak: .*^mcload: ceiling: /ms : qr/^mcload: peak: /m,
        '-vv shows the runs');
    # Too few to tell: t/unit/check_search.c has what is decided by which, and the budget.
    skip 'no rate was found', 1 if $json->{'search.found'} ne 'true';
    my $number = qr/[\d.]+/;
    has($run, 'the goal', out => qr/^Search = p50 of gets <= 900000 us, \d+ runs in [\d.]+ s$/m,
        out => qr/^Largest open-loop rate = [\d.]+\/s$/m,
        out => qr/^QoS QPS = [1-9][\d.]* (?:\+- $number \($number to $number\), bound by [a-z ]+|\(no rate [a-z ]+\)), (?:not )?confirmed/m);
    cmp_ok(abs($json->{'load.qps'} - $json->{'search.qps'}), '<', 1, 'the table is of a run at the answer');
}

$run = mcload_json(@base, '--noload', '-t', '0.3', '--search=p50:1ns', '--search-budget=1.5');
# Where the machine stood still for most of that time, no rate was tried.
my $why = qr{the lowest tried, [\d.]+/s, missed it by [a-z ]+|it ended before the runs could tell of one|no request was answered in a closed loop};
has($run, 'a goal that no rate meets: invalid, one sentence', status => 3,
    out => qr{^The search found no rate with p50 <= 0.001 us: (?:$why) \(\d+ runs in [\d.]+ s\)\.$}m,
    out => ['!~', qr/^(?:QoS QPS|Search|Largest)/m], out => qr/^INVALID: the search found no rate: /m,
    'search.found' => 'false', 'search.met' => 'false', err => '');

# A rate given is not exceeded.
$run = mcload_json(@base, '--noload', '-t', '0.3', '-q', '200', '--search=p50:0.9s', '--search-budget=5');
has_verdict($run, 'capped');
cmp_ok($run->{json}{'search.qps'}, '<=', 200, 'a rate given is the highest');
like($run->{out}, qr/^QoS QPS = 200\.0 \(no rate up to it missed the goal\), (?:not )?confirmed/m, 'and is met')
    if $run->{json}{'search.qps'} == 200;

# ---- scan --------------------------------------------------------------------------------

# What was not answered in time has a bound.
my $cell = qr/\s+>?[\d.]+/;

sub targets($run) {
    return join ' ', map { (split)[-1] } $run->{out} =~ /^(read.*)$/mg;
}

$run = counted(sub { mcload(@base, @BRIEFLY, '--scan=200:600:200', '--json', "$dir/scan.json") });
ran_ok($run, 'a scan ends');
my ($head, @rows) = split /\n/, $run->{out};
is($head =~ s/\s+/ /gr, '#type avg std min 5th 10th 50th 90th 95th 99th p999 p9999 max QPS target',
    'its columns');
is(scalar @rows, 3, 'a line for each load');
like($_, qr/^read$cell{14}$/, 'of numbers') for @rows;
is(targets($run), '200 400 600', 'upwards');
is($after->{cmd_set} - $before->{cmd_set}, 200, 'records are stored once');
# of the control connection there is one throughout
is($after->{total_connections} - $before->{total_connections}, 2, 'connections are kept');
my $check = run_program({command => ['python3', '-c',
    'import json,sys; d=json.load(open(sys.argv[1])); print(*[x["load"]["qps"] for x in d["runs"]])',
    "$dir/scan.json"]});
is($check->{out}, "200 400 600\n", 'the JSON has an array of runs') or diag($check->{err});

$run = mcload(@base, '--noload', @BRIEFLY, '--scan=200:600:200', '--scan-order=down');
is(targets($run), '600 400 200', 'downwards');
$run = mcload(@base, '--noload', @BRIEFLY, '--scan=100:1000:100', '--scan-order=shuffled');
is(join(' ', sort { $a <=> $b } split ' ', targets($run)), join(' ', map { 100 * $_ } 1 .. 10),
    'shuffled: each load');
isnt(targets($run), join(' ', map { 100 * $_ } 1 .. 10), 'in another order');
$run = mcload(@base, '--noload', @BRIEFLY, '--scan=200:400:200', '--repeat=2');
is(targets($run), '200 200 400 400', 'repeated');
$run = with_peak(@base, '--noload', '-t', '0.7', '--scan=10%:30%:10%');
my @points = split ' ', targets($run);
is(scalar @points, 3, 'shares of the peak: a line each');
ok(abs($points[1] - 2 * $points[0]) < 3 && abs($points[2] - 3 * $points[0]) < 4, 'in proportion')
    or diag("@points");
cmp_ok($points[0], '>', 10, 'of the peak');
# Answers take 50 ms: one connection's peak is at most 20 a second, that of the other class is above.
my $slow = start_testd('--delay=50000');
$run = with_peak('-s', "127.0.0.1:$slow->{port}", '-r', '10', '--noload', '-t', '1', '--class=a:{-q 20% -c 16}',
    '--class=b:{}', '--scan=100%:100%:1%');
ok(targets($run) =~ /^(\d+)$/ && $1 > 0 && $1 <= 21, 'a share of the peak of the class that is varied')
    or diag("$run->{out}$run->{err}");
stop_testd($slow);
$run = mcload(@base, '--noload', @BRIEFLY, '-u', '1', '--scan=200:200:1');
like($run->{out}, qr/^update$cell{14}$/m, 'updates when there is nothing else');
$run = mcload(@base, '--noload', @BRIEFLY, '--scan=200:600:200', '--stop-latency=p50:1ns');
is(targets($run), '200', '--stop-latency ends it');
$run = mcload(@base, '--noload', @BRIEFLY, '--scan=200:400:200', '--stop-latency=p1:9s');
is(targets($run), '200 400', '--stop-latency does not when it is kept');

# ---- repeats and shares --------------------------------------------------------------------

$run = counted(sub { mcload(@base, @BRIEFLY, '-q', '200', '--repeat=3', '--json', "$dir/many.json") });
has_verdict($run, '--repeat');
is(() = $run->{out} =~ /^#type/mg, 3, 'a table for each');
like($run->{out}, qr/^Repeats = 3: QPS$cell to$cell, p50$cell to$cell us, p99$cell to$cell us$/m,
    'and how far apart they are');
is($after->{cmd_set} - $before->{cmd_set}, 200, 'records are stored once');
is($after->{total_connections} - $before->{total_connections}, 6, 'connections are fresh');

$run = with_peak(@base, '--noload', '-t', '0.7', '-q', '20%');
has_verdict($run, '-q 20%');
my ($peak) = $run->{out} =~ /^Peak QPS  = ([\d.]+)$/m;
cmp_ok(abs($run->{json}{'load.qps'} - $peak / 5), '<', 1.1, 'a fifth of the peak');
$run = mcload_json(@base, '--noload', '-t', '0.3', '--qps=peak');
is($run->{json}{'load.mode'}, '"closed"', '-q peak is the closed loop');

# ---- what does not go ------------------------------------------------------------------------

for my $case (
    [['--search=99'], qr/a goal is/], [['--search=p99:1ms,class=none'], qr/no class/],
    [['--search=99:1000', '--repeat=2'], qr/--repeat is for runs and scans/],
    [['--search=99:1000', '--scan=1:2:1'], qr/exclusive/], [['--scan=1:2'], qr/a scan is/],
    [['--scan=5:1:1'], qr/goes up/], [['--scan-order=left'], qr/up, down or shuffled/],
    [['--stop-latency=99:1000'], qr/needs --scan/], [['--scan=1:2:1', '--stop-latency=99:1000,err<1%'], qr/latencies alone/],
    [['--search-tolerance=2%'], qr/need --search/], [['--search-budget=60'], qr/need --search/], [['--scan-order=down'], qr/needs --scan/],
    [['--qps-warmup=1:5'], qr/needs a rate/], [['--search-tolerance=0%'], qr/above 0%/],
    [['--search-tolerance=1'], qr/at most 50%/], [['-q', '0%'], qr/above 0%/], [['-q', 'x'], qr/not a number/],
    [['--repeat=0'], qr/between 1/], [['--late=drop'], qr/needs a rate/],
) {
    my ($args, $why) = @$case;
    $run = mcload('-s', $at, '--noload', '-t', '0.2', @$args);
    is($run->{status}, 1, "@$args is refused");
    like($run->{err}, $why, 'with the reason');
    has($run, 'in one line, without a report', err => qr/\Amcload: [^\n]+\n\z/, out => '');
}

done_testing();
