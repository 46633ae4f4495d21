#!/usr/bin/env perl
# Agents replay a trace that the leader names: each reads it from its own disk, below a
# directory that it has for traces, and sends a slice of it. Together they send each request
# once.
use List::Util 'sum';
use MCTest;
use MCLoad;
use MCSwarm;

my $dir = scratch_dir();
my $traces = "$dir/traces";
mkdir $traces or die;
my $server = serve();
my $at = $server->at;
my $control = $server->control;
my @agents = map { start_agent("127.0.0.$_", "--agent-traces=$traces") } 2 .. 4;
my @lead = ('-s', $at, (map { ('-a', $_) } @agents), '-t', 60);

sub write_lines($file, @lines) { return write_file($file, map { "$_
" } @lines); }

# Counters: what each of them ends with is how often its requests were sent.
my @lines;
for my $i (0 .. 2399) {
    my $key = 'count:' . ($i * 7 % 90);
    push @lines, join ',', 1000 + int($i / 1600), $key, length $key, 1, 1 + $i % 11, 'incr', 0;
}
my %count = counts_of(@lines);

sub counts_of {
    my %of = map { ("count:$_" => 0) } 0 .. 89;
    $of{(split /,/)[1]}++ for @_;
    return %of;
}

write_lines("$traces/day", @lines);

sub zero {
    put($control, "set $_ 0 0 1\r\n0\r\n") for sort keys %count;
    read_line($control) for keys %count;
}

# How often each was sent.
sub counts_now() {
    my %now;
    for my $key (sort keys %count) {
        put($control, "get $key\r\n");
        (undef, $now{$key}, undef) = map { read_line($control) =~ s/\r\n//r } 1 .. 3;
    }
    return %now;
}

# Those which are not as if these lines had been sent.
sub wrong_counts {
    my %want = counts_of(@_);
    my %now = counts_now();
    return join ', ', map { "$_: $now{$_}, not $want{$_}" } grep { $now{$_} != $want{$_} } sort keys %want;
}

sub replays($name, $processes, @args) {
    zero();
    my $run = mcload_json(@lead, '--trace=day', @args);
    ran_ok($run, "$name: a run ends");
    is(wrong_counts(@lines), '', "$name: each request is sent once");
    is($run->{json}{'totals.sent'}, 2400, "$name: they add up");
    is(scalar(() = $run->{out} =~ /^Agent .* offered (?!0\.0)/mg), $processes, "$name: each has a slice");
    unlike($run->{out}, qr/LOST/, "$name: none is lost");
    return $run;
}

my $first = replays('recorded times', 3, '-l', 0);
like($first->{out}, qr/^Offered = .*open loop/m, 'recorded times: an open loop');
my ($took) = $first->{json}{phases} =~ /"measure", "start": [\d.]+, "stop": ([\d.]+)/;
cmp_ok($took, '<', 50, 'recorded times: the run ends with the trace');
replays('faster, by client', 3, '-l', 0, '--trace-time=scaled:4', '--trace-order=client');
replays('at a rate', 3, '-l', 0, '-q', 3000);
replays('as fast as can be', 3, '-l', 0, '--trace-time=rate', '-T', 2, '-c', 3);
replays('with the leader', 4, '-l', 2, '--trace-time=scaled:4', "--trace=$traces/day");
# The other class has no end of its own.
my $class = mcload_json(@lead, '-l', 0, '-t', 3, '--class=a:{trace=day trace-time=scaled:4}',
    '--class=b:{qps=300 records=100}');
like($class->{out}, qr/^Class a.*^Offered = .*open loop.*^Class b/ms, 'a class replays beside another')
    or diag($class->{err});

# ---- loading: each stores the keys of a slice --------------------------------------------------

for my $case ([0, 'day'], [2, "$traces/day"]) {
    my ($threads, $trace) = @$case;
    put($control, "flush_all\r\n");
    read_line($control);
    my $before = mem_stats($control)->{cmd_set};
    my $run = mcload_json(@lead, '-l', $threads, "--trace=$trace", '--trace-time=scaled:4', '--trace-load');
    ran_ok($run, "loading, -l $threads: a run ends");
    is($run->{json}{'totals.loaded'}, 90, "loading, -l $threads: each key once") or diag($run->{err});
    my $stats = mem_stats($control);
    is($stats->{cmd_set} - $before, 90, "loading, -l $threads: ... says the server");
    is($stats->{incr_misses}, 0, "loading, -l $threads: none is missed");
}
{
    my $run = mcload(@lead, '-l', 0, '--trace=day', '--trace-load=9', '--loadonly');
    is($run->{status}, 0, 'loading what is allowed: status 0') or diag($run->{err});
    like($run->{err}, qr/^mcload: agent \Q$_\E: .*day: only the first 3 keys are stored/m, "$_ says that there are more")
        for @agents;
    like($run->{err}, qr/^mcload: 9 records stored$/m, 'loading what is allowed: together so many');
}

# ---- what is wrong with it is told -----------------------------------------------------------

write_lines("$traces/odd", @lines[0 .. 99], 'nonsense', @lines[100 .. 199]);
my $run = mcload(@lead, '-l', 0, '--trace=odd', '--trace-bad=skip', '--trace-time=rate');
like($run->{err}, qr/^mcload: agent \Q$_\E: .*odd: 1 lines/m, "$_ passed over a line, and tells the leader")
    for @agents;
$run = mcload(@lead, '-l', 0, '--trace=odd', '--trace-time=rate');
has($run, 'a line that is none: no good run', status => 3, err => qr/is lost: .*odd, line 101: /);

# ---- other files ------------------------------------------------------------------------------

write_lines("$dir/secret", @lines[0 .. 9]);
mkdir "$dir/traces-too";
write_lines("$dir/traces-too/day", @lines[0 .. 9]);
symlink "$dir/secret", "$traces/link" or die;
POSIX::mkfifo("$traces/pipe", 0600) or die;
my $none = start_agent('127.0.0.5');

sub refused($agent, $trace, $why, @args) {
    my $run = mcload('-s', $at, '-l', 0, '-t', 1, '-a', $agent, @args ? @args : "--trace=$trace");
    has($run, "$trace: status 2", status => 2, err => qr/^mcload: agent \Q$agent\E: refuses: $why\n\z/m);
}

refused($agents[0], $_, qr/\Q$_\E is none of its traces/) for "$dir/secret", '../secret', "$traces/../secret",
    'link', 'pipe', 'missing', '.', '/etc/passwd', "$dir/traces-too/day";
refused($agents[0], 'in a class', qr/link is none of its traces/, '--class=a:{trace=link}');
refused($none, 'day', qr/it reads no traces for leaders \(--agent-traces\)/);
ok(mcload('-s', $at, '-l', 0, '-t', 60, '-a', $agents[0], "--trace=$traces/day", '--trace-time=rate')->{status} != 2,
    'a whole path below the directory will do');
$run = mcload('-s', $at, '-a', $agents[0], '--trace=day', '--agent-traces=/tmp');
is($run->{status}, 1, 'a leader cannot name directories');
$run = mcload('-s', $at, '-a', "$agents[0];role=measure", '--trace=day');
is($run->{status}, 1, 'who measures would send recorded times once more: usage');

# What is read is what was looked at: the file gives way to another, and to a pipe nobody writes,
# while the agent stores records, slowly.
my $slow = start_agent('127.0.0.6', "--agent-traces=$traces", '--agent-max-bandwidth=600000');
for my $put (sub { symlink "$dir/traces-too/day", $_[0] }, sub { POSIX::mkfifo($_[0], 0600) }) {
    my %few = counts_of(@lines[0 .. 299]);
    write_lines("$traces/swapped", @lines[0 .. 299]);
    put($control, "flush_all\r\n");
    read_line($control);
    zero();
    my $before = mem_stats($control)->{cmd_set};
    my $pid = in_child(sub {
        wait_until(sub { mem_stats($server->connect)->{cmd_set} > $before });
        unlink "$traces/swapped";
        $put->("$traces/swapped") or POSIX::_exit(1);
    });
    # Once: the next time it is another file.
    $run = run_program({command => [$MCLOAD, '--timeout=60', '-s', $at, '-a', $slow, '-l', 0, '-t', 3,
        '--class=a:{trace=swapped trace-time=rate}', '--class=b:{qps=100 records=1000 valuesize=1000}'], timeout => 120});
    waitpid $pid, 0;
    is($?, 0, 'another file is there');
    isnt($run->{status}, 2, '... and the run goes on') or diag($run->{err});
    # The time may be over before all of it is sent; the other file has ten lines.
    my %now = counts_now();
    is_deeply([grep { $now{$_} > $few{$_} } sort keys %few], [], '... with the trace that was named, each request once');
    cmp_ok(sum(values %now), '>', 10, '... and not with the other file') or diag($run->{err});
    unlink "$traces/swapped";
}

done_testing();
