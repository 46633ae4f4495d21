#!/usr/bin/env perl
# Command lines written for mutilate run as they are: every option by its letter and its long
# name, with '-' and '_' alike, its laws of sizes and gaps; what PerfKitBenchmarker types, and
# what it looks for in the output.
use MCTest;
use MCLoad;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;
my @short = ('-r', '50', '-t', '0.02');

sub stats { return mem_stats($_[0]->control) }

# Whatever the machine made of it: it ran to its end and there is a table.
sub runs($name, @args) {
    my $run = mcload(@args);
    ran_ok($run, "$name runs");
    like($run->{out}, qr/^#type/m, "$name: a table");
    return $run;
}

# ---- every option ------------------------------------------------------------------------

# Options of mutilate by letter and long name, with a value when they take one.
my @options = (
    ['-v'], ['--verbose'], ['--quiet'], ['--binary'], ['-q', '500'], ['--qps=500'],
    ['-t', '0.1'], ['--time=0.1'], ['-K', '20'], ['--keysize=20'], ['-V', '10'],
    ['--valuesize=10'], ['-r', '20'], ['--records=20'], ['-u', '0.5'], ['--update=0.5'],
    ['-T', '2'], ['--threads=2'], ['--affinity'], ['-c', '2'], ['--connections=2'],
    ['-d', '2'], ['--depth=2'], ['-R'], ['--roundrobin'], ['-i', 'fixed'],
    ['--iadist=fixed'], ['-S'], ['--skip'], ['-S', '-q', '500'], ['-B'], ['--blocking'],
    ['--no_nodelay'], ['--no-nodelay'], ['-w', '0.05'], ['--warmup=0.05'], ['-W', '0.05'],
    ['--wait=0.05'], ['-C', '1'], ['--measure_connections=1'],
    ['-Q', '100', '-q', '500'], ['--measure_qps=100', '-q', '500'],
    ['--measure-qps=100', '-q', '500'], ['-D', '1'], ['--measure_depth=1'],
    # mcperf's and IX's
    ['-G', '3'], ['--getq_size=3'], ['--keyorder=seq'], ['--report-stats=1'],
    ['--popularity=zipf:0.99'], ['--moderate'], ['--numreqperconn=10'],
);
runs("@$_", '-s', $at, @short, @$_) for @options;

# Laws: mutilate's names and parameters.
for my $law (qw(20 fixed:20 uniform:100 normal:30,5 exponential:0.05 pareto:15,214.476,0.348238
    gev:30.7984,8.20449,0.078688 fb_key fb_value fb_ia)) {
    runs("-K $law", '-s', $at, @short, '-K', $law);
    runs("-V $law", '-s', $at, @short, '-V', $law);
}
for my $law (qw(20 fixed fixed:20 uniform:100 normal:30,5 exponential exponential:0.0 exponential:1
    pareto:0,16.0292,0.154971 fb_ia)) {
    runs("-i $law", '-s', $at, @short, '-q', '400', '-i', $law);
}

# ---- abbreviations -----------------------------------------------------------------------

# What abbreviates just one option of mutilate means it, though there are others here that begin
# so. The line that refuses the value has the name.
my %short = (qw(ser server qp qps q qps ti time k keysize va valuesize rec records up update us username
    p password th threads c connections co connections conn connections de depth i iadist ia iadist
    war warmup wai wait sa save sea search sc scan la lambda-mul measure_c measure-connections
    measure_q measure-qps measure_d measure-depth agent_ agent-port));
delete $short{q}; # quiet as well
for my $name (sort keys %short) {
    my $full = $short{$name};
    # Texts are taken as they are: they want another.
    my $value = $full eq 'server' ? '127.0.0.1:5-1' : ',';
    my $run = mcload('-s', $at, "--$name=$value", $full =~ /^(?:username|password)$/ ? '--auth-file=/dev/null' : (),
        $full eq 'save' ? '--sample=7' : ());
    is($run->{status}, 1, "--$name: usage");
    my $want = $full =~ /^(?:username|password)$/ ? qr/--username or --password/ : $full eq 'save'
        ? qr/--sample/ : qr/\(--\Q$full\E "/;
    like($run->{err}, $want, "--$name is --$full");
}
runs('flags, abbreviated', '-s', $at, @short, '-q', 500, map { "--$_" } qw(verb qui bi af ro sk mod bl no_ nol));
for my $name (qw(s v t w m no l a ag)) {
    my $run = mcload('-s', $at, "--$name");
    has($run, "--$name is ambiguous, and a line says so", status => 1, err => qr/is ambiguous|needs a value/);
}

# ---- what they do ------------------------------------------------------------------------

{
    my $json = mcload_json('-s', $at, '-t', '0.1')->{json};
    has($json, 'without a rate: closed loop', 'load.mode' => '"closed"', 'totals.loaded' => 10000);
    is($json->{"load.$_"}, 1, "one: $_") for qw(connections depth threads);
    is($json->{'load.update'}, 0, 'no updates');
    my $s = $server->connect;
    put($s, sprintf("get %030d\r\n", 9999));
    like(read_line($s), qr/^VALUE \d{30} 0 200\r\n/, 'keys of 30 bytes, values of 200');
}

# -R: two servers, two threads of two connections: each thread has one server.
{
    my $other = serve();
    my @both = ('-s', $at, '-s', $other->at);
    for my $case ([2, 2], [3, 4], [1, 2]) {
        my ($threads, $each) = @$case;
        my @before = map { stats($_) } $server, $other;
        runs("-R -T $threads", @both, '-r', '50', @BRIEFLY, '-T', $threads, '-c', '2', '-R');
        my @after = map { stats($_) } $server, $other;
        my @count = map { $after[$_]{total_connections} - $before[$_]{total_connections} } 0, 1;
        is("@count", $each == 4 ? '4 2' : '2 2', "-R -T $threads: connections to each server");
        my @sets = map { $after[$_]{cmd_set} - $before[$_]{cmd_set} } 0, 1;
        is("@sets", '50 50', "-R -T $threads: each server has all records");
        my @gets = grep { $after[$_]{cmd_get} > $before[$_]{cmd_get} } 0, 1;
        is(scalar @gets, 2, "-R -T $threads: and is asked for them");
    }
    my $before = stats($other);
    runs('without -R', @both, @short, '-T', '2', '-c', '2');
    # One that was never asked may not have been accepted yet.
    my $made = sub { stats($other)->{total_connections} - $before->{total_connections} };
    wait_until(sub { $made->() >= 4 });
    is($made->(), 4, 'without -R each thread connects to each server');
}

# -W: a pause before the run.
{
    my $before = time;
    runs('-W 2', '-s', $at, @short, '-W', '2');
    cmp_ok(time - $before, '>=', 2, 'the pause is made');
}

# ---- PerfKitBenchmarker --------------------------------------------------------------------

# Its regular expressions, as Python applies them: the first match counts.
my $pkb = <<'PY';
import re, sys
out = open(sys.argv[1]).read()
header = re.search(r'#type([\s\w\d]*)\n', out).group(1).split()
for row, pattern in (('read', r'read([\s\d\.]*)'), ('update', r'update([\s\d\.]*)'), ('op_q', r'op_q([\s\d\.]*)')):
    values = [float(x) for x in re.search(pattern, out).group(1).split()]
    # A percentile among requests never answered (">...") ends the row, which is no error.
    print(row, 0 < len(values) <= len(header))
print('qps', float(re.search(r'Total QPS = ([\d\.]*)', out).group(1)) >= 0)
print('misses', float(re.search(r'Misses = \d+ \(([\d\.]*)%\)', out).group(1)) >= 0)
print('skipped', float(re.search(r'Skipped TXs = \d+ \(([\d\.]*)%\)', out).group(1)) >= 0)
print('rx', float(re.search(r'RX[\s\d]*bytes :\s*([\d\.]*) MB/s', out).group(1)) >= 0)
print('tx', float(re.search(r'TX[\s\d]*bytes :\s*([\d\.]*) MB/s', out).group(1)) >= 0)
PY

sub parses($name, $out) {
    my $file = "$dir/out";
    write_file($file, $out);
    my $run = run_program({command => ['python3', '-c', $pkb, $file]});
    is($run->{out}, join('', map { "$_ True\n" } qw(read update op_q qps misses skipped rx tx)),
        "$name: its output is parsed") or diag($run->{err}, $out);
}

my @sizes = ('--keysize=30', '--valuesize=200', '--records=100');
my $run = mcload(@sizes, "--server=$at", '--binary', '--loadonly');
has($run, '--loadonly, --loadonly has no table', status => 0, out => '');

my @measure = (@sizes, '--roundrobin', "--server=$at", '--noload', '--time=0.3', '--update=0.0',
    '--threads=2', '--connections=4', '--depth=1', '--iadist=exponential:0.0');
for my $case ([], ['--qps=2000'], ['--binary', '--blocking', '--qps=2000'],
    ['--measure_connections=1', '--measure_qps=500', '--measure_depth=1', '--qps=2000']) {
    my $name = "PerfKitBenchmarker: @$case";
    parses($name, runs($name, @measure, @$case)->{out});
    parses("$name $_", mcload(@measure, @$case, $_)->{out}) for '--format=mutilate', '--format=mutilate,text';
}
$run = mcload(@sizes, "--server=$at", '--noload', '--time=0.6', '--connections=4',
    '--search=99:1000', '--search-budget=4');
ran_ok($run, '--search=99:1000 runs');
parses('--search=99:1000', $run->{out});

done_testing();
