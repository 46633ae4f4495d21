#!/usr/bin/env perl
# Every text command gives its documented reply, and moves its counters, in every outcome.
use MCTest;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile);

    # version
    exchange($s, "version\r\n", VERSION_REPLY($profile));
    exchange($s, "version\n", VERSION_REPLY($profile), 'a lone LF ends a line');

    # set and get
    exchanges($s, ["get foo\r\n", "END\r\n", {cmd_get => 1, get_misses => 1, get_hits => 0}],
        ["set foo 0 0 6\r\nfooval\r\n", "STORED\r\n", {cmd_set => 1, curr_items => 1, total_items => 1}],
        ["get foo\r\n", "VALUE foo 0 6\r\nfooval\r\nEND\r\n", {cmd_get => 1, get_misses => 0, get_hits => 1}],
        ["set foo 5 0 3\r\nbar\r\n", "STORED\r\n", {cmd_set => 1, curr_items => 0, total_items => 1},
            'set replaces'], ["get foo\r\n", "VALUE foo 5 3\r\nbar\r\nEND\r\n", 'flags come back'],
        ["get nix foo nada foo\r\n", "VALUE foo 5 3\r\nbar\r\nVALUE foo 5 3\r\nbar\r\nEND\r\n",
            {cmd_get => 4, get_hits => 2, get_misses => 2}, 'get of several keys in request order'],
        ["get  foo   foo  \r\n", "VALUE foo 5 3\r\nbar\r\nVALUE foo 5 3\r\nbar\r\nEND\r\n",
            'several blanks separate'],
        ["  get foo\r\n", $profile eq '1.6' ? "ERROR\r\n" : "VALUE foo 5 3\r\nbar\r\nEND\r\n",
            'leading blanks'],
        [" version\r\n", $profile eq '1.6' ? "ERROR\r\n" : VERSION_REPLY($profile), 'a leading blank'],
        ["set  foo  6  0  3  \r\nbaz\r\n", "STORED\r\n", 'set with more blanks'],
        ["get foo\n", "VALUE foo 6 3\r\nbaz\r\nEND\r\n"]);

    # add and replace
    exchange($s, "add foo 0 0 1\r\nx\r\n", "NOT_STORED\r\n", {cmd_set => 1, curr_items => 0, total_items => 0});
    exchange($s, "add moo 0 0 6\r\nmooval\r\n", "STORED\r\n", {cmd_set => 1, curr_items => 1});
    mem_get_is($s, 'moo', 'mooval');
    exchange($s, "replace nix 0 0 1\r\nx\r\n", "NOT_STORED\r\n", {curr_items => 0});
    mem_get_is($s, 'nix', undef);
    exchange($s, "replace moo 0 0 3\r\nnew\r\n", "STORED\r\n", {curr_items => 0});
    mem_get_is($s, 'moo', 'new');

    # append and prepend keep flags of the old item
    exchanges($s, ["append nix 0 0 1\r\nx\r\n", "NOT_STORED\r\n"],
        ["prepend nix 0 0 1\r\nx\r\n", "NOT_STORED\r\n"], ["set ap 7 0 3\r\nmid\r\n", "STORED\r\n"],
        ["append ap 1 0 4\r\n-end\r\n", "STORED\r\n", {cmd_set => 1, curr_items => 0}],
        ["prepend ap 2 0 6\r\nstart-\r\n", "STORED\r\n", {cmd_set => 1}],
        ["get ap\r\n", "VALUE ap 7 13\r\nstart-mid-end\r\nEND\r\n"],
        ["append ap 0 0 0\r\n\r\n", "STORED\r\n", 'append of nothing'],
        ["get ap\r\n", "VALUE ap 7 13\r\nstart-mid-end\r\nEND\r\n"]);

    # gets and cas
    exchanges($s, ["gets nix\r\n", "END\r\n", {cmd_get => 1, get_misses => 1}],
        ["cas nix 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n", {cas_misses => 1, cas_hits => 0, cas_badval => 0}],
        ["set c 0 0 3\r\none\r\n", "STORED\r\n"]);
    my ($cas, $value) = mem_gets($s, 'c');
    is($value, 'one', 'gets returns the value');
    like($cas, qr/^[1-9]\d*$/, 'the cas unique is a positive number');
    exchange($s, "gets c\r\n", "VALUE c 0 3 $cas\r\none\r\nEND\r\n", 'gets does not change it');
    my $bad = $cas + 1000;
    exchange($s, "cas c 0 0 3 $bad\r\ntwo\r\n", "EXISTS\r\n",
        {cas_badval => 1, cas_hits => 0, cas_misses => 0});
    mem_get_is($s, 'c', 'one');
    exchange($s, "cas c 3 0 3 $cas\r\ntwo\r\n", "STORED\r\n",
        {cas_badval => 0, cas_hits => 1, cas_misses => 0, cmd_set => 1});
    exchange($s, "get c\r\n", "VALUE c 3 3\r\ntwo\r\nEND\r\n");
    exchange($s, "cas c 0 0 5 $cas\r\nthree\r\n", "EXISTS\r\n", 'a used cas unique is used up');
    my ($cas2) = mem_gets($s, 'c');
    isnt($cas2, $cas, 'cas changes the unique');
    for my $change ("set c 0 0 1\r\n1\r\n", "append c 0 0 1\r\n2\r\n", "replace c 0 0 1\r\n5\r\n") {
        my ($old) = mem_gets($s, 'c');
        exchange($s, $change, "STORED\r\n");
        my ($new) = mem_gets($s, 'c');
        isnt($new, $old, 'the unique changes with ' . show($change));
    }
    ($cas) = mem_gets($s, 'c');
    exchange($s, "incr c 1\r\n", "6\r\n");
    ($cas2) = mem_gets($s, 'c');
    isnt($cas2, $cas, 'incr changes the unique');
    exchange($s, "cas c 0 0 1 $cas\r\n9\r\n", "EXISTS\r\n", 'so a race with incr is noticed');
    ($cas) = mem_gets($s, 'c');
    exchange($s, "touch c 0\r\n", "TOUCHED\r\n");
    ($cas2) = mem_gets($s, 'c');
    is($cas2, $cas, 'touch keeps the unique');
    exchanges($s, ["set g1 0 0 1\r\n1\r\n", "STORED\r\n"], ["set g2 0 0 1\r\n2\r\n", "STORED\r\n"],
        ["gets g1 nix g2\r\n", qr/\AVALUE g1 0 1 \d+\r\n1\r\nVALUE g2 0 1 \d+\r\n2\r\nEND\r\n\z/,
            'gets of several']);

    # delete
    exchanges($s, ["delete nix\r\n", "NOT_FOUND\r\n", {delete_misses => 1, delete_hits => 0}],
        ["delete foo\r\n", "DELETED\r\n", {delete_misses => 0, delete_hits => 1, curr_items => -1}],
        ["delete foo\r\n", "NOT_FOUND\r\n"], ["get foo\r\n", "END\r\n"],
        ["set foo 0 0 1\r\nx\r\n", "STORED\r\n"],
        ["delete foo 0\r\n", "DELETED\r\n", 'delete with the old argument 0']);

    # touch
    exchanges($s, ["touch nix 0\r\n", "NOT_FOUND\r\n", {cmd_touch => 1, touch_misses => 1, touch_hits => 0}],
        ["touch moo 100\r\n", "TOUCHED\r\n",
            {cmd_touch => 1, touch_misses => 0, touch_hits => 1, cmd_get => 0}]);

    # gat and gats
    exchanges($s, ["gat 100 moo\r\n", "VALUE moo 0 3\r\nnew\r\nEND\r\n", {cmd_touch => 1, touch_hits => 1}],
        ["gat 100 nix\r\n", "END\r\n", {cmd_touch => 1, touch_misses => 1}],
        ["gat 0 nix moo g1\r\n", "VALUE moo 0 3\r\nnew\r\nVALUE g1 0 1\r\n1\r\nEND\r\n",
            {cmd_touch => 3, touch_hits => 2, touch_misses => 1}]);
    ($cas) = mem_gets($s, 'moo');
    exchanges($s, ["gats 100 moo\r\n", "VALUE moo 0 3 $cas\r\nnew\r\nEND\r\n"], ["gats 100 nix\r\n", "END\r\n"],
        ["gat 0 moo\r\n", "VALUE moo 0 3\r\nnew\r\nEND\r\n", {cmd_get => 0, get_hits => 0},
            'gat counts as touch, not as get']);

    # verbosity
    exchanges($s, ["verbosity 0\r\n", "OK\r\n"], ["verbosity 1\r\n", "OK\r\n"]);
    is(mem_stats($s, 'settings')->{verbosity}, 1, 'verbosity shows in settings');
    exchange($s, "verbosity 9\r\n", "OK\r\n");
    is(mem_stats($s, 'settings')->{verbosity}, 2, 'and is capped at 2') if is_ours();
    exchange($s, "verbosity 0\r\n", "OK\r\n");

    # flush_all
    exchanges($s, ["set fl 0 0 1\r\n1\r\n", "STORED\r\n"], ["flush_all\r\n", "OK\r\n", {cmd_flush => 1}],
        ["get fl\r\n", "END\r\n"], ["set fl 0 0 1\r\n2\r\n", "STORED\r\n"]);
    mem_get_is($s, 'fl', '2', 'a set right after flush_all is visible') if is_ours();

    # quit
    my $q = $server->connect;
    put($q, "quit\r\n");
    expect_eof($q, '', 'quit closes without a reply', "quit\r\n");
    $q = $server->connect;
    put($q, "version\r\nquit\r\nversion\r\n");
    expect_eof($q, VERSION_REPLY($profile), 'what stands before quit is answered');
});

done_testing();
