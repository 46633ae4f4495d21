#!/usr/bin/env perl
# Connections that are closed, reset, half closed or written to exactly while they are on their
# way to another worker, or wait in its queue: debugitem stops that worker for as long as it takes.
use MCTest ':ours';
use Socket qw(SOL_SOCKET SO_LINGER);

my ($server, $s, $other, $x);

sub workers {
    my $stats = mem_stats($s, 'qos');
    return map { $stats->{"worker_${_}_conns"} } 0, 1;
}

sub qos { return mem_stats($s, 'qos')->{$_[0]}; }

sub order { return exchange($s, "qos rebalance @_\r\n", "OK\r\n"); }

sub reset_conn {
    my ($c) = @_;
    setsockopt $c, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0 or die "SO_LINGER: $!";
    close $c;
}

# $s and $other are on worker 0 and stay, because they hold something; $x is on worker 1.
sub begin(%more) {
    $server = serve('-t', '2', '--steer=rr', '--debug-commands', \%more);
    $s = $server->control;
    $other = $server->connect;
    exchange($other, "version\r\n", VERSION_REPLY());
    exchange($s, "set hold1 0 0 1\r\n1\r\n", "STORED\r\n");
    order(1, 0, 1000);
    soon { (workers())[1] == 0 } 'both are on worker 0';
    exchange($_, "debugitem ref hold1\r\n", "OK\r\n") for $s, $other;
    for (1 .. 2) {
        $x = $server->connect;
        exchange($x, "version\r\n", VERSION_REPLY());
        last if (workers())[1] == 1;
        close $x;
    }
    is((workers())[1], 1, 'one is on worker 1');
}

# Worker 1 waits for the lock of the key from here on.
sub stop_worker($key) {
    exchange($s, "debugitem lock $key\r\n", "OK\r\n");
    put($x, "get $key\r\n");
    soon { grep({ / conn_parse_cmd$/ } stat_lines($s, 'conns')) == 2 } 'worker 1 is stopped';
}

# A connection that may be to the stopped worker, which agrees on nothing.
sub open_conn {
    return $server->connect if !$ENV{MCTEST_TLS};
    my $c = $server->connect(plain => 1);
    MCTLS::tls_begin($c);
    return $c;
}

# Of connections to either worker, those that are served.
sub served_of {
    return grep { $ENV{MCTEST_TLS} ? $_->connect_SSL : answers($_, 0) } @_;
}

# New connections on worker 0, which the order sends off to worker 1.
sub send_off($count) {
    my $taken = qos('migrations_total');
    my @conns = map { open_conn() } 1 .. $count;
    my @mine; # half of them have been given to worker 1 and wait there
    if (!$ENV{MCTEST_TLS}) {
        put($_, "version\r\n") for @conns;
    }
    soon { @mine = served_of(@conns); @mine == $count / 2 } 'half of them are served by worker 0';
    if ($ENV{MCTEST_TLS}) {
        put($_, "version\r\n") for @mine;
    }
    expect_bytes($_, VERSION_REPLY(), 'one of them') for @mine;
    order(0, 1, 1000);
    soon { (workers())[0] == 2 } 'they have been sent';
    is(qos('migrations_total'), $taken, 'and none has arrived');
    my %is_mine = map { ($_ => 1) } @mine;
    return (\@mine, [grep { !$is_mine{$_} } @conns]);
}

sub answers($c, $seconds) {
    vec(my $bits = '', fileno $c, 1) = 1;
    return select($bits, undef, undef, $seconds) > 0;
}

# ---- on their way ------------------------------------------------------------------------

{
    begin();
    stop_worker('k1');
    my ($moving, $new) = send_off(20);
    my @m = @$moving;
    my $before = qos('migrations_total');
    close $_ for splice @m, 0, 2;
    reset_conn($_) for splice @m, 0, 2;
    for (1 .. 2) {
        my $c = shift @m;
        put($c, "get a\r\nget b\r\n");
        $_ == 1 ? close $c : reset_conn($c);
    }
    my ($half, $open, $late, $idle) = @m;
    put($half, "get a\r\nget b\r\n");
    shutdown $half, 1;
    put($open, "version\r\n" x 3);
    put($late, "get a");
    # of those that are not accepted yet by the stopped worker, too
    close shift @$new;
    reset_conn(shift @$new);
    exchange($s, "debugitem unlock k1\r\n", "OK\r\n");
    expect_bytes($x, "END\r\n", 'the worker goes on');
    soon { qos('migrations_total') == $before + 10 } 'all have arrived';
    expect_bytes($half, "END\r\nEND\r\n", 'half closed: answered');
    expect_eof($half, '', 'and closed');
    expect_bytes($open, VERSION_REPLY() x 3, 'what was written on the way is answered');
    put($late, "\r\n");
    expect_bytes($late, "END\r\n", 'half a line goes on');
    exchange($idle, "version\r\n", VERSION_REPLY());
    if ($ENV{MCTEST_TLS}) {
        soon { served_of(@$new) == @$new } 'the new ones agree on TLS';
        put($_, "version\r\n") for @$new;
    }
    expect_bytes($_, VERSION_REPLY(), 'a new one is served') for @$new;
    soon { join(' ', workers()) eq '2 12' } 'who has left is in no count' or diag join ' ', workers();
    soon { mem_stats($s)->{curr_connections} == 14 } 'nor in that of all';

    # ---- in the queue --------------------------------------------------------------------

    my @bulk = ($open, $late, $idle, @$new);
    stop_worker('k1');
    my $key = 'k2';
    put($_, "get $key " . join(' ', map { "n$_" } 1 .. 20) . "\r\n") for @bulk;
    # A second lock, by another client; should it be the same one, worker 0 waits for itself, and does
    # not end either.
    SKIP: {
        put($other, "get $key\r\n");
        if (!answers($other, 10)) {
            $server->_kill;
            undef $server;
            skip 'k1 and k2 have the same lock', 1;
        }
        expect_bytes($other, "END\r\n", 'another lock');
        exchange($other, "debugitem lock $key\r\n", "OK\r\n");
        my $queued = mem_stats($s, 'classes')->{class_bulk_queued};
        exchange($s, "debugitem unlock k1\r\n", "OK\r\n");
        expect_bytes($x, "END\r\n", 'the worker goes on');
        # As a rule all but one are in the queue; a slow worker may begin with the first, and wait
        # for the lock, before it has read the others.
        my $in_queue = sub { mem_stats($s, 'classes')->{class_bulk_queued} - $queued };
        wait_until(sub { $in_queue->() >= @bulk }, 5);
        soon { $in_queue->() > 0 } 'of ' . @bulk . ' there are in the queue ' . $in_queue->();
        close shift @bulk;
        reset_conn(shift @bulk);
        my $half = shift @bulk;
        put($half, "get a\r\n");
        shutdown $half, 1;
        my $full = shift @bulk;
        put($full, "get a b c d e f g h i j k l m n o p q r\r\n" x 5);
        close $full;
        order(1, 0, 1000); # finds them queued, or about to be
        exchange($other, "debugitem unlock $key\r\n", "OK\r\n");
        expect_bytes($half, "END\r\nEND\r\n", 'half closed: answered');
        expect_eof($half, '', 'and closed');
        expect_bytes($_, "END\r\n", 'served') for @bulk;
        soon { (workers())[0] + (workers())[1] == 3 + @bulk }
            'who has left is in no count' or diag join ' ', workers();
        order(1, 0, 1000);
        soon { (workers())[1] == 0 } 'the others move';
        exchange($_, "version\r\n", VERSION_REPLY()) for @bulk, $x;
        soon { mem_stats($s)->{curr_connections} == 3 + @bulk } 'all are counted once';
    }
    $server->stop if $server;
}

# ---- while the server ends ---------------------------------------------------------------

{
    begin(env => slowed(50)); # it has some seconds to answer
    stop_worker('k1');
    my ($moving, $new) = send_off(12);
    put($moving->[0], "version\r\n");
    close $moving->[1];
    reset_conn($moving->[2]);
    kill 'TERM', $server->pid; # the lock goes with the client that holds it
    my ($got) = read_until_eof($moving->[0]);
    ok($got eq VERSION_REPLY() || $got eq '', 'one that is on its way is closed');
    read_until_eof($_) for @{$moving}[3 .. $#$moving], @$new;
    ($got) = read_until_eof($x);
    is($got, "END\r\n", 'who was being served is answered');
    $server->stop;
}

done_testing();
