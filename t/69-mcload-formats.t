#!/usr/bin/env perl
# The forms of mcload's report: mutilate's to the byte, CSV, JSON on stdout, HdrHistogram's
# percentile distribution, columns of choice, plots.
use MCTest;
use MCLoad;

my $dir = scratch_dir();
my $server = serve();
my @at = ('-s', $server->at, '-r', '500', '-t', 100, '--until=n:200');

# ---- mutilate --------------------------------------------------------------------------

my $run = mcload(@at, '-q', '2k', '-u', '0.3', '--format=mutilate');
ran_ok($run, 'format mutilate');
my $number = qr/ (?:[ \d]{5}|\d{6,})\.\d/;
like($run->{out}, qr{\A
\#type\ {7}avg\ {5}std\ {5}min\ {5}5th\ {4}10th\ {4}90th\ {4}95th\ {4}99th\n
read\ \ \ (?:$number){8}\n
update\ (?:$number){8}\n
op_q\ \ \ (?:$number){8}\n
\n
Total\ QPS\ =\ \d+\.\d\ \(\d+\ /\ \d+\.\ds\)\n
\n
Misses\ =\ 0\ \(0\.0%\)\n
Skipped\ TXs\ =\ 0\ \(0\.0%\)\n
\n
RX\ [\ \d]{9}\d\ bytes\ :\ [\ \d]{4}\.\d\ MB/s\n
TX\ [\ \d]{9}\d\ bytes\ :\ [\ \d]{4}\.\d\ MB/s\n
\z}x, 'every byte of it');
like($run->{err}, qr/^(?:IN)?VALID/m, 'the verdict goes to stderr');
$run = mcload(@at, '--noload', '-q', '1k', '--format=mutilate', '--quiet');
is($run->{err}, '', 'nothing there with --quiet');

# A scan: the columns of the table, then what was achieved and asked for.
$run = mcload(@at, '--noload', '--scan=500:1000:500', '--format=mutilate', '-u', '0.2');
ran_ok($run, 'a scan in format mutilate');
like($run->{out}, qr{\A
\#type\ {7}avg\ {5}std\ {5}min\ {5}5th\ {4}10th\ {4}90th\ {4}95th\ {4}99th\ {6}QPS\ {3}target\n
(?:read\ \ \ (?:$number){8}\ [\ \d]{6}\.\d\ {5}(?:\ 500|1000)\n){2}
\z}x, 'every byte of it');

# Numbers only, also where requests were never answered: what they are is said beside.
my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8) or die "listen: $!";
$run = mcload('-s', '127.0.0.1:' . $mute->sockport, '--noload', '-t', '0.4', '-q', '500', '-c', '2',
    '--format=mutilate');
has($run, 'a server that says nothing', status => 3, out => qr/^read   (?:$number){8}$/m);
my ($p99) = $run->{out} =~ /^read .* ([\d.]+)$/m;
cmp_ok($p99, '>', 100_000, '... which say how long requests were waited for');
like($run->{err}, qr/^mcload: \d+ requests were never answered: /m, '... and stderr says so');

# ---- CSV and JSON ----------------------------------------------------------------------

$run = mcload(@at, '--noload', '-q', '2k', '--format=csv', '--percentiles=50,99');
ran_ok($run, 'format csv');
my @lines = split /\n/, $run->{out};
is(shift @lines, 'class,type,count,unanswered,avg,std,min,50th,99th,max,qps,keys,misses,errors,seconds,valid',
    'its header');
is(scalar @lines, 2, 'a line for each type');
like($lines[0], qr/^"all",read,\d+,\d+(?:,[\d.]*){11},(?:true|false)$/, 'reads');
like($lines[1], qr/^"all",update,0,0(?:,[\d.]*){7},,,,[\d.]+,(?:true|false)$/, 'updates: keys, misses and errors stand once');
is(scalar(split /,/, $lines[1]), 16, '... as many fields as names');

# Several runs have one line of names, and nothing else but theirs.
$run = mcload(@at, '--noload', '-q', '1k', '--format=csv', '--repeat=2');
is(join(' ', map { /^class,/ ? 'names' : /^"all",(\w+)/ ? $1 : $_ } split /\n/, $run->{out}),
    'names read update read update', 'repeats as CSV');
like($run->{err}, qr/^Repeats = 2: /m, '... and how they differ on stderr');
$run = mcload(@at, '--noload', '--scan=500:1000:500', '--format=csv', '--percentiles=50');
@lines = split /\n/, $run->{out};
like(shift @lines, qr/^class,.*,valid,target$/, 'a scan as CSV: the rate has a name');
is(join(' ', map { (split /,/)[1, -1] } @lines), 'read 500 update 500 read 1000 update 1000',
    '... and stands behind each line');
$run = mcload(@at, '--scan=500:1000:500', '--hgrm', "$dir/scan");
is($run->{status}, 1, 'a scan has no histogram of one run');
for my $file (['--hlog', "$dir/scan.hlog"], ['--save', "$dir/scan.save"]) {
    $run = mcload(@at, '--scan=500:1000:500', @$file);
    has($run, "... nor $file->[0]", status => 1, err => qr/\Amcload: --hlog and --save [^\n]+ scan\n\z/);
    ok(!-e $file->[1], '... and makes no file');
}

$run = mcload(@at, '--noload', '-q', '2k', '--format=json', '--output', "$dir/out.json");
ran_ok($run, 'format json');
is($run->{out}, '', 'nothing on stdout with --output');
is(json_of("$dir/out.json")->{schema}, '"mcload/1"', 'the report is the JSON');

# ---- columns ---------------------------------------------------------------------------

$run = mcload(@at, '--noload', '-q', '2k', '--percentiles=1,22,33,50,99.5,99.99');
ran_ok($run, '--percentiles');
is(join(' ', ($run->{out} =~ /^#type(.*)$/m)[0] =~ /\S+/g),
    'avg std min 1st 22nd 33rd 50th p995 p9999 max', 'the columns asked for');
is(scalar(split ' ', ($run->{out} =~ /^update(.*)$/m)[0]), 10, 'with a value each');

# ---- histograms and plots --------------------------------------------------------------

$run = mcload(@at, '--noload', '--until=n:1k', '-q', '2k', '--hgrm', "$dir/h", '--plot', $dir, '--json',
    "$dir/h.json");
ran_ok($run, '--hgrm and --plot');
my $json = json_of("$dir/h.json");
for my $name ('h.hgrm', 'h-issue.hgrm') {
    my $text = read_file("$dir/$name");
    my @rows = $text =~ /^ +([\d.]+) ([\d.]+) +(\d+)(?: +([\d.]+))?$/mg;
    like($text, qr/\A {7}Value {5}Percentile TotalCount 1\/\(1-Percentile\)\n\n/, "$name: header");
    # A step of the distribution each, of which there are few where many had no answer.
    cmp_ok(scalar @rows / 4, '>', $json->{'latency.intended.censored'} ? 1 : 20, '... lines');
    my $rises = 1;
    for (my $i = 4; $i < @rows; $i += 4) {
        $rises &&= $rows[$i] >= $rows[$i - 4] && $rows[$i + 1] > $rows[$i - 3] && $rows[$i + 2] > $rows[$i - 2];
    }
    ok($rises, '... that rise');
    is($rows[-2], $json->{'latency.intended.count'}, '... to the number of answers');
    like($text, qr/^#\[Mean    = +[\d.]+, StdDeviation   = +[\d.]+\]$/m, '... mean');
    like($text, qr/^#\[Max     = +[\d.]+, Total count    = +\d+\]$/m, '... total');
}
like(read_file("$dir/cdf.svg"), qr{<polyline.*</svg>\n\z}s, 'a plot by percentile');
like(read_file("$dir/time.svg"), qr{<polyline.*</svg>\n\z}s, 'a plot by time');

# ---- refused ---------------------------------------------------------------------------

for my $args (['--format=xml'], ['--percentiles='], ['--percentiles=0'], ['--percentiles=100'],
    ['--percentiles=50,'], ['--percentiles=x'], ['--output', "$dir/no/such"],
    ['--percentiles=' . join(',', (50) x 40)]) {
    $run = mcload(@at, @$args);
    has($run, "$args->[0]: usage, nothing on stdout, one line", status => 1, out => '', err_lines => 1);
}
for my $args (['--hgrm', "$dir/no/such"], ['--plot', "$0/no"]) {
    $run = mcload(@at, '--noload', @$args);
    has($run, "@$args: cannot be written, and says so", status => 1, err => qr/^mcload: cannot write/m);
}
for my $pair (['--json', '--output'], ['--save', '--json'], ['--hlog', '--save']) {
    $run = mcload(@at, '--noload', map { ($_, "$dir/both") } @$pair);
    has($run, "@$pair in one file: usage, one line", status => 1, err => qr/\Amcload: [^\n]*the same file\n\z/);
}

done_testing();
