#!/usr/bin/env perl
# Everything changes a hundred times a second under the load of 64 connections that check each
# byte: limits, classes, pins, the workers of connections. No reply is lost, none is doubled, and
# none comes out of order. And bulk work keeps its share beside small requests without end.
use MCTest ':ours';
use Time::HiRes qw(time sleep);

my $CONNS = 32; # of each of two clients
my $large = join '', map { chr 33 + $_ % 90 } 1 .. 20_000;
my @classes = qw(small write bulk background auto);

# ---- clients --------------------------------------------------------------------------------------

# A few requests and their replies. Each connection has keys of its own, and counts.
sub make_batch($c) {
    my ($send, $want) = ('', '');
    for (1 .. 1 + int rand 5) {
        my $what = int rand 8;
        my $key = "k$c->{id}-" . int rand 6;
        my $value = $c->{values}{$key};
        if ($what < 2) {
            my $length = $what ? 1 + int rand 19_999 : 1 + int rand 60;
            $value = $c->{values}{$key} = substr $large, int(rand(20_000 - $length)), $length;
            $send .= "set $key 0 0 $length\r\n$value\r\n";
            $want .= "STORED\r\n";
        } elsif ($what < 4) {
            $send .= "get $key\r\n";
            $want .= reply($key, $value) . "END\r\n";
        } elsif ($what == 4) {
            my @keys = map { "k$c->{id}-" . $_ % 7 } 1 .. 30;
            $send .= "get @keys\r\n";
            $want .= join('', map { reply($_, $c->{values}{$_}) } @keys) . "END\r\n";
        } elsif ($what == 5) {
            $send .= "incr n$c->{id} 1\r\n";
            $want .= ++$c->{count} . "\r\n";
        } elsif ($what == 6) {
            $send .= "qos class $classes[rand @classes]\r\n";
            $want .= "OK\r\n";
        } else {
            delete $c->{values}{$key};
            $send .= "delete $key noreply\r\nget $key\r\n";
            $want .= "END\r\n";
        }
    }
    $c->{want} = $want;
    $c->{got} = '';
    $c->{send} = $send;
}

sub reply($key, $value) {
    return defined $value ? "VALUE $key 0 " . length($value) . "\r\n$value\r\n" : '';
}

# Converses on all its connections until it is told to stop, and says how it was.
sub client($server, $first, $in, $out) {
    my @conns = map { +{id => $first + $_, sock => $server->connect, count => 0, values => {}} } 1 .. $CONNS;
    for my $c (@conns) {
        put($c->{sock}, "set n$c->{id} 0 0 1\r\n0\r\n");
        read_line($c->{sock});
        make_batch($c);
    }
    syswrite $out, 'r';
    my ($batches, $is_over, $wrong) = (0, 0, '');
    my @open = @conns;
    my $end = time + 600;
    while (@open && !$wrong) {
        my ($read, $write) = ('', '');
        vec($read, fileno $in, 1) = 1 if !$is_over;
        vec($read, fileno $_->{sock}, 1) = 1 for @open;
        vec($write, fileno $_->{sock}, 1) = 1 for grep { length $_->{send} } @open;
        select $read, $write, undef, 5;
        $wrong = 'no reply in time' if time > $end;
        $is_over = 1 if !$is_over && vec $read, fileno $in, 1;
        for my $c (@open) {
            if (length $c->{send} && vec $write, fileno $c->{sock}, 1) {
                my $n = syswrite $c->{sock}, $c->{send}, 1 + int rand 30_000;
                substr $c->{send}, 0, $n // 0, '';
            }
            next if !vec $read, fileno $c->{sock}, 1;
            my $n = sysread $c->{sock}, $c->{got}, 65536, length $c->{got};
            $wrong ||= "connection $c->{id} is closed" if defined $n && $n == 0;
            my $so_far = substr $c->{want}, 0, length $c->{got};
            $wrong ||= "want " . show($c->{want}) . " got " . show($c->{got}) if $c->{got} ne $so_far;
            next if length $c->{got} < length $c->{want};
            $batches++;
            make_batch($c);
            $c->{is_done} = 1 if $is_over;
            $c->{send} = '' if $is_over;
        }
        @open = grep { !$_->{is_done} } @open;
    }
    syswrite $out, $wrong || "ok $batches\n";
}

sub start_client($server, $first) {
    pipe my $in, my $tell;
    pipe my $hear, my $out;
    my $pid = in_child(sub {
        close $tell;
        close $hear;
        srand $first;
        eval { client($server, $first, $in, $out); 1 } or syswrite $out, "died: $@";
    });
    close $in;
    close $out;
    sysread $hear, my $ready, 1;
    return {pid => $pid, tell => $tell, hear => $hear};
}

# Its last word.
sub end_client($client) {
    syswrite $client->{tell}, 'x'; # an end of file would wait for the other client's copy
    my $word = '';
    while (sysread $client->{hear}, $word, 4096, length $word) {
    }
    waitpid $client->{pid}, 0;
    return $word;
}

# ---- what changes ---------------------------------------------------------------------------------

sub some_order($workers) {
    my $from = int rand $workers;
    my $to = $workers > 1 ? ($from + 1 + int rand($workers - 1)) % $workers : $from;
    my $rate = int 5000 * 10 ** rand 4;
    my @orders = (
        'repin', 'rebalance', ("rebalance $from $to " . (1 + int rand 20)) x 2,
        "qps_limit $rate", "qps_limit $rate " . (1 + int rand 1000), 'qps_limit off',
        "qps_limit $classes[rand 4] $rate", "qps_limit $classes[rand 4] off",
        'peer ' . ($rate > 1e7 ? 'off' : $rate), 'peer off',
        'unit key', 'unit cmd', 'dry_run on', 'dry_run off', 'cpu_limit 300%', 'cpu_limit off',
        'slo p95:3600s', 'slo bulk p95:3600s', 'slo off',
    );
    return $orders[rand @orders];
}

for my $case ([1, 0.7, '--pin'], [4, 3, '--pin', '--balance'], [64, 1.3, '--steer=p2c']) {
    my ($workers, $seconds, @args) = @$case;
    my $server = serve('-t', $workers, '-m', '128', @args);
    my $s = $server->control;
    my @clients = map { start_client($server, 1000 * $_) } 1, 2;
    my ($orders, $refused) = (0, '');
    my $end = time + $seconds;
    srand $workers;
    while (time < $end) {
        my $order = some_order($workers);
        next if $workers == 1 && $order =~ /rebalance \d/;
        put($s, "qos $order\r\n");
        my $reply = read_line($s);
        $refused ||= "qos $order: $reply" if $reply ne "OK\r\n";
        $orders++;
        sleep 0.008;
    }
    is($refused, '', "-t $workers: $orders orders were obeyed");
    # What is still limited would take long.
    put($s, join '', map { "qos $_\r\n" } 'qps_limit off', (map { "qps_limit $_ off" } @classes[0 .. 3]),
        'peer off', 'cpu_limit off');
    read_line($s) for 1 .. 7;
    like(end_client($_), qr/^ok \d+$/, "-t $workers: 32 connections heard what was right") for @clients;
    my $q = mem_stats($s, 'qos');
    is($q->{slo_shed} + $q->{qps_rejected}, 0, "-t $workers: nothing was refused");
    cmp_ok($q->{migrations_total}, '>', 0, "-t $workers: connections have moved") if $workers == 4;
    is($q->{qps_delay_count}, $q->{qps_delayed}, "-t $workers: each wait is counted");
    soon { mem_stats($s)->{curr_connections} <= 3 } "-t $workers: all have left";
}

# ---- shares -----------------------------------------------------------------------------------------

# More small requests than the worker can serve, and sixteen connections of bulk: the bulk class
# has its turns and is served to the end.
{
    my $server = serve('-t', '1', '--class-shares=bulk:20');
    my $s = $server->control;
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my $hit = "VALUE a 0 1\r\n1\r\nEND\r\n";
    my @flood = map {
        in_child(sub {
            my @socks = map { $server->connect } 1 .. 8;
            my $is_up = 1;
            while ($is_up) {
                put($_, "get a\r\n" x 7) for @socks;
                $is_up = !grep { read_bytes($_, 7 * length $hit) ne $hit x 7 } @socks;
            }
            POSIX::_exit(1); # the server has ended
        });
    } 1, 2;
    my $get = 'get' . ' a' x 200 . "\r\n";
    my $reply = "VALUE a 0 1\r\n1\r\n" x 200 . "END\r\n";
    my @bulk = map { $server->connect } 1 .. 16;
    my $before;
    soon { $before = mem_stats($s, 'classes'); $before->{class_small_served} > 1000 }
        'a flood of small requests';
    my $wrong = 0;
    for (1 .. 20) {
        put($_, $get) for @bulk;
        $wrong += read_bytes($_, length $reply) ne $reply for @bulk;
    }
    my $after = mem_stats($s, 'classes');
    my %moved = map { $_ => $after->{$_} - $before->{$_} } grep { /_(served|turns|overdue)$/ } keys %$after;
    is($wrong, 0, 'all of the bulk is served beside the flood');
    has(\%moved, 'and counted, the flood went on, a turn at the least for each', class_bulk_served => 320,
        class_small_served => ['>', 0], class_bulk_turns => ['>=', 320]);
    is($after->{class_bulk_waiting}, 0, 'nobody waits');
    kill 'KILL', @flood;
    waitpid $_, 0 for @flood;
}

done_testing();
