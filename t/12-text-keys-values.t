#!/usr/bin/env perl
# Keys of 1 to 250 bytes of any kind, flags of 32 bits and values from nothing up to -I are
# stored and given back byte for byte, also by items that are chained.
use MCTest;

# A value whose every byte depends on its place, so a shifted or lost piece is seen.
sub pattern {
    my ($n, $seed) = @_;
    my $word = '';
    my $i = 0;
    while (length $word < 65536) {
        $word .= pack 'N', ($i++ * 2654435761 + $seed) & 0xffffffff;
    }
    $word .= 'shift';
    return substr $word x (1 + $n / length $word), 0, $n;
}

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    my ($server, $s) = serve($profile, '-m', '128');

    for my $n (1, 2, 99, 100, 249, 250) {
        my $key = 'k' x $n;
        exchange($s, "set $key 0 0 1\r\n1\r\n", "STORED\r\n", "set of a key of $n bytes");
        exchange($s, "get $key\r\n", "VALUE $key 0 1\r\n1\r\nEND\r\n", "get of it");
        exchange($s, "delete $key\r\n", "DELETED\r\n", "delete of it");
    }
    my $odd = join '', map { chr } grep { $_ != 32 && $_ != 10 && $_ != 13 && $_ != 0 } 1 .. 250;
    exchange($s, "set $odd 0 0 1\r\n1\r\n", "STORED\r\n", 'a key of every byte');
    exchange($s, "get $odd\r\n", "VALUE $odd 0 1\r\n1\r\nEND\r\n");
    exchange($s, "get " . substr($odd, 0, 200) . "\r\n", "END\r\n", 'a prefix is another key');
    exchange($s, "set a\rb 0 0 1\r\n1\r\n", "STORED\r\n", 'a CR within a key') if !$is_ref;

    for my $flags (0, 1, 123, 65535, 65536, 2147483647, 2147483648, 4294967295) {
        exchange($s, "set f $flags 0 1\r\n1\r\n", "STORED\r\n");
        exchange($s, "get f\r\n", "VALUE f $flags 1\r\n1\r\nEND\r\n", "flags $flags");
    }
    if (!$is_ref) {
        exchange($s, "set f 4294967296 0 1\r\n1\r\n", "STORED\r\n");
        exchange($s, "get f\r\n", "VALUE f 0 1\r\n1\r\nEND\r\n", 'flags are cut to 32 bits');
    }

    exchanges($s, ["set z 0 0 0\r\n\r\n", "STORED\r\n", 'a value of no bytes'],
        ["get z\r\n", "VALUE z 0 0\r\n\r\nEND\r\n"], ["append z 0 0 2\r\nab\r\n", "STORED\r\n"],
        ["get z\r\n", "VALUE z 0 2\r\nab\r\nEND\r\n"]);
    my $every = join '', map { chr } 0 .. 255;
    exchange($s, "set every 0 0 256\r\n$every\r\n", "STORED\r\n");
    exchange($s, "get every\r\n", "VALUE every 0 256\r\n$every\r\nEND\r\n", 'every byte value');
    my $mean = "\r\nEND\r\nVALUE x 0 5\r\nget a\r\n";
    my $len = length $mean;
    exchanges($s, ["set mean 0 0 $len\r\n$mean\r\n", "STORED\r\n"],
        ["get mean\r\n", "VALUE mean 0 $len\r\n$mean\r\nEND\r\n", 'a value that looks like protocol']);

    # sizes around every power of two and up to 1 MiB
    for my $power (1 .. 19) {
        for my $n ((1 << $power) - 1, 1 << $power, (1 << $power) + 1) {
            my $v = pattern($n, $n);
            my $got = roundtrip($s, "set v 0 0 $n\r\n$v\r\nget v\r\n");
            ok($got eq "STORED\r\nVALUE v 0 $n\r\n$v\r\nEND\r\n", "value of $n bytes");
        }
    }
    my $bad = 0;
    for (my $n = 1024; $n <= 1048576 - 1024; $n += 2048 * 16) {
        my $v = pattern($n, $n);
        my $got = roundtrip($s, "set w 0 0 $n\r\n$v\r\nget w\r\n");
        $bad++ if $got ne "STORED\r\nVALUE w 0 $n\r\n$v\r\nEND\r\n";
    }
    is($bad, 0, 'values of 1024 + 2048 n bytes below 1 MiB');
    for my $n (1048576 - 1024, 1048576 - 250) {
        my $v = pattern($n, 1);
        my $got = roundtrip($s, "set w 0 0 $n\r\n$v\r\nget w\r\n");
        ok($got eq "STORED\r\nVALUE w 0 $n\r\n$v\r\nEND\r\n", "value of $n bytes");
    }
    for my $n (1048576, 1048576 + 1024) {
        exchange($s, "set w 0 0 $n\r\n" . ('w' x $n) . "\r\n",
            "SERVER_ERROR object too large for cache\r\n", "value of $n bytes is too large");
        exchange($s, "get w\r\n", "END\r\n");
    }
    $server->stop;

    # -I below and above the page size: chained items
    for my $case (['1024', 1024, '-m 64'], ['512k', 524288, '-m 64'], ['2m', 2097152, '-m 64'],
        ['8m', 8388608, '-m 128']) {
        my ($option, $max, $memory) = @$case;
        next if $is_ref && $max < 1048576;
        my ($big, $c) = serve($profile, split(' ', $memory), '-I', $option,
                $max == 1024 && $profile ne '1.4' ? ('-o', 'slab_chunk_max=1') : (),
                $max == 524288 && $profile eq '1.4' ? ('-o', 'slab_chunk_max=524288') : (),
                $max == 1024 && $profile eq '1.4' ? ('-o', 'slab_chunk_max=1024') : ());
        is(mem_stats($c, 'settings')->{item_size_max}, $max, "-I $option shows");
        my @sizes = $max <= 1048576 ? ($max - 200, int($max / 2))
            : (524288 - 100, 524288, 524288 + 100, 1048576 - 200, 1048576, 1048576 + 1,
                1572864 - 49, 1572864, $max - 2048, map { int($max * $_ / 17) } 5 .. 16);
        for my $n (@sizes) {
            my $v = pattern($n, $n);
            my $got = roundtrip($c, "set v 9 0 $n\r\n$v\r\nget v\r\n");
            ok($got eq "STORED\r\nVALUE v 9 $n\r\n$v\r\nEND\r\n", "-I $option: value of $n bytes");
        }
        exchange($c, "set v 0 0 $max\r\n" . ('v' x $max) . "\r\n",
            "SERVER_ERROR object too large for cache\r\n", "-I $option: $max bytes are refused");
        exchange($c, "get v\r\n", "END\r\n");
        if ($max > 1048576) {
            my ($m, $extra) = (700000, 300000);
            my ($v, $x) = (pattern($m, 7), pattern($extra, 8));
            my $got = roundtrip($c, "set v 3 0 $m\r\n$v\r\nappend v 0 0 $extra\r\n$x\r\nget v\r\n");
            my $n = $m + $extra;
            ok($got eq "STORED\r\nSTORED\r\nVALUE v 3 $n\r\n$v$x\r\nEND\r\n",
                "-I $option: append to a large value");
            $got = roundtrip($c, "prepend v 0 0 $extra\r\n$x\r\nget v\r\n");
            $n += $extra;
            ok($got eq "STORED\r\nVALUE v 3 $n\r\n$x$v$x\r\nEND\r\n", "-I $option: prepend to it");
            exchange($c, "incr v 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
            my $w = pattern($max - 1000, 9);
            my $room = length $w;
            $got = roundtrip($c, "set w 0 0 $room\r\n$w\r\nappend w 0 0 2000\r\n"
                . ('z' x 2000) . "\r\nget w\r\n");
            ok($got eq "STORED\r\nNOT_STORED\r\nVALUE w 0 $room\r\n$w\r\nEND\r\n",
                "-I $option: append beyond -I is NOT_STORED") if !$is_ref;
            put($c, "set w 0 0 $room\r\n" . substr $w, 0, -1);
            put($c, "!XX");
            expect_bytes($c, "CLIENT_ERROR bad data chunk\r\n",
                "-I $option: bad end of a chained value") if !$is_ref;
            $c = $big->connect if $is_ref;
        }
    }
});

done_testing();
