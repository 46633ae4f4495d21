#!/usr/bin/env perl
# -R bounds the commands that a connection may run in a row; old values go out whole while
# the key is deleted or replaced.
use MCTest;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-R', '1');
    my $send = join '', map { "set foobar$_ 0 0 5\r\nBubba\r\n" } 0 .. 5;
    put($s, $send);
    expect_bytes($s, "STORED\r\n" x 6, 'six pipelined sets', $send);
    my $yields = mem_stats($s)->{conn_yields};
    if ($profile eq '1.4') {
        is($yields, 5, '[1.4] -R 1: exactly five yields');
    } else {
        cmp_ok($yields, '>=', 5, '-R 1: at least five yields');
    }
    ($server, $s) = serve($profile);
    put($s, $send);
    expect_bytes($s, "STORED\r\n" x 6, 'six pipelined sets', $send);
    is(mem_stats($s)->{conn_yields}, 0, '-R 20: none');

    # values that are deleted or replaced while they are being sent
    my $size = 256 * 1024;
    for my $change ('delete', 'replace', 'flush', 'evict', 'touch') {
        my $count = 60;
        my $old = 'o' x $size;
        exchange($s, "set big 0 0 $size\r\n$old\r\n", "STORED\r\n");
        my $reader = $server->connect;
        put($reader, 'get' . (' big' x $count) . "\r\n");
        my $head = read_line($reader);
        is($head, "VALUE big 0 $size\r\n", "$change: the reply begins");
        exchange($s, "delete big\r\n", "DELETED\r\n") if $change eq 'delete';
        exchange($s, "set big 0 0 $size\r\n" . ('n' x $size) . "\r\n", "STORED\r\n") if $change eq 'replace';
        exchange($s, "flush_all\r\n", "OK\r\n") if $change eq 'flush';
        exchange($s, "touch big -1\r\n", "TOUCHED\r\n") if $change eq 'touch' && $profile ne 'ref';
        if ($change eq 'evict') {
            roundtrip($s, "set fill$_ 0 0 1000000\r\n" . ('f' x 1000000) . "\r\n") for 1 .. 80;
            roundtrip($s, "set more$_ 0 0 $size\r\n" . ('m' x $size) . "\r\n") for 1 .. 300;
        }
        my $got = read_bytes($reader, $size + 2);
        ok($got eq "$old\r\n", "$change: the value being sent stays the old one");
        my ($whole, $bad) = (1, 0);
        while (1) {
            my $line = read_line($reader);
            last if $line eq "END\r\n";
            if ($line ne "VALUE big 0 $size\r\n") {
                $bad = 'line ' . show($line);
                last;
            }
            my $value = read_bytes($reader, $size + 2);
            $whole++;
            next if $value eq "$old\r\n" || $value eq ('n' x $size) . "\r\n";
            $bad = "value $whole is mixed";
            last;
        }
        is($bad, 0, "$change: $whole values, each whole");
        expect_open($reader, "$change: the reply ends");
    }
});

done_testing();
