#!/usr/bin/env perl
# Runs that end when they know enough, every latency in a file, and what the machine is.
use MCTest;
use MCLoad;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;
my @load = ('-s', $at, '-r', '100', '-q', '2000', '-c', '8');

# ---- until -------------------------------------------------------------------------------

# A rate that a busy machine has time for: of requests that were never sent nothing is known.
my @slowly = (@load, '-q', 200);
my $run = run_ok('until: an easy goal', @slowly, '--until=p50:9000%', '-t', 60);
# Two looks in a row have to say so.
has($run, 'it is reached', 'until.reached' => 'true', 'totals.seconds' => ['<', 59],
    'totals.seconds' => ['>=', 0.05], out => qr/^Until 50th within 9000% = reached after [\d.]+ s, [\d.]+%$/m);

$run = run_ok('until: one that is out of reach', @load, '--until=p99:0.0001%', '-t', '1s');
has($run, 'it is not, the time is the longest it takes, and told', 'until.reached' => 'false',
    'totals.seconds' => ['>=', 1], out => qr/^Until 99th within 0\.0001% = not reached after 1\.00 s/m);

$run = mcload_json(@slowly, '--until=p50:9000%', '--time=auto', '--repeat=2');
is(scalar(() = $run->{out} =~ /^Until 50th within 9000% = (?:not )?reached/mg), 2,
    'with --repeat, each run') or diag($run->{out});
$run = mcload_json('-s', $at, '-r', '100', '-t', 30, '--until=p50:9000%', '--class=a:{qps=200}',
    '--class=b:{qps=100}');
# It ends by what it has looked at, though what comes behind that may make the interval wider again.
has($run, 'with classes', 'totals.seconds' => ['<', 29], 'until.reached' => 'true',
    out => qr/^Until 50th within 9000% = reached after/m);
for my $bad (['--until=99:1'], ['--until=p99:0%'], ['--until='], ['--until=p50:5%', '--search=99:1000'],
    ['--time=auto', '--search=99:1000'], ['--time=auto', '-q', 10, '--schedule=ramp:10:20:1'],
    ['--until=p50:5%', '-a', '127.0.0.1:1'], ['--save=x', '-a', '127.0.0.1:1']) {
    has(mcload('-s', $at, @$bad), "@$bad is refused, in a line", status => 1, err => qr/\A[^\n]+\n\z/);
}

# ---- save --------------------------------------------------------------------------------

for my $from ('intended', 'issue') {
    $run = mcload_json(@load, '-t', 100, '--until=n:500', '-T', 2, "--latency-from=$from", "--save=$dir/$from");
    my @lines = split /\n/, `cat $dir/$from`;
    is(scalar @lines, $run->{json}{"latency.$from.count"}, "$from: as many samples as latencies");
    is(scalar(grep { !/^\d+\.\d{6} \d+\.\d{3}$/ } @lines), 0, '... of start and latency');
    my ($sum, $outside) = (0, 0);
    for (@lines) {
        my ($start, $us) = split / /;
        $sum += $us * 1000;
        $outside++ if $start >= $run->{json}{'totals.seconds'} + 1e-6;
    }
    is($outside, 0, '... that began in the window');
    my $mean = $run->{json}{"latency.$from.mean"};
    cmp_ok(abs($sum / @lines - $mean), '<=', 0.001 * $mean + 1, '... of the same mean');
}
# A tenth of them, more or less: of 1000, 100 and a deviation of 10.
$run = mcload_json(@load, '-t', 1, '-q', 1000, "--save=$dir/some", '--sample=0.1');
open my $some, '<', "$dir/some" or die;
my $lines = () = <$some>;
my $answers = $run->{json}{'latency.intended.count'};
cmp_ok(abs($lines - $answers / 10), '<=', 6 * sqrt($answers * 0.09) + 1, '--sample: a share');
is(mcload(@load, @$_)->{status}, 1, "@$_: usage") for ['--sample=0.1'], ["--save=$dir/some", '--sample=0'],
    ["--save=$dir/some", '--sample=2'];
$run = mcload(@load, '-t', 0.3, '--save=/nonexistent/x');
has($run, 'a file that cannot be written', status => 1, err => qr{^mcload: cannot write /nonexistent/x: });
# Before the run, not after it.
for my $at_end ("--hgrm=$dir/none/x", "--plot=$0/none", '--plot=', '--hgrm=') {
    $run = mcload(@load, '-t', 60, $at_end);
    has($run, "$at_end: a name that cannot be written", status => 1, err => qr/\Amcload: [^\n]+\n\z/);
}
# A reader that has gone takes nothing but the report with it.
{
    my @classes = map { "--class=c$_:{qps=100}" } 1 .. 9; # more than a buffer of text
    my $program = $MCLOAD;
    my $gone = run_program({command => ['bash', '-c', '"$@" | true; echo "${PIPESTATUS[0]}"', 'bash', $program,
        '-s', $at, '-r', 10, '-t', 0.5, @classes, "--json=$dir/gone.json"], timeout => 120});
    is($gone->{out}, "2\n", 'a report that nobody reads');
    like($gone->{err}, qr/^mcload: cannot write the report: Broken pipe$/m, '... is an error');
    ok(json_of("$dir/gone.json"), '... and the JSON is whole');
    my @unread = ($^X, '-e', 'pipe my $r, my $w; open STDOUT, ">&", $w; close $r; exec @ARGV', $program);
    for my $question ('--help', '--workload=help') {
        is(run_program({command => [@unread, $question]})->{err}, '', "$question: a reader that goes early");
    }
}
SKIP: {
    # A file that may not grow: no signal, and nothing is left of it.
    $run = run_program({command => ['sh', '-c', 'ulimit -f 1; exec "$0" "$@"', $MCLOAD, '-s', $at, '-r', 10, '-t', 100, '--until=n:100',
            "--json=$dir/short"], timeout => 120});
    has($run, 'no room by ulimit -f', status => 2, err => qr{\Q$dir/short\E: File too large});
    ok(!-e "$dir/short", '... and no file');
    skip 'no /dev/full', 1 if !-c '/dev/full';
    $run = mcload(@slowly, @BRIEFLY, '--save=/dev/full');
    is($run->{status}, 2, 'nor one that is full') or diag($run->{out}, $run->{err});
    $run = mcload(@slowly, @BRIEFLY, '--json=/dev/full', '--check=client_cpu:0');
    has($run, 'a run that is worth nothing', out => qr/^INVALID: .*client CPU/m, status => 2);
}

# ---- ended early -------------------------------------------------------------------------

# A run that is interrupted so many seconds after its start: later, where it was still storing its
# records by then, or not even that.
sub interrupted {
    my @args = @_;
    my $run;
    for my $seconds (1.5, 5, 20) {
        $run = run_program({command => ['timeout', '--foreground', '--preserve-status', '-s', 'INT', $seconds,
            $MCLOAD, '-s', $at, '-r', 10, @args], timeout => 120});
        last if $run->{status} != 130 && $run->{err} !~ /interrupted before the run/;
    }
    return $run;
}

# Also before anything is measured: nobody waits for a pause or a warm-up to be over.
for my $before (['-W', 600], ['-w', 600], ['-w', 600, '-q', 100], ['-W', 600, '-q', 100, '-T', 2]) {
    my $early = interrupted(@$before, "--json=$dir/early.json");
    is($early->{status}, 3, "@$before: SIGINT ends it") or diag($early->{err});
    like($early->{out}, qr/^INVALID: (?:.*, )?interrupted/m, '... and the report follows');
    my $json = json_of("$dir/early.json");
    has($json, '... of nothing, in no time', 'totals.requests' => 0, 'totals.seconds' => 0);
}

# ---- env ---------------------------------------------------------------------------------

$run = mcload_json(@load, '-t', 0.3, '--env-report');
chomp(my $kernel = `uname -sr`);
has($run, 'the kernel in the JSON, and in the text, CPUs', 'env.kernel' => qr/^"\Q$kernel\E /,
    out => qr/^Env kernel = \Q$kernel\E /m, out => qr/^Env cpus_online = \d+$/m);
like($run->{json}{"env.$_"}, qr/^"(?:none|\d[\w.]*)"$/, "which $_ it was built with")
    for qw(openssl liburing jansson libzstd zlib hwloc);
my ($table) = $run->{out} =~ /\A(.*?)^read/ms;
unlike($table, qr/Env/, 'behind the table');
unlike(mcload(@load, '-t', 0.3)->{out}, qr/^Env/m, 'only when asked for');

done_testing();
