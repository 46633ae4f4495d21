#!/usr/bin/env perl
# Thousands of commands in one write, and gets of thousands of keys, are answered in order
# and completely.
use MCTest;

# Sends from a child so that neither side can block the other for good.
sub talk($s, $send, $want_len) {
    my $pid = in_child(sub {
        put($s, $send);
    });
    my $got = read_bytes($s, $want_len);
    waitpid $pid, 0;
    return $got;
}

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-m', '128');

    # keys
    my $value = 'v' x 10;
    put($s, "set k$_ $_ 0 10 noreply\r\n$value\r\n") for 0 .. 99;
    for my $n (1, 2, 6, 7, 8, 15, 16, 17, 18, 33, 100) {
        my $keys = join ' ', map { "k$_" } 0 .. $n - 1;
        my $want = join('', map { "VALUE k$_ $_ 10\r\n$value\r\n" } 0 .. $n - 1) . "END\r\n";
        exchange($s, "get $keys\r\n", $want, {cmd_get => $n, get_hits => $n}, "get of $n keys");
    }
    my $mixed = join ' ', map { $_ % 3 ? "k$_" : "miss$_" } 0 .. 99;
    exchange($s, "get $mixed\r\n", join('', map { $_ % 3 ? "VALUE k$_ $_ 10\r\n$value\r\n" : '' } 0 .. 99)
        . "END\r\n", {get_hits => 66, get_misses => 34}, 'hits and misses mixed');

    my $many = 18725;
    exchange($s, "set foobarbaz 0 0 1\r\n1\r\n", "STORED\r\n");
    my $line = 'get' . (' foobarbaz' x $many) . "\r\n";
    my $want = "VALUE foobarbaz 0 1\r\n1\r\n" x $many . "END\r\n";
    my $got = talk($s, $line, length $want);
    ok($got eq $want, "get of $many keys");
    expect_open($s, 'and nothing more came');
    my ($cas) = mem_gets($s, 'foobarbaz');
    $line =~ s/^get/gets/;
    $want = "VALUE foobarbaz 0 1 $cas\r\n1\r\n" x $many . "END\r\n";
    ok(talk($s, $line, length $want) eq $want, "gets of $many keys");
    $line = 'get' . join('', map { " missing$_" } 1 .. $many) . "\r\n";
    exchange($s, $line, "END\r\n", {get_misses => $many}, "get of $many absent keys");
    my $bad = "CLIENT_ERROR bad command line format\r\n";
    if ($profile ne 'ref') {
        $line = 'get' . (' foobarbaz' x 1500) . ' ' . ('k' x 251) . "\r\n";
        exchange($s, $line, $bad, "an over-long key at the end of 1500 drops all hits");
        # a line that does not fit the input buffer is answered in parts: values that went out
        # cannot be taken back, but the reply ends in the error and the next one is in step
        $line = 'get' . (' foobarbaz' x $many) . ' ' . ('k' x 251) . "\r\n";
        my $value = "VALUE foobarbaz 0 1\r\n1\r\n";
        exchange($s, $line, qr/\A(?:\Q$value\E)+\Q$bad\E\z/, "at the end of $many it ends the values");
    }

    # 5000 commands in one write
    my $round = 0;
    my ($send, $reply) = ('', '');
    for my $i (1 .. 5000) {
        $send .= "set p$i 0 0 " . length($i) . "\r\n$i\r\n";
        $reply .= "STORED\r\n";
        if ($i % 3 == 0) {
            $send .= "get p$i\r\n";
            $reply .= "VALUE p$i 0 " . length($i) . "\r\n$i\r\nEND\r\n";
        }
        if ($i % 5 == 0) {
            $send .= "incr p$i 1\r\n";
            $reply .= ($i + 1) . "\r\n";
        }
        if ($i % 7 == 0) {
            $send .= "delete p$i\r\nbogus\r\n";
            $reply .= "DELETED\r\nERROR\r\n";
        }
        if ($i % 50 == 0) {
            $send .= "get " . join(' ', map { 'k' . ($_ % 100) } $i .. $i + 39) . "\r\n";
            $reply .= join('', map { 'VALUE k' . ($_ % 100) . ' ' . ($_ % 100)
                        . " 10\r\n$value\r\n" } $i .. $i + 39) . "END\r\n";
        }
    }
    ok(talk($s, $send, length $reply) eq $reply, 'thousands of commands in one write');
    expect_open($s, 'and nothing more came');

    # large values pipelined
    my $large = join '', map { chr(65 + $_ % 26) } 1 .. 100000;
    exchange($s, "set large 0 0 100000\r\n$large\r\n", "STORED\r\n");
    my $one = "VALUE large 0 100000\r\n$large\r\nEND\r\n";
    $send = "get large\r\nget k1\r\n" x 100;
    $reply = ($one . "VALUE k1 1 10\r\n$value\r\nEND\r\n") x 100;
    ok(talk($s, $send, length $reply) eq $reply, '100 gets of 100 kB and small ones');
    $send = 'get' . (' large' x 60) . "\r\n";
    $reply = "VALUE large 0 100000\r\n$large\r\n" x 60 . "END\r\n";
    ok(talk($s, $send, length $reply) eq $reply, 'one get of 60 values of 100 kB');
    $send = "set large 0 0 100000 noreply\r\n$large\r\n" x 50 . "get k2\r\n";
    $reply = "VALUE k2 2 10\r\n$value\r\nEND\r\n";
    ok(talk($s, $send, length $reply) eq $reply, '50 large sets, then a get');
    expect_open($s, 'and nothing more came');
});

done_testing();
