#!/usr/bin/env perl
# The antagonists of scripts/lab are what they say: what each counts of itself, whatever else the machine does.
use IO::Socket::INET;
use MCTest;

my $sources = "$TOP/scripts/bench";
my ($compiler) = grep { -x } map { ("/usr/bin/$_") } qw(cc gcc clang);
plan skip_all => 'needs a C compiler' if !$compiler;

sub built($name) {
    my $program = scratch_dir() . "/$name";
    my ($source) = grep { -e } "$sources/lab/antagonists/$name.c", "$sources/$name.c";
    my $run = run_program({command => [$compiler, qw(-O2 -Wall -Wextra -Werror -std=gnu11 -pthread -o), $program, $source, '-lm']});
    is($run->{status}, 0, "$name is built") or diag($run->{err});
    return $program;
}

# (work, seconds, CPU seconds, what else is printed)
sub outcome($name, @args) {
    my $run = run_program({command => [built($name), @args]});
    is($run->{status}, 0, "$name @args") or diag($run->{err});
    my ($ready, $work, $seconds, $cpu, $rest) = split ' ', $run->{out}, 5;
    is($ready, 'ready', '... says when it begins');
    cmp_ok($work, '>', 0, '... has worked');
    return ($work, $seconds, $cpu, $rest);
}

my ($work, $seconds, $cpu, $rest) = outcome('walk', 64 * 1000, 0.2);
is($rest, "lines=1000\n", '... a lap reads each line of the memory');
# Without time for work: the lap, which takes a tenth of a second of the CPU here, does not count.
my $walk = run_program({command => [built('walk'), 256_000_000, 0]});
like($walk->{out}, qr/^ready\n0 \S+ 0\.00\d /, '... its time ends with its work') or diag($walk->{out});
($work, $seconds, $cpu, $rest) = outcome('code', 24576, 0.2);
like($rest, qr/^instructions=(24576|6144)$/, '... a lap runs all of the code');
($work, $seconds, $cpu, $rest) = outcome('triad', 240_000, 0.2);
is($rest, "wrong=0\n", '... computes what it should');
($work, $seconds, $cpu, $rest) = outcome('float', 100_000, 0.2);
is($rest, "wrong=0 pi=3.142\n", '... computes what it should');
for my $program (qw(sort join stencil)) {
    ($work, $seconds, $cpu, $rest) = outcome($program, 200_000, 0.2);
    is($rest, "wrong=0\n", '... computes what it should');
}
($work, $seconds, $cpu, $rest) = outcome('storm', 2, 0.2);
cmp_ok($rest =~ /faults=(\d+)/ ? $1 : 0, '>=', $work, '... each page was touched');
($work, $seconds, $cpu, $rest) = outcome('stream', 1000, 0.5);
cmp_ok($work, '<=', $rest =~ /allowed=(\d+)/ ? $1 : 0, '... not faster than it may');

SKIP: {
    my @cpus = allowed_cpus();
    skip 'needs two CPUs', 1 if @cpus < 2;
    ($work, $seconds, $cpu, $rest) = outcome('pingpong', @cpus[0, 1], 0.5);
    my ($first, $second, $switches) = $rest =~ m{turns=(\d+)/(\d+) switches=(\d+)};
    cmp_ok(abs($first - $second), '<=', 1, '... turn about');
    cmp_ok($switches, '>', 0, '... and the threads wait');
}

my $port = free_port();
my $out = scratch_dir() . '/service.out';
my $program = built('service');
my $pid = in_child(sub {
    open STDOUT, '>', $out or die;
    exec $program, $port, 1000, 600 or die;
});
my $socket;
soon(sub { $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }, 'service listens');
put($socket, "get a\r\n" x 199 . 'get');
is(read_bytes($socket, 5 * 199), "END\r\n" x 199, 'service: a reply to each line');
put($socket, " b c\r\n");
is(read_bytes($socket, 5), "END\r\n", '... also to one that came in pieces');
kill TERM => $pid;
waitpid $pid, 0;
(undef, $work, $seconds, $cpu, $rest) = split ' ', read_file($out), 5;
is($work, 200, '... SIGTERM ends it, with all counted');
my $drawn = $rest =~ /drawn=([\d.]+)/ ? $1 : 0;
cmp_ok(abs($drawn / 0.2 - 1), '<', 0.3, '... a millisecond each, in the mean');
cmp_ok($cpu, '>=', $drawn - 0.001, '... of CPU time');

for my $mode ([], ['wall'], ['random'], ['wall', 'random']) {
    my $run = run_program({command => [built('wave'), 2, 20, 0.3, @$mode]});
    is($run->{status}, 0, "wave @$mode");
    ok($run->{out} >= 0 && $run->{out} < 1.2, '... no more than its demand') or diag($run->{out});
}
is(run_program({command => [scratch_dir() . '/wave', 2, 20, 0.3, 'warp']})->{status}, 1, 'no other form');
for my $case (['walk', 0, 1], ['code', 1], ['triad', 'x', 1], ['storm', 65, 1], ['pingpong', 0], ['stream', 0, 1], ['service', 1, 0, 1]) {
    my ($name, @args) = @$case;
    next if !-x scratch_dir() . "/$name";
    my $run = run_program({command => [scratch_dir() . "/$name", @args]});
    is($run->{status}, 2, "$name @args: wrong usage");
}

# What a script's programs use is its own, when it has waited for them and when it has not. A program that
# ends when it has used so much, however long it takes.
my $uses = scratch_file('uses', "import time\nprint('ready', flush=True)\nwhile time.process_time() < 0.2:\n    pass\nprint('done', flush=True)\n");
for my $then ('; read x', ' & read x; kill $!') {
    my $run = run_program({command => ['python3', '-B', '-c', <<'END', $sources, "python3 $uses$then"]});
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import side_by_side as side
script = subprocess.Popen(["sh", "-c", sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lines = [script.stdout.readline() for _ in range(2)]  # ready, and what it did: it has worked then
print(side.cpu_time_of(script.pid) < side.cpu_time_with_children(script.pid))
script.communicate(b"x")
print(side.cpu_time_with_children(script.pid))
END
    is($run->{out}, "True\n0.0\n", "CPU time of a script: $then") or diag($run->{err});
}

done_testing();
