#!/usr/bin/env perl
# stats detail counts by prefix for clients of all protocols; cachedump and sizes list items.
use MCTest;
use MCBinary;

my $USAGE = "CLIENT_ERROR usage: stats detail on|off|dump\r\n";

# (status, key, value) of a binary reply.
sub binary_reply($sock) {
    my $p = read_packet($sock) or return ();
    return @$p{qw(status key value)};
}

each_profile(sub ($profile) {
    my $is_16 = $profile ne '1.4';
    my ($server, $s) = serve($profile);
    my $dump = sub ($want, $name) {
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        exchange($s, "stats detail dump\r\n", "${want}END\r\n", $name);
    };

    $dump->('', 'nothing at first');
    exchanges($s, ["stats detail\r\n", $USAGE], ["stats detail x\r\n", $USAGE], ["get foo:0\r\n", "END\r\n"]);
    $dump->('', 'off at first');
    is(mem_stats($s, 'settings')->{detail_enabled}, 'no', 'settings say so');
    exchange($s, "stats detail on\r\n", "OK\r\n");
    is(mem_stats($s, 'settings')->{detail_enabled}, 'yes', 'settings follow');
    exchange($s, "get foo:1 nothing foo:2\r\n", "END\r\n");
    $dump->("PREFIX foo get 2 hit 0 set 0 del 0\r\n", 'gets');
    exchange($s, "set foo:1 0 0 1\r\na\r\n", "STORED\r\n");
    exchange($s, "get foo:1\r\n", "VALUE foo:1 0 1\r\na\r\nEND\r\n");
    $dump->("PREFIX foo get 3 hit 1 set 1 del 0\r\n", 'a hit and a set');
    exchange($s, "add foo:1 0 0 1\r\na\r\nincr foo:1 1\r\ntouch foo:1 0\r\n",
        "NOT_STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
            . "TOUCHED\r\n", 'an attempt to store counts, incr and touch do not');
    exchange($s, "delete foo:1\r\ndelete foo:1\r\n", "DELETED\r\nNOT_FOUND\r\n");
    $dump->("PREFIX foo get 3 hit 1 set 2 del 2\r\n", 'deletes count as attempts');
    exchange($s, "stats detail off\r\n", "OK\r\n");
    exchange($s, "get foo:1\r\nset foo:1 0 0 1\r\na\r\n", "END\r\nSTORED\r\n");
    $dump->("PREFIX foo get 3 hit 1 set 2 del 2\r\n", 'off keeps the numbers');
    exchange($s, "stats reset\r\n", "RESET\r\n");
    $dump->('', 'reset forgets them');

    # the binary protocol: the same numbers, these few in one packet
    exchange($s, "stats detail on\r\n", "OK\r\n");
    my $b = $server->connect;
    put($b, request(0x00, 'foo:1') . request(0x00, 'bar:1') . request(0x04, 'foo:1'));
    is_deeply([map { (binary_reply($b))[0] } 1 .. 3], [0, 1, 0], 'binary get, get, delete');
    put($b, request(0x01, 'bar:1', store_extras(), 'x'));
    is((binary_reply($b))[0], 0, 'binary set');
    my $want = "PREFIX foo get 1 hit 1 set 0 del 1\r\nPREFIX bar get 1 hit 0 set 1 del 0\r\n";
    if ($profile ne 'ref') {
        $dump->($want, 'binary clients are counted');
        put($b, request(0x10, 'detail dump'));
        is_deeply([binary_reply($b)], [0, 'detailed', "${want}END\r\n"], 'a binary dump');
        is_deeply([binary_reply($b)], [0, '', ''], 'and its end');
    }

    # meta commands
    if ($profile eq '1.6') {
        exchanges($s, ["stats reset\r\n", "RESET\r\n"],
            ["ms m:1 1\r\na\r\nmg m:1 v\r\nmg m:2\r\nmd m:1\r\n", "HD\r\nVA 1\r\na\r\nEN\r\nHD\r\n"]);
        $dump->("PREFIX m get 2 hit 1 set 1 del 1\r\n", 'meta clients are counted');
    }

    # many prefixes: told in pieces, and bounded
    if ($profile ne 'ref') {
        exchange($s, "stats reset\r\n", "RESET\r\n");
        for my $i (0 .. 99) {
            put($s, join '', map { "get p$i.$_:x\r\n" } 1 .. 700);
            read_bytes($s, 5 * 700);
        }
        put($s, "stats detail dump\r\n");
        my $prefixes = 0;
        while (read_line($s) =~ /^PREFIX p\d+\.\d+ get 1 hit 0 set 0 del 0\r\n\z/) {
            $prefixes++;
        }
        is($prefixes, 65536, 'no more than 65536 prefixes are told apart');
        expect_open($s, 'and the connection goes on');
        put($b, request(0x10, 'detail dump'));
        my ($told, $longest) = (0, 0);
        while (my (undef, $key, $value) = binary_reply($b)) {
            last if $key eq '';
            $told += $value =~ tr/\n//;
            $longest = length $value if length $value > $longest;
        }
        is($told, 65537, 'a binary client is told of all, and END');
        cmp_ok($longest, '<', 32 * 1024, 'in packets, none of which is large');
    }

    # -D
    ($server, $s) = serve($profile, '-D', '/');
    has(mem_stats($s, 'settings'), '-D shows in settings', stat_key_prefix => '/', detail_enabled => 'yes');
    exchange($s, "get a/b:c a:b/c\r\n", "END\r\n");
    put($s, "stats detail dump\r\n");
    is_deeply([sort map { read_line($s) } 1 .. 2], ["PREFIX a get 1 hit 0 set 0 del 0\r\n",
        "PREFIX a:b get 1 hit 0 set 0 del 0\r\n"], 'it is the delimiter');
    is(read_line($s), "END\r\n", 'there are no more');

    # cachedump
    ($server, $s) = serve($profile);
    exchange($s, "stats cachedump\r\n", "CLIENT_ERROR bad command line\r\n");
    exchange($s, "stats cachedump 1\r\n", "CLIENT_ERROR bad command line\r\n");
    exchange($s, "stats cachedump a 0\r\n", "CLIENT_ERROR bad command line format\r\n");
    exchange($s, "stats cachedump -1 0\r\n", "CLIENT_ERROR bad command line format\r\n");
    exchange($s, "stats cachedump 64 0\r\n", "CLIENT_ERROR Illegal slab id\r\n");
    exchange($s, "stats cachedump 200 0 0\r\n", "CLIENT_ERROR Illegal slab id\r\n");
    exchange($s, "stats cachedump $_ 0\r\n", "END\r\n") for 0, 1, 63;
    $server->stop;
    plan skip_all => 'of this server' if $profile eq 'ref';

    ($server, $s) = serve($profile, $is_16 ? ('-o', 'no_lru_maintainer') : ());
    exchanges($s, ["set foo 0 0 6\r\nfooval\r\nset bar 0 1000 3\r\nabc\r\n", "STORED\r\nSTORED\r\n"],
        ["stats cachedump 1 100\r\n", qr/^ITEM bar \[3 b; 1\d{9} s\]\r\nITEM foo \[6 b; 0 s\]\r\nEND\r\n$/],
        ["stats cachedump 1 1\r\n", qr/^ITEM bar \[3 b; \d+ s\]\r\nEND\r\n$/]);
    my $value = 'v' x 20;
    for my $i (1 .. 100) {
        put($s, join '', map { "set key-of-a-good-length-$i-$_ 0 0 20 noreply\r\n$value\r\n" } 1 .. 600);
    }
    expect_open($s, '60000 more items');
    my ($bytes, $line) = (0, '');
    my ($class) = map { /^STAT items:(\d+):number 60000/ ? $1 : () } stat_lines($s, 'items');
    put($s, "stats cachedump $class 0\r\n");
    $bytes += length $line while ($line = read_line($s)) =~ /^ITEM /;
    is($line, "END\r\n", 'a long dump has its end');
    cmp_ok($bytes, '<=', 2 << 20, 'at 2 MiB');
    cmp_ok($bytes, '>', (2 << 20) - 200, 'not before');

    ($server, $s) = serve($profile, '-X');
    exchanges($s, ["stats cachedump 1 0\r\n", "CLIENT_ERROR stats cachedump not allowed\r\n"],
        ["stats detail on\r\n", $is_16 ? "CLIENT_ERROR stats detail not allowed\r\n" : "OK\r\n"]);
    $b = $server->connect;
    put($b, request(0x10, 'detail dump'));
    is(((binary_reply($b))[0] == 0) + 0, $is_16 ? 0 : 1, 'nor in the binary protocol') ;

    # sizes
    ($server, $s) = serve($profile, '-o', 'track_sizes');
    is(mem_stats($s, 'settings')->{track_sizes}, 'yes', 'track_sizes');
    exchange($s, "stats sizes\r\n", "END\r\n");
    exchange($s, "set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\nset c 0 0 100\r\n" . ('x' x 100) . "\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\n");
    my ($small, $large) = $is_16 ? (64, 160) : (96, 192);
    exchanges($s, ["stats sizes\r\n", "STAT $small 2\r\nSTAT $large 1\r\nEND\r\n"],
        ["delete a\r\nstats sizes\r\n", "DELETED\r\nSTAT $small 1\r\nSTAT $large 1\r\nEND\r\n"]);
    if (!$is_16) {
        exchange($s, "stats sizes_disable\r\n", "STAT sizes_status disabled\r\n");
        exchange($s, "stats sizes\r\n", "STAT sizes_status disabled\r\nEND\r\n");
        exchange($s, "stats sizes_enable\r\n", "STAT sizes_status enabled\r\n");
    } else {
        exchange($s, "stats sizes_enable\r\n", "ERROR\r\n");
    }
    ($server, $s) = serve($profile, '-C');
    exchange($s, "stats sizes_enable\r\n", $is_16 ? "ERROR\r\n"
        : "STAT sizes_status error\r\nSTAT sizes_error cas_support_disabled\r\n");
});

done_testing();
