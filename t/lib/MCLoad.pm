# Runs of mcload and what they report.
package MCLoad;

use strict;
use warnings;
use Exporter 'import';
use Test::More;
use MCTest;

our @EXPORT = qw(mcload mcload_json json_of ended_ok disturbed until_not undisturbed calmly);

my $mcload = $ENV{MCLOAD} || './loadgen/mcload';
my $runs = 0;

# $engine is what all runs wait for connections with, unless they say so themselves.
our $engine;

# A window in which the machine gave mcload no time at all, so that it sent nothing and nothing
# went wrong, says nothing about mcload.
sub had_no_time {
    my ($run) = @_;
    return $run->{status} == 3 && $run->{out} !~ /^INVALID: .*agents lost/m
        && $run->{out} =~ /^INVALID: .*no request was answered/m && $run->{out} =~ /^Errors = 0$/m && $run->{out} =~ /^TX +0 bytes/m
        && $run->{out} =~ /^Without answer = 0 outstanding at the end, \d+ never sent, 0 lost$/m;
}

# Nor does one in which the machine stood still: windows of tests are shorter than a second.
my $STILL = 0.25;

sub stood_still {
    my ($run) = @_;
    return ($run->{status} == 0 || $run->{status} == 3) && $run->{stalled} > $STILL;
}

our $is_once = 0; # 1: no run is made again by itself, as where servers remember the first

# Makes runs until $is_in_vain says no, at most $times; the last one. Whatever else the run
# changes or is compared with belongs into $make: a server of its own, counters before and behind.
sub until_not {
    my ($times, $is_in_vain, $make) = @_;
    local $is_once = 1;
    my $run;
    for (1 .. $times) {
        $run = $make->();
        my $why = $is_in_vain->($run) or last;
        note("once more: $why");
    }
    return $run;
}

sub disturbed {
    my ($run) = @_;
    return '' if $run->{out} =~ /desync|wrong_value|verification errors|Little's law:/; # no machine does that
    return 'no time to send anything' if had_no_time($run);
    return sprintf 'the machine stood still for %.2f s', $run->{stalled} if stood_still($run);
    return '';
}

# A run that the machine left alone.
sub undisturbed {
    my ($make) = @_;
    return until_not(4, \&disturbed, $make);
}

# A run in which nine tenths of what was meant to be sent were answered, too.
sub calmly {
    my ($make) = @_;
    return until_not(6, sub {
        my ($run) = @_;
        my ($share) = $run->{out} =~ /^Achieved = \S+ \(([\d.]+)% of offered\)/m;
        return defined $share && $share < 90 ? "only $share% of what was offered" : disturbed($run);
    }, $make);
}

# The report with its details, as far as it is one, unless $is_brief.
our $is_brief = 0;

sub mcload_once {
    my @args = @_;
    my $is_run = @args && $args[0] =~ /^-/;
    return run_program({command => [$mcload, defined $engine ? "--engine=$engine" : (),
            $is_run && !$is_brief ? '-v' : (), @args], timeout => 120});
}

# A run, and others in its place while the machine disturbs it.
sub mcload {
    my @args = @_;
    return $is_once ? mcload_once(@args) : undisturbed(sub { mcload_once(@args) });
}

# A run's JSON, checked by an independent parser, without the buckets.
sub json_of {
    my ($file) = @_;
    my $run = run_program({command => ['python3', '-c', <<'PY', $file], timeout => 60});
import json, sys
def refuse(name):
    raise ValueError(name)
with open(sys.argv[1]) as f:
    d = json.load(f, parse_constant=refuse)
def walk(path, v):
    if isinstance(v, dict):
        for k, x in v.items():
            walk(path + "." + k if path else k, x)
    elif isinstance(v, list) and path.endswith("buckets"):
        print(path + ".sum", sum(b[2] for b in v), sep="=")
        assert all(b[0] <= b[1] for b in v)
        assert all(a[1] < b[0] for a, b in zip(v, v[1:]))
    else:
        print(path, json.dumps(v), sep="=")
walk("", d)
PY
    diag($run->{err}) if $run->{status};
    return undef if $run->{status};
    my %json = map { /^([^=]+)=(.*)$/ ? ($1, $2) : () } split /\n/, $run->{out};
    return \%json;
}

# The verdict depends on how busy this machine is; it must agree with the exit status.
sub ended_ok {
    my ($run, $name) = @_;
    my ($first) = $run->{out} =~ /^(VALID|INVALID: .*)$/m;
    my $ok = $run->{status} == 0 ? $run->{out} =~ /^VALID$/m && $run->{out} !~ /^INVALID/m
        : $run->{status} == 3 && $run->{out} =~ /^INVALID: /m
        && $run->{out} !~ /^(?:VALID$|INVALID: .*(?:errors|answered|interrupted))/m;
    ok($ok, "$name: is " . ($first // 'without a verdict') . " and has status $run->{status}")
        or diag("$run->{out}$run->{err}");
}

# A run with its JSON as a table, an empty one when there is none.
sub mcload_json {
    my @args = @_;
    my $file = scratch_dir() . '/run.' . $$ . '.' . ++$runs . '.json';
    my $run = mcload('--json', $file, @args);
    $run->{file} = $file;
    $run->{json} = -s $file ? json_of($file) : {};
    return $run;
}

1;
