#!/usr/bin/env perl
# Large requests run in pieces: small requests of other connections are answered while they
# are in progress, replies of one connection stay in order, results are the same.
use MCTest;

# Reads all sockets until each has its number of bytes. Returns the order in which they
# became complete.
sub finish_order($socks, $want) {
    my @left = 0 .. $#$socks;
    my @order;
    while (@left) {
        my $bits = '';
        vec($bits, fileno $socks->[$_], 1) = 1 for @left;
        my $n = select(my $ready = $bits, undef, undef, 60);
        last if $n <= 0;
        for my $i (@left) {
            next if !vec($ready, fileno $socks->[$i], 1);
            return @order if !MCTest::fill($socks->[$i], 0.01);
        }
        my @done = grep { length(MCTest::pending($socks->[$_])) >= $want->[$_] } @left;
        push @order, @done;
        my %done = map { $_ => 1 } @done;
        @left = grep { !$done{$_} } @left;
    }
    return @order;
}

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '1', '-m', '128');
    my $value = join '', map { chr(65 + $_ % 26) } 1 .. 5000;
    my $bad = 0;
    for my $i (0 .. 199) {
        $bad++ if roundtrip($s, "set k$i 0 0 5000\r\n$value\r\n", "STORED\r\n") ne "STORED\r\n";
    }
    is($bad, 0, '200 values of 5000 bytes');
    exchange($s, "set small 0 0 1\r\n1\r\n", "STORED\r\n");

    # eight connections with multigets of 5000 keys, then one small get
    my $keys = join ' ', map { 'k' . $_ % 200 } 0 .. 4999;
    my $huge = join('', map { 'VALUE k' . $_ % 200 . " 0 5000\r\n$value\r\n" } 0 .. 4999) . "END\r\n";
    my $small = "VALUE small 0 1\r\n1\r\nEND\r\n";
    my @socks = map { $server->connect } 0 .. 8;
    put($socks[$_], "get $keys\r\n") for 0 .. 7;
    put($socks[8], "get small\r\n");
    my @order = finish_order(\@socks, [(length $huge) x 8, length $small]);
    is(scalar(@order), 9, 'all are answered');
    my ($place) = grep { $order[$_] == 8 } 0 .. $#order;
    cmp_ok($place, '<=', 1, 'the small get is among the first to be complete');
    is((grep { read_bytes($socks[$_], length $huge) ne $huge } 0 .. 7), 0, 'the multigets are right');
    is(read_bytes($socks[8], length $small), $small, 'so is the small one');

    # order within one connection
    my $send = "get $keys\r\nget small\r\nversion\r\nset x 0 0 5000\r\n$value\r\nget x\r\n"
        . "delete x\r\nget x k1\r\n";
    my $want = $huge . $small . VERSION_REPLY($profile)
        . "STORED\r\nVALUE x 0 5000\r\n$value\r\nEND\r\nDELETED\r\nVALUE k1 0 5000\r\n$value\r\nEND\r\n";
    put($s, $send);
    ok(read_bytes($s, length $want) eq $want, 'a small request behind a large one waits for it');
    expect_open($s, 'and nothing more came');

    # large stores on many connections, small ones in between
    my $large = $value x 100;
    my $n = length $large;
    my @writers = map { $server->connect } 0 .. 7;
    for my $part (0 .. 9) {
        put($writers[$_], $part == 0 ? "set w$_ $_ 0 $n\r\n" . substr($large, 0, $n / 10)
            : substr $large, $part * $n / 10, $n / 10) for 0 .. 7;
        exchange($s, "get small\r\n", $small, "a small get beside bodies, part $part");
    }
    put($_, "\r\n") for @writers;
    is((grep { read_line($_) ne "STORED\r\n" } @writers), 0, 'large stores');
    $bad = 0;
    for my $i (0 .. 7) {
        my $reply = "VALUE w$i $i $n\r\n$large\r\nEND\r\n";
        $bad++ if roundtrip($s, "get w$i\r\n", $reply) ne $reply;
    }
    is($bad, 0, 'all read back');

    # boundaries of the classes: 16 and 17 keys, values of 8 KB and a byte more
    for my $count (15, 16, 17, 18, 64, 65) {
        my $list = join ' ', map { "k$_" } 0 .. $count - 1;
        exchange($s, "get $list\r\nget small\r\n",
            join('', map { "VALUE k$_ 0 5000\r\n$value\r\n" } 0 .. $count - 1) . "END\r\n$small",
            "get of $count keys and a small one behind it");
    }
    for my $size (8191, 8192, 8193, 65535, 65536, 131072, 131073) {
        my $v = substr $large, 0, $size;
        exchange($s, "set v 0 0 $size\r\n$v\r\nget v\r\nget small v small\r\nget small\r\n",
            "STORED\r\nVALUE v 0 $size\r\n$v\r\nEND\r\nVALUE small 0 1\r\n1\r\nVALUE v 0 $size\r\n$v\r\n"
                . "VALUE small 0 1\r\n1\r\nEND\r\n$small", "a value of $size bytes");
    }

    # one connection that asks for many keys again and again; 40 of the larger ones are more than a piece of output
    put($s, join '', map {"set s$_ 0 0 200\r\n" . 's' x 200 . "\r\n"} 0 .. 199);
    is(read_bytes($s, 200 * 8), "STORED\r\n" x 200, '200 values of 200 bytes');
    my $c = $server->connect;
    for my $way ('one by one', 'three at once', 'in two parts') {
        $bad = 0;
        for my $round (0 .. 59) {
            my @names = map { 's' . ($_ * 7 + $round) % 250 } 0 .. 16 + 2 * $round;
            splice @names, 10 + $round % 9, 0, 'k1' if $round % 5 == 4;
            my $times = $way eq 'three at once' ? 3 : 1;
            my $lines = "get @names\r\n" x $times;
            my $cut = $way eq 'in two parts' ? (length $lines) * $round / 60 : 0;
            put($c, substr $lines, 0, $cut);
            put($c, substr $lines, $cut);
            my $replies = (join('', map { $_ eq 'k1' ? "VALUE k1 0 5000\r\n$value\r\n"
                    : substr($_, 1) < 200 ? "VALUE $_ 0 200\r\n" . 's' x 200 . "\r\n" : '' } @names)
                . "END\r\n") x $times;
            $bad++ if read_bytes($c, length $replies) ne $replies;
        }
        is($bad, 0, "gets of 17 to 135 keys, $way");
    }
    expect_open($c, 'and nothing more came');

    # a connection that leaves while its large request runs
    for my $i (1 .. 50) {
        my $c = $server->connect;
        put($c, "get $keys\r\n" x 3);
        read_bytes($c, 100 * $i) if $i % 2;
        close $c;
    }
    exchange($s, "get small\r\n", $small, 'clients that leave meanwhile do no harm');
    exchange($s, "flush_all\r\nget small k1\r\n", "OK\r\nEND\r\n");
});

done_testing();
