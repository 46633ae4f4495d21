#!/usr/bin/env perl
# What a new user runs: scripts/quickstart and scripts/demo, with what was built here. They work on
# a machine as busy as it may be, say how far they are, end with a verdict, leave nothing behind
# when they are interrupted, and refuse what they do not know. No figure is looked at.
use MCTest ':ours';
use Cwd qw(abs_path);
use JSON::PP;
use POSIX qw(setsid);

my $build = abs_path($ENV{TOP_BUILDDIR} // '.');
my $LONG = 900;

plan skip_all => 'the scripts are the same under a sanitizer' if $ENV{ASAN_OPTIONS} || $ENV{TSAN_OPTIONS};
for my $tool (qw(python3 taskset setsid cc)) {
    plan skip_all => "no $tool here" if system("command -v $tool >/dev/null") != 0;
}

sub script($name, @args) {
    return run_program({command => ["$TOP/scripts/$name", @args], timeout => $LONG});
}

# Interrupts the script, which is alone in a session of its own, once its output has the line; what
# it said, and its exit status.
sub interrupted($line, $name, @args) {
    my $out = scratch_dir() . "/$name.out";
    unlink $out;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        setsid();
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $out;
        open STDERR, '>&', \*STDOUT;
        $SIG{INT} = 'DEFAULT';
        { no warnings; exec "$TOP/scripts/$name", @args; }
        POSIX::_exit(127);
    }
    wait_until(sub { read_file($out) =~ $line }, $LONG) or diag(read_file($out));
    kill 'INT', -$pid;
    waitpid $pid, 0;
    my $status = $?;
    soon { !kill 0, -$pid } "$name: no process is left";
    return (read_file($out), $status);
}

sub port_of($said) {
    return $said =~ /^2\. start .* -p (\d+)/m ? $1 : die "no port in: $said";
}

sub is_served($port) {
    return defined IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Proto => 'tcp', Timeout => 60);
}

for my $name (qw(quickstart test build)) {
    my $help = script($name, '--help');
    has($help, "$name --help: what it does and how it is called", status => 0, err => '',
        out => qr/\Ascripts\/$name\b.*: \w.*\.\n\z/s);
    is(script($name, '-h')->{out}, $help->{out}, '-h: the same');
}

# ---- quickstart ---------------------------------------------------------------------------------

# It takes the port of old when that is free: not while a test of that port is between two servers.
wait_until(sub { claim_port(11211) });

{
    my $ran = script('quickstart', '--build', $build, '--seconds', 1);
    is($ran->{status}, 0, 'quickstart') or diag($ran->{out} . $ran->{err});
    like($ran->{out}, qr/^$_\. /m, "step $_ is told") for 2 .. 5;
    like($ran->{out}, qr/^$_ {2,}\S/m, "a line about $_")
        for qw(threads times limit waiting machine), 'asked for';
    has($ran, 'no errors', out => qr/^errors +0$/m, out => qr/^machine +(?:idle enough|TOO BUSY to judge)/m);
    unlike($ran->{out} . $ran->{err}, qr/WARNING|warning|INVALID/, 'no warning about what it chose itself');
    ok(!is_served(port_of($ran->{out})), 'no server is left');
}

{
    my ($said, $status) = interrupted(qr/^serving on/m, 'quickstart', '--keep', '--build', $build, '--seconds', 1);
    is($status, 0, 'quickstart --keep ends with the server, as Ctrl-C asks') or diag($said);
    ok(!is_served(port_of($said)), 'no server is left');
    ($said, $status) = interrupted(qr/^3\. /m, 'quickstart', '--build', $build);
    is($status >> 8, 130, 'Ctrl-C before that');
    ok(!is_served(port_of($said)), 'no server is left');
}

for my $args (['--bogus'], ['--seconds', 0], ['--seconds', 'x'], ['--seconds'], ['--build']) {
    my $ran = script('quickstart', @$args);
    has($ran, "quickstart @$args, says how it is used", status => 2, err => qr/^usage: scripts\/quickstart/);
}

# Of what was never answered it says what is known.
{
    my $folder = scratch_dir() . '/report';
    mkdir $folder or die "$folder: $!";
    my %result = (valid => JSON::PP::false, errors => {},
        totals => {offered_qps => 40000, achieved_qps => 12000, hits => 1, keys => 1},
        latency => {intended => {pct => {p50 => 27500, p99 => undef, 'p99.9' => undef},
            pct_above => {p99 => 6.9e9, 'p99.9' => 6.9e9}}});
    write_file("$folder/$_.json", encode_json(\%result)) for qw(paced flat_out);
    write_file("$folder/qos", "STAT qps_limit 50000\r\nSTAT qps_delayed 5\r\nSTAT qps_admitted 100\r\n"
        . "STAT qps_delay_avg_us 281.0\r\nEND\r\n");
    write_file("$folder/pin", "STAT pin_worker_0_cpu 0\r\nEND\r\n");
    my $ran = run_program({command => ['python3', '-B', "$TOP/scripts/bench/quickstart_report.py", $folder]});
    has($ran, 'percentiles among requests never answered', status => 0,
        out => qr/^times +p50 28 us, p99 above 6,900 ms, p99\.9 above 6,900 ms$/m);
}

# ---- demo ---------------------------------------------------------------------------------------

# CPUs are kept awake by root only.
for (['PermissionError(13, "no")', 'only root can forbid it'], ['FileNotFoundError(2, "none")', '[Errno 2] none']) {
    my ($error, $why) = @$_;
    my $ran = run_program({command => ['python3', '-B', '-c', "import builtins, sys; sys.path.insert(0, '$TOP/scripts/bench')\n"
        . "import side_by_side\ndef refuse(*_, **__): raise $error\nbuiltins.open = refuse\n"
        . "side_by_side.Bench.keep_awake(side_by_side.Bench.__new__(side_by_side.Bench))\n"]});
    has($ran, "CPUs may sleep: $error", status => 0, err => "CPUs may sleep ($why): latencies include waking them\n");
}

for my $args (['--bogus'], ['--seconds', 0], ['--rounds', 'x']) {
    my $ran = script('demo', @$args);
    has($ran, "demo @$args, says how it is used", status => 2, err => qr/^usage: scripts\/demo/);
}

SKIP: {
    skip 'needs two CPUs', 1 if `nproc` < 2;
    my $file = scratch_dir() . '/demo.json';
    my @once = ('--build', $build, '--seconds', 1, '--rounds', 1, '--retries', 0);
    my $ran = script('demo', @once, '--json', $file);
    is($ran->{status}, 0, 'demo') or diag($ran->{out} . $ran->{err});
    like($ran->{out}, qr/^measuring (\d+) times for 1 s, \d+ s in all/, 'how long it takes');
    like($ran->{out}, qr/^  1 of \d+, /m, 'how far it is');
    my $result = decode_json(read_file($file));
    my $results = @{$result->{results}};
    ok($results == 6 || $results == 9, 'each server alone and beside both neighbours');
    my @bars = $ran->{out} =~ /^  \S.*? (?:[\d,]+ [um]s|never) [? ] #{1,40}>?(?: \d+% answered)?$/mg;
    is(@bars, $results, 'a bar each') or diag($ran->{out});
    like($ran->{out}, qr/^$_$/m, $_)
        for 'alone', 'beside multigets of 50 keys, 50 connections', 'beside gets of 100 KB, 32 connections';
    like($ran->{out}, $result->{is_valid} ? qr/^VALID: /m : qr/^INVALID: the machine was too busy to judge \d of $results/m,
        'the verdict');
    my ($said, $status) = interrupted(qr/^  1 of/m, 'demo', @once);
    is($status >> 8, 130, 'Ctrl-C');
}

done_testing();
