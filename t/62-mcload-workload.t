#!/usr/bin/env perl
# Workloads of the user's own: --workload=FILE is what its lines say, and --workload=show:NAME
# writes such a file.
use MCTest;
use MCLoad;
use MCSwarm;
use MCTLS;

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;
my @run = ('-s', $at, '-r', '200', @BRIEFLY, '-q', '1k');

sub lines_of { my ($text) = @_; return grep { !/^#/ } split /\n/, $text; }

# ---- what is shown is what is read ---------------------------------------------------------

for my $name (qw(etc fb-wildcard twitter:22 ycsb:e)) {
    my $shown = mcload("--workload=show:$name");
    has($shown, "show:$name", status => 0, out => qr/^# \Q$name\E: .+\n(?:[a-z-]+ = \S+\n){7}\z/);
    my $mine = scratch_file('mine', $shown->{out});
    my $again = mcload("--workload=show:$mine");
    is_deeply([lines_of($again->{out})], [lines_of($shown->{out})], '... which says the same');
}

# The same requests, seen in what a server holds and in what was asked.
sub records($client) {
    put($client, "flush_all\r\n");
    read_line($client);
}

my $s = $server->connect;
my @seen;
my $etc = scratch_file('etc.txt', mcload('--workload=show:etc')->{out});
for my $workload ('etc', $etc) {
    records($s);
    is(mcload('-s', $at, '-r', 2000, '--loadonly', "--workload=$workload")->{status}, 0,
        'records of a workload');
    push @seen, mem_stats($s);
}
cmp_ok($seen[0]{bytes}, '>', 0, 'there are values');
is($seen[1]{bytes}, $seen[0]{bytes}, 'a file makes the same keys and values as its name');
is($seen[1]{curr_items}, 2000, '... all of them');

# ---- fields, and what overrides them ---------------------------------------------------------

my $own = scratch_file('own', <<'END');
# a comment; with anything in it
--keysize = 24     # as on a command line
valuesize=77;flags = 5
getcount = 3
	ops = get:1
value_size_per = key
key-prefix = a#b:
END
records($s);
my $run = mcload_json(@run, "--workload=$own", '--verify=1');
ran_ok($run, 'a file of every kind of line');
is($run->{json}{'load.workload'}, "\"$own\"", '... is named in the report');
my $gets = $run->{json}{'totals.gets'};
has($run, '... and says how many keys a get has', 'totals.keys' => 3 * $gets, 'errors.wrong_value' => 0);
put($s, 'get a#b:' . '0' x 17 . "199\r\n");
is(read_line($s), 'VALUE a#b:' . '0' x 17 . "199 5 77\r\n", '... keys, flags and sizes are its own');
read_line($s) for 1, 2;
records($s);
$run = mcload_json(@run, '-V', 33, "--workload=$own", '--getcount=1', '--flags=6');
is($run->{json}{'totals.keys'}, $run->{json}{'totals.gets'}, 'an option overrides the file');
put($s, 'get a#b:' . '0' x 17 . "199\r\n");
is(read_line($s), 'VALUE a#b:' . '0' x 17 . "199 6 33\r\n", '... before it and behind');
read_line($s) for 1, 2;

$run = mcload_json('-s', $at, @BRIEFLY, '-q', '1k', "--class=a:{workload=$own records=50}",
    '--class=b:{workload=ycsb:c records=50}');
ran_ok($run, 'in a class');
is($run->{json}{'classes.a.load.workload'}, "\"$own\"", '... it is the class\'s');
is($run->{json}{'classes.b.load.workload'}, '"ycsb:c"', '... others have theirs');
$run = mcload_json(@run, '--workload=text:valuesize=9;ops=get:1,set:1');
has($run, 'a text in place of a file, is a workload', 'load.workload' => '"text"', 'totals.sets' => ['>', 0]);
is(mcload('--workload=text:records=7;valuesize=9', '--workload=show:etc')->{out},
    mcload('--workload=show:etc')->{out}, 'the last one counts');

# A file that can be read once.
$run = run_program({command => ['sh', '-c', 'printf "valuesize = 9\n" | "$@"', 'sh',
        $MCLOAD, @run, '--workload=/dev/stdin'], timeout => 120});
ran_ok($run, 'from a pipe');

# ---- what is wrong with it -------------------------------------------------------------------

sub refuses($name, $text, $like) {
    my $file = scratch_file('bad', $text);
    has(mcload(@run, "--workload=$file"), "$name: refused, where it stands, and nothing is run", status => 1,
        err => qr/\Amcload: \Q$file\E:$like[^\n]*\n\z/, out => '');
}

refuses('an unknown field', "keysize = 20\n\nvaluesise = 20\n", '3: .*"valuesise"');
refuses('a bad value', "keysize = 20\nvaluesize = norml:3\n", '2: .*--valuesize "norml:3"');
refuses('a number out of bounds', "\n\nmiss-ratio = 1.5\n", '3: ');
refuses('no field', "keysize 20\n", '1: .*NAME = VALUE');
refuses('no value', "ops = get:1\nkeysize =  # none\n", '2: keysize has no value');
refuses(@$_) for ['no name', "= 20\n", '1: '], ['twice', "keysize = 20\nkeysize = 30\n",
    '2: keysize .* line 1'], ['nothing', "# nothing\n", '1: says nothing'], ['empty', '', '1: says nothing'],
    ['no text', "keysize = 20\nvalue\0size = 3\n", '2: .*no text'];
my $long = mcload('--workload=' . scratch_file('long', "# long\n" x 10000));
has($long, 'too long: refused, in a line', status => 1, err => qr/\Amcload: [^\n]*too long[^\n]*\n\z/);
for my $no ('nope', 'show:nope', "$dir/nope") {
    my $bad = mcload("--workload=$no");
    has($bad, "$no: refused", status => 1, err => qr/\Amcload: unknown workload, and no such file[^\n]*\n\z/);
}
like(mcload("--workload=$dir")->{err}, qr/\Amcload: \Q$dir\E: [^\n]*directory[^\n]*\n\z/, 'a directory');
like(mcload(@run, '--class=a:{workload=nope}')->{err},
    qr/\Amcload: unknown workload[^\n]*\n\z/, 'in a class, too');
like(mcload('-s', $at, "--workload=$$_[0]")->{err}, qr/\Amcload: unknown [^\n]*did you mean $$_[1]\?[^\n]*\n\z/,
    "$$_[0] is like $$_[1]") for ['ycsb-a', 'ycsb:a'], ['Twitter_52', 'twitter:52'], ['fb:app', 'fb-app'];

# ---- keys that no other request has --------------------------------------------------------------

# A record that was not there: also in the runs that follow, and whichever class or process sends.
for (
    ['of several runs', '--ops=insert:1', '--repeat=3'],
    ['of classes', '--ops=insert:1', '--class=a:{}', '--class=b:{threads=1}'],
    ['of classes with other records', '--ops=insert:1', '--class=a:{records=50}', '--class=b:{threads=1}'],
    ['of classes, asked for once', '--one-hit=1', '-u', 1, '--class=a:{}', '--class=b:{threads=1}'],
    ['of an agent and a class of the leader', '--ops=insert:1', '-C', 1, '-Q', 500, '-a', start_agent('127.0.0.3')]
) {
    my ($what, @options) = @$_;
    my $empty = serve();
    $run = mcload('-s', $empty->at, '-r', 10, '--noload', '-T', 2, '-c', 2, '-t', 0.3, '-q', '2k', @options);
    my $stats = mem_stats($empty->connect);
    cmp_ok($stats->{cmd_set}, '>', 0, "sets $what");
    is($stats->{curr_items}, $stats->{cmd_set}, '... are all of new records') or diag($run->{err});
}

# ---- agents ----------------------------------------------------------------------------------

{
    my $agent = start_agent('127.0.0.2');
    my @lead = ('-a', $agent, '-l', 0, '-s', $at, '-r', 200, '-t', 1.2, '-q', 400, '--verify=1');
    records($s);
    $run = mcload_awake(@lead, "--workload=$own");
    ran_ok($run, 'an agent has the file\'s contents');
    is($run->{json}{'totals.keys'}, 3 * $run->{json}{'totals.gets'}, '... and asks what it says');
    put($s, 'get a#b:' . '0' x 17 . "199\r\n");
    is(read_line($s), 'VALUE a#b:' . '0' x 17 . "199 5 77\r\n", '... of these keys');
    read_line($s) for 1, 2;
    $run = mcload_awake(@lead, "--class=a:{workload=$own}", '--class=b:{--valuesize=8 --key-prefix=b}');
    ran_ok($run, '... in a class');
    cmp_ok($run->{json}{'classes.a.totals.keys'} // 0, '>', 0, '... it asks');
    for my $workload ($own, 'ycsb:c') {
        $run = mcload_awake(@lead, "--class=a:{--workload $workload}");
        ran_ok($run, "... and as a word of its own: $workload");
        cmp_ok($run->{json}{'classes.a.totals.keys'} // 0, '>', 0, '... it asks');
    }
    my %naming = (
        sizes => 'valuesize = file:' . scratch_file('sizes.txt', "10\n20\n"),
        cdf => "valuesize = 8\npopularity = cdf:" . scratch_file('cdf.txt', "0.5 0.9\n1 1\n"),
    );
    for my $what (sort keys %naming) {
        my $file = scratch_file($what, "$naming{$what}\n");
        ran_ok(mcload(@run, "--workload=$file"), "a workload that names a file: $what");
        my $bad = mcload(@lead, "--workload=$file");
        has($bad, '... is for one process', status => 1, err => qr/\Amcload: [^\n]*names a file[^\n]*\n\z/);
    }
}

done_testing();
