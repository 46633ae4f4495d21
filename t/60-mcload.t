#!/usr/bin/env perl
# mcload stores records, sends the load it is asked for and reports what the server saw, in
# a form that existing parsers read.
use MCTest;
use MCLoad;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;

# The regular expressions of PerfKitBenchmarker, as it applies them: first match.
sub parse_like_pkb($out) {
    my %found;
    ($found{header}) = $out =~ /#type([\s\w\d]*)\n/;
    ($found{read}) = $out =~ /read([\s\d\.]*)/;
    ($found{update}) = $out =~ /update([\s\d\.]*)/;
    ($found{op_q}) = $out =~ /op_q([\s\d\.]*)/;
    ($found{qps}) = $out =~ /Total QPS = ([\d\.]*)/;
    ($found{misses}) = $out =~ /Misses = \d+ \(([\d\.]*)%\)/;
    ($found{skipped}) = $out =~ /Skipped TXs = \d+ \(([\d\.]*)%\)/;
    ($found{rx}) = $out =~ /RX[\s\d]*bytes :\s*([\d\.]*) MB\/s/;
    ($found{tx}) = $out =~ /TX[\s\d]*bytes :\s*([\d\.]*) MB\/s/;
    return \%found;
}

# ---- loading ---------------------------------------------------------------------------

my $run = mcload('-s', $at, '-r', '1000', '--loadonly', '-T', '3', '-c', '2');
has($run, 'loadonly ends with 0, loadonly prints no table, loadonly says how many', status => 0, out => '',
    err => qr/^mcload: 1000 records stored$/m);
is(mem_stats($server->control)->{curr_items}, 1000, 'the server has all records');
my $s = $server->connect;
for my $key (0, 7, 999) {
    put($s, sprintf("get %030d\r\n", $key));
    like(read_line($s), qr/^VALUE 0*$key 0 200\r\n$/, "record $key has 200 bytes");
    like(read_line($s), qr/^[a-z]{200}\r\n$/, 'of letters');
    is(read_line($s), "END\r\n", 'and is alone');
}

# ---- closed loop -----------------------------------------------------------------------

my ($before, $after);
$before = mem_stats($server->control);
$run = mcload('-s', $at, '-r', '1000', '--noload', @BRIEFLY, '-c', '4', '-d', '2', '--json', "$dir/a.json");
$after = mem_stats($server->control);
ended_ok($run, 'closed loop');
is($run->{err}, '', 'no progress line without a terminal');
my $pkb = parse_like_pkb($run->{out});
is_deeply([split ' ', $pkb->{header}],
    [qw(avg std min 5th 10th 50th 90th 95th 99th p999 p9999 max)], 'the header of the table');
is(scalar(split ' ', $pkb->{$_}), 12, "a value for each column of $_") for qw(read update op_q);
unlike(($run->{out} =~ /^(.*?)^#type/ms)[0], qr/read/, 'no such letters before the table');
my @read = split ' ', $pkb->{read};
ok(!(grep { $read[$_] > $read[$_ + 1] } 2 .. 10), 'percentiles rise') or diag("@read");
has($pkb, 'a rate, no misses, nothing skipped', qps => ['>', 0], misses => '0.0', skipped => '0.0');
# Bytes: megabytes a second of a slow machine may be 0.0.
like($run->{out}, qr/^$_\s+[1-9]\d* bytes/m, "bytes, $_") for qw(RX TX);
ok(defined $pkb->{$_}, "megabytes a second, $_") for qw(rx tx);

my $json = json_of("$dir/a.json");
ok($json, 'the JSON is valid');
has($json, 'its schema, its mode, gets only, all hits', schema => '"mcload/1"', 'load.mode' => '"closed"',
    'totals.requests' => $json->{'totals.gets'}, 'totals.hits' => $json->{'totals.keys'});
my $gets = $after->{cmd_get} - $before->{cmd_get};
my $sent = $json->{'totals.sent'};
# Those in the making at the very end of the window are sent, but outside it.
cmp_ok($gets, '>=', $sent, 'the server saw each get that was sent');
cmp_ok($gets, '<=', $sent + 8, 'and no more than that and one for each place');
has($json, 'each was answered', 'totals.answered' => $sent, 'latency.intended.count' => $sent,
    'latency.intended.buckets.sum' => $sent, 'totals.requests' => ['<=', $gets]);
is($json->{"errors.$_"}, 0, "errors: no $_")
    for qw(error client_error server_error unexpected wrong_value desync disconnect timeout connect);
soon {
    mem_stats($server->control)->{curr_connections} <= $before->{curr_connections};
} 'connections are closed at the end';

# ---- what is printed without -v --------------------------------------------------------

{
    local $MCLoad::is_brief = 1;
    my $latency = qr/Latency = p50 >?[\d.]+ us, p99 >?[\d.]+ us, p99\.9 >?[\d.]+ us, max >?[\d.]+ us\n/;
    my $verdict = qr/(?:VALID|INVALID: [^\n]+)\n/;
    my $until = qr/Until [^\n]+\n/; # as it was asked for
    $run = mcload('-s', $at, '-r', '1000', '--noload', @BRIEFLY, '--seed=4');
    like($run->{out}, qr{\A$verdict
        Rate[ ]=[ ][\d.]+/s[ ]achieved[ ]\(closed[ ]loop:[ ]none[ ]asked[ ]for\)\n
        $latency
        Hits[ ]=[ ]100\.00%[ ]\((\d+)[ ]of[ ]\1[ ]keys\)\n
        Errors[ ]=[ ]0\n$until\z}x, 'five lines');
    $run = mcload('-s', $at, '-r', '1000', '--noload', @BRIEFLY, '-q', '2k', '-u', '1',
        '--check=client_cpu:0');
    is($run->{status}, 3, 'a run that is invalid');
    like($run->{out}, qr{\AINVALID:[ ][^\n]+:[ ][^\n]+\n
        Rate[ ]=[ ]2000\.0/s[ ]asked[ ]for,[ ][\d.]+/s[ ]achieved[ ]\([\d.]+%\)\n
        $latency
        Hits[ ]=[ ]no[ ]get[ ]was[ ]answered\n
        Errors[ ]=[ ]0\n$until\z}x, '... begins with a reason and what to do');
    $run = mcload('-s', $at, '-r', '10', '--noload', @BRIEFLY, '--format=mutilate,text');
    like($run->{out}, qr/\A#type.*^TX [^\n]+\n\n${verdict}Rate = .*^Errors = 0\n\z/ms,
        "mutilate's table, then the lines");
    is(scalar(grep { defined && /\d/ } values %{parse_like_pkb($run->{out})}), 9, '... and its parsers find it');
}

# ---- open loop -------------------------------------------------------------------------

$before = mem_stats($server->control);
$run = mcload('-s', $at, '-r', '1000', '--noload', '-t', '1', '-T', '2', '-c', '4', '-q', '1k',
    '-u', '0.25', '-w', '0.2', '--json', "$dir/b.json", '--latency_from=issue', '--seed=7');
$after = mem_stats($server->control);
ended_ok($run, 'open loop');
$json = json_of("$dir/b.json");
has($json, 'its mode, its seed', 'load.mode' => '"open"', seed => '"7"');
# 1000 expected, standard deviation 32; the schedule depends on the seed only.
has($json, 'offered at least', 'totals.offered' => ['>', 840], 'totals.offered' => ['<', 1160]);
is($json->{'totals.offered'}, $json->{'totals.sent'}
        + $json->{'totals.unsent'} + $json->{'totals.skipped'}, 'all offered are accounted for');
is($json->{'totals.sent'}, $json->{'totals.answered'} + $json->{'totals.lost'}
        + $json->{'totals.unanswered'}, 'all sent are accounted for');
has($json, 'each answer has a latency', 'latency.issue.count' => $json->{'totals.answered'},
    'latency.intended.mean' => ['>=', $json->{'latency.issue.mean'}]);
# A quarter of all that came, five standard deviations.
my $sets = $after->{cmd_set} - $before->{cmd_set};
my $came = $after->{cmd_get} - $before->{cmd_get} + $sets;
cmp_ok(abs($sets - $came / 4), '<=', 5 * sqrt($came * 3 / 16) + 1, "sets: $sets of $came");
cmp_ok($came, '>=', $json->{'totals.sent'}, 'what was counted was sent');
has($run, 'offered rate in words', out => qr/^Offered = [\d.]+\/s/m, out => qr/^Adherence = /m);

my $offered = $json->{'totals.offered'};
$run = mcload('-s', $at, '-r', '1000', '--noload', '-t', '1', '-T', '2', '-c', '4', '-q', '1k',
    '-w', '0.2', '--json', "$dir/b.json", '--seed=7');
is(json_of("$dir/b.json")->{'totals.offered'}, $offered, 'the same seed, the same schedule');

# ---- shapes of load --------------------------------------------------------------------

$run = run_ok('multigets of laws', '-s', $at, '-r', '500', @BRIEFLY, '-c', '2', '--getcount=10',
    '--popularity=zipf:0.99', '-K', 'fb_key', '-V', 'fb_value', '--key-prefix=multi:');
$json = $run->{json};
is($json->{'totals.loaded'}, 500, 'all records stored');
is($json->{'totals.keys'}, 10 * $json->{'totals.gets'}, 'ten keys in each get');
is($json->{'totals.hits'}, $json->{'totals.keys'}, 'each was found');

is(parse_like_pkb(run_ok('an empty cache', '-s', $at, '-r', '100', @BRIEFLY, '--noload',
    '--key-prefix=nothing:', '-i', 'fb_ia', '-q', '2000')->{out})->{misses}, '100.0', 'all misses');

$run = run_ok('large values', '-s', $at, '-r', '20', '-V', '300000', @BRIEFLY, '-c', '2', '-d', '4', '-u',
    '0.5', '--key-prefix=big:');
$json = $run->{json};
has($json, 'gets of large values, sets of large values', 'totals.gets' => ['>', 0], 'totals.sets' => ['>', 0]);

# ---- mixes of verbs ----------------------------------------------------------------------

# Every verb, with its values checked: none is answered with what is not its own.
$run = run_ok('a mix of all verbs', '-s', $at, '-r', '1k', '-t', 100, '--until=n:4k', '-c', '4', '-d', '4',
    '--key-prefix=mix:',
    '--ops=get:30,gets:5,set:10,add:5,cas:10,delete:10,touch:5,incr:10,insert:5,scan:5,rmw:5', '--on-miss=set',
    '--verify=1', '--expiry=uniform:100,2000');
$json = $run->{json};
cmp_ok($json->{"totals.ops.$_.done"}, '>', 0, "... with $_") for qw(get gets set add cas delete touch incr);
has($json, '... add finds what is there, incr finds counters', 'totals.ops.add.no_effect' => ['>', 0],
    'totals.ops.incr.done' => ['>', $json->{'totals.ops.incr.no_effect'}]);
like($run->{out}, qr/^Requests = get \d+, gets \d+, set \d+, .*cas \d+/m, '... in words');

# Read-through: the second time everything is there.
$run = run_ok('read-through', '-s', $at, '-r', '50', '-t', 100, '--until=n:300', '--noload',
    '--key-prefix=fill:', '-q', '400', '-c', '4', '--on-miss=set', '--verify=1', '--getcount=3');
$json = $run->{json};
has($run, '... fills the cache', 'totals.sets' => ['>=', 50], 'totals.hits' => ['>', $json->{'totals.misses'}]);

# Another prefix would do, but the same keys with values of another length are found out.
$run = mcload('-s', $at, '-r', '50', @BRIEFLY, '--noload', '--key-prefix=fill:', '--verify=1', '-V', '100');
has($run, 'values of another length: invalid, by name', status => 3, out => qr/wrong_value [1-9]/);

# ---- keys that are not there, or not for long --------------------------------------------

# Shares of so many keys: five standard deviations.
sub near_share($count, $of, $share, $name) {
    my $sd = sqrt($of * $share * (1 - $share));
    cmp_ok(abs($count - $of * $share), '<=', 5 * $sd + 1, "$name: $count of $of");
}

sub odd_run($name, @args) {
    my $run = run_ok($name, '-s', $at, '-r', '200', '-t', 100, '--until=n:1k', '-c', '2', "--key-prefix=$name:",
        @args);
    return $run->{json};
}

$json = odd_run('counts', '--getcount=discrete:1=50,4=50', '--verify=1');
near_share($json->{'totals.keys'} / 3 - $json->{'totals.gets'} / 3, $json->{'totals.gets'}, 0.5, 'gets of four keys');
is($json->{'totals.hits'}, $json->{'totals.keys'}, '... all are found');
$json = odd_run('misses', '--miss-ratio=0.25', '--on-miss=set', '--verify=1', '-q', '5k');
near_share($json->{'totals.misses'}, $json->{'totals.keys'}, 0.25, 'absent keys');
is($json->{'totals.sets'}, 0, '... stay absent');
$json = odd_run('once', '--one-hit=0.25', '--on-miss=set', '--verify=1', '-q', '5k', '-T', '2');
near_share($json->{'totals.misses'}, $json->{'totals.keys'}, 0.25, 'keys asked for once');
cmp_ok($json->{'totals.sets'}, '>', 0.5 * $json->{'totals.misses'}, '... are stored');
$json = odd_run('churn', '--churn=500', '--on-miss=set', '--verify=1', '-q', '5k');
cmp_ok($json->{'totals.misses'}, '>', 0, 'records that came are missed');
# 500 a second come, also while the last replies are waited for; few are asked for by both
# connections at once.
cmp_ok($json->{'totals.misses'}, '<=', 500 * ($json->{'totals.seconds'} + 1) + 50, '... once each');
$json = odd_run('still', '--on-miss=set', '--churn=0');
is($json->{'totals.misses'}, 0, 'without churn nothing is missed');
my %lengths;
for (1 .. 3) {
    odd_run('sizes', '--value-size-per=set', '-V', 'uniform:10,2000', '-u', '1', '-r', '1', '--noload', '-q',
        500 + $_ * 50);
    my $sock = $server->connect;
    put($sock, "get sizes:" . '0' x 24 . "\r\n");
    my ($len) = (read_line($sock) // '') =~ /^VALUE \S+ \d+ (\d+)/;
    $lengths{$len // 'none'} = 1;
}
cmp_ok(scalar keys %lengths, '>', 1, 'sizes drawn by sets: ' . join ' ', keys %lengths);
for my $bad (['--value-size-per=set', '--verify=1'], ['--miss-ratio=0.6', '--one-hit=0.6'],
    ['--churn=1', '--ops=get:1,insert:1'], ['--getcount=0'], ['--getcount=2.5'], ['--getcount=1001'],
    ['--miss-ratio=1.1'], ['--value-size-per=get'], ['--protocol=http', '--getcount=uniform:1,2'])
{
    has(mcload('-s', $at, @$bad), "@$bad: usage, and one line", status => 1, err => qr/^mcload: [^\n]+\n\z/);
}

# ---- workloads by name -----------------------------------------------------------------

$run = mcload('--workload=help');
is($run->{status}, 0, 'workloads are listed');
my @names = $run->{out} =~ /^(\S+)$/mg;
ok(!!(grep { $_ eq 'etc' } @names) && @names > 25, '... by name');
like($run->{out}, qr/CC BY 4\.0/, '... with their source');
# One of each kind: deletes and fills, counters, cas, inserts, scans, values of all sizes.
for my $name (qw(etc twitter:22 twitter:18 fb-regional ycsb:d ycsb:e ycsb:f)) {
    $run = run_ok($name, '-s', $at, "--workload=$name", '-r', '200', @BRIEFLY, '-c', '2', '-q', '1k',
        "--key-prefix=$name:", '--verify=1');
    $json = $run->{json};
    has($json, '... says so, is answered', 'load.workload' => "\"$name\"", 'totals.achieved' => ['>', 0]);
}

# ---- arrivals --------------------------------------------------------------------------

write_file("$dir/trace", "0.1\n0.2\n0.3\n");
for my $args (['-i', 'bursty'], ['--arrivals=h2:4', '--arrival-scope=connection'],
    ['-i', "gaps:$dir/trace", '--arrival-scope=thread'], ['-i', 'gamma:4']) {
    ran_ok(mcload('-s', $at, '-r', '1000', '--noload', '-t', '0.3', '-T', '2', '-c', '3', '-q', '2k', @$args,
        '--json', "$dir/i.json"), "@$args");
    $offered = json_of("$dir/i.json")->{'totals.offered'};
    # Bursts last 10 ms and come 9 times a second: so few of them vary much.
    cmp_ok($offered, '>', 250, '... offered at least');
    cmp_ok($offered, '<', 2400, '... offered at most');
}

# ---- servers ---------------------------------------------------------------------------

my $second = serve('-s', "$dir/sock", {path => "$dir/sock"});
$run = run_ok('two servers, one a UNIX socket', '-s', $at, '-s', "unix:$dir/sock", '-r', '300', @BRIEFLY, '-T',
    '2', '--key-prefix=two:');
$json = $run->{json};
has($json, 'both got all records', 'totals.loaded' => 600, 'totals.hits' => $json->{'totals.keys'});
cmp_ok(mem_stats($second->control)->{cmd_get}, '>', 0, 'both were asked');

# ---- command line ----------------------------------------------------------------------

for my $args (['--nonsense'], ['-t', '0'], ['-t', 'x'], ['-T', '0'], ['-u', '1.5'], ['-K', '251'],
    ['-V', 'foo:1'], ['-i', 'gev'], ['-r', '0'], ['--noload', '--loadonly'], ['--late=drop'],
    ['--popularity=zipf:-1'], ['--realtime=fifo:0'], ['--busy-poll=x'], ['--busy-poll=1000001'], ['--key-prefix=a b'], ['operand'],
    ['--workload=x'], ['--popularity=cdf:/no/such'], ['-i', 'gaps:/no/such'], ['--arrival-scope=x'], ['-V', 'file:/no/such'],
    ['-K', 'discrete:1'], ['--ops=get'], ['--ops=put:1'], ['--on-miss=x'], ['--verify=2'],
    ['--expiry=x'], ['--json', "$dir/no/such/dir"], ['--cpus=x']) {
    $run = mcload('-s', $at, @$args);
    has($run, "@$args: usage, nothing on stdout, one line on stderr", status => 1, out => '', err_lines => 1);
}
has(mcload('--help'), 'help, lists options', status => 0, out => qr/--popularity=LAW/);
$run = mcload('-h');
has($run, '-h, those that are used most', status => 0, err => '', out => qr/^  -s, --server=.*^Topics: target, /ms);
cmp_ok(scalar(() = $run->{out} =~ /\n/g), '<=', 24, '... which fit a screen');
$run = mcload('--version');
like($run->{out}, qr/^mcload \d+\.\d+\.\d+\n\z/, 'version');

# ---- unreachable -----------------------------------------------------------------------

for my $case (['127.0.0.1:' . free_port(), 2], ["unix:$dir/nosuch", 2], ['unix:', 1], ['[::1', 1],
    [':1', 1], ['a:b:', 2]) {
    my ($where, $status) = @$case;
    $run = mcload('-s', $where, '-t', '0.1');
    has($run, "$where: cannot connect, one line says so", status => $status, err => qr/^mcload: [^\n]+\n\z/);
}

$second->stop;
done_testing();
