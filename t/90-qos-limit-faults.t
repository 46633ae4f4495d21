#!/usr/bin/env perl
# Limits and classes where it hurts: contradictions and numbers at the edges have one clear line;
# hundreds of requests that wait for a limit are all answered, once, whatever the limit becomes
# meanwhile, whoever of them leaves, and when the server stops.
use MCTest ':ours';
use Socket qw(SOL_SOCKET SO_LINGER);

my $BUSY = "SERVER_ERROR 307 busy\r\n";
my $server;

sub order(@orders) {
    for my $order (@orders) {
        my $got = roundtrip($server->control, "qos $order\r\n", "OK\r\n");
        return is($got, "OK\r\n", "qos $order") if $got ne "OK\r\n";
    }
    return 1;
}

sub waiting {
    my @lines = grep { /waiting/ } stat_lines($server->control, 'conns');
    return scalar @lines;
}

# No token comes for minutes: a multiget of small class has taken them, counted by keys.
sub empty(@limits) {
    my $c = $server->connect;
    roundtrip($c, "qos class small\r\n", "OK\r\n");
    order('action delay', 'unit key', map { "$_ 1 1" } @limits);
    my $get = 'get' . ' d' x 1000 . "\r\n";
    is(roundtrip($c, $get, "END\r\n"), "END\r\n", "a get of a thousand keys empties @limits");
    order('unit cmd');
}

# Connections whose gets wait.
sub delay($count) {
    my @conns = map { $server->connect } 1 .. $count;
    my $before = waiting();
    put($conns[$_], "get k$_\r\n") for 0 .. $#conns;
    soon { waiting() == $before + $count } "$count requests wait";
    return @conns;
}

sub reply_to($i) {
    my $key = "k$i";
    return "VALUE $key 0 " . length($key) . "\r\n$key\r\nEND\r\n";
}

# All are answered, in the right way, and with nothing more.
sub are_answered($name, $want, @conns) {
    my @wrong = grep {
        my $reply = $want // reply_to($_);
        read_bytes($conns[$_], length $reply) ne $reply || roundtrip($conns[$_], '', '') ne '';
    } 0 .. $#conns;
    is("@wrong", '', $name);
}

sub start(@args) {
    $server = serve(@args);
    my $s = $server->connect;
    my $send = join '', map { "set k$_ 0 0 " . length("k$_") . "\r\nk$_\r\n" } 0 .. 299;
    is(roundtrip($s, $send, "STORED\r\n" x 300), "STORED\r\n" x 300, '300 keys');
}

# ---- what is refused at the start, each in one line ----------------------------------------

for my $case (
    ['--qps-limit=5,6', 'twice'],
    ['--qps-limit=bulk=5,bulk=5', 'twice'],
    ['--qps-limit=total=5,6', 'twice'],
    ['--slo=p95:1ms,p95:2ms', 'twice'],
    ['--class-shares=bulk:5,write:1,bulk:6', 'twice'],
    ['--class-rule=peer:127.0.0.9/8=bulk', '--class-rule=peer:127.0.0.0/8=small', 'another rule'],
    ['--class-rule=peer:::ffff:10.0.0.0/104=bulk', '--class-rule=peer:10.0.0.0/8=bulk', 'another rule'],
    ['--class-rule=peer:=bulk', 'not a network'],
    ['--class-rule=peer:10.0.0.0/-1=bulk', 'not a network'],
    ['--class-rule=key:=bulk', '1 to 250'],
    ['--class-rule=key:' . 'k' x 251 . '=bulk', '1 to 250'],
    ['--class-rule=', 'must be'],
    [(map { "--class-rule=key:$_=bulk" } 1 .. 65), 'more than 64'],
    [(map { "--class-rule=peer:10.0.0.$_=bulk" } 1 .. 65), 'more than 64'],
    ['-l', '127.0.0.1;class=bulk;class=small', 'class=small'],
    ['--qps-limit=0', '1 to 1000m'],
    ['--qps-limit=-1', '1 to 1000m'],
    ['--qps-limit=1.5', '1 to 1000m'],
    ['--qps-limit=4294967296', '1 to 1000m'],
    ['--qps-limit=18446744073709551616', '1 to 1000m'],
    ['--qps-limit=18446744073709551615k', '1 to 1000m'],
    ['--qps-limit=10,burst=0', '1 to 1m'],
    ['--qps-limit-peer=10000001', '1 to 10m'],
    ['--cpu-limit=0%', 'percentage'],
    ['--slo=p95:18446744073709551615s', 'pNN:TIME'],
    ['--class-max-wait=4294967295s', '100us to 10s'],
) {
    my @args = @$case;
    my $want = pop @args;
    my $run = run_program(@args, '-p', '-1', @AS_ROOT);
    my $name = substr "@args", 0, 60;
    ok($run->{status} != 0 && $run->{err} =~ /\Q$want\E/ && ($run->{err} =~ tr/\n//) == 1 && !$run->{timed_out},
        "$name: one line") or diag("status $run->{status}: $run->{err}");
}

# ---- numbers at run time --------------------------------------------------------------------

start('-t', '2');
for my $bad ('0', '-1', '1.5', '4294967296', '18446744073709551616', '18446744073709551615k', '1001m',
        '5 0', '5 1000001', '5 -1', '0x10', '5k5', 'k', '+5', '5 18446744073709551616') {
    for my $limit ('qps_limit', 'qps_limit bulk', 'peer') {
        my $got = roundtrip($server->control, "qos $limit $bad\r\n", undef);
        like($got, qr/\ACLIENT_ERROR [^\r\n]+\r\n\z/, "qos $limit $bad") if $got !~ /\ACLIENT_ERROR [^\r\n]+\r\n\z/;
    }
}
is(join(' ', map { mem_stats($server->control, 'qos')->{$_} } qw(qps_limit qps_limit_bulk qps_limit_peer)),
    'off off off', 'bad numbers change nothing');
for my $good ('1', '10m', '1000m 1m', '10M 1') {
    order("qps_limit $good", "qps_limit small $good");
    order('peer ' . ($good =~ /1000/ ? '10m 1m' : $good));
    order('qps_limit off', 'qps_limit small off', 'peer off');
}
for my $burst (1, 1_000_000) {
    order("qps_limit 10m $burst", "qps_limit small 10m $burst", "peer 10m $burst");
    my $s = $server->connect;
    my $got = roundtrip($s, join('', map { "get k$_\r\n" } 0 .. 299), join '', map { reply_to($_) } 0 .. 299);
    is($got, join('', map { reply_to($_) } 0 .. 299), "limits of 10 million, bursts of $burst, let 300 gets pass");
    order('qps_limit off', 'qps_limit small off', 'peer off');
}

# ---- limits that change while requests wait ---------------------------------------------------

for my $case (
    ['qps_limit', undef, 'qps_limit off'],
    ['qps_limit', undef, 'qps_limit 10m'],
    ['qps_limit', undef, 'dry_run on'],
    ['qps_limit', undef, 'qps_limit small 10m', 'peer 10m', 'qps_limit off'],
    ['qps_limit', $BUSY, 'action delay:1ms+error'],
    ['qps_limit small', undef, 'qps_limit small off'],
    ['qps_limit small', $BUSY, 'action delay:1ms+error'],
    ['peer', undef, 'peer off'],
    ['peer', undef, 'peer 10m'],
    ['peer', $BUSY, 'action delay:1ms+error'],
) {
    my ($limit, $want, @orders) = @$case;
    empty($limit);
    my @conns = delay(120);
    order(@orders);
    are_answered("$limit, then @orders: all are answered", $want, @conns);
    is(waiting(), 0, 'nobody waits');
    order('qps_limit off', 'qps_limit small off', 'peer off', 'dry_run off', 'action delay');
}

# from the address's limit to that of the class, to that of all, and out
{
    empty('peer', 'qps_limit small', 'qps_limit');
    my @conns = delay(150);
    order('peer off');
    soon { waiting() == 150 } 'they wait for their class now';
    order('qps_limit small off');
    soon { waiting() == 150 } 'and for the limit of all';
    order('qps_limit off');
    are_answered('from limit to limit: all are answered', undef, @conns);
    my $q = mem_stats($server->control, 'qos');
    has($q, 'all were counted as delayed', qps_delayed => ['>=', 150], qps_delay_count => $q->{qps_delayed});
}

# ---- who leaves -------------------------------------------------------------------------------

for my $limit ('qps_limit', 'qps_limit small', 'peer') {
    my $before = mem_stats($server->control);
    empty($limit);
    my @conns = delay(90);
    my @half = @conns[60 .. 89];
    close $_ for @conns[0 .. 29];
    for my $conn (@conns[30 .. 59]) {
        setsockopt $conn, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0;
        close $conn;
    }
    shutdown $_, 1 for @half;
    soon { waiting() == 60 } 'who was reset waits no more';
    order("$limit off");
    my @wrong = grep { read_until_eof($half[$_]) ne reply_to(60 + $_) } 0 .. $#half;
    is("@wrong", '', "$limit: half closed while waiting: answered, then closed");
    @conns = ();
    close $_ for splice @half;
    soon { mem_stats($server->control)->{curr_connections} <= $before->{curr_connections} }
        "$limit: nothing is left of them";
    is(waiting(), 0, 'nobody waits');
}

# quit, and orders, behind a request that waits
{
    empty('qps_limit');
    my @conns = delay(3);
    put($conns[0], "quit\r\n");
    put($conns[1], "qos class bulk\r\nget k1\r\nquit\r\n");
    put($conns[2], "set k2 0 0 70000\r\n" . 'x' x 70000 . "\r\nget k2\r\nquit\r\n");
    order('qps_limit off');
    expect_eof($conns[0], reply_to(0), 'quit behind a request that waits');
    expect_eof($conns[1], reply_to(1) . "OK\r\n" . reply_to(1), 'a new class behind one');
    expect_eof($conns[2], reply_to(2) . "STORED\r\nVALUE k2 0 70000\r\n" . 'x' x 70000 . "\r\nEND\r\n",
        'a large value behind one');
}
$server->stop;

# ---- idle, and stopped, while hundreds wait ---------------------------------------------------

start('-t', '2', '-o', 'idle_timeout=100');
{
    my $witness = $server->connect;
    expect_open($witness, 'a witness');
    empty('qps_limit small');
    order('unit cmd');
    my @conns = delay(20);
    roundtrip($server->control, "qos class background\r\n", "OK\r\n"); # debugtime is limited, too
    for (1 .. 2) {
        debugtime($server, 60);
        stat_lines($server->control, 'qos');
    }
    soon { mem_stats($server->control)->{idle_kicks} >= 1 } 'who is idle is closed';
    is(waiting(), 20, 'who waits for a limit is not idle');
    order('qps_limit small off');
    are_answered('and is answered', undef, @conns);
}
$server->stop;

my $file = scratch_dir() . '/memory';
for my $case (['TERM'], ['INT'], ['USR1', '-e', $file]) {
    my ($signal, @args) = @$case;
    start('-t', '3', @args);
    empty('qps_limit');
    order('qps_limit small 1 1', 'peer 1 1');
    my @conns = delay(240);
    $server->stop($signal, "SIG$signal while 240 wait: status 0");
    my @wrong = grep { read_until_eof($conns[$_]) ne reply_to($_) } 0 .. $#conns;
    is("@wrong", '', 'all of them are answered and closed');
}
ok(-s $file, 'the items are saved');

done_testing();
