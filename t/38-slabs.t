#!/usr/bin/env perl
# slabs reassign and automove: replies, pages that move, what is in them, and the limit.
use MCTest;

# Stores `count` values of `size` bytes named `name`N; silent.
sub fill_with($s, $name, $size, $count, $from = undef) {
    my $value = 'x' x $size;
    $from ||= 0;
    put($s, "set $name$_ 0 0 $size noreply\r\n$value\r\n") for $from .. $from + $count - 1;
    expect_open($s, "$count of $size bytes");
}

sub delete_all($s, $name, @which) {
    put($s, join '', map { "delete $name$_ noreply\r\n" } @which);
    expect_open($s, 'deleted');
}

sub count_present($s, $name, $count) {
    my $n = 0;
    for my $i (0 .. $count - 1) {
        my $reply = roundtrip($s, "touch $name$i 0\r\n", "TOUCHED\r\n");
        $n++ if $reply eq "TOUCHED\r\n";
    }
    return $n;
}

sub moved($s) {
    return wait_until(sub { mem_stats($s)->{slab_reassign_running} == 0 });
}

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $is_16 = $profile eq '1.6';
    my $off = 'no_lru_crawler,no_lru_maintainer,no_slab_automove';
    my ($server, $s) = serve($profile, '-m', '4', '-o', "slab_reassign,$off");
    my $last = $is_16 ? 39 : 42;
    my $garbage = $is_16 ? "CLIENT_ERROR bad command line format\r\n" : undef;

    # replies
    exchange($s, "slabs reassign $last 1\r\n", "NOSPARE source class has no spare pages\r\n");
    exchange($s, 'slabs reassign ' . ($last + 1) . " 1\r\n", "BADCLASS invalid src or dst class id\r\n");
    exchange($s, "slabs reassign $_\r\n", "BADCLASS invalid src or dst class id\r\n") for '1 64', '60 1',
        '-5 70', '0 70', '1 -1', '-1 70', '100 200', '-100 70', $is_16 ? ('-1 1', '-1 0') : ('0 1');
    exchange($s, "slabs reassign $_\r\n", "NOSPARE source class has no spare pages\r\n")
        for $is_16 ? '0 1' : ('-1 1', '-1 0');
    exchange($s, "slabs reassign $_\r\n", "SAME src and dst class are identical\r\n")
        for '0 0', '-1 -1', '70 70';
    exchanges($s, ["slabs reassign 1 1\r\n", "SAME src and dst class are identical\r\n"],
        ["slabs reassign invalid1 invalid2\r\n", $garbage || "SAME src and dst class are identical\r\n"]);
    exchange($s, "slabs $_\r\n", "ERROR\r\n") for '', 'nonsense', 'reassign', 'reassign 1', 'automove',
        'automove 3', 'automove ratio', 'automove ratio x';
    exchange($s, "slabs automove invalid\r\n", $garbage || "OK\r\n");
    exchange($s, "slabs automove $_\r\n", "OK\r\n") for 'ratio 0.5', 1, 0;
    if ($is_16) {
        exchange($s, "slabs automove window $_\r\n",
            "CLIENT_ERROR automove window too low or too high\r\n") for 0, 2, 1801, 4294967295;
        exchange($s, "slabs automove $_\r\n", $garbage)
            for 'window', 'window x', 'window -1', 'window 4294967296', 'freeratio', 'freeratio x';
        exchange($s, "slabs automove window 1800\r\n", "OK\r\n");
        exchange($s, "slabs automove freeratio 0.1\r\n", "OK\r\n");
    }

    # a page of one full class for another
    fill_with($s, 'big', 70000, 60);
    fill_with($s, 'small', 20000, 60);
    cmp_ok(mem_stats($s, 'items')->{'items:31:evicted'}, '>', 0, 'evictions');
    my $before = mem_stats($s, 'slabs');
    exchange($s, "slabs reassign 31 25\r\n", "OK\r\n");
    ok(moved($s), 'it moves');
    my $after = mem_stats($s, 'slabs');
    is($after->{'31:total_pages'}, $before->{'31:total_pages'} - 1, 'one page less');
    is($after->{'25:total_pages'}, $before->{'25:total_pages'} + 1, 'one more');
    my $st = mem_stats($s);
    is($st->{slabs_moved}, 1, 'slabs_moved');
    cmp_ok($is_16 ? $st->{slab_reassign_busy_nomem} : $st->{slab_reassign_evictions_nomem}, '>', 1,
        'something had to give way');
    fill_with($s, 'big', 70000, 5, 100);
    fill_with($s, 'small', 20000, 5, 100);
    exchange($s, "get big104\r\n", "VALUE big104 0 70000\r\n" . 'x' x 70000 . "\r\nEND\r\n", 'stored');

    # by automover 2: at an eviction, not at the end of the second
    my $pages = $after->{'25:total_pages'};
    my $from = 1000;
    exchange($s, "slabs automove 2\r\n", "OK\r\n");
    soon {
        fill_with($s, 'small', 20000, 60, $from += 60);
        return mem_stats($s, 'slabs')->{'25:total_pages'} > $pages;
    } 'a class that evicts gets a page';
    exchange($s, "slabs automove 0\r\n", "OK\r\n");
    $server->stop;

    # a mover of other steps
    for my $step (0, 'x', 3, 99999999999) {
        ($server, $s) = serve($profile, '-m', '4', '-o', "slab_reassign,$off", {env => {MEMCACHED_SLAB_BULK_CHECK => $step}});
        fill_with($s, 'big', 70000, 30);
        exchange($s, "slabs reassign 31 0\r\n", "OK\r\n");
        ok(moved($s), "MEMCACHED_SLAB_BULK_CHECK=$step");
    }

    # what has room moves unchanged
    ($server, $s) = serve($profile, '-m', '8', '-o', "slab_reassign,$off");
    fill_with($s, 'key', 70000, 60);
    delete_all($s, 'key', 30 .. 41);
    my $cas = sub {
        return [map { roundtrip($s, "gets key$_\r\n", '') =~ /^VALUE \S+ 0 70000 (\d+)/ } 0 .. 29, 42 .. 59];
    };
    my $want = $cas->();
    is(scalar(@$want), 48, '48 items');
    exchange($s, "slabs reassign 31 5\r\n", "OK\r\n");
    ok(moved($s), 'it moves');
    is_deeply($cas->(), $want, 'all are there, with their CAS numbers');
    has(mem_stats($s), 'rescues, no evictions', slab_reassign_rescues => 12, evictions => 0);

    # somebody is busy with an item
    delete_all($s, 'key', 42 .. 53);
    exchanges($s, ["debugitem lock key20\r\n", "OK\r\n"], ["slabs reassign 31 0\r\n", "OK\r\n"]);
    soon { mem_stats($s)->{slab_reassign_busy_items} > 500 } 'busy';
    $st = mem_stats($s);
    has($st, 'it goes on trying, in vain', slab_reassign_running => 1, slabs_moved => 1);
    is($st->{slab_reassign_last_busy_status}, 'locked', '[1.6] and says why') if $is_16;
    exchange($s, "slabs reassign 31 0\r\n", "BUSY currently processing reassign request\r\n");
    exchange($s, "debugitem unlock key20\r\n", "OK\r\n");
    ok(moved($s), 'until it is free');
    is(mem_stats($s)->{slabs_moved}, 2, 'slabs_moved');

    # references that nobody gives back
    my @first = (0 .. 29, 54 .. 59);
    exchange($s, "debugitem ref key$_\r\n", "OK\r\n") for @first;
    exchanges($s, ["debugitem ref none\r\n", "MISS\r\n"], ["slabs reassign 31 0\r\n", "OK\r\n"]);
    for my $what ('held', 'held and deleted') {
        my $before = mem_stats($s)->{slab_reassign_busy_items};
        soon { mem_stats($s)->{slab_reassign_busy_items} > $before + 500 } "busy while all are $what";
        is(mem_stats($s)->{slab_reassign_last_busy_status}, 'busy_floating', "[1.6] $what: floating") if $is_16;
        delete_all($s, 'key', @first);
    }
    exchanges($s, ["debugitem unref key0\r\n", "OK\r\n"], ["debugitem unref key0\r\n", "MISS\r\n"]);
    exchange($s, "debugitem unref reffed\r\n", "OK\r\n") for 2 .. @first;
    exchange($s, "debugitem unref reffed\r\n", "MISS\r\n");
    ok(moved($s), 'until they are given back');

    # it is off by default in one profile and can be switched off in the other
    $server = serve($profile, '-o', 'no_slab_reassign');
    exchange($server->connect, "slabs reassign 1 2\r\n", "CLIENT_ERROR slab reassignment disabled\r\n");
});

# Chained items: chunks and heads move, the values stay.
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $max = $profile eq '1.6' ? 4 : 4096;
    my ($server, $s) = serve($profile, '-m', '20', '-o',
        "slab_reassign,slab_chunk_max=$max,no_lru_crawler,no_lru_maintainer,no_slab_automove");
    my $value = sub { my $n = shift; return substr("$n-abcdefghij" x 2000, 0, 11000) };
    my $count = 1300;
    put($s, "set k$_ 0 0 11000 noreply\r\n" . $value->($_) . "\r\n") for 0 .. $count - 1;
    expect_open($s, "$count chained values");
    delete_all($s, 'k', grep { $_ % 3 == 0 } 0 .. $count - 1);
    for my $turn (1 .. 3) {
        exchange($s, "slabs reassign 17 0\r\n", "OK\r\n");
        ok(moved($s), "page $turn");
    }
    my $st = mem_stats($s);
    is($st->{slabs_moved}, 3, 'slabs_moved');
    is($st->{slab_global_page_pool}, 3, '[1.6] in the pool') if $profile eq '1.6';
    cmp_ok($st->{slab_reassign_chunk_rescues}, '>', 100, 'chunk_rescues');
    my ($bad, $there) = (0, 0);
    for my $i (grep { $_ % 3 != 0 } 0 .. $count - 1) {
        my $want = "VALUE k$i 0 11000\r\n" . $value->($i) . "\r\nEND\r\n";
        my $got = roundtrip($s, "get k$i\r\n", $want);
        $there++ if $got eq $want;
        $bad++ if $got ne $want && $got ne "END\r\n";
    }
    is($bad, 0, 'no value has changed');
    is($there, $count - 434, 'and none is lost');
});

# What is smaller and newer than chained items makes those go, chunk by chunk as it is needed, and
# not what came with it: not when all was read again, whatever the maintainer has done meanwhile.
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my $max = $profile eq '1.6' ? 4 : 4096;
    my ($server, $s) = serve($profile, '-m', '30', '-o', "slab_reassign,slab_chunk_max=$max");
    my $count = 2600;
    my $read_all = sub {
        my $there = 0;
        for my $first (map { $_ * 50 } 0 .. $count / 50 - 1) {
            my @keys = map { "old$_" } $first .. $first + 49;
            put($s, "get @keys\r\n");
            while (read_line($s) =~ /^VALUE/) {
                read_bytes($s, 11002);
                $there++;
            }
        }
        return $there;
    };
    fill_with($s, 'old', 11000, $count);
    my $there = $read_all->();
    cmp_ok($there, '>', $count * 0.9, 'most fit');
    exchange($s, "slabs reassign 17 0\r\n", "OK\r\n");
    ok(moved($s), 'a page to the pool');
    for my $seconds (1, 3) {
        debugtime($server, $seconds);
        $read_all->();
    }
    # In pieces, for the maintainer to come between them.
    fill_with($s, 'new', 3000, 100, $_ * 100) for 0 .. 25;
    is(count_present($s, 'new', $count), $count, 'no new one is lost');
    my $chunks = $count - 256; # of those, the pool had some; an old item has three
    my $evicted = mem_stats($s)->{evictions} - ($count - $there);
    cmp_ok($evicted, '<=', $chunks / 3 + 256 / 3 + 20, 'no more than are needed');
});

# Memory goes back when the limit is lowered: from the pool at once, from classes by and by.
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my ($server, $s) = serve($profile, '-m', '16', '-o', 'modern,slab_automove_window=3');
    fill_with($s, 'key', 66560, 150);
    my $full = mem_stats($s, 'slabs')->{total_malloced};
    cmp_ok($full, '>', 12 << 20, 'filled');
    exchanges($s, ["cache_memlimit 8\r\n", "OK\r\n"], ["cache_memlimit\r\n", "ERROR\r\n"]);
    delete_all($s, 'key', 0 .. 149);
    soon { mem_stats($s, 'slabs')->{total_malloced} <= 8 << 20 } 'down to the limit';
    is(mem_stats($s, 'settings')->{maxbytes}, 8 << 20, 'maxbytes');
});

# -L: all at once, and then the limit is fixed.
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my ($server, $s) = serve($profile, '-L', '-m', '64');
    is(mem_stats($s, 'slabs')->{active_slabs}, $profile eq '1.6' ? 39 : 42, 'a page for each class');
    exchange($s, "cache_memlimit 80\r\n", "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n");
    exchange($s, "set a 0 0 1\r\nx\r\n", "STORED\r\n");
});

# Of the native profile: the class of an item of so many bytes with its header, by a server's options.
sub chunk_of($total, @args) {
    my ($server, $s) = serve('native', @args);
    my $len = $total - 32 - 8 - 3 - 2; # header, CAS, "key", CR LF
    exchange($s, "set key 0 0 $len\r\n" . 'v' x $len . "\r\n", "STORED\r\n");
    my $slabs = mem_stats($s, 'slabs');
    return join ' ', map { $slabs->{$_} } grep { /:chunk_size$/ } sort keys %$slabs;
}

if (is_ours()) {
    my @roomy = ('-m', '1024');
    is(chunk_of($_, @roomy), 8 * int(($_ + 7) / 8), "$_ bytes: the next multiple of 8") for 56, 57, 64, 129, 192;
    is(chunk_of($_, @roomy), 16 * int(($_ + 15) / 16), "$_ bytes: of 16") for 193, 208, 320;
    is(chunk_of($_, @roomy), 32 * int(($_ + 31) / 32), "$_ bytes: of 32") for 321, 352, 512;
    is(chunk_of($_->[0], @roomy), $_->[1], "$_->[0] bytes: as in 1.6") for [513, 600], [1000, 1184], [300_000, 315_872], [394_841, 524_288];
    is(chunk_of(130, @roomy, @$_), 152, "@$_: as upstream") for ['-f', '1.25'], ['-n', '48'];
    is(chunk_of(300, @roomy, '-o', 'slab_sizes=100-333'), 336, 'slab_sizes');
    my ($server, $s) = serve('native', @roomy);
    is(mem_stats($s, 'settings')->{growth_factor}, '1.25', 'stats settings tells that of 1.6');
    ($server, $s) = serve('native', '-L', '-m', '40');
    is(mem_stats($s, 'slabs')->{active_slabs}, 1, '-L: a page for the largest class, which serves all');
    exchange($s, "set a 0 0 1\r\nx\r\n", "STORED\r\n");
}

done_testing();
