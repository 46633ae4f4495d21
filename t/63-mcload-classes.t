#!/usr/bin/env perl
# Classes of mcload: each sends its own load from its own connections and is counted, judged
# and told apart; together they are the run. Objectives decide about the exit status.
use MCTest;
use MCLoad;

my $server = serve();
my $at = $server->at;

# Each class has its rate, within five deviations, whatever is answered.
sub offers($rates, @args) {
    my $run = mcload_json('-s', $at, '-t', 0.5, '--noload', @args);
    for my $class (sort keys %$rates) {
        my $expected = $rates->{$class} * 0.5;
        my $offered = $run->{json}{"classes.$class.totals.offered"};
        cmp_ok(abs($offered - $expected), '<', 5 * sqrt $expected, "$class: $offered offered, $expected expected");
    }
}

# ---- two classes -------------------------------------------------------------------------

my $before = mem_stats($server->control);
my $run = mcload_json('-s', $at, '-t', 100, '--until=n:120', '-r', '500', '-T', '1',
    '--class=small:{-q 1000 connections=3 slo=p50:60s}',
    '--class=bulk:{qps=200 valuesize=20000 --records=50 -c 2 -u 0.5 protocol=binary}');
my $after = mem_stats($server->control);
my $json = $run->{json};
ended_ok($run, 'two classes');
has($json, 'the records of both are stored, by the one, and the other', 'totals.loaded' => 550,
    'classes.small.totals.loaded' => 500, 'classes.bulk.totals.loaded' => 50);
is($after->{cmd_set} - $before->{cmd_set} >= 550, 1, '... says the server');
is($after->{total_connections} - $before->{total_connections}, 5, 'connections of both');
for my $sum (qw(totals.offered totals.sent totals.answered totals.achieved totals.requests totals.gets
    totals.rx_bytes totals.tx_bytes totals.keys totals.hits latency.intended.count
    totals.ops.set.done errors.error)) {
    is($json->{$sum}, $json->{"classes.small.$sum"} + $json->{"classes.bulk.$sum"}, "$sum add up");
}
offers({small => 1000, bulk => 200}, '--class=small:{qps=1000}', '--class=bulk:{qps=200}');
has($json, 'what each does', 'classes.small.totals.ops.set.done' => 0,
    'classes.bulk.totals.ops.set.done' => ['>', 0], 'classes.bulk.protocol' => '"binary"',
    'classes.bulk.load.connections' => 2, 'totals.hits' => $json->{'totals.keys'},
    'classes.small.slo.objective' => '"p50:60s"');
# Where the machine stands still at the end of the run, half of the requests may never be sent, which misses it.
my $is_met = $json->{'classes.small.latency.intended.pct.p50'} ne 'null';
is($json->{'classes.small.slo.met'}, $is_met ? 'true' : 'false', 'the objective of the one');
ok(!exists $json->{'classes.bulk.slo.met'}, 'the other has none');
my ($first, @tables) = split /^#(?:type|kind)/m, $run->{out};
like($first, qr/^(?:IN)?VALID.*\nclass +asked\/s +achieved\/s .*\nsmall +[\d.]+ .*\nbulk +[\d.]+ .*\n\n\z/m,
    'a row of each class before the first table');
is(scalar @tables, 3, 'a table of the run and of each class');
like($run->{out}, qr/^Class small: 1 x 3 connections, depth 1\n#kind/m, '... with its name');
like($run->{out}, qr/^Class bulk: 1 x 2 connections, depth 1\n#kind/m, '... each');
is(scalar(() = $run->{out} =~ /read/g), 1, 'the letters "read" stand in the table of the run only');
is(scalar(() = $run->{out} =~ /^.*QPS/mg), 1, '... and so does QPS');
like($run->{out}, $is_met ? qr/^Objective p50:60s of small = met, [\d.]+ us$/m : qr/^Objective p50:60s of small = missed, /m,
    'the objective in words');

# ---- servers and connections -------------------------------------------------------------

my $second = serve();
my $per = run_program({command => [$MCLOAD, '-v', '-s', $at, '-s', $second->at, @BRIEFLY, '-r', '100', '-q',
    '2000', '-T', '2', '-c', '3', '--json', scratch_dir() . '/spread.json'], timeout => 120});
ended_ok($per, 'two servers');
$json = json_of(scratch_dir() . '/spread.json');
my $servers = $json->{servers};
my ($name1, $n1, $name2, $n2) = $servers =~ /"name": "([^"]+)", "requests": (\d+)/g;
is("$name1 $name2", "$at 127.0.0.1:" . $second->port, 'servers by name');
is($n1 + $n2, $json->{'totals.answered'}, '... have all requests');
cmp_ok($n1, '>', 0, '... the one') && cmp_ok($n2, '>', 0, '... and the other');
is($json->{'connections.count'}, 12, 'all connections');
cmp_ok($json->{"connections.$_.min"}, '<=', $json->{"connections.$_.max"}, "... their $_")
    for qw(requests p50 p99);
cmp_ok($json->{'connections.imbalance'}, '>=', 1, '... how alike they are');
like($per->{out}, qr/^Server \Q$at\E = $n1 requests, p50 [\d.]+ us, p99 [\d.]+ us$/m, 'in words');
like($per->{out}, qr{^Connections = 12, min / median / max: requests \d+ / \d+ / \d+, p50 }m, '...');

# ---- what a class shares with others is stored once --------------------------------------

$run = run_ok('three classes', '-s', $at, @BRIEFLY, '-r', '300', '--key-prefix=shared:', '-q', '200',
    '--class=a:{}', '--class=b:{-u 0.1 depth=4}', '--class=c:{key-prefix=c: -T 2}');
has($run, 'the first stores, the second has the same records, the third has others, all is there, threads of all',
    'classes.a.totals.loaded' => 300, 'classes.b.totals.loaded' => 0, 'classes.c.totals.loaded' => 300,
    'classes.b.totals.hits' => $run->{json}{'classes.b.totals.keys'}, 'load.threads' => 4);
has(mcload('-s', $at, '-r', '300', '--key-prefix=only:', '--class=a:{}', '--class=b:{-V 5}', '--loadonly'),
    'loading only, stores for all classes', status => 0, err => "mcload: 600 records stored\n");
$run = mcload_json('-s', $at, @BRIEFLY, '-r', '300', '--key-prefix=only:', '-q', '200',
    '--class=a:{}', '--class=b:{-V 5}', '--noload');
has($run, 'nothing is stored twice', 'totals.loaded' => 0, 'totals.hits' => $run->{json}{'totals.keys'});

# ---- one class that has a name -------------------------------------------------------------

$run = run_ok('one class', '-s', $at, @BRIEFLY, '-q', '200', '--class=x:{-r 20}');
is(scalar(() = $run->{out} =~ /^#type/mg), 1, 'one table');
is($run->{json}{'classes.x.totals.sent'}, $run->{json}{'totals.sent'}, 'the class is the run');
ok(!(grep { /^classes\./ } keys %{mcload_json('-s', $at, '-t', '0.1', '-r', '1')->{json}}),
    'without a name there are none');

# ---- objectives ----------------------------------------------------------------------------

# A verdict of INVALID comes first: then nothing is said about the server. What was never sent
# misses every objective.
for my $slo ('p50:100s', 'p50:1ns') {
    $run = mcload_json('-s', $at, @BRIEFLY, '-r', '10', '-q', '100', "--slo=$slo", '--assert');
    my ($status, $word) = $slo eq 'p50:1ns' || $run->{json}{'latency.intended.pct.p50'} eq 'null' ? (4, 'missed') : (0, 'met');
    like($run->{out}, qr/^Objective $slo = $word, /m, "$slo is $word");
    is($run->{json}{'slo.objective'}, "\"$slo\"", '... in the JSON, too');
    is($run->{json}{'slo.met'}, $word eq 'met' ? 'true' : 'false', '... and whether it was met');
    is($run->{status}, $run->{out} =~ /^INVALID/m ? 3 : $status, '... and so is the status');
}
# Of few requests none may be beyond it: then it says nothing.
$run = mcload_json('-s', $at, '-t', '100', '--until=n:10', '-r', '10', '-q', '100', '--slo=p99.99:100s', '--assert');
like($run->{out}, qr/^Objective p99\.99:100s = not known: that takes 10000 requests at least$/m, 'too few requests');
has($run->{json}, '... in the JSON', 'slo.known' => 'false', 'slo.met' => 'false');
is($run->{status}, $run->{out} =~ /^INVALID/m ? 3 : 4, '... which is not met');
$run = mcload('-s', $at, '-t', '0.3', '-r', '10', '-q', '100', '--slo=p50:1ns');
is($run->{status}, $run->{out} =~ /^INVALID/m ? 3 : 0, 'without --assert it is only told');

# ---- mutilate's measuring client -----------------------------------------------------------

$before = mem_stats($server->control);
$run = mcload_json('-s', $at, @BRIEFLY, '-r', '100', '-T', '1', '-c', '4', '-d', '2', '-q', '2000',
    '--measure_connections=2', '--measure_qps=200', '--measure_depth=1');
$after = mem_stats($server->control);
$json = $run->{json};
ended_ok($run, 'a measuring client');
is($after->{total_connections} - $before->{total_connections}, 6, 'connections of both');
offers({measure => 200, load => 1800}, '-q', 2000, '--measure_connections=2', '--measure_qps=200');
is($json->{'classes.measure.load.depth'}, 1, 'its depth');
my ($all, $of_class) = map { [$run->{out} =~ /$_/] } qr/^read +(.*)$/m,
    qr/^Class measure: .*\n#kind.*\ngets +(.*)$/m;
is_deeply($all, $of_class, 'its latencies are those of the run');
like($run->{out}, qr/^Total QPS = [\d.]+ \($json->{'totals.requests'} /m, 'the rate is that of all');

# ---- antagonists ---------------------------------------------------------------------------

# At its peak a client is as busy as it can be; that says nothing of the class beside it.
$run = mcload_json('-s', $at, '-t', 100, '--until=n:1k', '-r', '200', '-q', '500', '--class=small:{slo=p50:60s}',
    map { "--class=$_:{antagonist=$_ connections=2 depth=2}" } qw(flood multiget large sets));
$json = $run->{json};
ended_ok($run, 'antagonists');
has($json, "$_ is answered", "classes.$_.totals.requests" => ['>', 0], "classes.$_.load.mode" => '"closed"',
    "classes.$_.valid" => 'true') for qw(flood multiget large sets);
is($json->{'classes.multiget.totals.keys'}, 100 * $json->{'classes.multiget.totals.gets'},
    'many keys in a get');
has($json, 'only sets', 'classes.sets.totals.gets' => 0, 'classes.large.totals.rx_bytes' => ['>', 500_000]);

done_testing();
