#!/usr/bin/env perl
# What follows a miss (--on-miss): nothing, a set at once, a set when a backend has answered,
# or a set by who has the lease.
use strict;
use warnings;
use FindBin;
use IO::Socket::INET;
use POSIX ();
use lib "$FindBin::Bin/lib";
use Test::More;
use MCLoad;
use MCTest;

my $server = start_server({args => ['--compat=1.6']});
my $at = '127.0.0.1:' . $server->port;
my $s = $server->connect;
my $runs = 0;

# A run on keys of its own, none of which is there: its counts, and the sets that the server had.
sub missing {
    my ($name, @args) = @_;
    my $before = mem_stats($s)->{cmd_set};
    my @briefly = grep({ $_ eq '-t' } @args) ? () : ('-t', 100, '--until=n:500');
    my $run = mcload_json('-s', $at, '--noload', '-r', 20, @briefly, '--key-prefix=m' . ++$runs . ':', @args);
    my $j = $run->{json};
    ok($run->{status} == 0 || $run->{status} == 3, "$name: a run") or diag($run->{err});
    my %count = (out => $run->{out}, sets => mem_stats($s)->{cmd_set} - $before,
        map { ($_ => $j->{"totals.$_"}) } qw(gets keys misses));
    $count{$_} = $j->{"totals.after_misses.$_"}
        for qw(left_out leases_won leases_waited given_up stale_hits);
    $count{filled} = $j->{'totals.after_misses.sets'};
    $count{$_} //= -1 for qw(gets misses filled left_out leases_won leases_waited given_up stale_hits);
    is(join(' ', map { $j->{"errors.$_"} // 0 } qw(error client_error desync wrong_value)), '0 0 0 0',
        "$name: no errors");
    return \%count;
}

# ---- nothing, and at once --------------------------------------------------------------------

my $c = missing('ignore', '--on-miss=ignore');
is($c->{sets}, 0, 'ignore: nothing is stored');
is($c->{misses}, $c->{keys}, '... and nothing found');
unlike($c->{out}, qr/^(?:After misses|Leases)/m, '... of which no line tells');
$c = missing('set', '--on-miss=set', '-c', 1);
# The last one may be on its way when the window ends.
cmp_ok($c->{sets} - $c->{filled}, '<=', 1, 'set: each set is counted');
cmp_ok($c->{misses} - $c->{filled}, '<=', 1, '... one for each miss of a connection');
cmp_ok($c->{filled}, '>', 0, '... there are some');
cmp_ok($c->{filled}, '<=', 20, '... and none of what is there');
like($c->{out}, qr/^After misses = $c->{filled} sets \(0 left out\)$/m, '... in a line');

# ---- when a backend has answered -------------------------------------------------------------

$c = missing('set-after:60s', '--on-miss=set-after:60s', '-c', 1);
is($c->{sets}, 0, 'set-after:60s: nothing is stored before its time');
cmp_ok($c->{misses}, '>', 1, '... and nothing waits for it');
is($c->{left_out}, 0, '... nothing is left out');
$c = missing('set-after:20ms', '--on-miss=set-after:20ms', '-c', 1, '-r', 1);
cmp_ok($c->{misses}, '>', 1, 'set-after:20ms: the connection goes on meanwhile');
cmp_ok($c->{filled}, '>', 0, '... and stores then');
cmp_ok($c->{filled}, '<=', $c->{misses}, '... what was missed');
cmp_ok($c->{misses}, '<', $c->{gets}, '... which is found from then on');
for my $law ('uniform:0.001,0.03', 'exponential:200') {
    for my $load (['-q', '1k', '-c', 4], ['-d', 4, '--getcount=3'], ['-T', 2, '--protocol=binary']) {
        $c = missing("set-after:$law @$load", "--on-miss=set-after:$law", @$load, '--verify=1');
        cmp_ok($c->{filled}, '>', 0, '... stores');
        cmp_ok($c->{filled}, '<=', $c->{sets}, '... as the server has seen');
        cmp_ok($c->{misses}, '<', $c->{keys}, '... and finds');
    }
}
$c = missing('a crowd', '--on-miss=set-after:60s', '-r', '1m', '--getcount=1000', '-K', 10, '-d', 4, '-c', 4, '-t', 1);
cmp_ok($c->{misses}, '>', 0, 'a crowd: many are missed');
is($c->{left_out}, $c->{misses} > 65536 ? $c->{misses} - 65536 : 0, '... those that find no room are counted')
    or diag("$c->{misses} misses");

# A trace: what it has told the length of.
my $trace = scratch_dir() . '/trace.csv';
open my $out, '>', $trace or die;
printf $out "%d,key%d,7,10,1,get,0\n", $_ / 1000, $_ % 10 for 0 .. 3999;
close $out or die;
my $before = mem_stats($s)->{cmd_set};
my $run = mcload_json('-s', $at, "--trace=$trace", '--trace-format=twitter', '--trace-time=rate', '-q', '8k',
    '--on-miss=set-after:5ms', '-t', 10);
ok($run->{status} == 0 || $run->{status} == 3, 'a trace with set-after') or diag($run->{err});
cmp_ok($run->{json}{'totals.after_misses.sets'}, '>=', 10, '... each key is stored');
is($run->{json}{'totals.after_misses.sets'}, mem_stats($s)->{cmd_set} - $before, '... before it ends');

# The server stops while backends answer: far more keys are due then than a connection has room for.
open $out, '>', $trace or die;
printf $out "0,stall%d,7,10,1,get,0\n", $_ for 0 .. 3999;
close $out or die;
my $gets = mem_stats($s)->{cmd_get};
my $stopper = fork // die "fork: $!";
if ($stopper == 0) {
    my $own = $server->connect;
    select undef, undef, undef, 0.005 until mem_stats($own)->{cmd_get} >= $gets + 1000;
    kill 'STOP', $server->pid;
    select undef, undef, undef, 0.5;
    kill 'CONT', $server->pid;
    POSIX::_exit(0);
}
$run = mcload_json('-s', $at, "--trace=$trace", '--trace-format=twitter', '--trace-time=rate', '-q', '8k', '-c', 1,
    '-d', 1, '--on-miss=set-after:200ms', '-t', 10);
waitpid $stopper, 0;
ok($run->{status} == 0 || $run->{status} == 3, 'a server that stops meanwhile') or diag($run->{err});
is($run->{json}{'totals.after_misses.sets'}, 4000, '... each key is stored');
is($run->{json}{'totals.after_misses.left_out'}, 0, '... none is left out');

# The trace is over, and a backend has yet to answer: that is slept through.
open $out, '>', $trace or die;
printf $out "0,slow%d,7,10,1,get,0\n", $_ for 0 .. 9;
close $out or die;
my @cpu = times;
$run = mcload_json('-s', $at, "--trace=$trace", '--trace-format=twitter', '--trace-time=rate', '-q', 100,
    '--on-miss=set-after:2s', '-t', 10);
my $cpu = (times)[2] + (times)[3] - $cpu[2] - $cpu[3];
is($run->{json}{'totals.after_misses.sets'}, 10, 'a trace that is shorter than a backend: each key is stored')
    or diag($run->{err});
cmp_ok($cpu, '<', 1, '... and waited for without work');

# A server that has nothing, and closes a connection behind its tenth get. Its pid and its port.
sub start_closing {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die "listen: $!";
    my $pid = fork // die "fork: $!";
    return ($pid, $listener->sockport) if $pid;
    $SIG{CHLD} = 'IGNORE';
    while (1) {
        my $conn = $listener->accept or next;
        next if fork;
        my $gets = 0;
        while ($gets < 10 && defined(my $line = <$conn>)) {
            $gets++ if $line =~ /^get /;
            <$conn> if $line =~ /^set /;
            $conn->syswrite($line =~ /^get / ? "END\r\n" : $line =~ /^set / ? "STORED\r\n" : "ERROR\r\n");
        }
        POSIX::_exit(0);
    }
}

# Who asked on a connection that was lost is gone, though it is up again by then.
{
    my ($pid, $port) = start_closing();
    open $out, '>', $trace or die;
    printf $out "0,lost%d,7,10,1,get,0\n", $_ for 0 .. 9;
    close $out or die;
    $run = mcload_json('-s', "127.0.0.1:$port", "--trace=$trace", '--trace-format=twitter', '--trace-time=rate',
        '-q', 100, '-c', 1, '--noload', '--reconnect=now', '--on-miss=set-after:1s', '-t', 10);
    kill 'KILL', $pid;
    waitpid $pid, 0;
    is($run->{json}{'totals.opened'}, 2, 'a connection is lost, and back') or diag($run->{err});
    is($run->{json}{'totals.after_misses.left_out'}, 10, '... the keys missed on it are left out');
    is($run->{json}{'totals.after_misses.sets'}, 0, '... and not stored by the next one');
}

# ---- who has the lease -----------------------------------------------------------------------

my @meta = ('--protocol=meta', '--verify=1');
for my $load (['-q', '2k', '-c', 4], ['-c', 4], ['-c', 4, '--getcount=4'], ['-T', 2, '-d', 4]) {
    for my $lease ('lease', 'lease:30ms') {
        my $name = "$lease @$load";
        $c = missing($name, "--on-miss=$lease", @meta, @$load);
        cmp_ok($c->{leases_won}, '>', 0, "$name: leases are given");
        cmp_ok($c->{leases_won}, '<=', 20, '... one a key');
        cmp_ok($c->{filled}, '>', 0, '... who has one stores');
        cmp_ok($c->{sets}, '<=', 20, '... and nobody else');
        is($c->{misses}, $c->{leases_won} + $c->{leases_waited}, '... others are told to wait');
        cmp_ok($c->{misses}, '<', $c->{keys}, '... and find it then');
        like($c->{out}, qr/^Leases = $c->{leases_won} won, $c->{leases_waited} waited for \(0 given up\), 0 stale/m,
            '... in a line');
    }
}
$c = missing('lease:60s', '--on-miss=lease:60s', @meta, '-r', 1, '-q', 200, '-t', 1.5);
is($c->{leases_won}, 1, 'lease:60s: one has it');
is($c->{sets}, 0, '... and does not store yet');
cmp_ok($c->{given_up}, '>', 0, '... others give up in the end');
cmp_ok($c->{leases_waited}, '>', $c->{given_up}, '... after they have asked again');
$c = missing('absent keys', '--on-miss=lease', @meta, '--miss-ratio=1');
is($c->{leases_won}, 0, 'absent keys have no leases');
is($c->{sets}, 0, '... and are not stored');
$c = missing('rmw', '--on-miss=lease', @meta, '--ops=get:1,rmw:1,cas:1', '-c', 2);
cmp_ok($c->{leases_won}, '>', 0, 'a mix that stores anyway: leases are given');
cmp_ok($c->{leases_won}, '<=', 20, '... one a key');

# A value that was declared to be out of date is used until it is stored anew, by one.
my $key = 'stale:' . '0' x 24;
is(mcload('-s', $at, '--loadonly', '-r', 1, '--key-prefix=stale:')->{status}, 0, 'a record');
put($s, "md $key I T60\r\n");
is(read_line($s), "HD\r\n", '... is out of date');
$run = mcload_json('-s', $at, '--noload', '-r', 1, '--key-prefix=stale:', '-t', 1, '-c', 4, @meta,
    '--on-miss=lease:200ms');
is($run->{json}{'totals.misses'}, 0, 'stale: it is found all the same');
is($run->{json}{'totals.after_misses.leases_won'}, 1, '... one has the lease');
cmp_ok($run->{json}{'totals.after_misses.stale_hits'}, '>', 0, '... others use what there is');
cmp_ok($run->{json}{'totals.after_misses.stale_hits'}, '<', $run->{json}{'totals.hits'}, '... until it is stored');
is($run->{json}{'errors.wrong_value'}, 0, '... nothing wrong in it');
like($run->{out}, qr/^Leases = 1 won, 0 waited for \(0 given up\), \d+ stale hits$/m, '... in a line');

# ---- command lines ---------------------------------------------------------------------------

for my $bad (['--on-miss=lease'], ['--on-miss=lease', '--binary'], ['--on-miss=lease:x', '--protocol=meta'],
    ['--on-miss=leases', '--protocol=meta'], ['--on-miss=set-after'], ['--on-miss=set-after:'],
    ['--on-miss=set-after:soon'], ['--on-miss=sets'], ['--on-miss=set-after:1ms', '--protocol=http'])
{
    my $refused = mcload('-s', $at, '-t', 0.1, @$bad);
    is($refused->{status}, 1, "@$bad: refused");
    like($refused->{err}, qr/\Amcload: [^\n]+\n\z/, '... in a line');
}

$server->stop;
done_testing();
