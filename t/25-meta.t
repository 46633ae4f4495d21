#!/usr/bin/env perl
# The meta commands: every flag of each of them, what quiet hides, binary keys, and the story
# of a stale item and the one client that refreshes it; byte for byte in both profiles.
use MCTest ':ours';

my $s;
my $server;

sub ms { return "ms $_[0] " . length($_[1]) . (@_ > 2 ? " $_[2]" : '') . "\r\n$_[1]\r\n"; }

# Each pair of arguments: what is sent and the reply, line ends left out at its end.
sub story($name, @steps) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    while (my ($send, $expect) = splice @steps, 0, 2) {
        $send .= "\r\n" if $send !~ /\n\z/;
        $expect .= "\r\n" if !ref $expect && length $expect && $expect !~ /\r\n\z/;
        exchange($s, $send, $expect, "$name: " . MCTest::show($send));
    }
}

sub test_get {
    story('mg', 'mg a' => 'EN', ms('a', 'hi', 'F5 E100') => 'HD', 'mg a' => 'HD', 'mg a s v' => "VA 2 s2\r\nhi",
        'mg a v' => "VA 2\r\nhi", 'mg a vv' => "VA 2\r\nhi",
        'mg a k Oabc s v f t c' => "VA 2 ka Oabc s2 f5 t-1 c100\r\nhi",
        'mg a c t f s Oabc k' => 'HD c100 t-1 f5 s2 Oabc ka', 'mg   a   k ' => 'HD ka', "mg a k\n" => "HD ka",
        'mg none k Oabc s v' => 'EN knone Oabc', 'mg none Oabc k' => 'EN Oabc knone',
        'mg a Pfoo Lbar v I x Mz J1 D1' => "VA 2\r\nhi", 'mg a O' . ('o' x 31) => 'HD O' . ('o' x 31),
        'mg a C100 v s' => 'HD s2', 'mg a C99 v s' => "VA 2 s2\r\nhi", ms('e', '') => 'HD',
        'mg e s v' => "VA 0 s0\r\n\r\n", ms('n', "a\r\n\0b") => 'HD', 'mg n v' => "VA 5\r\na\r\n\0b");
    exchanges($s, ["mg a\r\n", "HD\r\n", {get_hits => 1, cmd_get => 1, cmd_touch => 0}],
        ["mg a T0\r\n", "HD\r\n", {touch_hits => 1, cmd_touch => 1, cmd_get => 0}],
        ["mg none\r\n", "EN\r\n", {get_misses => 1, cmd_get => 1}],
        ["mg none T5\r\n", "EN\r\n", {get_misses => 1, cmd_get => 1, cmd_touch => 0, touch_misses => 0}],
        ["mg new N30\r\n", "HD W\r\n", {get_hits => 1, get_misses => 0}]);
}

# A unique of 0, client flags beyond 32 bits, and -0.
sub test_edges {
    my $format = 'CLIENT_ERROR bad command line format';
    story('C0', ms('z', '5') => 'HD', ms('z', '6', 'C0 I') => 'EX', ms('z', '6', 'C0') => 'EX',
        ms('z', '6', 'C0 MR I') => 'EX', ms('z', '6', 'C0 ME') => 'NS', 'mg z v' => "VA 1\r\n5",
        'ma z C0' => 'HD', 'ma z C0 v' => "VA 1\r\n7", ms('z', '8', 'C0 MA') => 'HD',
        ms('z', '1', 'C0 MP') => 'HD', 'mg z C0 v' => "VA 3\r\n178", 'md z C0' => 'EX', 'md z C0 I' => 'EX',
        ms('none', '1', 'C0') => 'NF', ms('none', '1', 'C0 I') => 'NF', ms('none', '1', 'C0 MA') => 'NS',
        'md none C0' => 'NF', 'ma none C0' => 'NF', ms('none', '1', 'C0 ME') => 'HD');
    for (4294967296, 18446744073709551615, 18446744073709551616, -1, 'x', '') {
        story("client flags $_", ms('z', '5', "F$_") => $format, "mg z F$_" => $format, "ma z F$_" => $format,
            "md z F$_" => $format);
    }
    story('the largest client flags', ms('z', '5', 'F4294967295') => 'HD', 'mg z f' => 'HD f4294967295',
        ms('z', '5', 'F-0') => 'HD', 'mg z f' => 'HD f0', 'ma z D-0 J-0 v' => "VA 1\r\n5",
        'mg z C-0 R-0 N-0' => 'HD', 'ma z D-1' => 'CLIENT_ERROR invalid or duplicate flag');
    my $now = mem_stats($server->control)->{time};
    story('R beyond 30 days is a wall time', ms('z', '5', 'T100') => 'HD', 'mg z R2592001 t' => 'HD t100',
        'mg z R' . ($now + 100) . ' t' => 'HD t100', 'mg z R' . ($now + 101) . ' t' => 'HD t100 W',
        'mg z R2592000 t' => 'HD t100 Z', ms('z', '5', 'T100') => 'HD', 'mg z R-1 t' => 'HD t100',
        'mg z R2592000 t' => 'HD t100 W');
}

sub test_times {
    story('time to live', ms('t', 'x', 'T100') => 'HD', 'mg t t' => 'HD t100', 'mg t t T300' => 'HD t100',
        'mg t T30 t' => 'HD t30', 'mg t T0 t' => 'HD t-1', 'mg t t T2592000' => 'HD t-1',
        'mg t t' => 'HD t2592000');
    debugtime($server, 10);
    story('time passes', 'mg t t' => 'HD t2591990', 'mg t T20' => 'HD');
    debugtime($server, 20);
    exchange($s, "mg t t\r\n", "EN\r\n", {get_expired => 1, get_misses => 1});
    my $now = mem_stats($server->control)->{time};
    story('absolute and past times', ms('t', 'x', 'T' . ($now + 500)) => 'HD', 'mg t t' => 'HD t500',
        'mg t T-1' => 'HD', 'mg t' => 'EN', ms('t', 'x', 'T-1') => 'HD', 'mg t' => 'EN',
        ms('t', 'x', 'T2678400') => 'HD',    # 31 days is absolute, and long ago
        'mg t' => 'EN');
    story('last access and first fetch', ms('l', 'x') => 'HD', 'mg l h l' => 'HD h0 l0',
        'mg l l h' => 'HD l0 h1');
    debugtime($server, 61);
    story('after a minute', 'mg l u l h' => 'HD l61 h1', 'mg l l' => 'HD l61');
    debugtime($server, 61);
    story('and another', 'mg l l h' => 'HD l61 h1');
    story('what is no fetch', ms('w', '9') => 'HD', 'ma w' => 'HD', ms('w', '1', 'ME') => 'NS',
        "incr w 1" => '11', 'mg w u h v' => "VA 2 h0\r\n11", 'touch w 0' => 'TOUCHED', 'mg w u h' => 'HD h1');
    story('u leaves no trace', ms('u', 'x') => 'HD', 'mg u u h v' => "VA 1 h0\r\nx", 'mg u h' => 'HD h0',
        'mg u h' => 'HD h1');
}

sub test_set {
    story('ms', ms('s', 'abc', 'T60 F9 E7') => 'HD', 'mg s v t f c' => "VA 3 t60 f9 c7\r\nabc",
        ms('s', 'abcd', 'k s c Oxy E8') => 'HD ks s4 c8 Oxy', 'mg s t f' => 'HD t-1 f0',
        ms('s', 'new', 'ME c s k') => 'NS c0 s3 ks', ms('s2', 'new', 'ME c E9') => 'HD c9',
        ms('s3', 'new', 'MR') => 'NS', ms('s2', 'newer', 'MR') => 'HD', 'mg s2 v' => "VA 5\r\nnewer",
        ms('s2', '!', 'MA T5 F6 s') => 'HD s6', ms('s2', '<', 'MP s') => 'HD s7',
        'mg s2 v t f' => "VA 7 t-1 f0\r\n<newer!", ms('s3', '!', 'MA') => 'NS',
        ms('s3', '!', 'MP k') => 'NS ks3', ms('s3', 'made', 'MA N30 F5 s') => 'HD s4',
        ms('s3', '!', 'MA N60 s') => 'HD s5', 'mg s3 v t f' => "VA 5 t30 f5\r\nmade!",
        ms('s4', 'made', 'MP N0') => 'HD', 'mg s4 v t' => "VA 4 t-1\r\nmade", ms('s4', 'x', 'MS') => 'HD',
        ms('s4', 'x', 'Madd') => 'CLIENT_ERROR invalid mode for ms M token',
        ms('s4', 'y', 'MEverybody') => 'NS', 'mg s4 v' => "VA 1\r\nx");
    story('ms and cas', ms('c', 'a', 'C5') => 'NF', ms('c', 'a', 'C5 k c Oz') => 'NF kc c0 Oz',
        ms('c', 'a', 'MR C5') => 'NF', ms('c', 'a', 'MA C5') => 'NS', ms('c', 'a', 'MA C5 N30') => 'NS',
        ms('c', 'a', 'ME C5 E20') => 'HD', ms('c', 'b', 'C19') => 'EX', ms('c', 'b', 'C21 k c') => 'EX kc c0',
        ms('c', 'b', 'C20 E30 c') => 'HD c30', ms('c', 'c', 'MR C20') => 'EX',
        ms('c', 'c', 'MR C30 E31') => 'HD', ms('c', 'd', 'MA C30') => 'EX', ms('c', 'd', 'MA C31 E32') => 'HD',
        ms('c', 'e', 'ME C32') => 'NS', 'mg c v c' => "VA 2 c32\r\ncd",
        'gets c' => "VALUE c 0 2 32\r\ncd\r\nEND", ms('c', 'f', 'E18446744073709551615') => 'HD',
        'mg c c' => 'HD c18446744073709551615');
    exchange($s, ms('c', 'x', 'C1'), "EX\r\n", {cmd_set => 1, cas_badval => 1});
    exchange($s, ms('none', 'x', 'C1'), "NF\r\n", {cmd_set => 1, cas_misses => 1});
    exchange($s, ms('c', 'x', 'E5'), "HD\r\n", {cmd_set => 1, cas_hits => 0});
    exchange($s, ms('c', 'x', 'C5'), "HD\r\n", {cmd_set => 1, cas_hits => 1});
    story('the body of an ms',
        "ms d 2\r\nhix\r\n" => $server->profile eq '1.4' ? "CLIENT_ERROR bad data chunk\r\nERROR" : "CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format",
        "ms d 2 q\r\nhi\r!mn" => "CLIENT_ERROR bad data chunk\r\nMN", 'mg d' => 'EN',
        "ms d 2 T\r\nhi\r\nmn" => "CLIENT_ERROR bad token in command line format\r\nMN",
        "ms d 2 q z\r\nhi\r\nmn" => "CLIENT_ERROR invalid flag\r\nMN",
        'ms d 2147483646' => 'CLIENT_ERROR bad command line format',
        'ms d -1' => 'CLIENT_ERROR bad command line format', 'ms d' => 'CLIENT_ERROR bad command line format',
        'ms d T30' => 'CLIENT_ERROR bad command line format',
        "ms " . ('k' x 251) . " 2\r\nhi\r\nmn" => "CLIENT_ERROR bad command line format\r\nMN");
    my $body = 'v' x 2000000;
    story('a value too large', ms('d', 'old') => 'HD',
        "ms d 2000000 q\r\n$body\r\nmn" => "SERVER_ERROR object too large for cache\r\nMN",
        'mg d v' => $server->profile eq '1.4' ? "VA 3\r\nold" : 'EN');
    story('a value too large under a binary key', ms('ZA==', 'old', 'b') => 'HD',
        "ms ZA== 2000000 b\r\n$body\r\nmn" => "SERVER_ERROR object too large for cache\r\nMN",
        'mg ZA== b v' => $server->profile eq '1.4' ? "VA 3\r\nold" : 'EN');
}

sub test_large {
    for my $n (100, 3300, 3500, 4094, 4095, 5000, 70000, 900000) {
        my $v = join '', map { chr(33 + $_ % 90) } 1 .. 997;
        $v = substr $v x (1 + $n / 997), 0, $n;
        story("a value of $n bytes", ms('big', $v, 'T50 s Oz k') => "HD s$n Oz kbig",
            'mg big k v s t O1' => "VA $n kbig s$n t50 O1\r\n$v",
            "mg big v q\r\nmg big s\r\nmg none q\r\nmn" => "VA $n\r\n$v\r\nHD s$n\r\nMN");
    }
    story('and its end', 'md big' => 'HD', 'mg big' => 'EN');
}

sub test_delete {
    story('md', 'md x' => 'NF', 'md x k Oab q' => 'NF kx Oab', ms('x', 'v', 'E50 F3 T40') => 'HD',
        'md x C49' => 'EX', 'md x C51 k Oab q' => 'EX kx Oab', 'md x C50 k Oab' => 'HD kx Oab', 'mg x' => 'EN',
        ms('x', 'v') => 'HD', "md x q\r\nmn" => 'MN', 'mg x' => 'EN', ms('x', 'v', 'E50 F3 T40') => 'HD',
        'md x x' => 'HD', 'mg x v s f t c' => "VA 0 s0 f0 t-1 c50\r\n\r\n", 'md x x F8 T20 E60' => 'HD',
        'mg x v s f t c' => "VA 0 s0 f8 t20 c60\r\n\r\n", ms('x', 'v') => 'HD', "md x x I q E70\r\nmn" => 'MN',
        'mg x s c' => 'HD s0 c70 X W', ms('x', 'v', 'T40') => 'HD',
        'md x T10' => 'HD',    # T without I or x: a plain delete
        'mg x' => 'EN');
    exchange($s, ms('x', 'v', 'E5'), "HD\r\n");
    exchange($s, "md x C4\r\n", "EX\r\n", {delete_misses => 1, delete_hits => 0});
    exchange($s, "md x I\r\n", "HD\r\n", {delete_misses => 0, delete_hits => 0});
    exchange($s, "md x\r\n", "HD\r\n", {delete_misses => 0, delete_hits => 1});
    exchange($s, "md x\r\n", "NF\r\n", {delete_misses => 1, delete_hits => 0});
}

sub test_arith {
    story('ma', 'ma n' => 'NF', 'ma n k Oab q' => 'NF kn Oab', 'ma n N0 J13 v' => "VA 2\r\n13", 'ma n' => 'HD',
        'ma n v' => "VA 2\r\n15", 'ma n D5 v' => "VA 2\r\n20", 'ma n MD D11 v' => "VA 1\r\n9",
        'mg n v' => "VA 2\r\n9 ", 'ma n M- v' => "VA 1\r\n8", 'ma n M+ v' => "VA 1\r\n9",
        'ma n MIncr D91 v' => "VA 3\r\n100", 'ma n MD D1000 v' => "VA 1\r\n0",
        'ma n D18446744073709551615 v' => "VA 20\r\n18446744073709551615", 'ma n v' => "VA 1\r\n0",
        'ma n E90 c k Oab v' => "VA 1 c90 kn Oab\r\n1", 'ma n Oab k E91 c' => 'HD Oab kn c91',
        'ma n C90' => 'EX', 'ma n C90 q k Oz' => 'EX kn Oz', 'ma n C91 v' => "VA 1\r\n3",
        'ma n t T300' => 'HD t-1', 'ma n t T200 v' => "VA 1 t300\r\n5", 'ma n T100 t' => 'HD t100',
        'ma n2 N30 v t' => "VA 1 t30\r\n0", 'ma n2 N90 t v' => "VA 1 t30\r\n1",
        'ma n3 N30 t T60 J7 v' => "VA 1 t30\r\n7", 'mg n3 t' => 'HD t60', 'md n3' => 'HD',
        'ma n3 t T60 N30 J7' => 'HD t-1', 'mg n3 t' => 'HD t30',
        "ma n3 q\r\nma n3 q v\r\nma n3 v" => "VA 2\r\n10", "ma n4 q v N0 J5\r\nmn" => 'MN',
        'ma n4 v' => "VA 1\r\n6", ms('s', 'foo') => 'HD',
        'ma s' => 'CLIENT_ERROR cannot increment or decrement non-numeric value',
        'ma s q' => 'CLIENT_ERROR cannot increment or decrement non-numeric value', 'ma s C1' => 'EX',
        ms('s', '') => 'HD', 'ma s C1' => 'CLIENT_ERROR cannot increment or decrement non-numeric value',
        'ma n Mx' => 'CLIENT_ERROR invalid mode for ma M token',
        'ma n M' => 'CLIENT_ERROR invalid mode for ma M token');
    exchange($s, "ma n $_ q\r\n", "CLIENT_ERROR invalid or duplicate flag\r\n") for 'z', 'v v', 'T', 'Tx', 'C',
        'Nx', 'Dx', 'D-1', 'Jx', 'b', "\xff";
    exchanges($s, ["ma n\r\n", "HD\r\n", {incr_hits => 1, incr_misses => 0}],
        ["ma n MD\r\n", "HD\r\n", {decr_hits => 1, incr_hits => 0}], ["ma m\r\n", "NF\r\n", {incr_misses => 1}],
        ["ma m MD\r\n", "NF\r\n", {decr_misses => 1}],
        ["ma m N0\r\n", "HD\r\n", {incr_misses => 0, incr_hits => 0, curr_items => 1}]);
}

sub test_debug {
    story('me', 'me o' => 'EN', ms('o', 'xyz', 'E33') => 'HD');
    my $size = 48 + 8 + 2 + 3 + 2 + ($server->profile eq '1.4' ? 6 : 0);
    exchange($s, "me o\r\n", "ME o exp=-1 la=0 cas=33 fetch=no cls=1 size=$size\r\n",
        {cmd_get => 0, $server->profile eq '1.4' ? () : (cmd_meta => 1)});
    story('me again', 'mg o T100' => 'HD');
    debugtime($server, 61);    # accesses are noted once a minute
    story('me later', 'me o' => "ME o exp=39 la=61 cas=33 fetch=yes cls=1 size=$size",
        'me o x' => "ME o exp=39 la=61 cas=33 fetch=yes cls=1 size=$size", 'mg o l' => 'HD l61',
        'md o I E40' => 'HD', 'me o' => "ME o exp=39 la=0 cas=40 fetch=yes cls=1 size=$size",
        'mg o' => 'HD X W',    # me did not take it
        'me' => 'CLIENT_ERROR bad command line format',
        'me ' . ('k' x 251) => 'CLIENT_ERROR bad command line format',
        'me Zg b' => 'CLIENT_ERROR bad command line format');
    story('mn', 'mn' => 'MN', 'mn x y' => 'MN');
    exchange($s, "mn\n", pick($server->profile, '1.4' => "MN\r\n",
        '1.6' => "CLIENT_ERROR bad command line format\r\n"));
}

sub test_binary_keys {
    story('binary keys', ms('Zm9v', 'bar', 'b k c E10') => 'HD kZm9v b c10',
        'mg Zm9v b k v s' => "VA 3 kZm9v b s3\r\nbar", 'mg Zm9v k s b' => 'HD kZm9v b s3',
        'mg foo k' => 'HD kZm9v b',    # the item remembers
        'mg Zm9v k' => 'EN kZm9v', 'get foo' => "VALUE foo 0 3\r\nbar\r\nEND",
        'me foo' => qr/^ME Zm9v exp=-1 la=0 cas=10 fetch=yes cls=1 size=\d+\r\n$/,
        'me Zm9v b' => qr/^ME Zm9v exp=/, ms('Zm9v', 'x', 'b ME k Oz') => 'NS kZm9v b Oz',
        ms('Zm9v', 'x', 'b C1 k') => 'EX kZm9v b', ms('foo', 'bar2') => 'HD',
        'mg Zm9v b k' => 'HD kfoo',    # a plain store makes it plain again
        'mg Zh== b k O1' => 'EN kZg== b O1', 'md Zm9v b k O1' => 'HD kZm9v b O1', 'md Zm9v b k' => 'NF kZm9v b',
        'ma AAo= b k' => 'NF kAAo= b', 'ma AAo= b k N0 J1 v' => "VA 1 kAAo= b\r\n1",
        'mg AAo= k b v' => "VA 1 kAAo= b\r\n1", 'ma AAo= b k D9' => 'HD kAAo= b',
        'mg AAo= b k v' => "VA 2 kAAo= b\r\n10", 'mg dml2 b N30 k' => 'HD kdml2 b W',
        'mg viv k' => 'HD kdml2 b Z', ms('ICAg', 'blanks', 'b') => 'HD',
        'mg ICAg b v k' => "VA 6 kICAg b\r\nblanks", ms('ICAg', 'more', 'b MA s k') => 'HD s10 kICAg b',
        ms('A' x 248, 'long', 'b k') => 'HD k' . ('A' x 248) . ' b',
        'mg ' . ('A' x 248) . ' b v' => "VA 4\r\nlong",
        'mg ' . ('A' x 252) . ' b v' => 'CLIENT_ERROR bad command line format');
    for my $key ('Zm9', 'Zg', 'Zg=x', 'Z=g=', '====', '=', 'Zm-_', 'Zm9v=', "Zm9\x80") {
        exchanges($s, ["mg $key b k\r\n", "CLIENT_ERROR error decoding key\r\n"],
            ["md $key b q\r\n", "CLIENT_ERROR error decoding key\r\n"],
            ["ms $key 2 b\r\nhi\r\nmn\r\n", "CLIENT_ERROR error decoding key\r\nMN\r\n"]);
    }
}

sub test_errors {
    my $flags = 'k O P s v c t f l h u C1 L R1 T1 F1 I';
    for my $verb ('mg', 'md') {
        story("errors of $verb", $verb => 'CLIENT_ERROR bad command line format',
            "$verb " => 'CLIENT_ERROR bad command line format',
            "$verb " . ('k' x 251) => 'CLIENT_ERROR bad command line format',
            "$verb k z q" => 'CLIENT_ERROR invalid flag', "$verb k 0 q" => 'CLIENT_ERROR invalid flag',
            "$verb k m o o o o o o o o o o o o o o o o o o o o o o o" => 'CLIENT_ERROR invalid flag',
            "$verb k q v v" => 'CLIENT_ERROR duplicate flag', "$verb k \x7f" => 'CLIENT_ERROR duplicate flag',
            "$verb k \xc3" => 'CLIENT_ERROR duplicate flag',
            "$verb k T" => 'CLIENT_ERROR bad token in command line format',
            "$verb k Tx" => 'CLIENT_ERROR bad token in command line format',
            "$verb k T99999999999" => 'CLIENT_ERROR bad token in command line format',
            "$verb k N" => 'CLIENT_ERROR bad token in command line format',
            "$verb k R" => 'CLIENT_ERROR bad token in command line format',
            "$verb k C" => 'CLIENT_ERROR bad token in command line format',
            "$verb k E" => 'CLIENT_ERROR bad token in command line format',
            "$verb k F" => 'CLIENT_ERROR bad command line format',
            "$verb k J" => 'CLIENT_ERROR invalid numeric initial value',
            "$verb k D" => 'CLIENT_ERROR invalid numeric delta value',
            "$verb k O" . ('o' x 32) => 'CLIENT_ERROR opaque token too long',
            "$verb k $flags x D1" => 'CLIENT_ERROR options flags are too long');
    }
    story('ms flags and the data block',
        "ms k 2 $flags x\r\nhi\r\nmn" => "CLIENT_ERROR options flags are too long\r\nMN",
        "ms k 2 O" . ('o' x 32) . "\r\nhi\r\nmn" => "CLIENT_ERROR opaque token too long\r\nMN",
        "ms k 2 v v\r\nhi\r\nmn" => "CLIENT_ERROR duplicate flag\r\nMN",
        "ms k 2 F\r\nhi\r\nmn" => "CLIENT_ERROR bad command line format\r\nMN",
        "ms k 2 M\r\nhi\r\nmn" => "CLIENT_ERROR invalid mode for ms M token\r\nMN",
        "ms k 2 MX\r\nhi\r\nmn" => "CLIENT_ERROR invalid mode for ms M token\r\nMN", 'mg k' => 'EN');
    story('20 words are fine', "mg k $flags x" => 'EN kk O');
}

sub test_quiet {
    story('quiet and the barrier',
        ms('a', '1', 'q') . ms('b', '2', 'q') . ms('a', 'x', 'q ME') . "mn" => "NS\r\nMN",
        "mg a v q k\r\nmg none v q k\r\nmg b v q k\r\nmg none q\r\nmn" => "VA 1 ka\r\n1\r\nVA 1 kb\r\n2\r\nMN",
        "md a q\r\nmd a q\r\nmd b q C1\r\nma b q v\r\nma none q\r\nmn" => "NF\r\nEX\r\nNF\r\nMN",
        'mg q s N30 t q' => 'HD s0 t30 W');
}

# One client marks an item stale, one of the readers is told to refresh it, the others go on
# with the old value.
sub test_stale {
    story('stale, won, refreshed', ms('st', 'old', 'T500 E10') => 'HD', 'mg st v c t' => "VA 3 c10 t500\r\nold",
        'md st I T30 E11' => 'HD', 'mg st v c t' => "VA 3 c11 t30 X W\r\nold",
        'mg st v c t' => "VA 3 c11 t30 Z X\r\nold", 'mg st u' => 'HD Z X', ms('st', 'late', 'C10 c') => 'EX c0',
        ms('st', 'new', 'C11 T500') => 'HD', 'mg st v t' => "VA 3 t500\r\nnew");
    story('a late refresh stays stale', ms('st', 'old', 'T500 E20') => 'HD', 'md st I E22 T40' => 'HD',
        'mg st c' => 'HD c22 X W', ms('st', 'higher', 'I C23') => 'EX',
        ms('st', 'late', 'I C21 T900 E30') => 'HD', 'mg st v c t' => "VA 4 c30 t40 Z X\r\nlate",
        ms('st', 'right', 'I C30 T900') => 'HD', 'mg st v t' => "VA 5 t900\r\nright",
        ms('st', 'other', 'I C1 E9') => 'HD',    # nobody had the token
        'mg st' => 'HD X W', 'md st I q' => '', 'mg st' => 'HD X W',    # I gives the token back
        'mg st' => 'HD Z X', 'md st' => 'HD');
    story('about to expire', ms('rc', 'v', 'T100') => 'HD', 'mg rc R30 t' => 'HD t100',
        'mg rc R100 t' => 'HD t100', 'mg rc R101 t' => 'HD t100 W', 'mg rc R101 t' => 'HD t100 Z',
        'mg rc t' => 'HD t100 Z', ms('rc', 'v', 'T100') => 'HD',
        'mg rc T300 R200 t' => 'HD t300',    # the time to live after the touch
        'mg rc R200 T100 t' => 'HD t100',    # ... and before it
        'mg rc T50 R200 t' => 'HD t50 W', ms('rc', 'v') => 'HD', 'mg rc R2147483647' => 'HD',    # never expires
        ms('rc', 'v', 'T100') => 'HD');
    debugtime($server, 80);
    story('after 80 seconds', 'mg rc R30 t v' => "VA 1 t20 W\r\nv", 'mg rc R30' => 'HD Z');
    story('made on a miss', 'mg nn N30 s v t' => "VA 0 s0 t30 W\r\n\r\n",
        'mg nn N30 s v t' => "VA 0 s0 t30 Z\r\n\r\n", 'mg nn f' => 'HD f0 Z', ms('nn', 'filled', 'T50') => 'HD',
        'mg nn N30 v t' => "VA 6 t50\r\nfilled", 'mg n2 N30 T90 t' => 'HD t90 W', 'mg n2 t' => 'HD t90 Z',
        'mg n3 T90 N30 t' => 'HD t30 W', 'mg n3 t' => 'HD t30 Z', 'mg n4 t T90 N30 c E44' => 'HD t-1 c44 W',
        'mg n4 t' => 'HD t30 Z', 'mg n5 N30 R60' => 'HD W', 'mg n6 N0 t l h' => 'HD t-1 l0 h0 W',
        'mg n6 h' => 'HD h1 Z', 'mg n7 k N30 Oq' => 'HD kn7 Oq W');
    debugtime($server, 31);
    story('nobody filled it', 'mg n3' => 'EN', 'mg n3 N30 t' => 'HD t30 W');
}

sub test_pieces {
    my @bytes = split //, ms('p', 'piece', 'k s O1 c E3') . "mg p v k c\r\nmn\r\n";
    put($s, $_) for @bytes;
    expect_bytes($s, "HD kp s5 O1 c3\r\nVA 5 kp c3\r\npiece\r\nMN\r\n", 'byte by byte');
}

# Whoever asks at the same time, one of them wins, for a stale item and for an absent one.
sub test_one_winner {
    my @clients = map { $server->connect } 1 .. 12;
    my ($rounds, $wrong) = (40, 0);
    for my $round (1 .. $rounds) {
        my $key = "race$round";
        roundtrip($s, ms($key, 'old') . "md $key I\r\n") if $round % 2;
        put($_, "mg $key N60 v\r\nmn\r\n") for @clients;
        my ($won, $lost) = (0, 0);
        for my $c (@clients) {
            my $line = read_line($c);
            $won++ if $line =~ / W\r\n$/;
            $lost++ if $line =~ / Z(?: X)?\r\n$/;
            read_line($c) for 1 .. 2;    # the value and MN
        }
        $wrong++ if $won != 1 || $lost != @clients - 1;
    }
    is($wrong, 0, "one winner in each of $rounds races");
}

each_profile(sub ($profile) {
    # no thread that removes what is gone before somebody asks for it
    my @quiet = @{pick($profile, '1.4' => [], '1.6' => ['-o', 'no_lru_crawler,no_lru_maintainer'])};
    $server = serve($profile, @quiet);
    debugtime($server, 'p');
    $s = $server->connect;
    for my $test (\&test_get, \&test_times, \&test_set, \&test_large, \&test_delete,
        \&test_arith, \&test_debug, \&test_binary_keys, \&test_errors, \&test_quiet,
        \&test_stale, \&test_pieces, \&test_one_winner) {
        exchange($s, "flush_all\r\n", "OK\r\n");
        $test->();
    }

    # Without CAS numbers.
    ($server, $s) = serve($profile, '-C');
    story('without CAS', ms('a', 'x', 'c') => 'HD c0', 'mg a c v' => "VA 1 c0\r\nx", 'mg a v C0' => "VA 1\r\nx",
        ms('a', 'y', 'C7') => pick($profile, '1.4' => 'HD', '1.6' => 'EX'), ms('b', 'y', 'C7') => 'NF',
        ms('a', 'z', 'MA', 'C7') => 'HD', 'md a C7' => 'EX', 'md a C7 I' => 'EX', 'md a I' => 'HD', 'mg a' => 'HD X W',
        'md a C0' => 'HD', ms('n', '1') => 'HD', 'ma n C7 v' => 'EX', 'ma n C0 v' => "VA 1\r\n2");
});

done_testing();
