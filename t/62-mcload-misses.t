#!/usr/bin/env perl
# What follows a miss (--on-miss): nothing, a set at once, a set when a backend has answered,
# or a set by who has the lease.
use MCTest;
use MCLoad;

my $server = serve();
my $at = $server->at;
my $s = $server->connect;
my $runs = 0;

# A run on keys of its own, none of which is there: its counts, and the sets that the server had.
sub missing($name, @args) {
    my $before = mem_stats($s)->{cmd_set};
    my @briefly = grep({ $_ eq '-t' } @args) ? () : ('-t', 100, '--until=n:500');
    my $run = mcload_json('-s', $at, '--noload', '-r', 20, @briefly, '--key-prefix=m' . ++$runs . ':', @args);
    my $j = $run->{json};
    ran_ok($run, "$name: a run");
    my %count = (out => $run->{out}, sets => mem_stats($s)->{cmd_set} - $before,
        map { ($_ => $j->{"totals.$_"}) } qw(gets keys misses));
    $count{$_} = $j->{"totals.after_misses.$_"} for qw(left_out leases_won leases_waited given_up stale_hits);
    $count{filled} = $j->{'totals.after_misses.sets'};
    $count{$_} //= -1 for qw(gets misses filled left_out leases_won leases_waited given_up stale_hits);
    is(join(' ', map { $j->{"errors.$_"} // 0 } qw(error client_error desync wrong_value)), '0 0 0 0',
        "$name: no errors");
    return \%count;
}

# ---- nothing, and at once --------------------------------------------------------------------

my $c = missing('ignore', '--on-miss=ignore');
has($c, 'ignore: nothing is stored, and nothing found', sets => 0, misses => $c->{keys});
unlike($c->{out}, qr/^(?:After misses|Leases)/m, '... of which no line tells');
$c = missing('set', '--on-miss=set', '-c', 1);
# The last one may be on its way when the window ends.
cmp_ok($c->{sets} - $c->{filled}, '<=', 1, 'set: each set is counted');
cmp_ok($c->{misses} - $c->{filled}, '<=', 1, '... one for each miss of a connection');
has($c, '... there are some, and none of what is there, in a line', filled => ['>', 0], filled => ['<=', 20],
    out => qr/^After misses = $c->{filled} sets \(0 left out\)$/m);

# ---- when a backend has answered -------------------------------------------------------------

$c = missing('set-after:60s', '--on-miss=set-after:60s', '-c', 1);
has($c, 'set-after:60s: nothing is stored before its time, and nothing waits for it, nothing is left out',
    sets => 0, misses => ['>', 1], left_out => 0);
# One after the other, and more than there are in 20 ms, so that there are some behind that time.
$c = missing('set-after:20ms', '--on-miss=set-after:20ms', '-c', 1, '-r', 1, '-t', 100, '--until=n:20k');
has($c, 'set-after:20ms: what was missed is stored, and found from then on',
    filled => ['>', 0], filled => ['<=', $c->{misses}], misses => ['<', $c->{gets}]);
for my $law ('uniform:0.001,0.03', 'exponential:200') {
    for my $load (['-q', '1k', '-c', 4], ['-d', 4, '--getcount=3'], ['-T', 2, '--protocol=binary']) {
        $c = missing("set-after:$law @$load", "--on-miss=set-after:$law", @$load, '--verify=1');
        has($c, '... stores, as the server has seen, and finds', filled => ['>', 0],
            filled => ['<=', $c->{sets}], misses => ['<', $c->{keys}]);
    }
}
$c = missing('a crowd', '--on-miss=set-after:60s', '-r', '1m', '--getcount=1000', '-K', 10, '-d', 4, '-c', 4, '-t', 100,
    '--until=n:100');
cmp_ok($c->{misses}, '>', 0, 'a crowd: many are missed');
is($c->{left_out}, $c->{misses} > 65536 ? $c->{misses} - 65536 : 0, '... those that find no room are counted')
    or diag("$c->{misses} misses");

# A trace: what it has told the length of.
my $trace = scratch_dir() . '/trace.csv';
write_file($trace, map { sprintf "%d,key%d,7,10,1,get,0\n", $_ / 1000, $_ % 10 } 0 .. 3999);
my $before = mem_stats($s)->{cmd_set};
my $run = mcload_json('-s', $at, "--trace=$trace", '--trace-format=twitter', '--trace-time=rate', '-q', '8k',
    '--on-miss=set-after:5ms', '-t', 100);
ran_ok($run, 'a trace with set-after');
cmp_ok($run->{json}{'totals.after_misses.sets'}, '>=', 10, '... each key is stored');
is($run->{json}{'totals.after_misses.sets'}, mem_stats($s)->{cmd_set} - $before, '... before it ends');

# The server stops while backends answer: far more keys are due then than a connection has room for.
write_file($trace, map { sprintf "0,stall%d,7,10,1,get,0\n", $_ } 0 .. 3999);
my $gets = mem_stats($s)->{cmd_get};
my $stopper = in_child(sub {
    my $own = $server->connect;
    select undef, undef, undef, 0.005 until mem_stats($own)->{cmd_get} >= $gets + 1000;
    kill 'STOP', $server->pid;
    select undef, undef, undef, 0.5;
    kill 'CONT', $server->pid;
});
$run = mcload_json('-s', $at, "--trace=$trace", '--trace-format=twitter', '--trace-time=rate', '-q', '8k', '-c', 1,
    '-d', 1, '--on-miss=set-after:200ms', '-t', 100);
waitpid $stopper, 0;
ran_ok($run, 'a server that stops meanwhile');
has($run, '... each key is stored', 'totals.after_misses.sets' => 4000, 'totals.after_misses.left_out' => 0);

# The trace is over, and a backend has yet to answer: that is slept through. What a run takes in any
# case is much under a sanitizer, and more on a busy machine.
my %cpu;
for my $case (['short', '5ms'], ['slow', '2s']) {
    my ($name, $backend) = @$case;
    write_file($trace, map { sprintf "0,$name%d,7,10,1,get,0\n", $_ } 0 .. 9);
    my @before = times;
    $run = mcload_json('-s', $at, "--trace=$trace", '--trace-format=twitter', '--trace-time=rate', '-q', 100,
        "--on-miss=set-after:$backend", '-t', 100);
    $cpu{$name} = (times)[2] + (times)[3] - $before[2] - $before[3];
    is($run->{json}{'totals.after_misses.sets'}, 10, "a trace, and a backend of $backend: each key is stored")
        or diag($run->{err});
}
cmp_ok($cpu{slow}, '<', 1 + 2 * $cpu{short}, '... and waited for without work');

# A server that has nothing, and closes a connection behind its tenth get. Its port.
sub start_closing {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die "listen: $!";
    in_child(sub {
        $SIG{CHLD} = 'IGNORE';
        while (1) {
            my $conn = $listener->accept or next;
            in_child(sub {
                my $gets = 0;
                while ($gets < 10 && defined(my $line = <$conn>)) {
                    $gets++ if $line =~ /^get /;
                    <$conn> if $line =~ /^set /;
                    $conn->syswrite($line =~ /^get / ? "END\r\n" : $line =~ /^set / ? "STORED\r\n" : "ERROR\r\n");
                }
            });
        }
    });
    return $listener->sockport;
}

# Who asked on a connection that was lost is gone, though it is up again by then.
{
    my $port = start_closing();
    write_file($trace, map { sprintf "0,lost%d,7,10,1,get,0\n", $_ } 0 .. 9);
    $run = mcload_json('-s', "127.0.0.1:$port", "--trace=$trace", '--trace-format=twitter', '--trace-time=rate',
        '-q', 100, '-c', 1, '--noload', '--reconnect=now', '--on-miss=set-after:3s', '-t', 100);
    has($run, 'a connection is lost, and back, the keys missed on it are left out, and not stored by the next one',
        'totals.opened' => 2, 'totals.after_misses.left_out' => 10, 'totals.after_misses.sets' => 0);
}

# ---- who has the lease -----------------------------------------------------------------------

my @meta = ('--protocol=meta', '--verify=1');
for my $load (['-q', '2k', '-c', 4], ['-c', 4], ['-c', 4, '--getcount=4'], ['-T', 2, '-d', 4]) {
    for my $lease ('lease', 'lease:30ms') {
        # With a time before the value is there, and one behind it.
        my @load = $lease eq 'lease' ? @$load : (@$load, '-q', '2k', '-t', 100, '--until=n:1k');
        my $name = "$lease @load";
        $c = missing($name, "--on-miss=$lease", @meta, @load);
        has($c, "$name: leases are given, one a key, who has one stores, and nobody else, others are told to wait, and find it then, in a line",
            leases_won => ['>', 0], leases_won => ['<=', 20], filled => ['>', 0], sets => ['<=', 20],
            misses => $c->{leases_won} + $c->{leases_waited}, misses => ['<', $c->{keys}],
            out => qr/^Leases = $c->{leases_won} won, $c->{leases_waited} waited for \($c->{given_up} given up\), 0 stale/m);
    }
}
# 2000 answers are of 180 requests at the least, the first of which have asked as often as they do by then.
$c = missing('lease:60s', '--on-miss=lease:60s', @meta, '-r', 1, '-q', 200, '-t', 100, '--until=n:2000');
has($c, 'lease:60s: one has it, and does not store yet, others give up in the end, after they have asked again',
    leases_won => 1, sets => 0, given_up => ['>', 0], leases_waited => ['>', $c->{given_up}]);
$c = missing('absent keys', '--on-miss=lease', @meta, '--miss-ratio=1');
has($c, 'absent keys have no leases, and are not stored', leases_won => 0, sets => 0);
$c = missing('rmw', '--on-miss=lease', @meta, '--ops=get:1,rmw:1,cas:1', '-c', 2);
has($c, 'a mix that stores anyway: leases are given', leases_won => ['>', 0], leases_won => ['<=', 20]);

# A value that was declared to be out of date is used until it is stored anew, by one.
my $key = 'stale:' . '0' x 24;
is(mcload('-s', $at, '--loadonly', '-r', 1, '--key-prefix=stale:')->{status}, 0, 'a record');
put($s, "md $key I T60\r\n");
is(read_line($s), "HD\r\n", '... is out of date');
$run = mcload_json('-s', $at, '--noload', '-r', 1, '--key-prefix=stale:', '-t', 100, '--until=n:20k', '-c', 4, @meta,
    '--on-miss=lease:20ms');
has($run, 'stale: it is found all the same', 'totals.misses' => 0, 'totals.after_misses.leases_won' => 1,
    'totals.after_misses.stale_hits' => ['>', 0],
    'totals.after_misses.stale_hits' => ['<', $run->{json}{'totals.hits'}], 'errors.wrong_value' => 0,
    out => qr/^Leases = 1 won, 0 waited for \(0 given up\), \d+ stale hits$/m);

# ---- command lines ---------------------------------------------------------------------------

for my $bad (['--on-miss=lease'], ['--on-miss=lease', '--binary'], ['--on-miss=lease:x', '--protocol=meta'],
    ['--on-miss=leases', '--protocol=meta'], ['--on-miss=set-after'], ['--on-miss=set-after:'],
    ['--on-miss=set-after:soon'], ['--on-miss=sets'], ['--on-miss=set-after:1ms', '--protocol=http'])
{
    my $refused = mcload('-s', $at, '-t', 0.1, @$bad);
    has($refused, "@$bad: refused, in a line", status => 1, err => qr/\Amcload: [^\n]+\n\z/);
}

done_testing();
