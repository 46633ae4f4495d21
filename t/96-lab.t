#!/usr/bin/env perl
# scripts/lab: verdicts of made-up results, what is measured again and what is not, wrong usage.
use File::Basename qw(dirname);
use File::Path qw(make_path);
use JSON::PP;
use MCTest;

my $lab = "$TOP/scripts/lab";
my $folders = 0;

sub lab(@args) { return run_program({command => ['python3', $lab, @args]}) }

sub written($path, $data) { return write_file($path, encode_json($data)) }

# A folder with results: POINT => values, or [values, fault], of a group.
sub results($group, %points) {
    my $folder = scratch_dir() . '/results-' . ++$folders;
    while (my ($point, $stored) = each %points) {
        my ($values, @faults) = ref $stored eq 'ARRAY' ? @$stored : $stored;
        make_path("$folder/$group/$point");
        written("$folder/$group/$point/1.1.json", {values => $values, faults => \@faults, machine => 'made up',
                kernel => '1.0', commit => 'abc', options => {seconds => 1}});
    }
    return $folder;
}

# [group, row, {POINT => values or [values, faults]}] each: what the row's criterion says of them, on a machine of
# three CPUs.
sub judged(@cases) {
    my $file = scratch_file('cases.json', encode_json(\@cases));
    my $run = run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench", $file]});
import json, sys
sys.path.insert(0, sys.argv[1])
from lab import common, machine, rows
from qos.runner import Run
groups, here, said = common.groups(), machine.Machine(cpus=range(3)), []
for group, label, points in json.load(open(sys.argv[2])):
    runs = {name: [Run(*([one[0], one[1:]] if isinstance(one, list) else [one]))] for name, one in points.items()}
    row = next(row for row in groups[group].ROWS if row.label == label)
    said.append(vars(rows.judge(row, rows.Points(runs, here))))
    if row.plots and "reproduced" in said[-1]["verdict"]:
        list(row.plots(rows.Points(runs, here)))
print(json.dumps(said))
END
    is($run->{status}, 0, scalar(@cases) . ' judged') or diag($run->{err});
    return @{decode_json($run->{out} || '[]')};
}

# What scripts/latency-breakdown says, in a run.
sub traced($status, $out, $err) {
    my $run = run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench", $status, $out, $err]});
import json, subprocess, sys
sys.path.insert(0, sys.argv[1])
from lab.groups import breakdown
from qos.runner import Run
run = breakdown.with_traced(Run({}), subprocess.CompletedProcess([], int(sys.argv[2]), *sys.argv[3:]))
print(json.dumps([run.values["loop_traced"] == float("inf") or run.values["loop_traced"], run.faults]))
END
    is($run->{status}, 0, "traced: $status") or diag($run->{err});
    return decode_json($run->{out});
}

# Of a row that uses both points, with these runs.
sub of_points($first, $second, $what) {
    my $run = run_program({command => ['python3', '-B', '-c', "import sys\nsys.path.insert(0, sys.argv[1])\n"
                . "from lab.rows import Points\nfrom qos.runner import Run\npoints = Points({'a': $first, 'b': $second}, None)\n"
                . "ratio = points.ratio('a', 'b', 'rate')\nprint($what)", "$TOP/scripts/bench"]});
    is($run->{status}, 0, "$what of $first, $second") or diag($run->{err});
    return 0 + $run->{out};
}

# ---- each criterion, with results that fulfil it, and with others --------------------------

sub thread($rate, $qos, $p99, $system) { return {rate => $rate, qos => $qos, p50 => 50, p99 => $p99, system => $system} }
my %threads = (
    'ours-1' => thread(100, 90, 300, 0.5), 'ours-2' => thread(170, 150, 400, 0.6),
    'ours-3' => thread(170, 160, 200, 0.65), 'ours-4' => thread(165, 80, 500, 0.7),
    'theirs-1' => thread(80, 70, 300, 0.5), 'theirs-2' => thread(120, 70, 300, 0.5),
    'ours-2-timeshared' => thread(95, 30, 900, 0.6), 'ours-1-with-client' => {rate => 100},
);
my %processes = ('1x1' => thread(100, 90, 1, 0), '2x1' => thread(165, 140, 1, 0), '3x1' => thread(160, 60, 1, 0),
    '1x2' => thread(170, 150, 1, 0));
my %requests = (
    'depth-1' => {rate => 1e5}, 'depth-32' => {rate => 1e6},
    (map { ("keys-$_" => {keys => 1e5 * ($_ < 16 ? $_ : 16)}) } 1, 2, 4, 8, 16, 32, 64),
    (map { ("tcp-at-once-$_" => {rate => 1e5}, "udp-at-once-$_" => {rate => 1e5 * (1 + $_ / 10)}) } 1, 2, 4, 8, 16),
    (map { ("bytes-$_" => {rate => 1e6 / $_, bytes => 1e6 + $_}) } 64, 256, 1024, 65536),
    (map { ("items-$_" => {rate => 1e5}) } 10000, 1000000),
);
my %connections = map {
    my ($server, $part) = @$_;
    map { ("$server-$_" => {rate => $part * ($_ < 16 ? $_ : 16), p99 => 50 * $_}) } 1, 4, 16, 64, 256
} ['ours', 3], ['theirs', 2], ['redis', 2], ['nginx', 1];
sub stage($delay, $rest) { return {delay => $delay, read => $rest, execute => $rest, write => $rest,
        total => $delay + 3 * $rest, queue => $delay / ($delay + 3 * $rest), rate => 1e5} }
my %breakdown = (unloaded => stage(10, 3), asleep => stage(10, 3), switching => stage(10, 3), loaded => stage(500, 3), 'loaded-l3' => stage(800, 4),
    'load-10' => stage(10, 3), 'load-90' => stage(200, 3),
    traced => {map { ("${_}_traced" => 10, "${_}_own" => 12) } qw(kernel loop read execute write)});
sub tail($p95) { return {p95 => $p95, p50 => 50} }
my %balance = (peak => {rate => 1e5}, map {
    ("pinned-$_" => tail($_), "unpinned-$_" => tail($_ * 1.2), "more-$_" => tail($_ < 50 ? $_ * 1.2 : $_ * 20))
} 20, 30, 60, 90);
my %wave = (peak => {rate => 100}, (map { ("$_-wave-peak" => {rate => 87}) } qw(default slice fifo)), map {
    ("default-alone-$_" => tail(100), "default-wave-$_" => {%{tail(900)}, p99 => 2000}, "slice-wave-$_" => tail(150), "fifo-wave-$_" => tail(100))
} 10, 40, 80);
sub qos($rate) { return {qos => $rate, rate => 100, capped => 0} }
my %antagonists = (alone => qos(100), cpu => qos(50), 'cpu-nice' => qos(90), 'cpu-fifo' => qos(98), 'l3-sm' => qos(90),
    'l3-lg' => qos(60), 'network-lg' => qos(97), mem => qos(90), intr => qos(50), mmap => qos(95),
    'plain-30' => tail(100), 'walker-30' => tail(110));
sub batch($p95, $batch) { return {p95 => $p95, batch => $batch} }
my %colocation = (
    alone => {qos => 1000, goal => 1000, rate => 1900, capped => 0}, 'beside-fifo' => {qos => 700},
    (map { ("mix-fifo-$_-4" => batch(200, 0.3), "mix-default-$_-4" => batch(9000, 0.4), "mix-default-$_-1" => batch(300, 0.4)) } 25, 50, 75),
    (map { ("none-$_" => tail(100), "six-default-$_" => tail(5000), "six-nice-$_" => tail(1000), "six-slice-$_" => tail(130), "six-fifo-$_" => tail(120)) } 50),
    (map { my ($job, $us) = @$_; map { ("job-$job-$_" => batch($us + $_, 0.9 - 0.9 * $_ / 100)) } 10, 90 } ['spin', 100], ['triad-4-l3', 110]),
);
my %services = (peak => {rate => 1e5}, 'ours-alone' => tail(100), 'service-alone' => {service_p95 => 2000}, map {
    my $loads = $_;
    ("default-$loads" => {p95 => 9000, service_p95 => 2000}, map { ("$_-$loads" => {p95 => 200, service_p95 => 3000}) } qw(slice fifo))
} '10-10', '10-50', '50-10', '50-50');
$services{'fifo-50-50'} = {p95 => 200, service_p95 => 30000};
my %datagrams = ('udp-peak' => {rate => 50}, 'tcp-peak' => {rate => 100}, 'udp-60' => tail(80), 'tcp-60' => tail(100));
my %primary = (peak => {rate => 1e5}, (map { ("class-$_->[0]" => {kept => $_->[1]}) } ['spin', 1], ['walk-half-l3', 0.5], ['triad-4-l3', 0.8]),
    map { my $job = $_; map { ("$job->[0]-$_" => batch(100, 1 - $_ * $job->[1])) } 10, 60 } ['spin', 0.0001], ['triad-4-l3', 0.001]);
my %receive = (map { ("server-$_" => {rate => 100, bytes => 1}, "other-$_" => {rate => 150, bytes => 1}, "both-$_" => {rate => 120, bytes => 1}) } 1, 16);
%receive = (%receive, 'neighbour-server' => {lost => 0.1}, 'neighbour-other' => {lost => 0.3});
my $cpus = () = allowed_cpus();
my @rows = (
    ['E 3.2.2', 'kernel', {ours => {system => 0.8, softirq => 0.3}}, ours => {system => 0.6, softirq => 0.3}],
    ['D Table 1', 'threads', \%threads, 'ours-2-timeshared' => thread(30, 95, 0, 0)],
    ['SF Fig 2, 3', 'threads', \%threads, 'theirs-2' => thread(200, 70, 300, 0.5)],
    ['D Fig 2, SF Fig 5', 'processes', \%processes, '2x1' => thread(120, 140, 1, 0)],
    ['D 2.4, E 2.4', 'requests', \%requests, 'depth-32' => {rate => 1.5e5}],
    ['SF Fig 12', 'requests', \%requests, 'keys-16' => {keys => 1.1e5}],
    ['SF Fig 13', 'requests', \%requests, 'udp-at-once-4' => {rate => 1.2e5}],
    ['004 sizes', 'requests', \%requests, 'items-1000000' => {rate => 4e4}],
    ['003 Fig 2', 'connections', \%connections, 'ours-256' => {rate => 100, p99 => 100}],
    ['004 servers', 'connections', \%connections, 'nginx-16' => {rate => 50, p99 => 1}],
    ['D Table 2, E Table 1', 'breakdown', \%breakdown, 'unloaded' => stage(10, 0.5)],
    ['004 decomposition', 'breakdown', \%breakdown, 'load-90' => stage(10, 3)],
    ['E Table 1, traced', 'breakdown', \%breakdown, traced => {%{$breakdown{traced}}, kernel_traced => 16}],
    ['E Fig 3', 'balance', \%balance, 'more-60' => tail(61)],
    ['E Fig 8, 003 Fig 6', 'balance', \%balance, 'pinned-90' => tail(1500)],
    ['E Fig 5', 'wave', \%wave, 'slice-wave-40' => tail(900)],
    ['D Table 3', 'antagonists', \%antagonists, 'cpu-fifo' => qos(80)],
    ['D Table 4', 'antagonists', \%antagonists, 'network-lg' => qos(80)],
    ['E Fig 2', 'antagonists', \%antagonists, 'walker-30' => tail(200)],
    # The peak falls by more than the rate within the goal.
    ['E Fig 2', 'antagonists', \%antagonists, 'l3-lg' => {%{qos(60)}, rate => 50}],
    ['D Fig 5, 6', 'colocation', \%colocation, 'mix-fifo-75-4' => batch(900, 0.3)],
    # With half of the load the default keeps the goal, whatever the number of jobs.
    ['D Fig 5, 6', 'colocation', \%colocation, 'mix-default-50-4' => batch(400, 0.4)],
    ['D Fig 5, 6', 'colocation', \%colocation, 'mix-fifo-75-4' => batch(200, 0.08)],
    ['D Fig 5, 6', 'colocation', \%colocation, 'mix-fifo-25-4' => batch(200, 0.7)],
    ['E Fig 4', 'colocation', \%colocation, 'six-fifo-50' => tail(400), 'six-slice-50' => tail(400)],
    ['E Table 2', 'colocation', \%colocation, 'job-spin-10' => batch(110, 0.001)],
    ['E Table 2', 'colocation', \%colocation, 'job-spin-90' => batch(300, 0.09)],
    ['E Table 2', 'colocation', \%colocation, 'job-spin-90' => batch(190, 0.9)],
    ['E 4.1', 'colocation', \%colocation, 'beside-fifo' => {qos => 100}],
    # The client was the limit: the server can do 1,900 at most.
    ['E 4.1', 'colocation', {%colocation, 'beside-fifo' => {qos => 960}, alone => {qos => 1000, rate => 1900, capped => 1}},
        alone => {qos => 1000, rate => 2000, capped => 1}],
    ['E Fig 6, 9', 'services', \%services, map { ("slice-$_" => {p95 => 200, service_p95 => 30000}) } qw(50-10 10-50)],
    # The default keeps both services at 20 % in all, and fails at 60: too late.
    ['E Fig 6, 9', 'services', \%services, 'default-10-10' => {p95 => 200, service_p95 => 2000}],
    ['E Fig 6, 9', 'services', \%services, 'fifo-10-10' => {p95 => 900, service_p95 => 2000}],
    ['E Fig 6, 9', 'services', \%services, 'fifo-50-50' => {p95 => 200, service_p95 => 2000}],
    ['E 3.2.4', 'datagrams', \%datagrams, 'udp-60' => tail(120)],
    ['D Table 6, E Table 3', 'primary', \%primary, 'spin-60' => batch(100, 0.5)],
    ['D Table 5', 'primary', \%primary, 'class-spin' => {kept => 0.7}],
    ['SF Fig 9', 'receive', \%receive, 'other-16' => {rate => 110, bytes => 1}],
    ['SF Fig 6, 8', 'receive', \%receive, 'both-16' => {rate => 90, bytes => 1}],
    ['D 2.4 RSS', 'receive', \%receive, 'neighbour-other' => {lost => 0.15}],
    ['D Fig 1', 'threads', \%threads, 'ours-2' => thread(150, 150, 200, 0.6)],
    ['003 Fig 3-5', 'threads', \%threads, 'ours-4' => thread(165, 80, 500, 0.4)],
);
my $one_cpu = $cpus < 2;
my @cases;
for (@rows) {
    my ($row, $group, $points, $point, @changed) = @$_;
    push @cases, [$group, $row, $points], [$group, $row, {%$points, $point, @changed}],
        [$group, $row, {%$points, $point => [$points->{$point}, 'others used 40%', 'steal 3%']}], [$group, $row, {}];
}
my @said = judged(@cases);
for (@rows) {
    my ($good, $bad, $refused, $missing) = splice @said, 0, 4;
    SKIP: {
        skip "$_->[0]: @{$good->{reasons}}", 1 if $good->{verdict} eq 'not applicable';
        is($good->{verdict}, 'reproduced', "$_->[0]: reproduced") or diag("@{$good->{reasons}}");
        like("$bad->{verdict}: $bad->{reasons}[0]", qr/^not reproduced: not: /, '... not reproduced, with the claim');
        is("$refused->{verdict}: @{$refused->{reasons}}", 'INVALID: others used 40% steal 3%', '... invalid, with the faults');
        is($missing->{verdict}, 'not run', '... not run');
    }
}

# Interrupted before any one of its points, or behind the first, a group has been run in part: that is no error.
my @partial;
for (@rows) {
    my ($row, $group, $points) = @$_;
    for my $point (sort keys %$points) {
        push @partial, [$group, $row, {map { ($_ => $points->{$_}) } grep { $_ ne $point } keys %$points}];
        push @partial, [$group, $row, {$point => $points->{$point}}];
    }
}
is(scalar(grep { $_->{verdict} !~ /^(?:not run|not applicable|(?:not )?reproduced)$/ } judged(@partial)), 0, '... no verdict is an error');

# {POINT => [values of each round]}: the same, and what explains it.
sub judged_rounds($group, $row, %points) {
    my $file = scratch_file('rounds.json', encode_json(\%points));
    my $run = run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench", $file, $group, $row]});
import json, sys
sys.path.insert(0, sys.argv[1])
from lab import common, machine, rows
from qos.runner import Run
runs = {name: [Run(one, [], turn) for turn, one in enumerate(of, 1)] for name, of in json.load(open(sys.argv[2])).items()}
row = next(row for row in common.groups()[sys.argv[3]].ROWS if row.label == sys.argv[4])
points = rows.Points(runs, machine.Machine(cpus=range(3)))
said = vars(rows.judge(row, points))
print(json.dumps({**said, "why": row.why(points) if callable(row.why) and said["verdict"] == rows.NOT_REPRODUCED else row.why if not callable(row.why) else ""}))
END
    is($run->{status}, 0, "$row of several rounds") or diag($run->{err});
    return decode_json($run->{out} || '{}');
}

# The points, with that value in three rounds; of some other ones in each.
sub rounds($value, $points, %other) {
    return map { my $name = $_; ($name => [map { {%{$points->{$name}}, $value => $_} } @{$other{$name} // [($points->{$name}{$value} // 1) x 3]}]) } keys %$points;
}

# The machine is slower in one round than in another: what is compared is of one round. Medians of each point would show the
# reverse.
{
    my $reasons = sub ($group, $row, @points) { join ' ', @{judged_rounds($group, $row, @points)->{reasons}} };
    my $said = judged_rounds('threads', 'D Fig 1', rounds('rate', \%threads, 'ours-2' => [170, 140, 170], 'ours-3' => [200, 120, 160],
        'ours-4' => [150, 110, 200]));
    is("@{$said->{reasons}}", 'not: the peak stays at 85% of the best beyond the CPUs', 'a flat peak: of each round');
    like($said->{headline}, qr/peak 79% of the best/, '... the median of which is told');
    is($reasons->('requests', '004 sizes', rounds('rate', \%requests, 'items-10000' => [100, 400, 300], 'items-1000000' => [40, 160, 300])),
        'not: many items cost less than half', 'items: of each round');
    is($reasons->('requests', 'SF Fig 12', rounds('keys', \%requests, 'keys-1' => [1e5, 4e5, 9e5], 'keys-16' => [1.2e5, 16e5, 10e5],
        'keys-64' => [17e5, 17e5, 17e5])), 'not: 16 keys bring 1.25x the keys of single gets', 'keys: of each round');
    is($reasons->('connections', '003 Fig 2', rounds('p99', \%connections, 'ours-16' => [100, 200, 900], 'ours-256' => [140, 800, 1000])),
        'not: p99 grows 1.5x after it', 'connections: of each round');
    is($reasons->('receive', 'D 2.4 RSS', rounds('lost', \%receive, 'neighbour-server' => [0.1, 0.2, 0.4], 'neighbour-other' => [0.15, 0.5, 0.6])),
        'not: it loses 2x without affinity', 'affinity: of each round');
    is(join(', ', map { judged_rounds('receive', 'D 2.4 RSS', rounds('lost', \%receive, 'neighbour-server' => [0], 'neighbour-other' => [$_]))->{verdict} } 0.42, 0),
        'reproduced, not reproduced', '... a job that loses nothing with it, but without it; one that never does');

    # What explains a row has the numbers of the rounds.
    my @taken = ([0.1, 0.0003], [0.25, 0.0004]);
    my %seen = map { my $name = $_; ($name => [map { {%{$threads{$name}}, p95 => 510, rate => 100, qos => 50, preempted => $_->[$name eq 'ours-1']} } @taken]) } keys %threads;
    like(judged_rounds('threads', 'D Fig 1', %seen)->{why}, qr/one in 4\.0 to 10\.0 requests takes its CPU .* one in 2,500 to 3,333\./,
        'an explanation has numbers of the rounds');
    like(judged_rounds('threads', 'D Table 1', %seen)->{why}, qr/with one thread it was 0\.51 to 0\.51 in all/, '... of latencies, too');
}

is((judged(['threads', 'D Fig 1', {map { ($_ => $threads{$_}) } grep { $_ ne 'ours-4' } keys %threads}]))[0]{verdict}, 'not run',
    'three threads on three CPUs say nothing of more threads than CPUs');

# A client that was short of CPU makes latencies longer: one that is low enough is so all the more. Of no other fault, nor
# of what was not all served, can that be said.
sub short_of_cpu($p95, $served, @faults) { return [{%{batch($p95, 0.1)}, served => $served}, 'client CPU 92%', @faults] }
my @short = judged(map { ['colocation', 'D Fig 5, 6', {%colocation, %$_}] }
        {'mix-fifo-100-4' => short_of_cpu(300, 1, 'sent 70 us late')}, {'mix-fifo-100-4' => short_of_cpu(300, 0.9)},
        {'mix-fifo-100-4' => short_of_cpu(300, 1, 'steal 3%')}, {'mix-default-75-4' => short_of_cpu(9000, 1)});
is(join(', ', map { $_->{verdict} } @short), 'reproduced, INVALID, INVALID, INVALID', 'a client short of CPU: no more than an upper bound');

# A plot has the runs that the row uses.
sub plotted($more) {
    my $run = run_program({command => ['python3', '-B', '-c', "import sys\nsys.path.insert(0, sys.argv[1])\nfrom lab import rows\n"
                . "from qos.runner import Run\nruns = [Run({'p95': 300, 'served': 1}, ['client CPU 92%']), Run({'p95': 900}, ['steal'])]\n"
                . "print(rows.Points({'a-1': runs}, None).curve('a-{}', [1], 'p95'$more))", "$TOP/scripts/bench"]});
    return $run->{out} || $run->{err};
}
is(plotted(''), "[(1, 600.0, False)]\n", 'a plot of invalid runs is marked');
is(plotted(', is_good=rows.is_bound'), "[(1, 300, True)]\n", '... of usable ones not, where a bound is enough');
{
    # A search that found no rate is no base.
    my %found = (qos => 1000, goal => 1000, rate => 1900, capped => 0);
    my %rounds = (alone => [\%found, {%found, qos => 0}], 'beside-fifo' => [{qos => 700}, {qos => 400}]);
    my $said = judged_rounds('colocation', 'E 4.1', %rounds);
    is("$said->{verdict} $said->{rounds}: $said->{headline}", 'reproduced 1: 70% of the rate alone within 500 us: 1,429 servers with batch work for each 1,000 without',
        'a round whose search found no rate does not count');
    $said = judged_rounds('colocation', 'E 4.1', map { ($_ => [$rounds{$_}[1]]) } keys %rounds);
    is("$said->{verdict}: @{$said->{reasons}}", 'INVALID: no rate was within the goal', '... alone it is invalid');
    $said = judged_rounds('colocation', 'D Fig 5, 6', alone => $rounds{alone}, map { ($_ => [$colocation{$_}, {p95 => 1, batch => 1}]) } grep { /^mix/ } keys %colocation);
    is("$said->{verdict} $said->{rounds}", 'reproduced 1', '... nor do loads that are parts of its rate');
}

is_deeply(traced(0, "stage\nloop     0.5 /  0.3   1.0 /  0.7\n", ''), [0.5, []], '... with what was traced');
is_deeply(traced(1, '', "no map\nnothing was traced\n"), [JSON::PP::true, ['nothing was traced']], '... a tracer that fails makes the run invalid');

# The server's core has the threads that may be used; a node without CPUs is memory alone.
{
    my $sys = scratch_dir() . '/sys';
    my %files = (map({ ("cpu/cpu$_/topology/thread_siblings_list" => $_ < 4 ? '0-3' : '4-7') } 0 .. 7),
        'node/node0/cpulist' => '0-7', 'node/node1/cpulist' => '');
    for my $path (sort keys %files) {
        make_path("$sys/devices/system/" . dirname($path));
        write_file("$sys/devices/system/$path", "$files{$path}\n");
    }
    my $run = run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench", $sys]});
import sys
sys.path.insert(0, sys.argv[1])
import side_by_side as side
from lab import machine
for cpus, server in ((range(8), 0), ((0, 4, 5), 0), ((0, 4, 5), 4)):
    side.SERVER_CPU = server
    here = machine.Machine(sys.argv[2], cpus=cpus)
    print(*here.core, here.lacks(["smt"]) == [], here.nodes)
END
    is($run->{out}, "0 1 2 3 True 1\n0 False 1\n4 5 True 1\n", 'threads of a core, and nodes') or diag($run->{err});
}

# When the machine is to be the limit, that are the CPUs that the threads of servers and client can use.
is(run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench"]})->{out}, "True False True True False\n", 'all CPUs, as far as they can be used');
import sys
sys.path.insert(0, sys.argv[1])
from lab import work
print(work.uses_all(1.05, 0.87, 2, 2), work.uses_all(1.0, 0.8, 2, 2), work.uses_all(1.98, 0.9, 2, 8), work.uses_all(1.95, 0.3, 2, 8),
      work.uses_all(1.8, 0.5, 2, 8))
END

# Numbers without end, and what is none, are stored and come back as they were; a none fulfils no claim, and is no round's.
{
    my $run = run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench", scratch_dir() . '/numbers']});
import json, sys
sys.path.insert(0, sys.argv[1])
from lab import rows, store
from qos.runner import Run
kept = store.Store(sys.argv[2], {"machine": "m", "kernel": "k", "commit": "c", "options": {"seconds": 1}})
kept.put("kernel", "ours", 1, Run({"a": float("inf"), "b": float("nan"), "c": 1.23456789}), 1)
kept.pack(sys.argv[2] + ".jsonl", ["kernel"])
print(json.load(open(sys.argv[2] + "/kernel/ours/1.1.json"), parse_constant=None)["values"])
for place in sys.argv[2], sys.argv[2] + ".jsonl":
    (*_, one), = store.Store(place).read("kernel")
    print(one["values"])
# A pack has less digits than what it was made of, and belongs to it all the same.
for one in store.unpacked(sys.argv[2] + ".jsonl"):
    kept.write(one)
print(rows.median([float("nan"), 3, 5]), rows.median([float("nan")]))
END
    is($run->{out}, <<'END', 'numbers that JSON has not') or diag($run->{err});
{'a': None, 'b': 'NaN', 'c': 1.23456789}
{'a': inf, 'b': nan, 'c': 1.23456789}
{'a': inf, 'b': nan, 'c': 1.23457}
4.0 nan
END
}

# Of two rounds of each point, one with a point that is invalid.
is(of_points('[Run({"rate": 1}, []), Run({"rate": 1}, [])]', '[Run({"rate": 1}, []), Run({"rate": 1}, ["steal"])]', 'points.rounds'), 1,
    'the rounds of a row are the valid ones of the point that has the fewest');
is(of_points('[Run({"rate": 1}, ["steal"])]', '[Run({"rate": 1}, [])]', 'points.rounds'), 0, '... none');
is(of_points('[Run({"rate": 12}, [], 1), Run({"rate": 30}, [], 2), Run({"rate": 80}, [], 3)]',
        '[Run({"rate": 10}, [], 2), Run({"rate": 80}, ["steal"], 3), Run({"rate": 6}, [], 1)]', 'ratio'), 2.5,
    'a ratio is that of runs of the same round');
is(of_points('[Run({"rate": 12}, [], 1)]', '[Run({"rate": 4}, [], 2)]', 'ratio'), 3, '... where there is one');

# ---- documents ----------------------------------------------------------------------------

my $folder = results('threads', %threads);
written("$folder/threads/ours-1/2.1.json", {values => thread(150, 90, 300, 0.5), faults => [], machine => 'made up', kernel => '1.0',
        commit => 'abc', options => {seconds => 1}});
my ($page, $table) = map { scratch_dir() . "/lab.$_" } qw(html md);
my $run = lab('report', '--results', $folder, '--html', $page, '--markdown', $table);
is($run->{status}, 0, 'documents are written') or diag($run->{err});
like(read_file($table), qr/^\| +\[D Fig 1\]\(plots\/lab-d-fig-1\.svg\).*flat at 8.*\| +1 \| +\S+/m, 'a row, with its plot and rounds');
like(read_file($table), qr/made up \(1\.0\), runs of 1 s, abc\. The rate of a point differed by up to 50% from/, '... and where it is from');
my $svgs = () = read_file($page) =~ /<svg /g;
ok($svgs >= 2, 'plots are in the page');
unlike(read_file($page), qr/src=|href=/, '... which is one file');
ok(-s scratch_dir() . '/plots/lab-d-fig-1.svg', '... and beside the table');
my ($packed, $again) = map { scratch_dir() . "/$_" } qw(host.jsonl again.md);
is(lab('report', '--results', $folder, '--pack', $packed)->{status}, 0, 'all results into one file');
is(scalar(() = read_file($packed) =~ /"machine"/g), 1, '... where what they share stands once');
lab('report', '--results', $packed, '--markdown', $again);
is(read_file($again), read_file($table), '... which is reported as the folder is');
like(lab('report', '--results', $table)->{err}, qr/\Q$table\E is no file of scripts\/lab report --pack/, '... and no other file');
like(lab('run', '--results', $packed)->{err}, qr/\Q$packed\E is a file: give a folder$/m, '... nor is it measured into') if !$one_cpu;
my $differing = results('kernel', ours => {system => 0.8, softirq => 0.3});
written("$differing/kernel/ours/2.1.json", {values => {system => 0.5, softirq => 0.3}, faults => [], machine => 'made up', kernel => '1.0',
        commit => 'abc', options => {seconds => 1}});
lab('report', '--results', $differing, '--markdown', $again);
like(read_file($again), qr/^\| E 3\.2\.2 .*\| +2 +\| not reproduced; by round 1 alone reproduced +\|$/m,
    'a round that shows something else is told');
{
    my $said = run_program({command => ['python3', '-B', '-c', <<'END', "$TOP/scripts/bench"]});
import sys
sys.path.insert(0, sys.argv[1])
from lab import machine, work
class Some(work.Lab):
    def __init__(self): self.machine = machine.Machine(cpus=[0, 1])
points = {("a", "plain"): ("cpus",), **{("a", f"client-{n}"): ("client",) for n in range(3)}, **{("b", n): ("client",) for n in range(6)}}
Some().say_lacking(points)
END
    is($said->{err}, "not measured, needs a third CPU, for the client alone: a, client-0, client-1, client-2; b, 6 points\n",
        'what is not measured is told, by what is missing');
}
like(lab('list', 'kernel')->{out}, qr/^  E 3\.2\.2: time in the kernel/m, 'list');

# ---- the version that results are of ------------------------------------------------------

SKIP: {
    skip 'no git here', 4 if system('command -v git >/dev/null') != 0;
    my $tree = scratch_dir() . '/tree';
    make_path("$tree/doc");
    my $git = sub (@words) {
        run_program({command => ['git', '-C', $tree, '-c', 'user.name=t', '-c', 'user.email=t@t', @words]})->{status} == 0 or die "@words";
    };
    my $version = sub () {
        return run_program({command => ['python3', '-B', '-c', "import sys\nsys.path.insert(0, sys.argv[1])\n"
                    . "from lab import store\nprint(store.commit(sys.argv[2]), end='')", "$TOP/scripts/bench", $tree]})->{out};
    };
    is($version->(), 'tree', 'the version of a folder without history is its name') if system("git -C $tree rev-parse 2>/dev/null") != 0;
    $git->('init', '-q');
    write_file("$tree/$_", 'a') for 'code', 'doc/page';
    $git->('add', '.');
    $git->('commit', '-q', '-m', 'one');
    write_file("$tree/doc/page", 'b');
    like($version->(), qr/^[0-9a-f]{7,}$/, '... and that of a commit, whatever the documents and results');
    write_file("$tree/code", 'b');
    like($version->(), qr/^[0-9a-f]{7,}-dirty$/, '... which other changes are');
}

# ---- what is measured ---------------------------------------------------------------------

SKIP: {
    skip 'needs two CPUs', 1 if $one_cpu;
    my @options = ('--quick', '--build', $ENV{TOP_BUILDDIR}, '--results');
    my $first = results('kernel', ours => [{rate => 1, system => 1, softirq => 0}, 'others used 99%']);
    my @files = ("$first/kernel/ours/1.1.json", "$first/kernel/ours/1.2.json");
    my $before = read_file($files[0]);
    $run = lab('run', 'kernel', '--point', 'ours', @options, $first);
    is($run->{status}, 0, 'what was invalid is measured again') or diag($run->{err});
    ok(-e $files[1], '... into another file') or diag($run->{out}, $run->{err});
    my $again = decode_json(read_file($files[1]));
    cmp_ok($again->{values}{rate} // -1, '>=', 0, '... with its result'); # 0: it had no CPU in that second
    is(join(' ', grep { !exists $again->{$_} } qw(machine kernel commit options caches faults took_seconds)), '',
        '... with all about it');
    is(read_file($files[0]), $before, '... the first stays as it was');
    written($files[1], {%$again, faults => []});
    $run = lab('run', 'kernel', '--point', 'ours', @options, $first);
    like($run->{err}, qr/^everything is measured$/m, 'what is valid is not');
    like($run->{err}, qr/^scripts\/lab report --quick --results \Q$first\E says what it shows$/m, '... and what comes next is told');
    ok(!-e "$first/kernel/ours/1.3.json", '... nothing is added');

    # The rounds of another time count, where they are of this machine.
    my ($others, $more) = map { scratch_dir() . "/$_" } qw(others.jsonl more);
    my $other = results('kernel', ours => {});
    written("$other/kernel/ours/1.1.json", {%$again, faults => ['client CPU 92%'], kernel => "$again->{kernel}-2"});
    lab('report', '--results', $other, '--pack', $others);
    $run = lab('run', 'kernel', '--point', 'ours', '--rounds', 2, '--add-to', $others, @options, $more);
    is($run->{status}, 0, 'rounds are added to packed results') or diag($run->{err});
    is(decode_json(read_file("$more/kernel/ours/1.1.json"))->{values}{rate}, 0 + sprintf('%.6g', $again->{values}{rate}), '... which are kept');
    ok(-e "$more/kernel/ours/2.1.json", '... one more is measured');
    ok(!-e "$more/kernel/ours/1.2.json", '... and none again, though it is invalid: its rates are of that day');
    $run = lab('run', 'kernel', '--add-to', $others, @options, $first);
    like($run->{err}, qr/1\.1\.json is of another run: give another --results$/m, '... not among other results');
    $run = lab('run', 'kernel', '--add-to', "$others.none", @options, $more);
    like($run->{err}, qr/\Q$others.none\E: no such file$/m, '... of a file that is there');
    write_file($others, read_file($others) =~ s/"machine": "/$&another /gr);
    $run = lab('run', 'kernel', '--add-to', $others, @options, "$more-of-another");
    like($run->{err}, qr/\Q$others\E has results with machine another .*, not .*: leave out --add-to$/m, '... not to those of another machine');

    # Ended while it measures, for longer than this test may take: its servers end, and it says how to go on.
    my $pid = open my $said, '-|', 'sh', '-c', 'exec "$0" "$@" 2>&1', 'python3', $lab, 'run', 'kernel', @options, scratch_dir() . '/ended',
        '--seconds', 3600 or die "sh: $!";
    my $words = '';
    while (<$said>) {
        $words .= $_;
        kill TERM => $pid if /^\d+ points to measure, about \d+ min$/;
    }
    close $said;
    is($? >> 8, 143, 'a run that is ended') or diag($words);
    like($words, qr/^scripts\/lab: interrupted; the same command goes on where it was$/m, '... says that it can go on');

    $run = lab('run', 'kernel', @options, $first, '--seconds', 3);
    like($run->{err}, qr/has results with seconds 1, not 3: give another --results/, 'other runs go elsewhere');
    for my $case ([['kernel', '--point', 'none'], 'no such point: none'],
        [['breakdown', '--point', 'load-10'], 'breakdown: what is measured needs the point loaded first'], [['none'], 'no such group: none'],
        [['--server-cpu', '4000'], 'CPU 4000 is none of those']) {
        $run = lab('run', @{$case->[0]}, @options, scratch_dir() . '/none-' . ++$folders);
        isnt($run->{status}, 0, "@{$case->[0]} fails");
        like($run->{err}, qr/\Q$case->[1]/, '... with the reason');
        unlike($run->{err}, qr/Traceback/, '... in a sentence');
    }
}
for my $case ([['run', '--rounds', '0'], 'is not a number from 1'], [['run', '--seconds', 'x'], 'x is not a number from 1'],
    [['run', '--retries', '-1'], '-1 is not a number from 0'],
    [['list', 'none'], 'no such group: none'], [['plot'], 'invalid choice']) {
    $run = lab(@{$case->[0]});
    isnt($run->{status}, 0, "@{$case->[0]} fails");
    like($run->{err}, qr/\Q$case->[1]/, '... with the reason');
    unlike($run->{err}, qr/Traceback/, '... in a sentence');
}
$run = lab('report', '--results', scratch_dir(), '--json', scratch_dir() . '/none/verdicts');
like($run->{err}, qr{^scripts/lab report: \S+/none/verdicts: No such file or directory$}, 'a file that cannot be written: a sentence');
$run = run_program({command => ['sh', '-c', "python3 $lab list | :"]});
is($run->{err}, '', 'output that nobody reads is no error');
$run = run_program({command => ['python3', '-B', '-c', 'import sys; sys.path.insert(0, sys.argv[1]); from qos.runner import figure; '
        . 'print(figure(21550.4), figure(0.0676), figure(float("inf")))', "$TOP/scripts/bench"]});
is($run->{out}, "21,550 0.0676 inf\n", 'figures of a run, as people write them');
my $broken = results('kernel', ours => {system => 1, softirq => 0});
written("$broken/kernel/ours/1.2.json", {});
like(lab('report', '--results', $broken)->{err}, qr/1\.2\.json is not a result of the lab \(it has no 'values'\): remove it$/m, 'a file that is none of ours');
my %whole = (values => {}, faults => [], machine => 'm', kernel => 'k', commit => 'c', options => {seconds => 1});
for my $case (['1.2.json', {map { $_ eq 'faults' ? () : ($_ => $whole{$_}) } keys %whole}, "it has no 'faults'"],
    ['1.2.json', [], "it has no 'values'"], ['foo.json', \%whole, 'by its name']) {
    my $there = results('kernel', ours => {});
    written("$there/kernel/ours/$case->[0]", $case->[1]);
    my $said = lab('report', '--results', $there)->{err};
    like($said, qr/\Q$case->[0]\E is not a result of the lab.*(?:$case->[2]).*: remove it$/m, "$case->[0]: $case->[2]");
    unlike($said, qr/Traceback/, '... in a sentence');
}
for my $lines ('{"values": {}}', '{"facts": {}}' . "\n[]", encode_json({%whole, values => {a => 1}})) {
    my $said = lab('report', '--results', scratch_file('wrong.jsonl', "$lines\n"))->{err};
    like($said, qr/wrong\.jsonl is no file of scripts\/lab report --pack \(/, 'no packed results: ' . $lines =~ s/\n/ /r);
    unlike($said, qr/Traceback/, '... in a sentence');
}
{
    # What is used as a bound is told apart.
    my @points = map { my $name = $_; ref $colocation{$name} eq 'HASH' ? ($name => $colocation{$name}) : () } keys %colocation;
    my $there = results('colocation', @points, 'mix-fifo-100-4' => short_of_cpu(900, 1));
    my $page = scratch_dir() . '/bounds.md';
    lab('report', '--results', $there, '--markdown', $page);
    SKIP: {
        skip 'needs two CPUs, and root', 1 if $one_cpu || $> != 0;
        like(read_file($page) =~ s/\n/ /gr, qr/By valid runs alone, without those of a client short of CPU, \*D Fig 5, 6\* is INVALID \(.*client CPU 92%\)\. A client/,
            'what valid runs alone say');
    }
}

done_testing();
