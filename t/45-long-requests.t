#!/usr/bin/env perl
# Requests about the server may take long. One runs in a turn, each in pieces, so that others are
# served in between; and a client that does not read the answers costs a bounded number of
# blocks, whatever it asks for. Turns and blocks are counted.
use List::Util 'sum';
use MCTest ':ours';

my $END = "END\r\n";

# A run of them in one write: each has a turn of its own. Returns the connection.
sub runs_are_cut($server, $profile) {
    my $s = $server->connect;
    # The question is queued, too. A burst like the one before waits among small requests, unread, and its
    # first request may run in that turn if nothing else is there.
    my $asked = 0;
    my $turns = sub (@classes) {
        my $stats = mem_stats($server->control, 'classes');
        return sum(map { $stats->{"class_${_}_queued"} } @classes) - ++$asked;
    };
    for my $case (['verbosity', "verbosity 0\r\n", "OK\r\n"],
        ['flush_all', "flush_all 1000\r\n", "OK\r\n"],
        ['lru_crawler', "lru_crawler sleep 1\r\n", "OK\r\n"],
        ['qos', "qos dry_run off\r\n", "OK\r\n"],
        ['stats reset', "stats reset\r\n", "RESET\r\n"],
        ['stats detail', "stats detail off\r\n", "OK\r\n"]) {
        my ($name, $line, $reply) = @$case;
        my $before = $turns->('control', 'small');
        exchange($s, $line x 15, $reply x 15, $name);
        cmp_ok($turns->('control', 'small') - $before, '>=', 15, "15 times $name: a turn each");
    }
    my $before = $turns->('control');
    # more than a turn of them
    exchanges($s, ["mn\r\n" x 50, "MN\r\n" x 50], ["version\r\n" x 50, VERSION_REPLY($profile) x 50]);
    is($turns->('control') - $before, 0, 'mn and version are not long');
    return $s;
}

# What makes long answers.
sub fill($server) {
    my $s = $server->control;
    roundtrip($s, "stats detail on\r\n");
    for my $i (0 .. 19) {
        put($s, join '', map { "set key-of-a-good-length-$i-$_:x 0 0 20 noreply\r\n" . 'v' x 20
                    . "\r\n" } 1 .. 1000);
    }
    roundtrip($s, "stats detail off\r\n");
    for my $i (1 .. 100) {
        my $size = int(10 * 1.12**$i);
        put($s, "set sized$i 0 0 $size noreply\r\n" . 'v' x $size . "\r\n");
    }
    exchange($s, "set large 0 0 1000000\r\n" . 'l' x 1000000 . "\r\n", "STORED\r\n");
}

# Each of these is answered in pieces. Without classes a turn ends with one, with classes it ends in
# time (t/unit/check_queue.c).
sub answers_are_cut($server) {
    fill($server);
    my @idle = map { $server->connect } 1 .. 100; # lines of stats conns
    my $s = $server->control;
    my $reader = $server->connect;
    my $turns = sub { return mem_stats($s, 'classes')->{class_control_queued} };
    for my $what ('items', 'slabs', 'conns', 'sizes', 'cachedump 2 0', 'detail dump', 'latency',
        'pin') {
        my $before = $turns->();
        my @lines = stat_lines($reader, $what);
        cmp_ok($turns->() - $before, '>', 0, "stats $what");
    }
}

# Blocks that clients hold who have sent lines and do not read. They have left when it returns: one
# that the server still answers takes blocks as well.
sub blocks_of_slow_readers($server, $count, $lines) {
    my $blocks = sub ($st) { $st->{read_buf_count} - $st->{read_buf_bytes_free} / 16384 };
    my $before = mem_stats($server->control);
    my @slow;
    for (1 .. $count) {
        my $c = $server->connect;
        push @slow, [$c, $lines];
    }
    my $are_stuck = wait_until(sub {
        for my $slow (@slow) {
            my $n = syswrite $slow->[0], $slow->[1];
            substr $slow->[1], 0, $n, '' if $n;
        }
        my $waiting = grep { /:state conn_mwrite/ } stat_lines($server->control, 'conns');
        return $waiting >= $count;
    }, 600);
    my $held = $blocks->(mem_stats($server->control)) - $blocks->($before);
    diag('not stuck: ', join "\n", stat_lines($server->control, 'conns')) if !$are_stuck;
    @slow = ();
    my $have_left = all_have_left($server->control, $before, $count);
    diag('still there: ', join "\n", stat_lines($server->control, 'conns')) if !$have_left;
    return $are_stuck && $have_left ? $held / $count : undef;
}

each_profile(sub ($profile) {
    my @options = ($profile, '-t', '1', '-m', '200', '-o', 'track_sizes',
        $profile eq '1.4' ? () : ('-o', 'no_lru_maintainer'));
    my $server = serve(@options);
    my $s = $server->control;
    my $stays = runs_are_cut($server, $profile); # does not leave while others are counted
    answers_are_cut(scalar serve(@options, '--classes=off'));
    fill($server);

    # 128 KiB of output, a block that is being filled and one of input
    if ($profile ne '1.4') {
        for my $case (['get large', 10, "get large\r\n" x 200],
            ['get', 10, 'get' . " sized20" x 20 . "\r\n"],
            ['mg', 10, "mg sized40 v t f s k\r\n"], ['me', 10, "me sized40\r\n"],
            # a reply of a few bytes: many of them
            ['mn', 1, "mn\r\n"], ['version', 1, "version\r\n"], ['bogus', 1, "bogus\r\n"],
            ['stats', 10, "stats\r\n"],
            (map { ["stats $_", 10, "stats $_\r\n"] } 'items', 'slabs', 'conns', 'settings', 'sizes',
                'cachedump 2 0', 'detail dump', 'latency', 'qos', 'pin', 'classes'),
            ['metadump', 1, "lru_crawler metadump all\r\n"],
            ['mgdump', 1, "lru_crawler mgdump all\r\n"]) {
            my ($name, $count, $lines) = @$case;
            $lines x= int(12_000_000 / length $lines) if length $lines < 500;
            my $blocks = blocks_of_slow_readers($server, $count, $lines);
            ok(defined $blocks, "$name: the clients are stuck, and leave");
            cmp_ok($blocks // 99, '<=', 10, '... with so few blocks each');
        }
    }
    # one whose pieces are larger than a bulk value may be
    roundtrip($s, "flush_all\r\nlru_crawler enable\r\n");
    put($s, sprintf("set %s%04d 0 0 1 noreply\r\nv\r\n", 'k' x 240, $_)) for 1 .. 1000;
    exchange($s, "mn\r\n", "MN\r\n");
    my $c = $server->connect;
    my @dump;
    # The walk of a client before it, which is gone, may not have ended.
    soon {
        put($c, "lru_crawler metadump all\r\n");
        @dump = read_line($c);
        return $dump[0] !~ /^BUSY/;
    } 'a dump begins';
    # 1.4 has no line at its end; a reply to the next request comes behind it.
    put($c, "mn\r\n");
    push @dump, read_line($c) until $dump[-1] =~ /^(MN\r\n)?$/;
    is(scalar(grep { /^key=k{240}\d{4} / } @dump), 1000, 'a dump of long keys');
    exchange($s, "set sized1 0 0 11\r\nvvvvvvvvvvv\r\n", "STORED\r\n");
    exchange($s, "get sized1\r\n", qr/^VALUE sized1 0 11\r\nv{11}\r\nEND\r\n$/, 'the next is served');
});

done_testing();
