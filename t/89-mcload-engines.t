#!/usr/bin/env perl
# mcload's engines move the same bytes: io_uring counts, verifies, loses and mends connections as
# epoll does, and where it cannot work a line says so.
use MCTest;
use MCLoad;
use MCTestd;

my $list = mcload('--engine=help');
has($list, '--engine=help is no run', status => 0, out => qr/\Aepoll\n(io_uring\n)?\z/);

has(mcload('--engine=select', '-t', '0.1'), 'an unknown engine is a usage error, and a line says so',
    status => 1, err => "mcload: this build has no such engine: see --engine=help (--engine \"select\")\n");

# ---- polling instead of sleeping --------------------------------------------------------------

# A server that takes 20 ms for a reply: who sleeps meanwhile needs next to no time of a CPU. Who polls
# needs what there is, which on a busy machine may be as little.
sub cpu_seconds_of {
    my @args = @_;
    my $testd = start_testd('--delay=20000');
    my $before = (times)[2] + (times)[3];
    my $run = mcload('-s', "127.0.0.1:$testd->{port}", '--noload', '-r', '10', @args);
    my $used = (times)[2] + (times)[3] - $before;
    stop_testd($testd);
    like($run->{out}, qr/^Total QPS = [1-9]/m, "@args: gets are answered") or diag($run->{err});
    return $used;
}

for my $engine (split ' ', $list->{out}) {
    my @with = ("--engine=$engine");
    my $works = mcload(@with, '-s', 'unix:/nowhere', '--noload', '-t', '0.1');
    next if $works->{err} =~ /cannot set up connections/;
    for my $load (['-c', 2], ['-c', 2, '-q', 40, '--spin=0']) {
        my @run = (@with, @$load, is_quiet() ? ('-t', 0.6) : ('-t', 100, '--until=n:4'));
        my $asleep = cpu_seconds_of(@run, '--busy-poll=0');
        my $awake = cpu_seconds_of(@run, '--busy-poll');
        my $shortly = cpu_seconds_of(@run, '--busy-poll=100');
        next if !is_quiet();
        cmp_ok($awake, '>', 2 * $asleep, "$engine @$load: --busy-poll polls");
        cmp_ok($awake, '>', 2 * $shortly, "$engine @$load: and not for longer than it is to");
    }
}

my $server = serve();
my $at = $server->at;
my $probe = mcload('--engine=io_uring', '-s', $at, '--loadonly', '-r', '10');
if ($list->{out} !~ /io_uring/) {
    done_testing();
    exit 0;
}
if ($probe->{status} == 2 && $probe->{err} =~ /cannot set up connections/) {
    note("no io_uring here: $probe->{err}");
    done_testing();
    exit 0;
}
is($probe->{status}, 0, 'records are loaded') or diag($probe->{err});
$MCLoad::engine = 'io_uring';

# ---- the same counts ------------------------------------------------------------------------

sub sums_up($run, $name) {
    my $json = $run->{json};
    ended_ok($run, $name);
    has($json, "$name: gets are answered", 'totals.gets' => ['>', 0], 'totals.hits' => $json->{'totals.keys'});
    is($json->{"errors.$_"}, 0, "$name: no $_") for qw(wrong_value desync disconnect timeout);
}

sums_up(mcload_json('-s', $at, '-r', '500', '-c', '4', @BRIEFLY, '-u', '0.2', '--verify=1'),
    'closed loop');
sums_up(mcload_json('-s', $at, '-r', '500', '-c', '20', '-d', '16', '-T', '2', @BRIEFLY,
    '--verify=1'), 'pipelined, two threads');
sums_up(mcload_json('-s', $at, '-r', '500', '-c', '4', '-q', '2000', @BRIEFLY, '--verify=1'), 'open loop');
# Values larger than a buffer of the engine, more of them on their way than it has buffers for,
# and sets that a socket does not take at once.
sums_up(mcload_json('-s', $at, '-r', '20', '-V', '400000', '-c', '4', '-d', '8', @BRIEFLY,
    '-u', '0.5', '--verify=1'), 'large values');
sums_up(mcload_json('-s', $at, '-r', '50', '--protocol=binary', '-V', '20000', @BRIEFLY,
    '--verify=1'), 'binary');

my $path = scratch_dir() . '/socket';
my $local = serve('-s', $path, {path => $path});
sums_up(mcload_json('-s', "unix:$path", '-r', '100', '-c', '3', @BRIEFLY, '--verify=1'),
    'UNIX socket');
$local->stop;

# ---- what it does not do ----------------------------------------------------------------------

{
    my $run = mcload('-s', "udp://$at", '--noload', '-t', '0.1');
    SKIP: {
        skip 'this build knows no datagrams', 2 if $run->{status} == 1;
        is($run->{status}, 2, 'datagrams are refused');
        like($run->{err}, qr/--engine=io_uring knows neither TLS nor UDP$/m, 'by name');
    }
}

# ---- the truth, with this engine --------------------------------------------------------------

subtest 'the truth' => sub {
    my $done = do "$TOP/t/80-mcload-truth.t";
    die $@ || $! if !defined $done;
};

done_testing();
