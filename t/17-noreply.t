#!/usr/bin/env perl
# With noreply no command answers, not even with an error, and each still takes effect.
use MCTest;

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    my ($server, $s) = serve($profile);
    my $is = sub ($send, $key, $value) {
        my $want = defined $value ? "VALUE $key 0 " . length($value) . "\r\n$value\r\nEND\r\n" : "END\r\n";
        exchange($s, "${send}get $key\r\n", $want, show($send));
    };
    $is->(@$_) for ["add a 0 0 1 noreply\r\n1\r\n", 'a', '1'], ["set a 0 0 1 noreply\r\n2\r\n", 'a', '2'],
        ["replace a 0 0 1 noreply\r\n3\r\n", 'a', '3'], ["append a 0 0 1 noreply\r\n4\r\n", 'a', '34'],
        ["prepend a 0 0 1 noreply\r\n5\r\n", 'a', '534'];
    my ($cas) = mem_gets($s, 'a');
    $is->(@$_) for ["cas a 0 0 1 $cas noreply\r\n6\r\n", 'a', '6'],
        ["cas a 0 0 1 1 noreply\r\n7\r\n", 'a', '6'], ["incr a 3 noreply\r\n", 'a', '9'],
        ["decr a 2 noreply\r\n", 'a', '7'], ["touch a 0 noreply\r\n", 'a', '7'],
        ["delete a noreply\r\n", 'a', undef], ["delete a noreply\r\n", 'a', undef],
        ["add b 0 0 1 noreply\r\n1\r\nadd b 0 0 1 noreply\r\n2\r\n", 'b', '1'],
        ["replace nix 0 0 1 noreply\r\n1\r\n", 'nix', undef],
        ["append nix 0 0 1 noreply\r\n1\r\n", 'nix', undef], ["incr nix 1 noreply\r\n", 'nix', undef],
        ["touch nix 1 noreply\r\n", 'nix', undef], ["incr b x noreply\r\n", 'b', '1'],
        ["touch b x noreply\r\n", 'b', '1'], ["set t 0 0 1 noreply\r\nx\r\nincr t 1 noreply\r\n", 't', 'x'],
        ["verbosity 0 noreply\r\n", 'b', '1'], ["cache_memlimit 64 noreply\r\n", 'b', '1'],
        ["cache_memlimit 1 noreply\r\n", 'b', '1'], ["flush_all noreply\r\n", 'b', undef],
        ["set c 0 0 1 noreply\r\n1\r\nflush_all 0 noreply\r\n", 'c', undef];
    exchange($s, "set d 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "delete d 0 noreply\r\nget d\r\n", "END\r\n", 'delete k 0 noreply');
    exchange($s, "set d 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "delete d 10 noreply\r\nget d\r\n", pick($profile, '1.4' => "VALUE d 0 1\r\n1\r\nEND\r\n",
        '1.6' => "END\r\n", ref => "VALUE d 0 1\r\n1\r\nEND\r\n"), 'delete k 10 noreply');

    # errors are silent too
    if (!$is_ref) {
        exchanges($s,
            ["set e 0 0 1 noreply\r\nabc\r\nversion\r\n",
                pick($profile, '1.4' => "ERROR\r\n", '1.6' => "CLIENT_ERROR bad command line format\r\n") . VERSION_REPLY($profile),
                'a bad data chunk: only the rest of it is answered, as a line of its own'],
            ["set e 0 0 -1 noreply\r\nversion\r\n", VERSION_REPLY($profile), 'a bad length']);
    }

    # noreply is only looked for in the last word, and get does not look
    exchange($s, "set noreply 0 0 1\r\n1\r\n", "STORED\r\n", 'noreply as a key');
    exchange($s, "get noreply\r\n", "VALUE noreply 0 1\r\n1\r\nEND\r\n");
    exchange($s, "get a noreply\r\n", "VALUE noreply 0 1\r\n1\r\nEND\r\n");
    exchange($s, "delete noreply\r\n", qr/\A(DELETED\r\n|)\z/, 'delete of that key');
    exchange($s, "set g 0 0 1 noreplyx\r\n1\r\n", "STORED\r\n", 'another word is no noreply');
    exchange($s, "set g 0 0 1 norepl\r\n1\r\n", "STORED\r\n");

    # thousands of silent commands, then one that speaks
    my $send = join '', map { "set s$_ 0 0 2 noreply\r\nok\r\n" } 1 .. 5000;
    exchange($s, $send . "get s5000\r\n", "VALUE s5000 0 2\r\nok\r\nEND\r\n", {cmd_set => 5000},
        '5000 silent sets');
});

done_testing();
