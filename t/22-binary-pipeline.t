#!/usr/bin/env perl
# Binary requests by the thousand: cut anywhere, chosen at random, with values of every size;
# slow readers; fair shares.
use MCTest ':ours';
use Socket qw(SOL_SOCKET SO_RCVBUF);
use MCBinary;

my ($server, $profile);

# Writes pieces of at most $max bytes and reads all the time; hands each packet to the code.
# Returns how many there were.
sub stream($s, $bytes, $max, $code) {
    my ($at, $got, $count) = (0, '', 0);
    while ($at < length $bytes) {
        my $n = 1 + int rand $max;
        $n = length($bytes) - $at if $n > length($bytes) - $at;
        $at += put($s, substr $bytes, $at, $n);
        $got .= MCTest::pending($s);
        MCTest::pending($s) = '';
        my $chunk;
        $got .= $chunk while sysread $s, $chunk, 65536;
        while (my $p = unpack_packet($got)) {
            substr $got, 0, $p->{size}, '';
            $code->($p);
            $count++;
        }
    }
    MCTest::pending($s) = $got;
    return $count;
}

# What every reply must keep to, whatever was asked.
my %KEEPS_KEY = map { $_ => 1 } 0x0c, 0x0d, 0x23, 0x24;
my %IS_VALUE = map { $_ => 1 } 0x00, 0x09, 0x0c, 0x0d, 0x1d, 0x1e, 0x23, 0x24, 0x1c;

sub breaks_rules($p) {
    my $code = $p->{opcode};
    return 'magic' if $p->{magic} != 0x81 || $p->{type} != 0;
    if ($p->{status} != 0) {
        return 'cas of an error' if $p->{cas} != 0;
        return 'extras of an error' if $p->{extras} ne '';
        return 'key of an error' if $p->{key} ne '' && !$KEEPS_KEY{$code};
        return '';
    }
    return 'success of a quiet mutation' if ($code >= 0x11 && $code <= 0x1a);
    return 'extras' if length $p->{extras} != ($IS_VALUE{$code} ? 4 : 0);
    return 'key' if $p->{key} ne '' && !$KEEPS_KEY{$code} && $code != 0x10;
    return 'sum' if ($code == 0x05 || $code == 0x06) && length $p->{value} != 8;
    return 'body' if $code =~ /^(?:1|2|3|4|8|10|14|15)$/ && $p->{value} ne '';
    my $has_cas = $IS_VALUE{$code} || $code =~ /^(?:1|2|3|5|6|14|15)$/;
    return 'cas' if ($p->{cas} != 0) != ($has_cas ? 1 : 0);
    return '';
}

my @KEYED = (0x00 .. 0x06, 0x09, 0x0c .. 0x0f, 0x11 .. 0x16, 0x19, 0x1a, 0x1c .. 0x1e, 0x23, 0x24);
my %IS_KEYED = map { $_ => 1 } @KEYED;
my %TAKES_VALUE = map { $_ => 1 } 0x01 .. 0x03, 0x0e, 0x0f, 0x11 .. 0x13, 0x19, 0x1a;

# A valid request of any opcode but quit and SASL.
sub random_request($keys) {
    my $code = rand() < 0.7 ? $KEYED[rand @KEYED] : int rand 256;
    return '' if $code == 0x07 || $code == 0x17 || ($code >= 0x20 && $code <= 0x22) || $code == 0x10;
    my $extras = $code =~ /^(?:1|2|3|17|18|19)$/ ? store_extras(int rand 2**32, rand() < 0.5 ? 0 : 100)
        : $code =~ /^(?:5|6|21|22)$/ ? sum_extras(int rand 1000, 1, rand() < 0.5 ? 0 : NO_CREATE)
        : $code =~ /^(?:28|29|30|35|36)$/ ? pack('N', 0) : '';
    return packet($code, extras => $extras,
        $IS_KEYED{$code} ? (key => $keys->[rand @$keys]) : (),
        $TAKES_VALUE{$code} ? (value => rand() < 0.5 ? int rand 100000 : 'v' x 8) : (),
        cas => rand() < 0.05 ? int rand 1000 : 0);
}

# At the end: nothing but the replies to a noop and a quitq.
sub ends_in_step($s, $name, $check) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    put($s, packet(0x0a, opaque => 99) . packet(0x17));
    while (my $p = read_packet($s)) {
        last if $p->{opcode} == 0x0a && $p->{opaque} == 99;
        $check->($p);
    }
    expect_eof($s, '', "$name: quitq ends the connection");
}

sub test_hickup {
    my @keys = map { join '', map { chr int rand 256 } 1 .. (rand() < 0.2 ? 250 : 1 + rand 20) } 1 .. 60;
    for my $round (1, 2) {
        my $s = $server->connect;
        my $bytes = '';
        $bytes .= random_request(\@keys) while length $bytes < 65536;
        my %bad;
        my $check = sub { my $why = breaks_rules($_[0]); $bad{sprintf '%02x: %s', $_[0]{opcode}, $why}++ if $why; };
        stream($s, $bytes, 1023, $check);
        ends_in_step($s, "hickup $round", $check);
        is(join(', ', sort keys %bad), '', "hickup $round: all replies keep to the rules");
    }
}

# Requests and replies that end around the borders of buffers.
sub test_boundaries {
    my $s = $server->connect;
    my ($wrong, $count, $asked) = ('', 0, 0);
    for my $n (2024 .. 2096) {
        my $value = 'b' x ($n - 24 - 8 - 1);
        my @pieces = (packet(0x11, key => 'b', value => $value, extras => store_extras(5)),
            packet(0x00, key => 'b'), packet(0x05, key => 'bn', extras => sum_extras(1, 1)));
        put($s, $_) for @pieces;
        my $p = read_packet($s);
        $wrong ||= "length $n" if $p->{opcode} != 0 || $p->{value} ne $value;
        $p = read_packet($s);
        $wrong ||= "sum at $n" if $p->{opcode} != 5 || $p->{status} != 0;
    }
    is($wrong, '', 'requests of 2024 to 2096 bytes');
    my $bytes = join '', map {
        packet(0x11, key => "b$_", value => 'v' x $_, extras => store_extras(5)) . packet(0x0d, key => "b$_")
    } 1990 .. 2100;
    for my $max (1, 100, 2100, 20000) {
        my $next = 1990;
        my $check = sub {
            my ($p) = @_;
            $wrong ||= "b$next" if $p->{key} ne "b$next" || $p->{value} ne 'v' x $next;
            $next++;
        };
        my $part = $max == 1 ? substr $bytes, 0, 8200 : $bytes;
        my $c = $server->connect;
        stream($c, $part, $max, $check);
        if ($max > 1) {
            $check->(read_packet($c)) while $next <= 2100 && !$wrong;
        }
    }
    is($wrong, '', 'and cut into pieces of any size');
}

# Every length around two chunks of 4 KiB comes back whole.
sub test_sizes {
    my $chunk = pick($profile, '1.4' => 4096, '1.6' => 4);
    my ($chained, $s) = serve($profile, '-o', "slab_chunk_max=$chunk");
    my @letters = ('a' .. 'z', "\r", "\n");
    my $base = join '', map { $letters[$_ % @letters] } 1 .. 8200;
    my $wrong = '';
    for my $n (7900 .. 8103) {
        my $value = substr $base, 0, $n;
        put($s, packet(0x11, key => 'size', value => $value, extras => store_extras(5)) . packet(0x00, key => 'size'));
        my $p = read_packet($s);
        $wrong ||= $n if !$p || $p->{opcode} != 0 || $p->{value} ne $value;
    }
    is($wrong, '', '204 lengths around two chunks');
    my $text = $chained->connect;
    exchange($text, "get size\r\n", "VALUE size 5 8103\r\n" . substr($base, 0, 8103) . "\r\nEND\r\n",
        'the line end behind them is right');
}

sub test_large {
    my $s = $server->connect;
    my $large = join '', map { chr(65 + $_ % 26) } 1 .. 300_000;
    my $wrong = '';
    put($s, packet(0x11, key => "l$_", value => $large . $_, extras => store_extras(5))) for 0 .. 9;
    my $bytes = join '', map { packet(0x09, key => "l$_") . packet(0x0a, opaque => $_) } (0 .. 9) x 5;
    put($s, $bytes);
    for my $i ((0 .. 9) x 5) {
        my $p = read_packet($s);
        $wrong ||= "value $i" if !$p || $p->{opcode} != 9 || $p->{value} ne $large . $i;
        $p = read_packet($s);
        $wrong ||= "noop $i" if !$p || $p->{opcode} != 10 || $p->{opaque} != $i;
    }
    is($wrong, '', '50 values of 300 kB and noops between them, in order');

    # one that is being sent outlives its key
    my $slow = $server->connect;
    put($slow, packet(0x00, key => 'l1') x 60);
    ok(length read_bytes($slow, 1000), 'a client has begun to read a large value');
    put($s, packet(0x14, key => 'l1') . packet(0x11, key => 'l1', value => 'new', extras => store_extras(5)));
    bin_alive($s, 'it is replaced');
    my $rest = read_bytes($slow, 24 + 4 + 300_001 - 1000);
    is(substr($rest, -300_001 + 972), substr($large . '1', 972), 'and still read to its end');
    close $slow;
}

# Clients that do not read their replies stop being read, and nobody else.
sub test_stuck {
    my @stuck = map { $server->connect } 1, 2;
    my $many = packet(0x10) x 1000;
    for my $s (@stuck) {
        setsockopt $s, SOL_SOCKET, SO_RCVBUF, 4096;
        my $sent = 0;
        while ((my $n = put($s, $many, 0.3)) == length $many) {
            $sent += $n;
            last if $sent > 50_000_000;
        }
        cmp_ok($sent, '<', 50_000_000, 'a client that reads nothing gets stuck');
    }
    bin_alive($server->connect, 'a new one is served');
    close $_ for @stuck;
    bin_alive($server->connect, 'and when they have left');
}

sub test_fairness {
    my ($fair, $s) = serve($profile, '-R', '1');
    my $before = mem_stats($fair->control)->{conn_yields};
    put($s, join '', map { packet(0x01, key => "k$_", value => 'v', extras => store_extras()) } 1 .. 6);
    ok((read_packet($s) // {status => 1})->{status} == 0, "set $_ of six") for 1 .. 6;
    my $yields = mem_stats($fair->control)->{conn_yields} - $before;
    $profile eq '1.4' ? is($yields, 5, '-R 1 yields between six requests')
        : cmp_ok($yields, '>=', 5, '-R 1 yields between six requests');
}

# The limit counts binary requests like those of text, and leaves control requests alone.
sub test_limit {
    my ($limited, $s) = serve($profile, '-t', '1', '--qps-limit=200,burst=10');
    my $before = bin_stats($s, 'qos');
    put($s, join '', map {packet(0x11, key => "k$_", value => "of $_", extras => store_extras()) . packet(0x09,
        key => "k$_") . packet(0x0a, opaque => $_) } 1 .. 20);
    my $wrong = '';
    for my $i (1 .. 20) {
        my $p = read_packet($s);
        $wrong ||= "k$i" if !$p || $p->{value} ne "of $i";
        $p = read_packet($s);
        $wrong ||= "noop $i" if !$p || $p->{opaque} != $i;
    }
    is($wrong, '', 'limited requests are answered in order');
    my $after = bin_stats($s, 'qos');
    is($after->{qps_admitted} - $before->{qps_admitted}, 40, '40 of them took a token');
    cmp_ok($after->{qps_delayed} - $before->{qps_delayed}, '>=', 1, 'some had to wait');
}

srand 7;
each_profile(sub {
    ($profile) = @_;
    $server = serve($profile, '-m', '64');
    test_hickup();
    test_boundaries();
    test_large();
    test_stuck();
    $server->stop;
    test_sizes();
    test_fairness();
    test_limit();
});

done_testing();
