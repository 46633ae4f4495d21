#!/usr/bin/env perl
# Every number that a client can write, at the edges of what the command takes: which words are
# numbers to it, and what the others are answered, in the text, meta and binary protocols.
use MCTest ':ours';
use MCBinary;

# Each word, and the kinds of numbers that it is one of: i, u: with 32 bits, signed or not; I, U:
# with 64. Those behind the bar only in 1.4, where they are read as the C library does.
my @words = map { [/^(.*) (\S+)\z/s] } (
    '0 iuIU', '1 iuIU', '-1 iI', '-0 iuIU', '00 iuIU', '-00 iuIU', '7 iuIU',
    '0000000000000000000000000000000000001 iuIU', '-00000000000000000000000000000001 iI',
    '2147483647 iuIU', '2147483648 uIU', '4294967295 uIU', '4294967296 IU',
    '9223372036854775807 IU', '9223372036854775808 U', '18446744073709551615 U',
    '18446744073709551616 -', '99999999999999999999999999 -', '36893488147419103233 -',
    '-2147483648 iI', '-2147483649 I', '-4294967295 I', '-4294967296 I', '-9223372036854775808 I',
    '-9223372036854775809 -', '-18446744073709551615 -', '-18446744073709551616 -',
    '+0 |iuIU', '+1 |iuIU', '+4294967295 |uIU', '+9223372036854775808 |U', '+18446744073709551616 -',
    "\t1 |iuIU", "1\t |iuIU", "1\tx |iuIU", "1\x0b |iuIU", "-1\r |iI", "1\0 |iuIU", "1\0x |iuIU", "+1\t |iuIU",
    '1x -', 'x1 -', 'x -', '- -', '+ -', '+-1 -', '--1 -', '-+1 -', '0x1 -', '1.0 -', '1e1 -', '1- -',
    '1, -', "\0 -", "\x{b9} -", "1\x{85} -",
);

my $FORMAT = "CLIENT_ERROR bad command line format\r\n";
my $EXPTIME = "CLIENT_ERROR invalid exptime argument\r\n";
my $ERROR = "ERROR\r\n";
my $TOKEN = "CLIENT_ERROR bad token in command line format\r\n";
my $ma_flag = "CLIENT_ERROR invalid or duplicate flag\r\n";
my $pages = qr/^(BADCLASS|NOSPARE|SAME) /;
my $limit = qr/^MEMLIMIT_|^OK\r\n/;
my $tuned = qr/^OK\r\n|^ERROR hot and warm/;
my $slept = qr/^OK\r\n|^CLIENT_ERROR sleep must/;
my $window = qr/^OK\r\n|^CLIENT_ERROR automove window/;
my $stored = qr/^STORED\r\n\z/;
my $ended = qr/END\r\n\z/;

# [command, the word in place of %s; the kind in 1.4 and in 1.6; reply to a number; to another word
# in 1.4 and in 1.6]. Kind 0: what is garbled is 0, what is out of range (I) an error. Kind any: each
# word will do. '': the profile has no such command.
my @commands = (
    ["incr n %s", 'U', 'U', qr/^\d+\r\n\z/, ("CLIENT_ERROR invalid numeric delta argument\r\n") x 2],
    ["decr n %s", 'U', 'U', qr/^\d+\r\n\z/, ("CLIENT_ERROR invalid numeric delta argument\r\n") x 2],
    ["set k %s 0 1\r\n1", 'U', 'U', $stored, $FORMAT . $ERROR, $FORMAT],
    ["set k 0 %s 1\r\n1", 'I', 'I', $stored, $FORMAT . $ERROR, $FORMAT],
    ["add k %s 0 1\r\n1", 'U', 'U', qr/STORED\r\n\z/, $FORMAT . $ERROR, $FORMAT],
    ["append k 0 %s 1\r\n1", 'I', 'I', qr/STORED\r\n\z/, $FORMAT . $ERROR, $FORMAT],
    ["cas n %s 0 1 1\r\n1", 'U', 'U', qr/^EXISTS/, $FORMAT . $ERROR, $FORMAT],
    ["cas n 0 %s 1 1\r\n1", 'I', 'I', qr/^EXISTS/, $FORMAT . $ERROR, $FORMAT],
    ["cas n 0 0 1 %s\r\n1", 'U', 'U', qr/^EXISTS/, $FORMAT . $ERROR, $FORMAT],
    ["touch k %s", 'i', 'i', qr/^(TOUCHED|NOT_FOUND)\r\n\z/, $EXPTIME, $EXPTIME],
    ["gat %s k", 'i', 'i', $ended, $EXPTIME, $EXPTIME],
    ["gats %s k", 'i', 'i', $ended, $EXPTIME, $EXPTIME],
    ["flush_all %s", '0', 'i', qr/^OK/, $FORMAT, $EXPTIME],
    ["verbosity %s", 'any', 'u', qr/^OK/, '', $FORMAT],
    ["cache_memlimit %s", 'U', 'u', $limit, $ERROR, $ERROR],
    ["slabs reassign %s 1", '0', 'i', $pages, $FORMAT, $FORMAT],
    ["slabs reassign 1 %s", '0', 'i', $pages, $FORMAT, $FORMAT],
    ["slabs automove %s", '0', 'u', qr/^(OK|ERROR)\r\n/, $FORMAT, $FORMAT],
    ["slabs automove window %s", '', 'u', $window, '', $FORMAT],
    ["lru tune %s 0 0.2 2.0", 'U', 'u', $tuned, $ERROR, $ERROR],
    ["lru tune 0 %s 0.2 2.0", 'U', 'u', $tuned, $ERROR, $ERROR],
    ["lru temp_ttl %s", 'I', 'i', qr/^OK/, $ERROR, $ERROR],
    ["lru_crawler tocrawl %s", 'u', 'u', qr/^OK/, $FORMAT, $FORMAT],
    ["lru_crawler sleep %s", 'U', 'u', $slept, $FORMAT, $FORMAT],
);

# Of a meta command a word is a number in 1.4 when it is one in 1.6.
my @meta = (
    (map { ["mg n $_%s", 'i', qr/^(HD|EN)/, $TOKEN] } qw(T N R)),
    (map { ["mg n $_%s", 'U', qr/^HD/, $TOKEN] } qw(C E)),
    ['mg n F%s', 'u', qr/^HD/, $FORMAT],
    ['mg n J%s', 'U', qr/^HD/, "CLIENT_ERROR invalid numeric initial value\r\n"],
    ['mg n D%s', 'U', qr/^HD/, "CLIENT_ERROR invalid numeric delta value\r\n"],
    (map { ["ms k 1 $_%s\r\n1", 'i', qr/^(HD|NF)/, $TOKEN] } qw(T N R)),
    (map { ["ms k 1 $_%s\r\n1", 'U', qr/^(HD|NF|EX)/, $TOKEN] } qw(C E)),
    ["ms k 1 F%s\r\n1", 'u', qr/^HD/, $FORMAT],
    ["ms k 1 J%s\r\n1", 'U', qr/^HD/, "CLIENT_ERROR invalid numeric initial value\r\n"],
    ["ms k 1 D%s\r\n1", 'U', qr/^HD/, "CLIENT_ERROR invalid numeric delta value\r\n"],
    (map { ["md k I $_%s", 'i', qr/^(HD|NF)/, $TOKEN] } qw(T N R)),
    (map { ["md k I $_%s", 'U', qr/^(HD|NF|EX)/, $TOKEN] } qw(C E)),
    ['md k x F%s', 'u', qr/^(HD|NF)/, $FORMAT],
    (map { ["ma n $_%s", 'i', qr/^(HD|NF)/, $ma_flag] } qw(T N R)),
    (map { ["ma n $_%s", 'U', qr/^(HD|EX|NF)/, $ma_flag] } qw(C E J D)),
    ['ma n F%s', 'u', qr/^(HD|NF)/, $FORMAT],
);

sub is_number($kinds, $kind, $profile) {
    my ($always, $loose) = split /\|/, $kinds;
    return $kind eq 'any' || index($always // '', $kind) >= 0
        || ($profile eq '1.4' && index($loose // '', $kind) >= 0);
}

# What a profile without strict numbers takes for 0 or for a number: all but what is out of range.
sub is_lenient_number {
    my ($word, $kinds) = @_;
    return is_number($kinds, 'I', '1.4') || $word !~ /^[-+]?[0-9]+\z/;
}

# Sends the command with each word; the test fails with what was answered wrongly.
sub try_words($s, $profile, $command, $is_good, $good, $bad, @words) {
    my @wrong;
    for (@words) {
        my ($word, $kinds) = @$_;
        my $send = sprintf $command, $word;
        # The key is there, and a number, whatever the words before have made of it.
        my $got = roundtrip($s, "set n 0 0 1\r\n5\r\n$send\r\n");
        my $is_right = $got =~ s/^STORED\r\n// && ($is_good->($word, $kinds) ? $got =~ $good : $got eq $bad);
        push @wrong, show($send) . ' -> ' . show($got) if !$is_right;
    }
    is(join("\n", @wrong), '', "[$profile] " . show($command));
}

sub test_text {
    my ($s, $profile) = @_;
    for (@commands) {
        my ($command, $kind_14, $kind_16, $good, $bad_14, $bad_16) = @$_;
        my $kind = $profile eq '1.4' ? $kind_14 : $kind_16;
        next if $kind eq '';
        my $is_good = $kind eq '0' ? \&is_lenient_number : sub { is_number($_[1], $kind, $profile) };
        try_words($s, $profile, $command, $is_good, $good, $profile eq '1.4' ? $bad_14 : $bad_16, @words);
        roundtrip($s, "debugtime 2\r\n") if $command =~ /^flush_all/; # "flush_all 1" takes what is stored in this second
    }
    for (@meta) {
        my ($command, $kind, $good, $bad) = @$_;
        try_words($s, $profile, $command, sub { is_number($_[1], $kind, '1.6') }, $good, $bad, @words, ['', '']);
    }
}

# Lengths: a number is followed by that many bytes, anything else by a command.
sub test_lengths($s, $profile) {
    my $is_14 = $profile eq '1.4';
    for my $command ('set k 0 0 %s', 'append none 0 0 %s', 'ms k %s') {
        my $is_meta = $command =~ /^ms/;
        my $good = $is_meta ? "HD\r\n" : $command =~ /^set/ ? "STORED\r\n" : "NOT_STORED\r\n";
        for ('1', '01', '0000000000000000000000000001', '+1', "\t1", "1\t", "1\0", "1\r") {
            next if $is_meta && $_ eq "1\r";    # the line ends in CR CR LF there
            my $is_number = /^0*1\z/ || ($is_14 && !$is_meta);
            exchange($s, sprintf("$command\r\n1\r\n", $_), $is_number ? $good
                : $FORMAT . ($is_14 ? $ERROR : $FORMAT), show(sprintf $command, $_));
        }
        my $zero = $is_meta ? $FORMAT . ($is_14 ? $ERROR : $FORMAT) : $good;
        exchange($s, sprintf("$command\r\n\r\n", '0'), $good, sprintf $command, '0');
        exchange($s, sprintf("$command\r\n\r\n", '-0'), $zero, sprintf $command, '-0');
        exchange($s, sprintf("$command\r\n", $_), $FORMAT, show(sprintf $command, $_))
            for qw(-1 2147483646 2147483647 2147483648 4294967295 4294967296 4294967297
            9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
            18446744073709551617 -4294967295 -18446744073709551615 x 1x 0x1 1.0 + - +-1);
    }
    exchange($s, "set k 0 0 1\r\r\n1\r\n", $is_14 ? "STORED\r\n" : $FORMAT . $FORMAT, 'CR CR LF');
}

sub test_fractions($s, $profile) {
    for (['slabs automove ratio %s', "OK\r\n"], ['lru tune 20 40 %s 2.0', "OK\r\n"],
        ['lru tune 20 40 0.2 %s', "OK\r\n"])
    {
        my ($command, $good) = @$_;
        exchange($s, sprintf("$command\r\n", $_), $good, sprintf $command, $_)
            for qw(0.5 .5 5. 1 +0.5 1e-1 5E+1 0001.5000 0.000000000000000001);
        exchange($s, sprintf("$command\r\n", $_), $ERROR, show(sprintf $command, $_))
            for qw(. e 1e 1e+ - + -- 0x1p-1 inf nan INF infinity 1e999 1.2.3 0.5x x), '0,5', "0.5\t", "\t0.5",
            '1' x 400;
    }
    exchange($s, "lru tune 20 40 $_\r\n", "ERROR hot/warm age factors must be greater than 0\r\n")
        for '0 2.0', '-1 2.0', '-0 2.0', '0.2 0', '0.2 -1e3';
}

# What an edge means, not only that it is a number.
sub test_meaning {
    my ($s, $profile) = @_;
    my $value = sub { my ($key, $flags) = @_; "VALUE $key $flags 1\r\n1\r\nEND\r\n" };
    for (['0', 0], ['-0', 0], ['4294967295', 4294967295], ['4294967296', 0], ['4294967297', 1],
        ['18446744073709551615', 4294967295])
    {
        my ($word, $flags) = @$_;
        exchange($s, "set f $word 0 1\r\n1\r\nget f\r\n", "STORED\r\n" . $value->('f', $flags), "flags $word");
    }
    my $now = mem_stats($s)->{time};
    for (['0', 1], ['-0', 1], ['1000', 1], ['2592000', 1], ['2592001', 0], [$now - 1, 0], [$now + 1000, 1],
        ['2147483647', 1], ['2147483648', 0], ['4294967295', 0], ['4294967296', 1], ['-1', 0],
        ['-2147483648', 0], ['-4294967296', 1], ['-4294966296', 1])
    {
        my ($word, $is_there) = @$_;
        exchange($s, "set e 0 $word 1\r\n1\r\nget e\r\n", "STORED\r\n" . ($is_there ? $value->('e', 0) : "END\r\n"),
            "exptime $word");
        next if $word !~ /^-?\d{1,10}\z/ || $word > 2147483647 || $word < -2147483648;
        exchange($s, "set e 0 0 1\r\n1\r\ntouch e $word\r\nget e\r\n",
            "STORED\r\nTOUCHED\r\n" . ($is_there ? $value->('e', 0) : "END\r\n"), "touch $word");
        exchange($s, "set e 0 0 1\r\n1\r\ngat $word e\r\nget e\r\n",
            "STORED\r\n" . $value->('e', 0) . ($is_there ? $value->('e', 0) : "END\r\n"), "gat $word");
        exchange($s, "ms e 1 T$word\r\n1\r\nmg e v\r\n", "HD\r\n" . ($is_there ? "VA 1\r\n1\r\n" : "EN\r\n"),
            "ms T$word");
    }
    for ('-1', '-2147483648', '0', '-0', '') {
        exchange($s, "set e 0 0 1\r\n1\r\nflush_all $_\r\nget e\r\n", "STORED\r\nOK\r\nEND\r\n", "flush_all $_");
    }
    for ('2147483647', '2592000', $now + 1000) {
        exchange($s, "set e 0 0 1\r\n1\r\nflush_all $_\r\nget e\r\n", "STORED\r\nOK\r\n" . $value->('e', 0),
            "flush_all $_ is yet to come");
    }
    exchange($s, "flush_all\r\n", "OK\r\n");
    for (['4294967296', 1], ['2147483648', 1], ['-2147483649', $profile eq '1.6'],
        ['99999999999999999999', 1], ['-99999999999999999999', 1])
    {
        my ($word, $stays) = @$_;
        next if $profile eq '1.4' && length $word < 13;
        exchange($s, "set e 0 0 1\r\n1\r\nflush_all $word\r\nget e\r\n", "STORED\r\n" .
            ($profile eq '1.4' ? $FORMAT : $EXPTIME) . $value->('e', 0), "flush_all $word flushes nothing");
    }
}

# [delta, initial, exptime] and what comes of it, from absent and twice.
sub test_binary($server, $profile) {
    my $s = $server->connect;
    my $is = sub ($name, $opcode, $want, %f) {
        put($s, packet($opcode, %f));
        return answers($s, $opcode, $want, "[$profile] $name");
    };
    my $max = 18446744073709551615;
    for ([0, 0], [1, 0], [2147483648, 2147483648], [4294967296, 4294967296],
        [9223372036854775808, 9223372036854775808], [$max, $max])
    {
        my ($delta, $initial) = @$_;
        my $sum = do { use integer; $delta + $initial };
        $is->("delta $delta, from $initial", 0x05, {cas => 'some', value => MCBinary::u64($initial)},
            key => 'n', extras => sum_extras($delta, $initial));
        $is->("delta $delta, added", 0x05, {cas => 'some', value => pack 'Q>', $sum},
            key => 'n', extras => sum_extras($delta, 7));
        $is->("delta $delta, taken away", 0x06, {cas => 'some', value => pack 'Q>', $delta > unpack('Q',
            pack 'q', $sum) ? 0 : $initial}, key => 'n', extras => sum_extras($delta, 7));
        $is->('deleted', 0x04, {}, key => 'n');
    }
    my $now = mem_stats($server->control)->{time};
    for ([0, 1], [1000, 1], [2592000, 1], [2592001, 0], [$now - 1, 0], [$now + 1000, 1], [0x7fffffff, 1]) {
        my ($exptime, $is_there) = @$_;
        my $want = $is_there ? {cas => 'some', extras => pack('N', 5), value => '1'}
            : {status => 1, value => 'Not found'};
        $is->(@$_) for
            ["set, exptime $exptime", 0x01, {cas => 'some'}, key => 'e', value => '1',
                extras => store_extras(5, $exptime)], ["get, exptime $exptime", 0x00, $want, key => 'e'],
            ['set', 0x01, {cas => 'some'}, key => 'e', value => '1', extras => store_extras(5, 0)],
            ["touch, exptime $exptime", 0x1c, {cas => 'some', extras => pack 'N', 5}, key => 'e',
                extras => pack 'N', $exptime], ["get, touched $exptime", 0x00, $want, key => 'e'];
    }
    for (0, 1, 0x7fffffff, 0x80000000, 0xffffffff) {
        $is->("set, flags $_", 0x01, {cas => 'some'}, key => 'f', value => '1', extras => store_extras($_, 0));
        $is->("get, flags $_", 0x00, {cas => 'some', extras => pack('N', $_), value => '1'}, key => 'f');
    }
    for (1, 2 ** 31, 2 ** 32, 9223372036854775808, $max) {
        $is->("set, cas $_", 0x01, {status => 2, value => 'Data exists for key.'}, key => 'f', value => '1',
            extras => store_extras(0, 0), cas => $_);
    }
}

for my $profile ('1.4', '1.6') {
    my ($server, $s) = serve($profile, '-o', 'slab_reassign,lru_maintainer,no_slab_automove,lru_crawler');
    test_text($s, $profile);
    test_lengths($s, $profile);
    test_fractions($s, $profile);
    test_meaning($s, $profile);
    test_binary($server, $profile);
}

done_testing();
