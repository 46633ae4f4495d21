#!/usr/bin/env perl
# lru_crawler: switched, ordered, and its dumps byte for byte.
use MCTest;

sub crawled($s) {
    return wait_until(sub { mem_stats($s)->{lru_crawler_running} == 0 });
}

# The lines of a dump, sorted; what is around them must be `head` and `tail`.
sub dump_lines($s, $command, $lines, $head, $tail, $name) {
    put($s, "$command\r\n");
    my @got;
    expect_bytes($s, $head, "$name: begins") if $head ne '';
    push @got, read_line($s) for 1 .. $lines;
    expect_bytes($s, $tail, "$name: ends") if $tail ne '';
    expect_open($s, "$name: and takes commands again");
    return sort @got;
}

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $is_16 = $profile eq '1.6';
    my ($head, $tail) = $is_16 ? ("OK\r\n", "END\r\n") : ('', '');
    my $more = sub { $is_16 ? " cls=$_[0] size=$_[1] flags=$_[2] " : '' };
    my ($server, $s) = serve($profile, '-m', '32', '-o', 'no_lru_crawler,no_lru_maintainer,no_slab_automove');

    # switches
    exchange($s, "lru_crawler crawl 1\r\n", "CLIENT_ERROR lru crawler disabled\r\n");
    exchange($s, "lru_crawler metadump all\r\n", "CLIENT_ERROR lru crawler disabled\r\n");
    exchange($s, "lru_crawler enable\r\n", "OK\r\n");
    is(mem_stats($s, 'settings')->{lru_crawler}, 'yes', 'the setting follows');
    exchange($s, "lru_crawler enable\r\n", "ERROR failed to start lru crawler thread\r\n");
    exchange($s, "lru_crawler disable\r\n", "OK\r\n");
    is(mem_stats($s, 'settings')->{lru_crawler}, 'no', 'the setting follows');
    exchange($s, "lru_crawler enable\r\n", "OK\r\n");

    # bad orders
    exchange($s, "lru_crawler $_\r\n", "ERROR\r\n")
        for '', 'crawl', 'tocrawl', 'sleep', 'metadump', 'nonsense', 'nonsense 1';
    exchange($s, "lru_crawler crawl $_\r\n", "BADCLASS invalid class id\r\n")
        for '0', '64', 'x', '-1', '1,x', '1,64';
    exchanges($s, ["lru_crawler tocrawl x\r\n", "CLIENT_ERROR bad command line format\r\n"],
        ["lru_crawler sleep x\r\n", "CLIENT_ERROR bad command line format\r\n"],
        ["lru_crawler sleep 1000001\r\n", "CLIENT_ERROR sleep must be one second or less\r\n"],
        ["lru_crawler sleep 0\r\n", "OK\r\n"], ["lru_crawler tocrawl 0\r\n", "OK\r\n"]);
    my $empty = $is_16 ? "OK\r\n" : "NOTSTARTED no items to crawl\r\n";
    exchange($s, "lru_crawler crawl 1\r\n", $empty);
    exchange($s, "lru_crawler metadump all\r\n", $is_16 ? "OK\r\nEND\r\n" : $empty);

    # 60 items that stay and 30 that expire
    exchange($s, join('', map { "set ifoo$_ 0 0 2\r\nok\r\nset lfoo$_ 0 86400 2\r\nok\r\n"
                . "set sfoo$_ 0 1 2\r\nok\r\n" } 1 .. 30), "STORED\r\n" x 90, '90 items');
    is(mem_stats($s, 'slabs')->{'1:used_chunks'}, 90, '90 chunks');
    exchanges($s, ["debugtime 4\r\n", "OK\r\n"], ["lru_crawler crawl 1\r\n", "OK\r\n"]);
    ok(crawled($s), 'the crawl ends');
    is(mem_stats($s, 'slabs')->{'1:used_chunks'}, 60, '60 are left');
    my $items = mem_stats($s, 'items');
    has($items, 'crawler_reclaimed', 'items:1:crawler_reclaimed' => 30, 'items:1:crawler_items_checked' => 90,
        'items:1:reclaimed' => 0);
    my @keys = sort map { ("ifoo$_", "lfoo$_") } 1 .. 30;
    my @got = dump_lines($s, 'lru_crawler metadump all', 60, $head, $tail, 'metadump');
    is(scalar(grep { /^key=ifoo\d+ exp=-1 la=\d+ cas=\d+ fetch=no/ } @got), 30, 'half of them never expire');
    is(scalar(grep { /^key=lfoo\d+ exp=\d{10} la=\d{10} cas=\d+ fetch=no/ } @got), 30, 'the others do');

    # the bytes of a line
    exchange($s, "set a%b\x01/c~ 5 0 3\r\nabc\r\nget a%b\x01/c~\r\n",
        "STORED\r\nVALUE a%b\x01/c~ 5 3\r\nabc\r\nEND\r\n");
    exchange($s, "debugtime p\r\ntouch a%b\x01/c~ 100\r\n", "OK\r\nTOUCHED\r\n");
    my $time = mem_stats($s)->{time};
    @got = grep { /^key=a/ } dump_lines($s, 'lru_crawler metadump 1,2,3', 61, $head, $tail,
        'with a strange key');
    my $size = $is_16 ? 48 + 8 + 7 + 1 + 4 + 3 + 2 : 0;
    my $exp = $time + 100;
    like($got[0], qr/^key=a%25b%01%2Fc~ exp=$exp la=\d+ cas=91 fetch=yes\Q@{[$more->(1, $size, 5)]}\E\n$/,
        'encoded');
    exchange($s, "debugtime r\r\n", "OK\r\n");

    # only here: the table, and keys alone
    if ($is_16) {
        @got = dump_lines($s, 'lru_crawler metadump hash', 61, $head, $tail, '[1.6] hash');
        is_deeply([map { /^key=(\S+)/ } @got], [sort 'a%25b%01%2Fc~', @keys], '[1.6] once each');
        @got = dump_lines($s, 'lru_crawler mgdump all', 61, $head, "EN\r\n", '[1.6] mgdump');
        is_deeply(\@got, [sort map { "mg $_\r\n" } "a%b\x01/c~", @keys], '[1.6] keys');
        exchange($s, "mg foo v\r\nlru_crawler metadump all\r\n",
            "EN\r\nERROR cannot pipeline other commands before metadump\r\n");
        exchange($s, "mg foo v\r\nlru_crawler mgdump hash\r\n",
            "EN\r\nERROR cannot pipeline other commands before mgdump\r\n");
        # nor behind one that has used up the turn for long commands
        for my $alone ('lru_crawler metadump all', 'lru_crawler mgdump all', 'watch') {
            my ($word) = $alone =~ /(metadump|mgdump|watch)/;
            exchange($s, "verbosity 0\r\n$alone\r\n", "OK\r\nERROR cannot pipeline other commands before $word\r\n");
        }
    } else {
        exchange($s, "lru_crawler mgdump all\r\n", "ERROR\r\n");
        exchange($s, "lru_crawler metadump hash\r\n", "BADCLASS invalid class id\r\n");
    }

    # a list is left after so many
    exchange($s, "lru_crawler tocrawl 10\r\n", "OK\r\n");
    my $checked = mem_stats($s, 'items')->{'items:1:crawler_items_checked'};
    exchange($s, "lru_crawler crawl all\r\n", "OK\r\n");
    ok(crawled($s), 'crawls 10');
    is(mem_stats($s, 'items')->{'items:1:crawler_items_checked'}, $checked + 10, 'no more');

    $server = serve($profile, '-X', '-o', 'lru_crawler');
    exchange($server->connect, "lru_crawler metadump all\r\n", "ERROR metadump not allowed\r\n");
});

# Dumps that nobody takes: others go on, and the next dump works when the client has gone.
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $is_16 = $profile eq '1.6';
    my ($server, $s) = serve($profile, '-m', '64', '-o', 'lru_crawler,no_lru_maintainer');
    my $count = 20_000;
    my $pad = '#' x 200; # tripled by the encoding: more than sockets buffer
    for (my $i = 0; $i < $count; $i += 1000) {
        put($s, join '', map { "set bfoo$_$pad 0 0 1 noreply\r\nx\r\n" } $i .. $i + 999);
    }
    expect_open($s, "$count items");
    my $lazy = $server->connect;
    put($lazy, "lru_crawler metadump all\r\n");
    soon { mem_stats($s)->{lru_crawler_running} == 1 } 'it runs';
    soon {
        roundtrip($s, "lru_crawler metadump all\r\n",
            "BUSY currently processing crawler request\r\n") =~ /^BUSY/;
    } 'one at a time';
    exchange($s, "get bfoo7$pad\r\n", "VALUE bfoo7$pad 0 1\r\nx\r\nEND\r\n", 'others are served');
    close $lazy;
    ok(crawled($s), 'it ends with its client');
    my $how = $is_16 ? 'hash' : 'all';
    my ($head, $tail) = $is_16 ? ("OK\r\n", "END\r\n") : ('', '');
    put($s, "lru_crawler metadump $how\r\n");
    expect_bytes($s, $head, 'begins') if $head ne '';
    my %seen;
    for (1 .. $count) {
        my $line = read_line($s);
        $seen{$1}++ if $line =~ /^key=(bfoo\d+)%23/;
    }
    expect_bytes($s, $tail, 'ends') if $tail ne '';
    is(scalar(keys %seen), $count, "$how: each item");
    is(scalar(grep { $_ != 1 } values %seen), 0, 'once');
    expect_open($s, 'and that is all');
});

done_testing();
