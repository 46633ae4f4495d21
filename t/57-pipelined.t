#!/usr/bin/env perl
# Clients that always have a request under way go to another worker all the same, between two of
# their requests and with the input that has come; each request is answered once, in order.
use MCTest ':ours';
use Time::HiRes qw(sleep time);

my ($server, $s);

sub begin {
    $server = serve('-t', '2', '--steer=rr', '--debug-commands', @_);
    $s = $server->control;
    # who holds something stays
    exchanges($s, ["set hold 0 0 1\r\n1\r\n", "STORED\r\n"], ["debugitem ref hold\r\n", "OK\r\n"]);
}

sub qos { return mem_stats($s, 'qos'); }

sub order {
    put($s, "qos rebalance @_\r\n");
    my $answer = read_line($s) // 'nothing';
    die "qos rebalance: $answer" if $answer ne "OK\r\n";
}

# Always waits for a token: it is never without a request, and never idle.
{
    begin('--qps-limit=100,burst=2');
    my $c = $server->connect;
    put($c, "version\r\n");
    expect_bytes($c, VERSION_REPLY(), 'connected');
    my $count = 6000; # a minute
    put($c, "get a\r\n" x $count);
    soon { mem_stats($s)->{cmd_get} > 10 } 'it is being served';
    my ($orders, $end) = (0, time + 50);
    my $moved = 0;
    while (time < $end && !$moved) {
        order($orders++ % 2 ? '0 1' : '1 0', 1000);
        sleep 0.02;
        $moved = qos()->{migrations_total};
    }
    ok($moved, 'it has moved');
    cmp_ok(mem_stats($s)->{cmd_get}, '<', $count, 'before it was done');
    exchange($s, "qos qps_limit off\r\n", "OK\r\n");
    expect_bytes($c, "END\r\n" x $count, 'every request is answered');
    $server->stop;
}

# To and fro while pipelines go on: gets, stores, lines and bodies cut anywhere, multigets.
for my $args ([], ['--classes=off'], ['--qps-limit=200k']) {
    begin(@$args);
    my $conns = 4;
    my $long = 'v' x 20000;
    exchange($s, "set long 0 0 20000\r\n$long\r\n", "STORED\r\n");
    my @all;
    for my $n (1 .. $conns) {
        my ($send, $expect) = ('', '');
        for my $i (1 .. 400) {
            $send .= "set k$n-$i 0 0 5\r\n" . sprintf("%05d\r\n", $i) . "get k$n-$i\r\n"
                . "delete k$n-$i noreply\r\nincr k$n-$i 1\r\n" . 'get' . " x$i" x 40 . "\r\n";
            $expect .= "STORED\r\nVALUE k$n-$i 0 5\r\n" . sprintf("%05d\r\n", $i)
                . "END\r\nNOT_FOUND\r\nEND\r\n";
            next if $i % 20;
            $send .= "get long k$n-$i\r\nset big$n 0 0 20000\r\n$long\r\nmn\r\n";
            $expect .= "VALUE long 0 20000\r\n$long\r\nEND\r\nSTORED\r\nMN\r\n";
        }
        my $sock = $server->connect;
        $sock->blocking(0);
        push @all, {sock => $sock, send => $send, sent => 0, expect => $expect, got => ''};
    }
    my $end = time + 300;
    my $orders = 0;
    my $ordered_at = 0;
    while (time < $end && grep { length $_->{got} < length $_->{expect} } @all) {
        for my $c (@all) {
            if ($c->{sent} < length $c->{send}) {
                # pieces of odd lengths, so that lines and bodies end anywhere
                my $n = syswrite $c->{sock}, $c->{send}, 7777, $c->{sent};
                $c->{sent} += $n // 0;
            }
            sysread $c->{sock}, $c->{got}, 1 << 16, length $c->{got};
        }
        if (time - $ordered_at > 0.002) {
            order($orders % 2 ? '0 1' : '1 0', 1000);
            $orders++;
            $ordered_at = time;
        }
    }
    my $moves = qos()->{migrations_total};
    is(scalar(grep { $_->{got} ne $_->{expect} } @all), 0,
        "@$args: all is answered, once and in order ($moves moves)");
    cmp_ok($moves, '>=', 1, 'connections have moved meanwhile');
    $server->stop;
}

done_testing();
