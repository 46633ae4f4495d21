#!/usr/bin/env perl
# Binary requests that lie, are cut short, too large or none at all: each is answered as the
# protocol says, closes the connection where it must, and never harms anybody else.
use MCTest;
use MCBinary;

my ($server, $profile);
my %INVALID = (status => 4, value => 'Invalid arguments');
my %UNKNOWN = (status => 0x81, value => 'Unknown command');
my $PAD = 'x' x 40;

# On a connection of its own: one answer, then the end.
sub is_refused($name, $opcode, $want, %f) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $c = $server->connect;
    put($c, packet($opcode, %f));
    answers($c, $opcode, $want, "$name");
    expect_eof($c, '', "$name: the connection ends");
}

# Closed without an answer.
sub is_closed($name, $bytes) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $c = $server->connect;
    put($c, $bytes);
    expect_eof($c, '', "$name is closed silently");
}

sub is_alive($name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    bin_alive($server->connect, "$name: others are served");
}

sub test_lengths {
    for my $code (0x00, 0x01, 0x04, 0x05, 0x0a, 0x0c, 0x0e, 0x0f, 0x10, 0x19, 0x1a, 0x1c, 0x21, 0x23, 0x77) {
        is_refused(sprintf('%02x, key longer than the body', $code), $code, {%UNKNOWN},
            key_len => 5, body_len => 4, value => $PAD);
    }
    is_refused(@$_) for ['key of 65535 bytes in no body', 0x00, {%UNKNOWN}, key_len => 65535],
        ['set, extras and key longer than the body', 0x01, {%UNKNOWN}, key_len => 4, extras_len => 8,
        body_len => 8, value => $PAD], ['get with extras', 0x00, {%INVALID}, key => 'k', extras => '1234'],
        ['extras of 255 bytes', 0x05, {%INVALID}, key => 'k', extras => 'e' x 255], ['get without a key', 0x00,
        {%INVALID}], ['get with a value', 0x00, {%INVALID}, key => 'k', value => 'v'], ['set without extras',
        0x01, {%INVALID}, key => 'k', value => 'v'], ['set without a key', 0x01, {%INVALID}, value => 'v',
        extras => store_extras()], ['append with extras', 0x0e, {%INVALID}, key => 'k', value => 'v',
        extras => store_extras()], ['incr without extras', 0x05, {%INVALID}, key => 'k'], ['incr with a value',
        0x05, {%INVALID}, key => 'k', value => 'v', extras => sum_extras(1)], ['touch without extras', 0x1c,
        {%INVALID}, key => 'k'], ['noop with a key', 0x0a, {%INVALID}, key => 'k'], ['quit with a value', 0x07,
        {%INVALID}, value => 'v'], ['flush with two bytes of extras', 0x08, {%INVALID}, extras => '12'],
        ['stat with a value', 0x10, {%INVALID}, value => 'v'];
    is_refused("getq with a key of $_", 0x09, {%INVALID}, key => 'k' x $_) for 251, 365;
    is_refused('an unknown opcode with a key of 251', 0x99, {%INVALID}, key => 'k' x 251);
    is_alive('after lengths that lie');
}

# Bodies that nobody can hold: the server believes none of them.
sub test_huge {
    my $before = proc_status($server->pid, 'VmSize');
    my %f = (key => 'k', extras => store_extras(), value => 'v' x 31);
    for my $code (0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x0e, 0x19) {
        my %g = $code == 0x0e || $code == 0x19 ? (%f, extras => '') : %f;
        is_refused(sprintf('%02x of %u bytes', $code, $_), $code, {%INVALID}, %g, body_len => $_)
            for 0xffffffe8, 0xffffffff, 0x80000000;
    }
    is_refused('get with a body of 2 GB', 0x00, {%INVALID}, key => 'k', body_len => 0x7fffffff);
    if ($profile eq '1.6') {
        is_refused('set of more than 1 GB', 0x01, {%INVALID}, %f, body_len => 0x40000001);
    } else {
        my $c = $server->connect;
        put($c, packet(0x01, %f, body_len => 0x40000001));
        answers($c, 0x01, {status => 3, value => 'Too large.'}, 'set of more than 1 GB');
    }
    # what is not sent is not waited for by others
    my @half = map { $server->connect } 1 .. 20;
    put($_, packet(0x12, %f, body_len => 0x3fffffff)) for @half;
    answers($_, 0x12, {status => 3, value => 'Too large.'}, 'addq of 1 GB') for @half;
    is_alive('after bodies that are too large');
    cmp_ok(proc_status($server->pid, 'VmSize') - $before, '<', 200_000, 'and took no memory');
}

sub test_large {
    my $c = $server->connect;
    my %f = (key => 'big', extras => store_extras(5));
    my $max = 1048576;
    my %large = (status => 3, value => 'Too large.');
    for my $code (0x01, 0x11) {
        ask($c, 0x01, %f, value => 'old');
        put($c, packet($code, %f, value => 'v' x ($max + 1)) . packet(0x00, key => 'big'));
        answers($c, $code, {%large}, 'set of 1 MiB and 1 byte');
        answers($c, 0x00, {status => 1, value => 'Not found'}, 'the old value is gone');
    }
    ask($c, 0x01, %f, value => 'old');
    for my $code (0x02, 0x03, 0x0e, 0x12) {
        my %g = $code == 0x0e ? (%f, extras => '') : %f;
        put($c, packet($code, %g, value => 'v' x ($max * 3)));
        answers($c, $code, {%large}, sprintf '%02x of 3 MiB', $code);
        is(ask($c, 0x00, key => 'big')->{value}, 'old', 'only a set drops the old value');
    }
    put($c, packet(0xe0, key => 'k', value => 'v' x ($max * 3)));
    answers($c, 0xe0, {%UNKNOWN}, 'an unknown opcode with 3 MiB');
    ask($c, 0x01, %f, value => 'v' x 900_000);
    put($c, packet(0x0e, key => 'big', value => 'v' x 900_000));
    answers($c, 0x0e, {status => 5, value => 'Not stored.'}, 'append that makes it too large');
    bin_alive($c, 'the connection is in step');
    is(length ask($c, 0x00, key => 'big')->{value}, 900_000, 'the value stays');
}

sub test_magic {
    my %f = (key => 'k', value => 'v', extras => store_extras());
    for my $magic (0x00, 0x81, 0x7f, 0xff) {
        my $c = $server->connect;
        put($c, packet(0x0a) . packet(0x0a, magic => $magic));
        answers($c, 0x0a, {}, 'a noop is answered');
        expect_eof($c, '', sprintf 'magic %02x behind it closes', $magic);
    }
    my $c = $server->connect;
    put($c, packet(0x11, %f) . "get k\r\nget k\r\nget k\r\nget k\r\n");
    expect_eof($c, '', 'text in a binary connection closes');
    $c = $server->connect;
    exchange($c, "version\r\n", VERSION_REPLY($profile), 'a text connection');
    exchange($c, packet(0x0b) . "\r\n", "ERROR\r\n", 'stays one');
}

# What is refused is told to watchers without an item; keys of any bytes stay in one line.
sub test_watched {
    my $watcher = $server->connect;
    put($watcher, "watch mutations fetchers\r\n");
    expect_bytes($watcher, "OK\r\n", 'somebody watches');
    my $c = $server->connect;
    my %f = (extras => store_extras());
    put($c, packet(0x01, key => 'seen', value => 'v' x 2_000_000, %f));
    answers($c, 0x01, {status => 3, value => 'Too large.'}, 'a set too large is refused');
    ask($c, 0x01, key => "a b\r\nts=1 \0\xff", value => 'v', %f);
    ask($c, 0x0c, key => "a b\r\nts=1 \0\xff");
    silent($c, 0x09, key => 'last');
    my ($lines, $is_odd) = (0, 0);
    while ((my $line = read_line($watcher)) =~ /\n\z/) {
        $lines++;
        $is_odd++ if $line !~ /\Ats=\d+\.\d+ gid=\d+ type=[\x21-\x7e]+ [\x20-\x7e]+\r?\n\z/;
        last if $line =~ /key=last/;
    }
    cmp_ok($lines, '>=', 3, 'the watcher hears of it');
    is($is_odd, 0, 'in lines');
    close $watcher;
    bin_alive($c, 'and nothing breaks');
}

# Clients that leave in the middle of a request hold nothing.
sub test_halves {
    my $before = mem_stats($server->control);
    my @whole = (packet(0x01, key => 'half', value => 'v' x 3000, extras => store_extras()),
        packet(0x05, key => 'half', extras => sum_extras(1)), packet(0x10, key => 'settings'));
    my $count = 0;
    for my $bytes (@whole) {
        for my $n (1, 8, 23, 24, 25, 31, 32, length($bytes) / 2, length($bytes) - 1) {
            my $c = $server->connect;
            put($c, substr $bytes, 0, $n);
            close $c;
            $count++;
        }
    }
    soon {
        my $now = mem_stats($server->control);
        return $now->{total_connections} >= $before->{total_connections} + $count
            && $now->{curr_connections} <= $before->{curr_connections};
    } "$count clients have left halfway";
    exchange($server->control, "get half\r\n", "END\r\n", 'nothing of theirs was stored');
    is_alive('after halves');
}

each_profile(sub {
    ($profile) = @_;
    $server = serve($profile, '-vv', '-m', '64');
    test_lengths();
    test_huge();
    test_large();
    test_magic();
    test_watched();
    test_halves();

    $server = serve($profile, '-B', 'binary', {no_port => 1});
    is_closed('a text client of -B binary', 'a' x 62);
    is_closed('an HTTP client of -B binary', "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    my $c = $server->connect;
    is(bin_stats($c, 'settings')->{binding_protocol}, 'binary', '-B binary is shown');
    my $shy = $server->connect;
    put($shy, 'version');
    bin_alive($c, '-B binary serves binary clients');
    put($shy, "\r\nversion\r\nversion\r\n");
    expect_eof($shy, '', 'a text client is closed when a header is complete');

    ($server, $c) = serve($profile, '-X');
    my $is_refused = $profile eq '1.6';
    my $p = ask($c, 0x10, key => 'detail on');
    is($p->{status} != 0, $is_refused, '-X and stat detail');
    bin_alive($c, 'the connection stays');

    ($server, $c) = serve($profile, '-B', 'ascii');
    exchange($c, packet(0x0b) . "\r\n", "ERROR\r\n", '-B ascii takes a packet for text');
    is(mem_stats($c, 'settings')->{binding_protocol}, 'ascii', '-B ascii is shown');
});

done_testing();
