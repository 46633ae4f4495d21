#!/usr/bin/env perl
# Results of mcload: confidence and intervals in them; merge adds them up without loss,
# compare says whether they differ, plot draws them. Files that are no results are refused.
use List::Util 'sum';
use MCTest;
use MCLoad;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;

sub intervals($file) { return read_file($file) =~ /"length": ([\d.]+)/g; }

# ---- confidence and intervals ----------------------------------------------------------

my $run = mcload('-s', $at, '-r', '1000', '-t', 100, '--until=n:500', '-q', '1k', '-c', '2', '--json',
    "$dir/a.json", '--interval=0.2s');
ended_ok($run, 'a run with intervals');
my $one = json_of("$dir/a.json");
# Those of 0.2 s, of which two are one where nobody looked in time.
my @rows = $run->{out} =~ /^interval +([\d.]+) /mg;
my @lengths = intervals("$dir/a.json");
ok(@rows >= 1 && @rows <= sum(@lengths) / 0.2 + 1, 'intervals of 0.2 s: ' . @rows);
unlike(($run->{out} =~ /^(.*?)^#type/ms)[0], qr/read/, 'no such letters before the table');
is(scalar(() = $run->{out} =~ /read/g), 1, 'the letters "read" stand in the table only');
is(scalar @lengths, scalar @rows, 'the intervals are in the JSON');
ok($one->{"latency.intended.ci.p95.$_"} =~ /^[\d.]+$/, "p95: $_") for qw(effective enough_s);
# Where the machine stood still for a part of the run, requests may tell too little: t/unit/check_ci.c.
my $is_known = $one->{'latency.intended.ci.p95.effective'} > 0;
my $needs = $is_known ? qr{n/a \(needs [\d.]+ s\)} : qr{n/a(?: \(needs [\d.]+ s\))?};
has($run, 'the confidence of p95',
    out => $is_known ? qr{^p95 95% interval = (?:>?[\d.]+ \.\. (?:>?[\d.]+|\?) us \(worth \d+ independent|$needs$)}m
        : qr{^p95 95% interval = $needs$}m,
    out => qr{^p999 95% interval = $needs$}m);
# On a busy machine even the requests of this run may be too much alike to say so, or more than
# one in twenty of them never answered: p95 is above all that is known, then.
my ($low, $p95) = @$one{qw(latency.intended.ci.p95.low latency.intended.pct.p95)};
ok($low eq 'null' || $p95 eq 'null' || $low <= $p95, 'the interval begins below the percentile')
    or diag("$low, not $p95");
is($one->{'latency.intended.ci.p99.99.low'}, 'null', 'unknown is null');
$run = mcload_json('-s', $at, '-r', 10, '-t', 0.4, '-q', 100, '--interval=0.1');
cmp_ok(abs(sum(intervals($run->{file})) - 0.4), '<', 1e-6, 'intervals make up the window');

is(mcload('-s', $at, "--interval=$_")->{status}, 1, "--interval=$_: usage") for '0', 'x', '-1', '0.001';

$run = mcload('-s', $at, '-r', '1000', '--noload', '-t', 90, '--until=n:250', '-q', '500', '-c', '2',
    '--json', "$dir/b.json");
ended_ok($run, 'another run');
unlike($run->{out}, qr/^interval/m, 'intervals only when asked for');
my $two = json_of("$dir/b.json");

# ---- a warm-up as long as it takes -----------------------------------------------------

$run = mcload_json('-s', $at, '-r', '1000', '--noload', '-t', '0.6', '-q', '2k', '-c', '2', '--warmup=auto');
ran_ok($run, 'a warm-up as long as it takes');
like($run->{out}, qr/^Warm-up = [\d.]+ s, (?:steady after [\d.]+ s of it|not steady by then) \(MSER-5\)$/m,
    '... says how long');
my $seconds = $run->{json}{'warmup.seconds'};
cmp_ok($seconds, '>=', 0.24, "... in pieces of a quarter of a second at least");
like("$run->{json}{'warmup.steady'} $run->{json}{'warmup.steady_after'}",
    qr/^(?:true [\d.]+|false null)$/, '... and whether it was enough');
is($run->{json}{'totals.seconds'} + 0, 0.6, '... and the window is as long as ever');
cmp_ok($run->{json}{'totals.offered'}, '<', 2000, '... without its requests');
has(mcload('-s', $at, @$_), "@$_: usage, one line", status => 1, err_lines => 1) for ['--warmup=x'],
    ['--warmup=-1'], ['--warmup=auto', '--scan=1000:2000:500'], ['--warmup=auto', '--schedule=ramp:100:200:1'];

# ---- by the size of replies ---------------------------------------------------------------

for my $args ([], ['--getcount=3'], ['--binary'], ['--protocol=meta', '--ops=get:3,set:1']) {
    $run = run_ok("--by-size @$args", '-s', $at, '-r', '1000', '-t', 100, '--until=n:200', '-q', '2k', '-c',
        '2', '--by-size', '--valuesize=discrete:10=1,5000=1', @$args);
    my ($sizes) = ($run->{json}{sizes} // '');
    my %gets = map { /"up_to": (\d+).*"count": (\d+)/ ? ($1, $2) : () } split /\}/, $sizes;
    cmp_ok($gets{64} // 0, '>', 0, '... gets of small values');
    cmp_ok($gets{16384} // 0, '>', 0, '... and of large ones');
    my $sum = 0;
    $sum += $_ for values %gets;
    cmp_ok($sum, '>', 100, '... many');
    is($sum, $run->{json}{'verbs.read.intended.count'}, '... all gets of the window');
    my %shown = $run->{out} =~ /^<=(\d+)(?:B|KiB) +(\d+)(?: +[\d.]+){4}$/mg;
    is_deeply([sort { $a <=> $b } values %shown], [sort { $a <=> $b } values %gets], '... and the table has them');
    is(scalar(() = $run->{out} =~ /read/g), 1, '... the letters "read" stand in the table only');
}
$run = mcload_json('-s', $at, '-r', '1000', @BRIEFLY, '-q', '1k', '-c', '2', '--by-size');
unlike($run->{out}, qr/^#values/m, 'values of one size need no table');
$run = mcload_json('-s', $at, '-r', '1000', @BRIEFLY, '-q', '1k', '-c', '2',
    '--valuesize=discrete:10=1,5000=1');
unlike($run->{out}, qr/^#values/m, 'no table that nobody asked for');
ok(!exists $run->{json}{sizes}, '... nor anything in the JSON');

# ---- what servers say ------------------------------------------------------------------

$run = run_ok('a run that asks for stats', '-s', $at, '-r', '1000', '-t', 100, '--until=n:1k', '-q', '2k', '-c', '2',
    '--server-stats=0.1s');
like($run->{out}, qr/^Server stats = CPU [\d.]+% of a core, 0 evictions, \d+ connections, 1000 items, [\d.]+ MB$/m,
    '... says what they told');
my $stats = $run->{json};
is($stats->{'server_stats.servers'}, 1, '... one server');
cmp_ok($stats->{'server_stats.after.cmd_get'} - $stats->{'server_stats.before.cmd_get'}, '>=',
    0.25 * $stats->{'totals.gets'}, '... the gets of the run');
is($stats->{'server_stats.after.curr_items'} + 0, 1000, '... its records');
is(scalar(() = read_file($run->{file}) =~ /"server": "\Q$at\E"/g) >= 2, 1, '... and all samples');
$run = mcload_json('-s', $at, '-s', 'localhost:' . $server->port, '--noload', '-r', '1000', '-t', '0.3',
    '-q', '1k', '-c', '2', '--server-stats=5', '--warmup=auto', '--repeat=1');
is($run->{json}{'server_stats.servers'}, 2, 'two servers, at both ends of the window only');
for my $args (['--server-stats=0'], ['--server-stats=x'], ['--server-stats=1', '--protocol=redis']) {
    $run = mcload('-s', $at, @$args);
    has($run, "@$args: usage, one line", status => 1, err_lines => 1);
}

# ---- how servers are set up --------------------------------------------------------------

{
    my $small = serve('-m', '73');
    my $small_at = $small->at;
    for my $asks (['--env-report'], ['--server-stats=0.1s'], ['--env-report', '--server-stats=0.1s']) {
        $run = run_ok("@$asks", '-s', $small_at, '-s', $at, '-r', '100', @BRIEFLY, '-q', '1k', '-c', '2',
            @$asks);
        my $text = read_file($run->{file});
        my ($told) = $text =~ /("settings": \[.*?\}\])/s;
        like($told // '', qr/"server": "\Q$small_at\E",\s*"version": "\d[^"]*",\s*"values": \{[^}]*"maxbytes": "76546048"/,
            '... what the first is set to');
        like($told // '', qr/"server": "\Q$at\E",\s*"version": "\d[^"]*",\s*"values": \{[^}]*"maxbytes": "67108864"/,
            '... and the second');
        like($told // '', qr/"num_threads": "\d+"/, '... with all that they told');
        is(scalar(() = $run->{out} =~ /read/g), 1, '... the letters "read" stand in the table only');
        is(scalar(() = $run->{out} =~ /^Env \Q$small_at\E maxbytes = 76546048$/mg), $asks->[0] eq '--env-report' ? 1 : 0,
            '... and below the results when that was asked for');
    }
    $run = mcload_json('-s', $small_at, '--noload', '-t', '0.3', '-q', '1k');
    unlike(read_file($run->{file}), qr/"settings"/, 'nobody asks without being told to');

    my $binary = serve('-B', 'binary');
    $run = run_ok('a server that refuses the question', '-s', $binary->at, '--binary', '-r', '100', @BRIEFLY,
        '-q', '1k', '--env-report');
    unlike(read_file($run->{file}), qr/"settings"/, '... is without settings');
    like($run->{out}, qr/^Env kernel = /m, '... the rest is there');
}

# Each class of sizes and how many gets it had.
sub size_counts($json) {
    return map { /"up_to": (\d+), "count": (\d+)/ ? [$1, $2] : () } split /\}/, $json // '';
}

# ---- evictions --------------------------------------------------------------------------

{
    # 30 MB into 10: what is not there any more was evicted, and that is said.
    my $small = serve('-m', '10');
    my @large = ('-s', $small->at, '-r', '3000', '-V', '10000', @BRIEFLY, '-q', '1k');
    $run = mcload_json(@large, '--server-stats=0.2');
    my $evicted = mem_stats($small->control)->{evictions};
    cmp_ok($evicted, '>', 1000, 'a small server evicts');
    is($run->{json}{'evictions.loading'} + 0, $evicted, '... while records are stored, and that is counted');
    is($run->{json}{'evictions.total'} + 0, $evicted, '... of all');
    like($run->{out}, qr/^Note: misses, .*: $evicted items were evicted while they were stored, $evicted evictions/m,
        '... and told');
    $run = mcload_json(@large, '--noload');
    unlike($run->{out}, qr/evict/, 'who has stored nothing does not ask');
    ok(!exists $run->{json}{'evictions.total'}, '... and does not tell');
    $run = mcload_json(@large);
    $evicted = mem_stats($small->control)->{evictions};
    is($run->{json}{'evictions.total'} // 'none', $evicted, 'who has missed what it stored asks the server');
    like($run->{out}, qr/^Note: misses, .*: $evicted evictions counted by the servers in all$/m, '... and tells it');
    like($run->{out}, qr/^Hit ratio = [\d.]+% \(100\.00% expected\)/m, '... and what was expected');
    $run = mcload_json('-s', $at, '-r', 100, @BRIEFLY, '-q', '1k', '--miss-ratio=0.25');
    like($run->{out}, qr/^Hit ratio = [\d.]+% \(75\.00% expected\)/m, 'misses that were asked for are expected');
    unlike($run->{out}, qr/^Note: misses/m, '... and nobody is to blame');
}

# ---- merge -----------------------------------------------------------------------------

SKIP: {
    $run = mcload('merge', "$dir/a.json", "$dir/b.json");
    skip 'built without jansson', 1 if $run->{err} =~ /without jansson/;
    is($run->{status}, 0, 'merge') or diag($run->{err});
    my $m = json_of(scratch_file('m.json', $run->{out}));
    for my $key (qw(totals.requests totals.offered totals.achieved totals.hits
        latency.intended.count latency.intended.buckets.sum latency.issue.count lag.count)) {
        is($m->{$key}, $one->{$key} + $two->{$key}, "merged $key is the sum");
    }
    my ($min) = sort { $a <=> $b } map { $_->{'latency.intended.min'} } $one, $two;
    my ($max) = sort { $b <=> $a } map { $_->{'latency.intended.max'} } $one, $two;
    has($m, 'the smallest of both', 'latency.intended.min' => $min, 'latency.intended.max' => $max);
    my $mean = ($one->{'latency.intended.mean'} * $one->{'latency.intended.count'}
            + $two->{'latency.intended.mean'} * $two->{'latency.intended.count'})
        / $m->{'latency.intended.count'};
    cmp_ok(abs($m->{'latency.intended.mean'} - $mean), '<', 1 + 1e-6 * $mean, 'the mean of all');
    my ($longer, $shorter) = sort { $b <=> $a } map { $_->{'totals.seconds'} } $one, $two;
    is($m->{'totals.seconds'}, $longer, 'at the same time: the longer one');
    my ($sum, @parts) = map { $_->{'latency.intended.ci.p95.effective'} } $m, $one, $two;
    cmp_ok(abs($sum - $parts[0] - $parts[1]), '<=', 1e-6 * $sum, 'what is known of both adds up');

    $run = mcload('merge', '--in-turn', '-o', "$dir/turn.json", "$dir/a.json", "$dir/b.json");
    is($run->{status}, 0, 'merge in turn, to a file') or diag($run->{err});
    cmp_ok(abs(json_of("$dir/turn.json")->{'totals.seconds'} - $longer - $shorter), '<', 1e-6, 'one after another: the sum');

    # What says nothing of both is left out, whichever comes first.
    my @marked = map {
        my ($name, $from, $met, $host) = @$_;
        scratch_file($name, read_file($from) =~ s/^\{/{ "slo": [{"met": $met}],/r =~ s/"env": \{/$&"host": "$host",/r);
    } ['met.json', "$dir/a.json", 'true', 'one'], ['missed.json', "$dir/b.json", 'false', 'two'];
    for my $order ([0, 1], [1, 0]) {
        mcload('merge', '-o', "$dir/marked.json", @marked[@$order]);
        my $text = read_file("$dir/marked.json");
        unlike($text, qr/"slo"|"host"/, 'the verdict of one, and where it was, are not those of both');
        like($text, qr/"protocol": "ascii"/, '... what is the same is');
    }

    # Windows of whole seconds are times, not counts.
    my $whole_s = scratch_file('whole.json', read_file("$dir/a.json") =~ s/"seconds": [\d.]+/"seconds": 5/gr);
    for my $case ([[], 5, 2 * $one->{'totals.qps'}], [['--in-turn'], 10, 2 * $one->{'totals.requests'} / 10]) {
        my ($args, $seconds, $rate) = @$case;
        mcload('merge', @$args, '-o', "$dir/whole2.json", $whole_s, $whole_s);
        my $w = json_of("$dir/whole2.json");
        cmp_ok($w->{'totals.seconds'}, '==', $seconds, "two windows of 5 s @$args: $seconds s");
        cmp_ok(abs($w->{'totals.qps'} - $rate), '<', 1e-6, '... and the rate that follows');
    }

    # Rates of runs at the same time add up, however long each was; whole ones are no counts.
    my %rates = (qps => [427, 395.75], offered_qps => [450, 400], achieved_qps => [426.5, 394]);
    my @runs = map {
        my ($n, $seconds) = @$_;
        my $text = read_file("$dir/a.json") =~ s/"seconds": [\d.]+/"seconds": $seconds/gr;
        $text =~ s/("totals": \{.*?"$_": )[\d.]+/$1$rates{$_}[$n]/s for keys %rates;
        scratch_file("$seconds-s.json", $text);
    } [0, 1], [1, 3];
    for my $order ([0, 1], [1, 0]) {
        mcload('merge', '-o', "$dir/rates.json", @runs[@$order]);
        has(json_of("$dir/rates.json"), 'rates of 1 s and of 3 s at the same time: the sums', 'totals.seconds' => ['==', 3],
            map { ("totals.$_" => ['==', sum(@{$rates{$_}})]) } keys %rates);
    }

    # What is of one run is not told of all.
    has($m, 'what was asked for adds up', 'load.qps' => ['==', 1500], 'load.connections' => 2);
    ok(!exists $m->{"$_"}, "of one run only: $_") for qw(load.time began_s phases arrivals.scv argv seed);

    # A share is no count.
    mcload('merge', '-o', "$dir/shares.json", "$dir/a.json", "$dir/a.json");
    is(json_of("$dir/shares.json")->{'totals.hits_expected'}, 1, 'all hits are expected of both, and together');
    my $of_half = scratch_file('half_shared.json',
        read_file("$dir/a.json") =~ s/"hits_expected": 1,/"hits_expected": 0.5,/r);
    for my $others (["$dir/a.json", "$dir/b.json"], ["$dir/b.json", "$dir/a.json"], ["$dir/a.json", $of_half]) {
        mcload('merge', '-o', "$dir/shares.json", @$others);
        my $shares = json_of("$dir/shares.json");
        ok(exists $shares->{'totals.hits'} && !exists $shares->{'totals.hits_expected'},
            '... and where they do not agree nothing is said');
    }

    # A merged result is a result: again, and in another order.
    mcload('merge', '-o', "$dir/ba.json", "$dir/b.json", "$dir/a.json");
    my $again = json_of("$dir/ba.json");
    is($again->{$_}, $m->{$_}, "the order does not matter: $_")
        for qw(latency.intended.pct.p50 latency.intended.pct.p99 totals.requests);
    mcload('merge', '-o', "$dir/aba.json", "$dir/m.json", "$dir/a.json");
    is(json_of("$dir/aba.json")->{'totals.requests'},
        2 * $one->{'totals.requests'} + $two->{'totals.requests'}, 'merged with what was merged');

    # Latencies by size are added up as those of all are.
    # Other values would be another workload: they are merged where nothing says so.
    my $nameless = sub ($name, $file) {
        return scratch_file($name, read_file($file) =~ s/^ *"value_size": [^\n]*\n//mgr);
    };
    my @sized = map { mcload_json('-s', $at, '-r', '1000', @BRIEFLY, '-q', '2k', '-c', '2', '--by-size',
        "--valuesize=discrete:$_") } '10=1,5000=1', '10=1,100=1';
    my %of = map { $_ => [size_counts($sized[$_]{json}{sizes})] } 0, 1;
    mcload('merge', '-o', "$dir/sized.json", map { $nameless->("sized$_.json", $sized[$_]{file}) } 0, 1);
    my @merged = size_counts(json_of("$dir/sized.json")->{sizes});
    my (%sum, %merged);
    $sum{$_->[0]} += $_->[1] for map { @$_ } values %of;
    $merged{$_->[0]} = $_->[1] for @merged;
    is_deeply(\%merged, \%sum, 'merged gets by size are the sums');
    is("@{[map { $_->[0] } @merged]}", '64 256 16384', '... in the order of sizes');
    my $pct = run_program({command => ['python3', '-c', <<'PY', "$dir/sized.json"]});
import json, sys
for size in json.load(open(sys.argv[1]))["sizes"]:
    at, n = 0, size["count"]
    for low, high, count in size["buckets"]:
        at += count
        if at >= 0.95 * n:
            print(low <= size["p95"] <= high, abs(size["mean"] * n - size["sum"]) <= 1 + 1e-8 * size["sum"])
            break
PY
    is($pct->{out}, "True True\n" x 3, '... with percentiles and means of both') or diag($pct->{err});
    mcload('merge', '-o', "$dir/half.json", "$dir/sized0.json", "$dir/a.json");
    ok(!exists json_of("$dir/half.json")->{sizes}, '... and nothing where only one has them');

    # A closed loop, so that all but the last one are answered and p99 is known.
    my $of_class = mcload_json('-s', $at, '-r', '1000', '--noload', '-t', 100, '--until=n:500',
        '--class=late:{-c 1}', '--class=other:{-c 1}');
    mcload('merge', '-o', "$dir/classes.json", "$dir/a.json", $of_class->{file});
    is(json_of("$dir/classes.json")->{'classes.late.totals.requests'},
        $of_class->{json}{'classes.late.totals.requests'}, 'a class that only the later result has is kept');

    # Latencies of different workloads are not those of one.
    for my $other (['records', 1000, 500], ['value_size', 200, 10], ['update', 0, 0.5],
        ['workload', '"custom"', '"etc"']) {
        my ($key, $is, $was) = @$other;
        my $file = scratch_file("other-$key.json", read_file("$dir/a.json") =~ s/"$key": $is\b/"$key": $was/r);
        $file = scratch_file("other-$key.json", read_file("$dir/a.json") =~ s/"$key": $is/"$key": $was/r)
            if $key eq 'workload';
        $run = mcload('merge', '-o', "$dir/never.json", "$dir/a.json", $file);
        has($run, "merge of another $key: refused, says what differs", status => 2,
            err => "mcload: $file: another workload than that of $dir/a.json: its $key is $was, not $is\n");
        ok(!-e "$dir/never.json", '... and writes nothing');
        has(mcload('compare', "$dir/a.json", $file), '... and compare says it', status => 0,
            out => qr/^Warning: different workloads: $key is $is in a, $was in other-$key$/m);
    }

    # Each file is one run; names of files may have any bytes.
    mcload('-s', $at, '-r', '1000', '--noload', @BRIEFLY, '-q', '500', '-c', '2', @{$_->[1]}, '--json', "$dir/$_->[0].json")
        for ['repeated', ['--repeat=2']], ['scanned', ['--scan=500:600:100']];
    for my $name ('repeated', 'scanned') {
        my $file = "$dir/$name.json";
        has(mcload('merge', '-o', "$dir/never.json", @$_), "merge of $name: refused, by what it is", status => 2,
            err => "mcload: $file: it has several runs (--repeat, --scan), and one of each file is merged: "
                . "make each with a --json of its own\n") for ["$dir/a.json", $file], [$file, "$dir/a.json"], [$file];
        ok(!-e "$dir/never.json", '... and writes nothing');
    }
    my $odd = scratch_file("a\xff\xe9.json", read_file("$dir/a.json"));
    my $wide = scratch_file("a\xc3\xa9.json", read_file("$dir/a.json"));
    for my $order ([$odd, $wide, "$dir/a.json"], ["$dir/a.json", $wide, $odd]) {
        mcload('merge', '-o', "$dir/named.json", @$order);
        my $merged = json_of("$dir/named.json")->{merged} // '';
        is(scalar(() = $merged =~ /"[^"]+"/g), 3, 'merged: a name for each file');
        like($merged, qr{/a\\u00ff\\u00e9\.json"}, '... of one that is not UTF-8 its bytes');
        like($merged, qr{/a\\u00e9\.json"}, '... and of one that is, its characters');
    }

    # ---- compare -----------------------------------------------------------------------

    # Closed loops: every request is answered, so all percentiles are known.
    mcload('-s', $at, '-r', '1000', '--noload', '-t', 100, @{$_->[1]}, '-c', 2, '--interval=0.2s', '--json', "$dir/$_->[0]")
        for ['most.json', ['--until=n:1000']], ['few.json', ['-q', 20, '--until=n:20']];
    has(mcload('compare', "$dir/most.json", "$dir/most.json"), 'compare, a result does not differ from itself',
        status => 0, out => qr/^p50 .*(?:no difference shown|cannot tell: no confidence interval)$/m, out => ['!~', qr/B is (?:lower|higher)|Warning/],
        out => qr/^p99\.9 .*cannot tell/m);
    like(mcload('compare', "$dir/most.json", "$dir/few.json")->{out}, qr/^QPS .*B is lower \(-\d/m, 'another rate');
    like(mcload('compare', "$dir/most.json", "$dir/few.json")->{out}, qr{^Warning: different rates: 0/s in most, 20/s in few$}m, '... which it warns of');
    # An open loop's rate is that of the requests of the window; answers in it to those of the warm-up are beside that.
    my $few = read_file("$dir/few.json");
    my $backlog = scratch_file('backlog.json', $few =~ s/"qps": [\d.]+(?=,\s*"offered":)/"qps": 40/r);
    isnt(read_file($backlog), $few, 'a rate of answers that is another one');
    like(mcload('compare', "$dir/few.json", $backlog)->{out}, qr/^QPS .*no difference shown$/m, '... makes no other rate');
    mcload('-s', $at, '-r', '1000', '--noload', @BRIEFLY, '--scan=1000:2000:1000', '--json', "$dir/scan.json");
    has(mcload('compare', "$dir/scan.json", "$dir/scan.json"), 'a scan is not one load', status => 1, out => '',
        err => qr/^mcload: a scan has several loads, .*mcload plot -k load draws both$/m);
    $run = mcload('compare', "$dir/most.json,$dir/few.json", "$dir/few.json,$dir/most.json");
    has($run, 'groups of runs', out => ['!~', qr/A side has one run/], out => ['!~', qr/B is (?:lower|higher)/]);

    # ---- plot --------------------------------------------------------------------------

    for my $kind (qw(cdf load time)) {
        $run = mcload('plot', "--kind=$kind", '--title', 'a < b', "$dir/most.json");
        has($run, "plot of kind $kind, an SVG, with its title, of finite numbers", status => 0,
            out => qr{^<svg .*>\n.*</svg>\n\z}s, out => qr/a &#60; b/, out => ['!~', qr/nan|inf/]);
    }
    is(mcload('plot', '-o', "$dir/p.svg", "$dir/most.json", "$dir/few.json")->{out}, '', 'a plot to a file');
    is(scalar(() = read_file("$dir/p.svg") =~ /<polyline/g), 2, '... with two curves');

    # Runs of a scan are points of a curve; as curves they are named by their rates.
    mcload('-s', $at, '-r', '1000', '--noload', @BRIEFLY, '-c', '2', '--scan=300:600:300', '--json',
        "$dir/scan.json");
    my $scan = mcload('plot', "$dir/scan.json");
    like($scan->{out}, qr/requests a second/, 'a scan is plotted by load') or diag($scan->{err});
    is($scan->{out}, mcload('plot', '--kind=load', "$dir/scan.json")->{out}, '... as if asked for');
    like(mcload('plot', '--kind=cdf', "$dir/scan.json")->{out}, qr{>scan 300/s[ <].*>scan 600/s[ <]}s,
        '... or its runs by percentile, with their rates');

    $run = mcload('plot', '--kind=bars', '--class=late', '-o', "$dir/bars.svg", "ours=$of_class->{file}",
        "theirs=$of_class->{file}");
    is($run->{status}, 0, 'bars') or diag($run->{err});
    like(read_file("$dir/bars.svg"), qr{>p99 from intended start, us<.*>ours<.*>theirs<}s, '... with their names');
    $run = mcload('plot', '--kind=bars', '--class=none', '-o', "$dir/none.svg", $of_class->{file});
    is($run->{err}, "mcload: $of_class->{file}: it has no such class\n", 'a class that is not there');
    ok(!-e "$dir/none.svg", '... leaves no file');

    # ---- what is no result ---------------------------------------------------------------

    my $whole = read_file("$dir/a.json");
    my %bad = (
        empty => '',
        text => 'hello',
        half => substr($whole, 0, length($whole) / 2),
        array => '[1,2]',
        schema => '{"schema": "mcload/99"}',
        bare => '{"schema": "mcload/1"}',
        deep => '[' x 100000,
        bucket => $whole =~ s/"buckets": \[\[\d+/"buckets": [[-5/r,
        count => $whole =~ s/"count": \d+/"count": 1/r,
        bits => $whole =~ s/"sub_bits": 10/"sub_bits": 40/gr,
        twice => $whole =~ s/"tool":/"schema": "x", "tool":/r,
    );
    for my $name (sort keys %bad) {
        my $file = scratch_file("bad-$name.json", $bad{$name});
        for my $tool (['merge', "$dir/b.json"], ['compare', "$dir/a.json"], ['plot']) {
            $run = mcload(@$tool, $file);
            is($run->{status}, 2, "$tool->[0] of $name: refused");
            like($run->{err}, qr/^mcload: [^\n]*\Q$file\E[^\n]*\n\z/, '... with one line');
        }
    }
    has(mcload(@$_), "@$_: usage, one line", status => 1, err_lines => 1) for ['plot'], ['plot', '--kind=pie',
        'x'], ['compare', "$dir/a.json"], ['merge'], ['merge', '--nonsense'];
    is(mcload('merge', '-o', "$dir/no/such", "$dir/a.json")->{status}, 2, 'a file that cannot be written');
    is(mcload('plot', "$dir/nosuch.json")->{status}, 2, 'a file that is not there');
}

# ---- where results go --------------------------------------------------------------------

{
    my @short = ('-s', $at, '-r', '100', @BRIEFLY);
    local $MCLoad::is_brief = 1;
    $run = mcload(@short, '--json=-');
    like($run->{out}, qr/\A\{\n "schema": .*\}\n\z/s, '--json=- is the standard output, and nothing else');
    $run = mcload(@short, '--json=-', '--output', "$dir/report");
    like($run->{out}, qr/\A\{\n "schema": .*\}\n\z/s, '... with the report in a file');
    like(read_file("$dir/report"), qr/\A(?:IN)?VALID.*^Errors = 0\nUntil [^\n]*\n\z/ms, '... which is there');
    $run = mcload(@short, '--json=-', '--format=csv');
    has($run, '... not with another report there', status => 1, err => qr/\Amcload: [^\n]*--output=FILE\n\z/);

    $run = mcload(@short, '--plot', "$dir/a/new/folder");
    ok(-s "$dir/a/new/folder/$_.svg", "a folder that is missing is made: $_.svg") for qw(cdf time);
    $run = mcload(@short, '--plot', "$dir/report/folder");
    is($run->{status}, 1, '... where it can be');
    like($run->{err}, qr{\Amcload: cannot write \Q$dir\E/report[^\n]*: Not a directory\n\z}, '... and else says so');

    # No server, no result: no file, and none that was there is emptied.
    my @files = map { ("--$_", "$dir/none.$_") } qw(json output save hlog hgrm);
    scratch_file('none.json', 'as it was');
    $run = mcload('-s', '127.0.0.1:1', '-t', '0.1', @files, '--plot', "$dir/none.plot");
    is($run->{status}, 2, 'a run that fails') or diag($run->{err});
    ok(!-e "$dir/none.$_", "... leaves no $_") for qw(output save hlog hgrm.hgrm plot/cdf.svg);
    is(read_file("$dir/none.json"), 'as it was', '... nor changes what was there');
    $run = mcload(@short, '--json', "$dir/none.json");
    like(read_file("$dir/none.json"), qr/\A\{.*\}\n\z/s, 'a run that does not replaces it');

    # Files may not grow beyond a few blocks.
    my $limited = run_program({command => ['sh', '-c', 'trap "" XFSZ; ulimit -f 1; exec "$@"', 'sh',
            $MCLOAD, @short, '--json', "$dir/full.json"], timeout => 120});
    is($limited->{status}, 2, 'a result that cannot be written');
    like($limited->{err}, qr/^mcload: cannot write \Q$dir\E\/full.json: File too large$/m, '... says so');
    ok(!-e "$dir/full.json", '... and leaves no part of it');
}

done_testing();
