#!/usr/bin/env perl
# Guests of scripts/lab: what is put into one, what is read from what it printed, and the verdicts.
use File::Basename;
use File::Path 'make_path';
use JSON::PP;
use MCTest;


sub lab(@args) { return run_program({command => ['python3', "$TOP/scripts/lab", 'guest', @args]}) }

# The value of an expression, as JSON.
sub value($expression) {
    my $run = run_program({command => ['python3', '-B', '-c', "import json, sys\nsys.path.insert(0, sys.argv[1])\n"
                . "from lab import guest\nfrom lab.guest import experiments, kernels, machine, results, tables\nprint(json.dumps($expression))",
            "$TOP/scripts/bench"]});
    is($run->{status}, 0, $expression) or diag($run->{err});
    return JSON::PP->new->allow_nonref->decode($run->{out});
}

sub write_program($path, $text) {
    write_file($path, "#!/bin/sh\n$text\n");
    chmod 0755, $path;
}

# ---- arguments ----------------------------------------------------------------------------

for my $case ([['newest', 'walk'], 'invalid choice: \'walk\''], [['newest', 'wake', '--sched', 'deadline'], 'invalid choice'],
    [['newest', 'wake', '--runs', '0'], 'invalid choice']) {
    my $bad = lab(@{$case->[0]});
    is($bad->{status}, 2, "@{$case->[0]}: status 2");
    like($bad->{err}, qr/\Q$case->[1]/, '... with the reason');
}
{
    chomp(my $python = run_program({command => ['python3', '-c', 'import sys; print(sys.executable)']})->{out});
    local $ENV{PATH} = scratch_dir();
    my $bare = run_program({command => [$python, "$TOP/scripts/lab", 'guest', 'newest', 'wake']});
    is($bare->{status}, 1, 'a machine without qemu: status 1');
    like($bare->{err}, qr/^scripts\/lab guest: no qemu-system-x86_64 here: scripts\/deps --lab installs it/,
        '... with what helps');
}

is(value('tables.parts([30, 50])') . ', ' . value('tables.parts([None, None])'), '40 (30-50) %, -', 'a grid all of whose cells are kept loses none');

for my $case ([['nosuch', '--plan'], 'no kernel nosuch: give a path, or one of 6.1, 6.12, newest']) {
    my $bad = lab(@{$case->[0]});
    is($bad->{status}, 1, "@{$case->[0]}: status 1");
    like($bad->{err}, qr/\Q$case->[1]/, '... with the reason');
}

# ---- plans --------------------------------------------------------------------------------

my $plan = lab('6.1', 'wave', '--plan', '--sched', 'nice')->{out};
like($plan, qr/^# nice\nseed=1\nserve -t 1 --sched=other:-20\n/, 'the server has the option of the scheduler');
like($plan, qr/^point alone-10 load \$\(\(peak \* 10 \/ 100\)\)\nstart_wave [\d.]+\npoint beside-10 /m,
    '... each load alone, and beside the batch job');
$plan = lab('6.1', 'grid', '--plan', '--sched', 'fifo', '--sched', 'slice')->{out};
my ($fifo, $slice) = $plan =~ /# fifo\n(.*)# slice\n(.*)/s;
is(scalar(() = $fifo =~ /^point \d+\+\d+ /gm), 25, 'the grid has 25 cells');
like($fifo, qr/exec quota 24 75 \$server,\$\(pidof mcload\) 25 \$service/, '... with quotas for FIFO, by the loads');
unlike($slice, qr/quota/, '... and for FIFO alone');

$plan = lab('newest', 'shares', '--plan', '--sched', 'bvt', '--sched', 'bvt-0')->{out};
like($plan, qr{^# bvt\nseed=1\n/bvt/bvt -w \d+ service=\d+ spinner=\d+ >}, 'BVT is loaded first, with its rules');
like($plan, qr{^# bvt-0\nseed=1\n/bvt/bvt -w 0 >}m, '... or none');
is(scalar(() = $plan =~ /^(?:sleep 1; |point state )grep -x enabled \S+sched_ext\/state(?: \|\| \{.* reboot -f; \})?$/mg), 4,
    '... without it, or when it has ended, there is no result');
is(value('" ".join(word for has_bpf in (False, True) for word in machine.command(has_bpf) if word.startswith("max"))'), 'max,-cx16 max',
    'a processor without cmpxchg16b, but for BPF');
$plan = lab('6.1', 'wake', '--plan', '--sched', 'warp')->{out};
like($plan, qr{^# warp\nseed=1\necho HRTICK >/sys/kernel/debug/sched/features\n.*as warp:40000 }s, 'a patched kernel gives a warp by itself');
is(value('" ".join(kernels.possible("6.12"))'), 'default nice fifo slice', 'a kernel of Debian has no warps');
is(value('" ".join(kernels.possible("newest"))'), 'default nice fifo slice bvt bvt-0', '... but sched_ext, in the newest');
my $folder = scratch_dir() . '/bvt';
mkdir $_ for $folder, "$folder/lib", "$folder/root";
write_file("$folder/$_", $_) for 'bvt', 'lib/bvt', 'lib/libc.so.6', 'root/other';
is(value(qq{" ".join(sorted(machine.bvt("", "$folder")))}), 'bvt/bvt bvt/lib/bvt bvt/lib/libc.so.6',
    'a guest gets it with its libraries, and nothing of what made it');

# ---- what is in a guest -------------------------------------------------------------------

is(value('machine.libraries("\tlinux-vdso.so.1 (0x7ff)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x7f0)\n'
            . '\t/lib64/ld.so.2 (0x7f1)\n").__str__()'),
    "['/lib/x/libm.so.6', '/lib64/ld.so.2']", 'libraries and the loader are copied');
my $file = scratch_dir() . '/one.gz';
value(qq{open("$file", "wb").write(machine.archive({"lib/x/a.so": b"abc", "init": b"#!/bin/sh"}))});
open my $gz, '-|', 'gzip', '-dc', $file or die "gzip: $!";
binmode $gz;
my $cpio = do { local $/; <$gz> };
close $gz;
is(length($cpio) % 4, 0, 'an archive is of whole words');
my %mode;
while ($cpio =~ s/\A070701(.{104})//s) {
    my @field = map {hex} $1 =~ /.{8}/g;
    my ($mode, $size, $len) = @field[1, 6, 11];
    my $name = substr $cpio, 0, $len - 1;
    $cpio = substr $cpio, 4 * int((110 + $len + 3) / 4) - 110;
    $mode{$name} = sprintf '%o %s', $mode, substr $cpio, 0, $size;
    $cpio = substr $cpio, 4 * int(($size + 3) / 4);
}
is($mode{'init'}, '100755 #!/bin/sh', '... with files');
is($mode{'lib/x/a.so'}, '100755 abc', '... in folders');
is($mode{$_}, '40755 ', "... $_") for qw(lib lib/x bin dev proc sys tmp);
ok(exists $mode{'TRAILER!!!'}, '... and an end');

# ---- which kernel -------------------------------------------------------------------------

# A file with the head of a kernel's, that says what it is.
sub write_kernel($path, $release) {
    write_file($path, pack('x514 a4 x8 v x496 a*', 'HdrS', 0x200, "$release (someone\@there) #1\0"));
}

is(value('kernels.release("linux-image-cloud-amd64\n  Depends: linux-base-cloud-amd64\n'
            . '  Depends: linux-image-7.3.4+deb13-cloud-amd64\n")'), '7.3.4+deb13-cloud-amd64', 'the kernel of a package');

{
    my $kernel = scratch_dir() . '/bzImage';
    write_kernel($kernel, '6.1.0-50-x');
    is(value("kernels.release_of('$kernel')"), '6.1.0-50-x', 'the kernel of a file');
    write_file($kernel, 'another one');
    like(lab($kernel, 'wake')->{err}, qr{^scripts/lab guest: \S+/bzImage is no kernel for x86$}, '... or none')
        if system('command -v qemu-system-x86_64 >/dev/null') == 0;
}

# ---- what a guest has printed -------------------------------------------------------------

my $said = '@kernel 6.1\r\nnoise\r\n@point alone-5 0 {\"done_us\": {\"p95\": 7.5}}|@\r\n'
    . '@point peak 0 class,qps,count,errors,valid,50th,95th,99th,max|\"all\",9.5,10,0,false,1,2,3,4|x|@\r\n'
    . '@point spinner 0 0.501|@\r\n@point state 0 enabled|@\r\n@point slow 3 @as slice:100: the kernel ignores it|\r\n';
# What a guest's words make of a result that has one point.
sub told($said) {
    return value(qq{(lambda r: [guest.follow("$said".splitlines(), r, lambda now: None), r][1])}
            . '({"points": {"here": {"share": 1}}, "errors": {}})');
}

is_deeply(told("$said\@server a warning|another|\\r\\n\@end\\r\\n"), {kernel => '6.1', server => 'a warning; another', points => {here => {share => 1}, 'alone-5' => {done_us => {p95 => 7.5}},
        slow => undef, spinner => {share => 0.501}, state => {is => 'enabled'},
        peak => {rate => 9.5, count => 10, errors => 0, valid => JSON::PP::false, done_us => {p50 => 1, p95 => 2, p99 => 3, max => 4}}},
        errors => {slow => 'as slice:100: the kernel ignores it'}}, 'points: of JSON, of CSV, and refused; and what the server says');
is_deeply(value('machine.values_of("class,qps,count,errors,valid,50th,95th,99th,max|all,9,10,0,false,1,2,,")["done_us"]'),
    {p50 => 1, p95 => 2, p99 => 2, max => 2}, 'the slowest is not known: at least the largest that is');
is(value('machine.values_of("class,qps,count,errors,valid,50th,95th,99th,max|all,9,10,0,false,,,,")'), undef,
    '... and nothing is known without any');
is_deeply(value('machine.values_of("class,qps,count,errors,valid,50th,95th,99th,max|all,9,10,0,false,1,,,4")["done_us"]'),
    {p50 => 1, p95 => 4, p99 => 4, max => 4}, 'percentiles that are left open are the largest, at least');
is_deeply(value('experiments.missing(["point alone-5 load 1", "wait 1; result other $? /tmp/other", "start_wave 2"], {})'),
    ['alone-5', 'other'], 'points that a guest has not told are known');
is_deeply(value('experiments.missing(["point alone-5 load 1"], {"alone-5": None})'), [], '... one that it has told is none');
is_deeply(value('[part.splitlines() for part in experiments.plan(experiments.EXPERIMENTS["wave"], experiments.SCHEDULERS["default"], '
            . '[name for name in experiments.points_in("\n".join(experiments.wave(experiments.SCHEDULERS["default"]))) if name != "beside-30"])]'),
    [['seed=1'], ['serve -t 1 '], ['start_wave 1.3', 'point beside-30 load $((peak * 30 / 100))', 'wait $waves']],
    'a plan without the points that have been told: what is needed for the other one');

# The functions of the guest's first process, with programs that only print.
{
    my $there = scratch_dir() . '/init';
    make_path("$there/bin");
    write_program("$there/bin/memcached", 'echo "a warning" >&2');
    write_program("$there/bin/mcload", "until [ -s $there/server.errors ]; do :; done; echo \"\$*\" >$there/mcload.options; echo 1,2");
    write_program("$there/bin/sleep", ':');
    my ($functions) = read_file("$TOP/scripts/bench/lab/guest/init") =~ /^(# result NAME.*?)^as fifo/ms;
    $functions =~ s{/tmp/}{$there/}g;
    local $ENV{PATH} = "$there/bin:$ENV{PATH}";
    my $run = run_program({command => ['sh', '-euc', "INVALID=3\nseed=7\n$functions\nserve -t 1\npoint alone-10 load 1"]});
    is($run->{out}, "\@point peak 0 1,2|\@\n\@server a warning|\n\@point alone-10 0 1,2|\@\n", 'a line for each point, whatever the server says');
    like(read_file("$there/mcload.options"), qr/ --seed=7( .*)?\n\z/, '... with the seed of the round');
}

# A machine that prints and ends, in place of qemu.
SKIP: {
    skip 'no busybox here', 22 if system('command -v busybox >/dev/null') != 0;
    my $there = scratch_dir() . '/qemu';
    make_path("$there/bin");
    write_kernel("$there/kernel", '6.1.0-x');
    my @points = map {("alone-$_", "beside-$_")} 5, 10, 20, 50, 80;
    my $guest = sub ($program, @options) {
        write_program("$there/bin/qemu-system-x86_64", qq{[ "\$1" != --version ] || { echo fake; exit; }\n$program});
        local $ENV{PATH} = "$there/bin:$ENV{PATH}";
        return lab("$there/kernel", 'wake', '--sched', 'default', '--build', $ENV{TOP_BUILDDIR}, '--folder', "$there/lab",
            '--guest-results', "$there/kept", @options);
    };
    my $tell = sub (@names) { join '', "echo \@kernel 6.1.0-x\n", map {"echo '\@point $_ 0 {\"begun_us\": {\"p95\": 20}, \"done_us\": {\"p95\": 25}}|\@'\n"} @names };
    my ($begun, $kept) = ("$there/lab/guests", "$there/kept");
    my $result = sub ($folder, $turn = 1) { decode_json(read_file("$folder/6.1-wake-default.$turn.json")) };
    my $cut = $guest->($tell->(@points[0 .. 2]) . 'echo it broke');
    is($cut->{status}, 1, 'a guest that is cut short: status 1');
    like($cut->{err}, qr{^scripts/lab guest: the guest did not get to its end\. It said what is in \S+wake-default\.1\.log; }, '... which says where its words are');
    like(read_file("$begun/6.1-wake-default.1.log"), qr/^it broke$/m, '... there');
    is(join(' ', sort keys %{$result->($begun)->{points}}), 'alone-10 alone-5 beside-5', '... and its points are kept');
    ok(!-e $kept, '... but not where whole ones are');
    like($guest->("echo '\@point alone-10 0 {'")->{err}, qr/no result of a point is 'alone-10 0 \{'\. It said/, '... words that are none');
    like($guest->('echo @kernel 6.2.0')->{err}, qr/the points so far are of Linux 6\.1\.0-x, this is 6\.2\.0: say --again/, '... another kernel');
    like($guest->("echo \@limit\n")->{err}, qr/did not get to its end, but to the limit of its time\./, '... the limit of its own time');
    like($guest->($tell->(@points[3 .. 8]) . 'echo @end')->{err}, qr/did not tell beside-80\./, '... a point that did not come');
    my $whole = $guest->($tell->($points[9]) . 'echo @end');
    is($whole->{status}, 0, 'it goes on with what is missing') or diag($whole->{err});
    my $first = $result->($kept);
    is($first->{verdict}{near_to}, 80, '... to a verdict');
    is(join(' ', grep { !$first->{$_} } qw(kernel commit host qemu options compiler experiment sched round runs)), '', '... with all about it');
    is(scalar(() = read_file("$kept/6.1-wake-default.1.json") =~ /^  "[^"]+": \{.*\},?$/mg), 10, '... a line for each point');
    is(join(' ', glob "$begun/*.json"), '', '... and nothing is left of the beginning');
    like($guest->('exit 1')->{out}, qr/^\s+beside-80 +p95 20$/m, '... and does not boot once all is there');
    is($guest->('exit 1', '--again')->{status}, 1, '... but to measure it again');
    is_deeply($result->($kept), $first, '... which leaves what is there until it is whole');
    write_file("$begun/6.1-wake-default.2.json", encode_json({%$first, round => 2, commit => 'another'}));
    my $other = $guest->($tell->(@points) . 'echo @end', '--rounds', 2);
    like($other->{err}, qr/6\.1-wake-default\.2\.json is of another version or machine: from the beginning$/m, 'what another version began is not gone on with');
    unlink "$kept/6.1-wake-default.2.json" or die;
    my $rounds = $guest->($tell->(@points) . 'echo @end', '--rounds', 2);
    is(join(' ', $rounds->{out} =~ /^6\.1\.0-x default, (round \d)$/mg), 'round 1 round 2', 'rounds');
    is($result->($kept, 2)->{round}, 2, '... each with a result of its own');
    is_deeply(value('list(experiments.plan(experiments.EXPERIMENTS["wave"], experiments.SCHEDULERS["default"], seed=2))[0]'), 'seed=2', '... and a seed');
}

is(value('experiments.difference({"a": {"p95": 100}}, {"a": {"p95": 99}})'), 0.01, 'two runs: the largest difference');
is(value('experiments.difference({"a": 1}, {"a": 1})'), 0, '... none');
is(value('experiments.difference({"a": {"done_us": {"max": 4.8}}}, {"a": {"done_us": {"max": 5.7}}})'), 0, '... none, by less than a microsecond');
is(value('experiments.difference({"a": {"done_us": {"max": 5}}}, {"a": {"done_us": {"max": 10}}})'), 0.5, '... by several');
is(value('experiments.difference({"a": {"share": 0.4}}, {"a": {"share": 0.5}})'), 0.2, '... of what is no time');
is(value('experiments.difference({"a": 1}, {"b": 1})'), 1, '... all, with other points');

# ---- verdicts -----------------------------------------------------------------------------

sub pairs(%p95) {
    return '{' . join(', ', map {"\"alone-$_\": {\"done_us\": {\"p95\": 100}}, \"beside-$_\": {\"done_us\": {\"p95\": $p95{$_}}}"} sort keys %p95) . '}';
}
is_deeply(value('experiments.judge_pairs(' . pairs(10 => 190, 50 => 200, 80 => 600) . ')'),
    {ratio => {10 => 1.9, 50 => 2, 80 => 6}, near_to => 50, cliff => [80], protects => JSON::PP::true}, 'protected up to half of the CPU');
is_deeply(value('experiments.judge_pairs(' . pairs(5 => 100, 20 => 900, 50 => 100) . ')'),
    {ratio => {5 => 1, 20 => 9, 50 => 1}, near_to => 5, cliff => [20], protects => JSON::PP::false}, 'a cliff in between');
is(value('experiments.ratios({"alone-5": {"begun_us": {"p95": 1}, "done_us": {"p95": 50}}, '
            . '"beside-5": {"begun_us": {"p95": 9}, "done_us": {"p95": 60}}})[5]'), 1, 'delays below 10 us are no different');

is_deeply(value('experiments.judge_shares({"spinner": {"share": 0.52}, "other": {"share": 0.48}})'),
    {share => 0.52, fair => JSON::PP::true}, 'shares: 3 % off a half is fair');
is_deeply(value('experiments.judge_shares({"spinner": {"share": 1}, "other": {"share": 1}})'),
    {share => 1, fair => JSON::PP::false}, '... the other one only ran behind it');
is_deeply(value('experiments.judge_shares({"spinner": {"share": 0.6}, "other": {"share": 0.4}})'),
    {share => 0.6, fair => JSON::PP::false}, '... more is not');

is_deeply(value('experiments.judge_pairs({"alone-10": {"done_us": {"p95": 100}}, "beside-10": {"done_us": {"p95": 100}}, '
            . '"alone-50": {"done_us": {"p95": 100}, "valid": False}, "beside-50": {"done_us": {"p95": 100}, "valid": True}})'),
    {ratio => {10 => 1, 50 => 1}, near_to => 10, cliff => [], protects => JSON::PP::false}, 'a run that mcload calls invalid shows nothing that is kept');

my $grid = value('(lambda cells: experiments.judge_grid({**cells, **{"service-" + k: v for k, v in cells.items()}}))('
        . '{"alone-10": {"done_us": {"p95": 10}}, **{f"{a}+{b}": {"done_us": {"p95": 50 if a + b <= 80 else 51}} '
        . 'for a in experiments.GRID_LOADS for b in experiments.GRID_LOADS}})');
is($grid->{most_good}, 80, 'the grid: good up to a sum of 80 %');
is($grid->{least_bad}, 100, '... and bad from 100 %');
is(scalar @{$grid->{good}}, 10, '... in 10 cells');

# ---- patches/ -----------------------------------------------------------------------------

for my $name ('sched_ext-bvt', 'linux-6.1-bvt') {
    my $build = run_program({command => ["$TOP/patches/$name/build"]});
    is($build->{status}, 2, "$name: build wants a folder");
    like($build->{err}, qr/^usage: /, '... and says so');
}

my $patch = read_file("$TOP/patches/linux-6.1-bvt/bvt.patch");
is(scalar(() = $patch =~ /^(?:-(?!-- )| )/mg), 0, 'the patch to Linux has only added lines, and none of Linux');
my %of = map {$_ => 1} $patch =~ m{^\+\+\+ b/(\S+)$}mg;
my %known = map {(split)[1] => 1} split /\n/, read_file("$TOP/patches/linux-6.1-bvt/sha256");
is_deeply(\%known, \%of, '... and knows the version of each file that it changes');
SKIP: {
    skip 'no bc, bison, flex, patch or xz here', 7 if grep {system("command -v $_ >/dev/null") != 0} qw(bc bison flex patch xz);
    # A source of another version.
    my $there = scratch_dir();
    for my $path (keys %of) {
        make_path(dirname("$there/other/linux-source-6.1/$path"));
        write_file("$there/other/linux-source-6.1/$path", "another\n");
    }
    system('tar', '-C', "$there/other", '-cJf', "$there/linux-source-6.1.tar.xz", 'linux-source-6.1') == 0 or die 'tar failed';
    my $build = run_program({command => ["$TOP/patches/linux-6.1-bvt/build", "$there/out", "$there/linux-source-6.1.tar.xz"]});
    is($build->{status}, 1, 'the source of another version is not patched');
    like($build->{err}, qr/bvt\.patch is for another version of these files/, '... which is said');
    ok(!-e "$there/out/bzImage", '... and nothing is built');
    $build = run_program({command => ["$TOP/patches/linux-6.1-bvt/build", "$there/out", "$there/none.tar.xz"]});
    is($build->{status}, 1, 'a source that is not there: status 1');
    like($build->{err}, qr/none\.tar\.xz: no such file; without it, the package/, '... with what helps');

    # Without a source the package is downloaded, into a folder that is new; here there is none.
    mkdir "$there/bin" or die "bin: $!";
    chmod 0755, write_file("$there/bin/apt-get", "#!/bin/sh\necho \"\$*\" >\"$there/asked\"\nexit 7\n");
    local $ENV{PATH} = "$there/bin:$ENV{PATH}";
    $build = run_program({command => ["$TOP/patches/linux-6.1-bvt/build", "$there/new"]});
    is($build->{status}, 7, 'the status of a download that fails');
    is(read_file("$there/asked"), "download linux-source-6.1\n", '... of the package');
}

# ---- documents ----------------------------------------------------------------------------

{
    my $folder = scratch_dir() . '/results';
    make_path($folder);
    my $files = 0;
    my $put = sub ($kernel, $experiment, $sched, %more) {
        write_file("$folder/" . ++$files . '.json',
            encode_json({kernel => $kernel, experiment => $experiment, sched => $sched, round => $files, commit => 'c' . ($files % 2),
                    errors => {}, %more}));
    };
    my $late = sub ($us, @more) { return {done_us => {p95 => $us}, @more} };
    my %wave = (peak => $late->(900), map { ("alone-$_" => $late->(100), "beside-$_" => $late->($_ == 10 ? 150 : 4000.4)) } 10, 20, 30, 40, 50, 70);
    # What a run that mcload calls invalid shows is marked.
    my @invalid = (valid => JSON::PP::false);
    # The verdict of a file is not that of its points: what an earlier version thought of them.
    $put->('6.12.1-a', 'wave', 'default', points => {%wave, 'beside-10' => $late->(4000.4, @invalid)}, verdict => {ratio => {10 => 1}, near_to => 70});
    $put->('6.1.0-b', 'wave', 'warp', points => {%wave, 'beside-10' => $late->($_->[0]), map { ("beside-$_" => $late->(101)) } 20, @{$_->[1]}})
        for [101, [30]], [110, []], [99, [30]];
    $put->('6.1.0-b', 'wave', 'default', points => \%wave, errors => {'beside-20' => 'it did not come'});
    my @cells = map { my $ours = $_; map { "$ours+$_" } 10, 30, 50, 70, 90 } 10, 30, 50, 70, 90;
    my %grid = (peak => $late->(9), map { ("$_" => $late->(10), "service-$_" => $late->(10)) } 'alone-10', @cells);
    my %few = (%grid, map { ($_ => $late->(51)) } grep { !/^[13]0\+10$/ } @cells);
    $put->('6.12.1-a', 'grid', 'slice', points => {%few, '30+10' => $late->(10, @invalid), '90+90' => $late->(51, @invalid)}, runs => 2,
        difference => 0.0012);
    $put->('6.1.0-b', 'grid', 'slice', points => \%grid, errors => {'service-10+10' => 'the kernel ignores it'});
    $put->('6.12.1-a', 'shares', 'fifo', points => {spinner => {share => 0.5012}, other => {share => 0.4}}, verdict => {share => 0.4});
    my @parts = @{value("tables.sections('$folder', '" . scratch_dir() . "/guest-plots')")};
    my $text = join "\n\n", @parts;
    is(join(' ', map { /^### (\w+)/ ? $1 : () } @parts), 'Memcached Memcached Two', 'a section of each experiment');
    is(join(' ', $parts[4] =~ /^\| (6\.[^|]*?) +\|/mg), '6.1, patches/linux-6.1-bvt 6.12', '... older kernels first; without what failed');
    like($parts[4], qr/^\| 6\.1, .* \| +bvt \| 101 \(99-110\) \/ 100 \|.*\| +20 % \| +3 \| c0, c1 \|$/m, '... the median of rounds, and the least that is kept to');
    like($parts[4], qr/^\| 6\.12 +\| default \| +4,000\* \/ 100 \| +4,000 \/ 100 \|.*\| +0 % \| +1 \| +c1 \|$/m,
        '... by points, not by an old verdict; runs that are invalid are marked');
    like($text, qr/^\| 6\.12 +\| slice:100us \| +1 \| +2 \| +20 % \| +40 % \| +1 \| +c0 \|$/m, '... cells, of which an invalid one is not kept');
    like($text, qr/^\| 6\.12 +\| +fifo:20 \| 50\.1% \| +1 \| +c0 \|$/m, '... shares');
    like($parts[3], qr/ Not measured: 6\.1 with default \(it did not come\), other:-20, fifo:20, slice:100us; 6\.12 with other:-20, /,
        '... and what is missing, with why');
    like($text, qr/ Not measured: 6\.1 with default, other:-20, fifo:20, slice:100us \(the kernel ignores it\);/, '... of each experiment');
    like($parts[1], qr/ Of 6 results 1 has a second run .* by more than 0\.12%\. /, '... and how much a second run differed');
    like(read_file(scratch_dir() . '/guest-plots/lab-guest-wave.svg'), qr/6\.12: default/, '... and a plot');
    is_deeply(value("tables.sections('" . scratch_dir() . "/none', '$folder')"), [], 'nothing of guests that did not run');

    my ($page, $html) = map { scratch_dir() . "/page.$_" } qw(md html);
    write_file($page, "before\n<!-- lab guest: begin -->\nold\n<!-- lab guest: end -->\nbehind\n");
    my $report = sub (@options) {
        return run_program({command => ['python3', "$TOP/scripts/lab", 'report', '--results', scratch_dir() . '/none', '--guest-results', $folder, @options]});
    };
    is($report->('--guests', $page, '--html', $html)->{status}, 0, 'a section of a page is written');
    like(read_file($page), qr/\Abefore\n<!-- lab guest: begin -->\n\n## On other kernels\n.*<!-- lab guest: end -->\nbehind\n\z/s, '... and the rest of it stays');
    unlike(read_file($page), qr/^old$/m, '... in place of the old one');
    my $once = read_file($page);
    $report->('--guests', $page);
    is(read_file($page), $once, '... the same when it is written again');
    like(read_file($html), qr{<td>6\.12</td><td>slice:100us</td><td>1</td>}, '... and the page without a network has it');
    $report->('--markdown', $page);
    like(read_file($page), qr/^## On other kernels$/m, '... and a whole page');
    write_file($page, $once);
    my $none = run_program({command => ['python3', "$TOP/scripts/lab", 'report', '--guest-results', scratch_dir() . '/none', '--guests', $page]});
    like($none->{err}, qr/has no results of scripts\/lab guest/, 'without results nothing is replaced');
    is(read_file($page), $once, '... indeed');

    # Files that are no results.
    my %facts = (kernel => '6.1', experiment => 'shares', sched => 'default', round => 1, commit => 'a', errors => {}, points => {});
    for my $case (['{', 'Expecting'], ['{}', q(it has no 'sched')], ['[]', q('list' object has no attribute)],
        [encode_json({%facts, kernel => 'x'}), 'x is no release of a kernel'], [encode_json({%facts, experiment => 'y'}), q(it has no 'y')],
        [encode_json(\%facts), q(it has no 'spinner')]) {
        my $there = scratch_dir() . '/stray';
        make_path($there);
        write_file("$there/foo.json", $case->[0]);
        my $bad = run_program({command => ['python3', "$TOP/scripts/lab", 'list', '--guest-results', $there]});
        isnt($bad->{status}, 0, "$case->[0] is no result");
        like($bad->{err}, qr{^lab: \S+/foo\.json is not a result of scripts/lab guest \(\Q$case->[1]\E.*\): remove it$}, '... in a sentence');
    }

    # What is missing, as what measures it.
    my $list = run_program({command => ['python3', "$TOP/scripts/lab", 'list', '--guest-results', $folder]})->{out};
    like($list, qr/^    6\.1, patches\/linux-6\.1-bvt with bvt, rounds: 3$/m, 'list: what is there');
    like($list, qr/^    missing: scripts\/lab guest 6\.12 shares --sched default --sched nice --sched slice$/m, '... what is missing');
    like($list, qr/^    missing: scripts\/lab guest 6\.1 grid --sched default --sched nice --sched fifo$/m, '... not what a kernel has refused');
    like($list, qr/^    missing: scripts\/lab guest 6\.1 threads$/m, '... all of a kernel');
    like($list, qr{^    missing: scripts/lab guest FOLDER/bzImage wave --sched warp-0$}m, '... and of the patched one');
}

# ---- the results in the repository --------------------------------------------------------

my @kept = glob "$TOP/doc/lab/guests/*.json";
my $bytes = 0;
for my $path (@kept) {
    my $one = decode_json(read_file($path));
    my ($kernel) = $one->{kernel} =~ /^(\d+\.\d+)/;
    is(basename($path), "$kernel-$one->{experiment}-$one->{sched}.$one->{round}.json", basename($path) . ' has what its name says');
    unlike($one->{commit}, qr/dirty/, '... of a version that is known');
    $bytes += -s $path;
}
cmp_ok($bytes, '<', 1_000_000, 'they are small');
{
    my ($page, $there) = ("$TOP/doc/lab.md", scratch_dir() . '/current');
    make_path($there);
    write_file("$there/lab.md", read_file($page));
    run_program({command => ['python3', "$TOP/scripts/lab", 'report', '--results', scratch_dir() . '/none', '--guests', "$there/lab.md"]});
    is(read_file("$there/lab.md"), read_file($page), 'doc/lab.md has what they show: scripts/lab report --guests doc/lab.md');
    for my $plot (glob "$there/plots/*") {
        is(read_file($plot), read_file("$TOP/doc/plots/" . basename($plot)), '... doc/plots/' . basename($plot));
    }
}

done_testing();
