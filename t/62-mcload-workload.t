#!/usr/bin/env perl
# Workloads of the user's own: --workload=FILE is what its lines say, and --workload=show:NAME
# writes such a file.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCLoad;
use MCSwarm;
use MCTLS;
use MCTest;

my $dir = scratch_dir();
my $server = start_server();
my $at = '127.0.0.1:' . $server->port;
my @run = ('-s', $at, '-r', '200', '-t', '0.4', '-q', '1k');

sub file {
    my ($name, $text) = @_;
    open my $out, '>', "$dir/$name" or die "$dir/$name: $!";
    print $out $text;
    close $out or die;
    return "$dir/$name";
}

# It ran; whether a machine this busy lets it be valid is another question.
sub ran {
    my ($run, $name) = @_;
    return ok($run->{status} == 0 || $run->{status} == 3, $name) || diag($run->{err});
}

sub lines_of { my ($text) = @_; return grep { !/^#/ } split /\n/, $text; }

# ---- what is shown is what is read ---------------------------------------------------------

for my $name (qw(etc fb-wildcard twitter:22 ycsb:e)) {
    my $shown = mcload("--workload=show:$name");
    is($shown->{status}, 0, "show:$name");
    like($shown->{out}, qr/^# \Q$name\E: .+\n(?:[a-z-]+ = \S+\n){7}\z/, '... is a file of lines');
    my $mine = file('mine', $shown->{out});
    my $again = mcload("--workload=show:$mine");
    is_deeply([lines_of($again->{out})], [lines_of($shown->{out})], '... which says the same');
}

# The same requests, seen in what a server holds and in what was asked.
sub records {
    my ($client) = @_;
    put($client, "flush_all\r\n");
    read_line($client);
    return;
}

my $s = $server->connect;
my @seen;
my $etc = file('etc.txt', mcload('--workload=show:etc')->{out});
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

my $own = file('own', <<'END');
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
ran($run, 'a file of every kind of line');
is($run->{json}{'load.workload'}, "\"$own\"", '... is named in the report');
my $gets = $run->{json}{'totals.gets'};
is($run->{json}{'totals.keys'}, 3 * $gets, '... and says how many keys a get has');
is($run->{json}{'errors.wrong_value'}, 0, '... values are verified');
put($s, 'get a#b:' . '0' x 17 . "199\r\n");
is(read_line($s), 'VALUE a#b:' . '0' x 17 . "199 5 77\r\n", '... keys, flags and sizes are its own');
read_line($s) for 1, 2;
records($s);
$run = mcload_json(@run, '-V', 33, "--workload=$own", '--getcount=1', '--flags=6');
is($run->{json}{'totals.keys'}, $run->{json}{'totals.gets'}, 'an option overrides the file');
put($s, 'get a#b:' . '0' x 17 . "199\r\n");
is(read_line($s), 'VALUE a#b:' . '0' x 17 . "199 6 33\r\n", '... before it and behind');
read_line($s) for 1, 2;

$run = mcload_json('-s', $at, '-t', '0.4', '-q', '1k', "--class=a:{workload=$own records=50}",
    '--class=b:{workload=ycsb:c records=50}');
ran($run, 'in a class');
is($run->{json}{'classes.a.load.workload'}, "\"$own\"", '... it is the class\'s');
is($run->{json}{'classes.b.load.workload'}, '"ycsb:c"', '... others have theirs');
$run = mcload_json(@run, '--workload=text:valuesize=9;ops=get:1,set:1');
is($run->{json}{'load.workload'}, '"text"', 'a text in place of a file');
cmp_ok($run->{json}{'totals.sets'}, '>', 0, '... is a workload');
is(mcload('--workload=text:records=7;valuesize=9', '--workload=show:etc')->{out},
    mcload('--workload=show:etc')->{out}, 'the last one counts');

# A file that can be read once.
$run = run_program({command => ['sh', '-c', 'printf "valuesize = 9\n" | "$@"', 'sh',
        $ENV{MCLOAD} || './loadgen/mcload', @run, '--workload=/dev/stdin'], timeout => 60});
ran($run, 'from a pipe');

# ---- what is wrong with it -------------------------------------------------------------------

sub refuses {
    my ($name, $text, $like) = @_;
    my $file = file('bad', $text);
    my $bad = mcload(@run, "--workload=$file");
    is($bad->{status}, 1, "$name: refused");
    like($bad->{err}, qr/\Amcload: \Q$file\E:$like[^\n]*\n\z/, '... where it stands');
    is($bad->{out}, '', '... and nothing is run');
}

refuses('an unknown field', "keysize = 20\n\nvaluesise = 20\n", '3: .*"valuesise"');
refuses('a bad value', "keysize = 20\nvaluesize = norml:3\n", '2: .*--valuesize "norml:3"');
refuses('a number out of bounds', "\n\nmiss-ratio = 1.5\n", '3: ');
refuses('no field', "keysize 20\n", '1: .*NAME = VALUE');
refuses('no value', "ops = get:1\nkeysize =  # none\n", '2: keysize has no value');
refuses('no name', "= 20\n", '1: ');
refuses('twice', "keysize = 20\nkeysize = 30\n", '2: keysize .* line 1');
refuses('nothing', "# nothing\n", '1: says nothing');
refuses('empty', '', '1: says nothing');
refuses('no text', "keysize = 20\nvalue\0size = 3\n", '2: .*no text');
my $long = mcload('--workload=' . file('long', "# long\n" x 10000));
is($long->{status}, 1, 'too long: refused');
like($long->{err}, qr/\Amcload: [^\n]*too long[^\n]*\n\z/, '... in a line');
for my $no ('nope', 'show:nope', "$dir/nope") {
    my $bad = mcload("--workload=$no");
    is($bad->{status}, 1, "$no: refused");
    like($bad->{err}, qr/\Amcload: unknown workload, and no such file[^\n]*\n\z/, '... in a line');
}
like(mcload("--workload=$dir")->{err}, qr/\Amcload: \Q$dir\E: [^\n]*directory[^\n]*\n\z/, 'a directory');
like(mcload(@run, '--class=a:{workload=nope}')->{err},
    qr/\Amcload: unknown workload[^\n]*\n\z/, 'in a class, too');
like(mcload('-s', $at, "--workload=$$_[0]")->{err}, qr/\Amcload: unknown [^\n]*did you mean $$_[1]\?[^\n]*\n\z/,
    "$$_[0] is like $$_[1]") for ['ycsb-a', 'ycsb:a'], ['Twitter_52', 'twitter:52'], ['fb:app', 'fb-app'];

# ---- agents ----------------------------------------------------------------------------------

{
    my $agent = start_agent('127.0.0.2');
    my @lead = ('-a', $agent, '-l', 0, '-s', $at, '-r', 200, '-t', 0.4, '-q', 400, '--verify=1');
    records($s);
    $run = mcload_json(@lead, "--workload=$own");
    ran($run, 'an agent has the file\'s contents');
    is($run->{json}{'totals.keys'}, 3 * $run->{json}{'totals.gets'}, '... and asks what it says');
    put($s, 'get a#b:' . '0' x 17 . "199\r\n");
    is(read_line($s), 'VALUE a#b:' . '0' x 17 . "199 5 77\r\n", '... of these keys');
    read_line($s) for 1, 2;
    $run = mcload_json(@lead, "--class=a:{workload=$own}", '--class=b:{--valuesize=8 --key-prefix=b}');
    ran($run, '... in a class');
    cmp_ok($run->{json}{'classes.a.totals.keys'} // 0, '>', 0, '... it asks');
    for my $workload ($own, 'ycsb:c') {
        $run = mcload_json(@lead, "--class=a:{--workload $workload}");
        ran($run, "... and as a word of its own: $workload");
        cmp_ok($run->{json}{'classes.a.totals.keys'} // 0, '>', 0, '... it asks');
    }
    my %naming = (
        sizes => 'valuesize = file:' . file('sizes.txt', "10\n20\n"),
        cdf => "valuesize = 8\npopularity = cdf:" . file('cdf.txt', "0.5 0.9\n1 1\n"),
    );
    for my $what (sort keys %naming) {
        my $file = file($what, "$naming{$what}\n");
        ran(mcload(@run, "--workload=$file"), "a workload that names a file: $what");
        my $bad = mcload(@lead, "--workload=$file");
        is($bad->{status}, 1, '... is for one process');
        like($bad->{err}, qr/\Amcload: [^\n]*names a file[^\n]*\n\z/, '... which is said in a line');
    }
}

done_testing();
