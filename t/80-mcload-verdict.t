#!/usr/bin/env perl
# A client that was stopped, or sends in clumps, says so under the name of the check; checks
# are in the report by name, with value and limit, and can be given another limit.
use MCTest;
use Time::HiRes qw(sleep);
use MCLoad;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;

# Status and text of a run that $hinder does something to, once it has begun.
sub hindered($hinder = undef, @args) {
    my $pid = in_child(sub {
        open STDOUT, '>', "$dir/out";
        open STDERR, '>', "$dir/progress";
        exec $MCLOAD, '-v', '-s', $at, '-r', '100', '--progress=always', '--check=cpu_wait:off', @args;
    });
    # Two a second: the first line of progress comes within the run.
    wait_until(sub { -s "$dir/progress" && `cat $dir/progress` =~ m{/\d+ s} }, 60);
    $hinder->($pid);
    waitpid $pid, 0;
    return ($? >> 8, scalar `cat $dir/out`);
}

# What such a run says of itself.
sub blames_itself($like, $name, @how) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($status, $text) = hindered(@how);
    my $why = join "\n", $text =~ /^(INVALID: .*)$/mg;
    is($status, 3, "$name: status 3") or diag $text;
    like($why, $like, $name);
}

sub stop_for($pid, $seconds) {
    kill 'STOP', $pid;
    sleep $seconds;
    kill 'CONT', $pid;
}

# In turns of 20 ms, as long as it lives.
sub stop_to_its_end {
    my ($pid) = @_;
    while (readlink "/proc/$pid/exe") { # not of a zombie
        stop_for($pid, 0.02);
        sleep 0.002;
    }
}

# ---- what is checked ---------------------------------------------------------------------

my $run = mcload_json('-s', $at, '-r', '100', '-t', 100, '--until=n:500', '-q', '2000', '-c', '4');
my $names = run_program({command => ['python3', '-c', <<'PY', $run->{file}], timeout => 120});
import json, sys
d = json.load(open(sys.argv[1]))
for c in d["checks"]:
    assert sorted(c) == ["limit", "name", "ok", "value"], c
    assert isinstance(c["ok"], bool) and c["value"] >= 0, c
    print(c["name"], c["limit"])
a = d["arrivals"]
assert a["requests_a_gap"] == 1 and a["gaps"] > 0 and 0 <= a["ks_p"] <= 1, a
assert 0.5 < a["scv_intended"] < 2 and a["scv"] > 0 and 0 <= a["apart"] <= 1, a
assert d["valid"] == all(c["ok"] for c in d["checks"])
PY
is($names->{status}, 0, 'checks and arrivals in the JSON') or diag $names->{err};
my %limits = map { split / / } split /\n/, $names->{out};
is($limits{$_->[0]}, $_->[1], "the check $_->[0]") for ['arrivals', 0.25], ['little', 0.02], ['lateness', 1],
    ['cpu_wait', 0.1], ['adherence_1ms', 0.95], ['achieved_rate', 0.99], ['client_cpu', 0.95];
SKIP: {
    skip 'the kernel does not say', 1 if !-r '/proc/stat';
    is($limits{steal}, 0.02, 'the check steal');
}
like($run->{out}, qr/^Gaps of 1 = SCV [\d.]+ sent, [\d.]+ meant, [\d.]+% apart/m, 'the law in the text');

$run = mcload_json('-s', $at, '-r', '100', '-t', 100, '--until=n:1k', '-c', '4');
my ($ok) = $run->{out} =~ /^(VALID|INVALID.*)$/m;
unlike($run->{out}, qr/^Gaps of/m, 'a closed loop has no law');
unlike($ok, qr/Little/, 'and keeps to Little\'s');

# ---- other limits ------------------------------------------------------------------------

my @off = map { "$_:off" } qw(adherence_1ms achieved_rate arrivals little lateness steal
    cpu_wait client_cpu stationarity);
$run = mcload('-s', $at, '-r', '100', @BRIEFLY, '-q', '500', '--check=' . join(',', @off));
is($run->{status}, 0, 'nothing is left to object to') or diag $run->{out};
$run = mcload('-s', $at, '-r', '100', @BRIEFLY, '-q', '500', '--check=' . join(',', @off),
    '--check=client_cpu:0');
is($run->{status}, 3, 'a limit that no run meets') or diag $run->{out};
like($run->{out}, qr/^INVALID: client CPU [\d.]+% > 0%: raise -T, .*$/m, 'and what to do');
for my $bad ('steal', 'nothing:1', 'answers:off', 'steal:x', '', 'errors:1%', 'adherence_1ms:95') {
    $run = mcload('-s', $at, "--check=$bad");
    has($run, "--check=$bad, in a line", status => 1, err => qr/\A[^\n]*check[^\n]*\n\z/);
}

# ---- faults of the client ----------------------------------------------------------------

# There is always room for another request: a client none of whose connections is free when it goes
# on is not the one that is late.
my $stopped = sub {
    for (1 .. 3) {
        stop_for($_[0], 0.4);
        sleep 0.2;
    }
};
blames_itself(qr/^INVALID: (?:adherence|lateness)/m, 'stopped for 400 ms', $stopped,
    '-t', 4, '-q', 2000, '-c', 16, '-d', 100);
# Against the latency from issue, which is longer where more were on their way when it was stopped.
blames_itself(qr/^INVALID: lateness: p99 of the client's lag/m, 'by its lateness alone', $stopped,
    '-t', 4, '-q', 2000, '-c', 16, '-d', 100,
    '--check=adherence_1ms:off,arrivals:off,achieved_rate:off,stationarity:off,lateness:0.1');
blames_itself(qr/^INVALID: arrivals: [\d.]+% > 25%/m, 'in clumps', \&stop_to_its_end,
    '-t', 3, '-q', 5000, '-c', 64, '-d', 4, '--check=adherence_1ms:off,lateness:off,achieved_rate:off');

done_testing();
