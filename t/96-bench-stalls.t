#!/usr/bin/env perl
# scripts/bench-stalls and bench-restart: their options, and what they refuse; the cells of their rows.
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
    return Run({"p50": 50, "p99": 60, "p999": p999, "max": p999, "late999": 5, "done": 3}, list(faults))
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
like($rows[1], qr/"x Debian's": ''.*'VALID'/, 'the other server is the measure');
done_testing();
