#!/usr/bin/env perl
# --balance and "qos rebalance": connections move between workers and their clients never
# notice: every reply comes, in order, whatever is on its way when they move.
use MCTest ':ours';
use Time::HiRes qw(time);
use MCTLS;

sub conns_of($s, $workers) {
    my $stats = mem_stats($s, 'qos');
    return map { $stats->{"worker_${_}_conns"} } 0 .. $workers - 1;
}

sub moved { return mem_stats($_[0], 'qos')->{migrations_total}; }

# ---- the command -----------------------------------------------------------------------

each_profile(sub ($profile) {
    my $server = serve($profile, '-t', '2');
    my $s = $server->control;
    my $usage = "CLIENT_ERROR usage: qos rebalance [from to [n]]\r\n";
    exchange($s, "qos rebalance $_\r\n", $usage) for '0', '0 0', '0 2', '2 0', 'a 1', '0 1 0',
        '0 1 65536', '0 1 2 3';
    has(mem_stats($s, 'qos'), 'balance off, nothing has moved, for no reason', balance => 'off',
        migrations_total => 0, migr_last_reason => 'none');

    my @conns = map { $server->connect } 1 .. 11;
    exchange($_, "version\r\n", VERSION_REPLY($profile)) for @conns;
    is(join(' ', conns_of($s, 2)), '6 6', 'six connections each');
    exchange($s, "qos rebalance 0 1 4\r\n", "OK\r\n");
    soon { moved($s) == 4 } 'four were ordered to move';
    soon { join(' ', conns_of($s, 2)) eq '2 10' } 'and are there'; # each is counted before it is
    is(mem_stats($s, 'qos')->{migr_last_reason}, 'order', 'because of the order');
    log_says($server, qr/balance: 4 connections from worker 0 .* to 1 .*: order/, 'one line says so');
    exchange($_, "version\r\n", VERSION_REPLY($profile)) for @conns;

    exchange($s, "qos rebalance\r\n", "OK\r\n");
    soon { join(' ', conns_of($s, 2)) eq '6 6' } 'without words it evens out';
    exchange($s, "qos rebalance\r\n", "OK\r\n");
    soon { moved($s) == 9 } 'an order moves one at the least';
    exchange($s, "qos rebalance 0 1 1000\r\n", "OK\r\n") for 1 .. 2;
    exchange($s, "qos rebalance 1 0 1000\r\n", "OK\r\n") for 1 .. 2;
    exchange($_, "version\r\n", VERSION_REPLY($profile)) for @conns;

    # who leaves after moving is counted off where it was
    my $total = mem_stats($s)->{curr_connections};
    close $_ for splice @conns;
    soon { my ($a, $b) = conns_of($s, 2); $a + $b == 1 } 'all left';
    soon { $total - mem_stats($s)->{curr_connections} == 11 } 'curr_connections too';

    # half a line, half a body, an open reply: those stay where they are
    my @busy = map { $server->connect } 1 .. 4;
    my $value = 'x' x 800_000;
    put($busy[0], "get a");
    put($busy[1], "set k 0 0 10\r\n12345");
    put($busy[2], "set big 0 0 " . length($value) . "\r\n$value\r\n" . "get big\r\n" x 20);
    put($busy[3], "gets b c ");
    soon { (grep { / conn_nread$/ } stat_lines($s, 'conns')) >= 1 } 'a body is open';
    for (1 .. 20) {
        exchanges($s, ["qos rebalance 0 1 9\r\n", "OK\r\n"], ["qos rebalance 1 0 9\r\n", "OK\r\n"]);
    }
    put($busy[0], "\r\n");
    expect_bytes($busy[0], "END\r\n", 'half a line goes on');
    put($busy[1], "67890\r\n");
    expect_bytes($busy[1], "STORED\r\n", 'half a body goes on');
    my $reply = "VALUE big 0 " . length($value) . "\r\n$value\r\nEND\r\n";
    is(read_bytes($busy[2], 8), "STORED\r\n", 'stored');
    my $good = 0;
    for (1 .. 20) {
        $good += read_bytes($busy[2], length $reply) eq $reply;
    }
    is($good, 20, 'a reply that the client takes late goes on');
    put($busy[3], "\r\n");
    expect_bytes($busy[3], "END\r\n", 'half a line of keys goes on');
    exchange($busy[0], "get k\r\n", "VALUE k 0 10\r\n1234567890\r\nEND\r\n");
});

# ---- the hammer ------------------------------------------------------------------------

# 64 clients in 4 processes, each with values of its own that it verifies and pipelines of
# different lengths, while connections are sent back and forth without a pause, as long as $go is there.
my $go = scratch_dir() . '/go';

sub client_process($port, $id) {
    my @conns = map {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp')
            or return 'connect';
    } 1 .. 16;
    my @serial = (0) x @conns;
    my @left = (0) x @conns;
    my $rounds = 0;
    while (-e $go || $rounds < 20) {
        $rounds++;
        my @want;
        for my $i (0 .. $#conns) {
            my ($send, $want) = ('', '');
            for my $n (1 .. 1 + ($rounds * 7 + $i) % 13) {
                my $key = "k.$id.$i." . $n % 3;
                my $value = join '.', $id, $i, ++$serial[$i], 'v' x ($serial[$i] % 97);
                my $len = length $value;
                $send .= "set $key 0 0 $len\r\n$value\r\nget $key none.$id\r\n";
                $want .= "STORED\r\nVALUE $key 0 $len\r\n$value\r\nEND\r\n";
            }
            # some requests come in two pieces
            my $cut = $i % 3 == 0 ? length($send) - 5 : length $send;
            syswrite($conns[$i], substr($send, 0, $cut)) == $cut or return "write: $!";
            $left[$i] = substr $send, $cut;
            $want[$i] = $want;
        }
        for my $i (0 .. $#conns) {
            syswrite $conns[$i], $left[$i] if $left[$i] ne '';
            my $got = '';
            while (length $got < length $want[$i]) {
                my $n = sysread $conns[$i], $got, length($want[$i]) - length $got, length $got;
                return "closed: $!" if !$n;
            }
            return "wrong bytes: '$got' for '$want[$i]'" if $got ne $want[$i];
        }
        # one leaves, maybe on its way, and comes back
        my $gone = $rounds % 16;
        $conns[$gone] = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port,
            Proto => 'tcp') or return 'connect again';
    }
    return 'good';
}

sub hammer($server, $seconds, $least, $order) {
    my @readers;
    write_file($go);
    for my $id (1 .. 4) {
        pipe my $reader, my $writer;
        my $pid = in_child(sub {
            close $reader;
            alarm 600;
            $SIG{ALRM} = sub { syswrite $writer, 'no reply in time'; POSIX::_exit(1) };
            syswrite $writer, client_process($server->port, $id);
        });
        close $writer;
        push @readers, [$reader, $pid];
    }
    my $s = $server->control;
    my $enough = moved($s) + $least;
    my $end = time + $seconds;
    my $orders = 0;
    my @results;
    for my $entry (@readers) {
        my ($reader, $pid) = @$entry;
        my $bits = '';
        vec($bits, fileno $reader, 1) = 1;
        until (select(my $ready = $bits, undef, undef, 0)) {
            my $what = $order->($orders++);
            put($s, "$what\r\n");
            my $is_told = read_bytes($s, 4) eq "OK\r\n";
            unlink $go if !$is_told || time > $end && (moved($s) >= $enough || time > $end + 120);
            last if !$is_told;
        }
        sysread $reader, my $result, 4000;
        push @results, $result;
        waitpid $pid, 0;
    }
    return @results;
}

{
    my $server = serve('-t', '3', '--balance', '-o', 'idle_timeout=300');
    my $s = $server->control;
    my $before = moved($s);
    my @results = hammer($server, 1.5, 20, sub ($n) {
        my ($from, $to) = ($n % 3, ($n + 1 + $n % 2) % 3);
        return $n % 4 == 0 ? 'qos rebalance'
            : "qos rebalance $from " . ($from == $to ? ($to + 1) % 3 : $to) . ' ' . (1 + $n % 9);
    });
    is(join(',', @results), 'good,good,good,good', '64 clients, no reply lost or out of order');
    cmp_ok(moved($s) - $before, '>=', 20, 'while connections moved: ' . (moved($s) - $before));
    soon { my ($a, $b, $c) = conns_of($s, 3); $a + $b + $c == 1 } 'nobody is left behind';
    soon { mem_stats($s)->{curr_connections} == 1 } 'in no count';
}

# while they move, the server ends: what was accepted is answered, nothing hangs or leaks
for my $round (1 .. 5) {
    my $server = serve('-t', '3', {env => slowed(50)}); # it has some seconds to answer
    my @conns = map { $server->connect } 1 .. 60;
    exchange($_, "version\r\n", VERSION_REPLY()) for @conns;
    put($_, "version\r\n") for @conns;
    my $orders = join '', map { 'qos rebalance ' . $_ % 3 . ' ' . ($_ + 1) % 3 . " 50\r\n" } 1 .. 300;
    put($server->control, $orders);
    read_bytes($server->control, 4 * (1 + 60 * ($round - 1)));
    kill 'TERM', $server->pid;
    my $answered = 0;
    for my $c (@conns) {
        my ($got) = read_until_eof($c);
        $answered++ if $got eq VERSION_REPLY();
    }
    is($answered, 60, "round $round: each has its answer");
}

# what OpenSSL knows of a connection goes with it
SKIP: {
    skip no_tls_because(), 1 if no_tls_because();
    my ($tls, $plain) = (free_port(), free_port());
    my $server = serve('1.6', '-t', '2', tls_args(),
            '-l', "127.0.0.1:$tls,notls:127.0.0.1:$plain", {listen => 0});
    $server->{port} = $plain;
    my $s = $server->control;
    my @conns = map { tls_connect($server, port => $tls) } 1 .. 6;
    local $server->{port} = $tls;
    my $silent = $server->connect(plain => 1); # never says hello, and stays where it is
    my $big = join '', map { chr 33 + $_ % 90 } 1 .. 200_000;
    for my $round (1 .. 12) {
        my ($from, $to) = $round % 2 ? (0, 1) : (1, 0);
        put($_, "set t$round 0 0 200000\r\n$big\r\n") for @conns[0, 3];
        put($s, "qos rebalance $from $to 9\r\n" x 3);
        is(read_bytes($s, 12), "OK\r\n" x 3, "TLS, round $round: ordered");
        is(read_bytes($_, 8), "STORED\r\n", 'stored') for @conns[0, 3];
        for my $c (@conns) {
            put($c, "get t$round\r\nmn\r\n");
            my $want = "VALUE t$round 0 200000\r\n$big\r\nEND\r\nMN\r\n";
            ok(read_bytes($c, length $want) eq $want, 'and read');
        }
    }
    cmp_ok(moved($s), '>=', 12, 'TLS: connections moved: ' . moved($s));
    close $silent;
}

# ---- by itself -------------------------------------------------------------------------

# All requests on one worker's connections: others get some of them.
{
    my $server = serve('-t', '2', '--balance');
    my $s = $server->control;
    is(mem_stats($s, 'qos')->{balance}, 'on', 'balance on');
    my @conns = map { $server->connect } 1 .. 40;
    exchange($_, "version\r\n", VERSION_REPLY()) for @conns;
    # Who else uses the CPU may be a reason to move some back, so it is ordered until it is so.
    soon {
        put($s, "qos rebalance 1 0 1000\r\n");
        read_bytes($s, 4);
        (conns_of($s, 2))[1] <= 1;
    } 'everything is on worker 0';
    my $before = moved($s);
    my $seen = 0;
    my $end = time + 300;
    while (time < $end && !$seen) {
        put($_, "version\r\n" x 40) for @conns;
        for my $c (@conns) {
            my $want = VERSION_REPLY() x 40;
            read_bytes($c, length $want) eq $want or last;
        }
        my $stats = mem_stats($s, 'qos');
        $seen = $stats->{migrations_total} > $before && $stats->{migr_last_reason} =~ /busy|wait|backlog/;
    }
    ok($seen, 'connections moved by themselves: ' . (moved($s) - $before));
    log_says($server, qr/balance: \d+ connections? from worker 0 .* to 1 .*: (busy|wait|backlog)/,
        'and a line says so');
}

# Idle connections and a quiet server: nothing moves. Where other programs have the CPUs, a worker
# waits for one, which is a reason; that the policy has none without one is shown on fake time.
if (is_quiet()) {
    my $server = serve('-t', '2', '--balance');
    my $s = $server->control;
    my @conns = map { $server->connect } 1 .. 20;
    exchange($_, "version\r\n", VERSION_REPLY()) for @conns;
    my $end = time + 0.6;
    wait_until(sub { mem_stats($s, 'qos')->{worker_0_load} < 0.2 && time > $end });
    is(moved($s), 0, 'quiet when there is nothing to balance');
}

done_testing();
