#!/usr/bin/env perl
# The binary protocol: every opcode, what its reply holds and what its quiet form hides; byte
# for byte in both profiles, and the counters that move.
use MCTest ':ours';
use MCBinary;

my ($server, $s, $profile);

my %NOT_FOUND = (status => 1, value => 'Not found');
my %EXISTS = (status => 2, value => 'Data exists for key.');
my %FLAGS = (extras => pack 'N', 5);

# One request, its whole reply, and the counters that it moves.
sub is_answered {
    my ($name, $request, $want, $moves) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($opcode, %f) = @$request;
    my $before = $moves ? mem_stats($server->control) : undef;
    put($s, packet($opcode, %f));
    my $reply = answers($s, $opcode, $want, "$name");
    if ($moves) {
        my $after = mem_stats($server->control);
        is($after->{$_} - $before->{$_}, $moves->{$_}, "$name: $_ moves by $moves->{$_}") for sort keys %$moves;
    }
    return $reply;
}

sub set_key($key, $value, %f) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_answered("set $key", [0x01, key => $key, value => $value,
        extras => store_extras(5), %f], {cas => 'some'})->{cas};
}

sub value_is($key, $value, $name = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_answered($name // "$key is right", [0x00, key => $key],
        defined $value ? {%FLAGS, cas => 'some', value => $value} : {%NOT_FOUND});
}

sub test_simple {
    is_answered('noop', [0x0a], {});
    is_answered('version', [0x0b], {value => $profile eq '1.6' ? '1.6.45' : '1.4.39'});
    for my $code (0x1b, 0x1f, 0x25 .. 0xff) {
        put($s, packet($code));
        my $p = read_packet($s);
        fail("unknown opcode $code") if !$p || $p->{status} != 0x81 || $p->{opcode} != $code
            || $p->{value} ne 'Unknown command';
    }
    is_answered('an unknown opcode with a body', [0xe0, key => 'k', value => 'v' x 20000, extras => 'xy'],
        {status => 0x81, value => 'Unknown command'});
    is_answered("opcode $_ without SASL", [$_, $_ == 0x20 ? () : (key => 'PLAIN', value => 'x')],
        {status => 0x81, value => 'Unknown command'}) for 0x20, 0x21, 0x22;
}

sub test_get {
    is_answered('get, absent', [0x00, key => 'g'], {%NOT_FOUND}, {get_misses => 1, cmd_get => 1});
    is_answered('getk, absent', [0x0c, key => 'g'], {status => 1, key => 'g'}, {get_misses => 1});
    silent($s, 0x09, key => 'g', name => 'getq, absent');
    silent($s, 0x0d, key => 'g', name => 'getkq, absent');
    my $cas = set_key('g', 'value');
    is_answered('get', [0x00, key => 'g'], {%FLAGS, cas => $cas, value => 'value'},
        {get_hits => 1, cmd_get => 1});
    is_answered('getq', [0x09, key => 'g'], {%FLAGS, cas => $cas, value => 'value'});
    is_answered('getk', [0x0c, key => 'g'], {%FLAGS, cas => $cas, key => 'g', value => 'value'});
    is_answered('getkq', [0x0d, key => 'g'], {%FLAGS, cas => $cas, key => 'g', value => 'value'});
    set_key('empty', '');
    value_is('empty', '');
}

sub test_store {
    my %f = (extras => store_extras(5));
    is_answered('add', [0x02, key => 'a', value => 'one', %f], {cas => 'some'}, {cmd_set => 1});
    is_answered('add, present', [0x02, key => 'a', value => 'two', %f], {%EXISTS}, {cmd_set => 1});
    value_is('a', 'one');
    is_answered('addq, present', [0x12, key => 'a', value => 'two', %f], {%EXISTS});
    silent($s, 0x12, key => 'aq', value => 'q', %f);
    value_is('aq', 'q');
    is_answered('replace, absent', [0x03, key => 'r', value => 'x', %f], {%NOT_FOUND});
    is_answered('replaceq, absent', [0x13, key => 'r', value => 'x', %f], {%NOT_FOUND});
    is_answered('replace', [0x03, key => 'a', value => 'three', %f], {cas => 'some'});
    silent($s, 0x13, key => 'a', value => 'four', %f);
    value_is('a', 'four');
    silent($s, 0x11, key => 'sq', value => 'quiet', %f);
    value_is('sq', 'quiet');
    is_answered('append, absent', [0x0e, key => 'no', value => 'x'], {status => 5, value => 'Not stored.'});
    is_answered('prependq, absent', [0x1a, key => 'no', value => 'x'], {status => 5, value => 'Not stored.'});
    is_answered('append', [0x0e, key => 'a', value => '>>'], {cas => 'some'});
    is_answered('prepend', [0x0f, key => 'a', value => '<<'], {cas => 'some'});
    silent($s, 0x19, key => 'a', value => ']');
    silent($s, 0x1a, key => 'a', value => '[');
    value_is('a', '[<<four>>]');
}

sub test_cas {
    my %f = (extras => store_extras(5));
    my $cas = set_key('c', 'one');
    is_answered('set, wrong cas', [0x01, key => 'c', value => 'x', %f, cas => $cas + 100], {%EXISTS},
        {cas_badval => 1, cmd_set => 1});
    is_answered('set, right cas', [0x01, key => 'c', value => 'two', %f, cas => $cas], {cas => 'some'},
        {cas_hits => 1});
    is_answered('set, old cas', [0x01, key => 'c', value => 'x', %f, cas => $cas], {%EXISTS});
    is_answered('set with cas, absent', [0x01, key => 'cn', value => 'x', %f, cas => 1], {%NOT_FOUND},
        {cas_misses => 1});
    is_answered('add with cas, absent', [0x02, key => 'cn', value => 'x', %f, cas => 1], {%NOT_FOUND});
    is_answered('replace, wrong cas', [0x03, key => 'c', value => 'x', %f, cas => $cas], {%EXISTS});
    is_answered('append, wrong cas', [0x0e, key => 'c', value => 'x', cas => $cas], {%EXISTS}, {cas_badval => 0});
    is_answered('append with cas, absent', [0x0e, key => 'cn', value => 'x', cas => 1],
        {status => 5, value => 'Not stored.'});
    my $now = value_is('c', 'two')->{cas};
    $now = is_answered('append, right cas', [0x0e, key => 'c', value => '!', cas => $now], {cas => 'some'})->{cas};
    is(value_is('c', 'two!')->{cas}, $now, 'a store returns the CAS that a get shows');
    is_answered('delete, wrong cas', [0x04, key => 'c', cas => $cas], {%EXISTS}, {delete_misses => 0});
    is_answered('delete, right cas', [0x04, key => 'c', cas => $now], {}, {delete_hits => 1});
    is_answered('delete, absent', [0x04, key => 'c'], {%NOT_FOUND}, {delete_misses => 1});
    is_answered('deleteq, absent', [0x14, key => 'c'], {%NOT_FOUND});
    set_key('c', 'x');
    silent($s, 0x14, key => 'c');
    value_is('c', undef);
}

sub number_is($code, $number = undef, $name = undef, %f) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_answered($name, [$code, key => 'n', %f], {cas => 'some', value => MCBinary::u64($number)});
}

sub test_sums {
    my %none = (extras => sum_extras(1, 0, NO_CREATE));
    is_answered('incr, absent', [0x05, key => 'n', %none], {%NOT_FOUND}, {incr_misses => 1});
    is_answered('decrq, absent', [0x16, key => 'n', %none], {%NOT_FOUND}, {decr_misses => 1});
    my $cas = number_is(0x05, 1, 'incr creates', extras => sum_extras(5, 1))->{cas};
    is_answered('the created value is as long as its number', [0x00, key => 'n'],
        {extras => pack('N', 0), cas => $cas, value => '1'});
    number_is(0x05, $_ + 1, "incr to " . ($_ + 1), extras => sum_extras(1)) for 1 .. 10;
    silent($s, 0x15, key => 'n', extras => sum_extras(2**40));
    $cas = number_is(0x06, 2**40 + 10, 'decr', extras => sum_extras(1))->{cas};
    is(ask($s, 0x00, key => 'n')->{cas}, $cas, 'a sum returns the CAS that a get shows');
    is_answered('incr, wrong cas', [0x05, key => 'n', %none, cas => $cas + 1], {%EXISTS}, {incr_hits => 0});
    number_is(0x05, 2**40 + 11, 'incr, right cas', %none, cas => $cas);
    silent($s, 0x16, key => 'n', extras => sum_extras(2**40));
    number_is(0x06, 0, 'decr stops at 0', extras => sum_extras(12));
    number_is(0x06, 0, 'and stays', extras => sum_extras(~0));
    number_is(0x05, ~0, 'incr to the largest', extras => sum_extras(~0));
    number_is(0x05, 0, 'and around', extras => sum_extras(1));
    set_key('word', 'word');
    is_answered('incr of a word', [0x05, key => 'word', extras => sum_extras(1)],
        {status => 6, value => 'Non-numeric server-side value for incr or decr'});
    set_key('digits', '99');
    is_answered('incr of text', [0x05, key => 'digits', extras => sum_extras(1)],
        {cas => 'some', value => MCBinary::u64(100)});
    value_is('digits', '100');
    for (['+5', 6], ['0' x 25, 1], ["12\0", 13], ["12\0x", 13], ["\t7", 8]) {
        my ($stored, $sum) = @$_;
        set_key('stored', $stored);
        is_answered('incr of ' . show($stored), [0x05, key => 'stored', extras => sum_extras(1)],
            {cas => 'some', value => MCBinary::u64($sum)});
    }
}

sub test_touch {
    my %soon = (extras => pack 'N', 1000);
    is_answered('touch, absent', [0x1c, key => 't', %soon], {%NOT_FOUND}, {cmd_touch => 1, touch_misses => 1});
    is_answered('gat, absent', [0x1d, key => 't', %soon], {%NOT_FOUND}, {cmd_touch => 1, cmd_get => 0});
    is_answered('gatk, absent', [0x23, key => 't', %soon], {status => 1, key => 't'});
    silent($s, 0x1e, key => 't', %soon);
    silent($s, 0x24, key => 't', %soon);
    my $cas = set_key('t', 'v');
    is_answered('touch', [0x1c, key => 't', %soon], {%FLAGS, cas => $cas}, {cmd_touch => 1, touch_hits => 1});
    my %hit = (%FLAGS, cas => $cas, value => 'v');
    is_answered(@$_) for ['gat', [0x1d, key => 't', %soon], {%hit}, {touch_hits => 1, get_hits => 0}],
        ['gatq', [0x1e, key => 't', %soon], {%hit}], ['gatk', [0x23, key => 't', %soon], {%hit, key => 't'}],
        ['gatkq', [0x24, key => 't', %soon], {%hit, key => 't'}];
    debugtime($server, 500);
    is_answered('touched in time', [0x1c, key => 't', %soon], {%FLAGS, cas => $cas});
    debugtime($server, 800);
    value_is('t', 'v', 'lives on');
    debugtime($server, 300);
    is_answered('expired', [0x00, key => 't'], {%NOT_FOUND}, {get_expired => 1});
    is_answered('set with an expiry', [0x01, key => 't', value => 'v', extras => store_extras(0, 2)], {cas => 'some'});
    is_answered('a sum with an expiry', [0x05, key => 'ts', extras => sum_extras(1, 7, 2)],
        {cas => 'some', value => MCBinary::u64(7)});
    debugtime($server, 3);
    value_is('t', undef);
    value_is('ts', undef);
}

sub test_flush {
    set_key('f', 'v');
    is_answered('flush', [0x08], {}, {cmd_flush => 1});
    value_is('f', undef);
    set_key('f', 'v');
    silent($s, 0x18);
    value_is('f', undef);
    set_key('f', 'v');
    debugtime($server, 'p');
    is_answered('flush in two seconds', [0x08, extras => pack 'N', 2], {});
    value_is('f', 'v');
    debugtime($server, 3);
    debugtime($server, 'r');
    value_is('f', undef);
    set_key('f', 'v');
    silent($s, 0x18, extras => pack 'N', 0);
    value_is('f', undef);
}

sub test_stat {
    my $stats = bin_stats($s);
    is($stats->{pid}, $server->pid, 'stat tells the pid');
    my @names = stat_names($server->control);
    is_deeply([sort keys %$stats], [sort @names], 'and all the names of the text protocol');
    set_key('st', 'v');
    for my $group (qw(settings items slabs sizes)) {
        my $text = mem_stats($server->control, $group);
        is_deeply([sort keys %{bin_stats($s, $group)}], [sort keys %$text], "stat $group");
    }
    is_answered('stat reset', [0x10, key => 'reset'], {}, {cmd_set => -bin_stats($s)->{cmd_set}});
    is_answered('stat ' . MCTest::show($_), [0x10, key => $_], {%NOT_FOUND}) for 'conns', 'bogus', 'detail',
        'detail bogus', 'cachedump 1 0', ' ', "\0";
    is_answered('stat detail on', [0x10, key => 'detail on'], {});
    ask($s, 0x00, key => 'pre:a');
    set_key('pre:b', 'v');
    ask($s, 0x00, key => 'pre:b');
    ask($s, 0x04, key => 'pre:b');
    my $lines = "PREFIX pre get 2 hit 1 set 1 del 1\r\nEND\r\n";
    is_answered('stat detail dump', [0x10, key => 'detail dump'], {key => 'detailed', value => $lines});
    answers($s, 0x10, {}, 'and its end');
    is_answered('stat detail off', [0x10, key => 'detail off'], {});
    if ($profile eq '1.4') {
        is_answered("stat sizes_$_->[0]", [0x10, key => "sizes_$_->[0]"],
            {key => 'sizes_status', value => $_->[1]}) && answers($s, 0x10, {}, 'and its end')
            for ['enable', 'enabled'], ['disable', 'disabled'];
    }
}

# Keys may be any bytes; text listings stay lines.
sub test_keys {
    my %f = (extras => store_extras(5));
    for my $key (' ', 'a b', "\r\n", "a\0b", "END\r\n", join('', map { chr } 0 .. 249), "\xff" x 250) {
        my $name = MCTest::show(substr $key, 0, 10);
        is_answered(@$_) for ["set $name", [0x01, key => $key, value => "of $name", %f], {cas => 'some'}],
            ["getk $name", [0x0c, key => $key], {%FLAGS, cas => 'some', key => $key, value => "of $name"}],
            ["incr $name.", [0x05, key => substr("n$key", 0, 250), extras => sum_extras(1, 8)],
                {cas => 'some', value => MCBinary::u64(8)}];
    }
    my $control = $server->control;
    exchange($control, "get a b\r\n", "END\r\n", 'a blank in a key is none of the text protocol');
}

# Text and binary clients see the same.
sub test_both {
    my $text = $server->connect;
    set_key('both', "from\r\nbinary");
    exchange($text, "get both\r\n", "VALUE both 5 12\r\nfrom\r\nbinary\r\nEND\r\n", 'text reads');
    exchange($text, "append both 0 0 5\r\n+text\r\n", "STORED\r\n", 'text appends');
    value_is('both', "from\r\nbinary+text", 'binary reads');
    my $large = join '', map { chr(65 + $_ % 26) } 1 .. 700_000;
    set_key('large', $large);
    exchange($text, "get large\r\n", "VALUE large 5 700000\r\n$large\r\nEND\r\n", 'text reads a large value');
    value_is('large', $large, 'binary reads it too');
    exchange($text, "set n2 0 0 2\r\n41\r\n", "STORED\r\n", 'text stores a number');
    is_answered('binary increments it', [0x05, key => 'n2', extras => sum_extras(1)],
        {cas => 'some', value => MCBinary::u64(42)});
}

sub test_quit {
    my $c = $server->connect;
    put($c, packet(0x07) . packet(0x0a));
    answers($c, 0x07, {}, 'quit is answered');
    expect_eof($c, '', 'and ends the connection');
    $c = $server->connect;
    put($c, packet(0x11, key => 'q', value => 'v', extras => store_extras(5)) . packet(0x17) . packet(0x0a));
    expect_eof($c, '', 'quitq is not');
    value_is('q', 'v', 'what came before it is done');
}

each_profile(sub {
    ($profile) = @_;
    # no thread that removes what is gone before somebody asks for it
    my @quiet = @{pick($profile, '1.4' => [], '1.6' => ['-o', 'no_lru_crawler,no_lru_maintainer'])};
    ($server, $s) = serve($profile, @quiet);
    test_simple();
    test_get();
    test_store();
    test_cas();
    test_sums();
    test_touch();
    test_flush();
    test_stat();
    test_keys();
    test_both();
    test_quit();
    ($server, $s) = serve($profile, '-F');
    is_answered('flush with -F', [0x08], {status => 0x20, value => 'Auth failure.'}, {cmd_flush => 0});
    bin_alive($s, 'and the connection stays');
    ($server, $s) = serve($profile, '-C');
    is_answered('set with -C', [0x01, key => 'k', value => 'v', extras => store_extras(5)], {});
    is_answered('get with -C', [0x00, key => 'k'], {%FLAGS, value => 'v'});
    is_answered('delete of another CAS number with -C', [0x04, key => 'k', cas => 5], {status => 2, value => 'Data exists for key.'});
    is_answered('set with -C', [0x01, key => 'n', value => '1', extras => store_extras(5)], {});
    is_answered('incr of another CAS number with -C', [0x05, key => 'n', cas => 5, extras => sum_extras(1)],
        {status => 2, value => 'Data exists for key.'});
});

done_testing();
