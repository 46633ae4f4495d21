#!/usr/bin/env perl
# scripts/bench-stalls and bench-restart: their options, and what they refuse; the cells of their rows; latencies
# without the time in which a CPU was away.
# What they measure is for a machine that does nothing else.
use MCTest;

my $scripts = "$TOP/scripts";

sub bench($name, @args) {
    return run_program({command => ['python3', "$scripts/$name", '--build', $ENV{TOP_BUILDDIR}, @args]});
}

for my $name (qw(bench-stalls bench-restart)) {
    my $help = bench($name, '--help');
    is($help->{status}, 0, "$name --help");
    like($help->{out}, qr/--rounds.*--markdown/s, '... shows its options');
}
my $nowhere = scratch_dir() . '/none';
for my $case (
    ['bench-stalls', ['--only', 'nothing'], qr/no such pattern: nothing/],
    ['bench-restart', ['--servers', 'ours,varnish'], qr/no such server: varnish/],
    ['bench-restart', ['--megabytes', 1000000000], qr/MB free, the files need/],
    ['bench-restart', ['--folder', "$nowhere"], qr/error: \Q$nowhere\E is no folder: give another --folder$/m]) {
    my ($name, $args, $why) = @$case;
    my $run = bench($name, @$args);
    isnt($run->{status}, 0, "$name @$args: refused");
    like($run->{err}, $why, '... with a sentence');
    unlike($run->{err}, qr/Traceback/, '... and no more');
}

my $run = run_program({command => ['python3', '-B', '-c', <<'PYTHON', "$scripts/bench"]});
import sys
sys.path.insert(0, sys.argv[1])
from qos import stalls
from qos.runner import Run
def run(p999, *faults):
    return Run({"own_p50": 50, "own_p99": 60, "own_p999": p999, "own_max": p999, "p999": 7777, "max": 8888,
                "away": 0.0123, "done": 3}, list(faults))
for what in stalls.EVENTS:
    samples = {(what, stalls.OURS): [run(500), run(9999, "steal 5 %")], (what, stalls.THEIRS): [run(1000)]}
    for name in (stalls.OURS, stalls.THEIRS):
        print(dict(zip(stalls.HEAD[4:], stalls.row(samples, what, name)[4:])))
PYTHON
is($run->{status}, 0, 'rows of made runs') or diag($run->{err});
my @rows = split /\n/, $run->{out};
is(scalar(@rows), 14, 'two of each event');
like($rows[0], qr/'p99.9 us': '500 \(500-500\)', "x Debian's": '0.50 .*'INVALID 1\/2: steal 5 %'/,
    'what is not valid does not count, and is told');
like($rows[0], qr/'max us': '8888 .*'CPUs away': '1\.2 %/, 'those with what the host did stand beside');
like($rows[1], qr/"x Debian's": ''.*'VALID'/, 'the other server is the measure');

my $dir = scratch_dir();
write_file("$dir/json", '{"began_s": 1000, "phases": [{"name": "warmup", "start": 1, "stop": 2},
    {"name": "measure", "start": 2, "stop": 12}]}');
write_file("$dir/saved", join '', map { "$_\n" } '1 1000', '2 5000', '3 400000', '4 70');
$run = run_program({command => ['python3', '-B', '-c', <<'PYTHON', "$scripts/bench", $dir]});
import sys
sys.path.insert(0, sys.argv[1])
from qos import hiccups
gaps = hiccups.Gaps()
# Two CPUs: in the get at 4 s, behind its begin; the same time on both; before and behind all.
gaps.parse(["0 1004.001 1004.003", "1 1005.1 1005.2", "0 1005.15 1005.3", "0 990 1000", "1 1012 1013"])
for begin, end in (1003, 1004), (1004, 1004.002), (1005, 1006), (1005.25, 1005.26), (980, 1020):
    print(f"{gaps.within(begin, end):.3f}")
own = hiccups.without(gaps, sys.argv[2] + "/json", sys.argv[2] + "/saved")
print(*(f"{name} {value:.4g}" for name, value in own.items()))
PYTHON
is($run->{status}, 0, 'latencies of a made run') or diag($run->{err});
is($run->{out}, <<'END', 'are those without the gaps, of which no time counts twice');
0.000
0.001
0.200
0.010
11.202
own_p50 1000 own_p99 2e+05 own_p999 2e+05 own_max 2e+05 away 0.0202
END
done_testing();
